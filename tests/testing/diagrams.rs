//! Stored definitions, and their diagrams.

use pgflow::definition::{QueueMode, SkipMode, StepKind};
use pgflow::inspect_flow;
use pgflow::prelude::*;
use pgflow::testing::run_to_end;
use serde::{Deserialize, Serialize};

use super::assert_nothing_left;
use crate::support::TestDb;

#[derive(Serialize, Deserialize)]
struct Order {
    plan: String,
}

struct Orders;

#[flow(input = Order, with_step_queues, max_attempts = 4, timeout = "20s")]
impl Orders {
    #[step(start_delay = "2s", max_attempts = 7)]
    async fn items(input: &Order) -> StepResult<Vec<u32>> {
        Ok(vec![u32::try_from(input.plan.len())?])
    }

    #[step(map = items, when_exhausted = "skip")]
    async fn pack(item: u32) -> StepResult<u32> {
        Ok(item)
    }

    #[step(if = { plan: "premium" }, if_not = { plan: "\"basic\"" }, when_unmet = "skip-cascade")]
    async fn gift() -> StepResult<String> {
        Ok("a pen".to_owned())
    }

    #[step(depends_on = [pack, gift, items])]
    async fn ship(pack: Option<&[u32]>, gift: &str, items: &[u32]) -> StepResult<String> {
        Ok(format!("{pack:?} {gift} {items:?}"))
    }
}

async fn stored(db: &TestDb, slug: &str) -> Option<inspect_flow::StoredFlow> {
    let mut connection = db.pool.acquire().await.unwrap();
    inspect_flow::flow(&mut connection, slug).await.unwrap()
}

async fn orders(db: &TestDb) -> inspect_flow::StoredFlow {
    let plan = "premium".to_owned();
    let run = run_to_end::<Orders>(&db.pool, &(), Order { plan }).await;
    assert!(run.unwrap().error().is_none());
    stored(db, "orders").await.unwrap()
}

#[tokio::test]
async fn a_stored_definition_is_read_with_its_routes_and_options() {
    let db = TestDb::new().await;
    let flow = orders(&db).await;
    assert_eq!(flow.queue_mode, QueueMode::Step);
    assert_eq!(flow.options.max_attempts, Some(4));
    assert_eq!(flow.options.base_delay, Some(5));
    let slugs: Vec<&str> = flow.steps.iter().map(|it| &*it.step_slug).collect();
    assert_eq!(
        slugs,
        Orders::DEFINITION
            .steps
            .iter()
            .map(|it| it.slug)
            .collect::<Vec<_>>()
    );

    let step = |slug: &str| flow.steps.iter().find(|it| it.step_slug == slug).unwrap();
    assert_eq!(step("items").options.start_delay, Some(2));
    assert_eq!(step("items").options.timeout, None);
    let effective = flow.effective_options("items").unwrap();
    assert_eq!(
        (effective.max_attempts, effective.timeout),
        (Some(7), Some(20))
    );
    assert_eq!(flow.effective_options("other"), None);
    assert_eq!(step("pack").step_type, StepKind::Map);
    assert_eq!(step("pack").when_exhausted, SkipMode::Skip);
    assert_eq!(step("pack").queue_name, "orders__pack");
    assert_eq!(step("ship").depends_on, ["items", "pack", "gift"]);
    assert_eq!(
        step("gift").required_input_pattern,
        Some(serde_json::json!({"plan": "premium"}))
    );

    let json = serde_json::to_value(&flow).unwrap();
    assert_eq!(json["queue_mode"], "step");
    assert_eq!(json["steps"][1]["step_type"], "map");
    assert_eq!(json["steps"][2]["when_unmet"], "skip-cascade");
    assert_eq!(stored(&db, "other").await, None);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_stored_definition_is_drawn_as_the_one_in_code() {
    let db = TestDb::new().await;
    let flow = orders(&db).await;
    let drawn = Orders::DEFINITION.to_mermaid();
    assert_eq!(
        drawn,
        r#"graph LR
    s_items["items"]
    s_pack[["pack<br/>one task per element of items<br/>when exhausted: skip"]]
    s_gift["gift<br/>if {#34;plan#34;#58;#34;premium#34;}<br/>if not {#34;plan#34;#58;#34;#92;#34;basic#92;#34;#34;}<br/>when unmet: skip-cascade"]
    s_ship["ship"]
    s_items --> s_pack
    s_items --> s_ship
    s_pack -. "optional" .-> s_ship
    s_gift -. "cascades" .-> s_ship
"#
    );
    assert_eq!(flow.to_mermaid(), drawn);
    assert_nothing_left(&db.pool).await;
}
