use std::{path::Path, time::Duration};

use pgflow::sqlx::{self, PgPool};

use super::example;
use crate::support::{TestDb, eventually, invariants::assert_invariants};

const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn reports_on_the_lock_file_of_this_project() {
    let db = TestDb::new().await;
    let output = example("crate_audit", &db.url).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();

    let packages: usize = text.split(' ').next().unwrap().parse().unwrap();
    assert!(packages >= 200, "{text}");
    for part in [
        "MIT OR Apache-2.0",
        "Editions:",
        "Pinned in several versions",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert_eq!(runs(&db.pool).await, [("completed".to_owned(), None)]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_crate_that_is_not_in_the_registry_counts_as_unknown() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let lock_file = lock_file(folder.path(), 3);
    let output = example("crate_audit", &db.url)
        .arg(lock_file)
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.starts_with("3 packages, 0 MB"), "{text}");
    assert!(text.contains("     3  unknown"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_no_lock_file_is_named_and_not_tried_again() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("letter.txt");
    std::fs::write(&other, "Dear Ada,").unwrap();
    let output = example("crate_audit", &db.url)
        .arg(&other)
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    let expected = format!("{} is not a lock file of cargo", other.display());
    assert!(text.contains(&expected), "{text}");

    let [(status, Some(message))] = &runs(&db.pool).await[..] else {
        panic!("there is one run, with a message");
    };
    assert_eq!(status, "failed");
    assert!(message.contains(&expected), "{message}");
    let attempts: i32 =
        sqlx::query_scalar("select sum(attempts_count)::int from pgflow.step_tasks")
            .fetch_one(&db.pool)
            .await
            .unwrap();
    assert_eq!(attempts, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_whose_process_was_killed_half_way_is_finished_by_the_next_one() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let lock_file = lock_file(folder.path(), 2000);

    let mut first = example("crate_audit", &db.url)
        .arg(&lock_file)
        .spawn()
        .unwrap();
    eventually(DEADLINE, "some crates are inspected", async || {
        (inspected(&db.pool).await >= 20).then_some(())
    })
    .await;
    first.start_kill().unwrap();
    first.wait().await.unwrap();
    let done = inspected(&db.pool).await;
    assert!(done < 2000, "the process was killed too late");
    assert_eq!(runs(&db.pool).await, [("started".to_owned(), None)]);

    // The claims of the dead worker come back when their timeout and 30 s have passed: as if they
    // had.
    sqlx::query(
        "with claimed as (update pgflow.claims set look_at = look_at - interval '10 minutes')
         update pgflow.step_tasks
         set queued_at = queued_at - interval '10 minutes', started_at = started_at - interval '10 minutes'
         where status = 'started'",
    )
    .execute(&db.pool)
    .await
    .unwrap();
    let output = example("crate_audit", &db.url)
        .arg(folder.path().join("other.lock"))
        .output()
        .await
        .unwrap();

    // The run that was left is finished; the new one fails, as its file does not exist.
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("left by an earlier process"), "{text}");
    let mut ends: Vec<String> = runs(&db.pool).await.into_iter().map(|run| run.0).collect();
    ends.sort();
    assert_eq!(ends, ["completed", "failed"]);
    assert_eq!(inspected(&db.pool).await, 2000);
    // Nothing is done twice: the record of transitions has one completion for each task.
    assert_invariants(&db.pool).await;
}

/// A lock file that pins crates which nobody published.
fn lock_file(folder: &Path, packages: usize) -> std::path::PathBuf {
    let path = folder.join("Cargo.lock");
    let pinned: Vec<String> = (0..packages)
        .map(|n| format!("[[package]]\nname = \"nobody-published-{n}\"\nversion = \"1.0.0\"\n"))
        .collect();
    std::fs::write(&path, pinned.join("\n")).unwrap();
    path
}

async fn runs(pool: &PgPool) -> Vec<(String, Option<String>)> {
    sqlx::query_as("select status, error_message from pgflow.runs order by started_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn inspected(pool: &PgPool) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pgflow.step_tasks where step_slug = 'inspect' and status = 'completed'",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}
