//! The contents of the queues.

use crate::support::{Database, WORKER_ID, cells, json};

/// Queue `sums`: one task runs, one is delayed, two can be read; queue `steps__b`: one can be read,
/// and no worker serves it.
fn busy() -> Database {
    let database = Database::with_two_flows();
    database.execute(&format!(
        "select pgflow.track_worker_function('sums');
         select pgflow.register_worker('{WORKER_ID}', 'sums', 'sums', null, 'sums', '{{}}');
         update pgflow.workers set last_heartbeat_at = now() + interval '1 hour';
         select pgflow.start_flow('sums', '{{}}') from generate_series(1, 4);
         select pgflow.claim_tasks('{WORKER_ID}', 2);
         select pgflow.fail_task(run_id, step_slug, task_index, 'later', retry_delay => 3600)
         from pgflow.step_tasks where status = 'started' order by message_id limit 1;
         select pgflow.start_flow('steps', '{{}}');
         update pgmq.q_sums set vt = now() - interval '90 seconds' where vt <= clock_timestamp();"
    ));
    database
}

#[test]
fn every_queue_has_a_line_with_what_can_be_read_and_what_can_not() {
    let database = busy();
    let text = database.pgflow(&["queues"]).done();
    let rows = cells(&text);
    assert_eq!(
        rows[0],
        [
            "FLOW", "STEP", "QUEUE", "WORKERS", "VISIBLE", "HIDDEN", "RUNNING", "OLDEST"
        ]
    );
    let expected = [
        ["steps", "b", "steps__b", "0", "1", "0", "0"],
        ["steps", "a", "steps__a", "0", "1", "0", "0"],
        ["sums", "(all)", "sums", "1", "2", "2", "1"],
    ];
    assert_eq!(rows.len(), 4);
    for (row, expected) in rows[1..].iter().zip(expected) {
        assert_eq!(row[..7], expected);
    }
    assert!(rows[3][7].starts_with("1m3"), "{text}");

    let one = json(
        &database
            .pgflow(&["queues", "--flow", "sums", "--json"])
            .done(),
    );
    assert_eq!(one.as_array().unwrap().len(), 1);
    for (field, expected) in [
        ("visible_messages", 2),
        ("hidden_messages", 2),
        ("running_tasks", 1),
        ("live_workers", 1),
    ] {
        assert_eq!(one[0][field], expected);
    }
    assert_eq!(one[0]["step_slug"], json("null"));
}

#[test]
fn a_reader_is_told_that_hidden_messages_are_not_for_it_to_count() {
    let database = busy();
    let role = format!(
        "reader_of_{}",
        database.text("select current_database()::text")
    );
    database.execute(&format!(
        "create role {role} login;
         grant usage on schema pgflow to {role};
         grant select on all tables in schema pgflow to {role};
         grant execute on function pgflow._waiting_messages to {role}"
    ));
    let (_, place) = database.url.split_once('@').unwrap();
    let url = format!("postgres://{role}@{place}");
    let text = database.pgflow(&["queues", "--database-url", &url]).done();
    let rows = cells(&text);
    assert_eq!(rows[3][..7], ["sums", "(all)", "sums", "1", "2", "?", "1"]);
    assert!(text.contains("\n\n?: only the owner"), "{text}");
    let as_json = json(
        &database
            .pgflow(&["queues", "--json", "--database-url", &url])
            .done(),
    );
    assert_eq!(as_json[2]["hidden_messages"], json("null"));
}

#[test]
fn a_queue_that_is_gone_is_said_to_be_and_an_unknown_flow_is_not_found() {
    let database = busy();
    database.execute("select pgmq.drop_queue('steps__a')");
    let text = database.pgflow(&["queues", "--flow", "steps"]).done();
    assert!(text.lines().nth(2).unwrap().contains("no queue"), "{text}");
    let error = database.pgflow(&["queues", "--flow", "step"]).failed(3);
    assert!(error.contains("did you mean \"steps\"?"), "{error}");
    assert_eq!(
        Database::migrated().pgflow(&["queues"]).done(),
        "no queues\n"
    );
}

#[test]
fn a_stray_message_is_shown_and_cleared_by_one_command() {
    let database = Database::with_two_flows();
    database.register(1, "sums", "sums", None);
    database.execute(
        "select pgmq.send('sums', '{\"hello\": \"secret\"}');
         select pgflow.claim_tasks('00000000-0000-0000-0000-000000000001', 10)",
    );
    let shown = database.pgflow(&["queues", "--inspect"]).done();
    let row = shown.lines().nth(1).unwrap();
    assert!(row.starts_with("sums   1        none  0"), "{shown}");
    assert!(row.ends_with("no task has this message"), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
    let body = database
        .pgflow(&["queues", "--inspect", "sums", "--body"])
        .done();
    assert!(body.contains("{\"hello\":\"secret\"}"), "{body}");
    let as_json = json(&database.pgflow(&["queues", "--inspect", "--json"]).done());
    assert_eq!(as_json[0].get("body"), None);
    assert_eq!(
        database.pgflow(&["queues", "--inspect", "steps__a"]).done(),
        "no message that no worker can take\n"
    );
    let error = database.pgflow(&["queues", "--inspect", "sum"]).failed(3);
    assert!(error.contains("did you mean \"sums\"?"), "{error}");

    let cleared = database
        .pgflow(&["workers", "enable", "sums", "--archive-unsupported"])
        .done();
    let mut lines = cleared.lines();
    assert_eq!(
        lines.next(),
        Some("archived message 1 of queue sums: no task has this message")
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("sums is enabled; it was disabled since")
    );
    assert_eq!(
        database.number("select count(*) from pgflow.worker_functions where enabled"),
        1
    );
}

#[test]
fn a_message_of_a_task_is_not_archived_and_nothing_is_enabled() {
    let database = Database::with_two_flows();
    database.register(1, "sums", "sums", None);
    database.execute(
        "select pgflow.start_flow('sums', '{}');
         update pgmq.q_sums set message = message || '{\"step_slug\": \"other\"}';
         select pgmq.send('sums', '1');
         select pgflow.claim_tasks('00000000-0000-0000-0000-000000000001', 10)",
    );
    let error = database
        .pgflow(&["workers", "enable", "sums", "--archive-unsupported"])
        .failed(1);
    assert!(
        error.contains("message 1 of queue \"sums\" can't be archived"),
        "{error}"
    );
    assert_eq!(database.number("select count(*) from pgmq.q_sums"), 2);
    assert_eq!(
        database.number("select count(*) from pgflow.worker_functions where enabled"),
        0
    );
}
