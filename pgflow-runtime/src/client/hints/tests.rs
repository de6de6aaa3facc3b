use sqlx::postgres::PgPoolOptions;

use super::*;

fn pool() -> PgPool {
    PgPoolOptions::new()
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .expect("a valid URL")
}

fn is_hinted(waiter: &Waiter) -> bool {
    use futures_util::FutureExt;
    waiter.ear.hint.notified().now_or_never().is_some()
}

fn waiter(pool: &PgPool, run_id: Uuid) -> Waiter {
    Waiter::join(&pool.clone(), run_id, Hears::TheEnd)
}

#[tokio::test]
async fn only_those_who_wait_for_the_run_are_woken() {
    let pool = pool();
    let [one, other] = [Uuid::now_v7(), Uuid::now_v7()];
    let waiters = [one, one, other].map(|run_id| waiter(&pool, run_id));
    waiters[0].hints.announce(Event {
        run_id: one,
        is_end: true,
    });
    assert_eq!(waiters.each_ref().map(is_hinted), [true, true, false]);
    waiters[0].hints.announce_all();
    assert_eq!(waiters.each_ref().map(is_hinted), [true, true, true]);
}

#[tokio::test]
async fn only_those_who_hear_everything_are_woken_before_the_end() {
    let pool = pool();
    let run_id = Uuid::now_v7();
    let waiters =
        [Hears::TheEnd, Hears::Everything].map(|hears| Waiter::join(&pool, run_id, hears));
    for is_end in [false, true] {
        waiters[0].hints.announce(Event { run_id, is_end });
        assert_eq!(waiters.each_ref().map(is_hinted), [is_end, true]);
    }
}

#[tokio::test]
async fn nothing_is_left_of_those_who_have_stopped_waiting() {
    let pool = pool();
    let run_id = Uuid::now_v7();
    let waiters = [(); 3].map(|()| waiter(&pool, run_id));
    let hints = Arc::clone(&waiters[0].hints);
    let [first, second, third] = waiters;
    drop((first, third));
    assert_eq!(lock(&hints.waiters).by_run[&run_id].len(), 1);
    assert!(*hints.is_waited.borrow());
    drop(second);
    assert!(lock(&hints.waiters).by_run.is_empty());
    assert!(!*hints.is_waited.borrow());
}

#[test]
fn an_event_tells_its_run_and_whether_that_has_ended() {
    let run_id = Uuid::now_v7();
    for (event_type, is_end) in [
        ("run:completed", true),
        ("run:failed", true),
        ("run:started", false),
        ("step:failed", false),
    ] {
        let payload =
            format!(r#"{{"run_id": "{run_id}", "step_slug": "a", "event_type": "{event_type}"}}"#);
        assert_eq!(line::event(&payload), Some(Event { run_id, is_end }));
    }
    assert_eq!(
        line::event(r#"{"run_id": "1", "event_type": "run:failed"}"#),
        None
    );
    assert_eq!(line::event("hello"), None);
}
