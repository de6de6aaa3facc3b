//! One step.

super::in_both_modes!(One, "bench_one", "bench_one_steps", input = Data, {
    #[step]
    async fn only(state: &Work) -> StepResult<Data> {
        state.task().await
    }
});
