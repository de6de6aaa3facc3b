//! Steps that run when the run has ended, as the commands show them.

use crate::support::{Database, WORKER_ID};

const RUN: &str = "00000000-0000-0000-0000-000000000001";

/// A flow with both, and a run that is under way.
fn started() -> Database {
    let database = Database::migrated();
    database.execute(&format!(
        "select pgflow.create_flow('orders', base_delay => 0, max_attempts => 1);
         select pgflow.add_step('orders', 'pay');
         select pgflow.add_step('orders', 'alarm', runs_on => 'failure');
         select pgflow.add_step('orders', 'tidy', runs_on => 'end');
         select pgflow.start_flow('orders', '{{}}', '{RUN}');
         select pgflow.track_worker_function('orders');
         select pgflow.register_worker('{WORKER_ID}', 'orders', 'orders', null, 'orders', '{{}}')"
    ));
    database
}

impl Database {
    /// Fails the step's only attempt.
    fn fails(&self, step: &str, message: &str) {
        self.execute(&format!(
            "select pgflow.claim_tasks('{WORKER_ID}', 10);
             select pgflow.fail_task('{RUN}', '{step}', 0, '{message}')"
        ));
    }
}

/// The cells of a step's line, in one text.
fn row(text: &str, step: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(step));
    let line = line.unwrap_or_else(|| panic!("no line of {step}: {text}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_flow_says_for_which_end_each_runs() {
    let database = started();
    let text = database.pgflow(&["flow", "orders"]).done();
    assert!(row(&text, "pay ").starts_with("pay single 1 "), "{text}");
    assert!(
        row(&text, "alarm ").starts_with("alarm on failure 1 "),
        "{text}"
    );
    assert!(row(&text, "tidy ").ends_with(" orders 1"), "{text}");
    assert!(!row(&text, "tidy ").contains(" fail "), "{text}");
    let diagram = database.pgflow(&["flow", "orders", "--mermaid"]).done();
    assert!(
        diagram.contains("    run_end -. \"on failure\" .-> s_alarm\n"),
        "{diagram}"
    );
    let json = database.pgflow(&["flow", "orders", "--json"]).done();
    assert!(json.contains("\"runs_on\": \"failure\""), "{json}");
}

#[test]
fn before_the_end_only_why_knows_them() {
    let database = started();
    let run = database.pgflow(&["run", RUN]).done();
    assert!(!run.contains("tidy"), "{run}");
    let why = database.pgflow(&["why", RUN, "tidy"]).done();
    assert!(
        why.starts_with("It runs when the run has ended; the run has not ended.\n"),
        "{why}"
    );
}

#[test]
fn after_the_end_they_have_lines_of_their_own_and_are_not_blamed_for_it() {
    let database = started();
    database.fails("pay", "no money");
    database.fails("alarm", "nobody answers");
    let run = database.pgflow(&["run", RUN]).stdout;
    assert!(run.contains("\nerror    no money\n"), "{run}");
    let alarm = row(&run, "alarm ");
    assert!(
        alarm.starts_with("alarm on failure failed 0 0 0 1 "),
        "{run}"
    );
    assert!(alarm.ends_with(" nobody answers"), "{run}");
    // Claimed with the other one, and still running.
    let tidy = row(&run, "tidy ");
    assert!(tidy.starts_with("tidy on end started 0 1 0 0 "), "{run}");
    assert!(!run.contains("unfinished when the run failed"), "{run}");

    let why = database.pgflow(&["why", RUN]).done();
    assert!(
        why.starts_with("Step \"pay\" failed the run: no money\n"),
        "{why}"
    );
    assert!(
        row(&why, "alarm ").ends_with("Its run had failed before, and stays as it is."),
        "{why}"
    );
    assert!(
        row(&why, "tidy ").ends_with("Its task is running."),
        "{why}"
    );
}
