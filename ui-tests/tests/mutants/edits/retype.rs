//! A type becomes another one.

use crate::{
    facts::{Taken, element, forms, output, taken_by, takers},
    mutation::{Edit, Mutation},
    source::{Param, Source, Step, has_word},
};

pub fn all(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for step in &source.steps {
        for param in &step.params {
            if let Some(taken) = taken_by(source, step, param) {
                edits.extend(right(source, param, &taken));
                // A pattern would not fit another type either.
                if param.name.is_some() {
                    edits.extend(wrong(source, param, &taken));
                }
            }
        }
        edits.extend(outputs(source, step));
    }
    edits.extend(arguments(source));
    edits
}

fn is_clone(source: &Source, ty: &str) -> bool {
    let named = source.types.iter().find(|named| named.name.text == ty);
    named.is_none_or(|named| named.derives.iter().any(|derive| derive.text == "Clone"))
}

/// The other forms of the type that the parameter has.
fn right(source: &Source, param: &Param, taken: &Taken<'_>) -> Vec<Mutation> {
    let by_value = |form: &String| param.binding() == "state" && *form == taken.ty;
    forms(taken)
        .into_iter()
        .filter(|form| *form != param.type_text)
        .map(|form| {
            let edit = vec![Edit::new(&param.ty, &*form)];
            if by_value(&form) && !is_clone(source, &taken.ty) {
                return Mutation::fails("retype: a state that is no `Clone`, by value", edit);
            }
            Mutation::compiles("retype: a parameter to another right form", edit)
        })
        .collect()
}

fn wrong(source: &Source, param: &Param, taken: &Taken<'_>) -> Vec<Mutation> {
    let binding = param.binding();
    let ty = taken.ty.as_str();
    let plain = param.type_text.trim_start_matches('&');
    let right = forms(taken);
    let mut edits = Vec::new();
    let mut change = |kind, text: String| {
        if !right.contains(&text) && text != param.type_text {
            let edit = vec![Edit::new(&param.ty, text)];
            edits.push(Mutation::fails(kind, edit).naming([binding]));
        }
    };
    for other in ["u8", "&u8", "Vec<u64>", "&[bool]", "&str", "()"] {
        change("retype: a parameter to another type", other.to_owned());
    }
    let types = source.types.iter().map(|ty| ty.name.text.as_str());
    for other in types.filter(|other| !has_word(ty, other)) {
        change("retype: a parameter to another type", other.to_owned());
        change("retype: a parameter to another type", format!("&{other}"));
    }
    change(
        "retype: a parameter to an `Option`",
        format!("Option<{}>", param.type_text),
    );
    change(
        "retype: a parameter to an `Option`",
        format!("&Option<{plain}>"),
    );
    change("retype: a parameter to a list", format!("Vec<{plain}>"));
    change("retype: a parameter to a list", format!("&[{plain}]"));
    if let Some(element) = element(ty) {
        change("retype: a parameter to an element", element.to_owned());
        change("retype: a parameter to an element", format!("&{element}"));
    }
    for wrapper in [
        "Box",
        "std::sync::Arc",
        "std::rc::Rc",
        "std::sync::Mutex",
        "Result",
    ] {
        let arguments = if wrapper == "Result" { ", String" } else { "" };
        change(
            "retype: a parameter in a wrapper",
            format!("{wrapper}<{ty}{arguments}>"),
        );
    }
    change("retype: a parameter to `&&`", format!("&&{ty}"));
    change("retype: a parameter to a tuple", format!("({ty}, {ty})"));
    change(
        "retype: a parameter with a lifetime",
        format!("&'static {ty}"),
    );
    change(
        "retype: a parameter with an unknown lifetime",
        format!("&'a {ty}"),
    );
    change("retype: a parameter to `&mut`", format!("&mut {ty}"));
    change(
        "retype: a parameter to `impl Trait`",
        "impl Sized".to_owned(),
    );
    change(
        "retype: a parameter to `dyn Trait`",
        "&dyn std::fmt::Debug".to_owned(),
    );
    change("retype: a parameter to `_`", "_".to_owned());
    change("retype: a parameter to `Self`", "Self".to_owned());
    change("retype: a parameter to a pointer", format!("*const {ty}"));
    if ty.starts_with("Vec<") || ty == "String" {
        change(
            "retype: a parameter to `Cow`",
            format!("std::borrow::Cow<'_, {}>", "str"),
        );
    }
    edits
}

fn outputs(source: &Source, step: &Step) -> Vec<Mutation> {
    let (ok, name) = (&step.returns.arguments[0], step.name.text.as_str());
    let text = step.returns.ok.as_str();
    let mut edits = Vec::new();
    let fails = |kind, text: &str| Mutation::fails(kind, vec![Edit::new(ok, text)]).naming([name]);
    for (kind, text) in [
        ("retype: an output to a reference", "&'static str"),
        (
            "retype: an output to a reference without a lifetime",
            "&str",
        ),
        ("retype: an output to `_`", "_"),
    ] {
        edits.push(fails(kind, text));
    }
    // The type is wrong for those that take it, too.
    let takers = takers(source, step);
    for (kind, text) in [
        ("retype: an output that is not stored", "std::time::Instant"),
        ("retype: an output that is not stored", "std::rc::Rc<u8>"),
        (
            "retype: an output to `dyn Trait`",
            "Box<dyn std::fmt::Display>",
        ),
        ("retype: an output that is not stored", "fn() -> u8"),
        (
            "retype: an output that is not stored",
            "Vec<std::thread::Thread>",
        ),
        ("retype: an output to an unsized type", "str"),
        ("retype: an output to an unsized type", "[u8]"),
    ] {
        let bindings = takers.iter().map(|(_, param)| param.binding());
        edits.push(fails(kind, text).naming(bindings).at_most(1 + takers.len()));
    }
    // The body has to be one of such a type: of `todo!()`, rustc can't infer which one is meant.
    let edit = vec![
        Edit::new(ok, "impl std::fmt::Display"),
        Edit::new(&step.body, "{ Ok(1_u8) }"),
    ];
    edits.push(Mutation::fails("retype: an output to `impl Trait`", edit).naming([name]));
    let future = format!("std::pin::Pin<Box<dyn Future<Output = StepResult<{text}>> + Send>>");
    let edit = vec![
        Edit::remove(&step.async_token),
        Edit::new(&step.returns.ty, &*future),
    ];
    let kind = "retype: a function to one that returns a future";
    edits.push(Mutation::fails(kind, edit).naming([name]).hinting("async"));
    let ret = &step.returns.ty;
    for (kind, text) in [
        ("retype: a result to an `Option`", format!("Option<{text}>")),
        (
            "retype: a result to a future",
            format!("std::pin::Pin<Box<dyn Future<Output = StepResult<{text}>> + Send>>"),
        ),
        (
            "retype: a result to a box",
            format!("Box<StepResult<{text}>>"),
        ),
        (
            "retype: an error that can't be one",
            format!("Result<{text}, u8>"),
        ),
        (
            "retype: an error that can't be one",
            format!("Result<{text}, Box<dyn std::error::Error>>"),
        ),
        (
            "retype: an error that can't be one",
            format!("Result<{text}, std::rc::Rc<str>>"),
        ),
        (
            "retype: an error that can't be one",
            format!("Result<{text}, ()>"),
        ),
        ("retype: a result to `Self`", "Self".to_owned()),
    ] {
        let edit = vec![Edit::new(ret, text)];
        edits.push(Mutation::fails(kind, edit).naming([name]));
    }
    let rights = [
        format!("Result<{text}, String>"),
        format!("Result<{text}, std::io::Error>"),
        format!("Result<{text}, Box<dyn std::error::Error + Send + Sync>>"),
        format!("anyhow::Result<{text}>"),
        format!("pgflow::StepResult<{text}>"),
        format!("::std::result::Result<{text}, &'static str>"),
    ];
    for right in rights {
        edits.push(Mutation::compiles(
            "retype: a result to another right one",
            vec![Edit::new(ret, right)],
        ));
    }
    if let [(taker, param)] = takers[..] {
        let of_map = param.binding() == "item";
        for other in ["u8", "bool", "Vec<char>", "Option<char>", "(u8, char)"] {
            // A list that a map goes over has to stay a list, which is a check of its own.
            if !of_map && other != text && !output(step).contains(other) {
                let mutation = fails("retype: an output that a step takes", other);
                edits.push(mutation.naming([&*taker.name.text, param.binding()]));
            }
        }
        if of_map {
            let mutation = fails("retype: a list that a map is over", "u8");
            edits.push(mutation.naming([&*taker.name.text, "item"]));
        }
    }
    edits
}

/// `input` and `state`, where one step alone takes it.
fn arguments(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for key in ["input", "state"] {
        let Some(value) = source.arg(key).and_then(|arg| arg.value.as_ref()) else {
            continue;
        };
        let params = source.steps.iter().flat_map(|step| &step.params);
        let takers = params.filter(|param| param.binding() == key).count();
        let maps = source
            .steps
            .iter()
            .filter(|step| step.map().is_some_and(|map| map.text == key))
            .count();
        let change = |kind, text: &str| {
            Mutation::fails(kind, vec![Edit::new(&value.at, text)]).naming([key, "_input"])
        };
        if takers + maps >= 1 {
            edits.push(
                change("retype: an argument to another type", "u8")
                    .naming(["item"])
                    .at_most(takers + maps),
            );
        }
        edits.push(change("retype: an argument to a reference", "&str").at_most(takers + maps));
        if key == "input" {
            edits.push(
                change("retype: an argument to an unsized type", "str").at_most(takers + maps),
            );
            edits.push(
                change("retype: an argument to an unsized type", "[String]").at_most(takers + maps),
            );
        }
        if takers + maps == 0 {
            edits.push(change(
                "retype: an argument that is not shared",
                "std::rc::Rc<u8>",
            ));
        }
    }
    edits
}
