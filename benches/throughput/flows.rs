//! The measured flows.

pub(crate) use chain3::Chain3;
pub(crate) use diamond::Diamond;
pub(crate) use map::Map;
pub(crate) use one::One;

mod one {
    use pgflow::prelude::*;

    /// One step.
    #[derive(Debug)]
    pub(crate) struct One;

    #[flow(input = serde_json::Value, slug = "bench_one")]
    impl One {
        #[step]
        async fn only() -> StepResult<u64> {
            Ok(1)
        }
    }
}

mod chain3 {
    use pgflow::prelude::*;

    /// Three steps, one after the other.
    #[derive(Debug)]
    pub(crate) struct Chain3;

    #[flow(input = serde_json::Value, slug = "bench_chain3")]
    impl Chain3 {
        #[step]
        async fn first() -> StepResult<u64> {
            Ok(1)
        }

        #[step(depends_on = [first])]
        async fn second(first: u64) -> StepResult<u64> {
            Ok(first + 1)
        }

        #[step(depends_on = [second])]
        async fn third(second: u64) -> StepResult<u64> {
            Ok(second + 1)
        }
    }
}

mod diamond {
    use pgflow::prelude::*;

    /// Two steps side by side, between a first and a last one.
    #[derive(Debug)]
    pub(crate) struct Diamond;

    #[flow(input = serde_json::Value, slug = "bench_diamond")]
    impl Diamond {
        #[step]
        async fn first() -> StepResult<u64> {
            Ok(1)
        }

        #[step(depends_on = [first])]
        async fn left(first: u64) -> StepResult<u64> {
            Ok(first + 1)
        }

        #[step(depends_on = [first])]
        async fn right(first: u64) -> StepResult<u64> {
            Ok(first + 2)
        }

        #[step(depends_on = [left, right])]
        async fn last(left: u64, right: u64) -> StepResult<u64> {
            Ok(left + right)
        }
    }
}

mod map {
    use pgflow::prelude::*;

    /// One task per element of the input.
    #[derive(Debug)]
    pub(crate) struct Map;

    #[flow(input = Vec<u64>, slug = "bench_map")]
    impl Map {
        #[step(map = input)]
        async fn each(item: u64) -> StepResult<u64> {
            Ok(item)
        }
    }
}
