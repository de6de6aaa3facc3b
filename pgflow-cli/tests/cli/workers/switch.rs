use crate::support::{Database, json};

fn two_functions() -> Database {
    let database = Database::with_flow();
    database.register(1, "sums", "sums", None);
    database.execute("select pgflow.track_worker_function('audit')");
    database
}

#[test]
fn a_disabled_function_says_why_and_who_goes_on() {
    let database = two_functions();
    let disable = ["workers", "disable", "sums", "audit", "--reason", "broken"];
    assert_eq!(
        database.pgflow(&disable).done(),
        "audit is disabled: none of its workers starts any more\n\
         sums is disabled: none of its workers starts any more\n\
         1 live worker goes on; to stop them: pgflow workers drain sums audit\n"
    );
    let again = database.pgflow(&["workers", "disable", "audit"]).done();
    assert!(
        again.starts_with("audit was disabled since 20") && again.ends_with("Z: broken already\n"),
        "{again}"
    );
    let enabled = database
        .pgflow(&["workers", "enable", "sums", "audit"])
        .done();
    let lines: Vec<&str> = enabled.lines().collect();
    assert!(
        lines[0].starts_with("audit is enabled; it was disabled since 20")
            && lines[0].ends_with("Z: broken"),
        "{enabled}"
    );
    assert_eq!(
        database.pgflow(&["workers", "enable", "sums"]).done(),
        "sums was enabled already\n"
    );
    assert_eq!(database.told(), 0);
}

#[test]
fn enabling_a_fenced_function_ends_its_fence_only() {
    let database = two_functions();
    let fence = ["workers", "fence", "sums", "audit"];
    database.pgflow(&fence).done();
    assert_eq!(
        database
            .pgflow(&["workers", "disable", "audit", "--reason", "broken"])
            .done(),
        "audit is fenced; the end of the fence restores: disabled (broken)\n"
    );
    let text = database
        .pgflow(&["workers", "enable", "--flow", "sums"])
        .done();
    assert_eq!(text, "sums is not fenced any more: it is enabled again\n");
    let text = database.pgflow(&["workers", "enable", "audit"]).done();
    assert!(
        text.starts_with("audit is not fenced any more, and still disabled since 20")
            && text.ends_with("Z: broken; once that is dealt with: pgflow workers enable audit\n"),
        "{text}"
    );
    assert_eq!(database.state("audit"), "disabled");
    database.pgflow(&["workers", "enable", "audit"]).done();
    assert_eq!(database.state("audit"), "enabled");
}

#[test]
fn as_json_they_show_before_and_after() {
    let database = two_functions();
    let disable = [
        "workers", "disable", "audit", "--reason", "broken", "--json",
    ];
    let disabled = json(&database.pgflow(&disable).done());
    assert_eq!(disabled[0]["before"]["enabled"], true);
    assert_eq!(disabled[0]["after"]["enabled"], false);
    assert_eq!(disabled[0]["after"]["disabled_reason"], "broken");
    let enabled = json(
        &database
            .pgflow(&["workers", "enable", "audit", "--json"])
            .done(),
    );
    assert_eq!(enabled[0]["before"], disabled[0]["after"]);
    assert_eq!(enabled[0]["after"]["enabled"], true);
}
