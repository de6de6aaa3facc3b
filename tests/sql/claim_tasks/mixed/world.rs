//! A database in which any message can be put at any place of a queue, and what a claim must make
//! of each.

use serde_json::{Value, json};
use sqlx::pool::PoolConnection;
use sqlx::types::chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection, Postgres};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    FUNCTION, claim, complete, define, define_with_step_queues, start, step, step_worker, worker,
};

/// The class of a message for the worker that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Queued,
    Started,
    /// Its task has ended; step and run continue.
    TaskEnded,
    StepEnded,
    RunEnded,
    /// Its task is in somebody else's hands.
    Locked,
}

pub(super) const CLASSES: [Class; 6] = [
    Class::Queued,
    Class::Started,
    Class::TaskEnded,
    Class::StepEnded,
    Class::RunEnded,
    Class::Locked,
];

/// The reason why a worker may not run the task of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NoTask,
    OtherFlow,
    /// In the queue of another step.
    OtherStep,
    /// Its step was given another queue.
    OtherRoute,
    /// Its body names another task in this key.
    Body(&'static str),
}

pub(super) const BODY_KEYS: [&str; 4] = ["flow_slug", "run_id", "step_slug", "task_index"];

/// The id of the message whose task is locked: all others that a test places have ids around it.
pub(super) const LOCKED: i64 = 500;
const TIMEOUT: i64 = 20;
const SECOND: i64 = 1_000_000;

/// Puts the message of a task to a place of a queue, visible now, with a read count that its id
/// tells.
const PLACE: &str = "
    create function place(queue text, id bigint, task_run uuid, step text, index int, body jsonb) returns void language plpgsql as $$
    declare
        v_task pgflow.step_tasks;
    begin
        select * into v_task from pgflow.step_tasks t where t.run_id = task_run and t.step_slug = step and t.task_index = index;
        if found then
            execute format('delete from pgmq.%I where msg_id = $1', 'q_' || v_task.queue_name) using v_task.message_id;
            execute format('delete from pgmq.%I where msg_id = $1', 'a_' || v_task.queue_name) using v_task.message_id;
            update pgflow.step_tasks t set queue_name = queue, message_id = id
            where t.run_id = task_run and t.step_slug = step and t.task_index = index;
        end if;
        execute format('insert into pgmq.%I (msg_id, read_ct, enqueued_at, vt, message) overriding system value
            values ($1, $1 %% 7, now(), now(), $2)', 'q_' || queue) using id, coalesce(body, jsonb_build_object(
            'flow_slug', v_task.flow_slug, 'run_id', v_task.run_id, 'step_slug', v_task.step_slug, 'task_index', v_task.task_index));
    end
    $$";

/// A flow whose root `a` is a map, and whose other root `b` waits; a run for each class, and others
/// for faults.
pub(super) struct World {
    pub(super) db: TestDb,
    pub(super) worker: Uuid,
    pub(super) queue: &'static str,
    /// One for each class.
    runs: Vec<Uuid>,
    spare: Vec<Uuid>,
    foreign: Uuid,
}

impl World {
    pub(super) async fn new(has_step_queues: bool) -> Self {
        let db = TestDb::new().await;
        let pool = &db.pool;
        let timeout = TIMEOUT.try_into().expect("small");
        let steps = [
            step("a").map().timeout(timeout),
            step("b").start_delay(36_000),
        ];
        define(pool, "other", &[step("a")]).await;
        let foreign = start(pool, "other", json!({})).await;
        let queue = if has_step_queues {
            define_with_step_queues(pool, "orders", &steps).await;
            "orders__a"
        } else {
            define(pool, "orders", &steps).await;
            "orders"
        };
        let register = async || {
            if has_step_queues {
                step_worker(pool, "orders", "a").await
            } else {
                worker(pool, "orders").await
            }
        };
        let (earlier, worker) = (register().await, register().await);
        let run = async |elements| start(pool, "orders", elements).await;
        // The second element keeps step and run alive.
        let (started, ended) = (run(json!([0])).await, run(json!([0, 1])).await);
        let tasks = claim(pool, earlier, 2).await;
        assert_eq!((tasks[0].run_id, tasks[1].run_id), (started, ended));
        complete(pool, &tasks[1], json!(0)).await;
        let mut runs = Vec::new();
        for class in CLASSES {
            runs.push(match class {
                Class::Started => started,
                Class::TaskEnded => ended,
                _ => run(json!([0])).await,
            });
        }
        let mut spare = Vec::new();
        for _ in 0..BODY_KEYS.len() + 2 {
            spare.push(run(json!([0])).await);
        }
        sqlx::raw_sql(AssertSqlSafe(format!(
            "{PLACE}; update pgmq.q_{queue} set vt = now() + interval '1 day';
             select pgflow.track_worker_function('bystander')"
        )))
        .execute(pool)
        .await
        .expect("the world can be made");
        let world = Self {
            db,
            worker,
            queue,
            runs,
            spare,
            foreign,
        };
        let mut connection = world.connection().await;
        world.put(&mut connection, Class::Locked, LOCKED).await;
        world
    }

    pub(super) async fn connection(&self) -> PoolConnection<Postgres> {
        let connection = self.db.pool.acquire().await;
        connection.expect("a connection")
    }

    /// Registers another worker of the same queue, of another function.
    pub(super) async fn register(&self, function: &str) -> Uuid {
        let id = Uuid::now_v7();
        for query in [
            "select pgflow.track_worker_function($2) from (select $1) x",
            "select pgflow.register_worker($1, $2, w.flow_slug, w.step_slug, w.queue_name, '{}') from pgflow.workers w limit 1",
        ] {
            let done = sqlx::query(query).bind(id).bind(function);
            let done = done.execute(&self.db.pool).await;
            done.expect("the worker can be registered");
        }
        id
    }

    pub(super) fn run(&self, class: Class) -> Uuid {
        self.runs[class as usize]
    }

    /// The faults that can occur in this world.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let by_queue = if self.queue == "orders" {
            Fault::OtherRoute
        } else {
            Fault::OtherStep
        };
        let mut faults = vec![Fault::NoTask, Fault::OtherFlow, by_queue];
        faults.extend(BODY_KEYS.map(Fault::Body));
        faults
    }

    /// Gives the class's message an id, and makes it what it is to be.
    pub(super) async fn put(&self, db: &mut PgConnection, class: Class, id: i64) {
        let run = self.run(class);
        place(&mut *db, self.queue, id, (run, "a"), None).await;
        let change = match class {
            // However long the test has taken so far.
            Class::Started => {
                "update pgflow.step_tasks set started_at = now() where run_id = $1 and status = 'started'"
            }
            Class::StepEnded => {
                "update pgflow.step_states set status = 'failed', failed_at = clock_timestamp() where run_id = $1 and step_slug = 'a'"
            }
            Class::RunEnded => {
                "update pgflow.runs set status = 'failed', failed_at = clock_timestamp() where run_id = $1"
            }
            _ => return,
        };
        sqlx::query(change)
            .bind(run)
            .execute(db)
            .await
            .expect("rows can be changed");
    }

    /// Plants a message that this worker can't do; returns the reason that is to be given.
    pub(super) async fn plant(&self, db: &mut PgConnection, fault: Fault, id: i64) -> String {
        match fault {
            Fault::NoTask => {
                let body = json!({"flow_slug": "orders", "step_slug": "a", "task_index": 0});
                place(db, self.queue, id, (Uuid::nil(), "a"), Some(body)).await;
                "no task has this message".to_owned()
            }
            Fault::OtherFlow => {
                place(db, self.queue, id, (self.foreign, "a"), None).await;
                "its task belongs to flow \"other\", this worker serves flow \"orders\"".to_owned()
            }
            Fault::OtherStep => {
                place(db, self.queue, id, (self.spare[4], "b"), None).await;
                "its task belongs to step \"b\", this worker serves step \"a\"".to_owned()
            }
            Fault::OtherRoute => {
                let route = "update pgflow.steps set queue_name = 'elsewhere' where flow_slug = 'orders' and step_slug = 'b'";
                let routed = sqlx::query(route).execute(&mut *db).await;
                routed.expect("the step can be routed");
                place(db, self.queue, id, (self.spare[5], "b"), None).await;
                "step \"b\" is routed to queue \"elsewhere\"".to_owned()
            }
            Fault::Body(key) => {
                let run = self.spare[body_key(key)];
                let mut body = json!({"flow_slug": "orders", "run_id": run, "step_slug": "a", "task_index": 0});
                body[key] = match key {
                    "flow_slug" => json!("other"),
                    "run_id" => json!(self.run(Class::Queued)),
                    "step_slug" => json!("b"),
                    _ => json!(1),
                };
                place(db, self.queue, id, (run, "a"), Some(body)).await;
                "its body names another task than the one that it was sent for".to_owned()
            }
        }
    }

    /// Puts right what was planted: the task gets a good message in its own queue, with this id; a
    /// message without a task goes.
    pub(super) async fn mend(&self, db: &mut PgConnection, fault: Fault, planted: i64, id: i64) {
        let (queue, task) = match fault {
            Fault::NoTask => {
                let archived = sqlx::query("select pgmq.archive($1, $2)")
                    .bind(self.queue)
                    .bind(planted)
                    .execute(db)
                    .await;
                archived.expect("the message can be archived");
                return;
            }
            Fault::OtherFlow => ("other", (self.foreign, "a")),
            Fault::OtherStep => ("orders__b", (self.spare[4], "b")),
            Fault::OtherRoute => (self.queue, (self.spare[5], "b")),
            Fault::Body(key) => (self.queue, (self.spare[body_key(key)], "a")),
        };
        let route = "update pgflow.steps set queue_name = $1 where queue_name = 'elsewhere'";
        let routed = sqlx::query(route).bind(self.queue).execute(&mut *db).await;
        routed.expect("the step can be routed back");
        place(db, queue, id, task, None).await;
    }

    /// Everything that a claim may change.
    pub(super) async fn rows(&self, db: &mut PgConnection) -> Value {
        let queue = self.queue;
        let query = format!(
            "select jsonb_build_object(
                'runs', (select jsonb_object_agg(r.run_id, r) from pgflow.runs r),
                'states', (select jsonb_object_agg(s.run_id || ' ' || s.step_slug, s) from pgflow.step_states s),
                'tasks', (select jsonb_object_agg(t.queue_name || ' ' || t.message_id, t) from pgflow.step_tasks t),
                'workers', (select jsonb_object_agg(w.worker_id, w) from pgflow.workers w),
                'functions', (select jsonb_object_agg(f.function_name, f) from pgflow.worker_functions f),
                'live', (select coalesce(jsonb_object_agg(q.msg_id, q), '{{}}') from pgmq.q_{queue} q),
                'archived', (select coalesce(jsonb_object_agg(a.msg_id, a), '{{}}') from pgmq.a_{queue} a))"
        );
        sqlx::query_scalar(AssertSqlSafe(query))
            .fetch_one(db)
            .await
            .expect("the rows can be read")
    }

    /// The rows of a claim of all that is visible.
    pub(super) async fn claim(&self, db: &mut PgConnection, worker: Uuid) -> Vec<Value> {
        sqlx::query_scalar("select to_jsonb(c) from pgflow.claim_tasks($1, 100) c")
            .bind(worker)
            .fetch_all(db)
            .await
            .expect("a claim that is not refused by an error")
    }

    /// Returns the required rows after a claim of messages of these classes. Values that depend on
    /// the clock are copied from the actual rows after a check.
    pub(super) fn after_claim(&self, before: &Value, after: &Value, ids: &[(Class, i64)]) -> Value {
        let mut rows = before.clone();
        for (class, id) in ids {
            let (id, task) = (id.to_string(), format!("{} {id}", self.queue));
            let visible_at = &after["live"][&id]["vt"];
            match class {
                Class::Queued => {
                    let started_at = &after["tasks"][&task]["started_at"];
                    rows["tasks"][&task]["status"] = json!("started");
                    rows["tasks"][&task]["attempts_count"] = json!(1);
                    rows["tasks"][&task]["last_worker_id"] = json!(self.worker);
                    rows["tasks"][&task]["started_at"] = started_at.clone();
                    let hidden = micros(visible_at) - micros(started_at);
                    assert!((TIMEOUT + 2) * SECOND <= hidden, "{hidden}");
                    assert!(hidden < (TIMEOUT + 30) * SECOND, "{hidden}");
                }
                Class::Started => {
                    let started_at = &before["tasks"][&task]["started_at"];
                    let hidden = micros(visible_at) - micros(started_at);
                    assert_eq!(hidden, (TIMEOUT + 30) * SECOND);
                }
                Class::TaskEnded | Class::StepEnded | Class::RunEnded => {
                    let mut archived = rows["live"][&id].take();
                    let live = rows["live"].as_object_mut().expect("messages");
                    live.remove(&id);
                    archived["archived_at"] = after["archived"][&id]["archived_at"].clone();
                    assert!(archived["archived_at"].is_string(), "{after}");
                    rows["archived"][&id] = archived;
                    continue;
                }
                Class::Locked => continue,
            }
            rows["live"][&id]["vt"] = visible_at.clone();
            let read_count = rows["live"][&id]["read_ct"].as_i64().expect("a number");
            rows["live"][&id]["read_ct"] = json!(read_count + 1);
        }
        rows
    }

    /// Returns the required rows after a claim that was refused for these messages, the first of
    /// which is the function's reason.
    pub(super) fn after_refusal(
        &self,
        before: &Value,
        after: &Value,
        bad: &[(i64, String)],
    ) -> Value {
        let (id, reason) = &bad[0];
        let mut rows = before.clone();
        let function = &mut rows["functions"][FUNCTION];
        function["enabled"] = json!(false);
        function["disabled_reason"] = json!(format!(
            "unsupported work in queue \"{}\": message {id}: {reason}",
            self.queue
        ));
        for column in ["disabled_at", "updated_at"] {
            function[column] = after["functions"][FUNCTION][column].clone();
            assert!(function[column].is_string(), "{column} is not set");
        }
        rows
    }
}

fn micros(value: &Value) -> i64 {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    let time: DateTime<Utc> = text.parse().unwrap_or_else(|_| panic!("no time: {text}"));
    time.timestamp_micros()
}

fn body_key(key: &str) -> usize {
    let n = BODY_KEYS.iter().position(|known| *known == key);
    n.expect("a key of the body")
}

async fn place(
    db: &mut PgConnection,
    queue: &str,
    id: i64,
    task: (Uuid, &str),
    body: Option<Value>,
) {
    sqlx::query("select place($1, $2, $3, $4, 0, $5)")
        .bind(queue)
        .bind(id)
        .bind(task.0)
        .bind(task.1)
        .bind(body)
        .execute(db)
        .await
        .expect("the message can be placed");
}
