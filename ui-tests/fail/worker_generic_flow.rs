#![allow(unused)]

use pgflow::prelude::*;
use pgflow::sqlx::PgPool;

async fn one<W: Flow<State = ()>>(pool: &PgPool) {
    let _ = FlowWorker::<W>::new().run(pool).await;
}

async fn with_state<W: Flow>(pool: &PgPool, state: W::State) {
    let _ = FlowWorker::<W>::with_state(state).run(pool).await;
}

async fn step<W: Flow<State = ()>>(pool: &PgPool, step: W::Step) {
    let _ = StepWorker::<W>::new(step).run(pool).await;
}

async fn with_the_bound<W: Flow<State = (), Queues = pgflow::OneQueue>>(pool: &PgPool) {
    let _ = FlowWorker::<W>::new().run(pool).await;
}

async fn with_step_queues<W: StepQueued + Flow<State = ()>>(pool: &PgPool, step: W::Step) {
    let _ = StepWorker::<W>::new(step).run(pool).await;
}

fn main() {}
