use std::sync::Mutex;

use serde_json::value::to_raw_value;
use tokio::task::yield_now;
use uuid::Uuid;

use super::*;
use crate::{
    flow::{BoxFuture, Retry},
    sql::{
        CallError,
        complete::{Completed, CompletionOutcome},
        error::tests::sqlstate,
        fail::{Aftermath, Failure},
    },
    worker::{
        recorder,
        wakeup::{Sleeper, Wakeup},
    },
};

type Answer = Result<bool, CallError>;
/// Answers the nth call, which completes these tasks, or fails one when there are none: whether it
/// made others ready.
type Script = dyn Fn(usize, &[i32]) -> Answer + Send + Sync;

#[derive(Debug, PartialEq)]
enum Call {
    /// The tasks of a batch.
    Complete(Vec<i32>),
    /// The task, and whether another attempt follows.
    Fail(i32, bool),
}

/// A database that remembers what it was asked, and answers as the test says.
struct Fake {
    calls: Mutex<Vec<(Duration, Call)>>,
    /// The messages of the failures.
    messages: Mutex<Vec<String>>,
    answer: Box<Script>,
    takes: Duration,
    started: Instant,
}

impl Fake {
    fn remember(&self, call: Call) -> usize {
        let mut calls = self.calls.lock().unwrap();
        calls.push((self.started.elapsed(), call));
        calls.len()
    }
}

impl recorder::Calls for Arc<Fake> {
    fn complete<'a>(
        &'a self,
        outputs: &'a [recorder::Output<'a>],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>> {
        let tasks: Vec<i32> = outputs.iter().map(|(key, _)| key.task_index).collect();
        Box::pin(async move {
            let nth = self.remember(Call::Complete(tasks.clone()));
            sleep(self.takes).await;
            let made_ready = (self.answer)(nth, &tasks)?;
            let completed = (0..tasks.len()).map(|item| Completed {
                item,
                outcome: CompletionOutcome::Completed,
                made_ready,
            });
            Ok(completed.collect())
        })
    }

    fn fail<'a>(
        &'a self,
        key: &'a AttemptKey,
        failure: &'a Failure,
    ) -> BoxFuture<'a, Result<Aftermath, CallError>> {
        Box::pin(async move {
            let nth = self.remember(Call::Fail(key.task_index, !failure.retry.is_permanent()));
            self.messages.lock().unwrap().push(failure.message.clone());
            sleep(self.takes).await;
            (self.answer)(nth, &[])?;
            Ok(if failure.retry.is_permanent() {
                Aftermath::Failed
            } else {
                Aftermath::Retried(Duration::from_secs(5))
            })
        })
    }
}

struct Bench {
    fake: Arc<Fake>,
    busy: Busy,
    wakeup: Wakeup,
    sender: mpsc::Sender<Finished>,
    recorder: Arc<Recorder<Arc<Fake>>>,
    running: tokio::task::JoinHandle<()>,
}

impl Bench {
    fn new(answer: impl Fn(usize, &[i32]) -> Answer + Send + Sync + 'static) -> Self {
        Self::slow(Duration::ZERO, answer)
    }

    fn slow(
        takes: Duration,
        answer: impl Fn(usize, &[i32]) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let fake = Arc::new(Fake {
            calls: Mutex::default(),
            messages: Mutex::default(),
            answer: Box::new(answer),
            takes,
            started: Instant::now(),
        });
        let (sender, receiver) = mpsc::channel(1000);
        let busy = Busy::default();
        let wakeup = Wakeup::default();
        let recorder = Recorder::new(Arc::clone(&fake), wakeup.clone());
        let completer = Completer::new(Arc::clone(&recorder), receiver, busy.clone());
        Self {
            fake,
            busy,
            wakeup,
            sender,
            recorder,
            running: tokio::spawn(completer.run()),
        }
    }

    fn send(&self, task_index: i32, result: Result<Box<RawValue>, Failure>) {
        let finished = Finished {
            reserved: Reserved::default(),
            key: AttemptKey {
                run_id: Uuid::nil(),
                step_slug: "inspect",
                task_index,
                attempt: 1,
            },
            current_until: Instant::now() + Duration::from_secs(90),
            max_attempts: 3,
            span: Span::none(),
            result,
        };
        self.sender.try_send(finished).unwrap();
    }

    fn output(&self, task_index: i32) {
        self.send(task_index, Ok(to_raw_value("output").unwrap()));
    }

    fn failure(&self, task_index: i32) {
        self.failure_that_says(task_index, "down");
    }

    fn failure_that_says(&self, task_index: i32, message: &str) {
        let failure = Failure {
            message: message.to_owned(),
            retry: Retry::Ordinary,
        };
        self.send(task_index, Err(failure));
    }

    /// Lets everything be recorded; returns the calls with their times.
    async fn end(self) -> Vec<(Duration, Call)> {
        drop(self.sender);
        self.running.await.unwrap();
        std::mem::take(&mut self.fake.calls.lock().unwrap())
    }
}

fn calls(timed: Vec<(Duration, Call)>) -> Vec<Call> {
    timed.into_iter().map(|(_, call)| call).collect()
}

fn at(milliseconds: u64, tasks: impl IntoIterator<Item = i32>) -> (Duration, Call) {
    (
        Duration::from_millis(milliseconds),
        Call::Complete(tasks.into_iter().collect()),
    )
}

#[tokio::test(start_paused = true)]
async fn a_single_output_of_an_idle_worker_does_not_wait() {
    let bench = Bench::new(|_, _| Ok(false));
    bench.output(0);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(bench.end().await, [at(0, [0])]);
}

#[tokio::test(start_paused = true)]
async fn an_output_waits_for_running_handlers_but_not_for_long() {
    let bench = Bench::new(|_, _| Ok(false));
    let running = bench.busy.enter();
    yield_now().await;
    bench.output(0);
    sleep(Duration::from_millis(4)).await;
    bench.output(1);
    sleep(Duration::from_millis(4)).await;
    bench.output(2);
    drop(running);
    assert_eq!(bench.end().await, [at(5, [0, 1]), at(8, [2])]);
}

#[tokio::test(start_paused = true)]
async fn the_last_running_handler_ends_the_wait() {
    let bench = Bench::new(|_, _| Ok(false));
    let running = bench.busy.enter();
    yield_now().await;
    bench.output(0);
    sleep(Duration::from_millis(2)).await;
    drop(running);
    bench.output(1);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(bench.end().await, [at(2, [0, 1])]);
}

#[tokio::test(start_paused = true)]
async fn what_gathers_during_a_call_is_the_next_batch() {
    let bench = Bench::slow(Duration::from_millis(50), |_, _| Ok(false));
    bench.output(0);
    sleep(Duration::from_millis(1)).await;
    let _running = bench.busy.enter();
    for task in 1..=3 {
        bench.output(task);
    }
    assert_eq!(bench.end().await, [at(0, [0]), at(50, [1, 2, 3])]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_100_items() {
    let bench = Bench::new(|_, _| Ok(false));
    for task in 0..250 {
        bench.output(task);
    }
    assert_eq!(
        bench.end().await,
        [at(0, 0..100), at(0, 100..200), at(0, 200..250)]
    );
}

#[tokio::test(start_paused = true)]
async fn three_full_batches_are_recorded_side_by_side_and_one_that_is_not_full_alone() {
    let bench = Bench::slow(Duration::from_millis(50), |_, _| Ok(false));
    for task in 0..550 {
        bench.output(task);
    }
    assert_eq!(
        bench.end().await,
        [
            at(0, 0..100),
            at(0, 100..200),
            at(0, 200..300),
            at(50, 300..400),
            at(50, 400..500),
            at(100, 500..550),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn results_that_could_not_be_recorded_hold_up_those_that_claim_more() {
    let bench = Bench::slow(Duration::from_millis(50), |_, _| Ok(false));
    for task in 0..400 {
        bench.output(task);
    }
    sleep(Duration::from_millis(10)).await;
    assert_eq!(bench.sender.max_capacity() - bench.sender.capacity(), 100);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn large_outputs_make_small_batches() {
    let bench = Bench::new(|_, _| Ok(false));
    let large = "x".repeat(3 * 1024 * 1024);
    for task in 0..4 {
        bench.send(task, Ok(to_raw_value(&large).unwrap()));
    }
    assert_eq!(bench.end().await, [at(0, 0..3), at(0, [3])]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_never_fails_an_attempt() {
    let bench = Bench::new(|nth, _| {
        if nth <= 20 {
            Err(sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()).into())
        } else {
            Ok(false)
        }
    });
    bench.output(0);
    bench.output(1);
    let timed = bench.end().await;
    let (last, _) = timed[20];
    assert!(
        last > Duration::from_mins(1) && last < Duration::from_secs(100),
        "{last:?}"
    );
    let calls = calls(timed);
    assert_eq!(calls.len(), 21);
    assert!(calls.iter().all(|call| *call == Call::Complete(vec![0, 1])));
}

#[tokio::test(start_paused = true)]
async fn a_refused_batch_is_recorded_one_by_one() {
    let bench = Bench::new(|_, tasks| {
        if tasks.contains(&1) {
            Err(sqlstate("22P05"))
        } else {
            Ok(false)
        }
    });
    for task in 0..3 {
        bench.output(task);
    }
    let calls = calls(bench.end().await);
    assert_eq!(calls[0], Call::Complete(vec![0, 1, 2]));
    for expected in [
        Call::Complete(vec![0]),
        Call::Complete(vec![1]),
        Call::Complete(vec![2]),
        // It alone, and permanently: the same output would be refused again.
        Call::Fail(1, false),
    ] {
        assert!(calls[1..].contains(&expected), "{expected:?} in {calls:?}");
    }
    assert_eq!(calls.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_that_is_gone_is_dropped() {
    let bench = Bench::new(|_, tasks| {
        if tasks.contains(&0) {
            Err(sqlstate("PF003"))
        } else {
            Ok(false)
        }
    });
    bench.output(0);
    bench.output(1);
    assert_eq!(
        calls(bench.end().await),
        [
            Call::Complete(vec![0, 1]),
            Call::Complete(vec![0]),
            Call::Complete(vec![1])
        ]
    );
}

/// The calls about this task alone.
fn alone(calls: &[Call], task: i32) -> Vec<&Call> {
    let is_about = |call: &&Call| match call {
        Call::Complete(tasks) => *tasks == [task],
        Call::Fail(failed, _) => *failed == task,
    };
    calls.iter().filter(is_about).collect()
}

#[tokio::test(start_paused = true)]
async fn an_output_that_is_refused_again_and_again_fails_its_attempt_and_no_other() {
    // A statement's time, a lock's, temporary files, space, a foreign trigger, a constraint.
    for code in ["57014", "55P03", "53400", "53100", "P0001", "23514"] {
        let bench = Bench::new(move |_, tasks| {
            if tasks.contains(&1) {
                Err(sqlstate(code))
            } else {
                Ok(false)
            }
        });
        for task in 0..3 {
            bench.output(task);
        }
        let fake = Arc::clone(&bench.fake);
        let recorder = Arc::clone(&bench.recorder);
        let timed = bench.end().await;
        assert!(timed.iter().all(|(at, _)| at.as_secs() < 2), "{timed:?}");
        let calls = calls(timed);
        for innocent in [0, 2] {
            assert_eq!(alone(&calls, innocent), [&Call::Complete(vec![innocent])]);
        }
        let refused = Call::Complete(vec![1]);
        let culprit = [&refused, &refused, &refused, &refused, &Call::Fail(1, true)];
        assert_eq!(alone(&calls, 1), culprit, "{code}");
        let messages = fake.messages.lock().unwrap();
        assert!(
            messages[0].starts_with("the step's output can't be stored: the database call failed"),
            "{messages:?}"
        );
        assert!(messages[0].contains(code), "{messages:?}");
        assert_eq!(recorder.unrecorded(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_is_kept_while_the_database_stores_no_failure_either() {
    let bench = Bench::new(|nth, _| {
        if nth <= 20 {
            Err(sqlstate("53100"))
        } else {
            Ok(false)
        }
    });
    bench.output(0);
    let calls = calls(bench.end().await);
    assert_eq!(calls.last(), Some(&Call::Complete(vec![0])));
    assert!(calls.contains(&Call::Fail(0, true)), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_output_that_takes_long_keeps_no_other_result_waiting() {
    let bench = Bench::slow(Duration::from_secs(10), |_, tasks| {
        if tasks.contains(&0) {
            Err(sqlstate("57014"))
        } else {
            Ok(false)
        }
    });
    bench.output(0);
    sleep(Duration::from_secs(25)).await;
    // The batch and the first call alone are over, the second one runs.
    bench.failure(1);
    let timed = bench.end().await;
    let failed = timed.iter().find(|(_, call)| *call == Call::Fail(1, true));
    assert_eq!(failed.expect("recorded").0, Duration::from_secs(25));
}

#[tokio::test(start_paused = true)]
async fn outputs_that_take_too_long_together_are_recorded_one_by_one() {
    let bench = Bench::new(|_, tasks| {
        if tasks.contains(&1) {
            Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()).into())
        } else {
            Ok(false)
        }
    });
    bench.output(0);
    bench.output(1);
    let calls = calls(bench.end().await);
    let both = Call::Complete(vec![0, 1]);
    assert_eq!(calls.iter().filter(|call| **call == both).count(), 2);
    assert_eq!(alone(&calls, 0), [&Call::Complete(vec![0])]);
    assert_eq!(alone(&calls, 1).last(), Some(&&Call::Fail(1, true)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_whose_text_is_refused_is_recorded_in_other_words() {
    for (refusals, words) in [
        (1, r"the API said \u{1f600}"),
        (
            2,
            "the attempt failed; the database refuses the text that says why (SQLSTATE 22P05)",
        ),
    ] {
        let bench = Bench::new(move |nth, _| {
            if nth <= refusals {
                Err(sqlstate("22P05"))
            } else {
                Ok(false)
            }
        });
        bench.failure_that_says(0, "the API said 😀");
        let fake = Arc::clone(&bench.fake);
        let timed = bench.end().await;
        assert_eq!(timed[refusals], (Duration::ZERO, Call::Fail(0, true)));
        let messages = fake.messages.lock().unwrap();
        assert_eq!(messages.last().map(String::as_str), Some(words));
        assert!(messages.iter().skip(1).all(|message| message.is_ascii()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_words_record_is_given_up_when_the_attempt_is_no_longer_current() {
    let bench = Bench::new(|_, _| Err(sqlstate("42501")));
    bench.output(0);
    let timed = bench.end().await;
    let (last, _) = timed[timed.len() - 1];
    assert!(
        last >= Duration::from_secs(90) && last < Duration::from_secs(97),
        "{last:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn results_that_a_closed_pool_loses_are_counted() {
    let bench = Bench::new(|_, _| Err(CallError::Database(sqlx::Error::PoolClosed)));
    bench.output(0);
    bench.output(1);
    bench.failure(2);
    let recorder = Arc::clone(&bench.recorder);
    bench.end().await;
    assert_eq!(recorder.unrecorded(), 3);
}

#[tokio::test(start_paused = true)]
async fn failures_are_recorded_one_by_one_beside_the_batches() {
    let bench = Bench::slow(Duration::from_millis(50), |_, _| Ok(false));
    bench.failure(0);
    bench.output(1);
    bench.failure(2);
    bench.output(3);
    let mut timed = bench.end().await;
    timed.sort_by_key(|(time, call)| (*time, matches!(call, Call::Fail(..))));
    let fail = |time, task| (Duration::from_millis(time), Call::Fail(task, true));
    assert_eq!(timed, [at(0, [1, 3]), fail(0, 0), fail(50, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_recorded_although_connections_are_lost() {
    let bench = Bench::new(|nth, _| {
        if nth <= 3 {
            Err(sqlstate("57P01"))
        } else {
            Ok(false)
        }
    });
    bench.failure(0);
    assert_eq!(calls(bench.end().await), [const { Call::Fail(0, true) }; 4]);
}

#[tokio::test(start_paused = true)]
async fn ready_tasks_wake_the_claimer() {
    for made_ready in [false, true] {
        let bench = Bench::new(move |_, _| Ok(made_ready));
        let wakeup = bench.wakeup.clone();
        bench.output(0);
        bench.end().await;
        let start = Instant::now();
        Sleeper::new(&wakeup, Duration::from_secs(10)).sleep().await;
        assert_eq!(start.elapsed() == Duration::ZERO, made_ready);
    }
}
