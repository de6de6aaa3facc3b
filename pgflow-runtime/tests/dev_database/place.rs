//! The directories of the tests' servers.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use pgflow_runtime::dev::{DevBuilder, DevDatabase};
use tempfile::TempDir;

/// Memory where there is enough of it, because starting and stopping servers is mostly work for the
/// disk.
pub(crate) fn scratch() -> PathBuf {
    const MEMORY: &str = "/dev/shm";
    const ENOUGH_KIB: u64 = 1024 * 1024;
    // File system, size, used, available, ..
    let available = Command::new("df")
        .args(["-Pk", MEMORY])
        .output()
        .ok()
        .and_then(|output| {
            let text = String::from_utf8(output.stdout).ok()?;
            text.lines()
                .nth(1)?
                .split_whitespace()
                .nth(3)?
                .parse::<u64>()
                .ok()
        });
    if available.is_some_and(|kib| kib >= ENOUGH_KIB) {
        PathBuf::from(MEMORY)
    } else {
        env::temp_dir()
    }
}

/// A private server, whatever the environment says.
pub(crate) fn private() -> DevBuilder {
    DevDatabase::builder()
        .ignore_environment()
        .temp_dir(scratch())
}

/// A new directory that every user may search, and a path in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir_in(scratch()).unwrap();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = parent.path().join("kept");
    (parent, path)
}
