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
    /// Stops the command as ctrl-c does, and returns its standard error.
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

#[test]
fn dev_ends_with_an_error_when_its_postgres_has_ended() {
    let dev = start(&[]);
    let pid = "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    let pid = dev.database.text(pid);
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let ended = dev.child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: the private Postgres ended with exit status 0"),
        "{said}"
    );
    assert!(said.contains("\n       "), "the log is indented: {said}");
}

#[test]
fn dev_uses_no_link_and_leaves_what_it_leads_to_alone() {
    let home = tempfile::Builder::new()
        .permissions(permissions())
        .tempdir()
        .unwrap();
    let precious = home.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    let data = home.path().join("data");
    let target = home.path().join("target");
    let arguments = ["dev", "--data-dir", data.to_str().unwrap()];
    // The directory itself, and then each file that is made in it.
    std::os::unix::fs::symlink(&target, &data).unwrap();
    let error = crate::support::pgflow(&arguments).failed(1);
    assert!(error.contains("it is a link to"), "{error}");
    assert!(!target.exists());
    for name in ["owner.lock", "server.log"] {
        std::fs::remove_file(&data)
            .or_else(|_| std::fs::remove_dir_all(&data))
            .unwrap();
        std::fs::create_dir(&data).unwrap();
        if name == "server.log" {
            std::fs::write(data.join("owner.lock"), "").unwrap();
            let owner = std::os::unix::fs::MetadataExt::uid(&data.metadata().unwrap());
            std::os::unix::fs::chown(data.join("owner.lock"), Some(owner), None).unwrap();
        }
        std::os::unix::fs::symlink(&precious, data.join(name)).unwrap();
        let error = crate::support::pgflow(&arguments).failed(1);
        assert!(error.contains("because it"), "{name}: {error}");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
}

fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o755)
}
