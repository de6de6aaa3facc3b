//! Values that an argument can't have.

use crate::{
    args::{Arg, Value},
    mutation::{Edit, Mutation},
    source::Source,
};

pub fn all(source: &Source) -> Vec<Mutation> {
    let all = source
        .args
        .iter()
        .chain(source.steps.iter().flat_map(|step| &step.args));
    all.flat_map(|arg| match &arg.value {
        Some(value) => {
            let mut edits = of_any(source, arg, value);
            edits.extend(of_kind(source, arg, value));
            edits
        }
        None => flag(arg),
    })
    .collect()
}

/// Returns the edits that apply to every `key = value`.
fn of_any(source: &Source, arg: &Arg, value: &Value) -> Vec<Mutation> {
    let key = &arg.key.text;
    let text = source.at(&value.at);
    let equals = arg.equals.as_ref().expect("a value has one");
    let wrong = |kind, text: String| Mutation::fails(kind, vec![Edit::new(&arg.whole, text)]);
    let mut edits = vec![
        wrong("drop: a value", format!("{key} =")),
        wrong("drop: a value and its `=`", key.clone()),
        Mutation::fails("drop: an `=`", vec![Edit::remove(equals)]),
        Mutation::fails("misspell: `=` as `:`", vec![Edit::new(equals, ":")]),
        Mutation::fails("misspell: `=` as `==`", vec![Edit::new(equals, "==")]),
        Mutation::fails("misspell: `=` as `=>`", vec![Edit::new(equals, "=>")]),
        wrong("misspell: a value in parentheses", format!("{key}({text})")),
        wrong("swap: a key and its value", format!("{text} = {key}")),
        wrong(
            "add: the same argument",
            format!("{key} = {text}, {key} = {text}"),
        ),
        wrong(
            "add: the same argument, raw",
            format!("{key} = {text}, r#{key} = {text}"),
        ),
        wrong(
            "add: an unknown argument",
            format!("{key} = {text}, zebra = 1"),
        ),
    ];
    // `crate` has no raw form.
    if key == "crate" {
        edits.retain(|edit| edit.kind != "add: the same argument, raw");
    }
    edits
}

fn flag(arg: &Arg) -> Vec<Mutation> {
    let key = &arg.key.text;
    [" = true", "(true)", ": true", " = \"yes\""]
        .into_iter()
        .map(|value| {
            let edit = vec![Edit::new(&arg.whole, format!("{key}{value}"))];
            Mutation::fails("misspell: a flag with a value", edit)
        })
        .chain([Mutation::fails(
            "add: the same argument",
            vec![Edit::new(&arg.whole, format!("{key}, {key}"))],
        )])
        .collect()
}

fn of_kind(source: &Source, arg: &Arg, value: &Value) -> Vec<Mutation> {
    let text = source.at(&value.at);
    let wrong = |kind, text: &str| Mutation::fails(kind, vec![Edit::new(&value.at, text)]);
    let each = |kind, texts: &[&str]| -> Vec<Mutation> {
        texts.iter().map(|text| wrong(kind, text)).collect()
    };
    match arg.key.text.as_str() {
        "timeout" | "base_delay" | "start_delay" => {
            let mut edits = each(
                "misspell: a duration",
                &[
                    "\"5\"",
                    "\"5x\"",
                    "\"5ms\"",
                    "\"-5s\"",
                    "\"1.5s\"",
                    "\"\"",
                    "\"s\"",
                    "\"5 sec\"",
                    "\"1m1h\"",
                    "\"00:05:00\"",
                    "\"99999999d\"",
                    "5",
                    "5.5",
                    "-5",
                    "\"5s\"s",
                    "b\"5s\"",
                    "Duration::from_secs(5)",
                    "true",
                    "[\"5s\"]",
                    "LIMIT",
                    "concat!(\"5\", \"s\")",
                    "'5'",
                ],
            );
            if arg.key.text != "start_delay" {
                edits.push(wrong("misspell: a duration, too short", "\"0s\""));
            }
            let word = value.string.as_deref().unwrap_or_default();
            edits.push(wrong("drop: the quotes of a duration", word).hinting(text));
            edits
        }
        "max_attempts" => each(
            "misspell: a number of attempts",
            &[
                "0",
                "-1",
                "3.0",
                "\"3\"",
                "3times",
                "5x",
                "99999999999",
                "true",
                "[3]",
                "LIMIT",
                "1 + 2",
                "usize::MAX",
                "three",
            ],
        ),
        "slug" => {
            let mut edits = each(
                "misspell: a slug",
                &[
                    "\"my slug\"",
                    "\"a__b\"",
                    "\"\"",
                    "\"run-it\"",
                    "\"a_\"",
                    "\"é\"",
                    "my_slug",
                    "1",
                    "SLUG",
                    "concat!(\"a\", \"b\")",
                    "b\"a\"",
                    "Self::SLUG",
                ],
            );
            let word = value.string.as_deref().unwrap_or_default();
            edits.push(wrong("drop: the quotes of a slug", word).hinting(text));
            edits
        }
        "when_unmet" | "when_exhausted" => {
            let mut edits = each(
                "misspell: a mode",
                &[
                    "\"skipp\"",
                    "\"Skip\"",
                    "\"cascade\"",
                    "\"\"",
                    "\"skip_cascade\"",
                    "\"ignore\"",
                    "true",
                    "1",
                    "Skip",
                    "SkipMode::Skip",
                    "[\"skip\"]",
                ],
            );
            let word = value.string.as_deref().unwrap_or_default();
            edits.push(wrong("drop: the quotes of a mode", word).hinting(text));
            edits
        }
        "depends_on" => {
            let inner = text.trim_matches(['[', ']']);
            vec![
                wrong("misspell: a list without brackets", inner),
                wrong("misspell: a list in parentheses", &format!("({inner})")),
                wrong("misspell: a list in braces", &format!("{{ {inner} }}")),
                wrong("misspell: a list in a list", &format!("[[{inner}]]")),
                wrong("misspell: a list as text", &format!("\"{inner}\"")),
                wrong("misspell: a list without commas", &text.replace(", ", " ")),
                wrong(
                    "misspell: a list with semicolons",
                    &text.replace(", ", "; "),
                ),
            ]
            .into_iter()
            .filter(|edit| edit.edits[0].text != text)
            .collect()
        }
        "if" | "if_not" => condition(source, arg, value),
        "step_enum" | "output" => each(
            "misspell: a type's name",
            &["\"Name\"", "1", "a::B", "Vec<u8>", "[Name]", "u8", "self"],
        ),
        "output_derive" => each(
            "misspell: a list of derives",
            &[
                "Debug",
                "\"Debug\"",
                "(Debug)",
                "[\"Debug\"]",
                "[Debug Clone]",
                "[Debgu]",
                "derive(Debug)",
            ],
        ),
        "crate" => each(
            "misspell: the crate's path",
            &["\"pgflow\"", "::pgflw", "pgflow::prelude", "1", "[pgflow]"],
        ),
        "input" | "state" => each(
            "misspell: a type",
            &[
                "\"Vec<String>\"",
                "1",
                "Vec<",
                "[]",
                "Order { .. }",
                "zebra()",
                "&'static",
            ],
        ),
        _ => Vec::new(),
    }
}

fn condition(source: &Source, arg: &Arg, value: &Value) -> Vec<Mutation> {
    let (key, text) = (&arg.key.text, source.at(&value.at));
    let wrong = |kind, text: String| Mutation::fails(kind, vec![Edit::new(&value.at, text)]);
    let inner = text.trim_start_matches('{').trim_end_matches('}').trim();
    let other = if key == "if" { "if_not" } else { "if" };
    let mut edits = vec![
        wrong("misspell: a condition without braces", inner.to_owned()),
        wrong("misspell: a condition in brackets", format!("[{inner}]")),
        wrong("misspell: a condition as text", "\"size > 3\"".to_owned()),
        wrong(
            "misspell: a condition as a comparison",
            "{ size > 3 }".to_owned(),
        ),
        wrong(
            "misspell: a condition as a closure",
            "|input| true".to_owned(),
        ),
        wrong("misspell: a condition as a word", "true".to_owned()),
        wrong("drop: all of a condition", "{}".to_owned()),
        wrong(
            "add: the opposite condition",
            format!("{text},\n        {other} = {text}"),
        ),
    ];
    for entry in &value.entries {
        let whole = source.at(&entry.whole);
        let wrong = |kind, at, text: String| Mutation::fails(kind, vec![Edit::new(at, text)]);
        edits.extend([
            wrong("drop: a colon", &entry.colon, String::new()),
            wrong("misspell: `:` as `=`", &entry.colon, " =".to_owned()),
            wrong("misspell: `:` as `==`", &entry.colon, " ==".to_owned()),
            wrong("drop: the value of a key", &entry.value, String::new()),
            wrong(
                "misspell: a value of a condition",
                &entry.value,
                "premium".to_owned(),
            )
            .hinting("\"premium\""),
            wrong(
                "misspell: a value of a condition",
                &entry.value,
                "Some(1)".to_owned(),
            ),
            wrong(
                "misspell: a value of a condition",
                &entry.value,
                "1u8".to_owned(),
            ),
            wrong(
                "misspell: a value of a condition",
                &entry.value,
                "b\"premium\"".to_owned(),
            ),
            wrong(
                "misspell: a value of a condition",
                &entry.value,
                "LIMIT".to_owned(),
            ),
            wrong(
                "misspell: a value of a condition",
                &entry.value,
                "1 + 2".to_owned(),
            ),
            wrong(
                "add: the same key",
                &entry.whole,
                format!("{whole}, {whole}"),
            ),
        ]);
    }
    edits
}
