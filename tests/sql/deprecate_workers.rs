//! `deprecate_workers`: workers are asked to stop, and their functions stay as they are.

use serde_json::json;
use sqlx::postgres::{PgExecutor, PgPool};
use uuid::Uuid;

use super::mark_worker_stopped::stop;
use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{claim, define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{
    heartbeats, standing, told_to_stop, track, try_register, worker_of,
};
use crate::support::rows::raised;

async fn deprecate(
    db: impl PgExecutor<'_>,
    functions: &[&str],
    reason: Option<&str>,
) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar("select w from pgflow.deprecate_workers($1, $2) w order by w")
        .bind(functions)
        .bind(reason)
        .fetch_all(db)
        .await
}

async fn functions(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select to_jsonb(w)::text from pgflow.worker_functions w order by 1")
        .fetch_all(pool)
        .await
        .expect("functions can be read")
}

#[tokio::test]
async fn the_workers_are_told_and_their_functions_stay() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "mails", &[]).await;
    let [one, two, three, other] = [
        worker_of(&db.pool, "charge", "orders").await,
        worker_of(&db.pool, "charge", "mails").await,
        worker_of(&db.pool, "notify", "mails").await,
        worker_of(&db.pool, "bystander", "mails").await,
    ];
    let before = functions(&db.pool).await;
    let told = deprecate(&db.pool, &["notify", "charge"], Some("new code")).await;
    assert_eq!(told.expect("told"), [one, two, three]);
    assert_eq!(functions(&db.pool).await, before);
    let reason = Some("new code".to_owned());
    assert_eq!(
        told_to_stop(&db.pool, &[one, two, three, other]).await,
        [reason.clone(), reason.clone(), reason.clone(), None]
    );
    assert_eq!(
        heartbeats(&db.pool, &[one, other]).await.expect("alive"),
        [(one, true, reason), (other, false, None)]
    );
    start(&db.pool, "orders", json!({})).await;
    assert_eq!(claim(&db.pool, one, 1).await, []);
    // A new one starts, and works.
    let new = try_register(&db.pool, "charge", "orders").await;
    let new = new.expect("registered");
    assert_eq!(claim(&db.pool, new, 1).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn who_was_told_or_has_stopped_is_not_told_again() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let early = worker_of(&db.pool, "charge", "orders").await;
    assert_eq!(
        deprecate(&db.pool, &["charge"], None).await.expect("told"),
        [early]
    );
    let stopped = worker_of(&db.pool, "charge", "orders").await;
    stop(&db.pool, stopped).await;
    let late = worker_of(&db.pool, "charge", "orders").await;
    let told = deprecate(&db.pool, &["charge"], Some("again")).await;
    assert_eq!(told.expect("told"), [late]);
    assert_eq!(
        told_to_stop(&db.pool, &[early, stopped, late]).await,
        [Some("-".to_owned()), None, Some("again".to_owned())]
    );
    let call = deprecate(&db.pool, &["charge"], Some("once more"));
    let told = unchanged(&db.pool, call).await.expect("nobody is left");
    assert_eq!(told, [] as [Uuid; 0]);
    assert_eq!(standing(&db.pool, "charge").await, "enabled");
}

#[tokio::test]
async fn one_unknown_name_and_nobody_is_told() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    worker_of(&db.pool, "charge", "orders").await;
    track(&db.pool, "idle").await;
    for (names, expected) in [
        (
            vec!["charge", "nobody"],
            "PF001: worker function \"nobody\" is not known",
        ),
        (vec![], "PF009: no worker function was named"),
    ] {
        let call = deprecate(&db.pool, &names, None);
        assert_eq!(raised(unchanged(&db.pool, call).await), expected);
    }
    let call = deprecate(&db.pool, &["idle"], None);
    let told = unchanged(&db.pool, call).await.expect("it has no worker");
    assert_eq!(told, [] as [Uuid; 0]);
}
