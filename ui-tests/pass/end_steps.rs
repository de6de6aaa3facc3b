//! Steps that run when the run has ended, with all that they can take.
#![deny(warnings)]

use pgflow::{definition::RunsOn, prelude::*};

pub struct Orders;

#[flow(input = Vec<u32>, state = String)]
impl Orders {
    /// Its place says nothing.
    #[step(on = failure, max_attempts = 5, base_delay = "1s", max_delay = "1m", give_up_after = "1h", timeout = "10s", start_delay = "2s")]
    async fn alarm(
        end: &RunEnd,
        input: &[u32],
        state: &String,
        ctx: &StepContext,
    ) -> StepResult<String> {
        let step = end.failed_step.clone().unwrap_or_default();
        Ok(format!("{state} {step} {} {}", input.len(), ctx.attempt()))
    }

    #[step(map = input)]
    async fn double(item: u32) -> StepResult<u32> {
        Ok(item * 2)
    }

    /// The name of a value binds no step of that name.
    #[step(depends_on = [double])]
    async fn end(double: &[u32]) -> StepResult<u32> {
        Ok(double.iter().sum())
    }

    #[step(depends_on = [end])]
    async fn last(end: u32) -> StepResult<u32> {
        Ok(end)
    }

    #[step(slug = "tidy_v2", on = end)]
    async fn tidy(#[from(end)] RunEnd { status, .. }: RunEnd) -> anyhow::Result<bool> {
        Ok(status == RunStatus::Completed)
    }
}

pub mod without_parameters {
    use pgflow::prelude::*;

    pub struct Quiet;

    #[flow(input = (), with_step_queues)]
    impl Quiet {
        #[step]
        async fn work() -> StepResult<()> {
            Ok(())
        }

        #[step(on = end)]
        async fn tidy() -> StepResult<()> {
            Ok(())
        }
    }
}

#[test]
fn they_are_in_the_definition_and_in_no_output() {
    let steps = Orders::DEFINITION.steps;
    let on: Vec<_> = steps.iter().map(|step| (step.slug, step.runs_on)).collect();
    assert_eq!(
        on,
        [
            ("alarm", Some(RunsOn::Failure)),
            ("double", None),
            ("end", None),
            ("last", None),
            ("tidy_v2", Some(RunsOn::End)),
        ]
    );
    assert!(Orders::DEFINITION.problems().is_empty());
    // What ends after the run is no part of its output.
    let OrdersOutput { last } = OrdersOutput { last: 1 };
    assert_eq!(last, 1);
    let failed = RunEnd::failed(Step::Last, "no").with_output(Step::Double, &[2, 4]);
    assert_eq!(
        failed.output::<Vec<u32>>(Step::Double).unwrap(),
        Some(vec![2, 4])
    );
    assert_eq!(failed.output::<u32>(Step::End).unwrap(), None);
    assert_eq!(failed.status, RunStatus::Failed);
    let _ = (Orders::alarm, Orders::tidy, Step::Alarm, Step::Tidy);
}
