//! A million ended tasks and archived messages slow nothing down: what each function reads stays
//! near what it works on, whatever the planner knew, and whenever it planned.

mod history;
mod indexes;
mod reads;
mod workers;

use serde_json::json;
use sqlx::{Connection, PgConnection, PgTransaction};
use uuid::Uuid;

use crate::sql::start_flows::start_many;
use crate::support::TestDb;
use crate::support::flows::{Claimed, claim, complete, fail, start, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::show_all;
use crate::support::runs::{Item, age, complete_batch, fail_for_good, requeue};
use reads::Reads;

/// A session that works, and what was wrong with what it read.
struct Session<'a> {
    db: &'a TestDb,
    connection: PgConnection,
    worker: Uuid,
    /// The knowledge of the planner: shown with each fault.
    knows: &'static str,
    faults: Vec<String>,
}

impl<'a> Session<'a> {
    async fn new(db: &'a TestDb, knows: &'static str) -> Self {
        Self {
            db,
            connection: PgConnection::connect(&db.url).await.expect("a session"),
            worker: live_worker(db).await,
            knows,
            faults: Vec::new(),
        }
    }

    /// Does something in a transaction, that may read so many rows of each table and entries of
    /// each index; returns what it read, too.
    async fn reading<T>(
        &mut self,
        what: &str,
        at_most: i64,
        work: impl AsyncFnOnce(&mut PgTransaction<'_>) -> T,
    ) -> (T, Reads) {
        let mut transaction = self.connection.begin().await.expect("a transaction");
        let before = Reads::so_far(&mut transaction).await;
        let done = work(&mut transaction).await;
        let reads = Reads::so_far(&mut transaction).await.since(&before);
        transaction.commit().await.expect("the work is kept");
        let faults = reads.sequential().into_iter().chain(reads.above(at_most));
        let knows = self.knows;
        self.faults
            .extend(faults.map(|fault| format!("{knows}: {what}: {fault}")));
        (done, reads)
    }

    fn expect_index(&mut self, what: &str, reads: &Reads, index: &str) {
        if !reads.used(index) {
            let knows = self.knows;
            self.faults
                .push(format!("{knows}: {what} does not use {index}:\n{reads}"));
        }
    }

    async fn claim(&mut self, max_tasks: i32, at_most: i64) -> Vec<Claimed> {
        let worker = self.worker;
        let what = format!("claiming {max_tasks}");
        let claim = async |tx: &mut PgTransaction<'_>| claim(&mut **tx, worker, max_tasks).await;
        self.reading(&what, at_most, claim).await.0
    }

    async fn explain(&mut self, run_id: Uuid, step: &str, expected: &str) {
        self.explain_reading(200, run_id, step, expected).await;
    }

    async fn explain_reading(&mut self, at_most: i64, run_id: Uuid, step: &str, expected: &str) {
        let what = format!("explaining {step}");
        let explain = async |tx: &mut PgTransaction<'_>| -> String {
            sqlx::query_scalar("select pgflow.explain_step($1, $2) ->> 'reason'")
                .bind(run_id)
                .bind(step)
                .fetch_one(&mut **tx)
                .await
                .expect("the step can be explained")
        };
        let (reason, _) = self.reading(&what, at_most, explain).await;
        assert_eq!(reason, expected, "{step}");
    }

    /// Everything that happens to a run of fifty elements, with a longer one behind it; both have
    /// ended afterwards.
    async fn live_work(&mut self) {
        // Rows that are dead are no backlog, and would be read as one.
        history::run(&self.db.pool, "vacuum pgmq.q_f").await;
        let (run_id, _) = self
            .reading("starting a run of 52 tasks", 100, async |tx| {
                start(&mut **tx, "f", json!(vec![1; 50])).await
            })
            .await;
        let failing = start(&mut self.connection, "f", json!(vec![1; 500])).await;
        self.explain(run_id, "each", "waiting_for_worker").await;

        self.look_at_claims().await;
        let tasks = self.claim(10, 60).await;
        assert!(tasks.iter().all(|task| task.run_id == run_id));
        self.explain(run_id, "each", "running").await;
        self.explain(run_id, "last", "waiting_for_dependencies")
            .await;
        self.operations(&tasks).await;
        self.reports(&tasks).await;
        self.recovery(run_id).await;
        self.last_tasks(run_id).await;
        self.failing_run(failing).await;
        self.many_starts().await;
    }

    /// Reports on ten claimed tasks of the map and the fragile step; all of the map are waiting or
    /// completed afterwards.
    async fn reports(&mut self, tasks: &[Claimed]) {
        self.reading("completing one", 30, async |tx| {
            complete(&mut **tx, &tasks[0], json!(1)).await
        })
        .await;
        let items: Vec<Item> = tasks[1..6].iter().map(|t| Item::of(t, json!(1))).collect();
        self.reading("completing five", 60, async |tx| {
            complete_batch(&mut **tx, &items).await
        })
        .await;
        let (status, _) = self
            .reading("failing with a retry", 20, async |tx| {
                fail(&mut **tx, &tasks[6], "again").await
            })
            .await;
        assert_eq!(status, "queued");
        let worker = self.worker;
        let (released, _) = self
            .reading("giving three back", 60, async |tx| {
                let of = &tasks[7..10];
                sqlx::query_scalar::<_, i32>("select pgflow.release_tasks($1, $2, $3, $4, $5)")
                    .bind(worker)
                    .bind(of.iter().map(|t| t.run_id).collect::<Vec<_>>())
                    .bind(of.iter().map(|t| t.step_slug.as_str()).collect::<Vec<_>>())
                    .bind(of.iter().map(|t| t.task_index).collect::<Vec<_>>())
                    .bind(of.iter().map(|t| t.attempt).collect::<Vec<_>>())
                    .fetch_one(&mut **tx)
                    .await
                    .expect("tasks can be given back")
            })
            .await;
        assert_eq!(released, 3);
    }

    /// Lets recovery look at all claims that there are, so that those whose tasks have ended go:
    /// some tests take longer than others.
    async fn look_at_claims(&mut self) {
        history::run(
            &self.db.pool,
            "update pgflow.claims set look_at = look_at - interval '1 minute'",
        )
        .await;
        assert_eq!(requeue(&mut self.connection).await, 0);
        history::run(&self.db.pool, "vacuum pgflow.claims").await;
    }

    /// Twenty claims of tasks that have all ended go, for a look-up of each task.
    async fn ended_claims(&mut self) {
        sqlx::query(
            "insert into pgflow.claims (worker_id, claimed_at, look_at, run_ids, step_slugs, task_indexes)
             select $1, now() - interval '1 minute', now() - interval '1 minute', array_agg(t.run_id), array_agg(t.step_slug), array_agg(t.task_index)
             from (
                 select k.*, row_number() over () % 20 as part
                 from (select * from pgflow.step_tasks where status = 'completed' limit 400) k
             ) t
             group by t.part",
        )
        .bind(self.worker)
        .execute(&self.db.pool)
        .await
        .expect("claims can be inserted");
        let (requeued, reads) = self
            .reading("looking at what has ended", 450, async |tx| {
                requeue(&mut **tx).await
            })
            .await;
        assert_eq!(requeued, 0);
        self.expect_index("looking at what has ended", &reads, "step_tasks_pkey");
    }

    /// Three of a run's tasks stall, and are recovered.
    async fn recovery(&mut self, run_id: Uuid) {
        self.look_at_claims().await;
        self.ended_claims().await;
        let tasks = self.claim(3, 60).await;
        assert!(tasks.iter().all(|task| task.run_id == run_id));
        age(&self.db.pool, run_id, "each", 3600).await;
        self.explain(run_id, "each", "stalled").await;
        let (requeued, reads) = self
            .reading("recovering", 60, async |tx| requeue(&mut **tx).await)
            .await;
        assert_eq!(requeued, 3);
        self.expect_index("recovering", &reads, "idx_claims_look_at");
        self.expect_index("recovering", &reads, "step_tasks_pkey");
        let (requeued, _) = self
            .reading("finding nothing stalled", 10, async |tx| {
                requeue(&mut **tx).await
            })
            .await;
        assert_eq!(requeued, 0);
    }

    /// The rest of a run: the map's last task, then what that makes ready.
    async fn last_tasks(&mut self, run_id: Uuid) {
        show_all(&self.db.pool, "f").await;
        // Where each message was before is no backlog either.
        history::run(&self.db.pool, "vacuum pgmq.q_f").await;
        let mut tasks = self.claim(51 - 6, 300).await;
        assert!(tasks.iter().all(|task| task.run_id == run_id));
        let fragile = tasks.iter().position(|task| task.step_slug == "fragile");
        let fragile = tasks.swap_remove(fragile.expect("the fragile step waits"));
        let last = tasks.pop().expect("tasks of the map wait");
        let items: Vec<Item> = tasks.iter().map(|t| Item::of(t, json!(1))).collect();
        self.reading("completing the map but one", 300, async |tx| {
            complete_batch(&mut **tx, &items).await
        })
        .await;
        self.reading("completing the map's last task", 150, async |tx| {
            complete(&mut **tx, &last, json!(1)).await
        })
        .await;
        self.explain(run_id, "each", "completed").await;
        let (status, _) = self
            .reading("exhausting a task whose step is skipped", 150, async |tx| {
                fail_for_good(&mut **tx, &fragile, "no").await
            })
            .await;
        assert_eq!(status, "failed");
        self.explain(run_id, "after", "skipped").await;
        // The one after the map stands behind the other runs' tasks.
        sqlx::query("update pgmq.q_f set vt = now() + interval '1 hour' where message ->> 'run_id' <> $1::text")
            .bind(run_id)
            .execute(&self.db.pool)
            .await
            .expect("messages can be hidden");
        let worker = self.worker;
        let tasks = claim(&mut self.connection, worker, 10).await;
        assert_eq!(tasks.len(), 1);
        self.reading("completing a run", 60, async |tx| {
            complete(&mut **tx, &tasks[0], json!(1)).await
        })
        .await;
        let status: String = sqlx::query_scalar("select status from pgflow.runs where run_id = $1")
            .bind(run_id)
            .fetch_one(&mut self.connection)
            .await
            .expect("the run is there");
        assert_eq!(status, "completed");
        show_all(&self.db.pool, "f").await;
    }

    /// A run that fails with many waiting tasks.
    async fn failing_run(&mut self, run_id: Uuid) {
        // What became of its messages until now is no backlog.
        history::run(&self.db.pool, "vacuum pgmq.q_f").await;
        let task = self.claim(1, 30).await.remove(0);
        assert_eq!(task.run_id, run_id);
        let (status, _) = self
            .reading("failing a run of 500 tasks", 1600, async |tx| {
                fail_for_good(&mut **tx, &task, "no").await
            })
            .await;
        assert_eq!(status, "failed");
        // It counts the step's tasks; each has a row that is dead by now.
        self.explain_reading(2000, run_id, "each", "failed").await;
        self.explain(run_id, "last", "run_ended").await;
    }

    /// Runs that are started together, and undone: they would stand before those of the next time.
    async fn many_starts(&mut self) {
        let mut inputs = vec![json!([1, 2, 3]); 10];
        inputs.resize(20, json!([]));
        let start = async |tx: &mut PgTransaction<'_>| {
            let mut undone = tx.begin().await.expect("a savepoint");
            start_many(&mut *undone, "f", inputs).await;
            undone.rollback().await.expect("undone");
        };
        self.reading("starting 20 runs of 70 tasks", 20 * 20, start)
            .await;
    }

    /// Removes a batch of the oldest runs.
    async fn prune(&mut self) {
        let (removed, reads) = self
            .reading("removing 20 runs", 3 * 20 * 50, async |tx| {
                sqlx::query_scalar::<_, i32>(
                    "select pgflow.prune_data_older_than(interval '1 year', 20)",
                )
                .fetch_one(&mut **tx)
                .await
                .expect("old runs can be removed")
            })
            .await;
        assert_eq!(removed, 20);
        self.expect_index("removing", &reads, "idx_runs_ended_at");
    }
}

/// A worker that misses no heartbeat, however long the test takes.
async fn live_worker(db: &TestDb) -> Uuid {
    let worker = worker(&db.pool, "f").await;
    keep_alive(db).await;
    worker
}

async fn keep_alive(db: &TestDb) {
    history::run(
        &db.pool,
        "update pgflow.workers set last_heartbeat_at = now() + interval '1 hour' where stopped_at is null",
    )
    .await;
}

/// As a database is in its first minutes, with sessions that last for days: what looks like the
/// cheapest way through tables of a page or two must not lead through all of them later. Statistics
/// that are taken meanwhile would end such a plan; nobody says when that is.
#[tokio::test]
async fn plans_that_were_made_for_little_are_good_for_much() {
    let db = history::empty().await;
    let mut first = Session::new(&db, "first").await;
    for _ in 0..3 {
        first.live_work().await;
    }
    history::run(&db.pool, "vacuum analyze").await;
    let mut session = Session::new(&db, "planned with statistics of little").await;
    for _ in 0..6 {
        session.live_work().await;
    }
    session.faults.clear();
    history::insert_runs(&db.pool, 400).await;
    session.live_work().await;
    assert!(session.faults.is_empty(), "{}", session.faults.join("\n"));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn every_function_reads_what_it_works_on_and_not_the_past() {
    let db = history::empty().await;
    // Plans are made by the sixth call at the latest, and kept.
    let mut old = Session::new(&db, "planned when there was nothing").await;
    for _ in 0..6 {
        old.live_work().await;
    }
    old.faults.clear();
    history::insert(&db.pool).await;

    old.live_work().await;
    old.prune().await;
    let mut new = Session::new(&db, "planned with statistics of nothing").await;
    new.live_work().await;
    new.prune().await;
    history::run(&db.pool, "analyze").await;
    let mut informed = Session::new(&db, "planned with statistics").await;
    informed.live_work().await;
    informed.prune().await;

    let faults: Vec<String> = [old.faults, new.faults, informed.faults].concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let left: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.step_tasks where message_id <= 1000000 and status = 'completed'",
    )
    .fetch_one(&db.pool)
    .await
    .expect("tasks can be counted");
    assert_eq!(left, i64::from(history::RUNS - 60) * 50);
    assert_invariants(&db.pool).await;
}
