//! The thread of what must continue whatever handlers do: heartbeats, notifications, signals.

use std::{io, sync::Mutex};

use tokio::runtime::{Builder, Handle};

use crate::lock::lock;

/// Returns the runtime of the process's own thread, which the first caller starts.
///
/// The thread stays until the process ends. Without work it sleeps, and it keeps no process from
/// ending. It drives no user code but the hooks of pools.
///
/// # Errors
///
/// No thread, or no descriptors for its events, could be had.
pub(crate) fn handle() -> io::Result<Handle> {
    static THREAD: Mutex<Option<Handle>> = Mutex::new(None);

    let mut thread = lock(&THREAD);
    if let Some(handle) = &*thread {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .thread_name("pgflow-blocking")
        .build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("pgflow".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *thread = Some(handle.clone());
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_thread_and_it_outlives_the_runtimes_of_its_users() {
        let id = || {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let handle = handle().expect("a thread");
                let task = handle.spawn(async { std::thread::current().id() });
                task.await.expect("it runs")
            })
        };
        assert_eq!(id(), id());
    }
}
