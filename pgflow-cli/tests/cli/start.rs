use std::io::Write as _;

use crate::support::{Database, json};

const ID: &str = "00000000-0000-0000-0000-00000000000a";

#[test]
fn start_writes_the_id_of_the_run() {
    let database = Database::with_flow();
    let id = database.pgflow(&["start", "sums", "--input", "{}"]).done();
    let run = json(&database.pgflow(&["run", id.trim_end(), "--json"]).done());
    assert_eq!(
        (&run["flow_slug"], &run["status"]),
        (&json("\"sums\""), &json("\"started\""))
    );
    let as_json = json(
        &database
            .pgflow(&["start", "sums", "--input", "{}", "--json"])
            .done(),
    );
    assert_ne!(as_json["run_id"], run["run_id"]);
}

#[test]
fn the_input_comes_from_the_argument_a_file_or_standard_input() {
    let database = Database::with_flow();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(br#"{"from": "file"}"#).unwrap();
    let path = format!("@{}", file.path().display());
    for (argument, stdin, expected) in [
        (r#"{"from": "argument"}"#, "", r#"{"from": "argument"}"#),
        ("-5", "", "-5"),
        (path.as_str(), "", r#"{"from": "file"}"#),
        ("-", r#"{"from": "stdin"}"#, r#"{"from": "stdin"}"#),
    ] {
        let started = database
            .pgflow_reading(&["start", "sums", "--input", argument], stdin)
            .done();
        let run = json(
            &database
                .pgflow(&["run", started.trim_end(), "--json"])
                .done(),
        );
        assert_eq!(run["input"], json(expected));
    }
}

#[test]
fn the_same_run_id_starts_nothing_new() {
    let database = Database::with_flow();
    let arguments = ["start", "sums", "--input", "{}", "--run-id", ID];
    assert_eq!(database.pgflow(&arguments).done().trim_end(), ID);
    assert_eq!(database.pgflow(&arguments).done().trim_end(), ID);
    let runs = json(&database.pgflow(&["runs", "--json"]).done());
    assert_eq!(runs.as_array().unwrap().len(), 1);
}

#[test]
fn what_is_not_json_is_refused_before_the_database_is_asked() {
    let database = Database::blank();
    let error = database
        .pgflow(&["start", "sums", "--input", "{oops"])
        .failed(2);
    assert!(
        error.contains("--input is not JSON") && error.contains("line 1 column 2"),
        "{error}"
    );
    let error = database
        .pgflow(&["start", "sums", "--input", "@/nowhere.json"])
        .failed(2);
    assert!(error.contains("/nowhere.json can't be read"), "{error}");
    let error = database
        .pgflow(&["start", "sums", "--input", "1", "--run-id", "oops"])
        .failed(2);
    assert!(error.contains("--run-id"), "{error}");
}

#[test]
fn an_unknown_flow_is_not_found() {
    let database = Database::with_flow();
    let error = database.pgflow(&["start", "sum", "--input", "1"]).failed(3);
    assert_eq!(
        error,
        "error: flow \"sum\" is not defined in this database; expected the exact slug of one that it has: sums; did you mean \"sums\"?\n"
    );
    assert_eq!(database.runs(), 0);
}

#[test]
fn an_input_that_the_flow_does_not_take_is_an_error() {
    let database = Database::migrated();
    database.execute("select pgflow.create_flow('maps'); select pgflow.add_step('maps', 'each', step_type => 'map')");
    let error = database
        .pgflow(&["start", "maps", "--input", "1"])
        .failed(1);
    assert!(error.contains("needs an array"), "{error}");
}

#[test]
fn the_id_of_a_run_with_another_input_is_an_error_whatever_became_of_it() {
    let database = Database::with_a_run_that_failed(ID);
    let start =
        |input: &str| database.pgflow(&["start", "twins", "--input", input, "--run-id", ID]);
    let error = start("[1]").failed(1);
    assert!(
        error.contains("exists, and was started with another input"),
        "{error}"
    );
    // The same as JSON, however it is written.
    assert_eq!(start("[ 1, 2.0, 3 ]").done().trim_end(), ID);
    database.execute(
        "update pgflow.runs set status = 'started', failed_at = null, error_message = null",
    );
    let error = start("{}").code;
    assert_ne!(error, 0);
    assert_eq!(database.runs(), 1);
}
