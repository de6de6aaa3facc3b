//! Queue names: the shared vectors, and random flows, through Rust and SQL at once.

use std::collections::{BTreeMap, HashSet};

use pgflow_definition::slug::BINDING_NAMES;
use pgflow_definition::{
    Condition, ElementFailure, FlowDefinition, FlowOptions, Problem, ProblemKind, QueueMode,
    SkipMode, StepDefinition, StepKind, StepOptions, Subject,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use sqlx::postgres::PgPool;

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{shape, step};
use crate::support::rows::raised;

/// The number of random flows that are compared, each in both modes.
const RANDOM_FLOWS: usize = 1200;

const MODES: [QueueMode; 2] = [QueueMode::Step, QueueMode::Flow];

/// Asks `ensure_flow_compiled` itself, with a route map that no flow has: it names the routes and
/// refuses, before it takes a lock or writes; a flow whose names are wrong is refused for that,
/// earlier.
const VERDICT: &str = "
    create function public.verdict(flow text, shape jsonb, mode text) returns jsonb language plpgsql as $$
    declare
        v_state text;
        v_message text;
        v_detail text;
    begin
        perform pgflow.ensure_flow_compiled(flow, shape, mode, '{}');
        raise exception 'flow % was accepted', flow;
    exception when others then
        get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail;
        if v_state <> 'PF009' then
            return to_jsonb(v_state || ': ' || v_message);
        end if;
        return substr(v_detail, length('worker: {}; database: ') + 1)::jsonb;
    end
    $$";

/// The slugs of a flow.
#[derive(Debug, Clone)]
struct Slugs {
    flow: String,
    steps: Vec<String>,
}

impl Slugs {
    fn shape(&self) -> Value {
        let steps: Vec<_> = self.steps.iter().map(|slug| step(slug)).collect();
        shape(&steps)
    }

    /// Calls with the definition in a queue mode.
    fn with_definition<T>(
        &self,
        mode: QueueMode,
        call: impl FnOnce(&FlowDefinition<'_>) -> T,
    ) -> T {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|slug| StepDefinition {
                slug,
                kind: StepKind::Single,
                depends_on: &[],
                options: StepOptions::default(),
                condition: Condition::default(),
                when_unmet: SkipMode::Skip,
                when_exhausted: SkipMode::Fail,
                on_element_failure: ElementFailure::Fail,
                runs_on: None,
                needs_flow_input: false,
            })
            .collect();
        call(&FlowDefinition {
            slug: &self.flow,
            queue_mode: mode,
            options: FlowOptions::default(),
            steps: &steps,
        })
    }

    /// Returns the verdict of Rust, in the words of SQL: the routes, or the first problem.
    fn in_rust(&self, mode: QueueMode) -> Value {
        self.with_definition(mode, |flow| match flow.route_map() {
            Ok(routes) => routes
                .iter()
                .map(|route| json!({"step": route.step, "queue": route.queue}))
                .collect(),
            Err(problems) => json!(self.refusal(&problems[0])),
        })
    }

    /// The error that SQL must raise for a problem: its code says of what kind it is, its message
    /// who is to blame.
    fn refusal(&self, problem: &Problem) -> String {
        let flow = &self.flow;
        let step = match &problem.subject {
            Subject::Flow { .. } => None,
            Subject::Step { slug, .. } => Some(slug.as_str()),
        };
        let shown = |slug: &str| slug.chars().take(60).collect::<String>();
        match (&problem.kind, step) {
            (ProblemKind::Slug(_), None) => {
                format!("PF004: flow slug \"{}\" is not valid", shown(flow))
            }
            (ProblemKind::Slug(_), Some(step)) => {
                format!("PF004: step slug \"{}\" is not valid", shown(step))
            }
            (ProblemKind::DuplicateStepSlug { first_slug, .. }, Some(step))
                if first_slug == step =>
            {
                format!("PF004: flow \"{flow}\" has two steps \"{step}\"")
            }
            (ProblemKind::DuplicateStepSlug { first_slug, .. }, Some(step)) => {
                format!("PF004: step \"{step}\" differs from step \"{first_slug}\" only in case")
            }
            (ProblemKind::StepQueuesWithoutSteps, None) => {
                format!("PF004: flow \"{flow}\" has a queue for each step, but no step")
            }
            (ProblemKind::DefaultQueueNameTooLong { queue }, None) => format!(
                "PF010: flow \"{flow}\": queue name \"{queue}\" has {} characters; the limit is 47",
                queue.len()
            ),
            (ProblemKind::FlowQueueNameTooLong { .. }, None) => format!(
                "PF010: flow \"{flow}\" can't have a queue per step: its slug has {} characters, and at most 44 leave room for a step",
                flow.len()
            ),
            (ProblemKind::StepQueueNameTooLong { readable, fallback }, Some(step)) => format!(
                "PF010: step \"{step}\" of flow \"{flow}\" gets no queue: \"{readable}\" has {} characters and \"{fallback}\" has {}; the limit is 47",
                readable.len(),
                fallback.len()
            ),
            (kind, _) => panic!("{kind:?} is not about names"),
        }
    }
}

/// Returns the verdicts of SQL on each flow, in order.
async fn in_sql(pool: &PgPool, flows: &[Slugs], mode: QueueMode) -> Vec<Value> {
    let slugs: Vec<&str> = flows.iter().map(|flow| flow.flow.as_str()).collect();
    let shapes: Vec<Value> = flows.iter().map(Slugs::shape).collect();
    sqlx::query_scalar(
        "select verdict(f, s, $3) from unnest($1, $2) with ordinality as x (f, s, n) order by n",
    )
    .bind(slugs)
    .bind(shapes)
    .bind(mode.as_str())
    .fetch_all(pool)
    .await
    .expect("verdicts")
}

async fn database() -> TestDb {
    let db = TestDb::new().await;
    sqlx::raw_sql(VERDICT)
        .execute(&db.pool)
        .await
        .expect("the function can be created");
    db
}

/// The route vectors: the slugs, and what is expected of them in queue mode `step`.
fn vectors() -> Vec<(Slugs, Value)> {
    let vectors: Value =
        serde_json::from_str(include_str!("../../pgflow-definition/vectors/naming.json"))
            .expect("the vectors are JSON");
    let routes = vectors["routes"].as_array().expect("routes");
    let text = |value: &Value| value.as_str().expect("a slug").to_owned();
    routes
        .iter()
        .map(|vector| {
            let steps = vector["steps"].as_array().expect("steps");
            let slugs = Slugs {
                flow: text(&vector["flow"]),
                steps: steps.iter().map(text).collect(),
            };
            (slugs, vector["expect"].clone())
        })
        .collect()
}

#[tokio::test]
async fn every_vector_has_the_same_verdict_in_rust_and_sql_in_both_modes() {
    let db = database().await;
    let (flows, _): (Vec<Slugs>, Vec<Value>) = vectors().into_iter().unzip();
    assert!(!flows.is_empty());
    for mode in MODES {
        let sql = in_sql(&db.pool, &flows, mode).await;
        for (slugs, sql) in flows.iter().zip(sql) {
            assert_eq!(sql, slugs.in_rust(mode), "{mode:?} {slugs:?}");
        }
    }
}

#[tokio::test]
async fn every_vector_is_compiled_to_its_queues_or_refused_as_it_says() {
    let db = TestDb::new().await;
    for (slugs, expected) in vectors() {
        let compile = sqlx::query_scalar::<_, String>(
            "select pgflow.ensure_flow_compiled($1, $2, 'step') ->> 'status'",
        )
        .bind(&slugs.flow)
        .bind(slugs.shape())
        .fetch_one(&db.pool);
        if expected["queues"].is_null() {
            assert_refused_as(
                &slugs,
                &expected,
                &raised(unchanged(&db.pool, compile).await),
            );
            continue;
        }
        assert_eq!(compile.await.expect("an answer"), "compiled", "{slugs:?}");
        let (routes, queues): (Value, i64) = sqlx::query_as(
            "select jsonb_agg(s.queue_name order by s.step_index), (select count(*) from pgmq.meta)
             from pgflow.steps s where to_regclass('pgmq.q_' || s.queue_name) is not null",
        )
        .fetch_one(&db.pool)
        .await
        .expect("routes can be read");
        assert_eq!(routes, expected["queues"], "{slugs:?}");
        assert_eq!(queues, i64::try_from(slugs.steps.len()).expect("a few"));
        sqlx::query("select pgflow.delete_flow_and_data($1)")
            .bind(&slugs.flow)
            .execute(&db.pool)
            .await
            .expect("deleted");
    }
}

/// That an error is what a vector says, read from the vector alone.
#[track_caller]
fn assert_refused_as(slugs: &Slugs, expected: &Value, refusal: &str) {
    let flow = &slugs.flow;
    let (start, end) = match expected["error"].as_str().expect("an error") {
        "step_queue_name_too_long" => (
            format!("PF010: step {} of flow \"{flow}\"", expected["step"]),
            "; the limit is 47",
        ),
        "flow_queue_name_too_long" => (
            format!("PF010: flow \"{flow}\" can't have a queue per step"),
            "at most 44 leave room for a step",
        ),
        "duplicate_step_slug" => ("PF004: step ".to_owned(), "only in case"),
        other => panic!("no rule for {other}"),
    };
    assert!(
        refusal.starts_with(&start) && refusal.ends_with(end),
        "{refusal}"
    );
    if expected["error"] == "step_queue_name_too_long" {
        for length in [&expected["readable_len"], &expected["fallback_len"]] {
            assert!(refusal.contains(&format!(" has {length}")), "{refusal}");
        }
    }
}

/// A slug of this many characters; one of a hundred is not mended, so it may start or end with `_`
/// or hold `__`.
fn slug(length: impl Strategy<Value = usize>) -> impl Strategy<Value = String> {
    let characters = length.prop_flat_map(|length| vec("[A-Za-z0-9_]", length));
    (characters, 0..100).prop_map(|(characters, dice)| {
        let mut slug = characters.concat().into_bytes();
        if dice > 0 {
            let last = slug.len() - 1;
            for at in 0..=last {
                let bad = match slug[at] {
                    b'_' => at == 0 || at == last || slug[at - 1] == b'_',
                    digit => at == 0 && digit.is_ascii_digit(),
                };
                if bad {
                    slug[at] = b'x';
                }
            }
        }
        String::from_utf8(slug).expect("ASCII")
    })
}

fn swap_case(slug: &str) -> String {
    let swap = |c: char| {
        if c.is_ascii_lowercase() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        }
    };
    slug.chars().map(swap).collect()
}

/// Flows around the borders: names of 44 to 48 characters, steps whose fallbacks have one digit or
/// two, twins in case.
fn flow() -> impl Strategy<Value = Slugs> {
    let flow = slug(
        prop_oneof![3 => Just(44_usize), 5 => 43_usize..=48, 3 => 36_usize..43, 2 => 1_usize..12, 1 => 49_usize..=130],
    );
    let step = slug(prop_oneof![5 => 1_usize..=6, 3 => 7_usize..=20, 1 => 30_usize..=47]).boxed();
    let count = prop_oneof![1 => Just(0_usize), 12 => 1_usize..=9, 6 => 10_usize..=12];
    let steps = count.prop_flat_map(move |count| vec(step.clone(), count));
    (flow, steps, 0..10, any::<prop::sample::Index>()).prop_map(|(flow, mut steps, dice, place)| {
        if dice > 0 {
            let mut seen = HashSet::new();
            steps.retain(|slug| seen.insert(slug.to_ascii_lowercase()));
        } else if let Some(first) = steps.first() {
            let twin = swap_case(first);
            steps.insert(place.index(steps.len()), twin);
        }
        // Names of parameters are a matter of Rust alone.
        steps.retain(|slug| !BINDING_NAMES.contains(&slug.as_str()));
        Slugs { flow, steps }
    })
}

/// Returns the kind of verdict, to show the coverage of the random flows.
fn sort(slugs: &Slugs, mode: QueueMode) -> &'static str {
    slugs.with_definition(mode, |flow| match flow.route_map() {
        Err(problems) => problems[0].kind.name(),
        Ok(_) if mode == QueueMode::Flow => "one queue",
        Ok(routes)
            if routes
                .iter()
                .any(|r| r.queue.ends_with(|c: char| c.is_ascii_digit())) =>
        {
            "with a fallback, perhaps"
        }
        Ok(_) => "readable",
    })
}

#[tokio::test]
async fn random_flows_have_the_same_verdict_in_rust_and_sql_in_both_modes() {
    let db = database().await;
    let mut runner = TestRunner::new(Config::default());
    let flows: Vec<Slugs> = (0..RANDOM_FLOWS)
        .map(|_| flow().new_tree(&mut runner).expect("a flow").current())
        .collect();
    let mut sorts: BTreeMap<&str, usize> = BTreeMap::new();
    for mode in MODES {
        let sql = in_sql(&db.pool, &flows, mode).await;
        assert_eq!(sql.len(), flows.len());
        for (slugs, sql) in flows.iter().zip(sql) {
            assert_eq!(sql, slugs.in_rust(mode), "{mode:?} {slugs:?}");
            *sorts.entry(sort(slugs, mode)).or_default() += 1;
        }
    }
    for expected in [
        "one queue",
        "readable",
        "with a fallback, perhaps",
        "invalid_slug",
        "duplicate_step_slug",
        "step_queues_without_steps",
        "default_queue_name_too_long",
        "flow_queue_name_too_long",
        "step_queue_name_too_long",
    ] {
        let found = sorts.remove(expected).unwrap_or_default();
        assert!(found >= 10, "only {found} flows are: {expected}");
    }
    assert!(sorts.is_empty(), "{sorts:?}");
}
