//! Started by root, the server runs as another user; these tests need root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use pgflow_runtime::dev::DevError;

use crate::owner::{
    Owner, Then, assert_all_gone, command, command_of, directory, keeping, server_pid,
};
use crate::place::{place, private, scratch};

/// The usual number of `nobody`: initdb wants its user to have a name.
const OTHER: u32 = 65_534;

fn is_root(test: &str) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let is_root = directory.path().metadata().unwrap().uid() == 0;
    if !is_root {
        println!("skipped {test}: it needs root");
    }
    is_root
}

#[tokio::test]
async fn root_connects_and_others_do_not() {
    if !is_root("root_connects_and_others_do_not") {
        return;
    }
    let database = private().start().await.unwrap();
    database.pool().await.unwrap();
    let directory = directory(database.url());
    assert_ne!(directory.join("data").metadata().unwrap().uid(), 0);
    let enter = |uid| {
        let mut list = Command::new("ls");
        list.arg(&directory)
            .uid(uid)
            .gid(uid)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(enter(0));
    assert!(!enter(OTHER));
}

#[test]
fn an_ordinary_user_needs_no_root() {
    if !is_root("an_ordinary_user_needs_no_root") {
        return;
    }
    // The test program may lie where only root gets.
    let (parent, _) = place();
    let program = parent.path().join("owner");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let kept = parent.path().join("kept");
    fs::create_dir(&kept).unwrap();
    chown(&kept, Some(OTHER), Some(OTHER)).unwrap();

    let ordinary = || {
        let mut command = command_of(&program, Then::Hold);
        command.uid(OTHER).gid(OTHER).env("TMPDIR", scratch());
        command
    };
    let mut owner = Owner::spawn(ordinary());
    let mut ready = owner.ready().unwrap();
    let pid = server_pid(&ready.directory());
    assert_eq!(ready.directory().metadata().unwrap().uid(), OTHER);
    owner.kill();
    assert_all_gone(&ready.directory(), &pid);
    ready.end_sibling();

    // The ordinary user, root, and the ordinary user again share kept data.
    for command in [ordinary(), command(Then::Hold), ordinary()] {
        let mut owner = Owner::spawn(keeping(command, &kept));
        let mut ready = owner.ready().unwrap();
        assert_eq!(kept.join("data").metadata().unwrap().uid(), OTHER);
        owner.kill();
        ready.end_sibling();
    }
}

#[tokio::test]
async fn a_directory_out_of_reach_is_named() {
    if !is_root("a_directory_out_of_reach_is_named") {
        return;
    }
    let (parent, path) = place();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let builder = private().data_dir(&path);
    let error = builder.start().await.unwrap_err();
    assert!(matches!(&error, DevError::OutOfReach { path: named, .. } if *named == path));
}

#[test]
fn a_tmpdir_that_the_servers_user_cannot_use_is_replaced() {
    if !is_root("a_tmpdir_that_the_servers_user_cannot_use_is_replaced") {
        return;
    }
    // Closed to the user; open, but the user could not remove its directory at the end.
    for mode in [0o700, 0o755] {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let mut command = command(Then::Report);
        command.env("TMPDIR", directory.path());
        let ready = Owner::spawn(command).ready().unwrap();
        assert!(!ready.directory().starts_with(directory.path()), "{mode:o}");
    }
}
