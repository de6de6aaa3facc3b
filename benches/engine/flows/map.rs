//! One task per element of the input.

super::in_both_modes!(Map, "bench_map", "bench_map_steps", input = List, {
    #[step(map = input)]
    async fn each(item: Data, state: &Work) -> StepResult<Data> {
        drop(item);
        state.task().await
    }
});
