//! The migration as a SQL script. It makes in SQL the decisions that `plan` makes in Rust, and a
//! test compares both.

use std::fmt::Write as _;

use pgflow_migrations::{Function, Migration, PROTOCOL_VERSION};

use super::{
    apply::{BOOKKEEPING, GRANTS_AFTER, GRANTS_BEFORE, NAME_COLUMNS, PGMQ_RIGHTS, locking},
    lock,
    pgmq::REQUIRED,
    plan::GONE,
    public_rights,
    session::{OLDEST_SERVER, SETTINGS, TABLE_LOCK_WAIT},
    source::{Source, digest},
};

const LIVE_FUNCTIONS: &str = include_str!("../sql/live_functions.sql");

pub(super) fn write(source: &Source) -> String {
    let mut script = head(source);
    script.push_str(&history(source));
    script.push_str(GRANTS_BEFORE);
    if let Some(last) = source.wanted().last() {
        script.push_str(&locking(last.version));
    }
    for migration in source.wanted() {
        script.push_str(&guarded(migration));
    }
    if let Some(functions) = source.wanted_functions() {
        if !functions.is_empty() {
            script.push_str(PGMQ_RIGHTS);
        }
        script.push_str(&functions_section(source, functions));
        script.push_str(GRANTS_AFTER);
    }
    script.push_str("\ncommit;\n");
    script
}

fn head(source: &Source) -> String {
    let required: Vec<String> = REQUIRED
        .iter()
        .map(|call| {
            format!(
                "('{}', array[{}]::text[])",
                call.name(),
                quoted(call.arguments())
            )
        })
        .collect();
    fill(
        include_str!("head.sql"),
        &[
            ("release", env!("CARGO_PKG_VERSION")),
            ("latest", &source.latest().to_string()),
            ("name_columns", NAME_COLUMNS),
            ("settings", SETTINGS),
            ("lock_wait", &lock::WAIT.as_secs().to_string()),
            ("lock_key", &lock::KEY.to_string()),
            ("table_lock_wait", &TABLE_LOCK_WAIT.as_secs().to_string()),
            ("oldest_server", &OLDEST_SERVER.to_string()),
            ("required", &required.join(",\n")),
            ("pgmq_functions", include_str!("../sql/pgmq_functions.sql")),
            ("schema_state", include_str!("../sql/schema_state.sql")),
            ("bookkeeping", BOOKKEEPING),
        ],
    )
}

fn history(source: &Source) -> String {
    let migrations: Vec<String> = source
        .migrations
        .iter()
        .map(|file| {
            format!(
                "({}, '{}', '{}')",
                file.version,
                file.name,
                digest(file.sql)
            )
        })
        .collect();
    fill(
        include_str!("history.sql"),
        &[
            ("latest", &source.latest().to_string()),
            ("migrations", &migrations.join(",\n")),
        ],
    )
}

fn guarded(migration: &Migration) -> String {
    fill(
        include_str!("migration.sql"),
        &[
            ("tag", &unused_tag(migration)),
            ("version", &migration.version.to_string()),
            ("name", migration.name),
            ("digest", &digest(migration.sql)),
            ("sql", migration.sql.trim_end()),
        ],
    )
}

/// A dollar-quote tag that the text does not contain.
fn unused_tag(migration: &Migration) -> String {
    let mut tag = format!("migration_{:04}", migration.version);
    while migration.sql.contains(&format!("${tag}")) {
        tag.push('_');
    }
    tag
}

fn functions_section(source: &Source, functions: &[Function]) -> String {
    let mut section = fill(
        include_str!("functions_head.sql"),
        &[("live_functions", LIVE_FUNCTIONS)],
    );
    let mut known = Vec::new();
    for function in functions {
        known.push(format!(
            "\"{}\": \"{}\"",
            function.name,
            digest(function.sql)
        ));
        // Writing to a String can't fail.
        let _ = write!(
            section,
            "\n-- {}\n{}\n",
            function.name,
            function.sql.trim_end()
        );
    }
    section.push_str(&fill(
        include_str!("functions_tail.sql"),
        &[
            ("live_functions", LIVE_FUNCTIONS),
            ("functions", &format!("{{{}}}", known.join(", "))),
            ("public_rights", public_rights::QUERY.trim_end()),
            ("protocol", &PROTOCOL_VERSION.to_string()),
            ("gone", GONE),
            ("level", &source.latest().to_string()),
        ],
    ));
    section
}

fn quoted(types: &[&str]) -> String {
    let types: Vec<String> = types.iter().map(|name| format!("'{name}'")).collect();
    types.join(", ")
}

/// Replaces `{name}` by its value, in one pass: a value may contain braces. One that stands alone
/// at the start of its line is indented like it.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let (before, from_brace) = rest.split_at(start);
        filled.push_str(before);
        let placeholder = from_brace.find('}').and_then(|end| {
            let (_, value) = values
                .iter()
                .find(|(name, _)| *name == &from_brace[1..end])?;
            Some((indented(value.trim_end(), &filled), end + 1))
        });
        let (text, length) = placeholder.unwrap_or_else(|| ("{".to_owned(), 1));
        filled.push_str(&text);
        rest = &from_brace[length..];
    }
    filled.push_str(rest);
    filled
}

fn indented(value: &str, before: &str) -> String {
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.is_empty() || !line.trim().is_empty() {
        return value.to_owned();
    }
    value.replace('\n', &format!("\n{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once_and_other_braces_stay() {
        let filled = fill("a {x} b {y} '{}' {z}", &[("x", "{y}"), ("y", "2")]);
        assert_eq!(filled, "a {y} b 2 '{}' {z}");
    }

    #[test]
    fn a_value_alone_on_its_line_is_indented_like_it() {
        let filled = fill("(\n  {x}\n) {x}\n{x}", &[("x", "1\n2\n")]);
        assert_eq!(filled, "(\n  1\n  2\n) 1\n2\n1\n2");
    }

    #[test]
    fn a_tag_does_not_occur_in_the_text_that_it_quotes() {
        let tag = |sql| {
            unused_tag(&Migration {
                version: 7,
                name: "any",
                sql,
            })
        };
        assert_eq!(tag("select 1"), "migration_0007");
        assert_eq!(
            tag("do $migration_0007$ begin end $migration_0007$"),
            "migration_0007_"
        );
    }

    #[test]
    fn no_placeholder_is_left_in_the_script() {
        let script = write(&Source::EMBEDDED);
        for name in [
            "release",
            "latest",
            "settings",
            "required",
            "live_functions",
            "functions",
            "protocol",
            "tag",
        ] {
            assert!(!script.contains(&format!("{{{name}}}")), "{name}");
        }
    }
}
