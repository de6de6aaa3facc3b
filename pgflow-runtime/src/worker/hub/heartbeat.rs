//! Heartbeats, and what their answers ask for.

use std::{error::Error, sync::Arc};

use tokio::time::{Duration, Instant, sleep, timeout, timeout_at};
use tracing::warn;
use uuid::Uuid;

use super::{Core, HEARTBEAT, Member, line::Line, looks};
use crate::{
    sql::{
        CallError,
        complete::AttemptKey,
        heartbeat::{
            Heartbeat, MOST_ATTEMPTS, lost_attempts, report_overdue_attempts, worker_heartbeats,
        },
        maintenance::recovery_is_due,
        retry::Backoff,
    },
    worker::{WorkerError, clock},
};

/// The longest time to look for lost attempts: the next heartbeat must not wait for it.
const LOOK: Duration = Duration::from_secs(3);

/// Sends heartbeats, and receives notifications between them, until it is dropped.
pub(super) async fn run(core: &Core) {
    let mut line = Line::new(core);
    let mut backoff = Backoff::database();
    // Registration was the first heartbeat.
    let mut due = Instant::now() + HEARTBEAT;
    let mut look_due = Instant::now();
    loop {
        let Err(_due) = timeout_at(due.min(look_due), line.attend()).await;
        // A heartbeat that is due comes first: after a time without any it names what was lost.
        if due > Instant::now() {
            look_due = looks::round(core, &mut line).await;
            continue;
        }
        let started = Instant::now();
        match send(core, &mut line).await {
            Ok(()) => {
                backoff.reset();
                due = started + HEARTBEAT;
                // What is not found out in time is with the next heartbeat.
                let _ = timeout(LOOK, cancel_lost(core, &mut line)).await;
                let _ = timeout(LOOK, report_overdue(core, &mut line)).await;
                let _ = timeout(LOOK, look_for_recovery(core, &mut line)).await;
            }
            Err(error) => {
                let delay = backoff.next_delay();
                warn!(
                    ?delay,
                    error = &error as &dyn Error,
                    "a heartbeat failed, the next one follows"
                );
                sleep(delay).await;
                due = Instant::now();
            }
        }
    }
}

async fn send(core: &Core, line: &mut Line<'_>) -> Result<(), CallError> {
    // The hub's own connection would hide it.
    if core.pool.is_closed() {
        let closed = || CallError::Database(sqlx::Error::PoolClosed);
        core.fail(|| WorkerError::PoolClosed(closed()));
        return Err(closed());
    }
    let mut members = core.members();
    members.sort_unstable_by_key(|member| member.shared.worker_id);
    let ids: Arc<[Uuid]> = members
        .iter()
        .map(|member| member.shared.worker_id)
        .collect();
    let sent = clock::now();
    let answers = line
        .ask(&|connection| {
            let ids = Arc::clone(&ids);
            Box::pin(async move { worker_heartbeats(connection, &ids).await })
        })
        .await?;
    apply(&members, &answers, sent);
    Ok(())
}

/// Each of the members that were asked for gets the answer that concerns it. One that has left in
/// the meantime has stopped, and misses nothing.
pub(super) fn apply(members: &[Arc<Member>], answers: &[Heartbeat], sent: u64) {
    for member in members {
        let id = member.shared.worker_id;
        let answer = answers.iter().find(|answer| answer.worker_id == id);
        member.apply(answer, sent);
    }
}

/// Cancels attempts whose results are no longer needed.
async fn cancel_lost(core: &Core, line: &mut Line<'_>) {
    let members = core.members();
    let running: Vec<_> = members
        .iter()
        .flat_map(|member| {
            let keys = member.shared.attempts.keys();
            keys.into_iter().map(move |key| (member, key))
        })
        .collect();
    for some in running.chunks(MOST_ATTEMPTS) {
        let keys: Arc<[AttemptKey]> = some.iter().map(|(_, key)| key.clone()).collect();
        let lost = line
            .ask(&|connection| {
                let keys = Arc::clone(&keys);
                Box::pin(async move { lost_attempts(connection, &keys).await })
            })
            .await;
        match lost {
            Ok(lost) => {
                for (member, key) in lost.into_iter().filter_map(|position| some.get(position)) {
                    member.cancel_lost(key);
                }
            }
            Err(error) => {
                warn!(
                    error = &error as &dyn Error,
                    "could not check which attempts are still current, the next try follows"
                );
                return;
            }
        }
    }
}

/// Reports attempts that continue after their time is over, as those do that block their threads:
/// their tasks must not start anywhere else meanwhile.
async fn report_overdue(core: &Core, line: &mut Line<'_>) {
    for member in core.members() {
        let worker_id = member.shared.worker_id;
        let overdue = member.shared.attempts.overdue(Instant::now());
        for some in overdue.chunks(MOST_ATTEMPTS) {
            let keys: Arc<[AttemptKey]> = some.into();
            let reported = line
                .ask(&|connection| {
                    let keys = Arc::clone(&keys);
                    Box::pin(
                        async move { report_overdue_attempts(connection, worker_id, &keys).await },
                    )
                })
                .await;
            if let Err(error) = reported {
                warn!(
                    %worker_id,
                    attempts = some.len(),
                    error = &error as &dyn Error,
                    "could not report attempts that go on after their timeout, the next try follows"
                );
                return;
            }
        }
    }
}

/// Starts recovery where there may be something to recover: it takes a connection of its own, which
/// idle workers do without.
async fn look_for_recovery(core: &Core, line: &mut Line<'_>) {
    let due = line
        .ask(&|connection| Box::pin(async move { recovery_is_due(connection).await }))
        .await;
    match due {
        Ok(true) => core.recovery.notify_one(),
        Ok(false) => {}
        Err(error) => warn!(
            error = &error as &dyn Error,
            "could not check whether tasks are to be recovered, the next try follows"
        ),
    }
}
