//! The defined flows.

use serde_json::json as value;

use crate::support::{Database, Ran, WORKER, cells, json};

/// Flow `orders` with queues for its steps, all of whose features are used: own options, a map,
/// conditions and modes.
fn with_orders() -> Database {
    let database = Database::with_two_flows();
    database.execute(
        r#"select pgflow.ensure_flow_compiled('orders', '{"options": {"maxAttempts": 4, "timeout": 90}, "steps": [
               {"slug": "items", "stepType": "single", "dependencies": [], "whenUnmet": "skip", "whenExhausted": "fail",
                "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false},
                "options": {"maxAttempts": 7, "startDelay": 5400}},
               {"slug": "pack", "stepType": "map", "dependencies": ["items"], "whenUnmet": "skip", "whenExhausted": "skip",
                "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}},
               {"slug": "gift", "stepType": "single", "dependencies": [], "whenUnmet": "skip-cascade", "whenExhausted": "fail",
                "requiredInputPattern": {"defined": true, "value": {"plan": "premium"}},
                "forbiddenInputPattern": {"defined": true, "value": {"country": "nl"}}, "options": {"timeout": 90}},
               {"slug": "ship", "stepType": "single", "dependencies": ["pack", "gift"], "whenUnmet": "skip", "whenExhausted": "skip-cascade",
                "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}}]}', 'step')"#,
    );
    database.register(1, "orders__pack", "orders", Some("pack"));
    database.register(2, "orders__pack", "orders", Some("pack"));
    database.register(3, "orders__ship", "orders", Some("ship"));
    // It finishes what it runs, and takes nothing new.
    database.execute(
        "update pgflow.workers set deprecated_at = now() where function_name = 'orders__ship'",
    );
    database
}

/// The lines of a table that starts with this column and holds that one.
fn table<'a>(text: &'a str, first: &str, other: &str) -> Vec<Vec<&'a str>> {
    let lines = cells(text);
    let header = lines
        .iter()
        .position(|line| line.first() == Some(&first) && line.contains(&other));
    let header = header.unwrap_or_else(|| panic!("no table with {first} and {other}:\n{text}"));
    lines[header + 1..]
        .iter()
        .take_while(|line| !line.is_empty())
        .cloned()
        .collect()
}

#[test]
fn every_flow_has_a_line_with_its_options_and_workers() {
    let database = with_orders();
    database.execute(WORKER);
    let text = database.pgflow(&["flows"]).done();
    assert_eq!(
        table(&text, "FLOW", "COVERED"),
        [
            ["orders", "step", "4", "4", "5s", "1m30s", "2", "NO"],
            ["steps", "step", "2", "3", "5s", "1m", "0", "NO"],
            ["sums", "flow", "2", "3", "5s", "1m", "1", "yes"],
        ]
    );
}

#[test]
fn the_list_as_json_counts_queues_too() {
    let database = with_orders();
    database.execute(WORKER);
    let flows = json(&database.pgflow(&["flows", "--json"]).done());
    let mut orders = flows[0].clone();
    assert!(orders["created_at"].take().is_string());
    assert_eq!(
        orders,
        value!({
            "flow_slug": "orders",
            "queue_mode": "step",
            "steps": 4,
            "options": { "max_attempts": 4, "base_delay": 5, "max_delay": 3600, "give_up_after": 86400, "timeout": 90, "start_delay": null },
            "created_at": null,
            "queues": 4,
            "covered_queues": 1,
            "is_covered": false,
            "live_workers": 2,
        })
    );
    let sums = &flows[2];
    let counts = ["queues", "covered_queues", "live_workers"].map(|key| sums[key].as_i64());
    assert_eq!(counts, [Some(1); 3]);
    assert_eq!(sums["is_covered"], true);
}

/// The list does without the view `coverage`, as that counts messages.
#[test]
fn the_list_and_coverage_agree_on_who_serves_what() {
    let database = with_orders();
    database.execute(WORKER);
    for other in ["steps__b", "steps__a"] {
        let (_, step) = other.split_once("__").unwrap();
        let id = u32::from(step == "a") + 10;
        database.register(id, other, "steps", Some(step));
    }
    let flows = json(&database.pgflow(&["flows", "--json"]).done());
    let Ran { stdout, .. } = database.pgflow(&["coverage", "--json"]);
    let routes = json(&stdout);
    for flow in flows.as_array().unwrap() {
        let slug = &flow["flow_slug"];
        let of_flow = || {
            let routes = routes.as_array().unwrap().iter();
            routes.filter(|route| route["flow_slug"] == *slug)
        };
        let covered = of_flow().filter(|route| route["is_covered"] == true);
        let workers = of_flow().filter_map(|route| route["live_workers"].as_i64());
        assert_eq!(flow["queues"], of_flow().count(), "{slug}");
        assert_eq!(flow["covered_queues"], covered.count(), "{slug}");
        assert_eq!(flow["live_workers"], workers.sum::<i64>(), "{slug}");
    }
    let covered: Vec<_> = flows
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| &flow["is_covered"])
        .collect();
    assert_eq!(covered, [false, true, true]);
}

#[test]
fn no_flow_is_no_fault_and_a_flow_may_have_no_steps() {
    let database = Database::migrated();
    assert_eq!(database.pgflow(&["flows"]).done(), "no flows\n");
    assert_eq!(database.pgflow(&["flows", "--json"]).done(), "[]\n");
    database.execute("select pgflow.create_flow('empty')");
    let flows = database.pgflow(&["flows"]).done();
    assert_eq!(
        table(&flows, "FLOW", "COVERED"),
        [["empty", "flow", "0", "3", "5s", "1m", "0", "NO"]]
    );
    let flow = database.pgflow(&["flow", "empty"]).done();
    assert!(flow.ends_with("\n\nno steps\n"), "{flow}");
}

#[test]
fn a_flow_is_shown_with_its_steps_in_order() {
    let database = with_orders();
    let text = database.pgflow(&["flow", "orders"]).done();
    for line in [
        "flow     orders\n",
        "queues   one for each step\n",
        "workers  2 live workers\n",
        "options  4 attempts, base delay 5s, max delay 1h, give up after 1d, timeout 1m30s\n",
        "\n*: the step's own; the other options are the flow's\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let rows: Vec<String> = table(&text, "STEP", "QUEUE")
        .iter()
        .map(|row| row.join(" "))
        .collect();
    assert_eq!(
        rows,
        [
            "items single 7* 5s 1m30s 1h30m* fail orders__items 0",
            "pack map over items items 4 5s 1m30s skip orders__pack 2",
            // As long as the flow's, and yet its own: it stays when the flow's is tuned.
            "gift single 4 5s 1m30s* fail orders__gift 0",
            "ship single pack, gift 4 5s 1m30s skip-cascade orders__ship 0",
        ]
    );
    assert_eq!(
        table(&text, "STEP", "UNMET"),
        [[
            "gift",
            r#"{"plan":"premium"}"#,
            r#"{"country":"nl"}"#,
            "skip-cascade"
        ]]
    );
}

#[test]
fn a_plain_flow_has_no_marks_and_no_conditions() {
    let database = Database::with_flow();
    database.execute("select pgflow.create_flow('all'); select pgflow.add_step('all', 'each', step_type => 'map')");
    database.execute(WORKER);
    let text = database.pgflow(&["flow", "sums"]).done();
    assert!(
        text.contains("queues   one for all steps\nworkers  1 live worker\n"),
        "{text}"
    );
    assert!(!text.contains('*') && !text.contains("UNMET"), "{text}");
    let rows = table(&text, "STEP", "QUEUE");
    assert_eq!(
        rows[0],
        ["numbers", "single", "3", "5s", "1m", "fail", "sums", "1"]
    );
    assert_eq!(
        rows[1][..5],
        ["doubled", "map", "over", "numbers", "numbers"]
    );
    let text = database.pgflow(&["flow", "all"]).done();
    assert_eq!(
        table(&text, "STEP", "QUEUE")[0][..5],
        ["each", "map", "over", "the", "input"]
    );
}

#[test]
fn a_flow_as_json_tells_own_options_from_those_that_apply() {
    let database = with_orders();
    let mut flow = json(&database.pgflow(&["flow", "orders", "--json"]).done());
    assert!(flow["created_at"].is_string());
    assert_eq!(flow["options"]["max_attempts"], 4);
    assert_eq!(flow["live_workers"], 2);
    let steps: Vec<_> = flow["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["step_slug"])
        .collect();
    assert_eq!(steps, ["items", "pack", "gift", "ship"]);
    assert_eq!(flow["steps"][1]["live_workers"], 2);
    assert_eq!(flow["steps"][3]["depends_on"], value!(["pack", "gift"]));
    assert_eq!(
        flow["steps"][2].take(),
        value!({
            "step_index": 2,
            "step_slug": "gift",
            "step_type": "single",
            "depends_on": [],
            "queue_name": "orders__gift",
            "options": { "max_attempts": null, "base_delay": null, "max_delay": null, "give_up_after": null, "timeout": 90, "start_delay": null },
            "required_input_pattern": { "plan": "premium" },
            "forbidden_input_pattern": { "country": "nl" },
            "when_unmet": "skip-cascade",
            "when_exhausted": "fail",
            "on_element_failure": "fail",
            "effective_options": { "max_attempts": 4, "base_delay": 5, "max_delay": 3600, "give_up_after": 86400, "timeout": 90, "start_delay": null },
            "live_workers": 0,
        })
    );
}

#[test]
fn a_diagram_is_written_alone() {
    let database = with_orders();
    let diagram = r#"graph LR
    s_items["items"]
    s_pack[["pack<br/>one task per element of items<br/>when exhausted: skip"]]
    s_gift["gift<br/>if {#34;plan#34;#58;#34;premium#34;}<br/>if not {#34;country#34;#58;#34;nl#34;}<br/>when unmet: skip-cascade"]
    s_ship["ship<br/>when exhausted: skip-cascade"]
    s_items --> s_pack
    s_pack -. "optional" .-> s_ship
    s_gift -. "cascades" .-> s_ship
"#;
    let written = database.pgflow(&["flow", "orders", "--mermaid"]).done();
    assert_eq!(written, diagram);
    let as_json = json(
        &database
            .pgflow(&["flow", "orders", "--mermaid", "--json"])
            .done(),
    );
    assert_eq!(
        as_json,
        value!({ "flow_slug": "orders", "mermaid": diagram })
    );
}

#[test]
fn an_unknown_flow_is_not_found_and_a_similar_one_is_named() {
    let database = Database::with_two_flows();
    for arguments in [["flow", "sum"].as_slice(), &["flow", "sum", "--mermaid"]] {
        assert_eq!(
            database.pgflow(arguments).failed(3),
            "error: flow \"sum\" is not defined in this database; expected the exact slug of one that it has: steps, sums; did you mean \"sums\"?\n"
        );
    }
    let refused = json(&database.pgflow(&["flow", "Sums", "--json"]).failed(3));
    assert_eq!(refused["exit_code"], 3);
    let refused = Database::migrated().pgflow(&["flow", "sums"]).failed(3);
    assert!(refused.contains("it has no flows"), "{refused}");
}

#[test]
fn a_database_that_is_not_ready_is_refused() {
    let database = Database::blank();
    for arguments in [["flows"].as_slice(), &["flow", "sums"]] {
        let refused = database.pgflow(arguments).failed(4);
        assert!(refused.contains("pgflow migrate"), "{refused}");
    }
}
