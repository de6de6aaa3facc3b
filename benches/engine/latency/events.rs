//! The notifications of runs that ended.

use std::time::Duration;

use pgflow::sqlx::{PgPool, postgres::PgListener, types::Uuid};
use serde::Deserialize;
use tokio::time::timeout;

use crate::Result;

const CHANNEL: &str = "pgflow";
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Deserialize)]
struct Event {
    event_type: String,
    run_id: Uuid,
}

pub(super) struct Listener(PgListener);

impl Listener {
    pub(super) async fn new(pool: &PgPool) -> Result<Self> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }

    /// Waits until the run is said to have completed.
    pub(super) async fn completed(&mut self, run_id: Uuid) -> Result<()> {
        loop {
            let notification = timeout(PATIENCE, self.0.recv())
                .await
                .map_err(|_| format!("nothing was heard of run {run_id} for {PATIENCE:?}"))??;
            let event: Event = serde_json::from_str(notification.payload())?;
            if event.run_id != run_id {
                continue;
            }
            match event.event_type.as_str() {
                "run:completed" => return Ok(()),
                "run:failed" => return Err(format!("run {run_id} failed").into()),
                _ => {}
            }
        }
    }
}
