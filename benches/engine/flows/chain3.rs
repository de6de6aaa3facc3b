//! Three steps, one after the other.

super::in_both_modes!(
    Chain3,
    "bench_chain3",
    "bench_chain3_steps",
    input = Data,
    {
        #[step]
        async fn first(state: &Work) -> StepResult<Data> {
            state.task().await
        }

        #[step(depends_on = [first])]
        async fn second(first: Data, state: &Work) -> StepResult<Data> {
            drop(first);
            state.task().await
        }

        #[step(depends_on = [second])]
        async fn third(second: Data, state: &Work) -> StepResult<Data> {
            drop(second);
            state.task().await
        }
    }
);
