//! Processor time of processes, as Linux tells it in `/proc`.

use std::fs;

/// The largest difference between the ages of the server and of its first process: the clock is
/// read some time after the process began.
const TOLERANCE: f64 = 10.0;
/// Ended children are looked for again when some were reaped while the others were read.
const TRIES: usize = 50;

/// Seconds of processor time of this process, ended threads included.
pub(crate) fn own_cpu() -> Option<f64> {
    Process::read("self").map(|process| process.own)
}

/// Seconds of processor time of another process, ended threads included.
pub(crate) fn cpu_of(pid: u32) -> Option<f64> {
    Process::read(&pid.to_string()).map(|process| process.own)
}

/// The first process of a server on this machine.
#[derive(Debug)]
pub(super) struct Postmaster(String);

impl Postmaster {
    /// The parent of a backend, if it is the server that started `age` seconds ago.
    pub(super) fn find(backend: u32, age: f64) -> Result<Self, String> {
        let elsewhere = |what: String| format!("the server does not run on this machine ({what})");
        let child = Process::read(&backend.to_string())
            .ok_or_else(|| elsewhere(format!("there is no process {backend}")))?;
        let parent = Process::read(&child.parent)
            .ok_or_else(|| elsewhere(format!("process {backend} has no readable parent")))?;
        if !parent.command.contains("postgres") && !parent.command.contains("postmaster") {
            return Err(elsewhere(format!(
                "the parent of process {backend} is `{}`",
                parent.command
            )));
        }
        let uptime: f64 = fs::read_to_string("/proc/uptime")
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .ok_or("/proc/uptime can't be read")?;
        let parent_age = uptime - parent.started;
        if (parent_age - age).abs() > TOLERANCE {
            return Err(elsewhere(format!(
                "it started {age:.0} s ago, process {} {parent_age:.0} s ago",
                child.parent
            )));
        }
        Ok(Self(child.parent))
    }

    /// Seconds of all processes that the server has and had.
    ///
    /// What a child used counts for itself while it lives, and for the postmaster once it was
    /// reaped. A child that is reaped while the others are read would count twice or not at all, so
    /// then all are read again.
    pub(super) fn cpu(&self) -> Option<f64> {
        for _ in 0..TRIES {
            let before = Process::read(&self.0)?;
            let children = self.children()?;
            let after = Process::read(&self.0)?;
            if before.reaped == after.reaped {
                let of_children = children
                    .iter()
                    .map(|child| child.own + child.reaped.seconds());
                return Some(after.own + after.reaped.seconds() + of_children.sum::<f64>());
            }
        }
        None
    }

    fn children(&self) -> Option<Vec<Process>> {
        let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.bytes().all(|b| b.is_ascii_digit()).then_some(name)
        });
        let processes = pids.filter_map(|pid| Process::read_of(&pid, &self.0));
        Some(processes.collect())
    }
}

/// Processor time in ticks of the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks(u64);

impl Ticks {
    #[expect(clippy::cast_precision_loss, reason = "2^52 ticks are a million years")]
    fn seconds(self) -> f64 {
        self.0 as f64 / ticks_per_second()
    }
}

#[derive(Debug)]
struct Process {
    command: String,
    parent: String,
    /// Seconds of its own.
    own: f64,
    /// That of its ended and reaped children.
    reaped: Ticks,
    /// Seconds after the start of the machine.
    started: f64,
}

impl Process {
    /// `None`: it has ended, or there is no `/proc`.
    fn read(pid: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// A child of `parent`. It has one thread, as all processes of Postgres, so its time is known
    /// to the nanosecond where the kernel tells.
    fn read_of(pid: &str, parent: &str) -> Option<Self> {
        let mut process = Self::read(pid).filter(|process| process.parent == parent)?;
        let schedule = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok();
        let exact = schedule.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        if let Some(nanoseconds) = exact {
            process.own = nanoseconds / 1e9;
        }
        Some(process)
    }

    /// See proc(5). The command stands in parentheses, and may hold any character.
    fn parse(stat: &str) -> Option<Self> {
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, command) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            command: command.to_owned(),
            parent: (*fields.get(1)?).to_owned(),
            own: Ticks(number(14)? + number(15)?).seconds(),
            reaped: Ticks(number(16)? + number(17)?),
            started: Ticks(number(22)?).seconds(),
        })
    }
}

/// Returns the ticks per second that the kernel reports to each program: entry 17 of the auxiliary
/// vector.
fn ticks_per_second() -> f64 {
    const CLOCK_TICKS: usize = 17;
    const DEFAULT: f64 = 100.0;
    const WORD: usize = size_of::<usize>();
    let vector = fs::read("/proc/self/auxv").unwrap_or_default();
    let words = vector
        .chunks_exact(WORD)
        .map(|bytes| usize::from_ne_bytes(bytes.try_into().expect("a word")));
    let words: Vec<usize> = words.collect();
    let entry = words.chunks_exact(2).find(|pair| pair[0] == CLOCK_TICKS);
    entry
        .and_then(|pair| u32::try_from(pair[1]).ok())
        .map_or(DEFAULT, f64::from)
}
