//! The choice of the database, and the errors when there is none.

use crate::support::{Database, json, pgflow};

#[test]
fn help_lists_the_exit_codes() {
    let help = pgflow(&["--help"]).done();
    for line in [
        "Exit codes:",
        "3    no such flow, run, step or worker function",
        "5    the run that was asked for has failed",
    ] {
        assert!(help.contains(line), "{help}");
    }
}

#[test]
fn a_command_without_a_database_says_how_to_name_one() {
    for arguments in [
        &["migrate"][..],
        &["status"],
        &["runs"],
        &["queues"],
        &["workers", "list"],
        &["workers", "drain", "any"],
        &["start", "any", "--input", "1"],
        &["why", "00000000-0000-0000-0000-000000000001", "any"],
        &["prune", "--older-than", "1d", "--yes"],
        &["delete-flow", "any", "--yes"],
    ] {
        let error = pgflow(arguments).failed(2);
        assert!(
            error.starts_with("error: no database was named; expected --database-url"),
            "{error}"
        );
    }
}

#[test]
fn a_password_file_that_can_not_be_read_is_no_news() {
    let database = Database::migrated();
    let ran = crate::support::command(&["runs"])
        .env("DATABASE_URL", &database.url)
        // A file is no directory.
        .env("PGPASSFILE", "/etc/passwd/pgpass")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "");
    assert!(ran.status.success());
}

#[test]
fn the_option_wins_over_the_environment() {
    let (database, other) = (Database::migrated(), Database::blank());
    let found = other.pgflow(&["runs", "--database-url", &database.url]);
    assert_eq!(found.done(), "no runs\n");
}

#[test]
fn no_message_shows_the_password() {
    let unreachable = "postgres://someone:s3cret@127.0.0.1:1/somewhere";
    let unreadable = "postgres://someone:s3cret@host:port/somewhere";
    for command in [&["migrate"][..], &["status"], &["runs"]] {
        for (url, code) in [(unreachable, 1), (unreadable, 2)] {
            for json in [&[][..], &["--json"]] {
                let error =
                    pgflow(&[command, json, &["--database-url", url]].concat()).failed(code);
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
    }
    let error = pgflow(&["runs", "--database-url", unreachable]).failed(1);
    assert!(
        error.contains("database somewhere at 127.0.0.1:1 as someone"),
        "{error}"
    );
    assert!(!pgflow(&["start", "--help"]).done().contains("s3cret"));
}

#[test]
fn errors_are_json_when_asked_for() {
    let error = json(&pgflow(&["runs", "--json"]).failed(2));
    assert_eq!(error["exit_code"], 2);
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .starts_with("no database was named")
    );
}

#[test]
fn a_database_that_is_not_migrated_is_not_ready() {
    let database = Database::blank();
    for arguments in [&["runs"][..], &["start", "any", "--input", "1"]] {
        let error = database.pgflow(arguments).failed(4);
        assert!(error.contains("run `pgflow migrate`"), "{error}");
    }
    let migrated = Database::migrated();
    migrated.execute("insert into pgflow.schema_migrations values (99, 'future', '')");
    for command in ["runs", "migrate"] {
        let error = migrated.pgflow(&[command]).failed(4);
        assert!(error.contains("the database is at migration 99"), "{error}");
    }
}
