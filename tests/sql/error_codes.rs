//! The error codes: one table in `migrations/README.md`, one `RefusalCode` in Rust, and what the
//! SQL raises.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every SQL file of the migrations: its name and its text.
fn sql_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["migrations", "migrations/functions"] {
        let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        for entry in entries.expect("the folder is there") {
            let name = entry.expect("a file").file_name().into_string();
            let name = format!("{folder}/{}", name.expect("a plain name"));
            if Path::new(&name)
                .extension()
                .is_some_and(|ending| ending == "sql")
            {
                files.push((name.clone(), read(&name)));
            }
        }
    }
    files.sort();
    assert!(files.len() > 40, "{} files", files.len());
    files
}

/// The rows of the README's table: code and variant.
fn documented() -> BTreeMap<String, String> {
    let page = read("migrations/README.md");
    let rows = page.lines().filter(|line| line.starts_with("| `PF"));
    rows.map(|row| {
        let cells: Vec<&str> = row
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        (cells[1].to_owned(), cells[3].to_owned())
    })
    .collect()
}

/// The arms of `RefusalCode::sqlstate`, and what is said of each variant: code and variant.
fn in_rust() -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let text = read("pgflow-runtime/src/sql/error.rs");
    let arms = text.lines().filter_map(|line| {
        let (variant, code) = line.trim().strip_prefix("Self::")?.split_once(" => \"PF")?;
        Some((
            format!("PF{}", code.trim_end_matches("\",")),
            variant.to_owned(),
        ))
    });
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let comments = lines.windows(2).filter_map(|pair| {
        let (code, _) = pair[0].strip_prefix("/// `")?.split_once("`: ")?;
        Some((code.to_owned(), pair[1].trim_end_matches(',').to_owned()))
    });
    (arms.collect(), comments.collect())
}

/// The statements that raise an error, each from `raise exception` to its semicolon.
fn raised(sql: &str) -> Vec<&str> {
    let starts = sql.match_indices("raise exception").map(|(start, _)| start);
    starts
        .map(|start| {
            let statement = &sql[start..];
            let (mut in_text, mut depth) = (false, 0);
            let end = statement.find(|c| {
                match c {
                    '\'' => in_text = !in_text,
                    '(' if !in_text => depth += 1,
                    ')' if !in_text => depth -= 1,
                    _ => {}
                }
                c == ';' && !in_text && depth == 0
            });
            &statement[..end.expect("a statement ends")]
        })
        .collect()
}

fn code(statement: &str) -> Option<&str> {
    let (_, rest) = statement.split_once("errcode = '")?;
    rest.split('\'').next()
}

#[test]
fn the_table_the_sql_and_the_rust_variants_agree() {
    let documented = documented();
    let (arms, comments) = in_rust();
    assert_eq!(documented, arms);
    assert_eq!(documented, comments);
    let files = sql_files();
    let raised: BTreeSet<&str> = files
        .iter()
        .flat_map(|(_, sql)| raised(sql))
        .filter_map(code)
        .collect();
    let documented: BTreeSet<&str> = documented.keys().map(String::as_str).collect();
    assert_eq!(raised, documented);
}

#[test]
fn whatever_a_caller_can_help_has_a_hint() {
    for (file, sql) in sql_files() {
        for statement in raised(&sql) {
            let code = code(statement);
            assert!(
                code.is_some_and(|code| code.starts_with("PF")),
                "{file}: without a code of class PF: {statement}"
            );
            assert!(
                code == Some("PF012") || statement.contains("hint = "),
                "{file}: without a hint: {statement}"
            );
        }
    }
}

#[test]
fn a_function_says_at_its_head_what_it_raises() {
    for (file, sql) in sql_files() {
        let (head, body) = sql
            .split_once("create or replace function")
            .unwrap_or(("", ""));
        let codes: BTreeSet<&str> = raised(body).into_iter().filter_map(code).collect();
        for code in codes {
            // Of a broken invariant nobody needs to be told before.
            assert!(
                code == "PF012" || head.contains(code),
                "{file} raises {code}, and does not say so"
            );
        }
    }
}
