//! `set_vt_batch`: when each message of a queue can be read next.

use serde_json::json;
use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::flows::{define, step};
use crate::support::rows::{messages, raised};

async fn set(pool: &PgPool, queue: &str, ids: &[i64], offsets: &[i32]) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar("select s from pgflow.set_vt_batch(queue_name => $1, msg_ids => $2, vt_offsets => $3) s order by 1")
        .bind(queue)
        .bind(ids)
        .bind(offsets)
        .fetch_all(pool)
        .await
}

async fn queue_of(pool: &PgPool, count: i32) -> Vec<i64> {
    sqlx::query("select pgmq.create('letters')")
        .execute(pool)
        .await
        .expect("created");
    sqlx::query_scalar("select pgmq.send('letters', to_jsonb(n), '{\"h\": 1}'::jsonb) from generate_series(1, $1) n")
        .bind(count)
        .fetch_all(pool)
        .await
        .expect("sent")
}

#[tokio::test]
async fn each_message_gets_its_own_offset_from_now_on_and_nothing_else_changes() {
    let db = TestDb::new().await;
    let ids = queue_of(&db.pool, 4).await;
    let before = messages(&db.pool, "letters").await;
    let set = set(
        &db.pool,
        "Letters",
        &[ids[2], ids[0], ids[1]],
        &[3600, 60, 0],
    )
    .await;
    assert_eq!(set.expect("set"), ids[..3]);
    let after = messages(&db.pool, "letters").await;
    let hidden: Vec<i64> = after
        .iter()
        .zip(&before)
        .map(|(a, b)| (a.visible_at - b.visible_at).num_minutes())
        .collect();
    assert_eq!(hidden, [1, 0, 60, 0]);
    assert!(after[1].visible_at >= before[1].visible_at);
    assert_eq!(after[3], before[3]);
    for (after, before) in after.iter().zip(&before) {
        assert_eq!(
            (after.read_count, &after.body),
            (before.read_count, &before.body)
        );
    }
    let headers: i64 =
        sqlx::query_scalar("select count(*) from pgmq.q_letters where headers = '{\"h\": 1}'")
            .fetch_one(&db.pool)
            .await
            .expect("headers can be read");
    assert_eq!(headers, 4);
}

#[tokio::test]
async fn an_offset_below_zero_is_in_the_past() {
    let db = TestDb::new().await;
    let ids = queue_of(&db.pool, 1).await;
    set(&db.pool, "letters", &ids, &[i32::MAX])
        .await
        .expect("set");
    assert!(messages(&db.pool, "letters").await[0].hidden_for > 2_000_000_000);
    set(&db.pool, "letters", &ids, &[-5]).await.expect("set");
    assert_eq!(messages(&db.pool, "letters").await[0].hidden_for, 0);
}

#[tokio::test]
async fn a_message_that_is_not_there_is_not_returned() {
    let db = TestDb::new().await;
    let ids = queue_of(&db.pool, 1).await;
    let set_one = set(&db.pool, "letters", &[ids[0], 99], &[1, 1]).await;
    assert_eq!(set_one.expect("set"), ids);
    assert!(
        set(&db.pool, "letters", &[], &[])
            .await
            .expect("nothing")
            .is_empty()
    );
    let null = sqlx::query("select pgflow.set_vt_batch('letters', null, null)");
    let null = null.fetch_all(&db.pool).await.expect("nothing, too");
    assert!(null.is_empty());
}

#[tokio::test]
async fn arrays_of_different_lengths_are_refused() {
    let db = TestDb::new().await;
    let ids = queue_of(&db.pool, 1).await;
    assert_eq!(
        raised(set(&db.pool, "letters", &ids, &[1, 2]).await),
        "PF009: set_vt_batch got 1 message ids and 2 offsets; it needs one offset for each message"
    );
    let null = sqlx::query("select pgflow.set_vt_batch('letters', array[1::bigint], null)");
    assert!(raised(null.execute(&db.pool).await).starts_with("PF009: "));
}

#[tokio::test]
async fn a_queue_name_is_an_identifier_and_never_sql() {
    let db = TestDb::new().await;
    queue_of(&db.pool, 1).await;
    let hostile = "letters set vt = now(); drop table pgmq.q_letters; --";
    assert_eq!(
        raised(set(&db.pool, hostile, &[1], &[1]).await),
        format!("PF009: there is no queue \"{hostile}\"")
    );
    assert_eq!(messages(&db.pool, "letters").await[0].body, json!(1));
}

#[tokio::test]
async fn a_queue_that_never_was_is_refused_and_one_that_was_dropped_has_no_message() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    assert_eq!(
        raised(set(&db.pool, "order", &[1], &[1]).await),
        "PF009: there is no queue \"order\""
    );
    for call in [
        "select pgflow.set_vt_batch(null, '{1}', '{1}')",
        "select pgflow.set_vt_batch('', '{1}', '{1}')",
        "select pgflow.set_vt_batch('orders', '{1}', '{null}')",
    ] {
        let refused = raised(sqlx::query(call).execute(&db.pool).await);
        assert!(refused.starts_with("PF009: "), "{call}: {refused}");
    }
    sqlx::query("select pgmq.drop_queue('orders')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    let none = set(&db.pool, "Orders", &[1], &[1]).await;
    assert_eq!(none.expect("it is a flow's"), [0; 0]);
}
