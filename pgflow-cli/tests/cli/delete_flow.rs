//! Deletion of flows.

use crate::support::{Database, WORKER, WORKER_ID, json};

/// Flow `sums` with a run of each status and a live worker; and another flow.
fn two_flows() -> Database {
    let database = Database::with_runs_that_ended(&[1]);
    database.execute(&format!(
        "select pgflow.create_flow('other');
         select pgflow.add_step('other', 'alone');
         select pgflow.start_flow('other', '{{}}');
         select pgflow.start_flow('sums', '{{}}');
         select pgflow.fail_task(run_id, step_slug, task_index, 'no', retryable => false) from pgflow.claim_tasks('{WORKER_ID}', 1);
         select pgflow.start_flow('sums', '{{}}');
         select pgflow.worker_heartbeat('{WORKER_ID}')"
    ));
    database
}

fn left(database: &Database) -> [i64; 3] {
    [
        database.number("select count(*) from pgflow.flows"),
        database.runs(),
        database.number("select count(*) from pgmq.meta"),
    ]
}

#[test]
fn a_flow_goes_with_all_that_is_its_own() {
    let database = two_flows();
    assert_eq!(left(&database), [2, 4, 2]);
    let deleted = database.pgflow(&["delete-flow", "sums", "--yes"]).done();
    assert_eq!(
        deleted,
        "deleted flow sums with 3 runs and queue sums; 1 live worker was told to stop\n"
    );
    assert_eq!(left(&database), [1, 1, 1]);
    assert_eq!(
        database.number("select count(*) from pgflow.flows where flow_slug = 'other'"),
        1
    );
    let deleted = database
        .pgflow(&["delete-flow", "other", "--yes", "--json"])
        .done();
    assert_eq!(
        json(&deleted),
        json(
            r#"{"flow_slug": "other", "removed_runs": 1, "queues": ["other"], "functions": [], "workers_told_to_stop": 0}"#
        )
    );
    assert_eq!(left(&database), [0, 0, 0]);
}

#[test]
fn a_worker_that_is_told_already_and_a_silent_one_are_not_counted() {
    for change in [
        "deprecated_at = now()",
        "last_heartbeat_at = now() - interval '1 minute'",
        "stopped_at = now()",
    ] {
        let database = Database::with_flow();
        database.execute(WORKER);
        database.execute(&format!("update pgflow.workers set {change}"));
        let deleted = database.pgflow(&["delete-flow", "sums", "--yes"]).done();
        assert!(!deleted.contains("told to stop"), "{deleted}");
    }
}

#[test]
fn worker_functions_that_nobody_runs_any_more_go_with_their_flow() {
    let database = Database::with_two_flows();
    for (id, function) in [(1, "sums"), (2, "audit")] {
        let worker = database.register(id, function, "sums", None);
        database.execute(&format!("select pgflow.mark_worker_stopped('{worker}')"));
    }
    database.register(3, "steps__a", "steps", Some("a"));
    database.execute("select pgflow.disable_worker_function('sums', 'retired')");
    let deleted = database.pgflow(&["delete-flow", "sums", "--yes"]).done();
    assert_eq!(
        deleted,
        "deleted flow sums with 0 runs and queue sums; worker functions audit, sums went with it\n"
    );
    let left = database.text("select string_agg(function_name, ', ') from pgflow.worker_functions");
    assert_eq!(left, "steps__a");
}

#[test]
fn a_queue_that_another_flow_uses_is_not_named() {
    let database = two_flows();
    database.execute("update pgflow.steps set queue_name = 'sums' where flow_slug = 'other'");
    let deleted = database.pgflow(&["delete-flow", "sums", "--yes"]).done();
    assert!(
        deleted.starts_with("deleted flow sums with 3 runs; "),
        "{deleted}"
    );
    assert_eq!(left(&database), [1, 1, 2]);
}

#[test]
fn an_unknown_flow_is_not_found() {
    let database = two_flows();
    let error = database.pgflow(&["delete-flow", "nope", "--yes"]).failed(3);
    let expected =
        "is not defined in this database; expected the exact slug of one that it has: other, sums";
    assert_eq!(error, format!("error: flow \"nope\" {expected}\n"));
    for near in ["Sums", "sum"] {
        let error = database.pgflow(&["delete-flow", near, "--yes"]).failed(3);
        assert_eq!(
            error,
            format!("error: flow \"{near}\" {expected}; did you mean \"sums\"?\n")
        );
    }
    assert_eq!(left(&database), [2, 4, 2]);
}

#[test]
fn without_a_terminal_it_needs_yes() {
    let database = two_flows();
    let error = database
        .pgflow_reading(&["delete-flow", "sums"], "sums\n")
        .failed(2);
    assert!(
        error.contains("--yes") && error.contains("nothing was removed"),
        "{error}"
    );
    assert_eq!(left(&database), [2, 4, 2]);
}

#[cfg(unix)]
mod on_a_terminal {
    use super::{left, two_flows};
    use crate::support::Terminal;

    #[test]
    fn it_shows_what_goes_and_wants_the_slug() {
        let database = two_flows();
        let mut terminal = Terminal::open(&database, &["delete-flow", "sums"]);
        for line in [
            "This deletes flow sums for good:",
            "runs     1 started, 1 completed, 1 failed",
            "queues   sums, with all messages",
            "workers  1 live, will be told to stop",
            "Type its slug to delete it:",
        ] {
            terminal.sees(line);
        }
        terminal.answers("sums");
        terminal.sees("deleted flow sums with 3 runs");
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(left(&database), [1, 1, 1]);
    }

    #[test]
    fn anything_but_the_slug_deletes_nothing() {
        let database = two_flows();
        for answer in ["", "y", "yes", "Sums", "other"] {
            let mut terminal = Terminal::open(&database, &["delete-flow", "sums"]);
            terminal.sees("Type its slug to delete it:");
            terminal.answers(answer);
            terminal.sees("nothing was removed");
            assert_eq!(terminal.exit_code(), 2);
        }
        assert_eq!(left(&database), [2, 4, 2]);
    }

    #[test]
    fn an_unknown_flow_is_not_asked_about() {
        let database = two_flows();
        let mut terminal = Terminal::open(&database, &["delete-flow", "SUMS"]);
        terminal.sees("did you mean \"sums\"?");
        assert_eq!(terminal.exit_code(), 3);
        assert_eq!(left(&database), [2, 4, 2]);
    }
}
