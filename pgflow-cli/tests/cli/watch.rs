//! Following a run.

use crate::{
    running::Running,
    support::{Database, Terminal, WORKER_ID, json},
};

const RUN: &str = "00000000-0000-0000-0000-000000000001";
const WATCH: [&str; 5] = ["run", RUN, "--watch", "--interval", "100ms"];

fn started() -> Database {
    let database = Database::with_flow();
    let start = ["start", "sums", "--input", "{}", "--run-id", RUN];
    database.pgflow(&start).done();
    database
}

impl Database {
    fn worker_comes(&self) {
        self.execute(&format!(
            "select pgflow.track_worker_function('sums');
             select pgflow.register_worker('{WORKER_ID}', 'sums', 'sums', null, 'sums', '{{}}');
             update pgflow.workers set last_heartbeat_at = now() + interval '1 hour'"
        ));
    }

    fn claim_up_to(&self, tasks: u32) {
        self.execute(&format!(
            "select pgflow.claim_tasks('{WORKER_ID}', {tasks})"
        ));
    }

    fn complete(&self, step: &str, task: u32, output: &str) {
        self.execute(&format!(
            "select pgflow.complete_task('{RUN}', '{step}', {task}, '{output}')"
        ));
    }

    fn fail(&self) {
        self.execute(&format!(
            "select pgflow.fail_task('{RUN}', 'numbers', 0, 'out of numbers', retryable => false)"
        ));
    }
}

#[test]
fn without_a_terminal_each_change_is_a_line() {
    let database = started();
    let mut watch = Running::start(&database, &WATCH);
    let line = watch.sees("numbers  started; no live worker");
    assert_eq!(&line[19..22], "Z  ", "{line}");
    watch.sees("doubled  created; waits for numbers");
    watch.sees("(run)    started");
    database.worker_comes();
    watch.sees("numbers  started; waits for a free worker");
    database.claim_up_to(1);
    database.complete("numbers", 0, "[1, 2, 3]");
    watch.sees("numbers  completed");
    watch.sees("doubled  started, 0/3; waits for a free worker");
    database.claim_up_to(2);
    watch.sees("doubled  started, 0/3, 2 running");
    database.complete("doubled", 0, "2");
    watch.sees("doubled  started, 1/3, 1 running");
    database.complete("doubled", 1, "4");
    database.claim_up_to(1);
    database.complete("doubled", 2, "6");
    watch.sees("doubled  completed, 3/3");
    watch.sees("(run)    completed");
    watch.sees(r#"output   {"doubled":[2,4,6]}"#);
    let (code, _, stderr) = watch.end();
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn as_json_each_change_is_an_object_as_without_watching() {
    let database = started();
    let mut watch = Running::start(&database, &[&WATCH[..], &["--json"]].concat());
    let first = json(&watch.sees("no_worker"));
    assert_eq!(first["status"], "started");
    assert_eq!(first["steps"][0]["explanation"]["reason"], "no_worker");
    database.worker_comes();
    database.claim_up_to(1);
    watch.sees(r#""reason":"running""#);
    database.fail();
    let (code, rest, stderr) = watch.end();
    assert_eq!((code, stderr.as_str()), (5, ""));
    let last = rest.lines().last().unwrap();
    let shown = database.pgflow(&["run", RUN, "--json"]);
    assert_eq!(json(last), json(&shown.stdout));
}

#[test]
fn a_run_that_has_ended_is_shown_at_once() {
    let database = started();
    database.worker_comes();
    database.claim_up_to(1);
    database.fail();
    let shown = database.pgflow(&WATCH);
    assert_eq!((shown.code, shown.stderr.as_str()), (5, ""));
    for line in [
        "  (run)    failed: ",
        "\nstatus   failed\n",
        "doubled  created; never started\n",
    ] {
        assert!(shown.stdout.contains(line), "{shown:?}");
    }
}

#[test]
fn ctrl_c_ends_it_with_an_exit_code_that_is_not_that_of_a_completed_run() {
    let database = started();
    let mut watch = Running::start(&database, &WATCH);
    watch.sees("(run)");
    watch.signal("-INT");
    let (code, rest, stderr) = watch.end();
    assert_eq!((code, rest.as_str(), stderr.as_str()), (130, "", ""));
}

#[test]
fn an_unknown_run_and_one_that_goes_meanwhile_are_not_found() {
    let database = started();
    let other = RUN.replace('1', "2");
    let error = database.pgflow(&["run", &other, "--watch"]).failed(3);
    assert!(error.contains("`pgflow runs` lists them"), "{error}");
    let mut watch = Running::start(&database, &WATCH);
    watch.sees("(run)");
    database.pgflow(&["delete-flow", "sums", "--yes"]).done();
    let error = watch.sees_error("error: ");
    assert!(
        error.contains("was removed while it was watched"),
        "{error}"
    );
    assert_eq!(watch.end().0, 3);
}

#[test]
fn an_interval_has_a_unit_and_is_not_too_short() {
    let database = started();
    for (interval, problem) in [("1", "did you mean 1s?"), ("1ms", "too short")] {
        let arguments = ["run", RUN, "--watch", "--interval", interval];
        let error = database.pgflow(&arguments).failed(2);
        assert!(error.contains(problem), "{error}");
    }
    let without_watch = ["run", RUN, "--interval", "1s"];
    database.pgflow(&without_watch).failed(2);
}

#[test]
fn a_terminal_is_drawn_in_place_with_a_bar_and_ends_with_the_whole_run() {
    let database = started();
    database.worker_comes();
    let mut terminal = Terminal::open(&database, &WATCH);
    terminal.sees("doubled  created");
    database.claim_up_to(1);
    database.complete("numbers", 0, "[1, 2]");
    terminal.sees("\u{1b}[3A\r\u{1b}[2Krun ");
    terminal.sees("[--------------------] 0/2");
    database.claim_up_to(2);
    database.complete("doubled", 0, "2");
    terminal.sees("[##########----------] 1/2, 1 running");
    database.complete("doubled", 1, "4");
    terminal.sees("\u{1b}[3A\r\u{1b}[J");
    terminal.sees("status   completed");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let database = started();
    database.worker_comes();
    database.claim_up_to(1);
    database.complete("numbers", 0, "[1, 2]");
    let green = "\u{1b}[32mcompleted";
    for (variables, is_coloured) in [
        (&[("TERM", "xterm-256color")][..], true),
        (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], false),
    ] {
        let mut terminal = Terminal::open_with(&database, &WATCH, variables);
        let before = terminal.sees("0/2");
        assert_eq!(before.contains(green), is_coloured, "{before}");
        assert!(before.contains("completed"), "{before}");
        terminal.interrupts();
        assert_eq!(terminal.exit_code(), 130);
    }
    let mut terminal = Terminal::open_with(&database, &WATCH, &[("TERM", "dumb")]);
    let before = terminal.sees("0/2");
    assert!(!before.contains('\u{1b}'), "{before}");
    terminal.interrupts();
    assert_eq!(terminal.exit_code(), 130);
}
