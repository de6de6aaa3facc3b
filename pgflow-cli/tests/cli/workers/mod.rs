//! Worker functions, and how operators take them out of service and back.

mod drain;
mod fence;
mod list;
mod switch;
mod unfence;

use crate::support::Database;

impl Database {
    /// Enabled, disabled or fenced.
    fn state(&self, function: &str) -> String {
        self.text(&format!(
            "select case when fenced_at is not null then 'fenced' when enabled then 'enabled' else 'disabled' end
             from pgflow.worker_functions where function_name = '{function}'"
        ))
    }

    /// Workers that were asked to stop.
    fn told(&self) -> i64 {
        self.number("select count(*) from pgflow.workers where deprecated_at is not null")
    }

    /// As if the worker had died a minute ago.
    fn loses(&self, worker_id: &str) {
        self.execute(&format!(
            "update pgflow.workers set last_heartbeat_at = now() - interval '1 minute' where worker_id = '{worker_id}'"
        ));
    }

    fn stops(&self, worker_id: &str) {
        self.execute(&format!("select pgflow.mark_worker_stopped('{worker_id}')"));
    }

    /// Starts a run of flow `sums`, and lets the worker claim its task.
    fn claims(&self, worker_id: &str) {
        self.execute(&format!(
            "select pgflow.start_flow('sums', '{{}}'); select pgflow.claim_tasks('{worker_id}', 1)"
        ));
    }

    fn completes_all(&self) {
        self.execute(
            "select pgflow.complete_task(run_id, step_slug, task_index, '[]')
             from pgflow.step_tasks where status = 'started'",
        );
    }
}

/// Checks the refusals that all commands with functions have in common.
#[test]
fn functions_are_named_or_those_of_a_flow_and_must_be_known() {
    let database = Database::with_two_flows();
    database.register(1, "sums", "sums", None);
    database.register(2, "audit", "sums", None);
    for command in ["fence", "drain", "unfence", "enable", "disable"] {
        let call =
            |arguments: &[&str]| database.pgflow(&[&["workers", command], arguments].concat());
        let error = call(&[]).failed(2);
        assert!(error.contains("<NAME|--flow <SLUG>>"), "{error}");
        call(&["sums", "--flow", "sums"]).failed(2);
        let error = call(&["audit", "summs"]).failed(3);
        assert_eq!(
            error,
            "error: worker function \"summs\" is not known in this database; \
             expected the exact name of one that it has: audit, sums; did you mean \"sums\"?\n"
        );
        let error = call(&["--flow", "summs"]).failed(3);
        assert!(
            error.starts_with("error: flow \"summs\" is not defined"),
            "{error}"
        );
        let error = call(&["--flow", "steps", "--json"]).failed(3);
        assert!(error.contains("no worker has served flow"), "{error}");
    }
    assert_eq!(
        (database.told(), database.state("audit").as_str()),
        (0, "enabled")
    );
    let error = Database::migrated()
        .pgflow(&["workers", "enable", "any"])
        .failed(3);
    assert!(error.contains("; it has none; "), "{error}");
}
