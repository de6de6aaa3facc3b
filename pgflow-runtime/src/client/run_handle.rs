//! One run, seen from outside.

use std::{fmt, marker::PhantomData};

use sqlx::PgPool;
use uuid::Uuid;

use super::{ClientError, Follow, RunSnapshot, Wait};
use crate::{
    flow::Flow,
    sql::{limit::on_pool, run::get_run_with_states},
};

/// A run of flow `F`. Cheap to clone; dropping it does nothing to the run.
pub struct RunHandle<F> {
    pool: PgPool,
    run_id: Uuid,
    listen: bool,
    flow: PhantomData<fn() -> F>,
}

impl<F: Flow> RunHandle<F> {
    pub(super) fn new(pool: PgPool, run_id: Uuid, listen: bool) -> Self {
        Self {
            pool,
            run_id,
            listen,
            flow: PhantomData,
        }
    }

    /// Waits until the run has ended, however long that takes, and returns its output. Await it, or
    /// set a [`timeout`](Wait::timeout) first.
    ///
    /// The database notifies of each end, which is then seen at once. Any number of waits share one
    /// connection for that, in addition to those of the pool;
    /// [`Client::listen`](super::Client::listen) does without. The runs of all waits are also
    /// looked at from time to time, in one statement: so nothing depends on notifications, see
    /// [`poll_interval`](Wait::poll_interval).
    pub fn wait(&self) -> Wait<F> {
        Wait::new(self.clone())
    }

    /// Follows the run: a stream of what happened and happens to it and to its steps, from its
    /// start to its end. Await it, or set a [`poll_interval`](Follow::poll_interval) first.
    ///
    /// ```no_run
    /// # async fn example<F>(run: pgflow_runtime::client::RunHandle<F>) -> Result<(), Box<dyn std::error::Error>>
    /// # where F: pgflow_runtime::flow::Flow {
    /// # use pgflow_runtime as pgflow;
    /// use pgflow::{client::RunEvent, flow::StepId};
    ///
    /// let mut events = run.events().await?;
    /// while let Some(event) = events.next().await {
    ///     match event? {
    ///         RunEvent::StepStarted { step, tasks, .. } => println!("{}: {tasks} tasks", step.slug()),
    ///         RunEvent::StepProgressed { step, tasks, .. } => {
    ///             println!("{}: {} of {}", step.slug(), tasks.completed, tasks.total);
    ///         }
    ///         RunEvent::RunFailed { message, .. } => println!("failed: {message}"),
    ///         RunEvent::RunCompleted { .. } => println!("completed"),
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Whenever it is called, the stream begins with [`RunStarted`](super::RunEvent::RunStarted)
    /// and contains all past events; the stream of an ended run yields everything at once. It
    /// guarantees:
    ///
    /// - The last event is the end of the run, which is never missed. It ends the stream.
    /// - No event is repeated, and nothing goes backwards, even if the pool leads to servers of
    ///   which some lag behind.
    /// - No transition is omitted because the stream did not poll in between: a step that completed
    ///   has started first.
    /// - Every cause comes before its effect: dependencies end before their dependents start, and a
    ///   step fails before its run does.
    ///
    /// Events are read from the states of run and steps, never from notifications, which only
    /// trigger a poll: with the event level `runs`, the default, when the run has ended, with `all`
    /// at each of its events. They arrive over the connection that [`wait`](Self::wait) listens on.
    /// In addition, the runs of all streams are polled regularly, in one statement, see
    /// [`poll_interval`](Follow::poll_interval).
    ///
    /// # Errors
    ///
    /// The first poll shows whether the run can be followed: [`ClientError::NotFound`],
    /// [`ClientError::OtherFlow`], and [`ClientError::UnknownStep`] when the database has another
    /// definition of the flow. During a database outage the stream retries for 30 s, then the error
    /// is [`ClientError::Database`]. For errors of the stream see
    /// [`RunEvents::next`](super::RunEvents::next).
    pub fn events(&self) -> Follow<F> {
        Follow::new(self.clone())
    }

    /// Reads the states of the run and of its steps, as they are now.
    pub async fn snapshot(&self) -> Result<RunSnapshot<F>, ClientError> {
        let json = on_pool!(&self.pool, connection => get_run_with_states(connection, self.run_id));
        let json = json?;
        let json = json.ok_or(ClientError::NotFound {
            run_id: self.run_id,
        })?;
        RunSnapshot::read(self.run_id, &json)
    }
}

impl<F> RunHandle<F> {
    /// The run's id: store it to find the run again with [`Client::run`](super::Client::run).
    pub fn run_id(&self) -> Uuid {
        self.run_id
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(super) fn listens(&self) -> bool {
        self.listen
    }
}

impl<F> Clone for RunHandle<F> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            run_id: self.run_id,
            listen: self.listen,
            flow: PhantomData,
        }
    }
}

impl<F> fmt::Debug for RunHandle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle")
            .field("run_id", &self.run_id)
            .finish_non_exhaustive()
    }
}
