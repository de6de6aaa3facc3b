use std::{fs, path::Path};

use pgflow::sqlx;

use super::example;
use crate::support::{TestDb, invariants::assert_invariants};

/// The start of a PNG file of 7 by 5 pixels: as much as telling its kind and size takes.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x07\0\0\0\x05\x08\x02\0\0\0";

fn folder_of_files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write("letter.txt", b"Dear Ada,\nhow are you?");
    write("copies/letter.txt", b"Dear Ada,\nhow are you?");
    write("note", "na\u{ef}ve".as_bytes());
    write("picture.png", PNG);
    write("noise", &[0xff, 0xfe, 0x80, 0x81, 0x00, 0xc0]);
    write(".hidden/secret.txt", b"left out");
    write("target/built.txt", b"left out");
    folder
}

async fn ingest(db: &TestDb, folder: &Path) -> std::process::Output {
    example("media_ingest", &db.url)
        .arg(folder)
        .output()
        .await
        .unwrap()
}

#[tokio::test]
async fn tells_kinds_sizes_and_copies() {
    let db = TestDb::new().await;
    let folder = folder_of_files();
    let output = ingest(&db, folder.path()).await;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let bytes = 2 * 22 + 6 + PNG.len() + 6;
    assert_eq!(
        lines,
        [
            &*format!("5 files, {bytes} bytes"),
            "1  image/png, 35 pixels",
            "3  text, 11 words",
            "1  unknown",
            "1  of them are copies, 22 bytes",
            "",
        ]
    );
    let queues: Vec<String> =
        sqlx::query_scalar("select distinct queue_name from pgflow.step_tasks order by 1")
            .fetch_all(&db.pool)
            .await
            .unwrap();
    let steps = ["describe", "hash", "list", "sniff", "summary"];
    assert_eq!(queues, steps.map(|step| format!("media_ingest__{step}")));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_empty_folder_has_nothing_to_tell() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let output = ingest(&db, folder.path()).await;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("0 files, 0 bytes\n"), "{text}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_and_not_tried_again() {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let output = ingest(&db, &missing).await;
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&*missing.to_string_lossy()), "{text}");
    let attempts: i64 = sqlx::query_scalar("select sum(attempts_count) from pgflow.step_tasks")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!(attempts, 1);
    assert_invariants(&db.pool).await;
}
