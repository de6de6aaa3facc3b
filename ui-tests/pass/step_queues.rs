//! Flows with a queue for each step: names of queues, and the workers that take them.
#![deny(warnings)]

use pgflow::{QueuePerStep, definition::QueueMode, prelude::*};

/// Not `Clone`.
pub struct Shop;

pub struct Orders;

#[flow(input = u32, state = Shop, with_step_queues)]
impl Orders {
    #[step]
    async fn fetch(input: u32, state: &Shop) -> StepResult<Vec<u32>> {
        let _: &Shop = state;
        Ok(vec![input])
    }

    #[step(map = fetch, slug = "takeOne")]
    async fn take(item: u32) -> StepResult<u32> {
        Ok(item)
    }

    /// With the flow's, 47 characters.
    #[step(depends_on = [take])]
    async fn count_what_is_left_in_each_of_the_boxes(take: &[u32]) -> StepResult<usize> {
        Ok(take.len())
    }

    /// One more.
    #[step(depends_on = [take])]
    async fn count_what_is_left_in_each_of_the_crates(take: &[u32]) -> StepResult<usize> {
        Ok(take.len())
    }
}

/// The longest slug.
pub struct Longest;

#[flow(
    input = u32,
    slug = "audit_every_crate_of_the_whole_tree_of_crate",
    with_step_queues,
    step_enum = LongestStep
)]
impl Longest {
    #[step]
    async fn parse(input: u32) -> StepResult<u32> {
        Ok(input)
    }
}

fn is_step_queued<F: StepQueued>() -> QueueMode {
    F::DEFINITION.queue_mode
}

fn is_queue_per_step<F: Flow<Queues = QueuePerStep>>() {}

#[test]
fn a_name_that_fits_can_be_read_and_one_that_does_not_is_the_index() {
    let routes = Orders::DEFINITION.route_map().unwrap();
    let queues: Vec<&str> = routes.iter().map(|route| route.queue.as_str()).collect();
    assert_eq!(
        queues,
        [
            "orders__fetch",
            "orders__takeone",
            "orders__count_what_is_left_in_each_of_the_boxes",
            "orders__3"
        ]
    );
    let longest = Longest::DEFINITION.route_map().unwrap();
    assert_eq!(
        longest[0].queue,
        "audit_every_crate_of_the_whole_tree_of_crate__0"
    );
}

#[test]
fn workers_of_steps_take_any_state_and_options_of_their_own() {
    is_queue_per_step::<Orders>();
    assert_eq!(is_step_queued::<Longest>(), QueueMode::Step);
    let one = StepWorker::<Orders>::with_state(Step::Take, Shop).concurrency(2);
    assert!(format!("{one:?}").contains("takeOne"), "{one:?}");
    let limit = String::from("7");
    let all = StepWorker::<Orders>::all_with_state(Shop)
        .concurrency(5)
        .step(Step::Fetch, |worker| {
            worker.concurrency(limit.parse().unwrap())
        });
    let text = format!("{all:?}");
    assert!(
        text.contains("Some(7)") && text.contains("Some(5)"),
        "{text}"
    );
    let _ = StepWorker::<Longest>::all();
    let _ = StepWorker::<Longest>::new(LongestStep::Parse);
}
