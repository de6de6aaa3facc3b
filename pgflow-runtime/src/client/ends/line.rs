//! The connection that hears which runs have ended.

use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::Ends;
use crate::listening::{Listening, Outage};

/// Where the database tells events.
const CHANNEL: &str = "pgflow";

#[derive(Deserialize)]
struct Event<'a> {
    run_id: &'a str,
    event_type: &'a str,
}

/// Keeps the connection up until it is dropped.
pub(super) async fn run(ends: &Ends) {
    let mut outage = Outage::new(
        "the connection for the ends of runs was lost or can't be made; whoever waits polls until it is there",
        "still no connection for the ends of runs",
    );
    loop {
        let since = Instant::now();
        let error = serve(ends).await;
        outage.after(since, &error).await;
    }
}

/// Hears of ends until the connection is lost.
async fn serve(ends: &Ends) -> sqlx::Error {
    let mut listening = match Listening::open(&ends.pool, CHANNEL).await {
        Ok(listening) => listening,
        Err(error) => return error,
    };
    // Only now: what is notified from here on is heard.
    ends.announce_all();
    loop {
        match listening.hear().await {
            Ok(notification) => {
                if let Some(run_id) = ended(notification.payload()) {
                    ends.announce(run_id);
                }
            }
            Err(error) => return error,
        }
    }
}

/// The run whose end an event tells; None for other events, and for what others notify on the channel.
pub(super) fn ended(payload: &str) -> Option<Uuid> {
    let event: Event<'_> = serde_json::from_str(payload).ok()?;
    let is_end = matches!(event.event_type, "run:completed" | "run:failed");
    is_end.then(|| event.run_id.parse().ok()).flatten()
}
