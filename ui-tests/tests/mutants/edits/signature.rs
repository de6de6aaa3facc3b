//! Parts that the function of a step can't have.

use crate::{
    mutation::{Edit, Mutation},
    source::{Source, Step},
};

pub fn all(source: &Source) -> Vec<Mutation> {
    source.steps.iter().flat_map(of_step).collect()
}

fn of_step(step: &Step) -> Vec<Mutation> {
    let name = step.name.text.as_str();
    let before = |text: &str| vec![Edit::insert(step.async_token.start, format!("{text} "))];
    let after_name = |text: &str| vec![Edit::insert(step.name.at.end, text)];
    let first = |text: &str| vec![Edit::insert(step.inputs.start, format!("{text}, "))];
    let behind_async = |text: &str| vec![Edit::insert(step.async_token.end, format!(" {text}"))];
    let attr = |text: &str| vec![Edit::insert(step.attr.start, format!("{text}\n    "))];
    let fails = |kind, edit| Mutation::fails(kind, edit).naming([name]);
    let mut edits = vec![
        fails("add: `self`", first("self")),
        fails("add: `self`", first("&self")),
        fails("add: `self`", first("&mut self")),
        fails("add: `unsafe`", behind_async("unsafe")),
        fails("add: an ABI", behind_async("extern \"C\"")),
        fails("add: `const`", before("const")),
        fails("add: a type parameter", after_name("<T>")),
        fails("add: a type parameter", after_name("<T: Clone>")),
        fails("add: a constant parameter", after_name("<const N: usize>")),
        fails("add: a lifetime parameter", after_name("<'a>")),
        fails("add: a parameter that is not bound", first("zebra: u8")),
        fails(
            "add: a parameter that is a pattern",
            first("(a, b): (u8, u8)"),
        ),
        fails("add: a parameter that is a pattern", first("_: u8")),
        fails("add: `#[cfg]`", attr("#[cfg(test)]")),
        fails("add: `#[cfg]`", attr("#[cfg(not(test))]")),
        fails("add: `#[cfg]`", attr("#[cfg_attr(all(), cfg(not(test)))]")),
        fails("add: `#[step]` again", attr("#[step]")),
        fails("add: `#[step]` again", attr("#[step(timeout = \"10s\")]")),
        fails("add: an attribute of another kind", attr("#[tokio::main]")),
        fails("add: an unknown attribute", attr("#[zebra]")),
    ];
    for (text, kind) in [
        (
            "/// A line of documentation, with `code` and {braces}.",
            "add: documentation",
        ),
        ("#[allow(unused_variables)]", "add: an attribute of rustc"),
        ("#[inline]", "add: an attribute of rustc"),
        ("#[must_use]", "add: an attribute of rustc"),
        ("#[doc(hidden)]", "add: an attribute of rustc"),
        ("#[rustfmt::skip]", "add: a tool's attribute"),
        ("#[allow(clippy::unused_async)]", "add: a tool's attribute"),
        (
            "#[cfg_attr(feature = \"zebra\", allow(unused))]",
            "add: a conditional attribute",
        ),
        ("#[cfg_attr(all(), inline)]", "add: a conditional attribute"),
    ] {
        edits.push(Mutation::compiles(kind, attr(text)));
    }
    for vis in ["pub", "pub(crate)", "pub(super)", "pub(in self)"] {
        // The steps that have one keep it.
        if !step.params.is_empty() && step.whole.start == step.attr.start {
            edits.push(Mutation::compiles("add: a visibility", before(vis)));
        }
    }
    edits.extend(params(step));
    edits
}

fn params(step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for param in &step.params {
        let at = param.whole.start;
        let kind = "add: `#[cfg]` on a parameter";
        let edit = |text: &str| vec![Edit::insert(at, format!("{text} "))];
        edits.push(Mutation::fails(kind, edit("#[cfg(test)]")));
        edits.push(Mutation::compiles(
            "add: an attribute on a parameter",
            edit("#[allow(unused)]"),
        ));
        let binding = match &param.from {
            Some((_, name)) => name.text.as_str(),
            None => param.name.as_ref().map_or("", |name| &name.text),
        };
        let text = format!("#[from({})]", binding.trim_start_matches('_'));
        if param.from.is_some() {
            edits.push(Mutation::fails("add: a `from` again", edit(&text)));
        } else {
            edits.push(Mutation::compiles(
                "add: a `from` that says the same",
                edit(&text),
            ));
        }
        if let Some(name) = param
            .name
            .as_ref()
            .filter(|name| name.at.start == param.pattern.start)
        {
            let edit = vec![Edit::insert(name.at.start, "mut ")];
            edits.push(Mutation::compiles("add: `mut`", edit));
        }
        let binding = binding.trim_start_matches('_');
        let twice = format!("#[from({binding})] again: {}, ", param.type_text);
        let edit = vec![Edit::insert(at, twice)];
        edits.push(
            Mutation::fails("add: a parameter for the same value", edit).naming([param.binding()]),
        );
    }
    edits
}
