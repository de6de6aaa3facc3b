use sqlx::postgres::PgPoolOptions;

use super::*;

fn pool() -> PgPool {
    PgPoolOptions::new()
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .expect("a valid URL")
}

fn is_hinted(waiter: &Waiter) -> bool {
    use futures_util::FutureExt;
    waiter.hint.notified().now_or_never().is_some()
}

#[tokio::test]
async fn only_those_who_wait_for_the_run_are_woken() {
    let pool = pool();
    let [one, other] = [Uuid::now_v7(), Uuid::now_v7()];
    let waiters = [one, one, other].map(|run_id| Waiter::join(&pool.clone(), run_id));
    waiters[0].ends.announce(one);
    assert_eq!(waiters.each_ref().map(is_hinted), [true, true, false]);
    waiters[0].ends.announce_all();
    assert_eq!(waiters.each_ref().map(is_hinted), [true, true, true]);
}

#[tokio::test]
async fn nothing_is_left_of_those_who_have_stopped_waiting() {
    let pool = pool();
    let run_id = Uuid::now_v7();
    let waiters = [(); 3].map(|()| Waiter::join(&pool, run_id));
    let ends = Arc::clone(&waiters[0].ends);
    let [first, second, third] = waiters;
    drop((first, third));
    assert_eq!(lock(&ends.waiters).by_run[&run_id].len(), 1);
    assert!(*ends.is_waited.borrow());
    drop(second);
    assert!(lock(&ends.waiters).by_run.is_empty());
    assert!(!*ends.is_waited.borrow());
}

#[test]
fn only_the_end_of_a_run_is_an_end() {
    let run_id = Uuid::now_v7();
    let event =
        |event_type: &str| format!(r#"{{"run_id": "{run_id}", "event_type": "{event_type}"}}"#);
    assert_eq!(line::ended(&event("run:completed")), Some(run_id));
    assert_eq!(line::ended(&event("run:failed")), Some(run_id));
    assert_eq!(line::ended(&event("run:started")), None);
    assert_eq!(
        line::ended(r#"{"run_id": "1", "event_type": "run:failed"}"#),
        None
    );
    assert_eq!(line::ended("hello"), None);
}
