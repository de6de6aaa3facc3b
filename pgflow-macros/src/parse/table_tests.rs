//! The texts that are generated from the table of arguments: the reference, and the docs for
//! editors.

use std::{env, fs, path::Path};

use super::table::{Argument, FLOW, STEP, meant_by};

const OVERWRITE: &str = "PGFLOW_OVERWRITE_SNAPSHOTS";

/// Compares a file with what it should be, or makes it so.
fn check(path: &str, make: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let actual = fs::read_to_string(&path).expect("the file can be read");
    let expected = make(&actual);
    if env::var_os(OVERWRITE).is_some() {
        fs::write(&path, expected).expect("the file can be written");
        return;
    }
    assert!(
        actual == expected,
        "{} is not what the table of arguments says; run the test with {OVERWRITE}=1",
        path.display()
    );
}

/// The page with its table of arguments replaced.
fn with_table(page: &str, arguments: &[Argument]) -> String {
    const HEAD: &str = "| argument | form and bounds | default |\n|---|---|---|\n";
    let (before, rest) = page.split_once(HEAD).expect("a table of arguments");
    let (_, after) = rest.split_once("\n\n").expect("text behind the table");
    let rows = arguments.iter().map(|argument| {
        let Argument {
            key, form, default, ..
        } = argument;
        format!("| `{key}` | {form} | {default} |")
    });
    let rows: Vec<String> = rows.collect();
    format!("{before}{HEAD}{}\n\n{after}", rows.join("\n"))
}

#[test]
fn the_reference() {
    check("src/flow.md", |page| with_table(page, FLOW));
    check("src/step.md", |page| with_table(page, STEP));
}

/// The runtime has a method for each argument, and its documentation is what an editor shows.
#[test]
fn what_editors_show() {
    let path = "../pgflow-runtime/src/flow/__private/arguments.rs";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let methods = fs::read_to_string(path).expect("the file can be read");
    // A comment of several lines reads as one.
    let methods = methods.replace("\n    /// ", " ");
    let methods = methods.replace("{ `", "{\n `");
    let (of_steps, of_flows) = methods.split_once("impl Flow {").expect("two types");
    for (methods, arguments) in [(of_steps, STEP), (of_flows, FLOW)] {
        for Argument { key, hover, .. } in arguments.iter().filter(|it| !it.hover.is_empty()) {
            let name = if *key == "if" { "r#if" } else { key };
            let method = format!("\n {hover}\n    pub const fn {name}(");
            assert!(methods.contains(&method), "no such method:\n{method}");
        }
    }
}

#[test]
fn each_argument_is_described() {
    for (position, argument) in STEP.iter().chain(FLOW).enumerate() {
        let Argument {
            key,
            form,
            default,
            hover,
            ..
        } = argument;
        assert!(
            !key.is_empty() && !form.is_empty() && !default.is_empty(),
            "{position}: {key}"
        );
        assert_eq!(hover.is_empty(), *key == "crate", "{key}");
        assert!(
            meant_by(key).is_none(),
            "`{key}` is an argument, and so no other word for one"
        );
    }
}
