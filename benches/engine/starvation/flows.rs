//! The same flow in both queue modes.

pub(crate) use private::Private;
pub(crate) use shared::Shared;

mod shared {
    use std::time::Duration;

    use pgflow::prelude::*;

    /// Both steps share a queue.
    #[derive(Debug)]
    pub(crate) struct Shared;

    #[flow(input = Duration, state = Duration, slug = "bench_shared")]
    impl Shared {
        #[step]
        async fn slow(state: &Duration) -> StepResult<()> {
            tokio::time::sleep(*state).await;
            Ok(())
        }

        #[step]
        async fn fast() -> StepResult<()> {
            Ok(())
        }
    }
}

mod private {
    use std::time::Duration;

    use pgflow::prelude::*;

    /// Each step has its own.
    #[derive(Debug)]
    pub(crate) struct Private;

    #[flow(input = Duration, state = Duration, slug = "bench_private", with_step_queues)]
    impl Private {
        #[step]
        async fn slow(state: &Duration) -> StepResult<()> {
            tokio::time::sleep(*state).await;
            Ok(())
        }

        #[step]
        async fn fast() -> StepResult<()> {
            Ok(())
        }
    }
}
