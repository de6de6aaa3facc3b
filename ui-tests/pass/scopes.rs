//! Flows wherever a type can be, under lints that generated code must not trip over.
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    private_interfaces,
    elided_lifetimes_in_paths,
    unused_lifetimes,
    unused_qualifications,
    clippy::pedantic
)]

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Secret(u32);

#[derive(Debug)]
struct Private;

#[flow(input = Secret, step_enum = PrivateStep)]
impl Private {
    #[step]
    async fn first(input: Secret) -> StepResult<Secret> {
        Ok(input)
    }
}

/// Two flows in one module: one names its step enum.
#[derive(Debug)]
pub(crate) struct Public;

#[flow(input = u32, output = Total, output_derive = [Debug, Clone, PartialEq])]
impl Public {
    /// Adds one.
    ///
    /// See [`Secret`].
    #[step]
    pub(crate) async fn first(input: u32) -> StepResult<u32> {
        Ok(input + 1)
    }
}

mod inner {
    use super::{Deserialize, Secret, Serialize};
    use pgflow::prelude::*;

    #[derive(Debug, Serialize, Deserialize)]
    pub(crate) struct Seed(pub(crate) u32);

    #[derive(Debug)]
    pub(crate) struct Nested;

    #[flow(input = Seed)]
    impl Nested {
        #[step]
        async fn first(input: Seed) -> StepResult<Secret> {
            Ok(Secret(input.0))
        }
    }
}

macro_rules! flow_over {
    ($name:ident, $input:ty) => {
        #[derive(Debug)]
        struct $name;

        #[flow(input = $input, step_enum = GeneratedStep)]
        impl $name {
            #[step(map = input)]
            async fn double(item: u32, input: $input) -> StepResult<Option<$input>> {
                Ok(Some(vec![item * 2; input.len()]))
            }

            #[step(depends_on = [double])]
            async fn last(double: Vec<Option<$input>>) -> StepResult<usize> {
                Ok(double.len())
            }
        }
    };
}

flow_over!(Generated, Vec<u32>);

#[tokio::test]
async fn flows_work_in_every_scope() {
    #[derive(Debug)]
    struct Local;

    #[flow(input = u32)]
    impl Local {
        #[step]
        async fn first(input: u32) -> StepResult<u32> {
            Ok(input * 2)
        }
    }

    assert_eq!(Local::first(2).await.expect("a number"), 4);
    assert_eq!(Step::ALL, [Step::First]);
    assert_eq!(super::scopes::Step::First.slug(), "first");
    assert_eq!(PrivateStep::First.index(), 0);
    assert_eq!(GeneratedStep::ALL.len(), 2);
    assert_eq!(inner::Step::First.slug(), "first");
    assert_eq!(Private::first(Secret(1)).await.expect("a secret").0, 1);
    assert_eq!(Public::first(1).await.expect("a number"), 2);
    assert_eq!(Total { first: 1 }, Total { first: 1 }.clone());
    let _ = |output: PrivateOutput| output.first.0;
    let _ = |output: inner::NestedOutput| output.first.0;
}
