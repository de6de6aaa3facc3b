//! The private server of `pgflow dev`.

use std::{
    io::{BufRead as _, BufReader, Read as _},
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
        .stderr(Stdio::piped())
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
    /// What ctrl-c does; also what the command said on standard error.
    fn stop(mut self) -> (Database, String) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        (self.database, said)
    }
}

#[test]
fn dev_gives_a_migrated_local_database_until_it_is_interrupted() {
    let dev = start(&[]);
    let status = json(&dev.database.pgflow(&["status", "--json"]).done());
    assert_eq!(status["is_current"], true);
    assert_eq!(status["installation"]["environment"], "local");
    let (database, said) = dev.stop();
    database.pgflow(&["status"]).failed(1);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        "migrated and marked local; its data goes when it ends, unless --data-dir keeps it"
    );
    assert_eq!(
        lines[1],
        format!(
            "use it with: export DATABASE_URL='{}'; stop it with ctrl-c",
            database.url
        )
    );
    assert_eq!(lines[2..], ["stopping; its data goes with it"]);
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
    let (_, said) = first.stop();
    let place = data.display();
    for line in [
        format!("migrated and marked local; its data stays in {place} when it ends\n"),
        format!("\nstopping; its data stays in {place}\n"),
    ] {
        assert!(said.contains(&line), "{said}");
    }
    let second = start(&[&arguments[..], &["--json"]].concat());
    second
        .database
        .pgflow(&["start", "kept", "--input", "{}"])
        .done();
    // Standard output has all of it, for programs.
    assert_eq!(second.stop().1, "");
}

fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o755)
}
