//! Queues that belong to somebody else, or are not what they should be: refused, with both owners
//! named, and nothing changed.

use serde_json::Value;
use sqlx::postgres::PgPool;

use super::{ensure_in, queues, run_sql};
use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{Step, define, define_with_step_queues, step};
use crate::support::rows::raised;

fn three() -> Vec<Step> {
    vec![step("a"), step("b"), step("c")]
}

/// Each queue mode, with the queue of flow `orders` that comes last when its names are in order.
const LAST_QUEUES: [(&str, &str); 2] = [("flow", "orders"), ("step", "orders__c")];

async fn refusal(pool: &PgPool, mode: &str) -> String {
    raised(unchanged(pool, ensure_in(pool, mode, &three())).await)
}

async fn compiled(pool: &PgPool, mode: &str) -> Value {
    let answer = ensure_in(pool, mode, &three()).await.expect("an answer");
    assert_eq!(answer["status"], "compiled");
    answer
}

/// Prepares a database for each queue mode, and checks how the flow that it lacks is refused.
/// `{queue}` stands for the flow's last queue, `{QUEUE}` for the same in upper case. Once `cure` is
/// done, the flow is compiled.
async fn assert_a_missing_flow_is_refused(prepare: &str, message: &str, cure: &str) {
    for (mode, queue) in LAST_QUEUES {
        let filled = |text: &str| {
            text.replace("{queue}", queue)
                .replace("{QUEUE}", &queue.to_uppercase())
        };
        let db = TestDb::new().await;
        run_sql(&db.pool, filled(prepare)).await;
        assert_eq!(
            refusal(&db.pool, mode).await,
            format!("PF006: flow \"orders\": {}", filled(message)),
            "mode {mode}"
        );
        run_sql(&db.pool, filled(cure)).await;
        compiled(&db.pool, mode).await;
    }
}

/// Compiles the flow in each queue mode, spoils it, and checks how it is refused from then on.
async fn assert_a_stored_flow_is_refused(spoil: &str, message: &str) {
    for (mode, queue) in LAST_QUEUES {
        let filled = |text: &str| {
            text.replace("{queue}", queue)
                .replace("{QUEUE}", &queue.to_uppercase())
        };
        let db = TestDb::new().await;
        compiled(&db.pool, mode).await;
        run_sql(&db.pool, filled(spoil)).await;
        assert_eq!(
            refusal(&db.pool, mode).await,
            format!("PF006: flow \"orders\": {}", filled(message)),
            "mode {mode}"
        );
    }
}

#[tokio::test]
async fn a_foreign_queue_is_never_adopted_however_it_is_spelled() {
    for spelling in ["{queue}", "{QUEUE}"] {
        assert_a_missing_flow_is_refused(
            &format!("select pgmq.create('{spelling}')"),
            &format!("a queue \"{spelling}\" exists, and no flow owns it"),
            &format!("select pgmq.drop_queue('{spelling}')"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_queue_that_is_listed_under_several_spellings_is_refused() {
    assert_a_missing_flow_is_refused(
        "select pgmq.create('{queue}'); select pgmq.create('{QUEUE}')",
        "queue \"{queue}\" is listed under several spellings: {QUEUE}, {queue}",
        "select pgmq.drop_queue('{queue}'); delete from pgmq.meta",
    )
    .await;
    assert_a_stored_flow_is_refused(
        "select pgmq.create('{QUEUE}')",
        "queue \"{queue}\" is listed under several spellings: {QUEUE}, {queue}",
    )
    .await;
}

#[tokio::test]
async fn a_table_that_is_left_over_is_not_adopted_either() {
    assert_a_missing_flow_is_refused(
        "select pgmq.create('{queue}'); delete from pgmq.meta",
        "a table pgmq.\"q_{queue}\" exists, though pgmq.meta lists no such queue",
        "drop table pgmq.q_{queue}, pgmq.a_{queue}",
    )
    .await;
}

#[tokio::test]
async fn an_archive_that_is_left_over_is_not_adopted_either() {
    assert_a_missing_flow_is_refused(
        "select pgmq.create('{queue}'); delete from pgmq.meta; drop table pgmq.q_{queue}",
        "a table pgmq.\"a_{queue}\" exists, though pgmq.meta lists no such queue",
        "drop table pgmq.a_{queue}",
    )
    .await;
}

#[tokio::test]
async fn a_queue_that_is_listed_without_a_table_is_not_adopted_either() {
    assert_a_missing_flow_is_refused(
        "select pgmq.create('{queue}'); drop table pgmq.q_{queue}, pgmq.a_{queue}",
        "a queue \"{queue}\" exists, and no flow owns it",
        "delete from pgmq.meta",
    )
    .await;
}

#[tokio::test]
async fn an_owned_queue_that_was_dropped_is_missed() {
    let gone = "its queue \"{queue}\" is no longer listed in pgmq.meta";
    assert_a_stored_flow_is_refused("select pgmq.drop_queue('{queue}')", gone).await;
    assert_a_stored_flow_is_refused("delete from pgmq.meta where queue_name = '{queue}'", gone)
        .await;
    assert_a_stored_flow_is_refused(
        "drop table pgmq.q_{queue}",
        "its queue \"{queue}\" is listed in pgmq.meta, but its table is gone",
    )
    .await;
    assert_a_stored_flow_is_refused(
        "drop table pgmq.a_{queue}",
        "its queue \"{queue}\" is listed in pgmq.meta, but its table is gone",
    )
    .await;
}

#[tokio::test]
async fn an_owned_queue_that_is_listed_in_another_spelling_is_the_same_table() {
    for (mode, queue) in LAST_QUEUES {
        let db = TestDb::new().await;
        compiled(&db.pool, mode).await;
        run_sql(
            &db.pool,
            format!(
                "update pgmq.meta set queue_name = upper(queue_name) where queue_name = '{queue}'"
            ),
        )
        .await;
        let answer = unchanged(&db.pool, ensure_in(&db.pool, mode, &three())).await;
        assert_eq!(answer.expect("an answer")["status"], "verified");
    }
}

#[tokio::test]
async fn a_route_of_a_step_of_another_flow_is_refused_by_its_name() {
    for (mode, queue) in LAST_QUEUES {
        for (define_shop, owner) in [
            ("step", "flow \"Shop\", step \"x\""),
            ("flow", "flow \"Shop\""),
        ] {
            let db = TestDb::new().await;
            if define_shop == "step" {
                define_with_step_queues(&db.pool, "Shop", &[step("w"), step("x")]).await;
            } else {
                define(&db.pool, "Shop", &[step("w"), step("x")]).await;
            }
            run_sql(
                &db.pool,
                format!("update pgflow.steps set queue_name = '{queue}' where step_slug = 'x'"),
            )
            .await;
            // No matter whether the queue is there.
            for prepare in [String::new(), format!("select pgmq.create('{queue}')")] {
                run_sql(&db.pool, prepare).await;
                assert_eq!(
                    refusal(&db.pool, mode).await,
                    format!("PF006: flow \"orders\": queue \"{queue}\" already belongs to {owner}"),
                );
            }
        }
    }
}

#[tokio::test]
async fn a_stored_flow_whose_queue_another_flow_has_taken_is_refused() {
    for (mode, queue) in LAST_QUEUES {
        let db = TestDb::new().await;
        compiled(&db.pool, mode).await;
        define_with_step_queues(&db.pool, "shop", &[step("x")]).await;
        run_sql(
            &db.pool,
            format!("update pgflow.steps set queue_name = '{queue}' where step_slug = 'x'"),
        )
        .await;
        assert_eq!(
            refusal(&db.pool, mode).await,
            format!(
                "PF006: flow \"orders\": queue \"{queue}\" already belongs to flow \"shop\", step \"x\""
            ),
        );
    }
}

#[tokio::test]
async fn the_queue_of_another_plain_flow_is_refused_with_or_without_steps() {
    let db = TestDb::new().await;
    define(&db.pool, "Shop", &[]).await;
    // No two valid slugs derive it, so the check is asked itself.
    let assert_queues = || {
        sqlx::query("select pgflow._assert_queues('orders', array['orders', 'shop'], false)")
            .execute(&db.pool)
    };
    for _ in 0..2 {
        assert_eq!(
            raised(unchanged(&db.pool, assert_queues()).await),
            "PF006: flow \"orders\": queue \"shop\" already belongs to flow \"Shop\""
        );
        run_sql(&db.pool, "select pgflow.add_step('Shop', 'x')").await;
    }
}

#[tokio::test]
async fn a_flow_that_differs_only_in_case_is_named_in_any_pair_of_modes() {
    for (stored, _) in LAST_QUEUES {
        for (asked, _) in LAST_QUEUES {
            let db = TestDb::new().await;
            let steps = [step("a")];
            if stored == "step" {
                define_with_step_queues(&db.pool, "Orders", &steps).await;
            } else {
                define(&db.pool, "Orders", &steps).await;
            }
            assert_eq!(
                refusal(&db.pool, asked).await,
                "PF006: flow \"orders\" differs from flow \"Orders\" only in case",
                "{stored}, {asked}"
            );
        }
    }
}

#[tokio::test]
async fn the_first_of_several_collisions_is_named_and_no_queue_is_created() {
    let db = TestDb::new().await;
    run_sql(
        &db.pool,
        "select pgmq.create('orders__c'); select pgmq.create('orders__b')",
    )
    .await;
    assert_eq!(
        refusal(&db.pool, "step").await,
        "PF006: flow \"orders\": a queue \"orders__b\" exists, and no flow owns it"
    );
    assert_eq!(queues(&db.pool).await, ["orders__b", "orders__c"]);
}

#[tokio::test]
async fn all_names_are_checked_before_the_first_queue_is_created() {
    let db = TestDb::new().await;
    // Not even inside of the transaction: what would be created is never asked for.
    run_sql(
        &db.pool,
        "select pgmq.create('orders__c');
         create function pgmq.never() returns event_trigger language plpgsql as $$ begin raise exception 'too early'; end $$;
         create event trigger never on ddl_command_start execute function pgmq.never()",
    )
    .await;
    assert_eq!(
        refusal(&db.pool, "step").await,
        "PF006: flow \"orders\": a queue \"orders__c\" exists, and no flow owns it"
    );
    run_sql(&db.pool, "drop event trigger never").await;
}

#[tokio::test]
async fn create_flow_refuses_the_same_collisions() {
    for (prepare, message) in [
        (
            "select pgmq.create('ORDERS')",
            "a queue \"ORDERS\" exists, and no flow owns it",
        ),
        (
            "select pgmq.create('orders'); delete from pgmq.meta",
            "a table pgmq.\"q_orders\" exists, though pgmq.meta lists no such queue",
        ),
        (
            "select pgmq.create('orders'); delete from pgmq.meta; drop table pgmq.q_orders",
            "a table pgmq.\"a_orders\" exists, though pgmq.meta lists no such queue",
        ),
        (
            "select pgflow.create_flow('shop'); select pgflow.add_step('shop', 'x');
             update pgflow.steps set queue_name = 'orders'",
            "queue \"orders\" already belongs to flow \"shop\"",
        ),
    ] {
        let db = TestDb::new().await;
        run_sql(&db.pool, prepare).await;
        let create = sqlx::query("select pgflow.create_flow('orders')").execute(&db.pool);
        assert_eq!(
            raised(unchanged(&db.pool, create).await),
            format!("PF006: flow \"orders\": {message}")
        );
    }
}
