//! Worker functions: who serves the flows, and how operators take them out of service and back.

mod drain;
mod fence;
mod list;
mod state;
mod switch;
mod target;
mod unfence;
mod wait;

use clap::Subcommand;

use crate::{
    arguments::{Connection, Output},
    exit::Exit,
    failure::Failure,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Workers {
    /// List worker functions, with their workers.
    ///
    /// A function is deployed and started under one name: a flow's slug, or a queue's name for the
    /// worker of one step, unless the worker was given another. Workers are its running processes.
    /// running: takes tasks; draining: asked to stop, finishes its tasks; lost: without a heartbeat
    /// for 6 seconds.
    List(list::List),
    /// Take functions out of service for a deployment: nothing starts them, and their workers are
    /// asked to stop.
    ///
    /// Records whether each was enabled, for `pgflow workers unfence`. The whole set is fenced at
    /// once, or none of it.
    Fence(fence::Fence),
    /// Tell the workers of functions to stop, and wait until they have.
    ///
    /// Done when each worker of these functions has stopped or sent no heartbeat for 6 seconds, and
    /// none of their tasks is started. While it waits, it returns the tasks of dead workers to
    /// their queues, which otherwise running workers do. Exits with 7 on a timeout; that undoes
    /// nothing.
    Drain(drain::Drain),
    /// End the fence of functions: each becomes again what it was, enabled or disabled.
    ///
    /// With --wait, also waits until each has a running worker again, and every step of their flows
    /// is served. Exits with 7 when the time is over; that undoes nothing.
    Unfence(unfence::Unfence),
    /// Let the workers of functions start again. Of a fenced function, end the fence: it becomes
    /// again what it was.
    Enable(switch::Enable),
    /// Let no worker of functions start any more. Those that run continue.
    Disable(switch::Disable),
}

impl Workers {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(connection, output).await,
            Self::Fence(fence) => fence.run(connection, output).await,
            Self::Drain(drain) => drain.run(connection, output).await,
            Self::Unfence(unfence) => unfence.run(connection, output).await,
            Self::Enable(enable) => enable.run(connection, output).await,
            Self::Disable(disable) => disable.run(connection, output).await,
        }
    }
}
