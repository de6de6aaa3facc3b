#![deny(unused_must_use)]

use pgflow::{StepWorker, prelude::*};

pub struct Plain;

mod plain {
    use super::*;

    #[flow(input = u8)]
    impl Plain {
        #[step]
        async fn parse(input: u8) -> StepResult<u8> { Ok(input) }
    }
}

pub struct Queued;

mod queued {
    use super::*;

    #[flow(input = u8, with_step_queues)]
    impl Queued {
        #[step]
        async fn parse(input: u8) -> StepResult<u8> { Ok(input) }
    }
}

fn main() {
    FlowWorker::<Plain>::new().concurrency(8);
    StepWorker::<Queued>::new(queued::Step::Parse);
    StepWorker::<Queued>::all();
}
