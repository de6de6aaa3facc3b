//! Everything that a database holds of pgflow and PGMQ, to show that what was refused changed
//! nothing.

use std::collections::BTreeSet;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;

/// Every row of every table of both schemas, and the names of their tables, indexes, sequences and
/// views.
pub(crate) async fn stored(pool: &PgPool) -> BTreeSet<String> {
    let relations: Vec<(String, bool)> = sqlx::query_as(
        "select format('%I.%I', n.nspname, c.relname), c.relkind in ('r', 'p')
         from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('pgflow', 'pgmq')",
    )
    .fetch_all(pool)
    .await
    .expect("the catalog can be read");
    let tables = relations.iter().filter(|(_, has_rows)| *has_rows);
    let rows: Vec<String> = tables
        .map(|(table, _)| format!("select '{table} ' || to_jsonb(t)::text from {table} t"))
        .collect();
    let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(rows.join(" union all ")))
        .fetch_all(pool)
        .await
        .expect("the tables can be read");
    let names = relations.into_iter().map(|(name, _)| name);
    rows.into_iter().chain(names).collect()
}

/// Awaits a call that must change nothing; returns what it returned.
pub(crate) async fn unchanged<T>(pool: &PgPool, call: impl Future<Output = T>) -> T {
    let before = stored(pool).await;
    let answer = call.await;
    assert_same(&before, &stored(pool).await);
    answer
}

#[track_caller]
pub(crate) fn assert_same(before: &BTreeSet<String>, after: &BTreeSet<String>) {
    let lost: Vec<_> = before.difference(after).collect();
    let new: Vec<_> = after.difference(before).collect();
    assert!(
        lost.is_empty() && new.is_empty(),
        "it was to change nothing; gone: {lost:#?}; new: {new:#?}"
    );
}

mod tests {
    use super::{assert_same, stored};
    use crate::support::TestDb;

    #[tokio::test]
    async fn any_change_shows() {
        let db = TestDb::new().await;
        let mut seen = vec![stored(&db.pool).await];
        for change in [
            "select pgmq.create('q')",
            "select pgmq.send('q', '{}')",
            "update pgmq.q_q set vt = vt + interval '1 second'",
            "update pgmq.meta set queue_name = 'Q'",
            "select pgflow.create_flow('f')",
            "update pgflow.installation set environment = 'local'",
            "create index on pgmq.q_q (read_ct)",
        ] {
            sqlx::query(change).execute(&db.pool).await.expect(change);
            let now = stored(&db.pool).await;
            assert!(!seen.contains(&now), "{change}");
            seen.push(now);
        }
        assert_same(seen.last().expect("one"), &stored(&db.pool).await);
    }
}
