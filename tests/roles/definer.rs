//! Functions that run with the owner's rights: nobody can make them do something else with them.

use serde_json::json;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Installed, run};
use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, fail, shape, start, step};
use crate::support::invariants::assert_invariants;

#[tokio::test]
async fn every_function_has_a_pinned_search_path_with_the_callers_schema_last() {
    let db = TestDb::new().await;
    let functions: Vec<(String, bool, Option<String>)> = sqlx::query_as(
        "select p.proname::text, p.prosecdef,
            (select setting from unnest(p.proconfig) setting where setting like 'search_path=%')
         from pg_proc p where p.pronamespace = 'pgflow'::regnamespace",
    )
    .fetch_all(&db.pool)
    .await
    .expect("functions can be listed");
    assert!(functions.iter().filter(|(_, definer, _)| *definer).count() >= 15);
    for (name, _, path) in functions {
        assert_eq!(
            path.as_deref(),
            Some("search_path=pg_catalog, pg_temp"),
            "{name}"
        );
    }
}

/// Types of the caller that tell who uses them, tables that would catch rows, and the record of
/// what they caught.
const TRAPS: &str = "
create temp table caught (who pg_catalog.text);
grant insert on caught to public;
create function pg_temp.spy() returns pg_catalog.bool language plpgsql as $$
begin
    insert into pg_temp.caught values (current_user);
    return true;
end
$$;
create domain pg_temp.text as pg_catalog.text check (pg_temp.spy());
create domain pg_temp.uuid as pg_catalog.uuid check (pg_temp.spy());
create domain pg_temp.jsonb as pg_catalog.jsonb check (pg_temp.spy());
create domain pg_temp.float8 as pg_catalog.float8 check (pg_temp.spy());
create domain pg_temp.timestamptz as pg_catalog.timestamptz check (pg_temp.spy());
create temp table record ();
create temp table flows (like pgflow.flows);
create temp table steps (like pgflow.steps);
create temp table deps (like pgflow.deps);
create temp table runs (like pgflow.runs);
create temp table step_states (like pgflow.step_states);
create temp table step_tasks (like pgflow.step_tasks);
create temp table workers (like pgflow.workers);
create temp table worker_functions (like pgflow.worker_functions);
create temp table installation (like pgflow.installation);
create temp table wakeups (like pgflow.wakeups);
create temp view live_workers as select * from pgflow.live_workers;
create temp view pg_class as select * from pg_catalog.pg_class where pg_temp.spy();
";

/// Returns the roles whose rights the traps got. The caller's own are no prey: it runs into them
/// itself, as when the driver looks up a type.
async fn caught(session: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar("delete from caught where who <> session_user returning who")
        .fetch_all(session)
        .await
        .expect("the record can be read")
}

/// Calls all that a caller can be given, in the course of a run of three tasks; returns the run.
async fn call_everything(session: &mut PgConnection) -> Uuid {
    let shape = shape(&[
        step("a").start_delay(0),
        step("each").map().deps(&["a"]),
        step("unmet").required(json!({"never": 1})),
    ]);
    sqlx::query("select pgflow.ensure_flow_compiled('f', $1)")
        .bind(shape)
        .execute(&mut *session)
        .await
        .expect("the flow is stored");
    let worker = Uuid::now_v7();
    run(
        &mut *session,
        &format!(
            "select pgflow.track_worker_function('w');
             select pgflow.register_worker('{worker}', 'w', 'f', null, 'f', '{{each}}');
             select pgflow.worker_heartbeat('{worker}');
             select pgflow.worker_heartbeats(array['{worker}'::pg_catalog.uuid]);
             select pgflow.create_flow('g'); select pgflow.add_step('g', 'b');
             select pgflow.start_flow_with_states('g', '{{}}');
             select pgflow.start_flows('g', array['{{}}', '1']::pg_catalog.jsonb[], array[null, null]::pg_catalog.uuid[])"
        ),
    )
    .await;
    let run_id = start(&mut *session, "f", json!({})).await;
    let task = claim_one(&mut *session, worker).await;
    sqlx::query("select pgflow.fail_task($1, 'a', 0, 'again', retry_delay => 0)")
        .bind(run_id)
        .execute(&mut *session)
        .await
        .expect("the task can be failed");
    let task = claim_one(&mut *session, worker)
        .await
        .run_id
        .min(task.run_id);
    assert_eq!(task, run_id);
    run(
        &mut *session,
        &format!(
            "select pgflow.complete_task('{run_id}', 'a', 0, '[1, 2]');
             select pgflow.explain_step('{run_id}', 'each');
             select pgflow.lost_attempts(array['{run_id}'::pg_catalog.uuid], '{{a}}', '{{0}}', '{{1}}');
             select pgflow.get_run_with_states('{run_id}')"
        ),
    )
    .await;
    let element = claim_one(&mut *session, worker).await;
    complete(&mut *session, &element, json!(1)).await;
    let element = claim_one(&mut *session, worker).await;
    run(
        &mut *session,
        &format!(
            "select pgflow.release_tasks('{worker}', array['{run_id}'::pg_catalog.uuid], '{{each}}', array[{}], '{{1}}');
             select pgflow.requeue_stalled_tasks()",
            element.task_index
        ),
    )
    .await;
    let element = claim_one(&mut *session, worker).await;
    assert_ne!(fail(&mut *session, &element, "no").await, "started");
    run(
        &mut *session,
        &format!("select pgflow.mark_worker_stopped('{worker}')"),
    )
    .await;
    run_id
}

#[tokio::test]
async fn types_and_tables_of_the_caller_change_nothing() {
    let installed = Installed::new().await;
    let attacker = installed.worker().await;
    let name = installed.name_of("worker");
    // All functions, so that those of the owner that the recipe keeps closed are tried as well; and
    // one that is written carelessly.
    run(
        &installed.owner,
        &format!(
            "grant execute on all functions in schema pgflow to {name};
             create function public.careless() returns pg_catalog.text language plpgsql security definer set search_path = ''
             as $$ declare v_slug text := 'a'; begin return v_slug; end $$"
        ),
    )
    .await;
    drop(attacker);
    let mut session = PgConnection::connect(&installed.url_of("worker"))
        .await
        .expect("the role may log in");
    run(&mut session, TRAPS).await;

    // The traps work: an empty path does not keep the caller's schema out.
    run(&mut session, "select public.careless()").await;
    assert_eq!(
        caught(&mut session).await,
        [installed.name_of("owner")],
        "the owner's rights were the caller's"
    );

    let run_id = call_everything(&mut session).await;
    assert_eq!(caught(&mut session).await, Vec::<String>::new());
    let strayed: bool = sqlx::query_scalar(
        "select exists (select from pg_temp.runs union all select from pg_temp.step_tasks
            union all select from pg_temp.workers union all select from pg_temp.flows union all select from pg_temp.wakeups)",
    )
    .fetch_one(&mut session)
    .await
    .expect("tables can be read");
    assert!(!strayed, "rows went into the caller's tables");
    let kept: i64 = sqlx::query_scalar("select count(*) from pgflow.step_tasks where run_id = $1")
        .bind(run_id)
        .fetch_one(&installed.owner)
        .await
        .expect("tasks can be counted");
    assert_eq!(kept, 3);
    assert_invariants(&installed.owner).await;
}
