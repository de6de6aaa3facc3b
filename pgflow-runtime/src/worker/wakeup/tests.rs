use pgflow_definition::StepDefinition;
use tokio::time::Instant;

use super::*;
use crate::worker::testing::{DEFINITION, STEP};

const POLL: Duration = Duration::from_secs(1);

async fn slept(wakeup: &Wakeup) -> Duration {
    asleep(&Sleeper::new(wakeup, POLL)).await
}

async fn asleep(sleeper: &Sleeper<'_>) -> Duration {
    let start = Instant::now();
    sleeper.sleep().await;
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_sleep_lasts_the_jittered_poll_interval() {
    let slept = slept(&Wakeup::default()).await;
    assert!(slept >= POLL.mul_f64(0.79) && slept <= POLL.mul_f64(1.21));
}

#[tokio::test(start_paused = true)]
async fn a_hint_ends_the_sleep() {
    let wakeup = Wakeup::default();
    let waker = wakeup.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        waker.wake_for_ready();
    });
    assert_eq!(slept(&wakeup).await.as_millis(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_came_while_awake_is_kept() {
    let wakeup = Wakeup::default();
    wakeup.wake_for_ready();
    wakeup.wake_for_ready();
    assert_eq!(slept(&wakeup).await, Duration::ZERO);
    assert!(
        slept(&wakeup).await > Duration::ZERO,
        "one hint, however often it was given"
    );
}

#[tokio::test(start_paused = true)]
async fn looks_of_somebody_else_put_the_claimer_s_own_off() {
    let wakeup = Wakeup::default();
    assert_eq!(wakeup.idle_since(), None);
    let looker = wakeup.clone();
    let looks = 4;
    tokio::spawn(async move {
        for _ in 0..looks {
            tokio::time::sleep(POLL * 3 / 4).await;
            assert!(looker.idle_since().is_some());
            looker.looked(Instant::now());
        }
    });
    // The last look was the fourth.
    assert_eq!(slept(&wakeup).await, POLL * 3 + POLL);
    assert_eq!(wakeup.idle_since(), None);
    assert!(
        slept(&wakeup).await < POLL.mul_f64(1.21),
        "nobody looks any more"
    );
}

/// a -> b -> c, and d beside them.
const STEPS: &[StepDefinition<'static>] = &[
    StepDefinition { slug: "a", ..STEP },
    StepDefinition { slug: "d", ..STEP },
    StepDefinition {
        slug: "b",
        depends_on: &["a"],
        ..STEP
    },
    StepDefinition {
        slug: "c",
        depends_on: &["b"],
        ..STEP
    },
];

/// Claimers are found by flow in the whole process: each test takes a slug of its own.
fn claimer(slug: &'static str, step: Option<usize>) -> Wakeup {
    let definition = FlowDefinition {
        slug,
        steps: STEPS,
        ..DEFINITION
    };
    Wakeup::of(Target {
        definition: Box::leak(Box::new(definition)),
        step,
    })
}

async fn is_woken(wakeup: &Wakeup) -> bool {
    slept(wakeup).await == Duration::ZERO
}

#[tokio::test(start_paused = true)]
async fn a_started_run_wakes_the_claimers_of_its_flow() {
    let (first, second) = (claimer("started", None), claimer("started", Some(3)));
    let other = claimer("not_started", None);
    drop(claimer("started", None));
    wake_flow("started");
    assert!(is_woken(&first).await);
    assert!(is_woken(&second).await);
    assert!(!is_woken(&other).await);
}

#[tokio::test(start_paused = true)]
async fn results_wake_all_workers_of_a_flow_with_one_queue() {
    let (first, second) = (claimer("plain", None), claimer("plain", None));
    let other = claimer("plain_other", None);
    first.wake_for_ready();
    assert!(is_woken(&first).await);
    assert!(is_woken(&second).await);
    assert!(!is_woken(&other).await);
}

#[tokio::test(start_paused = true)]
async fn results_of_a_step_wake_the_workers_of_steps_that_come_after_it() {
    let steps = [0, 1, 2, 3].map(|step| claimer("queued", Some(step)));
    let again = claimer("queued", Some(3));
    for (from, expected) in [
        (0, [false, false, true, true]),
        (1, [false; 4]),
        (2, [false, false, false, true]),
        (3, [false; 4]),
    ] {
        steps[from].wake_for_ready();
        let mut woken = [false; 4];
        for (step, woken) in steps.iter().zip(&mut woken) {
            *woken = is_woken(step).await;
        }
        assert_eq!(woken, expected, "results of {}", STEPS[from].slug);
        assert_eq!(is_woken(&again).await, expected[3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_hint_does_not_wake() {
    let wakeup = Wakeup::default();
    let mut sleeper = Sleeper::new(&wakeup, POLL);
    wakeup.wake_for_ready();
    sleeper.forget();
    assert!(asleep(&sleeper).await >= POLL.mul_f64(0.79));
}

#[tokio::test(start_paused = true)]
async fn after_a_notification_the_claimer_looks_once_more_and_then_once_more() {
    let wakeup = Wakeup::default();
    let mut sleeper = Sleeper::new(&wakeup, POLL);
    wakeup.announce();
    assert_eq!(asleep(&sleeper).await, Duration::ZERO);
    let announced = Instant::now();
    for expected in LOOK_AGAIN {
        sleeper.forget();
        sleeper.sleep().await;
        // The timer counts in milliseconds, and rounds up.
        let late = announced.elapsed().checked_sub(expected).unwrap();
        assert!(late <= Duration::from_millis(2), "{late:?}");
    }
    sleeper.forget();
    assert!(
        asleep(&sleeper).await >= POLL.mul_f64(0.79),
        "no third time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_between_does_not_replace_the_second_look() {
    let wakeup = Wakeup::default();
    let mut sleeper = Sleeper::new(&wakeup, POLL);
    wakeup.announce();
    sleeper.forget();
    tokio::time::sleep(LOOK_AGAIN[0] / 3).await;
    // As a worker does that claims again because the first claim filled its slots.
    sleeper.forget();
    let again = asleep(&sleeper).await;
    assert!(again > Duration::ZERO && again < LOOK_AGAIN[0], "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_whose_time_comes_during_a_claim_follows_it_at_once() {
    let wakeup = Wakeup::default();
    let mut sleeper = Sleeper::new(&wakeup, POLL);
    wakeup.announce();
    sleeper.forget();
    tokio::time::sleep(LOOK_AGAIN[0] * 2).await;
    assert_eq!(asleep(&sleeper).await, Duration::ZERO);
}
