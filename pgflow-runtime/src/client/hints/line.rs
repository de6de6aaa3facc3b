//! The connection that receives the events of runs.

use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::Hints;
use crate::listening::{Listening, Outage};

/// The channel of the database's events.
const CHANNEL: &str = "pgflow";

#[derive(Deserialize)]
struct Payload<'a> {
    run_id: &'a str,
    event_type: &'a str,
}

/// An event of a run, reduced to the data that waiters need: they read the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) run_id: Uuid,
    /// The run has ended.
    pub(super) is_end: bool,
}

/// Keeps the connection open while a waiter needs it, until it is dropped.
pub(super) async fn run(hints: &Hints) {
    let mut outage = Outage::new(
        "the connection for the events of runs was lost or can't be made; whoever waits for them looks more often until it is there",
        "still no connection for the events of runs",
    );
    let mut wanted = hints.wanted.subscribe();
    // These keep the sender.
    while wanted.wait_for(|wanted| wanted.is_listened).await.is_ok() {
        let since = Instant::now();
        let ended = tokio::select! {
            error = serve(hints) => Some(error),
            () = hints.until_unwanted(|wanted| wanted.is_listened) => None,
        };
        hints.line_changed();
        if let Some(error) = ended {
            outage.after(since, &error).await;
        }
    }
}

/// Hears of events until the connection is lost.
async fn serve(hints: &Hints) -> sqlx::Error {
    let mut listening = match Listening::open(&hints.pool, CHANNEL).await {
        Ok(listening) => listening,
        Err(error) => return error,
    };
    // Only now: what is notified from here on is heard.
    hints.line_changed();
    loop {
        match listening.hear().await {
            Ok(notification) => {
                if let Some(event) = event(notification.payload()) {
                    hints.announce(event);
                }
            }
            Err(error) => return error,
        }
    }
}

/// The event of a notification; `None` for notifications of others on the channel.
pub(super) fn event(payload: &str) -> Option<Event> {
    let payload: Payload<'_> = serde_json::from_str(payload).ok()?;
    Some(Event {
        run_id: payload.run_id.parse().ok()?,
        is_end: matches!(payload.event_type, "run:completed" | "run:failed"),
    })
}
