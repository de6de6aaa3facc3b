//! The reasons why a step is not running.

use crate::support::{Database, WORKER, WORKER_ID, cells, json};

const RUN: &str = "00000000-0000-0000-0000-000000000001";

fn started() -> Database {
    let database = Database::with_flow();
    let start = ["start", "sums", "--input", "{}", "--run-id", RUN];
    database.pgflow(&start).done();
    database
}

impl Database {
    fn why(&self, step: &str) -> String {
        self.pgflow(&["why", RUN, step]).done()
    }

    fn claim(&self) {
        self.execute(&format!("select pgflow.claim_tasks('{WORKER_ID}', 10)"));
    }
}

#[test]
fn a_step_that_nobody_serves_and_one_that_waits_for_it() {
    let database = started();
    let numbers = database.why("numbers");
    let lines: Vec<&str> = numbers.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "It waits in queue \"sums\", which no live worker serves.",
            "",
            &format!("run          {RUN} (started)"),
            "flow         sums",
            "step         numbers (started)",
        ]
    );
    assert_eq!(lines[5], "tasks        1 queued");
    assert!(lines[6].starts_with("visible at   20"), "{numbers}");
    assert_eq!(lines[7], "queue        sums, 0 live workers");
    assert_eq!(lines.len(), 8);

    let doubled = database.why("doubled");
    assert!(
        doubled.starts_with("It waits for numbers (started).\n\n"),
        "{doubled}"
    );
    assert!(
        doubled.contains("\nwaiting for  numbers (started)\n") && !doubled.contains("\ntasks"),
        "{doubled}"
    );
}

#[test]
fn without_a_step_each_one_of_the_run_is_told_about() {
    let database = started();
    database.execute(WORKER);
    database.claim();
    database.execute(&format!(
        "select pgflow.complete_task('{RUN}', 'numbers', 0, '[1]');
         update pgflow.workers set last_heartbeat_at = now() - interval '1 hour'"
    ));
    let text = database.pgflow(&["why", RUN]).done();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            &format!("run   {RUN} (started)"),
            "flow  sums",
            "",
            "STEP     STATUS     WHY"
        ]
    );
    assert!(
        lines[4].starts_with("numbers  completed  It completed at 20") && lines[4].ends_with("Z."),
        "{text}"
    );
    assert_eq!(
        lines[5..],
        [
            "doubled  started    It waits in queue \"sums\", which no live worker serves.",
            "",
            &format!("what that rests on: pgflow why {RUN} STEP"),
        ]
    );

    let all = json(&database.pgflow(&["why", RUN, "--json"]).done());
    for (n, step) in ["numbers", "doubled"].into_iter().enumerate() {
        let one = json(&database.pgflow(&["why", RUN, step, "--json"]).done());
        assert_eq!(all[n], one);
    }
    assert_eq!(all.as_array().unwrap().len(), 2);
}

#[test]
fn a_run_without_steps_is_not_taken_for_an_unknown_one() {
    let database = Database::migrated();
    database.execute("select pgflow.create_flow('idle')");
    let start = ["start", "idle", "--input", "{}", "--run-id", RUN];
    database.pgflow(&start).done();
    let text = database.pgflow(&["why", RUN]).done();
    assert_eq!(text, "the run has no steps\n");
    assert_eq!(
        json(&database.pgflow(&["why", RUN, "--json"]).done()),
        json("[]")
    );
    let other = RUN.replace('1', "2");
    for json in [&[][..], &["--json"]] {
        let error = database.pgflow(&[&["why", &other], json].concat());
        let error = error.failed(3);
        assert!(
            error.contains(&format!("run {other} does not exist")),
            "{error}"
        );
    }
}

#[test]
fn attempts_under_way_are_listed_with_worker_and_time() {
    let database = started();
    database.execute(WORKER);
    database.claim();
    database.execute(&format!(
        "select pgflow.complete_task('{RUN}', 'numbers', 0, '[1, 2, 3]');
         select pgflow.claim_tasks('{WORKER_ID}', 2);
         update pgflow.workers set last_heartbeat_at = now() + interval '1 minute'"
    ));
    let text = database.why("doubled");
    assert!(
        text.starts_with("2 of its 3 tasks are running.\n"),
        "{text}"
    );
    for line in [
        "tasks        1 queued, 2 started\n",
        "queue        sums, 1 live worker\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let rows = cells(&text);
    let header = rows.iter().position(|row| row.first() == Some(&"TASK"));
    let header = header.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(
        rows[header],
        ["TASK", "ATTEMPT", "WORKER", "SINCE", "FOR", "OVERDUE", "AT"]
    );
    let attempts: Vec<_> = rows[header + 1..].iter().map(|row| &row[..3]).collect();
    assert_eq!(attempts, [["0", "1", WORKER_ID], ["1", "1", WORKER_ID]]);

    database.execute("update pgflow.workers set build = '1.2.0'");
    let text = database.why("doubled");
    let rows = cells(&text);
    let header = rows.iter().position(|row| row.first() == Some(&"TASK"));
    let header = header.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(rows[header].last(), Some(&"BUILD"));
    assert_eq!(rows[header + 1].last(), Some(&"1.2.0"));
}

#[test]
fn a_delayed_retry_shows_until_when_and_a_failed_step_its_error() {
    let database = started();
    database.execute(WORKER);
    database.claim();
    database.execute(&format!(
        "select pgflow.fail_task('{RUN}', 'numbers', 0, 'out of numbers', retry_delay => 3600)"
    ));
    let delayed = database.why("numbers");
    assert!(
        delayed.starts_with("An attempt failed; the next one may start at "),
        "{delayed}"
    );
    assert!(delayed.contains("\nvisible at   "), "{delayed}");

    database.execute("update pgmq.q_sums set vt = now()");
    database.claim();
    database.execute(&format!(
        "select pgflow.fail_task('{RUN}', 'numbers', 0, 'out of numbers', retryable => false)"
    ));
    let failed = database.why("numbers");
    let (first, _) = failed.split_once('\n').unwrap();
    let time = first
        .strip_prefix("It failed at ")
        .and_then(|rest| {
            rest.strip_suffix(", and its run with it: its task failed for good at attempt 2 of 3.")
        })
        .unwrap_or_else(|| panic!("{failed}"));
    assert_eq!((time.len(), &time[19..]), (20, "Z"), "{failed}");
    assert!(failed.starts_with("It failed at "), "{failed}");
    assert!(
        failed.contains("\nerror        ") && failed.contains("out of numbers"),
        "{failed}"
    );
    assert!(failed.contains("\ntasks        1 failed\n"), "{failed}");
}

#[test]
fn of_a_run_that_failed_the_step_that_failed_it_is_told_first() {
    let database = Database::with_a_run_that_failed(RUN);
    let text = database.pgflow(&["why", RUN]).done();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "Step \"one\" failed the run: out of numbers",
            "",
            &format!("run   {RUN} (failed)"),
            "flow  twins",
            "",
            "STEP   STATUS   WHY",
            "one    failed   It failed at 2026-01-31 10:00:05Z, and its run with it: its task failed for good at attempt 1 of 3.",
            "other  started  Step \"one\" failed the run before this step had ended.",
            "last   created  Step \"one\" failed the run before this step had started.",
            "",
            &format!("what that rests on: pgflow why {RUN} STEP"),
        ]
    );
    let other = database.why("other");
    assert!(
        other.starts_with("Step \"one\" failed the run before this step had ended.\n"),
        "{other}"
    );
    assert!(other.contains("\nrun's error  out of numbers\n"), "{other}");
    assert!(other.contains("\ntasks        3 cancelled\n"), "{other}");
    let one = database.why("one");
    assert!(
        one.contains("\nerror        out of numbers\n") && !one.contains("run's error"),
        "{one}"
    );
    // A run that waits has nothing of the kind.
    let waits = started().pgflow(&["why", RUN]).done();
    assert!(waits.starts_with("run "), "{waits}");
}

#[test]
fn a_disabled_worker_function_is_shown() {
    let database = started();
    database.execute(WORKER);
    database.execute(
        "update pgflow.workers set stopped_at = now();
         update pgflow.worker_functions set enabled = false, disabled_reason = 'step \"numbers\" is unknown', disabled_at = now()",
    );
    let text = database.why("numbers");
    assert!(
        text.contains("\ndisabled     step \"numbers\" is unknown\n"),
        "{text}"
    );
}

#[test]
fn as_json_it_is_what_the_database_answers() {
    let database = started();
    database.execute(WORKER);
    database.claim();
    for step in ["numbers", "doubled"] {
        let answer = database.text(&format!(
            "select pgflow.explain_step('{RUN}', '{step}')::text"
        ));
        let printed = database.pgflow(&["why", RUN, step, "--json"]).done();
        assert_eq!(json(&printed), json(&answer));
    }
}

#[test]
fn an_unknown_run_and_an_unknown_step_are_not_found() {
    let database = started();
    let other = RUN.replace('1', "2");
    for json in [&[][..], &["--json"]] {
        let arguments = [&["why", &other, "numbers"], json].concat();
        let error = database.pgflow(&arguments).failed(3);
        assert!(
            error.contains(&format!("there is no run {other}")),
            "{error}"
        );
        let arguments = [&["why", RUN, "number"], json].concat();
        let error = database.pgflow(&arguments).failed(3);
        assert!(error.contains("Its steps are doubled, numbers."), "{error}");
    }
}
