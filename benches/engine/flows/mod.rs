//! The measured flows, each with one queue and with a queue for each step.

mod work;

pub(crate) mod chain3;
pub(crate) mod diamond;
pub(crate) mod fan50;
pub(crate) mod idle30;
pub(crate) mod layered;
pub(crate) mod map;
pub(crate) mod one;
pub(crate) mod ten;

use pgflow::{Flow, WorkersHandle, definition::StepKind, sqlx::PgPool, startup::StartupError};

pub(crate) use work::{Data, List, RunInput, Work};

/// The prefix of the slugs of all flows of the benchmark.
pub(crate) const PREFIX: &str = "bench_";

/// A flow whose steps do nothing but return the [`Data`] of their worker.
pub(crate) trait Measured: Flow<Input: RunInput, State = Work> {
    /// Starts the workers that a process needs to run the flow.
    fn start_workers(
        pool: &PgPool,
        concurrency: usize,
        work: Work,
    ) -> impl Future<Output = Result<WorkersHandle, StartupError>> + Send;

    /// Returns the number of tasks of a run whose input has this number of elements.
    fn tasks(elements: usize) -> usize {
        let steps = Self::DEFINITION.steps.iter();
        let tasks = steps.map(|step| match step.kind {
            StepKind::Single => 1,
            StepKind::Map => elements,
        });
        tasks.sum()
    }
}

/// Defines a flow twice, in a module for each queue mode; the names are those of
/// [`Mode`](crate::variant::Mode).
macro_rules! in_both_modes {
    ($name:ident, $slug:literal, $slug_with_step_queues:literal, input = $input:ident, { $($steps:tt)* }) => {
        pub(crate) mod flow {
            use pgflow::{WorkersHandle, prelude::*, sqlx::PgPool, startup::StartupError};

            #[allow(unused_imports, reason = "not every flow takes an input or a list")]
            use crate::flows::{Data, List, Measured, Work};

            #[derive(Debug)]
            pub(crate) struct $name;

            #[flow(input = $input, state = Work, slug = $slug)]
            impl $name {
                $($steps)*
            }

            impl Measured for $name {
                async fn start_workers(pool: &PgPool, concurrency: usize, work: Work) -> Result<WorkersHandle, StartupError> {
                    let worker = FlowWorker::<Self>::with_state(work).concurrency(concurrency);
                    Workers::new(pool).add(worker).start().await
                }
            }
        }

        pub(crate) mod step {
            use pgflow::{WorkersHandle, prelude::*, sqlx::PgPool, startup::StartupError};

            #[allow(unused_imports, reason = "not every flow takes an input or a list")]
            use crate::flows::{Data, List, Measured, Work};

            #[derive(Debug)]
            pub(crate) struct $name;

            #[flow(input = $input, state = Work, slug = $slug_with_step_queues, with_step_queues)]
            impl $name {
                $($steps)*
            }

            impl Measured for $name {
                async fn start_workers(pool: &PgPool, concurrency: usize, work: Work) -> Result<WorkersHandle, StartupError> {
                    StepWorker::<Self>::all_with_state(work).concurrency(concurrency).start(pool).await
                }
            }
        }
    };
}

/// A flow of steps without dependencies.
macro_rules! parallel_steps {
    ($name:ident, $slug:literal, $slug_with_step_queues:literal, $($step:ident)*) => {
        crate::flows::in_both_modes!($name, $slug, $slug_with_step_queues, input = Data, {
            $(
                #[step]
                async fn $step(state: &Work) -> StepResult<Data> {
                    state.task().await
                }
            )*
        });
    };
}

use in_both_modes;
use parallel_steps;
