//! The rules for the names and texts of the SQL files; `build.rs` refuses files that break them.

/// Splits `0002_queue_identity.sql` into 2 and `queue_identity`.
pub(crate) fn parse_migration(file_name: &str) -> Result<(i32, &str), String> {
    let expected = || {
        format!(
            "`{file_name}` is not the name of a migration; expected four digits from 0001, `_` and a lower-case name, \
             as in `0002_queue_identity.sql`; rename the file"
        )
    };
    let stem = file_name.strip_suffix(".sql").ok_or_else(expected)?;
    let (digits, name) = stem.split_once('_').ok_or_else(expected)?;
    let numbered = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !numbered || !is_sql_name(name) {
        return Err(expected());
    }
    match digits.parse() {
        Ok(version) if version > 0 => Ok((version, name)),
        _ => Err(expected()),
    }
}

/// Versions count from 1 without gaps: two branches that both add a migration collide here, not in
/// a database.
pub(crate) fn check_sequence(sorted_versions: &[i32]) -> Result<(), String> {
    for (version, expected) in sorted_versions.iter().zip(1..) {
        if *version < expected {
            return Err(format!(
                "migration {version:04} exists twice; expected each number once; renumber the newer file"
            ));
        }
        if *version > expected {
            return Err(format!(
                "migration {expected:04} is missing before {version:04}; expected numbers without gaps from 0001; \
                 renumber the file"
            ));
        }
    }
    Ok(())
}

/// The function that a file of `functions/` defines: its stem, and nothing else may be in it.
pub(crate) fn parse_function<'a>(file_name: &'a str, sql: &str) -> Result<&'a str, String> {
    let name = file_name
        .strip_suffix(".sql")
        .filter(|stem| is_sql_name(stem))
        .ok_or_else(|| {
            format!(
                "`functions/{file_name}` is not named after a function; expected `<function>.sql` in lower case; \
                 rename the file"
            )
        })?;
    let definitions: Vec<String> = sql
        .lines()
        .map(|line| line.trim_start().to_ascii_lowercase())
        .filter(|line| {
            line.starts_with("create or replace ") || line.starts_with("create function ")
        })
        .collect();
    let start = format!("create or replace function pgflow.{name}(");
    match definitions.as_slice() {
        [only] if only.starts_with(&start) => Ok(name),
        _ => Err(format!(
            "`functions/{file_name}` must define exactly the function of its name; expected one line that starts \
             with `{start}` and no other definition, found {}; move anything else to a file of its own",
            definitions.len()
        )),
    }
}

fn is_sql_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_named_by_number_and_name() {
        assert_eq!(parse_migration("0001_core.sql"), Ok((1, "core")));
        assert_eq!(parse_migration("0123_a_b2.sql"), Ok((123, "a_b2")));
        for wrong in [
            "1_core.sql",
            "0001core.sql",
            "0001_Core.sql",
            "0001_.sql",
            "00+1_core.sql",
            "0000_core.sql",
            "0001_core.txt",
        ] {
            assert!(parse_migration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn gaps_and_duplicates_are_refused() {
        assert_eq!(check_sequence(&[]), Ok(()));
        assert_eq!(check_sequence(&[1, 2, 3]), Ok(()));
        let gap = check_sequence(&[1, 3]).unwrap_err();
        assert!(gap.contains("0002 is missing before 0003"), "{gap}");
        let late = check_sequence(&[2]).unwrap_err();
        assert!(late.contains("0001 is missing"), "{late}");
        let twice = check_sequence(&[1, 2, 2]).unwrap_err();
        assert!(twice.contains("0002 exists twice"), "{twice}");
    }

    #[test]
    fn a_function_file_defines_the_function_of_its_name() {
        let good = "-- Why.\nCREATE OR REPLACE FUNCTION pgflow.is_local()\nreturns boolean as $$ select true $$;";
        assert_eq!(parse_function("is_local.sql", good), Ok("is_local"));
        assert!(parse_function("is_remote.sql", good).is_err());
        assert!(parse_function("Is_Local.sql", good).is_err());
        assert!(parse_function("is_local.sql", "").is_err());
        assert!(parse_function("is_local.sql", &format!("{good}\n{good}")).is_err());
        let extended = good.replace("is_local", "is_local_too");
        assert!(parse_function("is_local.sql", &extended).is_err());
    }
}
