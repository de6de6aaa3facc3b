//! SIGTERM and ctrl-c, for workers that run in the foreground.
//!
//! A task on pgflow's own thread receives them, so handlers that block their threads can't keep the
//! process from reacting. The first signal asks the workers to stop, the second ends the process.
//! While no worker runs in the foreground, a signal has the effect that it had before the first one
//! ran.

use std::{
    io, process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;
use tracing::error;

use super::hub;
use crate::lock::lock;

/// The workers that run in the foreground.
static FOREGROUND: Mutex<Vec<Arc<Run>>> = Mutex::new(Vec::new());

#[derive(Debug, Default)]
struct Run {
    is_asked: AtomicBool,
    asked: Notify,
}

/// The signals of one run, until this is dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    run: Arc<Run>,
}

impl Signals {
    /// From here on a first signal does not end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        listening()?;
        let run = Arc::<Run>::default();
        lock(&FOREGROUND).push(Arc::clone(&run));
        Ok(Self { run })
    }

    /// Resolves with the first signal.
    pub(crate) async fn asked(&self) {
        self.run.asked.notified().await;
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        lock(&FOREGROUND).retain(|run| !Arc::ptr_eq(run, &self.run));
    }
}

/// A signal that asks a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Interrupt,
    #[cfg(unix)]
    Terminate,
}

impl Signal {
    const fn number(self) -> i32 {
        match self {
            Self::Interrupt => 2,
            #[cfg(unix)]
            Self::Terminate => 15,
        }
    }

    /// As a shell reports a process that the signal has ended.
    const fn exit_code(self) -> i32 {
        128 + self.number()
    }
}

/// The effect of a signal.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    /// The workers were asked to stop.
    Asks,
    /// They had been asked before.
    Ends,
    /// There are none.
    Default,
}

/// Asks everything that runs in the foreground to stop.
fn ask() -> Effect {
    let runs = lock(&FOREGROUND).clone();
    if runs.is_empty() {
        return Effect::Default;
    }
    let mut effect = Effect::Asks;
    for run in runs {
        if run.is_asked.swap(true, Ordering::AcqRel) {
            effect = Effect::Ends;
        }
        run.asked.notify_one();
    }
    effect
}

fn take(signal: Signal, before: Before) {
    match ask() {
        Effect::Asks => {}
        Effect::Ends => {
            error!(
                code = signal.exit_code(),
                "a second signal ends the process at once; what still ran will be repeated"
            );
            process::exit(signal.exit_code());
        }
        Effect::Default => before.restore(signal),
    }
}

/// Starts the task that takes signals, once.
fn listening() -> io::Result<()> {
    static LISTENS: Mutex<bool> = Mutex::new(false);

    let thread = hub::thread::handle()?;
    let mut listens = lock(&LISTENS);
    if !*listens {
        platform::listen(&thread)?;
        *listens = true;
    }
    Ok(())
}

/// The owner of a signal before workers ran in the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nobody: it ends the process.
    Nobody,
    /// The program handles it itself, or ignores it.
    #[cfg(unix)]
    Program,
}

#[cfg(unix)]
mod platform {
    use std::{fs, io, process};

    use tokio::{
        runtime::Handle,
        signal::unix::{SignalKind, signal},
    };

    use super::{Before, Signal, take};

    pub(super) fn listen(thread: &Handle) -> io::Result<()> {
        // Its own signals come over the runtime that they are asked for on.
        let _entered = thread.enter();
        for (kind, name) in [
            (SignalKind::terminate(), Signal::Terminate),
            (SignalKind::interrupt(), Signal::Interrupt),
        ] {
            let before = Before::of(name);
            let mut signals = signal(kind)?;
            thread.spawn(async move {
                while signals.recv().await.is_some() {
                    take(name, before);
                }
            });
        }
        Ok(())
    }

    impl Before {
        fn of(signal: Signal) -> Self {
            // Where this can't be read nobody is taken to handle the signal, as in most programs.
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            Self::told(&status, signal)
        }

        fn told(status: &str, signal: Signal) -> Self {
            let has = |name: &str| {
                let masks = status.lines().filter_map(|line| line.strip_prefix(name));
                let mut masks = masks.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok());
                masks.any(|mask| mask & (1 << (signal.number() - 1)) != 0)
            };
            if has("SigCgt:") || has("SigIgn:") {
                Self::Program
            } else {
                Self::Nobody
            }
        }

        pub(super) fn restore(self, signal: Signal) {
            if self == Self::Program {
                return;
            }
            // The first process of a container is not ended by a signal's default.
            if process::id() != 1 {
                let _refused = signal_hook::low_level::emulate_default_handler(signal.number());
            }
            process::exit(signal.exit_code());
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_signal_that_the_program_handles_or_ignores_is_left_to_it() {
            // As `nohup` starts a program that handles SIGTERM.
            let status = "Name:\tx\nSigIgn:\t0000000000000003\nSigCgt:\t0000000000004000\n";
            assert_eq!(Before::told(status, Signal::Terminate), Before::Program);
            assert_eq!(Before::told(status, Signal::Interrupt), Before::Program);
            let status = "SigIgn:\t0000000000001000\nSigCgt:\t0000000180000440\n";
            assert_eq!(Before::told(status, Signal::Terminate), Before::Nobody);
            assert_eq!(Before::told("", Signal::Interrupt), Before::Nobody);
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::{io, process};

    use tokio::runtime::Handle;

    use super::{Before, Signal, take};

    pub(super) fn listen(thread: &Handle) -> io::Result<()> {
        thread.spawn(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                take(Signal::Interrupt, Before::Nobody);
            }
        });
        Ok(())
    }

    impl Before {
        pub(super) fn restore(self, signal: Signal) {
            match self {
                Self::Nobody => process::exit(signal.exit_code()),
            }
        }
    }
}
