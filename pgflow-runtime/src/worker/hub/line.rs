//! The hub's own connection: it hears notifications, and carries heartbeats also while handlers use up the pool.

use std::future::Future;

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tracing::{debug, info};
use uuid::Uuid;

use super::Hub;
use crate::{
    listening::{Listening, Outage, within_limit},
    sql::{
        CallError,
        complete::AttemptKey,
        heartbeat::{Heartbeat, lost_attempts, worker_heartbeats},
    },
};

/// Where the database says which queue got work.
const CHANNEL: &str = "pgflow_work";

/// Where to ask for calls over the connection. They wait for it while it is made, or made anew.
#[derive(Debug)]
pub(super) struct Line {
    requests: mpsc::Sender<Request>,
}

/// The connection was lost before it answered.
#[derive(Debug)]
pub(super) struct Lost;

type Reply<T> = oneshot::Sender<Result<T, CallError>>;

#[derive(Debug)]
pub(super) enum Request {
    Heartbeats(Vec<Uuid>, Reply<Vec<Heartbeat>>),
    LostAttempts(Vec<AttemptKey>, Reply<Vec<usize>>),
}

pub(super) fn new() -> (Line, mpsc::Receiver<Request>) {
    // One call at a time, and some that nobody waits for any more.
    let (sender, receiver) = mpsc::channel(4);
    (Line { requests: sender }, receiver)
}

impl Line {
    pub(super) async fn heartbeats(
        &self,
        worker_ids: Vec<Uuid>,
    ) -> Result<Result<Vec<Heartbeat>, CallError>, Lost> {
        self.ask(|reply| Request::Heartbeats(worker_ids, reply))
            .await
    }

    pub(super) async fn lost_attempts(
        &self,
        attempts: Vec<AttemptKey>,
    ) -> Result<Result<Vec<usize>, CallError>, Lost> {
        self.ask(|reply| Request::LostAttempts(attempts, reply))
            .await
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<Result<T, CallError>, Lost> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| Lost)?;
        answer.await.map_err(|_| Lost)
    }
}

/// Keeps the connection up, as long as a member wants it, until it is dropped.
pub(super) async fn run(hub: &Hub, mut requests: mpsc::Receiver<Request>, is_first: bool) {
    let mut wanted = hub.listens.subscribe();
    let mut outage = Outage::new(
        "the connection for notifications was lost or can't be made; workers poll until it is there",
        "still no connection for notifications",
    );
    if !is_first {
        // Workers that stop together lead one after the other, for a moment each.
        outage.pause().await;
    }
    // The hub keeps the sender.
    while wanted.wait_for(|&wanted| wanted).await.is_ok() {
        let since = Instant::now();
        let ended = match Listening::open(&hub.pool, CHANNEL).await {
            Ok(mut connection) => {
                if outage.is_known() {
                    info!("the connection for notifications is there again");
                }
                // Only now: what is notified from here on is heard.
                hub.announce_all();
                connection.serve(hub, &mut requests, &mut wanted).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            outage.after(since, &error).await;
        }
    }
}

impl Listening {
    /// Hears notifications and makes calls. Ends well when nobody wants that any more.
    async fn serve(
        &mut self,
        hub: &Hub,
        requests: &mut mpsc::Receiver<Request>,
        wanted: &mut watch::Receiver<bool>,
    ) -> Result<(), sqlx::Error> {
        loop {
            tokio::select! {
                // Notifications that arrive during a call are kept for the next `hear`.
                notification = self.hear() => hub.announce(notification?.payload()),
                Some(request) = requests.recv() => self.answer(request).await?,
                () = until_unwanted(wanted) => {
                    debug!("no worker of this process wants notifications any more");
                    return Ok(());
                }
            }
        }
    }

    async fn answer(&mut self, request: Request) -> Result<(), sqlx::Error> {
        let listener = &mut self.listener;
        match request {
            Request::Heartbeats(ids, reply) => {
                reply_with(reply, worker_heartbeats(listener, &ids)).await
            }
            Request::LostAttempts(keys, reply) => {
                reply_with(reply, lost_attempts(listener, &keys)).await
            }
        }
    }
}

/// Makes a call unless nobody waits for it any more. An error that is not the database's answer, or none in time, ends the connection.
async fn reply_with<T>(
    reply: Reply<T>,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<(), sqlx::Error> {
    if reply.is_closed() {
        return Ok(());
    }
    let answer = match within_limit(call).await? {
        Err(CallError::Database(error)) if error.as_database_error().is_none() => {
            return Err(error);
        }
        answer => answer,
    };
    // Whoever asked may have stopped waiting meanwhile.
    let _ = reply.send(answer);
    Ok(())
}

async fn until_unwanted(wanted: &mut watch::Receiver<bool>) {
    // The hub keeps the sender, so this is the only way to end.
    let _ = wanted.wait_for(|&wanted| !wanted).await;
}
