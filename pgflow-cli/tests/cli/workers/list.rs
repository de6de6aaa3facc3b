use crate::support::{Database, cells, json};

/// Function `sums` with a running, a draining, a lost and a stopped worker; fenced function
/// `steps__a`; disabled function `steps__b`.
fn many() -> Database {
    let database = Database::with_two_flows();
    let ids: Vec<String> = (1..5)
        .map(|id| database.register(id, "sums", "sums", None))
        .collect();
    database.claims(&ids[0]);
    database.execute(&format!(
        "update pgflow.workers set deprecated_at = now(), deprecated_reason = 'too old' where worker_id = '{}'",
        ids[1]
    ));
    database.loses(&ids[2]);
    database.stops(&ids[3]);
    database.register(5, "steps__a", "steps", Some("a"));
    database.execute(
        "select pgflow.track_worker_function('steps__b', 'http');
         select pgflow.disable_worker_function('steps__b', 'poisoned work');
         select pgflow.fence_worker_functions(array['steps__a'], 'release 42')",
    );
    database
}

#[test]
fn functions_and_their_workers_are_listed_with_their_states() {
    let database = many();
    let text = database.pgflow(&["workers", "list"]).done();
    let (functions, workers) = text.split_once("\n\n").unwrap();
    let functions = cells(functions);
    assert_eq!(
        functions[0],
        ["FUNCTION", "STATE", "START", "SINCE", "REASON", "RESTORES"]
    );
    assert_eq!(functions[1][..3], ["steps__a", "fenced", "process"]);
    assert_eq!(
        functions[1][4..],
        ["ago", "fenced:", "release", "42", "enabled"]
    );
    assert_eq!(functions[2][..3], ["steps__b", "disabled", "http"]);
    assert_eq!(functions[2][4..], ["ago", "poisoned", "work"]);
    assert_eq!(functions[3], ["sums", "enabled", "process"]);

    let (workers, hidden) = workers.split_once("\n\n").unwrap();
    assert_eq!(hidden, "1 lost worker not shown: --all\n");
    let workers = cells(workers);
    assert_eq!(
        workers[0],
        [
            "WORKER",
            "FUNCTION",
            "STATE",
            "TASKS",
            "STARTED",
            "HEARTBEAT",
            "TOLD",
            "TO",
            "STOP"
        ]
    );
    let seen: Vec<_> = workers[1..].iter().map(|row| &row[..4]).collect();
    assert_eq!(
        seen,
        [
            ["000000000005", "steps__a", "draining", "0"],
            ["000000000002", "sums", "draining", "0"],
            ["000000000001", "sums", "running", "1"],
        ]
    );
    assert_eq!(workers[1][8..], ["fenced:", "release", "42"]);
    assert_eq!(workers[2][6..], ["0s", "ago", "too", "old"]);
    let all = database.pgflow(&["workers", "list", "--all"]).done();
    // Two more workers, and no line about them.
    assert_eq!(all.lines().count(), text.lines().count());
    let rows = cells(&all);
    let lost = rows.iter().find(|row| row.get(2) == Some(&"lost")).unwrap();
    assert_eq!(lost[0], "000000000003");
    assert!(lost[6].starts_with("1m0"), "{all}");
    assert!(all.contains("stopped"), "{all}");
}

#[test]
fn a_lost_worker_is_listed_while_its_tasks_have_not_come_back() {
    let database = Database::with_two_flows();
    let id = database.register(1, "sums", "sums", None);
    database.claims(&id);
    database.loses(&id);
    let text = database.pgflow(&["workers", "list"]).done();
    assert!(text.contains("000000000001  sums      lost   1"), "{text}");
    database.completes_all();
    let text = database.pgflow(&["workers", "list"]).done();
    assert!(
        text.ends_with("\n\nno workers\n\n1 lost worker not shown: --all\n"),
        "{text}"
    );
}

#[test]
fn columns_that_say_nothing_are_left_out() {
    let database = Database::with_two_flows();
    database.register(1, "sums", "sums", None);
    database.register(2, "steps__a", "steps", Some("a"));
    let text = database.pgflow(&["workers", "list"]).done();
    let headers = |text: &str| -> Vec<String> {
        let tables = text.split("\n\n");
        let headers = tables.filter_map(|table| Some(cells(table).first()?.join(" ")));
        headers.collect()
    };
    assert_eq!(
        headers(&text),
        [
            "FUNCTION STATE START",
            "WORKER FUNCTION STATE TASKS STARTED HEARTBEAT"
        ]
    );
    database.execute("select pgflow.disable_worker_function('sums')");
    database.register(3, "shared", "steps", Some("b"));
    let text = database.pgflow(&["workers", "list"]).done();
    assert_eq!(
        headers(&text),
        [
            "FUNCTION STATE START SINCE REASON",
            "WORKER FUNCTION QUEUE STATE TASKS STARTED HEARTBEAT"
        ]
    );
    assert!(
        text.contains("000000000003  shared    steps__b  running"),
        "{text}"
    );
}

#[test]
fn workers_that_say_which_build_they_run_have_a_column_for_it() {
    let database = Database::with_two_flows();
    let id = database.register(1, "sums", "sums", None);
    database.register(2, "steps__a", "steps", Some("a"));
    database.execute(&format!(
        "update pgflow.workers set build = '1.2.0' where worker_id = '{id}'"
    ));
    let text = database.pgflow(&["workers", "list"]).done();
    let (_, workers) = text.split_once("\n\n").unwrap();
    let workers = cells(workers);
    assert_eq!(workers[0][5..], ["HEARTBEAT", "BUILD"]);
    let with = workers.iter().find(|row| row[0].ends_with("01")).unwrap();
    assert_eq!(with.last(), Some(&"1.2.0"), "{text}");
    let all = json(&database.pgflow(&["workers", "list", "--json"]).done());
    assert!(all.to_string().contains("\"build\":\"1.2.0\""), "{all}");
}

#[test]
fn eighty_columns_are_enough() {
    let database = many();
    let text = database.pgflow(&["workers", "list"]).done();
    let widest = text.lines().map(str::len).max();
    assert!(widest <= Some(80), "{text}");
}

#[test]
fn as_json_each_function_holds_its_workers() {
    let database = many();
    let listed = |arguments: &[&str]| {
        let arguments = [&["workers", "list", "--json"], arguments].concat();
        json(&database.pgflow(&arguments).done())
    };
    let all = listed(&[]);
    let fenced = &all[0];
    assert_eq!(fenced["function_name"], "steps__a");
    assert_eq!(fenced["enabled"], false);
    assert_eq!(fenced["recorded_enabled"], true);
    assert_eq!(fenced["workers"][0]["state"], "draining");
    assert_eq!(
        fenced["workers"][0]["deprecated_reason"],
        "fenced: release 42"
    );
    // Not the lost one.
    assert_eq!(all[2]["workers"].as_array().unwrap().len(), 2);
    let one = listed(&["--function", "sums", "--all"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["workers"].as_array().unwrap().len(), 4);
    assert_eq!(one[0]["workers"][3]["started_tasks"], 1);
}

#[test]
fn one_function_or_those_of_a_flow() {
    let database = many();
    let names = |flow: &str| -> Vec<String> {
        let listed = database
            .pgflow(&["workers", "list", "--json", "--flow", flow])
            .done();
        let name =
            |function: &serde_json::Value| function["function_name"].as_str().unwrap().to_owned();
        json(&listed).as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(names("sums"), ["sums"]);
    // Nobody has ever run the other function of the flow.
    assert_eq!(names("steps"), ["steps__a"]);
    // One process for both flows: with its newest worker for one of them, and a live one for the
    // other.
    database.register(6, "shared", "sums", None);
    database.register(7, "shared", "steps", Some("b"));
    assert_eq!(names("sums"), ["shared", "sums"]);
    assert_eq!(names("steps"), ["shared", "steps__a"]);
    // It died: it still served queue `sums` last.
    database.execute(
        "update pgflow.workers set last_heartbeat_at = now() - interval '1 hour' where function_name = 'shared'",
    );
    assert_eq!(names("sums"), ["shared", "sums"]);
    // What serves another flow for long belongs to that one.
    database.register(8, "sums", "sums", None);
    assert_eq!(names("sums"), ["sums"]);
    assert_eq!(names("steps"), ["shared", "steps__a"]);
}

#[test]
fn what_is_not_there_is_said() {
    let database = Database::with_two_flows();
    for arguments in [
        &["workers", "list"][..],
        &["workers", "list", "--flow", "sums"],
    ] {
        assert_eq!(database.pgflow(arguments).done(), "no worker functions\n");
    }
    database.execute("select pgflow.track_worker_function('sums')");
    let text = database.pgflow(&["workers", "list"]).done();
    assert!(text.ends_with("\n\nno workers\n"), "{text}");
    let error = database
        .pgflow(&["workers", "list", "--function", "sum"])
        .failed(3);
    assert!(error.contains("did you mean \"sums\"?"), "{error}");
    let error = database
        .pgflow(&["workers", "list", "--flow", "sum"])
        .failed(3);
    assert!(
        error.contains("expected the exact slug of one that it has: steps, sums"),
        "{error}"
    );
}
