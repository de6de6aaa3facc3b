//! Follows what happens to a run.

mod event;
mod history;
mod moments;

use std::{
    collections::VecDeque,
    fmt,
    future::IntoFuture,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    Stream, StreamExt,
    stream::{BoxStream, try_unfold},
};

pub use self::event::RunEvent;
use self::history::History;
use super::{
    ClientError, RunHandle, RunSnapshot,
    hints::{Hears, Pace},
    watch::Watch,
};
use crate::{
    flow::{BoxFuture, Flow},
    sql::history::read_history,
};

/// Looks at a run for the first time when it is awaited, and returns the stream of its events: made
/// by [`RunHandle::events`].
#[derive(Debug)]
#[must_use = "nothing is looked at until this is awaited"]
pub struct Follow<F> {
    run: RunHandle<F>,
    pace: Pace,
}

impl<F: Flow> Follow<F> {
    pub(super) fn new(run: RunHandle<F>) -> Self {
        Self {
            run,
            pace: Pace::default(),
        }
    }

    /// Looks at the run at this interval, whether something is notified or not. The default is soon
    /// at first, then every 500 ms, and every 5 s while notifications of steps come. At the event
    /// level `runs` only the end of the run is notified, so the interval is how late other events
    /// may be.
    ///
    /// Below 10 ms it is 10 ms. All streams of a process over one pool are looked at together, in
    /// one statement for each interval.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.pace = Pace::every(interval);
        self
    }

    async fn begin(self) -> Result<RunEvents<F>, ClientError> {
        let mut following = Following {
            watch: Watch::new(&self.run, self.pace, Hears::Everything),
            run: self.run,
            history: History::new(),
            events: VecDeque::new(),
        };
        while !following.look().await? {
            following.watch.pause().await?;
        }
        Ok(RunEvents {
            stream: try_unfold(following, Following::next).boxed(),
        })
    }
}

impl<F: Flow> IntoFuture for Follow<F> {
    type Output = Result<RunEvents<F>, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// A stream of the events of a run, from its start to its end: made by [`RunHandle::events`], which
/// lists its guarantees.
///
/// The stream ends after the end of the run, and after an error. It polls the run only while its
/// next event is awaited; dropping it releases its resources.
#[must_use = "nothing is looked at until the events are awaited"]
pub struct RunEvents<F: Flow> {
    stream: BoxStream<'static, Result<RunEvent<F::Step>, ClientError>>,
}

impl<F: Flow> RunEvents<F> {
    /// Waits for the next event; none after the end of the run, and after an error.
    ///
    /// The future can be dropped unfinished, as `select!` and `timeout` do: no event is lost.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] when the run was deleted meanwhile. [`ClientError::Database`] when
    /// the database could not be reached for 30 s, or refused to be read. The stream has ended
    /// then; the run continues, and another stream begins at its start again.
    pub async fn next(&mut self) -> Option<Result<RunEvent<F::Step>, ClientError>> {
        self.stream.next().await
    }
}

impl<F: Flow> Stream for RunEvents<F> {
    type Item = Result<RunEvent<F::Step>, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next_unpin(context)
    }
}

impl<F: Flow> fmt::Debug for RunEvents<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunEvents")
            .field("flow", &F::DEFINITION.slug)
            .finish_non_exhaustive()
    }
}

struct Following<F: Flow> {
    run: RunHandle<F>,
    watch: Watch,
    history: History<F>,
    /// Read, and not emitted yet.
    events: VecDeque<RunEvent<F::Step>>,
}

impl<F: Flow> Following<F> {
    /// Polls, and returns whether the database answered.
    async fn look(&mut self) -> Result<bool, ClientError> {
        let run_id = self.run.run_id();
        let look = read_history(self.run.pool(), run_id).await;
        let Some(known) = self.watch.seen(look)? else {
            return Ok(false);
        };
        let json = known.ok_or(ClientError::NotFound { run_id })?;
        let seen = RunSnapshot::read(run_id, &json)?;
        self.watch.saw(seen.sight());
        self.events.extend(self.history.tell(&seen)?);
        if self.history.is_ended() {
            self.watch.stop_listening();
        }
        Ok(true)
    }

    async fn next(mut self) -> Result<Option<(RunEvent<F::Step>, Self)>, ClientError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some((event, self)));
            }
            if self.history.is_ended() {
                return Ok(None);
            }
            self.watch.pause().await?;
            self.look().await?;
        }
    }
}

#[cfg(test)]
mod tests;
