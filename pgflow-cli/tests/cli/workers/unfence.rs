use crate::{
    running::Running,
    support::{Database, json},
};

fn fenced() -> Database {
    let database = Database::with_flow();
    let id = database.register(1, "sums", "sums", None);
    database.pgflow(&["workers", "fence", "sums"]).done();
    database.stops(&id);
    database
}

#[test]
fn each_function_becomes_what_it_was() {
    let database = fenced();
    database.execute(
        "select pgflow.track_worker_function('audit');
         select pgflow.track_worker_function('other');
         select pgflow.disable_worker_function('audit', 'poisoned work');
         select pgflow.fence_worker_functions(array['audit'])",
    );
    let text = database
        .pgflow(&["workers", "unfence", "sums", "audit", "other"])
        .done();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("audit is not fenced any more, and still disabled since 20")
            && lines[0].ends_with(
                "Z: poisoned work; once that is dealt with: pgflow workers enable audit"
            ),
        "{text}"
    );
    assert_eq!(
        lines[1..],
        [
            "other was not fenced; it stays enabled",
            "sums is not fenced any more: it is enabled again",
        ]
    );
    assert_eq!(database.state("audit"), "disabled");
    assert_eq!(database.state("sums"), "enabled");
}

#[test]
fn as_json_it_shows_before_and_after() {
    let database = fenced();
    let unfence = ["workers", "unfence", "--flow", "sums", "--json"];
    let answer = json(&database.pgflow(&unfence).done());
    assert_eq!(answer["functions"][0]["before"]["recorded_enabled"], true);
    assert_eq!(answer["functions"][0]["after"]["enabled"], true);
    assert_eq!(answer["is_up"], json("null"));

    database.pgflow(&["workers", "fence", "sums"]).done();
    let waited = database.pgflow(&[&unfence[..], &["--wait", "0s"]].concat());
    assert_eq!((waited.code, waited.stderr.as_str()), (7, ""));
    let answer = json(&waited.stdout);
    assert_eq!(answer["is_up"], false);
    assert_eq!(answer["restart"]["without_worker"], json(r#"["sums"]"#));
    assert_eq!(answer["restart"]["uncovered"][1]["step_slug"], "doubled");
}

#[test]
fn it_waits_for_a_worker_that_has_started_since() {
    let database = fenced();
    // Told to stop by the fence, and still alive: that is the old code.
    database.execute("update pgflow.workers set stopped_at = null");
    let mut unfence = Running::start(&database, &["workers", "unfence", "sums", "--wait", "60s"]);
    unfence.sees_error("waiting for a running worker of sums; somebody who serves sums, ");
    database.register(2, "sums", "sums", None);
    let (code, stdout, stderr) = unfence.end();
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(
        stdout,
        "sums is not fenced any more: it is enabled again\nup: it has a running worker, and every step of its flow is served\n"
    );
}

#[test]
fn every_step_of_the_flow_must_be_served_even_by_functions_that_are_not_named() {
    let database = Database::with_two_flows();
    database.register(1, "steps__a", "steps", Some("a"));
    let other = database.register(2, "steps__b", "steps", Some("b"));
    let unfence = ["workers", "unfence", "steps__a", "--wait", "0s"];
    database.pgflow(&["workers", "fence", "steps__a"]).done();
    database.stops(&other);
    let shown = database.pgflow(&unfence);
    assert_eq!((shown.code, shown.stderr.as_str()), (7, ""));
    assert_eq!(
        shown.stdout,
        "steps__a is not fenced any more: it is enabled again\n\
         not up in time:\n\
         steps__a has no running worker: look whether its process was started, and at its log\n\
         step b of steps is not served: nobody reads queue steps__b\n\
         step a of steps is not served: nobody reads queue steps__a\n\
         the fence has ended; to wait on: pgflow workers unfence steps__a --wait 60s\n"
    );
    // The same call again waits for the same.
    let again = database.pgflow(&unfence);
    assert_eq!(again.code, 7);
    assert!(
        again
            .stdout
            .starts_with("steps__a was not fenced; it stays enabled\nnot up in time:\n"),
        "{again:?}"
    );
    database
        .pgflow(&["workers", "fence", "--flow", "steps"])
        .done();
    let mut unfence = Running::start(
        &database,
        &["workers", "unfence", "--flow", "steps", "--wait", "60s"],
    );
    unfence.sees_error("waiting for a running worker of steps__a, steps__b; somebody who serves steps__b, steps__a, ");
    database.register(3, "steps__a", "steps", Some("a"));
    unfence.sees_error("waiting for a running worker of steps__b; somebody who serves steps__b, ");
    database.register(4, "steps__b", "steps", Some("b"));
    let (code, stdout, _) = unfence.end();
    assert_eq!(code, 0);
    assert!(
        stdout.ends_with(
            "up: all 2 functions have a running worker, and every step of their flows is served\n"
        ),
        "{stdout}"
    );
}

#[test]
fn where_nothing_was_enabled_there_is_nothing_to_wait_for() {
    let database = fenced();
    database.execute("select pgflow.disable_worker_function('sums', 'broken')");
    let text = database
        .pgflow(&["workers", "unfence", "sums", "--wait", "60s"])
        .done();
    assert!(
        text.ends_with("\nno function is enabled, so there is nothing to wait for\n"),
        "{text}"
    );
}
