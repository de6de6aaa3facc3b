//! The crates that are compiled: the same fifty functions, four times.

use std::fmt::Write as _;

/// The code around the functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Nothing: nobody can call them.
    Plain,
    /// One function that calls them in order, as in a program without a workflow.
    Called,
    /// The calls that a person would write to use them with stored JSON.
    ByHand,
    /// `#[flow]`.
    Flow,
}

impl Variant {
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Called, Self::ByHand, Self::Flow];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Called => "called",
            Self::ByHand => "by_hand",
            Self::Flow => "flow",
        }
    }

    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Plain => "functions and types only",
            Self::Called => "called by one function",
            Self::ByHand => "with handlers written by hand",
            Self::Flow => "with `#[flow]`",
        }
    }
}

const HEAD: &str = "\
#![allow(dead_code)]

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub name: String,
    pub number: u64,
}

pub struct Audit;
";

const HANDLER_TYPES: &str = "
type Outputs<'a> = std::collections::BTreeMap<&'a str, &'a serde_json::value::RawValue>;
type Stored = StepResult<Box<serde_json::value::RawValue>>;
type Handler = for<'a> fn(&'a Outputs<'a>, &'a StepContext)
    -> std::pin::Pin<Box<dyn Future<Output = Stored> + Send + 'a>>;
";

pub(crate) fn source(variant: Variant, steps: usize) -> String {
    let mut text = HEAD.to_owned();
    for step in 0..steps {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Output{step} {{
    pub name: String,
    pub number: u64,
    pub parts: Vec<u32>,
}}
"
        );
    }
    if variant == Variant::Flow {
        text += "\n#[flow(input = Input)]";
    }
    text += "\nimpl Audit {\n";
    for step in 0..steps {
        text += &function(variant, step);
    }
    text += "}\n";
    if variant == Variant::Called {
        text += &caller(steps);
    }
    if variant == Variant::ByHand {
        text += HANDLER_TYPES;
        for step in 0..steps {
            text += &handler(step);
        }
        let handlers: Vec<String> = (0..steps).map(|step| format!("handle_{step}")).collect();
        let _ = writeln!(
            text,
            "pub static HANDLERS: &[Handler] = &[{}];",
            handlers.join(", ")
        );
    }
    text
}

/// The first step takes the input, the second one dependency, each other one two.
fn dependencies(step: usize) -> std::ops::Range<usize> {
    step.saturating_sub(2)..step
}

/// One dependency by reference, the other by value.
fn is_by_value(step: usize, dependency: usize) -> bool {
    dependency + 2 == step
}

fn function(variant: Variant, step: usize) -> String {
    let mut params = String::new();
    let mut sum = String::from("0");
    if step == 0 {
        params += "input: &Input, ";
        sum += " + input.number";
    }
    let mut names = Vec::new();
    for dependency in dependencies(step) {
        let by = if is_by_value(step, dependency) {
            ""
        } else {
            "&"
        };
        let _ = write!(params, "s{dependency}: {by}Output{dependency}, ");
        let _ = write!(sum, " + s{dependency}.number");
        names.push(format!("s{dependency}"));
    }
    let attribute = match variant {
        Variant::Flow if names.is_empty() => "    #[step]\n".to_owned(),
        Variant::Flow => format!("    #[step(depends_on = [{}])]\n", names.join(", ")),
        Variant::Plain | Variant::Called | Variant::ByHand => String::new(),
    };
    format!(
        "{attribute}    pub async fn s{step}({params}ctx: &StepContext) -> StepResult<Output{step}> {{
        std::future::ready(()).await;
        let number = {sum};
        let name = format!(\"{{}} {{number}}\", ctx.step_slug());
        std::future::ready(()).await;
        Ok(Output{step} {{ name, number, parts: vec![{step}] }})
    }}
"
    )
}

fn caller(steps: usize) -> String {
    let mut text = String::from(
        "
pub fn run(input: Input, ctx: StepContext) -> std::pin::Pin<Box<dyn Future<Output = StepResult<()>> + Send>> {
    Box::pin(async move {
",
    );
    for step in 0..steps {
        let mut arguments = String::new();
        if step == 0 {
            arguments += "&input, ";
        }
        for dependency in dependencies(step) {
            let argument = if is_by_value(step, dependency) {
                format!("s{dependency}.clone(), ")
            } else {
                format!("&s{dependency}, ")
            };
            arguments += &argument;
        }
        let _ = writeln!(
            text,
            "        let s{step} = Audit::s{step}({arguments}&ctx).await?;"
        );
    }
    text + "        Ok(())\n    })\n}\n"
}

fn handler(step: usize) -> String {
    let mut reads = String::new();
    let mut arguments = String::new();
    if step == 0 {
        reads += "        let input: Input = serde_json::from_str(outputs[\"input\"].get())?;\n";
        arguments += "&input, ";
    }
    for dependency in dependencies(step) {
        let _ = writeln!(
            reads,
            "        let s{dependency}: Output{dependency} = serde_json::from_str(outputs[\"s{dependency}\"].get())?;"
        );
        let by = if is_by_value(step, dependency) {
            ""
        } else {
            "&"
        };
        let _ = write!(arguments, "{by}s{dependency}, ");
    }
    format!(
        "
fn handle_{step}<'a>(
    outputs: &'a Outputs<'a>,
    ctx: &'a StepContext,
) -> std::pin::Pin<Box<dyn Future<Output = Stored> + Send + 'a>> {{
    Box::pin(async move {{
{reads}        let output = Audit::s{step}({arguments}ctx).await?;
        Ok(serde_json::value::to_raw_value(&output)?)
    }})
}}
"
    )
}
