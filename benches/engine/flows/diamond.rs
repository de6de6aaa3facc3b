//! Two steps side by side, between a first and a last one.

super::in_both_modes!(
    Diamond,
    "bench_diamond",
    "bench_diamond_steps",
    input = Data,
    {
        #[step]
        async fn first(state: &Work) -> StepResult<Data> {
            state.task().await
        }

        #[step(depends_on = [first])]
        async fn left(first: Data, state: &Work) -> StepResult<Data> {
            drop(first);
            state.task().await
        }

        #[step(depends_on = [first])]
        async fn right(first: Data, state: &Work) -> StepResult<Data> {
            drop(first);
            state.task().await
        }

        #[step(depends_on = [left, right])]
        async fn last(left: Data, right: Data, state: &Work) -> StepResult<Data> {
            drop((left, right));
            state.task().await
        }
    }
);
