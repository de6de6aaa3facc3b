//! The SQL of `docs/http-mode.md`, `docs/operations.md` and `docs/rollout.md`, run as it stands
//! there.

mod http_mode;
mod page;
mod rollout;
mod watch;

use sqlx::{AssertSqlSafe, PgPool, postgres::PgRow};

use page::Block;

/// Runs a block; returns its rows.
async fn rows(pool: &PgPool, block: &Block) -> Vec<PgRow> {
    let rows = sqlx::raw_sql(AssertSqlSafe(block.sql.clone()))
        .fetch_all(pool)
        .await;
    rows.unwrap_or_else(|error| panic!("{} under {:?}: {error}", block.sql, block.heading))
}

async fn run(pool: &PgPool, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}
