//! Checks of `README.md` beside this file: each test in its tables exists, each row names one or
//! gives a reason, and each public SQL function has a module of its name.

use std::fs;
use std::path::{Path, PathBuf};

use pgflow_migrations::FUNCTIONS;

/// The cells of each table row of the document, with the number of its line; heads and rules are no
/// rows.
fn rows(document: &str) -> Vec<(usize, Vec<&str>)> {
    let lines: Vec<&str> = document.lines().map(str::trim).collect();
    let is_rule = |line: &str| line.starts_with("|-") || line.starts_with("| -");
    let mut rows = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let is_head = lines.get(index + 1).is_some_and(|next| is_rule(next));
        let Some(cells) = line.strip_prefix('|') else {
            continue;
        };
        if !is_head && !is_rule(line) {
            let cells = cells.trim_end_matches('|').split('|').map(str::trim);
            rows.push((index + 1, cells.collect()));
        }
    }
    rows
}

/// The paths of tests that a cell names: what stands in backticks and has a `::`.
fn paths(cell: &str) -> Vec<&str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains("::")).collect()
}

/// Says why there is no test of this path.
fn missing(tests: &Path, path: &str) -> Option<String> {
    let mut modules: Vec<&str> = path.split("::").collect();
    let name = modules.pop()?;
    let mut parent = tests.join("main.rs");
    let mut directory = tests.to_owned();
    for module in modules {
        let source = read(&parent);
        let declares = |end: &str| {
            let declaration = format!("mod {module}{end}");
            source.lines().any(|line| line.ends_with(&declaration))
        };
        if declares(";") {
            let file = directory.join(format!("{module}.rs"));
            directory.push(module);
            let mod_file = directory.join("mod.rs");
            parent = if file.exists() { file } else { mod_file };
        } else if !declares(" {") {
            return Some(format!("{} has no module {module}", parent.display()));
        }
    }
    let function = format!("fn {name}(");
    let source = read(&parent);
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_attribute = |line: &&&str| line.starts_with("#[") || line.starts_with("//");
    let is_test = lines.iter().enumerate().any(|(index, line)| {
        let mut above = lines[..index].iter().rev().take_while(is_attribute);
        line.contains(&function)
            && above.any(|line| line.starts_with("#[") && line.contains("test"))
    });
    (!is_test).then(|| format!("{} has no test {name}", parent.display()))
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn every_test_that_the_readme_names_exists() {
    let document = read(&tests().join("README.md"));
    let rows = rows(&document);
    assert!(rows.len() > 100, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (line, cells) in rows {
        // The first column names behaviours, and may name tests of the reference.
        let named: Vec<&str> = cells[1..].iter().flat_map(|cell| paths(cell)).collect();
        let explained = cells[1..]
            .iter()
            .any(|cell| cell.contains("not applicable:"));
        if named.is_empty() && !explained {
            wrong.push(format!("line {line} names no test"));
        }
        for path in named {
            if let Some(reason) = missing(&tests(), path) {
                wrong.push(format!("line {line}: {path}: {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_public_function_has_a_module_of_its_name() {
    let modules = read(&tests().join("sql").join("mod.rs"));
    let without: Vec<&str> = FUNCTIONS
        .iter()
        .map(|function| function.name)
        .filter(|name| !name.starts_with('_') && !modules.contains(&format!("mod {name};")))
        .collect();
    assert!(without.is_empty(), "without a module: {without:?}");
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    let found = "readme::a_test_that_is_not_there_is_noticed";
    assert_eq!(missing(&tests(), found), None);
    assert_eq!(
        missing(
            &tests(),
            "sql::claim_tasks::classes::a_message_of_an_ended_task_is_archived"
        ),
        None
    );
    for path in [
        "readme::no_such_test",
        // No test, though a function.
        "readme::missing",
        "no_such_module::a_test",
        "sql::no_such_module::a_test",
    ] {
        assert!(missing(&tests(), path).is_some(), "{path}");
    }
    let document = "| a | b |\n|---|---|\n| `x/y` | `one::two`, `three` and `four::five` |\ntext";
    let rows = rows(document);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].0, paths(rows[0].1[1])),
        (3, vec!["one::two", "four::five"])
    );
}
