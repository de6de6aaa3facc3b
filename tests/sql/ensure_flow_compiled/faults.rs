//! Starts that fail at each point where they write or ask PGMQ: no row and no queue is left.
//!
//! Each point strikes at its first pass, at its second, and so on, until a start comes through; how
//! often it was passed proves that the point is on the way.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{ensure_in, queues, run_sql};
use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{FUNCTION, Step, claim, start, step, step_worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

/// `strike` raises an error at the pass whose number is in `plan`. Sequences count what is rolled
/// back, too.
const FAULTS: &str = "
    create schema faults;
    create table faults.plan (pass bigint);
    insert into faults.plan values (0);
    create sequence faults.passes;
    create function faults.strike() returns void language plpgsql as $$
    begin
        if nextval('faults.passes') = (select pass from faults.plan) then
            raise exception 'struck';
        end if;
    end
    $$;
    create function faults.on_row() returns trigger language plpgsql as $$
    begin
        perform faults.strike();
        return null;
    end
    $$;
    create function faults.on_command() returns event_trigger language plpgsql as $$
    begin
        perform faults.strike();
    end
    $$;";

/// Strikes after each row that is written.
fn row(event: &str, table: &str) -> [String; 2] {
    [
        format!(
            "create trigger fault after {event} on pgflow.{table} for each row execute function faults.on_row()"
        ),
        format!("drop trigger fault on pgflow.{table}"),
    ]
}

/// Strikes at the commit, for each row that was written.
fn commit(table: &str) -> [String; 2] {
    [
        format!(
            "create constraint trigger fault after insert on pgflow.{table} deferrable initially deferred
             for each row execute function faults.on_row()"
        ),
        format!("drop trigger fault on pgflow.{table}"),
    ]
}

/// Strikes after each command of a kind.
fn command(tag: &str) -> [String; 2] {
    [
        format!(
            "create event trigger fault on ddl_command_end when tag in ('{tag}') execute function faults.on_command()"
        ),
        "drop event trigger fault".to_owned(),
    ]
}

/// Strikes after each call of a function of PGMQ with a queue's name.
fn call(function: &str, returns: &str) -> [String; 2] {
    let result = if returns == "void" {
        "perform"
    } else {
        "return"
    };
    [
        format!(
            "alter function pgmq.{function}(text) rename to really;
             create function pgmq.{function}(queue_name text) returns {returns} language plpgsql as $$
             begin
                 perform faults.strike();
                 {result} pgmq.really(queue_name);
             end
             $$"
        ),
        format!("drop function pgmq.{function}(text); alter function pgmq.really(text) rename to \"{function}\""),
    ]
}

/// Executes the one transaction of startup, with a worker for each step of the flow.
async fn start_up(session: &mut PgConnection, steps: &[Step]) -> sqlx::Result<String> {
    let answer = ensure_in(&mut *session, "step", steps).await?;
    sqlx::query("select pgflow.track_worker_function($1)")
        .bind(FUNCTION)
        .execute(&mut *session)
        .await?;
    let routes: Vec<(String, String)> = sqlx::query_as(
        "select step_slug, queue_name from pgflow.steps where flow_slug = 'orders' order by step_index",
    )
    .fetch_all(&mut *session)
    .await?;
    for (step, queue) in routes {
        sqlx::query("select pgflow.register_worker($1, $2, 'orders', $3, $4, '{}')")
            .bind(Uuid::now_v7())
            .bind(FUNCTION)
            .bind(step)
            .bind(queue)
            .execute(&mut *session)
            .await?;
    }
    Ok(answer["status"].as_str().expect("a status").to_owned())
}

/// Lets starts fail at each pass of a point, until one gets as far as its commit; that one is
/// undone. Returns how many failed.
async fn passes(db: &TestDb, [add, remove]: &[String; 2], steps: &[Step], status: &str) -> usize {
    for failed in 0..50 {
        let pass = failed + 1;
        run_sql(
            &db.pool,
            format!(
                "alter sequence faults.passes restart; update faults.plan set pass = {pass}; {add}"
            ),
        )
        .await;
        let mut session = db.pool.begin().await.expect("a session");
        let mut came = start_up(&mut session, steps).await;
        if came.is_ok() {
            // What a commit would still find out.
            let checked = sqlx::query("set constraints all immediate")
                .execute(&mut *session)
                .await;
            came = checked.and(came);
        }
        session.rollback().await.expect("undone");
        run_sql(&db.pool, remove.clone()).await;
        match came {
            Ok(answer) => {
                assert_eq!(answer, status);
                return failed;
            }
            struck => assert_eq!(raised(struck), "P0001: struck", "{add}"),
        }
    }
    panic!("it strikes for ever: {add}")
}

/// Strikes at every pass of every point; each point must be passed as often as is said.
async fn assert_nothing_is_left(
    db: &TestDb,
    steps: &[Step],
    status: &str,
    points: &[([String; 2], usize)],
) {
    run_sql(&db.pool, FAULTS).await;
    for (point, expected) in points {
        let passes = unchanged(&db.pool, passes(db, point, steps, status)).await;
        assert_eq!(passes, *expected, "{}", point[0]);
    }
}

fn three() -> Vec<Step> {
    vec![
        step("a"),
        step("b").deps(&["a"]).map(),
        step("c").deps(&["a", "b"]),
    ]
}

#[tokio::test]
async fn a_start_that_fails_anywhere_leaves_nothing() {
    let db = TestDb::new().await;
    let points = [
        // Once while it checks the names, and once while it creates the queues.
        (call("validate_queue_name", "void"), 6),
        (call("acquire_queue_lock", "void"), 6),
        (call("create", "void"), 3),
        // Two tables for each queue.
        (command("CREATE TABLE"), 6),
        (command("CREATE INDEX"), 6),
        (command("ALTER TABLE"), 3),
        (row("insert", "flows"), 1),
        (row("insert", "steps"), 3),
        (row("insert", "deps"), 3),
        // The source of the map.
        (row("update", "steps"), 1),
        (row("insert", "worker_functions"), 1),
        (row("insert", "workers"), 3),
        (commit("flows"), 1),
        (commit("steps"), 3),
        (commit("deps"), 3),
        (commit("worker_functions"), 1),
        (commit("workers"), 3),
    ];
    assert_nothing_is_left(&db, &three(), "compiled", &points).await;
    assert_eq!(queues(&db.pool).await, [] as [&str; 0]);
    let mut session = db.pool.begin().await.expect("a session");
    start_up(&mut session, &three()).await.expect("started");
    session.commit().await.expect("committed");
    assert_eq!(
        queues(&db.pool).await,
        ["orders__a", "orders__b", "orders__c"]
    );
}

#[tokio::test]
async fn a_start_that_verifies_and_fails_registers_nobody() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &three())
        .await
        .expect("compiled");
    let points = [
        (call("validate_queue_name", "void"), 3),
        (call("acquire_queue_lock", "void"), 3),
        (row("insert", "worker_functions"), 1),
        (row("insert", "workers"), 3),
        (commit("workers"), 3),
        (row("insert or update or delete", "flows"), 0),
        (row("insert or update or delete", "steps"), 0),
        (row("insert or update or delete", "deps"), 0),
        (call("create", "void"), 0),
    ];
    assert_nothing_is_left(&db, &three(), "verified", &points).await;
}

#[tokio::test]
async fn a_recompilation_that_fails_anywhere_leaves_the_old_definition_with_its_runs_and_workers() {
    let db = TestDb::new().await;
    run_sql(&db.pool, "select pgflow.set_environment('local')").await;
    ensure_in(&db.pool, "step", &[step("a"), step("b").deps(&["a"])])
        .await
        .expect("compiled");
    for _ in 0..2 {
        start(&db.pool, "orders", json!({})).await;
    }
    let dead = step_worker(&db.pool, "orders", "a").await;
    claim(&db.pool, dead, 1).await;
    run_sql(
        &db.pool,
        "update pgflow.workers set last_heartbeat_at = '2000-01-01'",
    )
    .await;
    let points = [
        (row("update", "workers"), 1),
        (row("delete", "step_tasks"), 2),
        (row("delete", "step_states"), 4),
        (row("delete", "runs"), 2),
        (call("drop_queue", "boolean"), 2),
        (row("delete", "deps"), 1),
        (row("delete", "steps"), 2),
        (row("delete", "flows"), 1),
        (call("create", "void"), 3),
        (row("insert", "flows"), 1),
        (row("insert", "steps"), 3),
        (row("insert", "deps"), 3),
        (row("update", "steps"), 1),
        (row("update", "worker_functions"), 1),
        (row("insert", "workers"), 3),
        (commit("workers"), 3),
    ];
    assert_nothing_is_left(&db, &three(), "recompiled", &points).await;
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
    assert_invariants(&db.pool).await;
}
