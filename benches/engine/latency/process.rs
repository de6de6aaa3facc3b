//! The process of the worker, seen from the program that measures it.

use std::{env, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::{Result, options::Options, server::Place, variant::Mode};

/// The line that the worker writes when it serves.
pub(super) const READY: &str = "ready";
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Process {
    child: Child,
    id: u32,
}

impl Process {
    /// This very program, as a worker.
    pub(super) async fn start(place: &Place, options: &Options, mode: Mode) -> Result<Self> {
        let worker = options.worker;
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["serve", "--mode", mode.name()])
            .args(["--concurrency", &worker.concurrency.to_string()])
            .args(["--connections", &worker.connections.to_string()])
            .args(["--payload", &worker.payload.to_string()]);
        if let Some(switch) = options.session.synchronous_commit {
            command.args(["--synchronous-commit", switch.name()]);
        }
        if let Some(database) = &place.database {
            command.args(["--database", database]);
        }
        // Not as an argument, which other users of the machine can read.
        command.env("DATABASE_URL", &place.url);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().ok_or("the worker has no output")?;
        let mut lines = BufReader::new(output).lines();
        let line = timeout(PATIENCE, lines.next_line()).await??;
        if line.as_deref() != Some(READY) {
            return Err(format!("the worker did not start: {line:?}").into());
        }
        let id = child.id().ok_or("the worker has ended")?;
        Ok(Self { child, id })
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// It stops when its input ends.
    pub(super) async fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = timeout(PATIENCE, self.child.wait()).await??;
        if !status.success() {
            return Err(format!("the worker ended with {status}").into());
        }
        Ok(())
    }
}
