//! The rights that a worker's role needs.

use sqlx::PgExecutor;

use super::CallError;

/// The tables that a worker reads, from its start to the last step that asks for the flow's input.
const TABLES: [&str; 4] = [
    "installation",
    "runs",
    "schema_migrations",
    "worker_functions",
];

/// The tables that a worker of a single step reads as well: it looks whether the other steps have
/// workers.
const TABLES_OF_STEP_WORKERS: [&str; 2] = ["live_workers", "steps"];

/// The functions that a worker calls. They run with the rights of their owner, so nothing else is
/// needed to write.
const FUNCTIONS: [&str; 18] = [
    "claim_tasks",
    "complete_tasks",
    "ensure_flow_compiled",
    "fail_task",
    "lost_attempts",
    "mark_worker_draining",
    "mark_worker_stopped",
    "postpone_task",
    "recover_tasks",
    "recovery_is_due",
    "register_worker",
    "release_lost_claims",
    "release_tasks",
    "report_overdue_attempts",
    "set_worker_process",
    "track_worker_function",
    "worker_heartbeats",
    "workers_with_work",
];

/// A right that the connected role lacks.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Missing {
    pub(crate) role: String,
    /// As `grant` writes it, without the grantee.
    pub(crate) right: String,
}

/// The rights that a worker needs and the connected role lacks. Objects that do not exist are
/// ignored: other checks find them.
pub(crate) async fn missing(
    executor: impl PgExecutor<'_>,
    is_of_step: bool,
) -> Result<Vec<Missing>, CallError> {
    let mut tables = TABLES.to_vec();
    if is_of_step {
        tables.extend(TABLES_OF_STEP_WORKERS);
    }
    Ok(sqlx::query_as(
        "select current_user::text as role, needed.right_ as right \
         from pg_catalog.pg_namespace schema \
         cross join lateral ( \
             select 1, 'usage on schema pgflow' \
             where not pg_catalog.has_schema_privilege(schema.oid, 'usage') \
             union all \
             select 2, 'select on table pgflow.' || relation.relname \
             from pg_catalog.pg_class relation \
             where relation.relnamespace = schema.oid and relation.relname = any ($1) \
                 and not pg_catalog.has_table_privilege(relation.oid, 'select') \
             union all \
             select 3, 'execute on function pgflow.' || function.proname \
             from pg_catalog.pg_proc function \
             where function.pronamespace = schema.oid and function.proname = any ($2) \
                 and not pg_catalog.has_function_privilege(function.oid, 'execute') \
         ) needed (kind, right_) \
         where schema.nspname = 'pgflow' \
         order by needed.kind, needed.right_",
    )
    .bind(tables)
    .bind(FUNCTIONS)
    .fetch_all(executor)
    .await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files with the calls of a worker, and all that it needs to know before.
    const WORKER: &[&str] = &[
        include_str!("claim.rs"),
        include_str!("complete.rs"),
        include_str!("definition.rs"),
        include_str!("fail.rs"),
        include_str!("heartbeat.rs"),
        include_str!("idle.rs"),
        include_str!("maintenance.rs"),
        include_str!("release.rs"),
        include_str!("worker.rs"),
        include_str!("../migrate/installed.rs"),
    ];

    /// The names that follow `pgflow.` and are called, or are not.
    fn names(files: &[&'static str], called: bool) -> Vec<&'static str> {
        let mut names: Vec<&str> = files
            .iter()
            .flat_map(|text| text.split("pgflow.").skip(1))
            .filter_map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_')?;
                let (name, rest) = rest.split_at(end);
                (!name.is_empty() && rest.starts_with('(') == called).then_some(name)
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn the_functions_are_those_that_are_called() {
        assert_eq!(names(WORKER, true), FUNCTIONS);
    }

    #[test]
    fn the_tables_are_those_that_are_read() {
        let mut read = names(WORKER, false);
        // A setting.
        read.retain(|name| *name != "careful_claims");
        // A step asks for the flow's input.
        assert!(include_str!("run.rs").contains("select input from pgflow.runs"));
        read.push("runs");
        read.sort_unstable();
        assert_eq!(read, TABLES);
    }

    #[test]
    fn the_tables_of_step_workers_are_those_that_coverage_reads() {
        let coverage = &[include_str!("coverage.rs")];
        assert_eq!(names(coverage, false), TABLES_OF_STEP_WORKERS);
    }
}
