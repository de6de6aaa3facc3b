//! Names beside the flow, which its code must not depend on.

use crate::{
    mutation::{Edit, Mutation},
    source::Source,
};

const HARMLESS: &[&str] = &[
    "mod diagnostic {}",
    "#[allow(unused_imports)] use ::std::fmt as diagnostic;",
    "mod core {}",
    "mod std {}",
    "mod alloc {}",
    "mod clippy {}",
    "mod serde_json {}",
    "mod sqlx {}",
    "mod pgflow_runtime {}",
    "mod private {}",
    "trait Send {}",
    "trait Sync {}",
    "trait Clone {}",
    "trait Copy {}",
    "trait Iterator {}",
    "trait Into {}",
    "trait From {}",
    "trait Sized {}",
    "trait Default {}",
    "enum Poll {}",
    "struct Future;",
    "struct Pin;",
    "struct Codec;",
    "struct Task;",
    "struct Handler;",
    "struct Error;",
    "struct StepId;",
    "struct FlowDefinition;",
    "const fn drop() {}",
    "static INPUT: u8 = 1;",
    "const TASK: u8 = 1;",
    "macro_rules! vec { () => {} }",
    "macro_rules! panic { () => {} }",
    "macro_rules! unreachable { () => {} }",
    "macro_rules! concat { () => {} }",
    "macro_rules! stringify { () => {} }",
];

pub fn all(source: &Source) -> Vec<Mutation> {
    let at = source.types[0].whole.start;
    let edit = |item: &str| vec![Edit::insert(at, format!("{item}\n\n"))];
    let mut edits = Vec::new();
    for item in HARMLESS {
        edits.push(Mutation::compiles(
            "add: a name beside the flow",
            edit(item),
        ));
    }
    for lint in [
        "unsafe_code",
        "deprecated",
        "unused_must_use",
        "unused_mut",
        "non_snake_case",
    ] {
        // A module of its own, as a flow's own lints stand above it.
        let edit = vec![
            Edit::insert(
                source.attr.start,
                format!("#[forbid({lint})]\nmod inner {{ use super::*;\n"),
            ),
            Edit::insert(source.whole_impl.end, "\n}"),
        ];
        edits.push(Mutation::compiles("add: a forbidden lint", edit));
    }
    let step = source.arg_text("step_enum").unwrap_or("Step");
    let output = format!("{}Output", source.self_ty.text);
    let output = source.arg_text("output").unwrap_or(&output);
    for name in [step, output] {
        for item in [
            format!("pub struct {name};"),
            format!("pub enum {name} {{}}"),
            format!("type {name} = u8;"),
        ] {
            let kind = "add: a type of the name of a generated one";
            edits.push(Mutation::fails(kind, edit(&item)).naming([name]));
        }
    }
    edits
}
