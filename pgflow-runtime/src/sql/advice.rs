//! Advice about database errors whose cause is nearly always the same.

/// The end of a sentence that says that a call failed: with what helps, where that is known.
pub(crate) fn advice(error: &sqlx::Error) -> &'static str {
    let Some(code) = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
    else {
        return "";
    };
    match &*code {
        // No schema, no function, no table.
        "3F000" | "42883" | "42P01" => {
            "; schema pgflow is missing here, or is not that of this release: run `pgflow migrate`, or check which database is meant"
        }
        "42501" => "; the role lacks a right: docs/roles.md says who needs which",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::error::tests::sqlstate;

    #[test]
    fn a_missing_schema_and_a_missing_right_say_what_helps() {
        for (code, expected) in [
            ("3F000", "run `pgflow migrate`"),
            ("42501", "docs/roles.md"),
        ] {
            let text = sqlstate(code).to_string();
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(sqlstate("08006").to_string(), "the database call failed");
    }
}
