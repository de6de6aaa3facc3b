//! However its owner ends, the server stops and its directory goes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::owner::{
    INTERRUPTED, Owner, Then, assert_all_gone, command, directory, eventually, is_alive, server_pid,
};
use crate::place::{private, scratch};

#[tokio::test]
async fn dropped() {
    let database = private().start().await.unwrap();
    let directory = directory(database.url());
    let pid = server_pid(&directory);
    assert!(is_alive(&pid));
    drop(database);
    assert!(!is_alive(&pid));
    assert!(!directory.exists());
}

#[tokio::test]
async fn stopped_while_connections_are_open() {
    let database = private().start().await.unwrap();
    let directory = directory(database.url());
    let pid = server_pid(&directory);
    let pool = database.pool().await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    sqlx::query("create table t as select 1")
        .execute(&mut *transaction)
        .await
        .unwrap();
    database.stop().await.unwrap();
    assert!(!is_alive(&pid));
    assert!(!directory.exists());
    assert!(transaction.commit().await.is_err());
}

#[test]
fn owner_killed() {
    let mut owner = Owner::spawn(command(Then::Hold));
    let mut ready = owner.ready().unwrap();
    let pid = server_pid(&ready.directory());
    owner.kill();
    assert_all_gone(&ready.directory(), &pid);
    ready.end_sibling();
}

#[test]
fn owner_returns_exits_or_panics() {
    for then in [Then::Return, Then::Exit, Then::Panic] {
        let mut owner = Owner::spawn(command(then));
        let mut ready = owner.ready().unwrap();
        assert_eq!(owner.wait(), then != Then::Panic);
        eventually(&format!("the directory is gone after {then:?}"), || {
            !ready.directory().exists()
        });
        ready.end_sibling();
    }
}

#[test]
fn owner_killed_while_the_server_starts() {
    // Open to whomever the server runs as.
    let temporary = tempfile::tempdir_in(scratch()).unwrap();
    fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let is_empty = || fs::read_dir(temporary.path()).unwrap().next().is_none();
    for (what, has_come) in STAGES {
        let mut command = command(Then::Hold);
        command.env("TMPDIR", temporary.path());
        let owner = Owner::spawn(command);
        eventually(what, || {
            let entries = fs::read_dir(temporary.path()).unwrap().flatten();
            entries.into_iter().any(|home| has_come(&home.path()))
        });
        owner.kill();
        eventually(
            &format!("nothing is left after a kill when {what}"),
            is_empty,
        );
        eventually("no process has the directory open", || {
            !is_in_use(temporary.path())
        });
    }
}

type Stage = (&'static str, fn(&Path) -> bool);

const STAGES: [Stage; 4] = [
    ("the supervisor runs", |home| {
        // Emptied and locked just before.
        home.join("server.log").exists() && is_in_use(home)
    }),
    ("initdb runs", |home| home.join("data.new/global").exists()),
    ("initdb is done", |home| home.join("data").exists()),
    ("the server runs", |home| {
        home.join("data/postmaster.pid").exists()
    }),
];

/// Returns whether the command line of any process names `directory`.
fn is_in_use(directory: &Path) -> bool {
    command_lines().contains(directory.to_str().unwrap())
}

fn command_lines() -> String {
    if cfg!(target_os = "linux") {
        // Slim containers have no `ps`. Processes come and go while we read.
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.map(|process| fs::read(process.path().join("cmdline")));
        let lines = lines
            .flatten()
            .map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.collect()
    } else {
        let output = Command::new("ps")
            .args(["-A", "-o", "args"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn ctrl_c_is_the_owners_to_handle() {
    let mut owner = Owner::spawn(command(Then::Hold));
    let ready = owner.ready().unwrap();
    let pid = server_pid(&ready.directory());
    owner.interrupt_group();
    assert_eq!(owner.line([INTERRUPTED]), "interrupted: 42");
    assert!(is_alive(&pid));
    owner.kill();
    assert_all_gone(&ready.directory(), &pid);
}
