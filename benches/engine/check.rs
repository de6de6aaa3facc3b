//! The check that the measured runs are correct: a fast engine must not lose tasks.

use pgflow::sqlx::{self, AssertSqlSafe, PgPool, types::Uuid};

use crate::{Result, flows::Data};

/// Fails unless all of these runs have completed, with so many tasks each that returned `output`,
/// and the flow's queues are empty.
pub(crate) async fn check(
    pool: &PgPool,
    flow_slug: &str,
    runs: &[Uuid],
    tasks: usize,
    output: &Data,
) -> Result<()> {
    let (completed, found): (i64, i64) = sqlx::query_as(
        "select count(*) filter (where r.status = 'completed' and r.flow_slug = $2), count(*)
         from pgflow.runs r where r.run_id = any ($1)",
    )
    .bind(runs)
    .bind(flow_slug)
    .fetch_one(pool)
    .await?;
    expect(flow_slug, "completed runs", completed, runs.len())?;
    expect(flow_slug, "runs", found, runs.len())?;

    // A task that was tried twice did work that is not counted.
    let (completed, found, attempts): (i64, i64, i64) = sqlx::query_as(
        "select count(*) filter (where t.status = 'completed' and t.output = to_jsonb($2::text)), count(*),
            coalesce(sum(t.attempts_count), 0)::int8
         from pgflow.step_tasks t where t.run_id = any ($1)",
    )
    .bind(runs)
    .bind(output.as_str())
    .fetch_one(pool)
    .await?;
    let tasks = runs.len() * tasks;
    expect(flow_slug, "completed tasks", completed, tasks)?;
    expect(flow_slug, "tasks", found, tasks)?;
    expect(flow_slug, "attempts", attempts, tasks)?;

    let mut messages = 0;
    for queue in queues(pool, flow_slug).await? {
        let sql = format!("select count(*) from pgmq.q_{queue}");
        messages += sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql))
            .fetch_one(pool)
            .await?;
    }
    expect(flow_slug, "messages left in queues", messages, 0)
}

fn expect(flow_slug: &str, what: &str, found: i64, expected: usize) -> Result<()> {
    if usize::try_from(found) == Ok(expected) {
        return Ok(());
    }
    Err(format!("{flow_slug}: there are {found} {what}, and not {expected}").into())
}

/// The flow's queues.
pub(crate) async fn queues(pool: &PgPool, flow_slug: &str) -> Result<Vec<String>> {
    let sql = "select distinct queue_name from pgflow.steps where flow_slug = $1 order by 1";
    Ok(sqlx::query_scalar(sql)
        .bind(flow_slug)
        .fetch_all(pool)
        .await?)
}
