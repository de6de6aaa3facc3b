//! The events between the commands of the page.

/// The events while a command runs.
pub(super) struct During {
    /// Once it has written this.
    pub(super) after: &'static str,
    pub(super) sql: &'static str,
}

pub(super) fn during(event: &str) -> During {
    match event {
        "the run completes" => During {
            after: "(run)",
            sql: COMPLETES,
        },
        "new workers start" => During {
            after: "waiting for",
            sql: NEW_WORKERS,
        },
        _ => panic!("the page names an event that nobody knows: {event}"),
    }
}

pub(super) fn sql(event: &str) -> &'static str {
    match event {
        "workers of two flows start" => WORKERS,
        "a worker takes two tasks and ends one" => BUSY,
        "another run fails" => FAILS,
        "a run waits for a worker that died" => DIED,
        "somebody sends a message by hand" => STRAY,
        "the worker stops, and the tasks of the dead one are past their time" => STOPPED,
        "months go by" => MONTHS,
        _ => panic!("the page names an event that nobody knows: {event}"),
    }
}

/// Flow `greetings` with one queue, and `ingest` with a queue for each step. The heartbeats last
/// for the whole page.
const WORKERS: &str = r#"
select pgflow.create_flow('greetings');
select pgflow.add_step('greetings', 'greet', step_type => 'map');
select pgflow.add_step('greetings', 'letter', array['greet'], max_attempts => 5);
select pgflow.ensure_flow_compiled('ingest', '{"steps": [
    {"slug": "hash", "stepType": "single", "dependencies": [], "whenUnmet": "skip", "whenExhausted": "fail",
     "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}},
    {"slug": "describe", "stepType": "single", "dependencies": ["hash"], "whenUnmet": "skip-cascade", "whenExhausted": "fail",
     "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": true, "value": {"hash": "known"}}}]}', 'step');
select pgflow.track_worker_function(name) from unnest(array['greetings', 'ingest__hash', 'ingest__describe']) name;
select pgflow.register_worker('0198c0de-0000-7000-8000-0000000000a1', 'greetings', 'greetings', null, 'greetings', '{}');
select pgflow.register_worker('0198c0de-0000-7000-8000-0000000000b1', 'ingest__hash', 'ingest', 'hash', 'ingest__hash', '{}');
select pgflow.register_worker('0198c0de-0000-7000-8000-0000000000c1', 'ingest__describe', 'ingest', 'describe', 'ingest__describe', '{}');
update pgflow.workers set last_heartbeat_at = now() + interval '1 hour';
"#;

const BUSY: &str = r"
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000a1', 2);
select pgflow.complete_task('0198c0de-0000-7000-8000-000000000001', 'greet', 0, '1');
";

const COMPLETES: &str = r#"
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000a1', 10);
select pgflow.complete_task('0198c0de-0000-7000-8000-000000000001', 'greet', 1, '"Dear Grace,"');
select pgflow.complete_task('0198c0de-0000-7000-8000-000000000001', 'greet', 2, '"Dear Edsger,"');
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000a1', 10);
select pgflow.complete_task('0198c0de-0000-7000-8000-000000000001', 'letter', 0, '"Dear all,"');
"#;

const FAILS: &str = r#"
select pgflow.start_flow('greetings', '["Alan"]', run_id => '0198c0de-0000-7000-8000-000000000002');
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000a1', 10);
select pgflow.fail_task('0198c0de-0000-7000-8000-000000000002', 'greet', 0, 'no such title: Dr.', retryable => false);
"#;

/// The worker of the second step has died with the task of one run; another run waits for it.
const DIED: &str = r"
select pgflow.start_flow('ingest', '{}', run_id => '0198c0de-0000-7000-8000-000000000004');
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000b1', 1);
select pgflow.complete_task('0198c0de-0000-7000-8000-000000000004', 'hash', 0, '1');
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000c1', 1);
select pgflow.start_flow('ingest', '{}', run_id => '0198c0de-0000-7000-8000-000000000003');
select pgflow.claim_tasks('0198c0de-0000-7000-8000-0000000000b1', 1);
select pgflow.complete_task('0198c0de-0000-7000-8000-000000000003', 'hash', 0, '1');
update pgflow.installation set lost_after = '1 hour';
update pgflow.workers set started_at = now() - interval '1 hour', last_heartbeat_at = now() - interval '90 seconds'
where function_name = 'ingest__describe';
update pgmq.q_ingest__describe set vt = clock_timestamp() - interval '75 seconds' where vt <= clock_timestamp();
";

const STRAY: &str = r#"select pgmq.send('greetings', '{"hello": "world"}');"#;

const STOPPED: &str = r"
select pgflow.mark_worker_stopped('0198c0de-0000-7000-8000-0000000000b1');
update pgflow.step_tasks set queued_at = now() - interval '1 hour', started_at = now() - interval '1 hour' where status = 'started';
update pgflow.claims set look_at = look_at - interval '1 hour';
-- A young server takes nobody for dead.
alter table pgflow.installation drop constraint lost_after_is_bounded;
update pgflow.installation set lost_after = '1 second';
";

const NEW_WORKERS: &str = r"
select pgflow.register_worker('0198c0de-0000-7000-8000-0000000000b2', 'ingest__hash', 'ingest', 'hash', 'ingest__hash', '{}');
select pgflow.register_worker('0198c0de-0000-7000-8000-0000000000c2', 'ingest__describe', 'ingest', 'describe', 'ingest__describe', '{}');
update pgflow.workers set last_heartbeat_at = now() + interval '1 hour' where deprecated_at is null;
";

const MONTHS: &str = r"
update pgflow.runs set started_at = started_at - interval '60 days', completed_at = completed_at - interval '60 days',
    failed_at = failed_at - interval '60 days'
where status <> 'started';
";
