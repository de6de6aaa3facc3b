//! The recipe itself: who can run it, how often, and that it grants what is needed.

use std::collections::BTreeSet;
use std::path::Path;

use pgflow::startup::{MissingRights, StartupError};
use pgflow::worker::FlowWorker;
use pgflow_runtime::migrate::Migrator;
use sqlx::PgPool;

use super::recipe_file::Recipe;
use super::{Installed, Orders, callable, make_groups, run};

/// The functions that the runtime calls for the owner only: to maintain the database, to make it a
/// developer's own, to test flows.
const OWNERS: [&str; 14] = [
    "_worker_functions_of",
    "archive_unsupported_messages",
    "delete_flow_and_data",
    "delete_flow_batch",
    "deprecate_workers",
    "disable_worker_function",
    "enable_worker_function",
    "fence_worker_functions",
    "prune_data_older_than",
    "set_environment",
    "start_tasks",
    "tune_flow",
    "unfence_worker_functions",
    "unsupported_messages",
];

/// The functions that a file of `pgflow-runtime/src/sql` calls.
fn called_in(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("pgflow-runtime/src/sql");
    let text = std::fs::read_to_string(path.join(file)).expect("the file is there");
    let calls = text.split("pgflow.").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_')?;
        rest[end..].starts_with('(').then(|| rest[..end].to_owned())
    });
    calls.collect()
}

#[test]
fn workers_get_what_the_runtime_calls_and_readers_what_changes_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("pgflow-runtime/src/sql");
    let files = std::fs::read_dir(path).expect("the folder is there");
    let mut called = BTreeSet::new();
    for file in files {
        let name = file.expect("a file").file_name().into_string();
        called.extend(called_in(&name.expect("a plain name")));
    }
    for function in OWNERS {
        assert!(called.remove(function), "{function} is not called");
    }
    let recipe = Recipe::read();
    let reader = recipe.functions_of("pgflow_reader");
    let worker = recipe.functions_of("pgflow_worker");
    assert_eq!(
        reader,
        [
            // View `coverage` calls it.
            "_waiting_messages",
            "explain_step",
            "get_run_with_states",
            "is_valid_slug"
        ]
    );
    // Called by the view that the runtime reads.
    called.insert("_waiting_messages".to_owned());
    // Called by workers of older releases, which continue while they are replaced.
    called.insert("worker_heartbeat".to_owned());
    called.insert("requeue_stalled_tasks".to_owned());
    // What is called for readers only, is theirs.
    for function in &reader {
        if !worker.contains(function) {
            called.remove(*function);
        }
    }
    assert_eq!(Vec::from_iter(&called), worker);
}

#[tokio::test]
async fn it_can_be_run_again_and_leaves_no_other_rights() {
    let installed = Installed::new().await;
    let worker = installed.worker().await;
    let before = callable(&worker).await;
    assert_eq!(before, Recipe::read().functions_of("pgflow_worker"));
    // Somebody was generous, for a moment.
    run(
        &installed.owner,
        "grant execute on all functions in schema pgflow to pgflow_worker, pgflow_reader;
         grant all on all tables in schema pgflow to pgflow_worker, pgflow_reader",
    )
    .await;
    assert!(callable(&worker).await.len() > before.len());
    // The owner may not create roles; where they are, it need not.
    make_groups(&installed.owner).await;
    installed.grant().await;
    installed.grant().await;
    assert_eq!(callable(&worker).await, before);
    super::assert_writes_nothing(&worker).await;
}

#[tokio::test]
async fn what_everybody_was_granted_is_taken_back() {
    let installed = Installed::new().await;
    run(
        &installed.owner,
        "grant usage on schema pgflow to public;
         grant execute on all functions in schema pgflow to public;
         grant select, insert, update, delete on all tables in schema pgflow to public",
    )
    .await;
    let stranger = installed.role("stranger", "").await;
    assert!(callable(&stranger).await.len() > 70);
    installed.grant().await;
    assert_eq!(callable(&stranger).await, [""; 0]);
    let status = pgflow_runtime::migrate::status(&installed.owner).await;
    assert_eq!(status.expect("a status").open_to_everybody, [""; 0]);
}

/// The rights that a start misses.
async fn missing(pool: &PgPool) -> MissingRights {
    let started = FlowWorker::<Orders>::new().start(pool).await;
    match started.expect_err("the worker must not start") {
        StartupError::MissingRights(missing) => missing,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_role_without_rights_is_told_all_that_it_lacks() {
    let installed = Installed::without_rights().await;
    let stranger = installed.role("stranger", "").await;
    let missing = missing(&stranger).await;
    assert_eq!(
        missing.to_string(),
        format!(
            "role `{}` lacks rights that a worker needs:
  usage on schema pgflow
  select on table pgflow.installation
  select on table pgflow.runs
  select on table pgflow.schema_migrations
  select on table pgflow.worker_functions
  execute on function pgflow.claim_tasks
  execute on function pgflow.complete_tasks
  execute on function pgflow.ensure_flow_compiled
  execute on function pgflow.fail_task
  execute on function pgflow.lost_attempts
  execute on function pgflow.mark_worker_draining
  execute on function pgflow.mark_worker_stopped
  execute on function pgflow.postpone_task
  execute on function pgflow.recover_tasks
  execute on function pgflow.recovery_is_due
  execute on function pgflow.register_worker
  execute on function pgflow.release_lost_claims
  execute on function pgflow.release_tasks
  execute on function pgflow.report_overdue_attempts
  execute on function pgflow.set_worker_process
  execute on function pgflow.track_worker_function
  execute on function pgflow.worker_heartbeats
  execute on function pgflow.workers_with_work
make it a member of a role that has them, such as pgflow_worker of docs/roles.md, \
             or run the grants of that page again: they are needed after each upgrade",
            installed.name_of("stranger")
        )
    );

    // What it names is what it lacks.
    let name = installed.name_of("stranger");
    for right in &missing.rights {
        run(&installed.owner, &format!("grant {right} to {name}")).await;
    }
    let worker = FlowWorker::<Orders>::new().start(&stranger).await;
    worker
        .expect("nothing is missing now")
        .stop()
        .await
        .expect("it stops");
}

#[tokio::test]
async fn a_function_that_an_upgrade_made_anew_is_closed_until_the_recipe_is_run_again() {
    let installed = Installed::new().await;
    let worker = installed.worker().await;
    // As a numbered file does when a function's signature changes.
    run(
        &installed.owner,
        "drop function pgflow.release_tasks(uuid, uuid[], text[], int[], int[], timestamptz[])",
    )
    .await;
    let report = Migrator::new().run(&installed.owner).await;
    assert!(!report.expect("the owner migrates").is_unchanged());
    let missing = missing(&worker).await;
    assert_eq!(missing.role, installed.name_of("worker"));
    // A worker calls it when it stops: too late to learn that it may not.
    assert_eq!(missing.rights, ["execute on function pgflow.release_tasks"]);
    installed.grant().await;
    let started = FlowWorker::<Orders>::new().start(&worker).await;
    started
        .expect("nothing is missing now")
        .stop()
        .await
        .expect("it stops");
}
