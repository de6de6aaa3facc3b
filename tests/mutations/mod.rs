//! Faults that the tests must find: one file each, which tells the function, the exact text and
//! what to put in its place.
//!
//! The script `run` plants one after the other and runs the tests: `PGFLOW_TEST_MUTATION` names the
//! fault that the databases of a test program get.

use std::path::PathBuf;
use std::{env, fs};

use pgflow_migrations::FUNCTIONS;
use serde::Deserialize;

/// The variable that names the fault to plant.
pub(crate) const VARIABLE: &str = "PGFLOW_TEST_MUTATION";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    function: String,
    /// The module whose tests must find it if the model does not.
    tests: String,
    /// Occurs exactly once.
    find: String,
    replace: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mutations")
}

/// The fault that the environment asks for.
pub(crate) fn chosen() -> Option<Mutation> {
    let name = env::var(VARIABLE).ok()?;
    Some(Mutation::named(&name))
}

impl Mutation {
    pub(crate) fn named(name: &str) -> Self {
        let path = folder().join(format!("{name}.toml"));
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The function with the fault in it, or why it can't be planted any more.
    pub(crate) fn sql(&self) -> Result<String, String> {
        let function = FUNCTIONS.iter().find(|known| known.name == self.function);
        let Some(function) = function else {
            return Err(format!("there is no function {}", self.function));
        };
        match function.sql.matches(&self.find).count() {
            1 => Ok(function.sql.replacen(&self.find, &self.replace, 1)),
            times => Err(format!(
                "{}: {:?} is found {times} times; expected once; write the same fault into the text of today",
                self.function, self.find
            )),
        }
    }
}

mod tests {
    use std::fs;

    use sqlx::{AssertSqlSafe, Connection};

    use super::{Mutation, folder};
    use crate::support::TestDb;

    #[tokio::test]
    async fn each_can_still_be_planted() {
        let db = TestDb::new().await;
        let mut connection = db.pool.acquire().await.expect("a connection");
        let mut names: Vec<String> = fs::read_dir(folder())
            .expect("the folder can be read")
            .filter_map(|entry| {
                let name = entry.expect("an entry").file_name();
                let name = name.into_string().expect("a file name is UTF-8");
                name.strip_suffix(".toml").map(str::to_owned)
            })
            .collect();
        names.sort();
        assert!(names.len() >= 14, "{names:?}");
        let mut wrong = Vec::new();
        for name in names {
            let mutation = Mutation::named(&name);
            let mut transaction = connection.begin().await.expect("a transaction");
            match mutation.sql() {
                Err(reason) => wrong.push(format!("{name}: {reason}")),
                Ok(sql) => {
                    let planted = sqlx::raw_sql(AssertSqlSafe(sql));
                    let planted = planted.execute(&mut *transaction).await;
                    wrong.extend(planted.err().map(|error| format!("{name}: {error}")));
                }
            }
            transaction.rollback().await.expect("it can be undone");
            let module = mutation.tests.replace("::", "/");
            let tests = folder().with_file_name(module);
            if !tests.with_extension("rs").exists() && !tests.join("mod.rs").exists() {
                wrong.push(format!("{name}: there are no tests {}", mutation.tests));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
