//! Our flows.

pub(crate) use chain3::Chain3;
pub(crate) use fan50::Fan50;
pub(crate) use map::Map;
pub(crate) use one::One;

mod one {
    use pgflow::prelude::*;

    use crate::work::handle;

    /// One step.
    #[derive(Debug)]
    pub(crate) struct One;

    #[flow(input = u64)]
    impl One {
        #[step]
        async fn only(input: u64) -> StepResult<u64> {
            handle();
            Ok(input)
        }
    }
}

mod chain3 {
    use pgflow::prelude::*;

    use crate::work::handle;

    /// Three steps, one after the other.
    #[derive(Debug)]
    pub(crate) struct Chain3;

    #[flow(input = u64)]
    impl Chain3 {
        #[step]
        async fn first(input: u64) -> StepResult<u64> {
            handle();
            Ok(input)
        }

        #[step(depends_on = [first])]
        async fn second(first: u64) -> StepResult<u64> {
            handle();
            Ok(first)
        }

        #[step(depends_on = [second])]
        async fn third(second: u64) -> StepResult<u64> {
            handle();
            Ok(second)
        }
    }
}

mod fan50 {
    use pgflow::prelude::*;

    use crate::work::handle;

    /// Fifty steps, none after another.
    #[derive(Debug)]
    pub(crate) struct Fan50;

    macro_rules! fan {
        ($($step:ident)+) => {
            #[flow(input = u64)]
            impl Fan50 {
                $(
                    #[step]
                    async fn $step(input: u64) -> StepResult<u64> {
                        handle();
                        Ok(input)
                    }
                )+
            }
        };
    }

    fan! {
        s01 s02 s03 s04 s05 s06 s07 s08 s09 s10
        s11 s12 s13 s14 s15 s16 s17 s18 s19 s20
        s21 s22 s23 s24 s25 s26 s27 s28 s29 s30
        s31 s32 s33 s34 s35 s36 s37 s38 s39 s40
        s41 s42 s43 s44 s45 s46 s47 s48 s49 s50
    }
}

mod map {
    use pgflow::prelude::*;

    use crate::work::handle;

    /// One task for each element of the input.
    #[derive(Debug)]
    pub(crate) struct Map;

    #[flow(input = Vec<u64>)]
    impl Map {
        #[step(map = input)]
        async fn each(item: u64) -> StepResult<u64> {
            handle();
            Ok(item)
        }
    }
}
