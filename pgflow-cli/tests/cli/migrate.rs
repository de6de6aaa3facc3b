use crate::support::{Database, json, pgflow};

#[test]
fn migrate_says_what_it_did_and_the_second_time_that_nothing_was_to_do() {
    let database = Database::blank();
    let first = database.pgflow(&["migrate"]).done();
    for line in ["installed PGMQ", "applied 0001_core", "now at migration "] {
        assert!(first.contains(line), "{first}");
    }
    let second = database.pgflow(&["migrate"]).done();
    assert!(second.starts_with("up to date at migration "), "{second}");
    let third = json(&database.pgflow(&["migrate", "--json"]).done());
    assert_eq!(third["migrations"], json("[]"));
    assert_eq!(third["from_version"], third["to_version"]);
    assert!(["sql", "extension"].contains(&third["pgmq"]["state"].as_str().unwrap()));
}

#[test]
fn the_printed_script_needs_no_database_and_does_the_same() {
    let script = pgflow(&["migrate", "--print"]).done();
    assert!(script.starts_with("-- pgflow ") && script.ends_with("commit;\n"));
    let as_json = json(&pgflow(&["migrate", "--print", "--json"]).done());
    assert_eq!(
        as_json["sql"].as_str().unwrap().trim_end(),
        script.trim_end()
    );

    let database = Database::migrated();
    database.execute("drop schema pgflow cascade");
    database.execute(&script);
    let migrated = database.pgflow(&["migrate"]).done();
    assert!(migrated.starts_with("up to date"), "{migrated}");
}

#[test]
fn status_exits_with_4_until_the_database_is_up_to_date() {
    let database = Database::blank();
    let before = database.pgflow(&["status"]);
    assert_eq!(before.code, 4);
    for line in [
        "PGMQ         not installed",
        "0001_core",
        "pending",
        "not up to date: run `pgflow migrate`",
    ] {
        assert!(before.stdout.contains(line), "{before:?}");
    }
    database.pgflow(&["migrate"]).done();
    let after = database.pgflow(&["status"]).done();
    for line in [
        "environment  production",
        "functions    up to date",
        "up to date at migration ",
    ] {
        assert!(after.contains(line), "{after}");
    }
    let as_json = json(&database.pgflow(&["status", "--json"]).done());
    assert_eq!(as_json["is_current"], true);
    assert_eq!(as_json["applied"][0]["state"], "applied");

    database.execute("drop function pgflow.start_flow_with_states");
    let changed = database.pgflow(&["status"]);
    assert_eq!(changed.code, 4);
    assert!(
        changed.stdout.contains("functions    1 to apply"),
        "{changed:?}"
    );
}
