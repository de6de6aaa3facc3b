//! The page `docs/cli.md`: what it shows is what the command writes.
//!
//! Each line of a `console` block that starts with `$ ` is run by a shell, in order, against one
//! database; what follows must be its output, whatever its ids, times and durations. Comments of
//! the page name what happens in between: see [`scenario`]. With `PGFLOW_BLESS=1` the page is
//! rewritten where it differs.

mod output;
mod page;
mod scenario;
mod shell;

use std::{env, fs, path::PathBuf};

use crate::support::{Database, pgflow};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")
}

#[test]
fn the_page_shows_what_the_commands_write() {
    let before = fs::read_to_string(path()).unwrap();
    let mut page = page::read(&before);
    let database = Database::blank();
    let mut meanwhile = None;
    let mut differences = Vec::new();
    for part in &mut page {
        match part {
            page::Part::Text(_) => {}
            page::Part::Then(event) => database.execute(scenario::sql(event)),
            page::Part::Meanwhile(event) => meanwhile = Some(scenario::during(event)),
            page::Part::Command { command, output } => {
                let shown = shell::run(&database, command, meanwhile.take());
                if output::is_same(output, &shown) {
                    continue;
                }
                differences.push(format!(
                    "$ {command}\n-- the page shows:\n{output}\n-- it writes:\n{shown}"
                ));
                *output = shown;
            }
        }
    }
    if env::var_os("PGFLOW_BLESS").is_some() {
        fs::write(path(), page::write(&page)).unwrap();
        return;
    }
    assert!(
        differences.is_empty(),
        "docs/cli.md is not up to date; look at what has changed, then write it with PGFLOW_BLESS=1 cargo test -p pgflow-cli docs\n\n{}",
        differences.join("\n\n")
    );
    assert_eq!(page::write(&page), before);
}

#[test]
fn every_command_and_every_exit_code_is_on_the_page() {
    let page = fs::read_to_string(path()).unwrap();
    let help = pgflow(&["--help"]).done();
    let commands = section(&help, "Commands:")
        .filter_map(|line| line.split_whitespace().next())
        .map(ToOwned::to_owned);
    let help_of_workers = pgflow(&["workers", "--help"]).done();
    let of_workers = section(&help_of_workers, "Commands:")
        .filter_map(|line| line.split_whitespace().next())
        .map(|command| format!("workers {command}"));
    let commands: Vec<String> = commands
        .chain(of_workers)
        .filter(|command| !command.ends_with("help"))
        .collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        assert!(page.contains(&format!("\n$ pgflow {command}")), "{command}");
    }
    let codes: Vec<&str> = section(&help, "Exit codes:").collect();
    assert_eq!(codes.len(), 9);
    for line in codes {
        let (code, meaning) = line.trim().split_once("  ").unwrap();
        let row = format!("| {code} | {} |", meaning.trim());
        assert!(page.contains(&row), "{row}");
    }
}

/// The lines of a part of a help text.
fn section<'a>(help: &'a str, heading: &str) -> impl Iterator<Item = &'a str> {
    let (_, rest) = help.split_once(heading).unwrap();
    rest.lines().skip(1).take_while(|line| !line.is_empty())
}
