//! The worker processes and their supervisor: whoever ends is started anew, and nobody may end but
//! by the test's hand.

use std::{
    fs::{self, File},
    mem,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use tokio::time::Instant;

use super::Mode;
use super::server::signal;
use super::worker::{NOT_STARTED, RESULTS_LOST, Role, STARTED, command};

pub(crate) const SLOTS: usize = 4;
/// A terminated worker needs its shutdown timeout of 3 s, and at most 4 s more where its database
/// is away; the rest is for a busy machine.
const SHUTDOWN: Duration = Duration::from_secs(40);
/// The pause of the supervisor before it restarts a worker.
const REST: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Fleet {
    mode: Mode,
    url: String,
    logs: PathBuf,
    workers: Vec<Worker>,
    pub(crate) counts: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) killed: usize,
    pub(crate) terminated: usize,
    pub(crate) frozen: usize,
    /// Starts that failed because the database was away.
    pub(crate) failed_starts: usize,
    started: usize,
}

#[derive(Debug)]
struct Worker {
    process: Child,
    role: Role,
    log: PathBuf,
    fate: Fate,
    /// The earliest time of its restart after it has ended.
    next_start: Option<Instant>,
}

#[derive(Debug)]
enum Fate {
    Lives,
    Frozen { _thaw: Thaw },
    Killed,
    TerminatedUntil(Instant),
    Ended,
}

impl Fleet {
    /// Starts all workers; their logs go to files in the directory `logs`.
    pub(crate) fn start(mode: Mode, url: String, logs: &Path) -> Self {
        let mut fleet = Self {
            mode,
            url,
            logs: logs.to_owned(),
            workers: Vec::new(),
            counts: Counts::default(),
        };
        for slot in 0..SLOTS {
            let worker = fleet.spawn(slot);
            fleet.workers.push(worker);
        }
        fleet
    }

    /// Starts anew whoever has ended; fails the test when one ended that should not have, or has
    /// not ended that should.
    pub(crate) fn look_after(&mut self) {
        for slot in 0..self.workers.len() {
            if self.has_ended(slot) && self.workers[slot].next_start <= Some(Instant::now()) {
                self.workers[slot] = self.spawn(slot);
            }
        }
    }

    /// The slots of processes that live, and whose workers are all registered: only these must end
    /// well when they are asked to.
    pub(crate) fn serving(&self) -> Vec<usize> {
        let serving = |slot: &usize| self.workers[*slot].is_serving();
        (0..self.workers.len()).filter(serving).collect()
    }

    pub(crate) fn kill(&mut self, slot: usize) {
        let worker = &mut self.workers[slot];
        worker.process.kill().expect("it was not waited for yet");
        worker.fate = Fate::Killed;
        self.counts.killed += 1;
    }

    pub(crate) fn terminate(&mut self, slot: usize) {
        let worker = &mut self.workers[slot];
        signal("TERM", worker.process.id());
        worker.fate = Fate::TerminatedUntil(Instant::now() + SHUTDOWN);
        self.counts.terminated += 1;
    }

    /// The process stands still for a while, as in a machine that is paused, unless it is thawed
    /// earlier.
    pub(crate) fn freeze(&mut self, slot: usize, pause: Duration) {
        let worker = &mut self.workers[slot];
        signal("STOP", worker.process.id());
        worker.fate = Fate::Frozen {
            _thaw: Thaw::after(pause, worker.process.id()),
        };
        self.counts.frozen += 1;
    }

    pub(crate) fn thaw(&mut self, slot: usize) {
        let worker = &mut self.workers[slot];
        if matches!(worker.fate, Fate::Frozen { .. }) {
            signal("CONT", worker.process.id());
            worker.fate = Fate::Lives;
        }
    }

    /// Starts no more workers; returns whether all have ended, those that serve because they are
    /// told to.
    pub(crate) fn wind_up(&mut self) -> bool {
        for slot in self.serving() {
            self.terminate(slot);
        }
        let mut slot = 0;
        while slot < self.workers.len() {
            if self.has_ended(slot) {
                self.workers.swap_remove(slot);
            } else {
                slot += 1;
            }
        }
        self.workers.is_empty()
    }

    fn has_ended(&mut self, slot: usize) -> bool {
        let worker = &mut self.workers[slot];
        if worker.next_start.is_some() {
            return true;
        }
        let Some(status) = worker
            .process
            .try_wait()
            .expect("it is a child of this process")
        else {
            if let Fate::TerminatedUntil(deadline) = worker.fate {
                assert!(
                    Instant::now() < deadline,
                    "the worker of slot {slot} was terminated and does not end"
                );
            }
            return false;
        };
        let fate = mem::replace(&mut worker.fate, Fate::Ended);
        worker.next_start = Some(Instant::now() + REST);
        self.check(slot, &fate, status);
        true
    }

    fn check(&mut self, slot: usize, fate: &Fate, status: ExitStatus) {
        match fate {
            Fate::Killed | Fate::Ended => {}
            Fate::TerminatedUntil(_) => {
                assert!(
                    matches!(status.code(), Some(0 | RESULTS_LOST)),
                    "the worker of slot {slot} was terminated and ended with {status}"
                );
            }
            Fate::Lives | Fate::Frozen { .. } => {
                let is_excused = status.code() == Some(NOT_STARTED);
                assert!(
                    is_excused,
                    "the worker of slot {slot} ended by itself, with {status}"
                );
                self.counts.failed_starts += 1;
            }
        }
    }

    fn spawn(&mut self, slot: usize) -> Worker {
        let number = self.counts.started;
        self.counts.started += 1;
        let path = self.logs.join(format!("{number:04}-slot-{slot}.log"));
        let log = File::create(&path).expect("a file for the log");
        let role = Role::of(self.mode, slot);
        let mut command = command(role, &self.url);
        command
            .stdout(log.try_clone().expect("a second handle of the log"))
            .stderr(log);
        Worker {
            process: command.spawn().expect("the test program can be started"),
            role,
            log: path,
            fate: Fate::Lives,
            next_start: None,
        }
    }
}

impl Worker {
    fn is_serving(&self) -> bool {
        let has_started = |log: String| log.matches(STARTED).count() >= self.role.workers();
        matches!(self.fate, Fate::Lives) && fs::read_to_string(&self.log).is_ok_and(has_started)
    }
}

/// A process that thaws a frozen one, even when the test is killed first: nobody else would ever do
/// that.
#[derive(Debug)]
struct Thaw(Child);

impl Thaw {
    fn after(pause: Duration, pid: u32) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "sleep \"$1\"; kill -s CONT \"$2\"", "thaw"])
            .args([pause.as_secs_f32().to_string(), pid.to_string()])
            // Whoever reads what the test writes must not wait for this to end.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-c ends the test, and not this.
            .process_group(0);
        Self(shell.spawn().expect("there is a shell"))
    }
}

impl Drop for Thaw {
    fn drop(&mut self) {
        // It may have ended, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // It may have ended, which is as good.
            let _ = worker.process.kill();
            let _ = worker.process.wait();
        }
    }
}
