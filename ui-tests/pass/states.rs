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

/// The flow's own type is a name, of which there need be no value that threads share.
mod held {
    use super::*;

    #[expect(dead_code, reason = "no step reads the flow's type")]
    pub struct Held(std::rc::Rc<std::cell::RefCell<u8>>);

    #[flow(input = u8)]
    impl Held {
        #[step]
        async fn first(input: u8) -> StepResult<u8> {
            Ok(input)
        }
    }
}

/// A flow that a function is generic over: its future can go to another thread, with the output in
/// it.
fn run_anywhere<F: Flow<State = ()>>(pool: pgflow::sqlx::PgPool, input: F::Input) {
    tokio::spawn(async move {
        let run = pgflow::testing::run_to_end::<F>(&pool, &(), input).await;
        let output = run.map(|run| run.into_output());
        yield_now().await;
        drop(output);
    });
}

#[test]
fn workers_take_each_of_them() {
    let _ = FlowWorker::<shared::Shared>::with_state(Arc::default());
    let _ = FlowWorker::<borrowed::Borrowed>::with_state("hello");
    let _ = FlowWorker::<dynamic::Dynamic>::with_state(Arc::new(7));
    let _ = StepWorker::<boxed::Boxed>::all_with_state(Box::new(|n| n * 2));
    let _ = StepWorker::<boxed::Boxed>::with_state(boxed::Step::Double, Box::new(|n| n * 2));
    let _ = FlowWorker::<own::Own>::with_state(own::Own);
    let _ = FlowWorker::<held::Held>::new();
    let _ = run_anywhere::<held::Held>;
}
