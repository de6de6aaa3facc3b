//! Who asks workers to stop: signals, or a future of the caller's.

use std::future::pending;

use futures_util::{FutureExt, future::Shared};
use tokio_util::task::AbortOnDropHandle;

use super::{WorkerError, shutdown::Stop};
use crate::flow::BoxFuture;

/// Resolves when workers should stop; each that is asked by it has a clone.
pub(crate) type Request = Shared<BoxFuture<'static, ()>>;

pub(crate) fn request(future: impl Future<Output = ()> + Send + 'static) -> Request {
    let future: BoxFuture<'static, ()> = Box::pin(future);
    future.shared()
}

/// Asks to stop when the request comes, until the handle is dropped.
pub(crate) fn forward(request: Request, stop: Stop) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        request.await;
        stop.request();
    }))
}

/// What asks workers to stop: signals as often as they come, a future of the caller's once.
pub(crate) enum Requests {
    Signals(Signals),
    Once(Option<Request>),
}

impl Requests {
    /// Listens for signals when there is no request.
    pub(crate) fn new(request: Option<Request>) -> Result<Self, WorkerError> {
        Ok(match request {
            Some(request) => Self::Once(Some(request)),
            None => Self::Signals(Signals::listen().map_err(WorkerError::Signals)?),
        })
    }

    pub(crate) async fn next(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Once(request) => match request {
                Some(future) => {
                    future.await;
                    *request = None;
                }
                None => pending().await,
            },
        }
    }
}

/// SIGTERM and ctrl-c.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// From here on the process does not end on these signals by itself.
    #[cfg(unix)]
    pub(crate) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
