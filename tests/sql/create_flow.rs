//! `create_flow`: slugs, options, queues, collisions.

use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::flows::{define, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};

async fn create(pool: &PgPool, flow: &str) -> sqlx::Result<String> {
    sqlx::query_scalar("select flow_slug from pgflow.create_flow($1)")
        .bind(flow)
        .fetch_one(pool)
        .await
}

/// Attempts, delay and timeout of the flow that a call returns.
async fn options(pool: &PgPool, call: &'static str) -> (i32, i32, i32) {
    sqlx::query_as(call)
        .fetch_one(pool)
        .await
        .expect("the flow can be created")
}

async fn queues(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select queue_name::text from pgmq.meta order by 1")
        .fetch_all(pool)
        .await
        .expect("queues can be listed")
}

#[tokio::test]
async fn a_flow_keeps_its_spelling_and_its_queue_is_lower_case() {
    let db = TestDb::new().await;
    let slug = create(&db.pool, "CrateAudit").await.expect("created");
    assert_eq!(slug, "CrateAudit");
    assert_eq!(count(&db.pool, "pgflow.flows").await, 1);
    assert_eq!(queues(&db.pool).await, ["crateaudit"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn options_left_out_or_null_are_3_attempts_5_s_and_60_s() {
    let db = TestDb::new().await;
    let columns = options(
        &db.pool,
        "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('a')",
    );
    assert_eq!(columns.await, (3, 5, 60));
    let columns = options(
        &db.pool,
        "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('b', null, null, null)",
    );
    assert_eq!(columns.await, (3, 5, 60));
    let columns = options(
        &db.pool,
        "select opt_max_attempts, opt_base_delay, opt_timeout
         from pgflow.create_flow('c', max_attempts => 1, base_delay => 0, timeout => 2147483647)",
    );
    assert_eq!(columns.await, (1, 0, i32::MAX));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_option_can_be_given_by_itself_and_the_others_keep_their_defaults() {
    let db = TestDb::new().await;
    for (call, expected) in [
        (
            "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('a', max_attempts => 7)",
            (7, 5, 60),
        ),
        (
            "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('b', base_delay => 7)",
            (3, 7, 60),
        ),
        (
            "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('c', timeout => 7)",
            (3, 5, 7),
        ),
    ] {
        assert_eq!(options(&db.pool, call).await, expected);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_row_that_is_inserted_without_the_function_has_the_same_defaults() {
    let db = TestDb::new().await;
    let columns = options(
        &db.pool,
        "insert into pgflow.flows (flow_slug) values ('a') returning opt_max_attempts, opt_base_delay, opt_timeout",
    );
    assert_eq!(columns.await, (3, 5, 60));
}

#[tokio::test]
async fn the_same_flow_again_is_returned_as_it_is_stored() {
    let db = TestDb::new().await;
    let first = options(
        &db.pool,
        "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('a', 7, 8, 9)",
    );
    assert_eq!(first.await, (7, 8, 9));
    let again = options(
        &db.pool,
        "select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.create_flow('a', 1, 1, 1)",
    );
    assert_eq!(again.await, (7, 8, 9));
    assert_eq!(count(&db.pool, "pgflow.flows").await, 1);
    assert_eq!(queues(&db.pool).await, ["a"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_option_out_of_bounds_is_refused_and_nothing_is_left() {
    let db = TestDb::new().await;
    for (call, message) in [
        (
            "select pgflow.create_flow('a', max_attempts => 0)",
            "PF004: flow a: max_attempts is 0; it counts the first attempt too, so it must be at least 1",
        ),
        (
            "select pgflow.create_flow('a', base_delay => -1)",
            "PF004: flow a: base_delay is -1 seconds; it must not be negative",
        ),
        (
            "select pgflow.create_flow('a', timeout => 0)",
            "PF004: flow a: timeout is 0 seconds; it must be at least 1",
        ),
    ] {
        assert_eq!(raised(sqlx::query(call).execute(&db.pool).await), message);
    }
    assert_eq!(count(&db.pool, "pgflow.flows").await, 0);
    assert!(queues(&db.pool).await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_invalid_slug_is_refused_and_nothing_is_left() {
    let db = TestDb::new().await;
    for slug in ["crate-audit", "", "run", "a__b", "_a", "a_", "é"] {
        assert_eq!(
            raised(create(&db.pool, slug).await),
            format!("PF004: flow slug \"{slug}\" is not valid")
        );
    }
    assert_eq!(
        raised(
            sqlx::query("select pgflow.create_flow(null)")
                .execute(&db.pool)
                .await
        ),
        "PF004: flow slug \"NULL\" is not valid"
    );
    assert!(queues(&db.pool).await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_slug_may_have_47_characters_and_no_more() {
    let db = TestDb::new().await;
    let longest = "f".repeat(47);
    create(&db.pool, &longest).await.expect("47 fit");
    let longer = "g".repeat(48);
    assert_eq!(
        raised(create(&db.pool, &longer).await),
        format!(
            "PF010: flow \"{longer}\": queue name \"{longer}\" has 48 characters; the limit is 47"
        )
    );
    assert_eq!(queues(&db.pool).await, [longest]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_slug_that_differs_only_in_case_is_refused() {
    let db = TestDb::new().await;
    create(&db.pool, "orders").await.expect("created");
    assert_eq!(
        raised(create(&db.pool, "Orders").await),
        "PF006: flow \"Orders\" differs from flow \"orders\" only in case"
    );
    assert_eq!(count(&db.pool, "pgflow.flows").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_queue_that_no_flow_owns_is_never_adopted() {
    let db = TestDb::new().await;
    sqlx::query("select pgmq.create('orders')")
        .execute(&db.pool)
        .await
        .expect("created");
    sqlx::query("insert into pgmq.meta values ('Invoices', false, false, now())")
        .execute(&db.pool)
        .await
        .expect("listed in another spelling");
    assert_eq!(
        raised(create(&db.pool, "orders").await),
        "PF006: flow \"orders\": a queue \"orders\" exists, and no flow owns it"
    );
    assert_eq!(
        raised(create(&db.pool, "invoices").await),
        "PF006: flow \"invoices\": a queue \"Invoices\" exists, and no flow owns it"
    );
    assert_eq!(count(&db.pool, "pgflow.flows").await, 0);
}

#[tokio::test]
async fn a_queue_listed_under_several_spellings_is_refused_even_to_its_owner() {
    let db = TestDb::new().await;
    create(&db.pool, "orders").await.expect("created");
    sqlx::query("insert into pgmq.meta values ('Orders', false, false, now())")
        .execute(&db.pool)
        .await
        .expect("listed in another spelling");
    assert_eq!(
        raised(create(&db.pool, "orders").await),
        "PF006: flow \"orders\": queue \"orders\" is listed under several spellings: Orders, orders"
    );
}

#[tokio::test]
async fn a_flow_whose_queue_was_dropped_is_told_so() {
    let db = TestDb::new().await;
    create(&db.pool, "orders").await.expect("created");
    sqlx::query("select pgmq.drop_queue('orders')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    assert_eq!(
        raised(create(&db.pool, "orders").await),
        "PF006: flow \"orders\": its queue \"orders\" is no longer listed in pgmq.meta"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_name_that_another_flow_routes_a_step_to_is_refused() {
    let db = TestDb::new().await;
    define(&db.pool, "shop", &[step("pay")]).await;
    sqlx::query("update pgflow.steps set queue_name = 'orders'")
        .execute(&db.pool)
        .await
        .expect("routed");
    assert_eq!(
        raised(create(&db.pool, "orders").await),
        "PF006: flow \"orders\": queue \"orders\" already belongs to flow \"shop\""
    );
    assert_eq!(queues(&db.pool).await, ["shop"]);
    assert_invariants(&db.pool).await;
}
