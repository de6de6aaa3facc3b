//! The removal of the remains of earlier measurements, so that no measurement is slower for being
//! later.

use std::fmt::Write;

use pgflow::sqlx::{self, AssertSqlSafe, PgPool};

use crate::{Result, check::queues, flows::PREFIX};

/// Empties the tables of runs and the flow's queues. Where the runs of others lie there as well, or
/// a history, only the flow's unfinished runs go.
pub(crate) async fn clean(pool: &PgPool, flow_slug: &str, keep_ended: bool) -> Result<()> {
    let queues = queues(pool, flow_slug).await?;
    let foreign: bool = sqlx::query_scalar(
        "select exists (select from pgflow.runs where not starts_with(flow_slug, $1))",
    )
    .bind(PREFIX)
    .fetch_one(pool)
    .await?;
    if foreign || keep_ended {
        unfinished(pool, flow_slug, &queues).await
    } else {
        everything(pool, &queues).await
    }
}

async fn everything(pool: &PgPool, queues: &[String]) -> Result<()> {
    let mut tables = "pgflow.claims, pgflow.step_tasks, pgflow.step_states, pgflow.runs".to_owned();
    for queue in queues {
        let _ = write!(tables, ", pgmq.q_{queue}, pgmq.a_{queue}");
    }
    sqlx::raw_sql(AssertSqlSafe(format!("truncate {tables}")))
        .execute(pool)
        .await?;
    Ok(())
}

async fn unfinished(pool: &PgPool, flow_slug: &str, queues: &[String]) -> Result<()> {
    let mut transaction = pool.begin().await?;
    let runs: Vec<sqlx::types::Uuid> = sqlx::query_scalar(
        "select run_id from pgflow.runs where flow_slug = $1 and status = 'started'",
    )
    .bind(flow_slug)
    .fetch_all(&mut *transaction)
    .await?;
    if runs.is_empty() {
        return Ok(());
    }
    for queue in queues {
        let delete = format!("delete from pgmq.q_{queue}");
        sqlx::raw_sql(AssertSqlSafe(delete))
            .execute(&mut *transaction)
            .await?;
    }
    for table in ["step_tasks", "step_states", "runs"] {
        let delete = format!("delete from pgflow.{table} where run_id = any ($1)");
        sqlx::query(AssertSqlSafe(delete))
            .bind(&runs)
            .execute(&mut *transaction)
            .await?;
    }
    sqlx::query("delete from pgflow.claims where run_ids && $1")
        .bind(&runs)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}
