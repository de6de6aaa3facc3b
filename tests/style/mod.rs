//! The checks of `STYLE.md` that a program can make: the width of prose and comments, and the first
//! word of doc comments.

mod comments;
mod prose;

use std::fs;
use std::path::{Path, PathBuf};

/// The widest line of prose, in characters.
const WIDTH: usize = 100;

/// The directories that contain no text of this project, or text whose lines must not move.
const EXCLUDED: [&str; 2] = [
    ".git",
    // The messages beside these cases name their lines.
    "ui-tests/fail",
];

/// A line that breaks a rule.
#[derive(Debug, PartialEq)]
struct Fault {
    line: usize,
    rule: &'static str,
}

fn is_too_wide(line: &str) -> bool {
    line.chars().count() > WIDTH
}

/// The files with this extension, by their paths from the root of the repository.
fn files(extension: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory can be listed") {
            let path = entry.expect("an entry can be read").path();
            let name = path.strip_prefix(root).expect("it is below the root");
            if path.is_dir() {
                let is_excluded = name.file_name().is_some_and(|last| last == "target")
                    || EXCLUDED.iter().any(|excluded| name == Path::new(excluded));
                if !is_excluded {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(name.to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Fails with the faults of all files, each with its place.
fn assert_none(files: &[PathBuf], faults: impl Fn(&str) -> Vec<Fault>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(root.join(file)).expect("the file is UTF-8");
        for Fault { line, rule } in faults(&text) {
            all.push(format!("{}:{line}: {rule}", file.display()));
        }
    }
    assert!(
        all.is_empty(),
        "{} lines break the rules of STYLE.md:\n{}",
        all.len(),
        all.join("\n")
    );
}
