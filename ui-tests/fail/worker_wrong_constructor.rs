#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct AppState;

mod plain {
    use super::*;

    pub struct Plain;

    #[flow(input = Lockfile)]
    impl Plain {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

mod plain_with_state {
    use super::*;

    pub struct Stateful;

    #[flow(input = Lockfile, state = AppState)]
    impl Stateful {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

mod queued {
    use super::*;

    pub struct Queued;

    #[flow(input = Lockfile, with_step_queues)]
    impl Queued {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

mod queued_with_state {
    use super::*;

    pub struct QueuedStateful;

    #[flow(input = Lockfile, state = AppState, with_step_queues)]
    impl QueuedStateful {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

use plain::Plain;
use plain_with_state::Stateful;
use queued::Queued;
use queued_with_state::QueuedStateful;

fn plain_flows() {
    let _ = FlowWorker::<Plain>::new(AppState);
    let _ = FlowWorker::<Plain>::with_state(AppState);
    let _ = FlowWorker::<Plain>::all();
    let _ = FlowWorker::<Stateful>::new(AppState);
    let _ = FlowWorker::<Stateful>::with_state();
    let _ = StepWorker::<Plain>::all();
    let _ = StepWorker::<Plain>::new();
    let _ = StepWorker::<Plain>::new(plain::Step::Parse);
    let _ = StepWorker::<Stateful>::new(plain_with_state::Step::Parse);
    let _ = StepWorker::<Stateful>::with_state(AppState);
    let _ = StepWorker::<Stateful>::all_with_state(AppState);
}

fn flows_with_step_queues() {
    let _ = FlowWorker::<Queued>::new(queued::Step::Parse);
    let _ = FlowWorker::<QueuedStateful>::new(AppState);
    let _ = FlowWorker::<QueuedStateful>::with_state(AppState);
    let _ = StepWorker::<Queued>::new();
    let _ = StepWorker::<Queued>::all(AppState);
    let _ = StepWorker::<QueuedStateful>::all();
    let _ = StepWorker::<QueuedStateful>::new(queued_with_state::Step::Parse, AppState);
    let _ = StepWorker::<QueuedStateful>::with_state(AppState, queued_with_state::Step::Parse);
    let _ = StepWorker::<QueuedStateful>::with_state(AppState);
    let _ = StepWorker::<QueuedStateful>::with_state(queued::Step::Parse, AppState);
    let _ = StepWorker::<QueuedStateful>::with_state(queued_with_state::Step::Parse);
}

fn no_flows() {
    let _ = FlowWorker::<Package>::with_state(AppState);
    let _ = StepWorker::<Package>::new(AppState);
    let _ = StepWorker::<Package>::with_state(queued::Step::Parse, AppState);
    let _ = StepWorker::<Package>::all();
    let _ = StepWorker::<Package>::all_with_state(AppState);
}

fn main() {}
