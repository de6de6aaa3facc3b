//! The flow of the fixtures, as today's code says it.

use pgflow::prelude::*;

/// One flow, deployed in several ways: what stands after the name is what `#[flow]` takes.
macro_rules! order_totals {
    ($name:ident, $($option:tt)*) => {
        #[derive(Debug)]
        pub(crate) struct $name;

        #[flow(input = Vec<u64>, $($option)*)]
        impl $name {
            #[step]
            async fn parse(input: &[u64]) -> StepResult<Vec<u64>> {
                Ok(input.to_vec())
            }

            #[step(map = parse)]
            async fn double(item: u64) -> StepResult<u64> {
                Ok(item * 2)
            }

            #[step(depends_on = [double])]
            async fn total(double: &[u64]) -> StepResult<u64> {
                Ok(double.iter().sum())
            }
        }
    };
}

pub(super) mod plain {
    use super::*;
    order_totals!(OrderTotals, slug = "order_totals");
}

pub(super) mod with_capitals {
    use super::*;
    order_totals!(OrderTotals, slug = "OrderTotals");
}

pub(super) mod step_queued {
    use super::*;
    order_totals!(OrderTotals, slug = "OrderTotals", with_step_queues);
}
