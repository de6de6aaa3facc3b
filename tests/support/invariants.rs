//! The invariants I1 to I11 of the SQL core, over everything that a test database holds.

use sqlx::PgPool;

/// The triggers and functions behind the check, applied to the template database.
pub(crate) const TRANSITION_LOG: &str = include_str!("transition_log.sql");

/// Fails the test with every invariant that does not hold, and what is wrong with it.
///
/// Call it at the end of any test that ran flows; between calls of SQL functions it must hold too.
#[track_caller]
pub(crate) fn assert_invariants(pool: &PgPool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let broken: Vec<(String, String)> =
            sqlx::query_as("select invariant, what from test_log.violations()")
                .fetch_all(pool)
                .await
                .expect("the invariants can be checked");
        let lines: Vec<String> = broken.iter().map(|(i, w)| format!("{i}: {w}")).collect();
        assert!(
            lines.is_empty(),
            "invariants broken (checked at {caller}):\n{}",
            lines.join("\n")
        );
    }
}
