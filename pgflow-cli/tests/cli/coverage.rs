//! The workers of each queue.

use crate::support::{Database, WORKER, cells, json};

/// The exit code for a queue that no worker serves.
const NOT_COVERED: i32 = 6;

#[test]
fn every_queue_has_a_line_and_one_without_a_worker_an_exit_code() {
    let database = Database::with_two_flows();
    database.execute(WORKER);
    database.execute("select pgflow.start_flow('steps', '{}')");
    let shown = database.pgflow(&["coverage"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (NOT_COVERED, ""));
    let rows = cells(&shown.stdout);
    let expected = [
        ["steps", "b", "steps__b", "0", "1"],
        ["steps", "a", "steps__a", "0", "1"],
        ["sums", "(all)", "sums", "1", "0"],
    ];
    assert_eq!(
        rows[0],
        [
            "FLOW", "STEP", "QUEUE", "WORKERS", "WAITING", "SINCE", "COVERED"
        ]
    );
    for (row, expected) in rows[1..].iter().zip(expected) {
        assert_eq!(row[..5], expected);
    }
    assert!(shown.stdout.contains("NO\n"), "{}", shown.stdout);
    assert_eq!(rows[3].last(), Some(&"yes"));

    let one = json(&database.pgflow(&["coverage", "sums", "--json"]).done());
    assert_eq!(one[0]["live_workers"], 1);
    assert_eq!(one.as_array().unwrap().len(), 1);
}

#[test]
fn an_unknown_flow_is_not_found_and_no_flow_is_no_fault() {
    let database = Database::with_two_flows();
    let refused = database.pgflow(&["coverage", "Sums"]).failed(3);
    assert!(
        refused.contains("flow \"Sums\" is not defined"),
        "{refused}"
    );
    assert_eq!(
        Database::migrated().pgflow(&["coverage"]).done(),
        "no flows\n"
    );
}

#[test]
fn a_queue_without_a_worker_is_no_fault_while_nothing_waits_in_it() {
    let database = Database::with_two_flows();
    let shown = database.pgflow(&["coverage"]).done();
    assert!(shown.contains("NO\n"), "{shown}");
    database.execute("select pgmq.drop_queue('steps__a')");
    assert_eq!(database.pgflow(&["coverage"]).code, NOT_COVERED);
}
