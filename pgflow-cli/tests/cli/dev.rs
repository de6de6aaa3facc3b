//! The private server of `pgflow dev`.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::support::{Database, command, json};

struct Dev {
    child: Child,
    database: Database,
}

/// Starts the command, and reads the URL from the first line that it writes.
fn start(arguments: &[&str]) -> Dev {
    let mut child = command(&[&["dev"], arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = if arguments.contains(&"--json") {
        json(&line)["url"].as_str().unwrap().to_owned()
    } else {
        line.trim_end().to_owned()
    };
    assert!(url.starts_with("postgres://"), "{url}");
    let database = Database { url };
    Dev { child, database }
}

impl Dev {
    /// What ctrl-c does.
    fn stop(mut self) -> Database {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.database
    }
}

#[test]
fn dev_gives_a_migrated_local_database_until_it_is_interrupted() {
    let dev = start(&[]);
    let status = json(&dev.database.pgflow(&["status", "--json"]).done());
    assert_eq!(status["is_current"], true);
    assert_eq!(status["installation"]["environment"], "local");
    let database = dev.stop();
    database.pgflow(&["status"]).failed(1);
}

#[test]
fn dev_keeps_its_data_in_the_directory_that_it_is_given() {
    // Root's server runs as another user, who must be able to reach the directory.
    let home = tempfile::Builder::new()
        .permissions(permissions())
        .tempdir()
        .unwrap();
    let data = home.path().join("data");
    let arguments = ["--data-dir", data.to_str().unwrap()];
    let first = start(&arguments);
    first.database.execute("select pgflow.create_flow('kept')");
    first.stop();
    let second = start(&[&arguments[..], &["--json"]].concat());
    second
        .database
        .pgflow(&["start", "kept", "--input", "{}"])
        .done();
    second.stop();
}

fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o755)
}
