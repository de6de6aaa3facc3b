use std::sync::atomic::AtomicUsize;

use uuid::Uuid;

use super::*;

fn key(attempt: i32) -> AttemptKey {
    AttemptKey {
        run_id: Uuid::nil(),
        step_slug: "act",
        task_index: 0,
        attempt,
    }
}

fn enter(attempts: &Attempts, attempt: i32) -> RunningAttempt {
    let deadline = Instant::now() + Duration::from_mins(1);
    attempts.enter(key(attempt), CancellationToken::new(), deadline)
}

#[tokio::test]
async fn an_attempt_is_told_once_and_only_while_it_runs() {
    let attempts = Attempts::default();
    let (first, second) = (enter(&attempts, 1), enter(&attempts, 2));
    assert!(attempts.cancel(&key(1)));
    assert!(!attempts.cancel(&key(1)), "told before");
    assert!(first.running.cancelled.is_cancelled() && !second.running.cancelled.is_cancelled());
    assert_eq!(attempts.keys().len(), 2);
    drop(first);
    assert!(!attempts.cancel(&key(1)));
    assert_eq!(attempts.keys(), [key(2)]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_past_its_deadline_is_overdue_until_it_ends() {
    let attempts = Attempts::default();
    let now = Instant::now();
    let late = attempts.enter(key(1), CancellationToken::new(), now);
    let _in_time = enter(&attempts, 2);
    assert_eq!(attempts.overdue(now), [key(1)]);
    drop(late);
    assert_eq!(attempts.overdue(now), []);
}

#[tokio::test]
async fn a_handler_that_holds_its_thread_is_reported_once_and_one_that_awaits_is_not() {
    let attempts = Attempts::default();
    let (holds, awaits) = (enter(&attempts, 1), enter(&attempts, 2));
    let waiting = tokio::spawn(async move { awaits.watch(std::future::pending::<()>()).await });
    tokio::task::yield_now().await;
    let longest = Duration::from_secs(1);
    let look = |after: u64, since: u64| attempts.blocked(clock::now() + after, since, longest);
    holds
        .watch(async {
            assert_eq!(look(500, 0), []);
            // The process stood still for all of that time but for the last moment.
            assert_eq!(look(5000, clock::now() + 4500), []);
            let found = look(1500, 0);
            assert_eq!(found[0].key, key(1));
            assert!(found[0].held >= Duration::from_millis(1500), "{found:?}");
            assert_eq!(look(9000, 0), [], "reported before");
        })
        .await;
    waiting.abort();
}

#[tokio::test]
async fn a_handler_that_panics_holds_its_thread_no_longer() {
    let attempts = Attempts::default();
    let panics = enter(&attempts, 1);
    let work = AssertUnwindSafe(panics.watch(async { panic!("as it should") }));
    let ended: Result<Option<()>, _> = futures_util::FutureExt::catch_unwind(work).await;
    assert!(ended.is_err());
    assert_eq!(
        attempts.blocked(clock::now() + 9000, 0, Duration::from_secs(1)),
        []
    );
}

#[tokio::test]
async fn a_handler_is_not_polled_again_once_the_lease_is_over() {
    let attempts = Attempts::new(Some(Duration::ZERO), clock::now());
    let running = enter(&attempts, 1);
    let polls = AtomicUsize::new(0);
    let work = async {
        polls.fetch_add(1, Ordering::Relaxed);
    };
    assert_eq!(running.watch(work).await, None);
    assert_eq!(polls.into_inner(), 0);
    assert!(running.running.cancelled.is_cancelled());
}

#[tokio::test]
async fn a_handler_that_waits_is_dropped_when_its_attempt_is_abandoned() {
    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("as it should");
        }
    }

    let attempts = Attempts::new(Some(Duration::from_millis(50)), clock::now());
    let running = enter(&attempts, 1);
    let cancelled = running.running.cancelled.clone();
    let work = tokio::spawn(async move {
        let work = async {
            let _dropped = Panics;
            std::future::pending::<()>().await;
        };
        running.watch(work).await
    });
    while attempts.abandon() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(cancelled.is_cancelled());
    assert_eq!(work.await.expect("the panic ends in it"), None);
    assert_eq!(attempts.keys(), []);
    attempts.renew(clock::now() + 60_000);
    assert!(!attempts.is_lease_over());
}
