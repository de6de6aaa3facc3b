//! The report of a failing test: its seed, its disturbances, and the ends of the workers' logs.

use std::{env, fs, path::Path, time::Duration};

use tempfile::TempDir;
use tokio::time::Instant;

use super::Mode;

/// The number of logs that are shown, of the workers that were started last, and the length of
/// each.
const LOGS: usize = 8;
const LINES: usize = 25;
const WIDTH: usize = 300;

/// The choices of whoever runs the test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The least duration of the disturbances.
    pub(crate) duration: Duration,
    /// `true` if the test makes lost tasks older than they are, so that it need not wait for the
    /// product's deadlines.
    pub(crate) hurries: bool,
}

impl Plan {
    pub(crate) fn from_environment() -> Self {
        const USUAL_SECONDS: u64 = 5;
        const LONG_SECONDS: u64 = 60;
        let seconds = number_in("PGFLOW_CHAOS_SECONDS").unwrap_or(USUAL_SECONDS);
        Self {
            seed: number_in("PGFLOW_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..)),
            duration: Duration::from_secs(seconds),
            hurries: seconds < LONG_SECONDS,
        }
    }
}

fn number_in(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is {text:?}; it must be a number")))
}

#[derive(Debug)]
pub(crate) struct Story {
    mode: Mode,
    plan: Plan,
    began: Instant,
    events: Vec<String>,
    logs: Option<TempDir>,
}

impl Story {
    pub(crate) fn begin(mode: Mode, plan: Plan) -> Self {
        println!(
            "chaos, {mode:?} mode: PGFLOW_CHAOS_SEED={} PGFLOW_CHAOS_SECONDS={}",
            plan.seed,
            plan.duration.as_secs()
        );
        Self {
            mode,
            plan,
            began: Instant::now(),
            events: Vec::new(),
            logs: Some(tempfile::tempdir().expect("a directory for logs")),
        }
    }

    /// The directory of the workers' logs.
    pub(crate) fn logs(&self) -> &Path {
        self.logs.as_ref().expect("it is kept until the end").path()
    }

    pub(crate) fn tell(&mut self, event: impl std::fmt::Display) {
        let at = self.began.elapsed().as_secs_f32();
        self.events.push(format!("{at:8.2} s  {event}"));
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let logs = self.logs.take().expect("it is kept until the end").keep();
        eprintln!(
            "\nchaos, {:?} mode: PGFLOW_CHAOS_SEED={} PGFLOW_CHAOS_SECONDS={}\n{}",
            self.mode,
            self.plan.seed,
            self.plan.duration.as_secs(),
            self.events.join("\n")
        );
        eprintln!("all logs of workers are kept in {}", logs.display());
        for path in last_logs(&logs) {
            let log = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("\n{}:", path.display());
            for line in &lines[lines.len().saturating_sub(LINES)..] {
                eprintln!("{}", line.chars().take(WIDTH).collect::<String>());
            }
        }
    }
}

fn last_logs(directory: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    // They are numbered in the order of their starts.
    paths.sort();
    paths.split_off(paths.len().saturating_sub(LOGS))
}
