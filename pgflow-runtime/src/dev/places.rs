//! The directories of Postgres binaries on each system, and the way to install them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories that may hold binaries, best first: PATH, `pg_config`, then the usual places.
pub(super) fn candidates() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // A relative entry would run whatever lies in the current directory.
    let on_path: Vec<PathBuf> = env::split_paths(&path)
        .filter(|entry| entry.is_absolute())
        .collect();
    // Lazily: asking `pg_config` and listing directories costs more than a look at PATH.
    on_path
        .into_iter()
        .chain(std::iter::once_with(pg_config_bindir).flatten())
        .chain(std::iter::once_with(usual_places).flatten())
}

fn pg_config_bindir() -> Option<PathBuf> {
    // Without `pg_config` there is one place less to look at.
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    Some(line.trim())
        .filter(|line| !line.is_empty())
        .map(PathBuf::from)
}

/// A directory whose entries `<prefix><major>` are installations with binaries in `<bin>`.
struct Place {
    parent: &'static str,
    prefix: &'static str,
    bin: &'static str,
}

const PLACES: [Place; 9] = [
    // Debian, Ubuntu.
    Place {
        parent: "/usr/lib/postgresql",
        prefix: "",
        bin: "bin",
    },
    // Packages of postgresql.org for Red Hat, Fedora, Rocky, SUSE.
    Place {
        parent: "/usr",
        prefix: "pgsql-",
        bin: "bin",
    },
    // SUSE; Alpine.
    Place {
        parent: "/usr/lib",
        prefix: "postgresql",
        bin: "bin",
    },
    Place {
        parent: "/usr/libexec",
        prefix: "postgresql",
        bin: "",
    },
    // Homebrew on Apple silicon, on Intel, on Linux.
    Place {
        parent: "/opt/homebrew/opt",
        prefix: "postgresql@",
        bin: "bin",
    },
    Place {
        parent: "/usr/local/opt",
        prefix: "postgresql@",
        bin: "bin",
    },
    Place {
        parent: "/home/linuxbrew/.linuxbrew/opt",
        prefix: "postgresql@",
        bin: "bin",
    },
    // Postgres.app; MacPorts.
    Place {
        parent: "/Applications/Postgres.app/Contents/Versions",
        prefix: "",
        bin: "bin",
    },
    Place {
        parent: "/opt/local/lib",
        prefix: "postgresql",
        bin: "bin",
    },
];

fn usual_places() -> Vec<PathBuf> {
    PLACES
        .iter()
        .flat_map(|place| versions(Path::new(place.parent), place.prefix, place.bin))
        .collect()
}

/// The installations below `parent`, highest version first.
fn versions(parent: &Path, prefix: &str, bin: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let major = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((major, entry.path().join(bin)))
        })
        .collect();
    found.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the instructions to install Postgres on this platform.
pub(super) fn install_hint() -> String {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let command = if cfg!(target_os = "macos") {
        Some("brew install postgresql@17")
    } else {
        linux_install_command(&os_release)
    };
    command.map_or_else(
        || "install it from https://www.postgresql.org/download/".to_owned(),
        |command| format!("install it with `{command}`"),
    )
}

fn linux_install_command(os_release: &str) -> Option<&'static str> {
    let families: Vec<&str> = os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches(['"', '\'']).split_whitespace())
        .collect();
    let commands = [
        ("debian", "sudo apt-get install postgresql"),
        ("ubuntu", "sudo apt-get install postgresql"),
        ("fedora", "sudo dnf install postgresql-server"),
        ("rhel", "sudo dnf install postgresql-server"),
        ("arch", "sudo pacman -S postgresql"),
        ("alpine", "sudo apk add postgresql"),
        ("suse", "sudo zypper install postgresql-server"),
        ("opensuse", "sudo zypper install postgresql-server"),
    ];
    commands
        .into_iter()
        .find(|(family, _)| families.contains(family))
        .map(|(_, command)| command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_version_first_and_by_number() {
        let root = tempfile::tempdir().unwrap();
        for name in ["pgsql-9", "pgsql-15", "pgsql-14", "pgsql-latest", "other"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found = versions(root.path(), "pgsql-", "bin");
        let expected = ["pgsql-15/bin", "pgsql-14/bin", "pgsql-9/bin"];
        assert_eq!(found, expected.map(|name| root.path().join(name)));
    }

    #[test]
    fn absent_places_are_skipped() {
        assert!(versions(Path::new("/nonexistent"), "", "bin").is_empty());
    }

    #[test]
    fn install_commands_follow_the_family() {
        for (os_release, command) in [
            (
                "NAME=\"Debian\"\nID=debian\n",
                Some("sudo apt-get install postgresql"),
            ),
            (
                "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n",
                Some("sudo dnf install postgresql-server"),
            ),
            (
                "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
                Some("sudo zypper install postgresql-server"),
            ),
            ("ID=plan9\n", None),
            ("", None),
        ] {
            assert_eq!(linux_install_command(os_release), command, "{os_release}");
        }
    }
}
