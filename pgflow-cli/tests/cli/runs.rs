//! Lists of runs, and single ones.

use crate::support::{Database, WORKER_ID, cells, json};

const RUNNING: &str = "00000000-0000-0000-0000-000000000001";
const COMPLETED: &str = "00000000-0000-0000-0000-000000000002";
const WAITING: &str = "00000000-0000-0000-0000-000000000004";
const FAILED: &str = "00000000-0000-0000-0000-000000000003";

/// A run with a map of three, one of which is done; one that completed; one that failed.
fn three_runs() -> Database {
    let database = Database::with_flow();
    for id in [RUNNING, COMPLETED, FAILED] {
        database
            .pgflow(&["start", "sums", "--input", "{}", "--run-id", id])
            .done();
    }
    let claim = |count: u32| {
        format!("select pgflow.claim_tasks('00000000-0000-0000-0000-0000000000ff', {count});")
    };
    database.execute(&format!(
        "select pgflow.track_worker_function('sums');
         select pgflow.register_worker('00000000-0000-0000-0000-0000000000ff', 'sums', 'sums', null, 'sums', '{{}}');
         {}
         select pgflow.complete_task('{RUNNING}', 'numbers', 0, '[1, 2, 3]');
         select pgflow.complete_task('{COMPLETED}', 'numbers', 0, '[]');
         select pgflow.fail_task('{FAILED}', 'numbers', 0, 'out of numbers', retryable => false);",
        claim(3)
    ));
    database.execute(&format!(
        "{} select pgflow.complete_task('{RUNNING}', 'doubled', 0, '2')",
        claim(2)
    ));
    database
}

#[test]
fn runs_are_listed_newest_first_and_filtered() {
    let database = three_runs();
    let text = database.pgflow(&["runs"]).done();
    let rows = cells(&text);
    assert_eq!(
        rows[0],
        ["RUN", "FLOW", "STATUS", "STARTED", "TOOK", "ERROR"]
    );
    let ids: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(ids, [FAILED, COMPLETED, RUNNING]);
    assert!(text.contains("out of numbers"), "{text}");

    let listed = |arguments: &[&str]| -> Vec<String> {
        let runs = json(
            &database
                .pgflow(&[&["runs", "--json"], arguments].concat())
                .done(),
        );
        let id = |run: &serde_json::Value| run["run_id"].as_str().unwrap().to_owned();
        runs.as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(listed(&["--status", "started"]), [RUNNING]);
    assert_eq!(listed(&["--status", "completed"]), [COMPLETED]);
    assert_eq!(listed(&["--flow", "sums", "--limit", "1"]), [FAILED]);
    database.pgflow(&["runs", "--status", "lost"]).failed(2);
    database.pgflow(&["runs", "--limit", "0"]).failed(2);
}

#[test]
fn a_flow_without_runs_has_none_and_an_unknown_one_is_not_found() {
    let database = three_runs();
    database.execute("select pgflow.create_flow('other')");
    let of = |flow: &'static str| ["runs", "--flow", flow];
    assert_eq!(database.pgflow(&of("other")).done(), "no runs\n");
    let error = database.pgflow(&of("summs")).failed(3);
    assert_eq!(
        error,
        "error: flow \"summs\" is not defined in this database; \
         expected the exact slug of one that it has: other, sums; did you mean \"sums\"?\n"
    );
    let error = Database::migrated().pgflow(&of("sums")).failed(3);
    assert!(error.contains("; it has no flows; "), "{error}");
}

#[test]
fn a_step_that_does_not_run_says_why_in_few_words() {
    let database = three_runs();
    let start = ["start", "sums", "--input", "{}", "--run-id", WAITING];
    database.pgflow(&start).done();
    let notes = || {
        let text = database.pgflow(&["run", WAITING]).done();
        let note = |slug| {
            let line = text.lines().find(|line| line.starts_with(slug)).unwrap();
            line.rsplit("  ").next().unwrap().trim().to_owned()
        };
        [note("numbers"), note("doubled")]
    };
    assert_eq!(notes(), ["waits for a free worker", "waits for numbers"]);
    database.execute("update pgflow.workers set stopped_at = now()");
    assert_eq!(notes()[0], "no live worker");
    database.execute("select pgflow.disable_worker_function('sums', 'out of numbers')");
    assert_eq!(
        notes()[0],
        "no live worker, its function is disabled: out of numbers"
    );
    database.execute("update pgmq.q_sums set vt = '2100-01-31 10:00:00+00'");
    assert_eq!(notes()[0], "delayed until 2100-01-31 10:00:00Z");

    let shown = json(&database.pgflow(&["run", WAITING, "--json"]).done());
    let why = |step: &str| json(&database.pgflow(&["why", WAITING, step, "--json"]).done());
    for (n, step) in ["numbers", "doubled"].into_iter().enumerate() {
        for fact in ["reason", "message", "waiting_for", "queue_name"] {
            assert_eq!(shown["steps"][n]["explanation"][fact], why(step)[fact]);
        }
    }
    assert_eq!(shown["steps"][0]["explanation"]["reason"], "start_delay");
    let ended = json(&database.pgflow(&["run", COMPLETED, "--json"]).done());
    assert_eq!(ended["steps"][0]["explanation"], json("null"));
}

#[test]
fn a_run_is_shown_with_its_steps_and_counts_of_tasks() {
    let database = three_runs();
    let text = database.pgflow(&["run", RUNNING]).done();
    let rows = cells(&text);
    let row = |slug: &str| {
        rows.iter()
            .find(|row| row.first() == Some(&slug))
            .unwrap()
            .clone()
    };
    assert_eq!(row("status"), ["status", "started"]);
    // Type, status, then tasks: queued, started, completed, failed.
    assert_eq!(
        row("numbers")[1..7],
        ["single", "completed", "0", "0", "1", "0"]
    );
    assert_eq!(row("doubled")[1..7], ["map", "started", "1", "1", "1", "0"]);

    let as_json = json(&database.pgflow(&["run", RUNNING, "--json"]).done());
    assert_eq!(as_json["steps"][1]["step_slug"], "doubled");
    assert_eq!(
        as_json["steps"][1]["tasks"],
        json(
            r#"{"queued": 1, "started": 1, "completed": 1, "failed": 0, "skipped": 0, "cancelled": 0}"#
        )
    );
}

#[test]
fn a_completed_run_shows_its_output() {
    let database = three_runs();
    let text = database.pgflow(&["run", COMPLETED]).done();
    assert!(text.contains(r#"output   {"doubled":[]}"#), "{text}");
    let as_json = json(&database.pgflow(&["run", COMPLETED, "--json"]).done());
    assert_eq!(as_json["output"], json(r#"{"doubled": []}"#));
}

#[test]
fn a_failed_run_shows_why_and_exits_with_5() {
    let database = three_runs();
    let ran = database.pgflow(&["run", FAILED]);
    assert_eq!(ran.code, 5);
    assert!(ran.stdout.contains("status   failed"), "{ran:?}");
    assert!(
        ran.stdout.contains("error    ") && ran.stdout.contains("out of numbers"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("never started\n"), "{ran:?}");
    assert_eq!(database.pgflow(&["run", FAILED, "--json"]).code, 5);
}

#[test]
fn nothing_of_a_run_that_failed_goes_on() {
    let database = Database::with_a_run_that_failed(FAILED);
    let text = database.pgflow(&["run", FAILED]).stdout;
    assert!(text.contains("\ntook     5.000s\n"), "{text}");
    let row = |slug: &str| {
        let line = text.lines().find(|line| line.starts_with(slug)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Queued, started, completed, failed, took, note.
    assert_eq!(
        row("one "),
        "one single failed 0 0 0 1 4.000s out of numbers"
    );
    assert_eq!(
        row("other "),
        "other map started 0 0 0 0 4.000s unfinished when the run failed; 3 cancelled"
    );
    assert_eq!(row("last "), "last single created 0 0 0 0 never started");

    let watched = database.pgflow(&["run", FAILED, "--watch"]).stdout;
    for line in [
        "  other  started, 0/3; unfinished when the run failed; 3 cancelled\n",
        "  last   created; never started\n",
        &text,
    ] {
        assert!(watched.contains(line), "{line} in {watched}");
    }
}

#[test]
fn tasks_that_went_with_their_step_are_called_as_elsewhere() {
    let database = Database::migrated();
    database.execute(&format!(
        "select pgflow.create_flow('twins');
         select pgflow.add_step('twins', 'each', step_type => 'map', when_exhausted => 'skip');
         select pgflow.start_flow('twins', '[1, 2, 3]', run_id => '{COMPLETED}');
         select pgflow.track_worker_function('twins');
         select pgflow.register_worker('{WORKER_ID}', 'twins', 'twins', null, 'twins', '{{}}');"
    ));
    database.execute(&format!(
        "select pgflow.claim_tasks('{WORKER_ID}', 1);
         select pgflow.fail_task('{COMPLETED}', 'each', 0, 'out of numbers', retryable => false);"
    ));
    let run = database.pgflow(&["run", COMPLETED]).done();
    assert!(
        run.contains("handler failed; 2 skipped; out of numbers"),
        "{run}"
    );
    let why = database.pgflow(&["why", COMPLETED, "each"]).done();
    assert!(
        why.contains("\ntasks        1 failed, 2 skipped\n"),
        "{why}"
    );
}

#[test]
fn an_unknown_run_is_not_found() {
    let database = Database::migrated();
    let error = database.pgflow(&["run", RUNNING]).failed(3);
    assert!(
        error.contains(RUNNING) && error.contains("`pgflow runs` lists them"),
        "{error}"
    );
}

#[test]
fn what_is_no_id_of_a_run_is_refused_with_what_was_expected() {
    let database = Database::with_flow();
    for arguments in [
        &["run", "abc"][..],
        &["run", "abc", "--watch"],
        &["why", "abc"],
        &["why", "abc", "numbers"],
    ] {
        let error = database.pgflow(arguments).failed(2);
        assert!(error.contains("'abc'"), "{error}");
        assert!(
            error.contains("that is no run's id; expected one as `pgflow start` and `pgflow runs` print it, whole, such as 0198c0de-"),
            "{error}"
        );
        assert!(!error.contains("invalid character"), "{error}");
    }
    let start = ["start", "sums", "--input", "{}", "--run-id", "abc"];
    let error = database.pgflow(&start).failed(2);
    assert!(
        error.contains("that is no UUID; expected one of your own making, such as 0198c0de-"),
        "{error}"
    );
    // Copied with the space beside it.
    let start = database.pgflow(&["start", "sums", "--input", "{}"]).done();
    database.pgflow(&["run", &format!(" {start}")]).done();
}

#[test]
fn a_map_that_does_without_elements_says_how_many_failed() {
    let database = Database::migrated();
    let reports: String = (0..4)
        .map(|index| match index {
            1 => format!("select pgflow.complete_task('{RUNNING}', 'each', 1, '1');"),
            _ => format!(
                "select pgflow.fail_task('{RUNNING}', 'each', {index}, 'no', retryable => false);"
            ),
        })
        .collect();
    database.execute(&format!(
        "select pgflow.create_flow('sums');
         select pgflow.add_step('sums', 'each', step_type => 'map', on_element_failure => 'null');
         select pgflow.start_flow('sums', '[1, 2, 3, 4]', run_id => '{RUNNING}');
         select pgflow.track_worker_function('sums');
         select pgflow.register_worker('{WORKER_ID}', 'sums', 'sums', null, 'sums', '{{}}');"
    ));
    database.execute(&format!(
        "select pgflow.claim_tasks('{WORKER_ID}', 4); {reports}"
    ));
    let text = database.pgflow(&["run", RUNNING]).done();
    assert!(text.contains("3 of 4 elements failed: null"), "{text}");
    let text = database.pgflow(&["why", RUNNING, "each"]).done();
    assert!(text.contains("3 of its 4 elements failed: null."), "{text}");
    let text = database.pgflow(&["flow", "sums"]).done();
    assert!(text.contains("fail; an element: null"), "{text}");
}
