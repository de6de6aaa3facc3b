//! Text from the database can neither control a terminal nor look like a line of the command.

use crate::support::{Database, json, pgflow};

const ID: &str = "00000000-0000-0000-0000-00000000000a";

/// Clears the screen, rings, starts a line, turns the direction, and is a control character of C1.
const EVIL: &str = "\u{1b}[2J\u{7}\nforged  row\r\u{202e}gnp\u{9b}31m\u{2066}\u{7f}";

/// A run that failed with such a text, and functions, workers and reasons with such names.
fn infected() -> Database {
    let database = Database::with_a_run_that_failed(ID);
    let literal = format!("'{EVIL}'");
    database.execute(&format!(
        "update pgflow.runs set error_message = {literal};
         update pgflow.step_states set error_message = {literal} where status = 'failed';
         select pgflow.track_worker_function('twins' || {literal});
         select pgflow.register_worker(gen_random_uuid(), 'twins' || {literal}, 'twins', null, 'twins', '{{}}');
         update pgflow.workers set last_heartbeat_at = now() + interval '1 hour', deprecated_at = now(), deprecated_reason = {literal};
         select pgflow.disable_worker_function('twins', {literal});
         select pgmq.send('twins', to_jsonb('\u{1b}[2J'::text))"
    ));
    database
}

/// Fails the test when a character could drive a terminal, or when a line is forged.
fn assert_harmless(text: &str) {
    for character in text.chars().filter(|character| *character != '\n') {
        let is_bidi = "\u{202e}\u{2066}\u{2028}\u{200f}\u{61c}".contains(character);
        assert!(!character.is_control() && !is_bidi, "{text:?}");
    }
    assert!(
        !text.lines().any(|line| line.starts_with("forged")),
        "{text}"
    );
}

#[test]
fn no_command_prints_a_control_character_or_a_forged_line() {
    let database = infected();
    let name = format!("twins{EVIL}");
    for arguments in [
        &["run", ID][..],
        &["run", ID, "--watch"],
        &["why", ID],
        &["why", ID, "one"],
        &["why", ID, "other"],
        &["runs"],
        &["flows"],
        &["flow", "twins"],
        &["coverage"],
        &["queues"],
        &["queues", "--inspect", "--body"],
        &["workers", "list", "--all"],
        &["workers", "disable", &name],
        &["workers", "enable", &name],
        &["workers", "fence", &name],
        &["workers", "drain", &name, "--timeout", "0s"],
        &["workers", "unfence", &name],
        &["workers", "enable", "twins", "--archive-unsupported"],
        &["status"],
    ] {
        let ran = database.pgflow(arguments);
        assert_harmless(&ran.stdout);
        assert_harmless(&ran.stderr);
        assert!(!ran.stdout.is_empty(), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn errors_quote_what_was_typed_without_its_controls() {
    let database = infected();
    let url = format!("postgres://localhost:1/{}", "a\u{202e}b");
    for arguments in [
        &["flow", EVIL][..],
        &["start", EVIL, "--input", "1"],
        &["workers", "enable", EVIL],
        &["queues", "--inspect", EVIL],
        &["run", EVIL],
        &[EVIL],
        &["runs", "--status", EVIL],
        &["start", "twins", "--input", &format!("@{EVIL}")],
        &["runs", "--database-url", &url],
    ] {
        let ran = database.pgflow(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}");
        assert_harmless(&ran.stderr);
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{ran:?}");
    }
}

#[test]
fn json_has_every_text_as_it_is() {
    let database = infected();
    let run = database.pgflow(&["run", ID, "--json"]);
    assert_eq!(json(&run.stdout)["error_message"], EVIL);
    let functions = json(&database.pgflow(&["workers", "list", "--json"]).done());
    assert_eq!(functions[1]["function_name"], format!("twins{EVIL}"));
}

#[test]
fn an_error_of_postgres_ends_with_no_line_of_its_source() {
    let database = Database::migrated();
    database.execute("create or replace function pgflow.explain_step(run_id uuid, step_slug text) returns jsonb language plpgsql as $$ begin raise exception 'no such luck' using hint = 'Try again.'; end $$");
    let error = database.pgflow(&["why", ID, "one"]).failed(1);
    assert!(
        error.contains("no such luck\n  hint: Try again.\n"),
        "{error}"
    );
    assert!(!error.contains("at line"), "{error}");
    let error = database.pgflow(&["why", ID, "one", "--json"]).failed(1);
    assert!(!error.contains("at line"), "{error}");
}

#[test]
fn other_databases_and_several_hosts_are_refused_before_they_are_dialled() {
    for (url, problem) in [
        ("mysql://u:hunter2@localhost/db", "begins with mysql://"),
        ("postgres://u:hunter2@one,two/db", "names several hosts"),
    ] {
        let error = pgflow(&["runs", "--database-url", url]).failed(2);
        assert!(
            error.contains(problem) && !error.contains("hunter2"),
            "{error}"
        );
    }
}
