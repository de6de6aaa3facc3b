//! Names that the database does not know: what it has instead.

use pgflow_runtime::{
    inspect,
    sql::{CallError, RefusalCode},
};
use sqlx::PgExecutor;

use crate::{exit::Exit, failure::Failure};

/// The largest number of names that an error lists.
const LISTED: usize = 20;

/// Fails if no flow has this slug, after a query for the flow returned nothing.
pub(crate) async fn assert_flow(executor: impl PgExecutor<'_>, slug: &str) -> Result<(), Failure> {
    let known = inspect::flow_slugs(executor).await?;
    if known.iter().any(|other| other == slug) {
        return Ok(());
    }
    Err(flow(slug, &known))
}

/// The answer of a call about a flow. When the database refuses since it does not know the flow,
/// says which it has.
pub(crate) async fn flow_of<T>(
    answer: Result<T, CallError>,
    executor: impl PgExecutor<'_>,
    slug: &str,
) -> Result<T, Failure> {
    if let Err(CallError::Refused(refusal)) = &answer
        && refusal.code() == RefusalCode::UnknownFlow
    {
        assert_flow(executor, slug).await?;
    }
    Ok(answer?)
}

/// No flow has this slug.
pub(crate) fn flow(slug: &str, known: &[String]) -> Failure {
    let expected = if known.is_empty() {
        "it has no flows; a worker that starts defines its flow; check --database-url or DATABASE_URL"
            .to_owned()
    } else {
        format!(
            "expected the exact slug of one that it has: {}{}",
            list(known),
            meant(slug, known)
        )
    };
    Failure::new(
        Exit::NotFound,
        format!("flow \"{slug}\" is not defined in this database; {expected}"),
    )
}

/// No worker function has this name.
pub(crate) fn function(name: &str, known: &[String]) -> Failure {
    let expected = if known.is_empty() {
        "it has none; a worker that starts makes its function known".to_owned()
    } else {
        format!(
            "expected the exact name of one that it has: {}{}",
            list(known),
            meant(name, known)
        )
    };
    Failure::new(
        Exit::NotFound,
        format!("worker function \"{name}\" is not known in this database; {expected}"),
    )
}

/// No flow has a queue of this name.
pub(crate) fn queue(name: &str, known: &[String]) -> Failure {
    let expected = if known.is_empty() {
        "it has none; a worker that starts defines its flow and makes its queues".to_owned()
    } else {
        format!(
            "expected one that `pgflow queues` shows{}",
            meant(name, known)
        )
    };
    Failure::new(
        Exit::NotFound,
        format!("no flow of this database has a queue \"{name}\"; {expected}"),
    )
}

fn list(known: &[String]) -> String {
    let mut text = known[..known.len().min(LISTED)].join(", ");
    if known.len() > LISTED {
        text.push_str(", ..");
    }
    text
}

fn meant(name: &str, known: &[String]) -> String {
    let name = name.to_lowercase();
    known
        .iter()
        .map(|other| (strsim::jaro_winkler(&name, &other.to_lowercase()), other))
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map_or_else(String::new, |(_, other)| {
            format!("; did you mean \"{other}\"?")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_similar_name_is_suggested() {
        let known = names(&["crate_audit", "media_ingest"]);
        for (name, expected) in [
            ("crate_adit", "; did you mean \"crate_audit\"?"),
            ("Media_Ingest", "; did you mean \"media_ingest\"?"),
            ("orders", ""),
        ] {
            assert_eq!(meant(name, &known), expected);
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let known: Vec<String> = (0..30).map(|n| format!("flow_{n}")).collect();
        assert!(list(&known).ends_with("flow_19, .."));
        assert_eq!(list(&names(&["a", "b"])), "a, b");
    }
}
