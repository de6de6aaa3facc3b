use std::time::Duration;

use tokio::{task::yield_now, time::sleep};

use super::*;
use crate::worker::testing::{Act, claimed, output, shared};

/// Lasts as many milliseconds as the attempt's number says.
const LAST: Act = |milliseconds| {
    Box::pin(async move {
        sleep(Duration::from_millis(milliseconds.unsigned_abs().into())).await;
        Ok(output())
    })
};

/// Four slots, and room for as many results.
struct Playground {
    executor: Executor,
    shared: Arc<Shared>,
    busy: Busy,
    finished: mpsc::Receiver<Finished>,
    returned: mpsc::UnboundedReceiver<Start>,
}

impl Playground {
    async fn started(milliseconds: &[i32]) -> Self {
        let shared = shared(Some(LAST), 4);
        let busy = Busy::default();
        let (sender, finished) = mpsc::channel(4);
        let (give_back, returned) = mpsc::unbounded_channel();
        let executor = Executor::new(Arc::clone(&shared), busy.clone(), sender, give_back);
        let mut playground = Self {
            executor,
            shared,
            busy,
            finished,
            returned,
        };
        playground.start(milliseconds).await;
        playground
    }

    async fn start(&mut self, milliseconds: &[i32]) {
        for &milliseconds in milliseconds {
            self.executor.start(0, claimed(milliseconds));
        }
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn free_slots_are_there_at_once() {
    let mut play = Playground::started(&[1000, 1000]).await;
    let start = Instant::now();
    assert_eq!(play.executor.room().await, 2);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(!play.busy.is_idle());
}

#[tokio::test(start_paused = true)]
async fn without_a_free_slot_the_first_that_ends_is_waited_for_and_those_that_end_with_it() {
    let mut play = Playground::started(&[100, 101, 1000, 1000]).await;
    let start = Instant::now();
    assert_eq!(play.executor.room().await, 2);
    assert_eq!(start.elapsed().as_millis(), 102);
}

#[tokio::test(start_paused = true)]
async fn when_all_have_ended_nobody_is_waited_for() {
    let mut play = Playground::started(&[100, 100, 100, 100]).await;
    let start = Instant::now();
    assert_eq!(play.executor.room().await, 4);
    assert_eq!(start.elapsed().as_millis(), 100);
    assert!(play.busy.is_idle());
    drop(play.executor);
    let mut results = 0;
    while play.finished.recv().await.is_some() {
        results += 1;
    }
    assert_eq!(results, 4);
}

#[tokio::test(start_paused = true)]
async fn results_that_nobody_takes_leave_no_room() {
    let mut play = Playground::started(&[1, 1, 1, 1]).await;
    assert_eq!(play.executor.room().await, 4);
    // The channel is full.
    play.start(&[1, 1, 1, 1]).await;
    let room = timeout(Duration::from_mins(1), play.executor.room()).await;
    assert!(room.is_err());
    for _ in 0..8 {
        play.finished.recv().await.expect("a result");
    }
    assert_eq!(play.executor.room().await, 4);
}

#[tokio::test(start_paused = true)]
async fn fast_handlers_make_room_for_tasks_ahead_unless_one_still_runs() {
    let mut play = Playground::started(&[1]).await;
    play.executor.pace().claim_took(Duration::from_millis(2));
    assert_eq!(play.executor.room().await, 3);
    // It took 1 ms: in 2 ms, four slots begin eight tasks.
    play.finished.recv().await.expect("a result");
    yield_now().await;
    assert_eq!(play.executor.room().await, 12);
    play.start(&[10_000]).await;
    assert_eq!(play.executor.room().await, 3);
    play.finished.recv().await.expect("a result");
    yield_now().await;
    assert_eq!(play.executor.room().await, 4);
}

#[tokio::test(start_paused = true)]
async fn tasks_ahead_run_when_slots_become_free_and_never_more_at_a_time() {
    let mut play = Playground::started(&[20; 12]).await;
    let start = Instant::now();
    for results in 1..=12_usize {
        assert!(play.busy.count() <= 4);
        play.finished.recv().await.expect("a result");
        let rounds = results.div_ceil(4);
        assert_eq!(start.elapsed().as_millis(), 20 * rounds as u128);
    }
    assert!(play.returned.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn tasks_that_find_no_slot_soon_are_given_back_and_nothing_is_claimed_ahead_then() {
    let mut play = Playground::started(&[5000, 5001, 5002, 5003, 1, 2]).await;
    let pace = play.executor.pace();
    pace.handler_took(Duration::from_micros(1));
    pace.claim_took(Duration::from_millis(2));
    let start = Instant::now();
    for attempt in [1, 2] {
        let task = play.returned.recv().await.expect("a task");
        assert_eq!(task.attempt, attempt);
    }
    assert_eq!(start.elapsed(), PATIENCE);
    assert_eq!(pace.ahead(4), 0);
    assert_eq!(play.busy.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_asked_to_stop_gives_back_what_has_no_slot() {
    let mut play = Playground::started(&[10, 10, 10, 10, 1]).await;
    let start = Instant::now();
    play.shared.stop.request();
    assert_eq!(play.returned.recv().await.expect("a task").attempt, 1);
    assert_eq!(start.elapsed(), Duration::ZERO);
    play.executor
        .drain(Instant::now() + Duration::from_secs(1))
        .await;
    let mut results = 0;
    while play.finished.recv().await.is_some() {
        results += 1;
    }
    assert_eq!(results, 4);
}

#[tokio::test(start_paused = true)]
async fn draining_lets_handlers_end_until_the_deadline() {
    let mut play = Playground::started(&[100, 1000]).await;
    play.executor
        .drain(Instant::now() + Duration::from_millis(500))
        .await;
    assert!(
        play.busy.is_idle(),
        "the handler that was dropped does not count"
    );
    let first = play.finished.recv().await.expect("the first");
    assert_eq!(first.key.attempt, 100);
    assert!(play.finished.recv().await.is_none());
    let dropped = play.returned.recv().await.expect("the other");
    assert_eq!(dropped.attempt, 1000, "it goes back");
    assert!(play.returned.recv().await.is_none());
}

static ORDER: std::sync::Mutex<Vec<i32>> = std::sync::Mutex::new(Vec::new());

const NOTE: Act = |attempt| {
    Box::pin(async move {
        ORDER.lock().unwrap().push(attempt);
        tokio::time::sleep(Duration::from_micros(50)).await;
        Ok(output())
    })
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_slot_runs_tasks_in_the_order_of_the_queue() {
    tokio::spawn(async {
        let shared = shared(Some(NOTE), 1);
        let (sender, mut finished) = mpsc::channel(100);
        let (give_back, mut returned) = mpsc::unbounded_channel();
        let mut executor = Executor::new(shared, Busy::default(), sender, give_back);
        for n in 1..=20 {
            executor.start(0, claimed(n));
        }
        executor
            .drain(Instant::now() + Duration::from_secs(10))
            .await;
        let (mut done, mut back) = (0, 0);
        while finished.recv().await.is_some() {
            done += 1;
        }
        // On a busy machine, the last ones wait in vain.
        while returned.recv().await.is_some() {
            back += 1;
        }
        assert_eq!(done + back, 20);
    })
    .await
    .unwrap();
    let order = ORDER.lock().unwrap().clone();
    assert!(order.is_sorted(), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_is_claimed_ahead_than_patience_lets_begin() {
    let pace = Pace::default();
    pace.claim_took(Duration::from_millis(400));
    pace.handler_took(Duration::from_millis(20));
    for _ in 0..1000 {
        // Each round: what can't begin in 50 ms is returned.
        pace.waited_in_vain(PATIENCE);
        pace.handler_took(Duration::from_millis(50));
    }
    // Four slots of 50 ms begin four tasks within the patience.
    assert!(pace.ahead(4) <= 4, "{}", pace.ahead(4));
}

/// Returns six tenths of what may wait to be recorded.
const LARGE: Act = |_| {
    Box::pin(async {
        let text = "x".repeat(10 * 1024 * 1024);
        Ok(serde_json::value::to_raw_value(&text).expect("JSON"))
    })
};

#[tokio::test(start_paused = true)]
async fn large_outputs_that_are_not_recorded_keep_their_slots() {
    let shared = shared(Some(LARGE), 4);
    let (sender, mut finished) = mpsc::channel(100);
    let (give_back, _returned) = mpsc::unbounded_channel();
    let mut executor = Executor::new(shared, Busy::default(), sender, give_back);
    for attempt in 1..=4 {
        executor.start(0, claimed(attempt));
    }
    for waiting in (0..4).rev() {
        let recorded = finished.recv().await.expect("a result");
        let another = timeout(Duration::from_mins(1), finished.recv()).await;
        assert!(another.is_err(), "another output waits beside it");
        assert_eq!(executor.room().await, 4 - waiting);
        drop(recorded);
    }
}
