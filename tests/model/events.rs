//! The events of a call: each once, with the payload that the model expects, in an order that the
//! design allows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::compare::{same, same_text};
use super::flow::Flow;
use super::rows::EventRow;
use super::setup::FLOW;
use super::snapshot::{run_number, step_place};
use super::state::{Event, Model};

/// Run, step, type.
type EventKey = (usize, Option<usize>, String);

pub(crate) fn compare(model: &Model, expected: &[Event], sent: &[EventRow]) -> Result<(), String> {
    let mut found: Vec<(EventKey, &EventRow)> = Vec::new();
    for row in sent {
        found.push((key_of(&model.flow, row)?, row));
    }
    order(&model.flow, &found)?;

    let mut missing: BTreeMap<EventKey, &Event> = BTreeMap::new();
    for event in expected {
        missing.insert((event.run, event.step, event.kind.to_owned()), event);
    }
    for (key, row) in found {
        let Some(event) = missing.remove(&key) else {
            return Err(format!(
                "SQL sends {} in run {}: unexpected, or twice",
                row.name, key.0
            ));
        };
        payload(event, row)?;
    }
    match missing.into_keys().next() {
        None => Ok(()),
        Some(key) => Err(format!("SQL does not send {key:?}")),
    }
}

fn key_of(flow: &Flow, row: &EventRow) -> Result<EventKey, String> {
    let text = |key: &str| row.payload[key].as_str().unwrap_or_default();
    let kind = text("event_type");
    let id: Uuid = text("run_id").parse().unwrap_or_default();
    let slug = row.payload["step_slug"].as_str();
    let expected = match slug {
        None => kind.to_owned(),
        Some(slug) => format!("step:{slug}:{}", kind.trim_start_matches("step:")),
    };
    same(|| "event name".to_owned(), &expected, &row.name)?;
    let topic = format!("pgflow:run:{id}");
    same(|| format!("topic of {expected}"), &topic, &row.topic)?;
    same(|| format!("flow of {expected}"), &FLOW, &text("flow_slug"))?;
    same(|| format!("{expected} is private"), &false, &row.is_private)?;
    let step = slug.map(|slug| step_place(flow, slug).unwrap_or(usize::MAX));
    Ok((run_number(id), step, kind.to_owned()))
}

fn payload(event: &Event, row: &EventRow) -> Result<(), String> {
    let name = &row.name;
    let what = |key: &'static str| move || format!("{name}, {key}");
    let told = |key: &str| row.payload[key].clone();
    let or_null = |value: &Option<Value>| value.clone().unwrap_or_default();
    same(what("status"), &json!(event.status), &told("status"))?;
    same(what("input"), &or_null(&event.input), &told("input"))?;
    same(what("output"), &or_null(&event.output), &told("output"))?;
    same(
        what("skip_reason"),
        &json!(event.skip_reason),
        &told("skip_reason"),
    )?;
    let error = row.payload["error_message"].as_str();
    same_text(what("error"), event.error.as_ref(), error)
}

/// A run starts before all else and ends after it, right after its culprit. A step comes after what
/// it depended on; what is skipped with a dependency need not wait for the others.
fn order(flow: &Flow, sent: &[(EventKey, &EventRow)]) -> Result<(), String> {
    for (place, ((run, step, kind), row)) in sent.iter().enumerate() {
        let earlier = || sent[..place].iter().filter(|((other, ..), _)| other == run);
        let wrong = |what: &str| Err(format!("order of events: {} {what}", row.name));
        if kind == "run:started" && earlier().next().is_some() {
            return wrong("is not the first of its run");
        }
        if earlier().any(|((_, _, kind), _)| kind == "run:completed" || kind == "run:failed") {
            return wrong("comes after its run has ended");
        }
        let latest = earlier().next_back().map(|((_, _, kind), _)| kind.as_str());
        if kind == "run:failed" && latest != Some("step:failed") {
            return wrong("does not follow its culprit");
        }
        let Some(step) = *step else { continue };
        let deps = flow.steps.get(step).map_or(&[][..], |step| &step.deps);
        let settled_earlier = |dep: usize, settled: &str| {
            earlier().any(|((_, step, kind), _)| *step == Some(dep) && kind == settled)
        };
        if row.payload["skip_reason"] == "dependency_skipped" {
            if !deps.iter().any(|&dep| settled_earlier(dep, "step:skipped")) {
                return wrong("comes before the dependency that it is skipped with");
            }
            continue;
        }
        let settled_later = sent[place..].iter().any(|((other, later, kind), _)| {
            other == run
                && later.is_some_and(|later| deps.contains(&later))
                && (kind == "step:completed" || kind == "step:skipped")
        });
        if settled_later {
            return wrong("comes before a step that it depends on");
        }
    }
    Ok(())
}
