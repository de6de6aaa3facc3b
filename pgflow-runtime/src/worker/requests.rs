//! The sources of stop requests for workers: signals, or a future of the caller.

use std::future::pending;

use futures_util::{FutureExt, future::Shared};
use tokio_util::task::AbortOnDropHandle;

use super::{WorkerError, shutdown::Stop, signals::Signals};
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

/// The source of requests to stop: signals, or a future of the caller's, each of them once.
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

    /// Resolves when the workers should stop.
    pub(crate) async fn next(&mut self) {
        match self {
            Self::Signals(signals) => signals.asked().await,
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
