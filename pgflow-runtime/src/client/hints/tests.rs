use std::{sync::mpsc, thread};

use sqlx::postgres::PgPoolOptions;

use super::{
    waiters::{Batch, Sights},
    *,
};

fn pool() -> PgPool {
    PgPoolOptions::new()
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .expect("a valid URL")
}

fn is_hinted(waiter: &Waiter) -> bool {
    matches!(
        lock(&waiter.hints.waiters).take_news(waiter.id),
        Some(News::Look)
    )
}

fn waiter_of(pool: &PgPool, run_id: Uuid, hears: Hears) -> Waiter {
    Waiter::join(&pool.clone(), run_id, hears, Pace::default(), true)
}

fn waiter(pool: &PgPool, run_id: Uuid) -> Waiter {
    waiter_of(pool, run_id, Hears::TheEnd)
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
}

#[tokio::test]
async fn only_those_who_hear_everything_are_woken_before_the_end() {
    let pool = pool();
    let run_id = Uuid::now_v7();
    let waiters = [Hears::TheEnd, Hears::Everything].map(|hears| waiter_of(&pool, run_id, hears));
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
    assert!(hints.wanted.borrow().is_waited);
    drop(second);
    assert_eq!(*hints.wanted.borrow(), Wanted::default());
    assert_eq!(lock(&hints.waiters).bells().len(), 0);
}

/// Waiters that are asleep since `now`, and have seen their runs.
struct Sleepers {
    waiters: Waiters,
    run_ids: Vec<Uuid>,
    now: Instant,
}

impl Sleepers {
    fn new(count: usize) -> Self {
        let now = Instant::now();
        let mut waiters = Waiters::new(now);
        let run_ids: Vec<Uuid> = (0..count).map(|_| Uuid::now_v7()).collect();
        for &run_id in &run_ids {
            let entry = Entry::new(run_id, Hears::TheEnd, Pace::default(), true, Arc::default());
            let id = waiters.add(entry);
            waiters.saw(id, Sight::STARTED);
            waiters.fall_asleep(id, now);
        }
        Self {
            waiters,
            run_ids,
            now,
        }
    }

    fn take_due(&mut self) -> Batch {
        self.now = self.waiters.next_due().expect("a look is due");
        self.waiters.take_due(self.now)
    }

    fn tell(&mut self, batch: &Batch, ended: &[Uuid]) -> usize {
        let sight = |&run_id: &Uuid| {
            let is_ended = ended.contains(&run_id);
            (
                run_id,
                if is_ended {
                    Sight::ENDED
                } else {
                    Sight::STARTED
                },
            )
        };
        let sights = Sights {
            ends: self.run_ids.iter().map(sight).collect(),
            ..Sights::default()
        };
        self.waiters.tell(batch, &sights, self.now).len()
    }

    /// The pause until the next look, after one that found nothing.
    fn next_pause(&mut self, ended: &[Uuid]) -> Duration {
        let batch = self.take_due();
        let before = self.now;
        assert_eq!(self.tell(&batch, ended), 0);
        self.waiters.next_due().expect("another look") - before
    }
}

#[tokio::test]
async fn all_waits_of_a_pace_are_looked_at_together() {
    let mut sleepers = Sleepers::new(1000);
    for _ in 0..10 {
        let batch = sleepers.take_due();
        assert_eq!(batch.ends.len(), 1000);
        sleepers.tell(&batch, &[]);
    }
}

#[tokio::test]
async fn only_those_whose_run_has_changed_are_woken_by_a_look() {
    let mut sleepers = Sleepers::new(10);
    let batch = sleepers.take_due();
    let ended = sleepers.run_ids[3];
    assert_eq!(sleepers.tell(&batch, &[ended]), 1);
}

#[tokio::test]
async fn looks_are_rare_while_notifications_come_and_frequent_again_once_they_do_not() {
    let mut sleepers = Sleepers::new(3);
    let rare = Duration::from_secs(4);
    for _ in 0..8 {
        assert!(sleepers.next_pause(&[]) < rare);
    }
    let told = Event {
        run_id: Uuid::now_v7(),
        is_end: true,
    };
    sleepers.waiters.announce(told);
    sleepers.next_pause(&[]);
    assert!(sleepers.next_pause(&[]) > rare);
    // A look finds an end that nothing tells of.
    let batch = sleepers.take_due();
    let ended = sleepers.run_ids[0];
    assert_eq!(sleepers.tell(&batch, &[ended]), 1);
    let batch = sleepers.take_due();
    sleepers.tell(&batch, &[ended]);
    assert!(sleepers.next_pause(&[ended]) < rare);
}

#[tokio::test]
async fn an_end_that_is_told_after_a_look_found_it_is_no_reason_for_distrust() {
    let mut sleepers = Sleepers::new(3);
    let run_id = sleepers.run_ids[0];
    let told = Event {
        run_id,
        is_end: true,
    };
    sleepers.waiters.announce(told);
    let id_of_another = Event {
        run_id: Uuid::now_v7(),
        is_end: true,
    };
    sleepers.waiters.announce(id_of_another);
    for _ in 0..2 {
        let batch = sleepers.take_due();
        sleepers.tell(&batch, &[run_id]);
        sleepers.waiters.announce(told);
    }
    let mut last = sleepers.now;
    for _ in 0..2 {
        let batch = sleepers.take_due();
        last = sleepers.now;
        sleepers.tell(&batch, &[run_id]);
    }
    let next = sleepers.waiters.next_due().expect("another look");
    assert!(next - last > Duration::from_secs(4));
}

#[tokio::test]
async fn a_lost_connection_has_all_looked_at_together() {
    let mut sleepers = Sleepers::new(100);
    let told = Event {
        run_id: Uuid::now_v7(),
        is_end: true,
    };
    sleepers.waiters.announce(told);
    let batch = sleepers.take_due();
    sleepers.tell(&batch, &[]);
    let now = sleepers.now;
    sleepers.waiters.line_changed(now);
    assert_eq!(sleepers.waiters.take_due(now).ends.len(), 100);
}

#[tokio::test]
async fn a_look_that_is_dropped_unfinished_is_made_again() {
    let mut sleepers = Sleepers::new(5);
    drop(sleepers.take_due());
    assert_eq!(sleepers.waiters.next_due(), None);
    let now = sleepers.now;
    sleepers.waiters.look_at_unscheduled(now);
    assert_eq!(sleepers.waiters.take_due(now).ends.len(), 5);
}

/// Runs `work` on a thread, and fails when it takes too long.
fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    is_done
        .recv_timeout(Duration::from_mins(1))
        .expect("a runtime did not shut down under its waits");
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .expect("a runtime")
}

#[test]
fn a_runtime_shuts_down_under_hundreds_of_waits() {
    within_a_minute(|| {
        for round in 0..60 {
            let runtime = runtime(1 + round % 4);
            let pool = runtime.block_on(async { pool() });
            for number in 0..200 {
                let pool = pool.clone();
                runtime.spawn(async move {
                    let hears = [Hears::TheEnd, Hears::Everything][number % 2];
                    let waiter = waiter_of(&pool, Uuid::now_v7(), hears);
                    loop {
                        waiter.sleep().await;
                    }
                });
            }
            if round % 3 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
            drop(runtime);
        }
    });
}

#[test]
fn a_runtime_shuts_down_under_hundreds_of_waits_of_one_task() {
    within_a_minute(|| {
        for round in 0..60 {
            let runtime = runtime(2);
            let pool = runtime.block_on(async { pool() });
            runtime.spawn(async move {
                let waiters: Vec<_> = (0..400).map(|_| waiter(&pool, Uuid::now_v7())).collect();
                futures_util::future::join_all(waiters.iter().map(Waiter::sleep)).await;
            });
            if round % 2 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
            drop(runtime);
        }
    });
}

#[test]
fn another_runtime_takes_over_when_one_shuts_down_or_stands_still() {
    within_a_minute(|| {
        let [first, second] = [runtime(1), runtime(1)];
        let pool = second.block_on(async { pool() });
        let run_id = Uuid::now_v7();
        let standing = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        // It starts the task, and then runs nothing any more.
        let waiter_of_standing = standing.block_on(async {
            let waiter = waiter(&pool, run_id);
            let _ = timeout(Duration::from_millis(1), waiter.sleep()).await;
            waiter
        });
        let term = || lock(&waiter_of_standing.hints.waiters).attendant.term();
        assert_eq!(term(), 1);
        for (number, runtime) in [first, second].into_iter().enumerate() {
            let pool = pool.clone();
            runtime.spawn(async move { waiter(&pool, run_id).sleep().await });
            while term() < number as u64 + 2 {
                thread::sleep(Duration::from_millis(20));
            }
            runtime.shutdown_background();
        }
    });
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
