//! Migration 0003: what it can't carry is refused with a list, and nothing changes; a database in
//! use continues.

use pgflow_migrations::{LATEST_VERSION, PROTOCOL_VERSION};
use pgflow_runtime::migrate::{self, MigrateError, Migrator, NotReadyError, check_installed};

use super::{Blank, blank, chain};
use crate::sql::stored::{assert_same, stored};
use crate::upgrade::POPULATED_AT_LEVEL_2 as POPULATED;

/// A database in use at level 2.
async fn populated() -> Blank {
    let database = blank().await;
    Migrator::new().up_to(2).run(&database.pool).await.unwrap();
    database.run(POPULATED).await;
    database
}

/// A flow at level 2, as its rows.
fn flow(slug: &str, steps: &[&str]) -> String {
    let steps = steps.iter().enumerate().map(|(index, step)| {
        format!(
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name)
             values ('{slug}', '{step}', {index}, lower('{slug}'));"
        )
    });
    let flow = format!("insert into pgflow.flows (flow_slug) values ('{slug}');");
    std::iter::once(flow).chain(steps).collect()
}

/// Returns the refusal of the upgrade, by `migrate` and by the script; neither changes anything.
async fn refusal(database: &Blank) -> String {
    let (dump, rows) = (database.dump().await, stored(&database.pool).await);
    let error = migrate::migrate(&database.pool).await.unwrap_err();
    assert!(
        matches!(
            error,
            MigrateError::Migration {
                version: 3,
                name: "step_queues",
                ..
            }
        ),
        "{error:?}"
    );
    let by_script = database.error_of(migrate::script()).await;
    assert_eq!(database.dump().await, dump);
    assert_same(&rows, &stored(&database.pool).await);
    let level = "select max(version)::bigint from pgflow.schema_migrations";
    assert_eq!(database.count(level).await, 2);
    assert_eq!(protocol(database).await, 1);
    let message = chain(&error);
    // The script's error is Postgres' own: the part that says what is wrong, of both.
    let what = by_script
        .rsplit_once("database: ")
        .map_or(by_script.as_str(), |(_, what)| what);
    let what = what.split(" at line ").next().unwrap_or(what);
    assert!(message.contains(what), "{message}\n{what}");
    message
}

async fn protocol(database: &Blank) -> i64 {
    database
        .count("select protocol_version::bigint from pgflow.installation")
        .await
}

/// That the upgrade of a database in use is refused for these rows, naming each of what is listed;
/// and goes through once they are gone.
async fn assert_refused(rows: &str, message: &str, listed: &[&str], cure: &str) {
    let database = populated().await;
    database.run(rows).await;
    let refusal = refusal(&database).await;
    assert!(refusal.contains(message), "{refusal}");
    for one in listed {
        assert!(refusal.contains(one), "{one}: {refusal}");
    }
    assert!(!refusal.contains("OrderTotals"), "{refusal}");
    database.run(cure).await;
    migrate::migrate(&database.pool).await.unwrap();
}

#[tokio::test]
async fn each_flow_slug_that_is_not_valid_any_more_is_refused() {
    for slug in ["orders_", "_orders", "or__ders", "_", "O__"] {
        assert_refused(
            &flow(slug, &["a"]),
            "these flow slugs are not valid any more: ",
            &[slug],
            "delete from pgflow.steps where step_slug = 'a'; delete from pgflow.flows where flow_slug <> 'OrderTotals'",
        )
        .await;
    }
}

#[tokio::test]
async fn each_step_slug_that_is_not_valid_any_more_is_refused() {
    for slug in ["a_", "_a", "a__b"] {
        assert_refused(
            &flow("orders", &["fine", slug]),
            "these step slugs are not valid any more: ",
            &[&format!("orders.{slug}")],
            "delete from pgflow.steps where flow_slug = 'orders'",
        )
        .await;
    }
}

#[tokio::test]
async fn flow_slugs_that_differ_only_in_case_are_refused() {
    assert_refused(
        &[
            flow("orders", &[]),
            flow("Orders", &[]),
            flow("ORDERS", &[]),
            flow("other", &[]),
        ]
        .concat(),
        "these flow slugs differ only in case: ",
        &["orders", "Orders", "ORDERS"],
        "delete from pgflow.flows where flow_slug in ('orders', 'Orders')",
    )
    .await;
}

#[tokio::test]
async fn step_slugs_that_differ_only_in_case_are_refused() {
    assert_refused(
        &[flow("orders", &["a", "b", "A"]), flow("other", &["B"])].concat(),
        "these step slugs differ only in case: orders.a, orders.\"A\"",
        &[],
        "delete from pgflow.steps where step_slug = 'A'",
    )
    .await;
}

#[tokio::test]
async fn routes_that_were_changed_by_hand_are_refused() {
    let changed = "update pgflow.steps set queue_name = 'elsewhere' where flow_slug = 'orders' and step_slug <> 'b'";
    assert_refused(
        &[&flow("orders", &["a", "b", "C"]), changed].concat(),
        "these steps are routed to another queue than that of their flow: orders.a in queue elsewhere, orders.\"C\" in queue elsewhere",
        &[],
        "update pgflow.steps set queue_name = 'orders' where flow_slug = 'orders'",
    )
    .await;
}

#[tokio::test]
async fn of_several_things_at_once_each_is_listed_in_its_turn() {
    let database = populated().await;
    for rows in [
        flow("bad_", &["a"]),
        flow("_bad", &["a"]),
        flow("steps", &["x_", "fine", "_x"]),
        flow("more_steps", &["x__y"]),
        flow("twins", &["b", "B", "c", "C"]),
        flow("Twins", &[]),
        flow("pair", &[]),
        flow("PAIR", &[]),
        flow("routed", &["a"]),
        "update pgflow.steps set queue_name = 'elsewhere' where flow_slug = 'routed'".to_owned(),
    ] {
        database.run(rows).await;
    }
    for (listed, cure) in [
        (
            vec!["flow slugs are not valid", "bad_", "_bad"],
            "delete from pgflow.steps where flow_slug in ('bad_', '_bad'); delete from pgflow.flows where flow_slug in ('bad_', '_bad')",
        ),
        (
            vec![
                "step slugs are not valid",
                "more_steps.x__y",
                "steps.x_",
                "steps._x",
            ],
            "delete from pgflow.steps where step_slug in ('x__y', 'x_', '_x')",
        ),
        (
            vec![
                "flow slugs differ only in case",
                "twins",
                "Twins",
                "pair",
                "PAIR",
            ],
            "delete from pgflow.flows where flow_slug in ('Twins', 'PAIR')",
        ),
        (
            vec![
                "step slugs differ only in case",
                "twins.b, twins.\"B\"; twins.c, twins.\"C\"",
            ],
            "delete from pgflow.steps where step_slug in ('B', 'C')",
        ),
        (
            vec!["routed to another queue", "routed.a in queue elsewhere"],
            "update pgflow.steps set queue_name = 'routed' where flow_slug = 'routed'",
        ),
    ] {
        let refusal = refusal(&database).await;
        for one in listed {
            assert!(refusal.contains(one), "{one}: {refusal}");
        }
        database.run(cure).await;
    }
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(
        (report.from_version, report.to_version),
        (2, LATEST_VERSION)
    );
}

#[tokio::test]
async fn what_the_new_rules_allow_is_carried() {
    let database = populated().await;
    let flows = [
        flow("x1", &["a_b", "A1"]),
        flow("Other", &["a_b"]),
        flow("runs", &["Run"]),
    ];
    database.run(flows.concat()).await;
    let definitions = "select string_agg(f.flow_slug || ' ' || f.opt_base_delay || ' ' || coalesce(s.step_slug || ' ' || s.queue_name, ''), ', '
        order by f.flow_slug collate \"C\", s.step_index) from pgflow.flows f left join pgflow.steps s using (flow_slug)";
    let before = database.text(definitions).await;
    migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(database.text(definitions).await, before);
    assert_eq!(
        database
            .text("select string_agg(distinct queue_mode, ', ') from pgflow.flows")
            .await,
        "flow"
    );
    let added = "insert into pgflow.flows (flow_slug) values ('x1_')";
    assert!(database.error_of(added).await.contains("slug_is_valid"));
    let twin = "insert into pgflow.flows (flow_slug) values ('RUNS')";
    assert!(
        database
            .error_of(twin)
            .await
            .contains("idx_flows_slug_ignoring_case")
    );
    let twin = "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name) values ('x1', 'a1', 2, 'x1')";
    assert!(
        database
            .error_of(twin)
            .await
            .contains("idx_steps_slug_ignoring_case")
    );
}

#[tokio::test]
async fn a_database_in_use_is_upgraded_by_migrate_and_by_the_script_alike() {
    let (by_migrate, by_script) = (populated().await, populated().await);
    let report = migrate::migrate(&by_migrate.pool).await.unwrap();
    assert_eq!(report.protocol_version, Some(PROTOCOL_VERSION));
    by_script.run(migrate::script()).await;
    assert_eq!(by_script.dump().await, by_migrate.dump().await);
    let tasks = "select string_agg(to_jsonb(t)::jsonb - array['queued_at', 'started_at', 'completed_at', 'failed_at'] #>> '{}', E'\\n'
        order by run_id, step_slug, task_index) from pgflow.step_tasks t";
    let expected = by_migrate.text(tasks).await;
    assert_eq!(expected.lines().count(), 11);
    assert_eq!(by_script.text(tasks).await, expected);
    for database in [&by_migrate, &by_script] {
        assert_eq!(protocol(database).await, i64::from(PROTOCOL_VERSION));
        assert!(
            migrate::migrate(&database.pool)
                .await
                .unwrap()
                .is_unchanged()
        );
    }
}

#[tokio::test]
async fn a_worker_that_speaks_the_other_protocol_is_told_before_and_after() {
    let database = populated().await;
    let check = async || check_installed(&mut database.pool.acquire().await.unwrap()).await;
    assert_eq!(protocol(&database).await, 1);
    assert!(matches!(
        check().await.unwrap_err(),
        NotReadyError::DatabaseOlder { database: 2, .. }
    ));
    migrate::migrate(&database.pool).await.unwrap();
    check().await.unwrap();
    // As a program of the older protocol sees it, the other way round.
    database
        .run("update pgflow.installation set protocol_version = 1")
        .await;
    assert!(matches!(
        check().await.unwrap_err(),
        NotReadyError::Protocol {
            database: 1,
            code: PROTOCOL_VERSION
        }
    ));
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(report.protocol_version, Some(PROTOCOL_VERSION));
    check().await.unwrap();
}
