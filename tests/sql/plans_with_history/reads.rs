//! The reads of a transaction.

use std::fmt::{self, Display};

use sqlx::FromRow;
use sqlx::postgres::PgConnection;

/// The tables of which a handful of rows is all there ever is: a row for each flow, step, function
/// or running worker. Reading them from end to end is what Postgres does best.
const SMALL: [&str; 6] = [
    "deps",
    "flows",
    "installation",
    "steps",
    "worker_functions",
    "workers",
];

/// Entries of an index that may be read besides: of dead rows, and at the ends of an index, where
/// the planner looks for its bounds.
const SLACK: i64 = 250;

/// The reads of a table or an index since the session last reported its counts: within a
/// transaction, only the difference of two is meaningful.
#[derive(Debug, Clone, FromRow)]
struct Count {
    relation: String,
    is_index: bool,
    scans: i64,
    /// Rows of a sequential scan, or entries of an index.
    returned: i64,
    /// Rows that an index led to.
    fetched: i64,
}

#[derive(Debug)]
pub(super) struct Reads(Vec<Count>);

impl Reads {
    pub(super) async fn so_far(session: &mut PgConnection) -> Self {
        let counts = sqlx::query_as(
            "select relname::text as relation, relkind = 'i' as is_index, pg_stat_get_xact_numscans(oid) as scans,
                pg_stat_get_xact_tuples_returned(oid) as returned, pg_stat_get_xact_tuples_fetched(oid) as fetched
             from pg_class
             where relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace) and relkind in ('r', 'i')
             order by relname",
        )
        .fetch_all(session)
        .await
        .expect("counts can be read");
        Self(counts)
    }

    /// Returns the reads since an earlier count.
    pub(super) fn since(mut self, earlier: &Self) -> Self {
        assert_eq!(self.0.len(), earlier.0.len(), "the same relations");
        for (count, earlier) in self.0.iter_mut().zip(&earlier.0) {
            assert_eq!(count.relation, earlier.relation);
            count.scans -= earlier.scans;
            count.returned -= earlier.returned;
            count.fetched -= earlier.fetched;
        }
        self.0.retain(|count| count.scans > 0);
        self
    }

    /// The tables that were read from end to end although they grow.
    pub(super) fn sequential(&self) -> Vec<String> {
        let scanned = self.0.iter().filter(|count| !count.is_index);
        scanned
            .filter(|count| !SMALL.contains(&count.relation.as_str()))
            // It holds what runs; `above` sees to it that it does.
            .filter(|count| count.relation != "claims")
            .map(|count| format!("{} is read from end to end", count.relation))
            .collect()
    }

    /// The relations of which more rows than this were read, or clearly more entries.
    pub(super) fn above(&self, limit: i64) -> Vec<String> {
        let much = self.0.iter().filter(|count| {
            // Of small tables, as often as the plan likes.
            let is_much = count.fetched > limit || count.returned > limit + SLACK;
            // `workers.rs` counts what is read of workers where it matters.
            is_much
                && !SMALL.contains(&count.relation.as_str())
                && !count.relation.starts_with("idx_workers")
                && count.relation != "workers_pkey"
        });
        much.map(ToString::to_string).collect()
    }

    /// Returns the largest number of rows or entries read of one relation, among those whose name
    /// contains this.
    pub(super) fn of(&self, name: &str) -> i64 {
        let named = self.0.iter().filter(|count| count.relation.contains(name));
        let rows = named.map(|count| count.returned.max(count.fetched));
        rows.max().unwrap_or(0)
    }

    /// Returns whether the index was searched.
    pub(super) fn used(&self, index: &str) -> bool {
        self.0
            .iter()
            .any(|count| count.is_index && count.relation == index)
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            relation,
            scans,
            returned,
            fetched,
            ..
        } = self;
        write!(
            f,
            "{relation}: {returned} read and {fetched} fetched in {scans} scans"
        )
    }
}

impl Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|count| writeln!(f, "  {count}"))
    }
}
