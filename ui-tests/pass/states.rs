//! States of all kinds that can be shared, held over an await.
#![deny(warnings)]
#![allow(
    clippy::borrowed_box,
    reason = "a state by reference is a reference to exactly its type"
)]

use std::sync::{Arc, Mutex};

use pgflow::prelude::*;
use tokio::task::yield_now;

mod shared {
    use super::*;

    pub struct Shared;

    #[flow(input = u8, state = Arc<Mutex<Vec<String>>>)]
    impl Shared {
        #[step]
        async fn count(state: &Arc<Mutex<Vec<String>>>) -> StepResult<usize> {
            yield_now().await;
            Ok(state.lock().map_err(|error| error.to_string())?.len())
        }
    }
}

mod borrowed {
    use super::*;

    pub struct Borrowed;

    #[flow(input = u8, state = &'static str)]
    impl Borrowed {
        #[step]
        async fn greet(state: &&'static str) -> StepResult<String> {
            yield_now().await;
            Ok((*state).to_owned())
        }
    }
}

mod dynamic {
    use super::*;

    pub trait Clock: Send + Sync {
        fn now(&self) -> u64;
    }

    impl Clock for u64 {
        fn now(&self) -> u64 {
            *self
        }
    }

    pub struct Dynamic;

    #[flow(input = u8, state = Arc<dyn Clock>)]
    impl Dynamic {
        #[step]
        async fn tell(state: Arc<dyn Clock>) -> StepResult<u64> {
            yield_now().await;
            Ok(state.now())
        }
    }
}

mod boxed {
    use super::*;

    pub struct Boxed;

    #[flow(input = u8, state = Box<dyn Fn(u8) -> u8 + Send + Sync>, with_step_queues)]
    impl Boxed {
        #[step]
        async fn double(input: u8, state: &Box<dyn Fn(u8) -> u8 + Send + Sync>) -> StepResult<u8> {
            yield_now().await;
            Ok(state(input))
        }
    }
}

mod own {
    use super::*;

    pub struct Own;

    #[flow(input = u8, state = Self)]
    impl Own {
        #[step]
        async fn first(state: &Own) -> StepResult<()> {
            yield_now().await;
            let Own = state;
            Ok(())
        }
    }
}

#[test]
fn workers_take_each_of_them() {
    let _ = FlowWorker::<shared::Shared>::with_state(Arc::default());
    let _ = FlowWorker::<borrowed::Borrowed>::with_state("hello");
    let _ = FlowWorker::<dynamic::Dynamic>::with_state(Arc::new(7));
    let _ = StepWorker::<boxed::Boxed>::all_with_state(Box::new(|n| n * 2));
    let _ = StepWorker::<boxed::Boxed>::with_state(boxed::Step::Double, Box::new(|n| n * 2));
    let _ = FlowWorker::<own::Own>::with_state(own::Own);
}
