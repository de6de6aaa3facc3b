//! Twenty layers of three steps, each of which depends on the three of the layer before.

macro_rules! layers {
    ($($root:ident)*; $([$($step:ident)*] after [$a:ident $b:ident $c:ident]),*) => {
        layers!(@flow
            [$($root)*]
            [$($([$step $a $b $c])*)*]
        );
    };
    (@flow [$($root:ident)*] [$([$step:ident $a:ident $b:ident $c:ident])*]) => {
        crate::flows::in_both_modes!(Layered, "bench_layered", "bench_layered_steps", input = Data, {
            $(
                #[step]
                async fn $root(state: &Work) -> StepResult<Data> {
                    state.task().await
                }
            )*
            $(
                #[step(depends_on = [$a, $b, $c])]
                async fn $step($a: Data, $b: Data, $c: Data, state: &Work) -> StepResult<Data> {
                    drop(($a, $b, $c));
                    state.task().await
                }
            )*
        });
    };
}

layers!(
    a01 b01 c01;
    [a02 b02 c02] after [a01 b01 c01],
    [a03 b03 c03] after [a02 b02 c02],
    [a04 b04 c04] after [a03 b03 c03],
    [a05 b05 c05] after [a04 b04 c04],
    [a06 b06 c06] after [a05 b05 c05],
    [a07 b07 c07] after [a06 b06 c06],
    [a08 b08 c08] after [a07 b07 c07],
    [a09 b09 c09] after [a08 b08 c08],
    [a10 b10 c10] after [a09 b09 c09],
    [a11 b11 c11] after [a10 b10 c10],
    [a12 b12 c12] after [a11 b11 c11],
    [a13 b13 c13] after [a12 b12 c12],
    [a14 b14 c14] after [a13 b13 c13],
    [a15 b15 c15] after [a14 b14 c14],
    [a16 b16 c16] after [a15 b15 c15],
    [a17 b17 c17] after [a16 b16 c16],
    [a18 b18 c18] after [a17 b17 c17],
    [a19 b19 c19] after [a18 b18 c18],
    [a20 b20 c20] after [a19 b19 c19]
);
