//! The effects of handlers, as the world outside pgflow sees them: one row for each call of a
//! handler.

use std::time::Duration;

use pgflow::prelude::*;
use sqlx::PgPool;
use uuid::Uuid;

const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn create_table(pool: &PgPool) {
    // No foreign keys, and no unique attempts: the table must be able to show what must not be.
    sqlx::raw_sql(
        "create table effects (
             call_id uuid primary key, run_id uuid not null, step_slug text not null, task_index int not null,
             attempt int not null, is_good boolean not null, pid int not null, at timestamptz not null default clock_timestamp()
         )",
    )
    .execute(pool)
    .await
    .expect("the table can be made");
}

/// Leaves the one effect of this call, however often the connection breaks; `is_good` when the
/// attempt then succeeds unless something from outside hinders it.
pub(crate) async fn record(ctx: &StepContext, is_good: bool) {
    let call_id = Uuid::new_v4();
    let pid = i32::try_from(std::process::id()).expect("process ids are small");
    let insert = || {
        sqlx::query(
            "insert into effects (call_id, run_id, step_slug, task_index, attempt, is_good, pid)
             values ($1, $2, $3, $4, $5, $6, $7) on conflict (call_id) do nothing",
        )
        .bind(call_id)
        .bind(ctx.run_id())
        .bind(ctx.step_slug())
        .bind(ctx.task_index())
        .bind(ctx.attempt())
        .bind(is_good)
        .bind(pid)
        .execute(ctx.pool())
    };
    // The attempt's timeout ends this when the database stays away.
    while let Err(error) = insert().await {
        tracing::warn!(%error, "the effect could not be recorded, it is tried again");
        tokio::time::sleep(PAUSE).await;
    }
}
