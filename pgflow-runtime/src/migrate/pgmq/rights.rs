//! The rights on PGMQ that pgflow's functions need, which run with the rights of their owner.

use sqlx::PgConnection;

use super::{MigrateError, PgmqState, probe::REQUIRED};
use crate::migrate::unnamed;

/// The first version whose queues are part of a dump: earlier ones make them members of the
/// extension, whose rows `pg_dump` leaves out.
const DUMPED_SINCE: [u32; 2] = [1, 6];

/// Returns the statements that grant what is missing; none where nothing is.
pub(crate) async fn missing_grants(
    connection: &mut PgConnection,
) -> Result<Vec<String>, MigrateError> {
    let functions: Vec<&str> = REQUIRED.iter().map(super::probe::Required::name).collect();
    unnamed::query_scalar(include_str!("../sql/pgmq_rights.sql"))
        .bind(functions)
        .fetch_all(connection)
        .await
        .map_err(MigrateError::doing("looking up rights on PGMQ"))
}

/// Returns what an operator has to know of this PGMQ.
pub(crate) fn warnings(state: &PgmqState) -> Vec<String> {
    match state {
        PgmqState::Extension { version } if is_left_out(version) => vec![format!(
            "pg_dump leaves out all queues with extension pgmq {version}; expected 1.6 or newer, whose queues it \
             keeps; update it (`alter extension pgmq update`), or back up the whole server physically"
        )],
        _ => Vec::new(),
    }
}

fn is_left_out(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => [major, minor] < DUMPED_SINCE,
        // A version of a form that is not known is newer than those that are.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for version in ["0.9.0", "1.4.4", "1.5.1", "1.5"] {
            assert!(is_left_out(version), "{version}");
        }
        for version in ["1.6.0", "1.10.0", "1.13", "2.0", "next"] {
            assert!(!is_left_out(version), "{version}");
        }
    }
}
