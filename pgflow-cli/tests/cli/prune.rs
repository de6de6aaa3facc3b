//! Removal of old runs.

use crate::support::{Database, json};

const SLOTS: &[u32] = &[10, 40, 20, 31, 1];

#[test]
fn runs_that_ended_long_ago_go_in_as_many_batches_as_it_takes() {
    let database = Database::with_runs_that_ended(SLOTS);
    let arguments = ["prune", "--older-than", "15d", "--batch", "2", "--yes"];
    assert_eq!(
        database.pgflow(&arguments).done(),
        "removed 3 runs that ended more than 15 days ago\n"
    );
    assert_eq!(database.runs(), 2);
    assert_eq!(
        database.number(
            "select count(*) from pgflow.runs where completed_at < now() - interval '15 days'"
        ),
        0
    );
    assert_eq!(
        json(
            &database
                .pgflow(&[&arguments[..], &["--json"]].concat())
                .done()
        ),
        json(r#"{"removed_runs": 0, "interrupted": false}"#)
    );
    let rest = ["prune", "--older-than", "1h30m", "--yes"];
    assert_eq!(
        database.pgflow(&rest).done(),
        "removed 2 runs that ended more than 1 hour 30 minutes ago\n"
    );
    assert_eq!(database.runs(), 0);
}

#[test]
fn a_dry_run_counts_and_removes_nothing() {
    let database = Database::with_runs_that_ended(SLOTS);
    let arguments = ["prune", "--older-than", "30d", "--dry-run"];
    assert_eq!(
        database.pgflow(&arguments).done(),
        "2 runs with 2 tasks ended more than 30 days ago; nothing was removed\n"
    );
    assert_eq!(
        json(
            &database
                .pgflow(&[&arguments[..], &["--json"]].concat())
                .done()
        ),
        json(r#"{"runs": 2, "tasks": 2}"#)
    );
    assert_eq!(database.runs(), 5);
}

#[test]
fn without_a_terminal_it_needs_yes() {
    let database = Database::with_runs_that_ended(&[40]);
    // An answer that nobody was asked for counts for nothing.
    let error = database
        .pgflow_reading(&["prune", "--older-than", "30d"], "y\n")
        .failed(2);
    assert!(
        error.contains("--yes") && error.contains("nothing was removed"),
        "{error}"
    );
    assert_eq!(database.runs(), 1);
}

#[test]
fn an_age_is_a_positive_number_of_whole_seconds() {
    let database = Database::with_runs_that_ended(&[40]);
    for age in ["0", "0s", "1500ms", "soon", "30", "-1d", ""] {
        let option = format!("--older-than={age}");
        let error = database.pgflow(&["prune", &option, "--yes"]).failed(2);
        assert!(
            error.contains("--older-than <AGE>") && error.contains("such as 30d"),
            "{error}"
        );
    }
    let error = database
        .pgflow(&["prune", "--older-than", "5", "--yes"])
        .failed(2);
    assert!(error.contains("did you mean 5d?"), "{error}");
    database.pgflow(&["prune", "--yes"]).failed(2);
    for batch in ["0", "-1", "many"] {
        let option = format!("--batch={batch}");
        let arguments = ["prune", "--older-than", "1d", &option, "--yes"];
        database.pgflow(&arguments).failed(2);
    }
    assert_eq!(database.runs(), 1);
    // Older than anything, and than Postgres can tell.
    for age in ["300000years", "18446744073709551615s"] {
        let arguments = ["prune", "--older-than", age, "--yes"];
        let removed = database.pgflow(&arguments).done();
        assert!(removed.starts_with("removed 0 runs "), "{removed}");
    }
    assert_eq!(database.runs(), 1);
}

#[test]
fn a_batch_that_fails_leaves_what_was_removed_before_and_says_how_much() {
    let database = Database::with_runs_that_ended(&[40, 30, 20]);
    database.execute(
        "create function public.spoil() returns trigger language plpgsql as $$
         begin
             if old.completed_at > now() - interval '25 days' then
                 raise exception 'somebody objects';
             end if;
             return old;
         end $$;
         create trigger spoil before delete on pgflow.runs for each row execute function public.spoil()",
    );
    let arguments = ["prune", "--older-than", "10d", "--batch", "1", "--yes"];
    let error = database.pgflow(&arguments).failed(1);
    assert!(
        error.starts_with("error: a batch failed after 2 runs had been removed")
            && error.contains("somebody objects"),
        "{error}"
    );
    assert_eq!(database.runs(), 1);
}

#[test]
fn what_becomes_old_enough_meanwhile_is_left() {
    let database = Database::with_runs_that_ended(&[20]);
    // Each removal takes a while, in which another run becomes old enough: a moving limit would
    // remove that too, again and again.
    database.execute(
        "create sequence public.removals;
         create function public.follow() returns trigger language plpgsql as $$
         begin
             if nextval('public.removals') < 4 then
                 perform pg_sleep(0.2);
                 old.run_id := gen_random_uuid();
                 old.completed_at := clock_timestamp() - interval '10 days';
                 insert into pgflow.runs values (old.*);
             end if;
             return null;
         end $$;
         create trigger follow after delete on pgflow.runs for each row execute function public.follow()",
    );
    let removed = database.pgflow(&["prune", "--older-than", "10d", "--yes"]);
    assert!(removed.done().starts_with("removed 1 run "));
    assert_eq!(database.runs(), 1);
}

/// The effect of ctrl-c and SIGTERM in the middle of a batch that waits for a lock.
#[cfg(unix)]
mod interrupted {
    use std::{
        io::{BufRead as _, BufReader, Read as _},
        process::{Child, ChildStderr, Command, Stdio},
    };

    use crate::support::{Database, Held, command, eventually, json};

    struct Blocked {
        database: Database,
        held: Held,
        child: Child,
        stderr: BufReader<ChildStderr>,
    }

    /// Three runs to remove one by one; the first batch has removed its run, and can't continue.
    fn blocked(arguments: &[&str]) -> Blocked {
        let database = Database::with_runs_that_ended(&[40, 30, 20]);
        let held = database.holding("select from pgmq.a_sums for update");
        let prune = ["prune", "--older-than", "10d", "--batch", "1", "--yes"];
        let mut child = command(&[&prune, arguments].concat())
            .env("DATABASE_URL", &database.url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        database.until_blocked();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Blocked {
            database,
            held,
            child,
            stderr,
        }
    }

    impl Blocked {
        fn signal(&self, name: &str) {
            let pid = self.child.id().to_string();
            let sent = Command::new("kill").args([name, &pid]).status();
            assert!(sent.unwrap().success());
        }

        /// The next line, but for signs of life.
        fn line(&mut self) -> String {
            loop {
                let line = self.any_line();
                if !line.ends_with(" so far\n") {
                    return line;
                }
            }
        }

        fn any_line(&mut self) -> String {
            let mut line = String::new();
            self.stderr.read_line(&mut line).unwrap();
            line
        }
    }

    #[test]
    fn without_a_terminal_a_long_removal_says_how_far_it_is() {
        let mut blocked = blocked(&[]);
        let line = blocked.any_line();
        assert!(
            line.starts_with("0 runs removed, ") && line.ends_with(" seconds so far\n"),
            "{line}"
        );
        blocked.held.let_go();
        assert!(blocked.child.wait().unwrap().success());
        assert_eq!(blocked.database.runs(), 0);
    }

    #[test]
    fn the_batch_ends_first_and_what_was_removed_is_said() {
        for signal in ["-INT", "-TERM"] {
            let mut blocked = blocked(&["--json"]);
            blocked.signal(signal);
            let line = blocked.line();
            assert!(line.starts_with("stopping after this batch"), "{line}");
            blocked.held.let_go();
            let output = blocked.child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            assert_eq!(
                json(&String::from_utf8(output.stdout).unwrap()),
                json(r#"{"removed_runs": 1, "interrupted": true}"#)
            );
            assert_eq!(blocked.database.runs(), 2);
        }
    }

    #[test]
    fn a_second_signal_gives_the_batch_up() {
        let mut blocked = blocked(&[]);
        blocked.signal("-INT");
        blocked.line();
        blocked.signal("-INT");
        assert_eq!(blocked.child.wait().unwrap().code(), Some(1));
        let mut error = String::new();
        blocked.stderr.read_to_string(&mut error).unwrap();
        assert_eq!(
            error,
            "error: given up in the midst of a batch; 0 runs had been removed before it\n"
        );
        blocked.held.let_go();
        eventually("the server has noticed", || {
            blocked.database.number(
                "select count(*) from pg_stat_activity
                 where datname = current_database() and application_name = 'pgflow'",
            ) == 0
        });
        assert_eq!(blocked.database.runs(), 3);
    }
}

#[cfg(unix)]
mod on_a_terminal {
    use crate::support::{Database, Terminal};

    const PRUNE: [&str; 3] = ["prune", "--older-than", "30d"];

    #[test]
    fn it_asks_and_removes_after_yes() {
        for answer in ["y", "Yes"] {
            let database = Database::with_runs_that_ended(&[40, 50, 1]);
            let mut terminal = Terminal::open(&database, &PRUNE);
            terminal.sees("Remove 2 runs that ended more than 30 days ago? [y/N]");
            terminal.answers(answer);
            terminal.sees("removed 2 runs that ended more than 30 days ago");
            assert_eq!(terminal.exit_code(), 0);
            assert_eq!(database.runs(), 1);
        }
    }

    #[test]
    fn any_other_answer_is_no() {
        let database = Database::with_runs_that_ended(&[40]);
        for answer in ["", "n", "no", "yep"] {
            let mut terminal = Terminal::open(&database, &PRUNE);
            terminal.sees("Remove 1 run that ended more than 30 days ago? [y/N]");
            terminal.answers(answer);
            terminal.sees("nothing was removed");
            assert_eq!(terminal.exit_code(), 2);
        }
        assert_eq!(database.runs(), 1);
    }

    #[test]
    fn nothing_to_remove_is_nothing_to_ask() {
        let database = Database::with_runs_that_ended(&[1]);
        let mut terminal = Terminal::open(&database, &PRUNE);
        terminal.sees("removed 0 runs that ended more than 30 days ago");
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(database.runs(), 1);
    }
}
