//! Flows that nobody would think of.

use std::collections::HashSet;

use fastrand::Rng;
use serde_json::{Value, json};

use super::flows::{Step, step};

/// A flow of up to ten steps: singles and maps, conditions, skip modes, up to three attempts; some
/// have end steps.
#[derive(Debug, Clone)]
pub(crate) struct RandomFlow {
    pub(crate) steps: Vec<Step>,
    /// Steps that a map runs over.
    sources: HashSet<String>,
    takes_array: bool,
}

impl RandomFlow {
    pub(crate) fn new(random: &mut Rng) -> Self {
        let mut flow = Self {
            steps: Vec::new(),
            sources: HashSet::new(),
            takes_array: false,
        };
        let mut slugs: Vec<String> = Vec::new();
        for index in 0..random.usize(1..=10) {
            // The order of the slugs is not that of the definition.
            let slug = format!("{}{index}", random.lowercase());
            let new = flow.random_step(random, &slug, &slugs);
            flow.steps.push(new);
            slugs.push(slug);
        }
        for end in ["failure", "end"] {
            if random.u8(..100) < 40 {
                let place = random.usize(..=flow.steps.len());
                let attempts = random.i32(1..=3);
                let end_step = step(&format!("on_{end}")).on(end).max_attempts(attempts);
                flow.steps.insert(place, end_step);
            }
        }
        flow
    }

    fn random_step(&mut self, random: &mut Rng, slug: &str, earlier: &[String]) -> Step {
        let is_map = random.u8(..100) < 35;
        let deps: Vec<&str> = if is_map {
            let source = random.choice(earlier).filter(|_| random.u8(..100) < 80);
            source.into_iter().map(String::as_str).collect()
        } else {
            let taken = earlier.iter().filter(|_| random.u8(..100) < 35);
            taken.map(String::as_str).collect()
        };
        let new = step(slug)
            .deps(&deps)
            .max_attempts(random.i32(1..=3))
            .when_unmet(one_of(
                random,
                ["skip", "skip", "skip", "skip-cascade", "fail"],
            ))
            .when_exhausted(one_of(random, ["skip", "skip", "skip-cascade", "fail"]));
        match (is_map, deps.first()) {
            (true, None) => {
                self.takes_array = true;
                // It can have no condition.
                new.map()
            }
            (true, Some(source)) => {
                self.sources.insert((*source).to_owned());
                with_conditions(random, new.map(), &deps)
            }
            (false, _) => with_conditions(random, new, &deps),
        }
    }

    pub(crate) fn input(&self, random: &mut Rng) -> Value {
        if self.takes_array {
            array(random)
        } else {
            json!({"input": scalar(random)})
        }
    }

    /// Returns the output of a step; it rarely violates its type.
    pub(crate) fn output(&self, random: &mut Rng, step: &str) -> Value {
        if self.sources.contains(step) && random.u8(..100) < 97 {
            array(random)
        } else {
            scalar(random)
        }
    }
}

fn with_conditions(random: &mut Rng, step: Step, deps: &[&str]) -> Step {
    let mut pattern = || {
        let key = random.choice(deps).copied().unwrap_or("input");
        (random.u8(..100) < 20).then(|| json!({key: scalar(random)}))
    };
    let (required, forbidden) = (pattern(), pattern());
    let step = match required {
        Some(required) => step.required(required),
        None => step,
    };
    match forbidden {
        Some(forbidden) => step.forbidden(forbidden),
        None => step,
    }
}

fn array(random: &mut Rng) -> Value {
    (0..random.usize(0..6)).map(|_| scalar(random)).collect()
}

/// One of the few values that conditions ask for.
fn scalar(random: &mut Rng) -> Value {
    one_of(
        random,
        [json!(0), json!(1), json!([]), json!({}), Value::Null],
    )
}

fn one_of<T, const N: usize>(random: &mut Rng, choices: [T; N]) -> T {
    let index = random.usize(..N);
    choices.into_iter().nth(index).expect("it is in bounds")
}
