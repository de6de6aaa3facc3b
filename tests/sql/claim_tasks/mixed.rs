//! Batches in which messages of every class lie together, in every order: what becomes of each does
//! not depend on its neighbours, unless one of them is not this worker's to run.

mod world;

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, PgTransaction};
use uuid::Uuid;

use self::world::{CLASSES, Class, Fault, LOCKED, World};
use crate::support::flows::FUNCTION;
use crate::support::invariants::assert_invariants;
use crate::support::runs::random;
use crate::support::sessions::{holding, without_waiting};

/// A message of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Of(Class),
    Bad(Fault),
}

/// A batch in the order of its messages, with their ids.
#[derive(Debug, Default)]
struct Batch {
    items: Vec<(Item, i64)>,
    good: Vec<(Class, i64)>,
    /// With the reasons that are to be given.
    bad: Vec<(i64, String)>,
}

impl Batch {
    /// Puts messages into the world's queue in this order, around the one that is locked.
    async fn put(world: &World, db: &mut PgConnection, order: &[Item]) -> Self {
        let locked = order.iter().position(|i| *i == Item::Of(Class::Locked));
        let first = LOCKED - i64::try_from(locked.map_or(order.len(), |n| n)).expect("small");
        let mut batch = Self::default();
        for (item, id) in order.iter().copied().zip(first..) {
            batch.items.push((item, id));
            match item {
                Item::Of(Class::Locked) => batch.good.push((Class::Locked, id)),
                Item::Of(class) => {
                    world.put(db, class, id).await;
                    batch.good.push((class, id));
                }
                Item::Bad(fault) => batch.bad.push((id, world.plant(db, fault, id).await)),
            }
        }
        batch
    }

    fn id(&self, wanted: Item) -> i64 {
        let found = self.items.iter().find(|(item, _)| *item == wanted);
        found.expect("it is in the batch").1
    }

    fn ids(&self) -> Vec<i64> {
        self.items.iter().map(|(_, id)| *id).collect()
    }
}

/// All orders of these items.
fn permutations(items: &[Item]) -> Vec<Vec<Item>> {
    let Some((first, rest)) = items.split_first() else {
        return vec![Vec::new()];
    };
    let mut orders = Vec::new();
    for order in permutations(rest) {
        for at in 0..=order.len() {
            let mut order = order.clone();
            order.insert(at, *first);
            orders.push(order);
        }
    }
    orders
}

async fn lock(world: &World) -> PgTransaction<'static> {
    let task = "select from pgflow.step_tasks where message_id = 500 for no key update";
    holding(&world.db.pool, task).await
}

/// Fails with the places at which two values differ.
#[track_caller]
fn assert_same(actual: &Value, expected: &Value, what: &impl std::fmt::Debug) {
    fn compare(path: &str, actual: &Value, expected: &Value, found: &mut Vec<String>) {
        if let (Value::Object(a), Value::Object(e)) = (actual, expected) {
            for key in a.keys().chain(e.keys().filter(|key| !a.contains_key(*key))) {
                let path = format!("{path}.{key}");
                compare(&path, &actual[key], &expected[key], found);
            }
        } else if actual != expected {
            found.push(format!("{path}: {actual}, expected {expected}"));
        }
    }
    let mut found = Vec::new();
    compare("", actual, expected, &mut found);
    assert!(found.is_empty(), "{what:?}\n{}", found.join("\n"));
}

/// Returns the expected result of a claim of one queued message.
fn claimed(world: &World, id: i64) -> Value {
    json!([{
        "outcome": "claimed", "run_id": world.run(Class::Queued), "step_slug": "a", "task_index": 0, "attempt": 1, "max_attempts": 3,
        "timeout": 20, "message_id": id, "read_count": id % 7 + 1, "input": 0, "flow_input": null, "queue_name": world.queue,
        "reason": null,
    }])
}

/// Returns the expected refusal.
fn refused(world: &World, bad: &[(i64, String)]) -> Value {
    let rows = bad.iter().map(|(id, reason)| {
        json!({
            "outcome": "unsupported", "run_id": null, "step_slug": null, "task_index": null, "attempt": null, "max_attempts": null,
            "timeout": null, "message_id": id, "read_count": id % 7, "input": null, "flow_input": null, "queue_name": world.queue,
            "reason": reason,
        })
    });
    rows.collect()
}

/// The rows of an answer without what the clock decides.
fn timeless(mut rows: Vec<Value>) -> Value {
    for row in &mut rows {
        let row = row.as_object_mut().expect("a row");
        assert!(row.remove("enqueued_at").is_some_and(|t| t.is_string()));
        row.remove("started_at").expect("a column");
    }
    Value::Array(rows)
}

#[tokio::test]
async fn what_becomes_of_a_message_does_not_depend_on_its_neighbours() {
    for has_step_queues in [false, true] {
        let world = World::new(has_step_queues).await;
        let holder = lock(&world).await;
        let mut connection = world.connection().await;
        let orders = permutations(&CLASSES.map(Item::Of));
        assert_eq!(orders.len(), 720);
        // The queue's name makes no difference that every order would be needed for.
        for order in orders
            .into_iter()
            .step_by(if has_step_queues { 7 } else { 1 })
        {
            let mut db = connection.begin().await.expect("a transaction");
            let batch = Batch::put(&world, &mut db, &order).await;
            let before = world.rows(&mut db).await;
            let answer = without_waiting(world.claim(&mut db, world.worker)).await;
            let after = world.rows(&mut db).await;
            let expected = world.after_claim(&before, &after, &batch.good);
            assert_same(&after, &expected, &order);
            let expected = claimed(&world, batch.id(Item::Of(Class::Queued)));
            assert_eq!(timeless(answer), expected, "{order:?}");
            db.rollback().await.expect("undone");
        }
        holder.rollback().await.expect("released");
        assert_invariants(&world.db.pool).await;
    }
}

#[tokio::test]
async fn one_bad_message_anywhere_in_a_batch_leaves_every_row_as_it_was() {
    for has_step_queues in [false, true] {
        let world = World::new(has_step_queues).await;
        let holder = lock(&world).await;
        let mut connection = world.connection().await;
        let mut others = CLASSES.map(Item::Of).to_vec();
        for _ in 0..2 {
            for fault in world.faults() {
                for at in 0..=others.len() {
                    let mut order = others.clone();
                    order.insert(at, Item::Bad(fault));
                    let mut db = connection.begin().await.expect("a transaction");
                    let batch = Batch::put(&world, &mut db, &order).await;
                    let before = world.rows(&mut db).await;
                    let answer = without_waiting(world.claim(&mut db, world.worker)).await;
                    let after = world.rows(&mut db).await;
                    let expected = world.after_refusal(&before, &after, &batch.bad);
                    assert_same(&after, &expected, &order);
                    assert_eq!(timeless(answer), refused(&world, &batch.bad), "{order:?}");
                    db.rollback().await.expect("undone");
                }
            }
            others.reverse();
        }
        holder.rollback().await.expect("released");
        assert_invariants(&world.db.pool).await;
    }
}

#[tokio::test]
async fn every_bad_message_of_a_batch_is_listed_with_its_own_reason() {
    let mut random = random("every_bad_message_of_a_batch_is_listed_with_its_own_reason");
    for has_step_queues in [false, true] {
        let world = World::new(has_step_queues).await;
        let mut connection = world.connection().await;
        let mut order = CLASSES.map(Item::Of).to_vec();
        order.extend(world.faults().into_iter().map(Item::Bad));
        for _ in 0..60 {
            random.shuffle(&mut order);
            let mut db = connection.begin().await.expect("a transaction");
            let batch = Batch::put(&world, &mut db, &order).await;
            assert_eq!(batch.bad.len(), 7);
            let before = world.rows(&mut db).await;
            let answer = world.claim(&mut db, world.worker).await;
            let after = world.rows(&mut db).await;
            let expected = world.after_refusal(&before, &after, &batch.bad);
            assert_same(&after, &expected, &order);
            assert_eq!(timeless(answer), refused(&world, &batch.bad), "{order:?}");
            db.rollback().await.expect("undone");
        }
        assert_invariants(&world.db.pool).await;
    }
}

/// The functions that are disabled, with the reasons.
async fn disabled(world: &World) -> Vec<(String, String)> {
    sqlx::query_as(
        "select function_name, disabled_reason from pgflow.worker_functions where not enabled order by 1",
    )
    .fetch_all(&world.db.pool)
    .await
    .expect("functions can be read")
}

async fn enable(world: &World, function: &str) {
    let enabled = sqlx::query("select pgflow.enable_worker_function($1)").bind(function);
    let enabled = enabled.execute(&world.db.pool).await;
    enabled.expect("the function is known");
}

/// The messages that a reader gets now, oldest first; they stay as they are.
async fn readable(world: &World) -> Vec<i64> {
    let mut connection = world.connection().await;
    let mut db = connection.begin().await.expect("a transaction");
    let ids = sqlx::query_scalar("select msg_id from pgmq.read($1, 30, 100) order by 1")
        .bind(world.queue)
        .fetch_all(&mut *db)
        .await
        .expect("the queue can be read");
    db.rollback().await.expect("undone");
    ids
}

/// The ids of the messages that a worker claims.
async fn claims(world: &World, worker: Uuid) -> Vec<i64> {
    let mut db = world.connection().await;
    let rows = world.claim(&mut db, worker).await;
    let ids = rows.iter().map(|row| {
        assert_eq!(row["outcome"], "claimed");
        row["message_id"].as_i64().expect("a number")
    });
    ids.collect()
}

#[tokio::test]
async fn a_refused_batch_is_there_for_the_next_reader_and_only_its_own_function_is_disabled() {
    for has_step_queues in [false, true] {
        for number in 0..7 {
            let world = World::new(has_step_queues).await;
            let fault = world.faults()[number];
            let healthy = world.register("healthy").await;
            let mut db = world.connection().await;
            let mut order = [
                Class::Started,
                Class::Queued,
                Class::TaskEnded,
                Class::Locked,
            ]
            .map(Item::Of)
            .to_vec();
            order.insert(1 + number % 3, Item::Bad(fault));
            let batch = Batch::put(&world, &mut db, &order).await;

            let before = world.rows(&mut db).await;
            let answer = world.claim(&mut db, world.worker).await;
            let after = world.rows(&mut *world.connection().await).await;
            let expected = world.after_refusal(&before, &after, &batch.bad);
            assert_same(&after, &expected, &order);
            assert_eq!(readable(&world).await, batch.ids());

            // Another function's worker comes upon the same batch.
            let again = world.claim(&mut db, healthy).await;
            assert_eq!(again, answer);
            let reason = disabled(&world).await[0].1.clone();
            assert_eq!(
                disabled(&world).await,
                ["healthy", FUNCTION].map(|name| (name.to_owned(), reason.clone()))
            );
            assert_eq!(readable(&world).await, batch.ids());

            let (planted, mended) = (batch.bad[0].0, LOCKED + 100);
            world.mend(&mut db, fault, planted, mended).await;
            enable(&world, FUNCTION).await;
            let mut expected = vec![batch.id(Item::Of(Class::Queued)), LOCKED];
            if matches!(fault, Fault::OtherRoute | Fault::Body(_)) {
                expected.push(mended);
            }
            assert_eq!(claims(&world, world.worker).await, expected, "{fault:?}");
            assert_eq!(disabled(&world).await, [("healthy".to_owned(), reason)]);
            assert_invariants(&world.db.pool).await;
        }
    }
}

#[tokio::test]
async fn functions_are_poisoned_one_by_one() {
    let world = World::new(false).await;
    let (second, _) = (
        world.register("second").await,
        world.register("third").await,
    );
    let mut db = world.connection().await;
    let first = Batch::put(&world, &mut db, &[Item::Bad(Fault::NoTask)]).await;
    world.claim(&mut db, world.worker).await;
    let poisoned = disabled(&world).await;
    assert_eq!(poisoned.len(), 1);
    world.mend(&mut db, Fault::NoTask, first.bad[0].0, 0).await;

    world
        .plant(&mut db, Fault::Body("run_id"), LOCKED + 1)
        .await;
    world.claim(&mut db, second).await;
    let both = disabled(&world).await;
    assert_eq!(both.len(), 2);
    assert_eq!(both[1], poisoned[0], "it keeps its own reason");
    assert_eq!(both[0].0, "second");
    assert!(both[0].1.contains("message 501: its body"), "{both:?}");
}

#[tokio::test]
async fn a_bad_message_that_somebody_else_holds_is_not_in_the_batch() {
    let world = World::new(false).await;
    let mut db = world.connection().await;
    let order = [Item::Of(Class::Queued), Item::Bad(Fault::NoTask)];
    let batch = Batch::put(&world, &mut db, &order).await;
    assert_eq!(batch.ids(), [498, 499]);
    let held = "select from pgmq.q_orders where msg_id = 499 for update";
    let holder = holding(&world.db.pool, held).await;
    let claimed = without_waiting(claims(&world, world.worker)).await;
    assert_eq!(claimed, [498, LOCKED]);
    assert_eq!(disabled(&world).await, []);
    holder.rollback().await.expect("released");
    let answer = world.claim(&mut db, world.worker).await;
    assert_eq!(timeless(answer), refused(&world, &batch.bad));
    assert_invariants(&world.db.pool).await;
}

#[tokio::test]
async fn a_step_that_was_given_another_queue_makes_all_its_messages_bad() {
    let world = World::new(true).await;
    let mut db = world.connection().await;
    let order = [
        Class::Queued,
        Class::Started,
        Class::TaskEnded,
        Class::Locked,
    ]
    .map(Item::Of);
    let mut batch = Batch::put(&world, &mut db, &order).await;
    let routed = sqlx::query(
        "update pgflow.steps set queue_name = 'elsewhere' where step_slug = 'a' and flow_slug = 'orders'",
    );
    routed.execute(&mut *db).await.expect("routed");
    let reason = "step \"a\" is routed to queue \"elsewhere\"".to_owned();
    batch.bad = batch
        .ids()
        .into_iter()
        .map(|id| (id, reason.clone()))
        .collect();
    let before = world.rows(&mut db).await;
    let answer = world.claim(&mut db, world.worker).await;
    let after = world.rows(&mut db).await;
    assert_same(
        &after,
        &world.after_refusal(&before, &after, &batch.bad),
        &order,
    );
    assert_eq!(timeless(answer), refused(&world, &batch.bad));
}
