//! Random flows under everything that workers do at once: complete, fail, stall, return, report
//! late. Every run ends, no call fails, and the invariants hold.

use fastrand::Rng;
use serde_json::json;
use sqlx::postgres::PgPool;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{Claimed, claim, define, fail, start, worker};
use crate::support::invariants::assert_invariants;
use crate::support::random_flows::RandomFlow;
use crate::support::rows::count;
use crate::support::runs::{Item, complete_batch, fail_for_good, outline, random, requeue};

/// A flow and a worker that serves it.
#[derive(Debug, Clone)]
struct Served {
    flow: RandomFlow,
    worker: Uuid,
}

/// A claimed attempt, and the place of its flow.
type Running = (Claimed, usize);

/// Defines random flows, and starts runs of each.
async fn start_runs(pool: &PgPool, random: &mut Rng, flows: usize, runs: usize) -> Vec<Served> {
    let mut served = Vec::new();
    for number in 0..flows {
        let flow = RandomFlow::new(random);
        let slug = format!("flow{number}");
        define(pool, &slug, &flow.steps).await;
        for _ in 0..runs {
            start(pool, &slug, flow.input(random)).await;
        }
        let worker = worker(pool, &slug).await;
        served.push(Served { flow, worker });
    }
    served
}

/// Does all that there is to do, in random order.
async fn work(pool: &PgPool, random: &mut Rng, served: &[Served], check_each: bool) {
    let mut running: Vec<Running> = Vec::new();
    let mut reported: Vec<Claimed> = Vec::new();
    let mut idle = 0;
    while idle < served.len() {
        // Without anything running, every flow is asked in turn.
        let place = match running.len() {
            0 => idle,
            _ => random.usize(..served.len()),
        };
        let claimed = claim(pool, served[place].worker, random.i32(1..=6)).await;
        running.extend(claimed.into_iter().map(|task| (task, place)));
        if running.is_empty() {
            idle += 1;
            continue;
        }
        idle = 0;
        random.shuffle(&mut running);
        let ending = running.split_off(random.usize(..running.len()));
        reported.extend(ending.iter().map(|(task, _)| task.clone()));
        report(pool, random, served, ending).await;
        if let Some(late) = random.choice(&reported) {
            complete_batch(pool, &[Item::of(late, json!(["late"]))]).await;
        }
        if check_each {
            assert_invariants(pool).await;
        }
    }
}

async fn report(pool: &PgPool, random: &mut Rng, served: &[Served], ending: Vec<Running>) {
    let mut batch = Vec::new();
    for (task, place) in ending {
        let Served { flow, worker } = &served[place];
        match random.u8(..100) {
            0..10 => drop(fail(pool, &task, "retry").await),
            10..15 => drop(fail_for_good(pool, &task, "no").await),
            15..22 => {
                stall(pool, Some(&task)).await;
                requeue(pool).await;
            }
            22..27 => give_back(pool, *worker, &task).await,
            _ => batch.push(Item::of(&task, flow.output(random, &task.step_slug))),
        }
    }
    complete_batch(pool, &batch).await;
}

/// Lets one task stall, or all that are started.
async fn stall(pool: &PgPool, task: Option<&Claimed>) {
    let stalled = sqlx::query(
        "with claimed as (update pgflow.claims set look_at = look_at - interval '1 hour')
         update pgflow.step_tasks
         set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
         where status = 'started' and message_id = coalesce($1, message_id) and queue_name = coalesce($2, queue_name)",
    )
    .bind(task.map(|task| task.message_id))
    .bind(task.map(|task| &task.queue_name))
    .execute(pool)
    .await;
    stalled.expect("rows can be aged");
}

async fn give_back(pool: &PgPool, worker: Uuid, task: &Claimed) {
    let given_back =
        sqlx::query("select pgflow.release_tasks($1, array[$2], array[$3], array[$4], array[$5])")
            .bind(worker)
            .bind(task.run_id)
            .bind(&task.step_slug)
            .bind(task.task_index)
            .bind(task.attempt)
            .execute(pool)
            .await;
    given_back.expect("tasks can be given back");
}

async fn assert_all_ended(pool: &PgPool) {
    assert_invariants(pool).await;
    let hanging: Vec<Uuid> =
        sqlx::query_scalar("select run_id from pgflow.runs where status = 'started'")
            .fetch_all(pool)
            .await
            .expect("runs can be read");
    for run_id in &hanging {
        println!("{}", outline(pool, *run_id).await);
    }
    assert!(hanging.is_empty(), "{} runs hang", hanging.len());
}

#[tokio::test]
async fn the_invariants_hold_after_each_report() {
    let db = TestDb::new().await;
    let mut random = random("the_invariants_hold_after_each_report");
    let served = start_runs(&db.pool, &mut random, 10, 2).await;
    work(&db.pool, &mut random, &served, true).await;
    assert_all_ended(&db.pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_work_on_the_same_runs_do_not_get_in_each_others_way() {
    let db = TestDb::new().await;
    let mut random = random("sessions_that_work_on_the_same_runs");
    let served = start_runs(&db.pool, &mut random, 8, 6).await;
    let mut sessions = JoinSet::new();
    for _ in 0..6 {
        let (pool, served, mut random) = (db.pool.clone(), served.clone(), random.fork());
        sessions.spawn(async move { work(&pool, &mut random, &served, false).await });
    }
    sessions.join_all().await;
    // A session ends when it finds no work, though others may still give some back; and recovery
    // leaves alone what others hold.
    while count(
        &db.pool,
        "pgflow.step_tasks where status in ('queued', 'started')",
    )
    .await
        > 0
    {
        stall(&db.pool, None).await;
        requeue(&db.pool).await;
        work(&db.pool, &mut random, &served, false).await;
    }
    assert_all_ended(&db.pool).await;
}
