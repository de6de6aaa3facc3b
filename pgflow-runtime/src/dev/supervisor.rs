//! The process that stops a server when its owner ends, however it ends.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::error::DevError;
use super::home::{Claim, Home};

const SCRIPT: &str = include_str!("supervise.sh");

/// Holds the pipe that the script waits on. No other child process inherits its end: std opens it
/// close-on-exec.
#[derive(Debug)]
pub(super) struct Supervisor {
    process: Option<Child>,
    home: PathBuf,
}

impl Supervisor {
    /// Starts a server from the binaries in `bin` with `arguments`.
    pub(super) fn start(
        bin: &Path,
        home: &mut Home,
        claim: &Claim,
        superuser: &str,
        arguments: &[String],
    ) -> Result<Self, DevError> {
        let mut script = Command::new("/bin/sh");
        script
            .args(["-c", &script_without_comments(), "pgflow-dev-database"])
            .arg(bin)
            .arg(home.data())
            .arg(initdb_options(superuser, home.is_kept))
            .arg(home.exited())
            // With kept data, a checkpoint at the end spares the next start the recovery.
            .arg(if home.is_kept { "INT" } else { "QUIT" })
            .arg(home.ephemeral().unwrap_or(Path::new("")))
            .args(arguments)
            .stdin(Stdio::piped())
            // Out of the terminal's foreground, so that ctrl-c reaches the owner only.
            .process_group(0)
            .current_dir("/");
        clean_environment(&mut script);
        if let Some(user) = &home.user {
            user.run(&mut script);
        }
        let process = log_to(&mut script, claim)
            .and_then(Command::spawn)
            .map_err(|source| DevError::Io {
                what: "running /bin/sh to supervise the server".to_owned(),
                expected: "a POSIX shell, and the right to change to the server's user",
                source,
            })?;
        home.leave_to_supervisor();
        Ok(Self {
            process: Some(process),
            home: home.path().to_owned(),
        })
    }

    /// Stops the server, once, and waits for its exit.
    pub(super) fn stop(&mut self) -> Result<(), DevError> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        // Waiting closes the pipe first.
        let status = process.wait().map_err(|source| DevError::Io {
            what: "waiting for the supervisor of the server".to_owned(),
            expected: "that nothing else waits for this process's children",
            source,
        })?;
        if status.success() {
            return Ok(());
        }
        Err(DevError::NotStopped {
            status: status.to_string(),
            home: self.home.clone(),
        })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!(%error, "the development database did not stop well");
        }
    }
}

/// Returns the part of the script that `ps` shows.
fn script_without_comments() -> String {
    let lines = SCRIPT.lines().filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn initdb_options(superuser: &str, is_kept: bool) -> String {
    let mut options = format!(
        "--username={superuser} --auth-local=trust --auth-host=scram-sha-256 \
         --locale=C --encoding=UTF8 --no-instructions"
    );
    if !is_kept {
        // Small segments: less to write for a short life.
        options.push_str(" --no-sync --wal-segsize=1");
    }
    options
}

/// Every process of the server inherits the log, and with it the lock on it.
fn log_to<'a>(script: &'a mut Command, claim: &Claim) -> io::Result<&'a mut Command> {
    let (output, errors) = (claim.log.try_clone()?, claim.log.try_clone()?);
    Ok(script.stdout(output).stderr(errors))
}

fn clean_environment(script: &mut Command) {
    // PGDATA, PGPORT and their like would change what the tools do.
    let of_postgres = env::vars_os().map(|(name, _)| name);
    for name in of_postgres.filter(|name| name.as_encoded_bytes().starts_with(b"PG")) {
        script.env_remove(name);
    }
    // The script's own tools, `cat` and `rm`, lie there whatever PATH says.
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(["/usr/bin".into(), "/bin".into()]);
    if let Ok(path) = env::join_paths(places) {
        script.env("PATH", path);
    }
    // The log in English; a known time zone, which spares initdb the search for ours.
    script.env("LC_ALL", "C").env("TZ", "UTC");
}
