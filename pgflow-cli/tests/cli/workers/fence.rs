use crate::support::{Database, json};

/// Function `sums` with a live worker and `audit`, which is disabled, with none.
fn two_functions() -> Database {
    let database = Database::with_flow();
    database.register(1, "sums", "sums", None);
    database.execute(
        "select pgflow.track_worker_function('audit');
         select pgflow.disable_worker_function('audit', 'poisoned work')",
    );
    database
}

#[test]
fn a_set_is_fenced_at_once_and_says_what_is_recorded_who_was_told_and_what_comes_next() {
    let database = two_functions();
    let fence = [
        "workers",
        "fence",
        "sums",
        "audit",
        "--reason",
        "release 42",
    ];
    let text = database.pgflow(&fence).done();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "audit is fenced; the end of the fence restores: disabled (poisoned work)",
            "sums is fenced; the end of the fence restores: enabled",
            "",
            "told 1 worker to stop:",
        ]
    );
    assert!(lines[5].contains("draining"), "{text}");
    assert!(
        text.ends_with("\n\nnext: pgflow workers drain sums audit\n"),
        "{text}"
    );
    for function in ["sums", "audit"] {
        assert_eq!(database.state(function), "fenced");
    }
    assert_eq!(
        database.text(
            "select disabled_reason from pgflow.worker_functions where function_name = 'sums'"
        ),
        "fenced: release 42"
    );
    assert_eq!(database.told(), 1);

    let again = database.pgflow(&["workers", "fence", "sums"]).done();
    assert!(
        again.starts_with("sums was fenced already, since 20"),
        "{again}"
    );
    assert!(
        again.contains("restores: enabled\n\nno worker had to be told to stop\n"),
        "{again}"
    );
}

#[test]
fn all_functions_of_a_flow_are_one_set() {
    let database = Database::with_two_flows();
    database.register(1, "steps__a", "steps", Some("a"));
    database.register(2, "steps__b", "steps", Some("b"));
    database.register(3, "sums", "sums", None);
    let fenced = database
        .pgflow(&["workers", "fence", "--flow", "steps", "--json"])
        .done();
    let fenced = json(&fenced);
    for (n, function) in ["steps__a", "steps__b"].into_iter().enumerate() {
        assert_eq!(fenced["functions"][n]["after"]["function_name"], function);
        assert_eq!(fenced["functions"][n]["before"]["enabled"], true);
        assert_eq!(fenced["functions"][n]["after"]["enabled"], false);
        assert_eq!(fenced["told_to_stop"][n]["function_name"], function);
        assert_eq!(fenced["told_to_stop"][n]["state"], "draining");
    }
    assert_eq!(database.state("sums"), "enabled");
    let again = database
        .pgflow(&["workers", "fence", "--flow", "steps"])
        .done();
    assert!(
        again.ends_with("next: pgflow workers drain --flow steps\n"),
        "{again}"
    );
}

#[test]
fn a_name_is_quoted_for_the_shell_that_will_read_it() {
    let database = two_functions();
    database.execute("select pgflow.track_worker_function('it''s mine')");
    let text = database.pgflow(&["workers", "fence", "it's mine"]).done();
    assert!(
        text.ends_with("next: pgflow workers drain 'it'\\''s mine'\n"),
        "{text}"
    );
}
