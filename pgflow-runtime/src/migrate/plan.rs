//! Compares what is recorded with what the code contains. Pure: decides, and touches nothing.

use pgflow_migrations::{Function, Migration};

use super::{
    error::MigrateError,
    history::{History, LiveFunctions, RecordedFunction},
    source::{Source, digest},
};

/// The migrations to apply, in order; an error when the history is not the beginning of what the
/// code knows.
pub(super) fn pending(
    source: &Source,
    history: &History,
) -> Result<Vec<&'static Migration>, MigrateError> {
    let newest = history.level();
    if newest > source.latest() {
        return Err(MigrateError::DatabaseNewer {
            database: newest,
            code: source.latest(),
        });
    }
    let mut pending = Vec::new();
    for migration in source.migrations {
        let recorded = history
            .migrations
            .iter()
            .find(|recorded| recorded.version == migration.version);
        match recorded {
            Some(recorded) if recorded.digest != digest(migration.sql) => {
                return Err(MigrateError::Edited {
                    version: recorded.version,
                    name: recorded.name.clone(),
                });
            }
            Some(_) => {}
            None if migration.version < newest => {
                return Err(MigrateError::HistoryGap {
                    missing: migration.version,
                    newer: newest,
                });
            }
            None => pending.push(migration),
        }
    }
    pending.retain(|migration| {
        source
            .wanted()
            .any(|wanted| wanted.version == migration.version)
    });
    Ok(pending)
}

/// The functions whose text differs from the recorded one, or that are not there (any more).
pub(super) fn changed_functions(
    functions: &'static [Function],
    recorded: &[RecordedFunction],
    live: &LiveFunctions,
) -> Vec<&'static Function> {
    functions
        .iter()
        .filter(|function| {
            !recorded.iter().any(|recorded| {
                recorded.name == function.name
                    && recorded.digest == digest(function.sql)
                    && exists(live, recorded)
            })
        })
        .collect()
}

/// The recorded functions that the code no longer has, by name.
fn gone_functions<'a>(
    functions: &[Function],
    recorded: &'a [RecordedFunction],
) -> Vec<&'a RecordedFunction> {
    recorded
        .iter()
        .filter(|recorded| {
            !functions
                .iter()
                .any(|function| function.name == recorded.name)
        })
        .collect()
}

/// Returns the text that is recorded instead of a digest once the code no longer has a function.
pub(super) fn mark_of_gone(level: i32) -> String {
    format!("{GONE}{level}")
}

/// The rest of the mark is the level at which the function was first missed.
pub(super) const GONE: &str = "gone at level ";

fn gone_at(recorded: &RecordedFunction) -> Option<i32> {
    recorded.digest.strip_prefix(GONE)?.parse().ok()
}

/// The functions that the code has lost since the database was migrated last. They stay until the
/// tables change again: calls in flight, which began before the migration and continue after it,
/// still need them.
pub(super) fn newly_gone<'a>(
    functions: &[Function],
    recorded: &'a [RecordedFunction],
) -> Vec<&'a RecordedFunction> {
    let mut gone = gone_functions(functions, recorded);
    gone.retain(|recorded| gone_at(recorded).is_none());
    gone
}

/// The functions that the code has lost at an older level.
pub(super) fn long_gone<'a>(
    functions: &[Function],
    recorded: &'a [RecordedFunction],
    level: i32,
) -> Vec<&'a RecordedFunction> {
    let mut gone = gone_functions(functions, recorded);
    gone.retain(|recorded| gone_at(recorded).is_some_and(|since| since < level));
    gone
}

/// Returns the functions to drop after the others were applied: those whose file was removed before
/// an earlier migration, and recorded ones beside which applying created a new signature. (A second
/// signature that existed before belongs to another owner.)
pub(super) fn superseded<'a>(
    functions: &[Function],
    recorded: &'a [RecordedFunction],
    before: &LiveFunctions,
    after: &LiveFunctions,
    level: i32,
) -> Vec<&'a RecordedFunction> {
    let long_gone = long_gone(functions, recorded, level);
    recorded
        .iter()
        .filter(|recorded| exists(after, recorded))
        .filter(|recorded| {
            let known = signatures(before, &recorded.name);
            long_gone.iter().any(|gone| gone.name == recorded.name)
                || signatures(after, &recorded.name)
                    .iter()
                    .any(|found| *found != recorded.signature && !known.contains(found))
        })
        .collect()
}

fn signatures<'a>(live: &'a LiveFunctions, name: &str) -> &'a [String] {
    live.get(name).map_or(&[], Vec::as_slice)
}

fn exists(live: &LiveFunctions, recorded: &RecordedFunction) -> bool {
    signatures(live, &recorded.name).contains(&recorded.signature)
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;
    use crate::migrate::history::RecordedMigration;

    const MIGRATIONS: &[Migration] = &[
        migration(1, "one"),
        migration(2, "two"),
        migration(3, "three"),
    ];
    const FUNCTIONS: &[Function] = &[function("a", "text of a"), function("b", "text of b")];

    const fn migration(version: i32, sql: &'static str) -> Migration {
        Migration {
            version,
            name: "any",
            sql,
        }
    }

    const fn function(name: &'static str, sql: &'static str) -> Function {
        Function { name, sql }
    }

    fn source(level: Option<i32>) -> Source {
        Source {
            migrations: MIGRATIONS,
            functions: FUNCTIONS,
            level,
        }
    }

    fn history(recorded: &[(i32, &str)]) -> History {
        let migrations = recorded.iter().map(|(version, sql)| RecordedMigration {
            version: *version,
            name: "any".to_owned(),
            digest: digest(sql),
            applied_at: Utc::now(),
        });
        History {
            migrations: migrations.collect(),
            ..History::default()
        }
    }

    fn recorded(name: &str, sql: &str) -> RecordedFunction {
        recorded_as(name, digest(sql))
    }

    fn recorded_as(name: &str, digest: String) -> RecordedFunction {
        RecordedFunction {
            name: name.to_owned(),
            signature: format!("pgflow.{name}()"),
            digest,
        }
    }

    fn live(functions: &[(&str, &[&str])]) -> LiveFunctions {
        functions
            .iter()
            .map(|(name, found)| {
                (
                    (*name).to_owned(),
                    found.iter().map(ToString::to_string).collect(),
                )
            })
            .collect()
    }

    fn versions(pending: &[&Migration]) -> Vec<i32> {
        pending.iter().map(|migration| migration.version).collect()
    }

    #[test]
    fn what_is_not_recorded_is_pending_up_to_the_level() {
        let everything = pending(&source(None), &history(&[])).unwrap();
        assert_eq!(versions(&everything), [1, 2, 3]);
        let rest = pending(&source(None), &history(&[(1, "one")])).unwrap();
        assert_eq!(versions(&rest), [2, 3]);
        let some = pending(&source(Some(2)), &history(&[(1, "one")])).unwrap();
        assert_eq!(versions(&some), [2]);
        let all = history(&[(1, "one"), (2, "two"), (3, "three")]);
        assert!(pending(&source(None), &all).unwrap().is_empty());
        assert!(pending(&source(Some(1)), &all).unwrap().is_empty());
    }

    #[test]
    fn a_history_that_does_not_fit_is_refused() {
        let newer = pending(&source(None), &history(&[(1, "one"), (4, "four")]));
        assert!(matches!(
            newer,
            Err(MigrateError::DatabaseNewer {
                database: 4,
                code: 3
            })
        ));
        let edited = pending(&source(None), &history(&[(1, "one"), (2, "zwei")]));
        assert!(matches!(
            edited,
            Err(MigrateError::Edited { version: 2, .. })
        ));
        let gap = pending(&source(None), &history(&[(1, "one"), (3, "three")]));
        assert!(matches!(
            gap,
            Err(MigrateError::HistoryGap {
                missing: 2,
                newer: 3
            })
        ));
    }

    #[test]
    fn functions_are_applied_below_no_level_but_the_latest() {
        assert!(source(None).wanted_functions().is_some());
        assert!(source(Some(3)).wanted_functions().is_some());
        assert!(source(Some(2)).wanted_functions().is_none());
    }

    #[test]
    fn a_function_is_changed_when_its_text_differs_or_it_is_not_there() {
        let names = |recorded: &[RecordedFunction], live: &LiveFunctions| -> Vec<&str> {
            changed_functions(FUNCTIONS, recorded, live)
                .iter()
                .map(|function| function.name)
                .collect()
        };
        let both = live(&[("a", &["pgflow.a()"]), ("b", &["pgflow.b()"])]);
        let current = [recorded("a", "text of a"), recorded("b", "text of b")];
        assert!(names(&current, &both).is_empty());
        assert_eq!(names(&[], &both), ["a", "b"]);
        assert_eq!(names(&current[..1], &both), ["b"]);
        assert_eq!(
            names(&[recorded("a", "older"), recorded("b", "text of b")], &both),
            ["a"]
        );
        assert_eq!(names(&current, &live(&[("a", &["pgflow.a()"])])), ["b"]);
    }

    #[test]
    fn long_gone_and_replaced_signatures_are_superseded_and_foreign_ones_are_left_alone() {
        let before = live(&[
            ("a", &["pgflow.a()"]),
            ("old", &["pgflow.old()"]),
            ("b", &["pgflow.b()", "pgflow.b(xml)"]),
        ]);
        let mut after = before.clone();
        after.insert(
            "a".to_owned(),
            vec!["pgflow.a()".to_owned(), "pgflow.a(integer)".to_owned()],
        );
        // A numbered file had dropped it, and its file brought it back.
        after.insert("again".to_owned(), vec!["pgflow.again()".to_owned()]);
        let functions = [FUNCTIONS, &[function("again", "")]].concat();
        let recorded = [
            recorded("a", ""),
            recorded("again", ""),
            recorded("b", ""),
            recorded("lost", ""),
            recorded_as("old", mark_of_gone(2)),
            recorded("older", ""),
        ];
        let dropped = |level| -> Vec<&str> {
            superseded(&functions, &recorded, &before, &after, level)
                .iter()
                .map(|function| function.signature.as_str())
                .collect()
        };
        assert_eq!(dropped(2), ["pgflow.a()"]);
        assert_eq!(dropped(3), ["pgflow.a()", "pgflow.old()"]);
        let newly: Vec<&str> = newly_gone(&functions, &recorded)
            .iter()
            .map(|gone| gone.name.as_str())
            .collect();
        assert_eq!(newly, ["lost", "older"]);
    }
}
