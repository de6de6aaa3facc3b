//! The settings of a private server.

use super::error::DevError;

const DEFAULT_PORT: u16 = 5432;

/// Nobody but the owner's processes connect, so there is no need for the defaults of a big server.
const ALWAYS: [(&str, &str); 3] = [
    ("listen_addresses", ""),
    ("max_connections", "200"),
    ("shared_buffers", "32MB"),
];

/// Data that is deleted with the server needs no protection from a crash of the machine.
const EPHEMERAL: [(&str, &str); 4] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    // Shared memory lies in the data directory and goes with it, also when the server is killed.
    ("dynamic_shared_memory_type", "mmap"),
];

/// The place of the socket and of the data is ours to choose.
const RESERVED: [&str; 2] = ["data_directory", "unix_socket_directories"];

#[derive(Debug, Clone, Default)]
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    pub(super) fn add(&mut self, name: &str, value: String) {
        // As Postgres compares them.
        self.0.push((name.to_ascii_lowercase(), value));
    }

    /// The port, which names the socket.
    pub(super) fn port(&self) -> Result<u16, DevError> {
        let Some((_, port)) = self.0.iter().rfind(|(name, _)| name == "port") else {
            return Ok(DEFAULT_PORT);
        };
        let number = port.parse().ok().filter(|port| *port > 0);
        number.ok_or_else(|| refused("port", format!("it is `{port}`; expected 1 to 65535")))
    }

    /// All settings of the server, the caller's last so that they take precedence.
    pub(super) fn arguments(
        &self,
        is_kept: bool,
        socket_directory: &str,
    ) -> Result<Vec<String>, DevError> {
        let ephemeral = if is_kept { &[][..] } else { &EPHEMERAL[..] };
        let ours = ALWAYS.iter().chain(ephemeral).copied();
        let theirs = self.0.iter().map(|(name, value)| (&**name, &**value));
        // A list of directories, in which commas and spaces need quotes.
        let sockets = format!("\"{}\"", socket_directory.replace('"', "\"\""));
        let mut arguments = vec![
            "-c".to_owned(),
            format!("unix_socket_directories={sockets}"),
        ];
        for (name, value) in ours.chain(theirs) {
            check(name)?;
            arguments.push("-c".to_owned());
            arguments.push(format!("{name}={value}"));
        }
        Ok(arguments)
    }
}

fn check(name: &str) -> Result<(), DevError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if name.is_empty() || !name.chars().all(is_name) {
        let problem = "it is no name of a setting; expected letters, digits, `_` and `.`";
        return Err(refused(name, problem.to_owned()));
    }
    if RESERVED.contains(&name) {
        let problem = "the development database chooses it; leave it out, or use `data_dir`";
        return Err(refused(name, problem.to_owned()));
    }
    Ok(())
}

fn refused(name: &str, problem: String) -> DevError {
    DevError::Setting {
        name: name.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings<const N: usize>(pairs: [(&str, &str); N]) -> Settings {
        Settings(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        )
    }

    #[test]
    fn kept_data_keeps_the_defaults_that_protect_it() {
        let kept = Settings::default()
            .arguments(true, "/run")
            .unwrap()
            .join(" ");
        let ephemeral = Settings::default()
            .arguments(false, "/run")
            .unwrap()
            .join(" ");
        for (name, value) in EPHEMERAL {
            assert!(!kept.contains(name), "{kept}");
            assert!(
                ephemeral.contains(&format!("-c {name}={value}")),
                "{ephemeral}"
            );
        }
    }

    #[test]
    fn the_callers_settings_come_last() {
        let arguments = settings([("fsync", "on")])
            .arguments(false, "/run")
            .unwrap();
        assert_eq!(arguments.last().unwrap(), "fsync=on");
    }

    #[test]
    fn the_last_port_counts() {
        assert_eq!(Settings::default().port().unwrap(), 5432);
        assert_eq!(
            settings([("port", "1"), ("port", "5433")]).port().unwrap(),
            5433
        );
        for port in ["0", "65536", "", "x"] {
            assert!(settings([("port", port)]).port().is_err(), "{port}");
        }
    }

    #[test]
    fn reserved_and_malformed_names_are_refused() {
        for name in [
            "data_directory",
            "unix_socket_directories",
            "",
            "a b",
            "a=b",
            "-x",
        ] {
            let error = settings([(name, "x")])
                .arguments(false, "/run")
                .unwrap_err();
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
    }
}
