//! The examples, run as a person runs them: the built program, its output and its exit code.

mod crate_audit;
mod media_ingest;
mod rate_limited;

use std::path::PathBuf;

use tokio::process::Command;

/// The built example, to run on the server that `url` names.
fn example(name: &str, url: &str) -> Command {
    let mut command = Command::new(built(name));
    command
        .env("DATABASE_URL", url)
        .env_remove("RUST_LOG")
        .kill_on_drop(true);
    command
}

fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test program has a path");
    let profile = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("cargo puts test programs into target/<profile>/deps");
    let program = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.is_file(),
        "{} is not built; `cargo test --workspace` builds it, and so does `cargo build --examples`",
        program.display()
    );
    program
}
