//! The width of comments in Rust and SQL, and the first word of doc comments. Only lines that hold
//! nothing else are looked at; rustfmt limits the others.

use std::path::{Path, PathBuf};

use super::{Fault, assert_none, files, is_too_wide};

const TOO_WIDE: &str = "comments wrap at 100 columns: break this line at an earlier word";
const FIRST_WORD: &str = "a doc comment begins with a noun phrase or a third-person verb, not with a \
                          question word: for example \"Returns ..\" or \"The number of ..\"";

const QUESTION_WORDS: [&str; 10] = [
    "How", "What", "When", "Where", "Whether", "Which", "Who", "Whom", "Whose", "Why",
];

/// The marks of doc comments, and of plain ones.
const IN_RUST: [&str; 3] = ["///", "//!", "//"];
const IN_SQL: [&str; 1] = ["--"];

/// The mark and the text of a line that is a comment.
fn comment<'l>(line: &'l str, marks: &[&'static str]) -> Option<(&'static str, &'l str)> {
    let line = line.trim_start();
    let mark = marks.iter().find(|mark| line.starts_with(**mark))?;
    Some((mark, line[mark.len()..].trim()))
}

fn faults(source: &str, marks: &[&'static str]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut is_code = false;
    let mut last_mark = "";
    for (index, line) in source.lines().enumerate() {
        let Some((mark, text)) = comment(line, marks) else {
            (is_code, last_mark) = (false, "");
            continue;
        };
        let is_first = mark != last_mark;
        last_mark = mark;
        if text.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let mut add = |rule| {
            faults.push(Fault {
                line: index + 1,
                rule,
            });
        };
        let is_free = is_code || text.starts_with('|') || !text.contains(' ');
        if !is_free && is_too_wide(line) {
            add(TOO_WIDE);
        }
        let word = text.split(|c: char| !c.is_alphabetic()).next();
        let is_question = word.is_some_and(|word| QUESTION_WORDS.contains(&word));
        if is_first && ["///", "//!"].contains(&mark) && is_question {
            add(FIRST_WORD);
        }
    }
    faults
}

/// The SQL that may change: the numbered files are frozen.
fn functions() -> Vec<PathBuf> {
    let is_function = |path: &PathBuf| path.starts_with(Path::new("migrations/functions"));
    files("sql").into_iter().filter(is_function).collect()
}

#[test]
fn comments_in_rust_are_narrow_and_docs_begin_with_a_noun_or_a_verb() {
    let sources = files("rs");
    assert!(sources.len() > 300, "{} files", sources.len());
    assert_none(&sources, |source| faults(source, &IN_RUST));
}

#[test]
fn comments_in_sql_functions_are_narrow() {
    let functions = functions();
    assert!(functions.len() > 70, "{} functions", functions.len());
    assert_none(&functions, |sql| faults(sql, &IN_SQL));
}

#[test]
fn wide_comments_and_question_words_are_found() {
    let wide = "word ".repeat(21);
    let sql = format!("-- {wide}\nselect '{wide}';\n    -- short");
    assert_eq!(lines(&sql, &IN_SQL, TOO_WIDE), [1]);

    let rust = format!(
        "//! Whether {wide}\n//!\n//! Why not.\n\n/// Wherever it is.\nfn a() {{}}\n/// What it is.\n\
         /// | {wide} |\n/// ```\n/// {wide}\n/// ```\nfn b() {{}}\n// Who reads: {wide}\n/// Whose?\n"
    );
    assert_eq!(lines(&rust, &IN_RUST, FIRST_WORD), [1, 7, 14]);
    assert_eq!(lines(&rust, &IN_RUST, TOO_WIDE), [1, 13]);
}

/// The lines of a text that break one rule.
fn lines(source: &str, marks: &[&'static str], rule: &str) -> Vec<usize> {
    let faults = faults(source, marks);
    let found = faults.iter().filter(|fault| fault.rule == rule);
    found.map(|fault| fault.line).collect()
}
