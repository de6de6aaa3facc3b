//! Code of users: whatever it does when it is run, printed or dropped, a panic stays with its task.

use std::{
    any::Any,
    future::Future,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

/// Runs code of users; returns the message of a panic.
pub(crate) fn contain<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(message)
}

/// Drops a value of users; returns the message of a panic.
pub(crate) fn discard<T>(value: T) -> Result<(), String> {
    contain(|| drop(value))
}

/// The message of a panic, whose payload is dropped.
pub(crate) fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the panic has no message")
        .to_owned();
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // It may panic as well, and so on: better a leak.
        mem::forget(second);
    }
    text
}

/// A future of users. Resolves to the message of a panic when polling or dropping it panics.
///
/// Dropping this drops the future contained too: at a timeout, or where a shutdown aborts the
/// attempt.
#[derive(Debug)]
pub(crate) struct Contained<F>(Option<Pin<Box<F>>>);

impl<F: Future> Contained<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }

    /// Drops the future, unless it has ended.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        discard(self.0.take())
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = self.0.as_mut() else {
            return Poll::Ready(Err("the handler was polled after its end".to_owned()));
        };
        match contain(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(self.end().map(|()| output)),
            Err(panic) => {
                // What it says when it is dropped is no news.
                let _ = self.end();
                Poll::Ready(Err(panic))
            }
        }
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        let _ = discard(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, panic::panic_any};

    use super::*;

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            match self.0.checked_sub(1) {
                Some(fuse) => panic_any(Bomb(fuse)),
                None => panic!("the last one"),
            }
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained_however_often() {
        for fuse in 0..3 {
            let panic = contain(|| panic_any(Bomb(fuse))).expect_err("panics");
            assert_eq!(panic, "the panic has no message");
        }
    }

    #[tokio::test]
    async fn a_future_that_panics_when_dropped_says_so_at_its_end() {
        let bomb = Bomb(0);
        let mut running = Contained::new(async move {
            let _bomb = bomb;
            pending::<()>().await;
        });
        assert!(futures_util::poll!(&mut running).is_pending());
        assert_eq!(running.end(), Err("the last one".to_owned()));
    }

    #[tokio::test]
    async fn a_future_that_is_dropped_early_panics_nowhere() {
        let bomb = Bomb(0);
        drop(Contained::new(async move {
            let _bomb = bomb;
        }));
        let bomb = Bomb(1);
        let ended = Contained::new(async move {
            let _bomb = bomb;
            1
        });
        assert_eq!(ended.await, Err("the panic has no message".to_owned()));
    }
}
