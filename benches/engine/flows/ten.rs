//! Ten steps, one after the other.

macro_rules! chain {
    ($first:ident $(, $step:ident after $before:ident)*) => {
        crate::flows::in_both_modes!(Ten, "bench_ten", "bench_ten_steps", input = Data, {
            #[step]
            async fn $first(state: &Work) -> StepResult<Data> {
                state.task().await
            }

            $(
                #[step(depends_on = [$before])]
                async fn $step($before: Data, state: &Work) -> StepResult<Data> {
                    drop($before);
                    state.task().await
                }
            )*
        });
    };
}

chain!(
    s01, s02 after s01, s03 after s02, s04 after s03, s05 after s04, s06 after s05, s07 after s06, s08 after s07,
    s09 after s08, s10 after s09
);
