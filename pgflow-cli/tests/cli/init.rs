//! Preparing a database.

use crate::support::{Database, json};

#[test]
fn a_blank_database_is_migrated_and_meant_for_production() {
    let database = Database::blank();
    let text = database.pgflow(&["init"]).done();
    assert!(text.ends_with("\nenvironment: production\n"), "{text}");
    database.pgflow(&["status"]).done();
}

#[test]
fn with_local_it_is_marked_once_and_for_good() {
    let database = Database::blank();
    for _ in 0..2 {
        let answer = json(&database.pgflow(&["init", "--local", "--json"]).done());
        assert_eq!(answer["environment"], "local");
    }
    let answer = json(&database.pgflow(&["init", "--json"]).done());
    assert_eq!(answer["environment"], "local");
}

#[test]
fn a_database_with_flows_is_marked_with_a_yes_only() {
    let database = Database::with_flow();
    let refused = database.pgflow(&["init", "--local"]).failed(2);
    assert!(
        refused.contains("this database has 1 flow, and a local database deletes a flow"),
        "{refused}"
    );
    let is_local = "select count(*) from pgflow.installation where environment = 'local'";
    assert_eq!(database.number(is_local), 0);
    database.pgflow(&["init", "--yes"]).failed(2);
    database.pgflow(&["init", "--local", "--yes"]).done();
    assert_eq!(database.number(is_local), 1);
}
