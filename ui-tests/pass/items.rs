//! Items of an `impl` beside steps, and flows that `macro_rules` writes.
#![deny(warnings)]

use std::pin::Pin;

use pgflow::prelude::*;

pub struct Matrix<const N: usize>(pub [u8; N]);

pub struct Sizes;

mod sizes {
    use super::*;

    macro_rules! helper {
        ($vis:vis $name:ident, $body:block) => {
            $vis fn $name() -> u32 $body
        };
    }

    #[flow(input = Vec<u32>)]
    impl Sizes {
        pub fn sizes(of: &[u32]) -> impl Iterator<Item = u32> {
            of.iter().map(|size| size + Self::MORE)
        }

        #[step]
        async fn load(input: &[u32]) -> StepResult<u32> {
            Ok(Self::sizes(input).sum())
        }

        const MORE: u32 = {
            let two = 2;
            two - 1
        };
        pub const LESS: fn(u32) -> u32 = |n| if n == 0 { 0 } else { n - Self::MORE };

        pub fn later() -> Pin<Box<dyn Future<Output = u8> + Send>> {
            Box::pin(async { 1 })
        }

        pub fn first<I: Iterator<Item = u8>, J>(one: I, other: J) -> Option<u8>
        where
            J: IntoIterator<Item = u8>,
        {
            one.chain(other).next()
        }

        pub fn matrix() -> Matrix<{ 1 + 1 }> {
            Matrix([0; 2])
        }

        helper!(pub macro_made, { 3 });

        #[step(depends_on = [load])]
        #[cfg_attr(debug_assertions, tracing::instrument)]
        #[cfg_attr(not(debug_assertions), allow(unused))]
        async fn sum(load: u32) -> StepResult<u32> {
            Ok(Self::LESS(load) + Self::macro_made())
        }

        pub(crate) extern "C" fn foreign(n: u8) -> u8 {
            n
        }
    }
}

macro_rules! flows {
    ($name:ty, $input:ty, $plan:literal, $after:ident, $module:ident, $delay:literal, $body:block) => {
        mod $module {
            use super::*;

            #[flow(input = $input, base_delay = $delay, max_attempts = 2)]
            impl $name {
                #[step(if = { plan: $plan, least: [$plan] }, timeout = $delay)]
                async fn $after(_input: $input) -> StepResult<u32> $body

                #[step(depends_on = [$after])]
                async fn last($after: Option<u32>) -> StepResult<Option<u32>> {
                    Ok($after)
                }
            }
        }
    };
}

pub struct Written;
pub struct WrittenToo;

flows!(Written, Vec<u32>, "a", first, written, "5s", { Ok(7) });
flows!(super::WrittenToo, u32, -3, other, written_too, "1m", {
    Ok(8)
});

#[test]
fn all_steps_are_found() {
    assert_eq!(sizes::Step::ALL.len(), 2);
    assert_eq!(written::Step::ALL.len(), 2);
    let [condition, last] = WrittenToo::DEFINITION.steps else {
        panic!("two steps")
    };
    assert_eq!(
        condition.condition.required,
        Some(r#"{"plan":-3,"least":[-3]}"#)
    );
    assert_eq!(last.depends_on, ["other"]);
    assert_eq!(Sizes::sizes(&[1]).sum::<u32>(), 2);
    assert_eq!(Sizes::first([1].into_iter(), [2]), Some(1));
    assert_eq!(Sizes::foreign(3), 3);
    assert_eq!(Sizes::matrix().0.len(), 2);
}

#[tokio::test]
async fn helpers_work() {
    assert_eq!(Sizes::later().await, 1);
}
