//! Finds out which of many runs have changed.

use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::CallError;

/// Those of many runs that have not just started and not ended.
#[derive(Debug, Default)]
pub(crate) struct EndedRuns {
    pub(crate) ended: Vec<Uuid>,
    pub(crate) missing: Vec<Uuid>,
}

/// Finds the runs, each named once, that have ended or do not exist.
pub(crate) async fn ended_runs(
    connection: &mut PgConnection,
    run_ids: &[Uuid],
) -> Result<EndedRuns, CallError> {
    // `any`: each run is looked up by its key, whatever the statistics say.
    let (known, ended): (i64, Vec<Uuid>) = sqlx::query_as(
        "select count(*), coalesce(array_agg(r.run_id) filter (where r.status <> 'started'), '{}') \
         from pgflow.runs r where r.run_id = any ($1)",
    )
    .bind(run_ids)
    .fetch_one(&mut *connection)
    .await?;
    let mut found = EndedRuns {
        ended,
        missing: Vec::new(),
    };
    if usize::try_from(known).ok() != Some(run_ids.len()) {
        let known: Vec<Uuid> =
            sqlx::query_scalar("select r.run_id from pgflow.runs r where r.run_id = any ($1)")
                .bind(run_ids)
                .fetch_all(&mut *connection)
                .await?;
        let known: std::collections::HashSet<Uuid> = known.into_iter().collect();
        let missing = run_ids.iter().filter(|run_id| !known.contains(run_id));
        found.missing = missing.copied().collect();
    }
    Ok(found)
}

/// The progress of a run, as three numbers that change whenever a step or the run does.
#[derive(Debug, FromRow)]
pub(crate) struct RunState {
    pub(crate) run_id: Uuid,
    pub(crate) is_ended: bool,
    /// One for each step that has started, two for each that has ended.
    pub(crate) phases: i64,
    /// The tasks of all steps that have not completed.
    pub(crate) remaining: i64,
}

/// Reads how far each run has come; unknown ones are left out.
pub(crate) async fn run_states(
    connection: &mut PgConnection,
    run_ids: &[Uuid],
) -> Result<Vec<RunState>, CallError> {
    Ok(sqlx::query_as(
        "select r.run_id, r.status <> 'started' as is_ended, s.phases, s.remaining \
         from pgflow.runs r \
         cross join lateral ( \
             select coalesce(sum(case k.status when 'created' then 0 when 'started' then 1 else 2 end), 0)::bigint as phases, \
                    coalesce(sum(k.remaining_tasks), 0)::bigint as remaining \
             from pgflow.step_states k where k.run_id = r.run_id \
         ) s \
         where r.run_id = any ($1)",
    )
    .bind(run_ids)
    .fetch_all(connection)
    .await?)
}
