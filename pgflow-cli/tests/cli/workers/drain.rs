use std::process::Stdio;

use crate::{
    running::Running,
    support::{Database, command, json},
};

/// Function `sums`, fenced, with a worker that has claimed a task.
fn fenced() -> (Database, String) {
    let database = Database::with_flow();
    let id = database.register(1, "sums", "sums", None);
    database.claims(&id);
    database.pgflow(&["workers", "fence", "sums"]).done();
    (database, id)
}

const DRAINED: &str = "drained: no worker lives, and none of their tasks is started\n";

#[test]
fn where_nobody_lives_it_is_done_at_once() {
    let database = Database::with_flow();
    let id = database.register(1, "sums", "sums", None);
    database.pgflow(&["workers", "fence", "sums"]).done();
    database.stops(&id);
    assert_eq!(
        database.pgflow(&["workers", "drain", "sums"]).done(),
        DRAINED
    );
}

#[test]
fn it_waits_for_the_task_and_then_for_the_worker_and_shows_for_whom() {
    let (database, id) = fenced();
    let drain = ["workers", "drain", "--flow", "sums", "--timeout", "60s"];
    let mut drain = Running::start(&database, &drain);
    let line = drain.sees_error("waiting for 1 worker: 1 draining; 1 started task, ");
    assert!(line.ends_with(" seconds more at most\n"), "{line}");
    database.completes_all();
    drain.sees_error("waiting for 1 worker: 1 draining; 0 started tasks, ");
    database.stops(&id);
    assert_eq!(drain.end(), (0, DRAINED.to_owned(), String::new()));
}

#[test]
fn a_silent_worker_holds_it_up_no_longer_than_its_tasks_and_these_are_recovered() {
    let (database, id) = fenced();
    database.execute("update pgflow.installation set lost_after = '1 hour'");
    database.loses(&id);
    let drain = ["workers", "drain", "sums", "--timeout", "60s"];
    let mut drain = Running::start(&database, &drain);
    drain.sees_error("waiting for 1 worker: 1 lost; 1 started task, ");
    // A young server takes nobody for dead.
    database.execute(
        "alter table pgflow.installation drop constraint lost_after_is_bounded;
         update pgflow.installation set lost_after = '1 second'",
    );
    let (code, stdout, _) = drain.end();
    assert_eq!(
        (code, stdout),
        (
            0,
            format!("1 task of dead workers went back into their queues\n{DRAINED}")
        )
    );
    assert_eq!(
        database.number(
            "select count(*) from pgflow.step_tasks where status = 'queued' and requeued_count = 1"
        ),
        1
    );
}

#[test]
fn when_the_time_is_over_it_says_who_still_lives_and_how_to_go_on() {
    let (database, draining) = fenced();
    let silent = "00000000-0000-0000-0000-000000000002";
    // Workers in every state in which they hold it up. One that stopped does not: its task goes
    // back.
    database.execute("update pgflow.installation set lost_after = '1 hour'");
    database.execute("select pgflow.enable_worker_function('sums')");
    for id in 2..6 {
        let id = database.register(id, "sums", "sums", None);
        database.claims(&id);
    }
    database.pgflow(&["workers", "fence", "sums"]).done();
    database.loses(silent);
    database.stops("00000000-0000-0000-0000-000000000003");
    database.execute(
        "select pgflow.complete_task(run_id, step_slug, task_index, '[]')
         from pgflow.step_tasks where last_worker_id = '00000000-0000-0000-0000-000000000004'",
    );
    let drain = ["workers", "drain", "sums", "--timeout", "0s"];
    let drained = database.pgflow(&drain);
    assert_eq!((drained.code, drained.stderr.as_str()), (7, ""));
    let text = drained.stdout;
    for line in [
        "1 task of dead workers went back into their queues\nnot drained in no time: 4 workers: 3 draining, 1 lost; 3 started tasks\n",
        "sums: a worker finishes what it runs; it gives up at its shutdown timeout, or at the timeout of its tasks, at the latest at 20",
        "sums: a worker was told to stop, has nothing to do, and still sends heartbeats; ",
        "sums: a worker died, or can't reach the database; recovery takes its tasks, from 20",
        "\nto wait on: pgflow workers drain sums --timeout 10m\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for id in [&*draining, silent] {
        assert!(text.contains(&format!("\n{}  sums", &id[24..])), "{text}");
    }

    let as_json = database.pgflow(&[&drain[..], &["--json"]].concat());
    assert_eq!((as_json.code, as_json.stderr.as_str()), (7, ""));
    let status = json(&as_json.stdout);
    assert_eq!(status["is_drained"], false);
    assert_eq!(status["told_to_stop"], json("[]"));
    assert_eq!(status["enabled_functions"], json("[]"));
    assert_eq!(status["requeued_tasks"], 0);
    let waiting_for = status["waiting_for"].as_array().unwrap();
    assert_eq!(waiting_for.len(), 4);
    assert_eq!(waiting_for[1]["state"], "lost");
    assert_eq!(waiting_for[1]["started_tasks"], 1);
    assert!(waiting_for[1]["tasks_overdue_at"].is_string());
}

#[test]
fn an_enabled_function_is_warned_about_and_its_workers_are_told() {
    let database = Database::with_flow();
    let id = database.register(1, "sums", "sums", None);
    let drain = [
        "workers",
        "drain",
        "sums",
        "--timeout",
        "60s",
        "--reason",
        "too old",
    ];
    let mut drain = Running::start(&database, &drain);
    assert_eq!(drain.sees_error("told"), "told 1 worker to stop\n");
    assert_eq!(
        drain.sees_error("warning"),
        "warning: sums is enabled, so whoever supervises its workers may start them again; to keep them out: pgflow workers fence sums\n"
    );
    drain.sees_error("waiting for 1 worker: 1 draining; 0 started tasks, ");
    assert_eq!(
        database.text("select deprecated_reason from pgflow.workers"),
        "too old"
    );
    let next = database.register(2, "sums", "sums", None);
    database.stops(&id);
    drain.sees_error("waiting for 1 worker: 1 running; 0 started tasks, ");
    database.stops(&next);
    assert_eq!(drain.end(), (0, DRAINED.to_owned(), String::new()));

    database.register(3, "sums", "sums", None);
    database.execute(
        "create function public.come() returns trigger language plpgsql as $$
         begin
             new.deprecated_at := null;
             return new;
         end $$;
         create trigger come before update on pgflow.workers for each row execute function public.come()",
    );
    let shown = database.pgflow(&["workers", "drain", "sums", "--timeout", "0s"]);
    assert_eq!(shown.code, 7);
    assert!(
        shown.stdout.contains("sums: a worker has started since the others were told to stop; keep them out with `pgflow workers fence sums`"),
        "{shown:?}"
    );
}

#[test]
fn a_timeout_has_a_unit() {
    let database = Database::with_flow();
    let error = database
        .pgflow(&["workers", "drain", "sums", "--timeout", "60"])
        .failed(2);
    assert!(error.contains("did you mean 60s?"), "{error}");
}

#[test]
fn nobody_has_to_read_what_it_says_meanwhile() {
    let (database, _) = fenced();
    for (function, code) in [("sums", 7), ("nope", 3)] {
        let mut child = command(&["workers", "drain", function, "--timeout", "1s"])
            .env("DATABASE_URL", &database.url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{function}");
    }
}

#[test]
fn a_database_may_have_another_isolation_level_by_default() {
    let database = Database::with_flow();
    let id = database.register(1, "sums", "sums", None);
    database.execute(
        "do $$ begin
            execute format('alter database %I set default_transaction_isolation = serializable', current_database());
        end $$",
    );
    database.pgflow(&["workers", "disable", "sums"]).done();
    database.pgflow(&["workers", "enable", "sums"]).done();
    let drain = ["workers", "drain", "sums", "--timeout", "0s"];
    let drain = database.pgflow(&drain);
    assert_eq!(drain.code, 7, "{drain:?}");
    database.pgflow(&["workers", "fence", "sums"]).done();
    database.stops(&id);
    assert_eq!(
        database.pgflow(&["workers", "drain", "sums"]).done(),
        DRAINED
    );
    database.pgflow(&["workers", "unfence", "sums"]).done();
}
