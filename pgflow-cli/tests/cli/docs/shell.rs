//! Runs a line of the page.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use crate::{docs::scenario::During, support::Database};

/// The last words of `pgflow dev`, which would otherwise run forever.
const UNTIL_CTRL_C: &str = "stop it with ctrl-c";

/// Returns the output of the line, and its exit code unless that is 0.
pub(super) fn run(database: &Database, line: &str, meanwhile: Option<During>) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_pgflow"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let mut child = Command::new("sh")
        // In the shell's own place where it can be, so that a signal reaches the command.
        .args([
            "-c",
            &format!(
                "exec 2>&1; {}{line}",
                if line.contains('|') { "" } else { "exec " }
            ),
        ])
        .env("PATH", path)
        .env("DATABASE_URL", &database.url)
        .env_remove("RUST_LOG")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = String::new();
    let mut meanwhile = meanwhile;
    for written in BufReader::new(child.stdout.take().unwrap()).lines() {
        let written = written.unwrap();
        if meanwhile
            .as_ref()
            .is_some_and(|during| written.contains(during.after))
        {
            database.execute(meanwhile.take().unwrap().sql);
        }
        if written.contains(UNTIL_CTRL_C) {
            let pid = child.id().to_string();
            let sent = Command::new("kill").args(["-INT", &pid]).status();
            assert!(sent.unwrap().success());
        }
        output.push_str(&written);
        output.push('\n');
    }
    assert!(meanwhile.is_none(), "{line}: {output}");
    match child.wait().unwrap().code().unwrap() {
        0 => output,
        code => format!("{output}[exits with {code}]\n"),
    }
}
