//! Rights of everybody: `migrate` takes them back each time, and `status` shows them.

use pgflow_runtime::migrate;

use super::{Blank, blank};

async fn migrated() -> Blank {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
}

async fn open(database: &Blank) -> Vec<String> {
    let status = migrate::status(&database.pool).await.unwrap();
    assert_eq!(status.is_current(), status.open_to_everybody.is_empty());
    status.open_to_everybody
}

#[tokio::test]
async fn a_fresh_database_is_closed_to_everybody() {
    let database = migrated().await;
    assert_eq!(open(&database).await, [""; 0]);
}

#[tokio::test]
async fn a_dump_restored_without_rights_is_closed_by_the_next_migrate() {
    let database = migrated().await;
    // What `pg_restore --no-acl` leaves: no access list at all.
    database
        .run("update pg_catalog.pg_proc set proacl = null where pronamespace = 'pgflow'::regnamespace")
        .await;
    let functions = open(&database).await;
    assert!(functions.len() > 70, "{functions:?}");
    let start = "function pgflow.start_flow(text,jsonb,uuid)";
    assert!(
        functions.iter().any(|function| function == start),
        "{functions:?}"
    );
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(report.closed, functions);
    assert!(!report.is_unchanged());
    assert!(report.functions.is_empty());
    let line = format!("revoked the rights of everybody on {start}\n");
    assert!(report.to_string().contains(&line), "{report}");
    assert_eq!(open(&database).await, [""; 0]);
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .is_unchanged()
    );
}

#[tokio::test]
async fn each_kind_of_right_is_found_and_a_right_by_name_is_kept() {
    for (grant, object) in [
        (
            "execute on function pgflow.start_flow",
            "function pgflow.start_flow(text,jsonb,uuid)",
        ),
        ("select on pgflow.runs", "table pgflow.runs"),
        ("update on pgflow.coverage", "table pgflow.coverage"),
        ("select (input) on pgflow.runs", "table pgflow.runs"),
        (
            "usage on sequence pgflow.claims_claim_id_seq",
            "sequence pgflow.claims_claim_id_seq",
        ),
        ("create on schema pgflow", "schema pgflow"),
    ] {
        let database = migrated().await;
        let role = format!("named_in_{}", database.name);
        database
            .run(format!(
                "create role {role}; grant {grant} to {role}; grant {grant} to public"
            ))
            .await;
        assert_eq!(open(&database).await, [object], "{grant}");
        let report = migrate::migrate(&database.pool).await.unwrap();
        assert_eq!(report.closed, [object], "{grant}");
        assert_eq!(open(&database).await, [""; 0], "{grant}");
        let named = "select count(*)::text from pg_catalog.pg_shdepend d join pg_catalog.pg_roles r on r.oid = d.refobjid
             where r.rolname = 'named_in_' || current_database() and d.deptype = 'a'";
        assert_eq!(database.text(named).await, "1", "{grant}");
    }
}

#[tokio::test]
async fn the_printed_script_closes_the_same() {
    let database = migrated().await;
    database
        .run("grant execute on all functions in schema pgflow to public; grant select on all tables in schema pgflow to public")
        .await;
    assert!(open(&database).await.len() > 80);
    database.run(migrate::script()).await;
    assert_eq!(open(&database).await, [""; 0]);
}
