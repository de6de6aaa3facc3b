//! The hub's own connection: notifications come over it, and heartbeats go.

use std::convert::Infallible;

use sqlx::postgres::PgListener;
use tokio::{
    select,
    sync::watch,
    time::{Duration, Instant, sleep_until, timeout},
};
use tracing::{debug, info};

use super::Core;
use crate::{
    flow::BoxFuture,
    listening::{LIMIT, Listening, Outage, no_answer},
    sql::CallError,
};

/// The channel on which the database names the queues with new tasks.
const CHANNEL: &str = "pgflow_work";

/// The time without an answer after which another connection is tried as well: the rest of the 6 s
/// after which a worker appears dead.
const PATIENCE: Duration = Duration::from_millis(700);

/// The connection, made again whenever it is lost or has turned bad.
#[derive(Debug)]
pub(super) struct Line<'a> {
    core: &'a Core,
    wanted: watch::Receiver<bool>,
    open: Option<Open>,
    outage: Outage,
    /// The time of the next try while there is no connection.
    retry_at: Instant,
}

#[derive(Debug)]
struct Open {
    listening: Listening,
    since: Instant,
    /// Asked only after another one was silent.
    is_new: bool,
}

/// A call over a connection; made again on another one when the first is lost, or silent.
pub(super) type Call<'a, T> =
    &'a (dyn for<'c> Fn(&'c mut PgListener) -> BoxFuture<'c, Result<T, CallError>> + Send + Sync);

/// A connection that can be kept, and its answer.
type Answered<T> = (Open, Result<T, CallError>);

impl<'a> Line<'a> {
    pub(super) fn new(core: &'a Core) -> Self {
        Self {
            core,
            wanted: core.listens.subscribe(),
            open: None,
            outage: Outage::new(
                "the connection for heartbeats and notifications was lost or can't be made; \
                 workers poll until it is there",
                "still no connection for heartbeats and notifications",
            ),
            retry_at: Instant::now(),
        }
    }

    /// Hears notifications, and makes the connection where there is none. Dropped at any time it
    /// loses nothing.
    pub(super) async fn attend(&mut self) -> Infallible {
        loop {
            let Some(open) = &mut self.open else {
                sleep_until(self.retry_at).await;
                let since = Instant::now();
                self.wanted.mark_unchanged();
                match connect(self.core).await {
                    Ok(open) => self.keep(open),
                    Err(error) => self.lost(since, &error),
                }
                continue;
            };
            let since = open.since;
            select! {
                heard = open.listening.hear() => match heard {
                    Ok(notification) => self.core.announce(notification.payload()),
                    Err(error) => self.lost(since, &error),
                },
                // The hub keeps the sender.
                Ok(()) = self.wanted.changed() => {
                    debug!("the connection is made anew: notifications are wanted now, or no longer");
                    self.open = None;
                }
            }
        }
    }

    /// Makes a call over the existing connection, and over another one if that does not help. No
    /// more than two are ever used at a time: a locked table must not accumulate connections that
    /// wait for it.
    pub(super) async fn ask<T>(&mut self, call: Call<'_, T>) -> Result<T, CallError> {
        let since = self
            .open
            .as_ref()
            .map_or_else(Instant::now, |open| open.since);
        // Boxed: it holds all that making a connection takes.
        let asking = Box::pin(ask(self.core, self.open.take(), call));
        let answered = timeout(LIMIT, asking).await;
        match answered.unwrap_or_else(|_elapsed| Err(no_answer().into())) {
            Ok((open, answer)) => {
                self.keep(open);
                answer
            }
            Err(error) => {
                self.lost(since, &error);
                Err(error)
            }
        }
    }

    fn keep(&mut self, mut open: Open) {
        if std::mem::take(&mut open.is_new) {
            if self.outage.is_known() {
                info!("the connection for heartbeats and notifications is there again");
            }
            // Only now: what is notified from here on is heard.
            self.core.announce_all();
        }
        self.open = Some(open);
    }

    fn lost(&mut self, since: Instant, error: &(dyn std::error::Error + 'static)) {
        self.open = None;
        self.retry_at = Instant::now() + self.outage.note(since, error);
    }
}

async fn connect(core: &Core) -> Result<Open, CallError> {
    let channel = core.listens.borrow().then_some(CHANNEL);
    let since = Instant::now();
    let listening = Listening::open_with(&core.pool, core.connect_options(), channel).await?;
    Ok(Open {
        listening,
        since,
        is_new: true,
    })
}

async fn ask<T>(
    core: &Core,
    open: Option<Open>,
    call: Call<'_, T>,
) -> Result<Answered<T>, CallError> {
    let by_another = async { answer(connect(core).await?, call).await };
    let Some(open) = open else {
        return by_another.await;
    };
    let by_this = answer(open, call);
    tokio::pin!(by_this);
    match timeout(PATIENCE, &mut by_this).await {
        Ok(Ok(answered)) => return Ok(answered),
        Ok(Err(error)) => {
            debug!(
                error = &error as &dyn std::error::Error,
                "the connection is of no use any more, the call is made on another one"
            );
            return by_another.await;
        }
        Err(_elapsed) => {}
    }
    tokio::pin!(by_another);
    select! {
        answered = &mut by_this => match answered {
            Ok(answered) => Ok(answered),
            Err(_lost) => by_another.await,
        },
        answered = &mut by_another => match answered {
            Ok(answered) => Ok(answered),
            Err(_refused) => by_this.await,
        },
    }
}

/// An answer with the connection, or the error of one that has to be closed.
async fn answer<T>(mut open: Open, call: Call<'_, T>) -> Result<Answered<T>, CallError> {
    match call(&mut open.listening.listener).await {
        Err(error) if error.spoils_connection() => Err(error),
        answer => Ok((open, answer)),
    }
}
