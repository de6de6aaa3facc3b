//! The actions of operators on worker functions, and the notifications of workers.

use serde_json::Value;
use sqlx::postgres::{PgExecutor, PgListener, PgPool};
use uuid::Uuid;

/// Tracks a function of start mode `process`.
pub(crate) async fn track(pool: &PgPool, function: &str) {
    sqlx::query("select pgflow.track_worker_function($1)")
        .bind(function)
        .execute(pool)
        .await
        .expect("the function can be tracked");
}

/// As a worker of this function registers for a plain flow, once the function is tracked.
pub(crate) async fn try_register(
    db: impl PgExecutor<'_>,
    function: &str,
    flow: &str,
) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query("select pgflow.register_worker($1, $2, $3, null, lower($3), '{}')")
        .bind(id)
        .bind(function)
        .bind(flow)
        .execute(db)
        .await
        .map(|_| id)
}

/// A new worker of this function, which serves a plain flow.
pub(crate) async fn worker_of(pool: &PgPool, function: &str, flow: &str) -> Uuid {
    track(pool, function).await;
    let registered = try_register(pool, function, flow).await;
    registered.expect("the worker can be registered")
}

/// Fences functions; returns their names as the call returned them.
pub(crate) async fn fence(
    db: impl PgExecutor<'_>,
    functions: &[&str],
    reason: Option<&str>,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar("select function_name from pgflow.fence_worker_functions($1, $2)")
        .bind(functions)
        .bind(reason)
        .fetch_all(db)
        .await
}

/// Ends the fence of functions; returns their names as the call returned them.
pub(crate) async fn unfence(
    db: impl PgExecutor<'_>,
    functions: &[&str],
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar("select function_name from pgflow.unfence_worker_functions($1)")
        .bind(functions)
        .fetch_all(db)
        .await
}

/// Disables a function.
pub(crate) async fn disable(db: impl PgExecutor<'_>, function: &str, reason: Option<&str>) {
    sqlx::query("select pgflow.disable_worker_function($1, $2)")
        .bind(function)
        .bind(reason)
        .execute(db)
        .await
        .expect("the function can be disabled");
}

/// Returns the row of a function, except the times when it was tracked, changed and invoked.
pub(crate) async fn function(pool: &PgPool, name: &str) -> Value {
    sqlx::query_scalar(
        "select to_jsonb(w) - array['function_name', 'created_at', 'updated_at', 'debounce', 'last_invoked_at']
         from pgflow.worker_functions w where w.function_name = $1",
    )
    .bind(name)
    .fetch_one(pool)
    .await
    .expect("the function is known")
}

/// Returns the state of a function in words: `enabled`, `disabled: why`, and behind a fence its
/// later state: `fenced: deploy (then enabled)`.
pub(crate) async fn standing(pool: &PgPool, name: &str) -> String {
    sqlx::query_scalar(
        "select case
             when w.enabled then 'enabled'
             when w.fenced_at is null then 'disabled: ' || coalesce(w.disabled_reason, '-')
             else format('%s (then %s)', w.disabled_reason,
                 case when w.recorded_enabled then 'enabled' else 'disabled: ' || coalesce(w.recorded_disabled_reason, '-') end)
         end
         from pgflow.worker_functions w where w.function_name = $1",
    )
    .bind(name)
    .fetch_one(pool)
    .await
    .expect("the function is known")
}

/// Returns the reason of the stop request for each of these workers; `None` without one.
pub(crate) async fn told_to_stop(pool: &PgPool, workers: &[Uuid]) -> Vec<Option<String>> {
    sqlx::query_scalar(
        "select case when w.deprecated_at is not null then coalesce(w.deprecated_reason, '-') end
         from unnest($1) with ordinality i (worker_id, n) join pgflow.workers w using (worker_id) order by i.n",
    )
    .bind(workers)
    .fetch_all(pool)
    .await
    .expect("workers can be read")
}

/// Beats for workers; returns a row for each that lives, by id: its id, whether it is to stop, and
/// why.
pub(crate) async fn heartbeats(
    db: impl PgExecutor<'_>,
    workers: &[Uuid],
) -> sqlx::Result<Vec<(Uuid, bool, Option<String>)>> {
    sqlx::query_as("select * from pgflow.worker_heartbeats($1) order by worker_id")
        .bind(workers)
        .fetch_all(db)
        .await
}

/// A session that listens for work.
#[derive(Debug)]
pub(crate) struct Hints(PgListener);

impl Hints {
    pub(crate) async fn listen(pool: &PgPool) -> Self {
        let mut listener = PgListener::connect_with(pool)
            .await
            .expect("a listening session");
        listener
            .listen("pgflow_work")
            .await
            .expect("LISTEN is allowed");
        Self(listener)
    }

    /// The queues that were named since the last call, in the order in which they came.
    pub(crate) async fn queues(&mut self, pool: &PgPool) -> Vec<String> {
        // Notifications arrive in the order of their commits: what comes before this one is all
        // there is.
        sqlx::query("select pg_notify('pgflow_work', 'the end')")
            .execute(pool)
            .await
            .expect("NOTIFY is allowed");
        let mut queues = Vec::new();
        loop {
            let notification = self.0.recv().await.expect("the session lives");
            if notification.payload() == "the end" {
                return queues;
            }
            queues.push(notification.payload().to_owned());
        }
    }

    /// As [`queues`](Self::queues); afterwards no queue has been notified for long.
    pub(crate) async fn since_last(&mut self, pool: &PgPool) -> Vec<String> {
        let queues = self.queues(pool).await;
        let changed = sqlx::query("update pgflow.wakeups set notified_at = '-infinity'")
            .execute(pool)
            .await;
        changed.expect("time can pass");
        queues
    }
}
