//! Queries without named statements. A named statement stays with the server's connection. A
//! transaction pooler passes that connection to other clients, for whom the name is then taken.

use sqlx::{
    FromRow, Postgres, SqlSafeStr,
    postgres::{PgArguments, PgRow},
    query::{Query, QueryAs, QueryScalar},
};

pub(in crate::migrate) fn query<'q>(sql: impl SqlSafeStr) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql).persistent(false)
}

pub(in crate::migrate) fn query_as<'q, T>(
    sql: impl SqlSafeStr,
) -> QueryAs<'q, Postgres, T, PgArguments>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    sqlx::query_as(sql).persistent(false)
}

pub(in crate::migrate) fn query_scalar<'q, T>(
    sql: impl SqlSafeStr,
) -> QueryScalar<'q, Postgres, T, PgArguments>
where
    (T,): for<'r> FromRow<'r, PgRow>,
{
    sqlx::query_scalar(sql).persistent(false)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    fn named_queries(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("the folder of this module") {
            let path = entry.expect("readable").path();
            // A worker asks by its own pool whether a database is ready.
            if path.is_dir() {
                found.extend(named_queries(&path));
            } else if !path.ends_with("unnamed.rs") && !path.ends_with("installed.rs") {
                let text = fs::read_to_string(&path).expect("text");
                let named = text.lines().filter(|line| line.contains("sqlx::query"));
                found.extend(named.map(|line| format!("{}: {line}", path.display())));
            }
        }
        found
    }

    #[test]
    fn the_migrator_names_no_statement() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/migrate");
        assert_eq!(named_queries(&folder), Vec::<String>::new());
    }
}
