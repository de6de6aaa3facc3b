//! Finds the Postgres binaries.

use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::MINIMUM;
use super::error::DevError;
use super::places;

/// Data that exists already and needs the binaries of its major version.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) major: u32,
    /// The directory as its owner knows it.
    pub(super) home: PathBuf,
}

impl Written {
    fn refuses(&self, found: String) -> DevError {
        DevError::DataVersion {
            path: self.home.clone(),
            written_by: self.major,
            found,
        }
    }
}

/// A directory with `postgres` and `initdb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Postgres {
    pub(super) bin: PathBuf,
    pub(super) major: u32,
}

impl Postgres {
    /// Finds the binaries of this machine, of the version that wrote the data when there is data.
    pub(super) fn find(data: Option<&Written>) -> Result<Self, DevError> {
        if let Some(bin) = env::var_os("PGFLOW_PG_BIN").filter(|bin| !bin.is_empty()) {
            return Self::at_chosen(PathBuf::from(bin), data);
        }
        Self::among(places::candidates(), data)
    }

    fn at_chosen(bin: PathBuf, data: Option<&Written>) -> Result<Self, DevError> {
        let problem = match Self::at(&bin) {
            Ok(found) if found.is_too_old() => format!("it holds Postgres {}", found.major),
            Ok(found) => {
                return match data.filter(|data| data.major != found.major) {
                    Some(data) => Err(data.refuses(format!("{} in PGFLOW_PG_BIN", found.major))),
                    None => Ok(found),
                };
            }
            Err(problem) => problem,
        };
        Err(DevError::BinDirectory { path: bin, problem })
    }

    fn among(
        candidates: impl IntoIterator<Item = PathBuf>,
        data: Option<&Written>,
    ) -> Result<Self, DevError> {
        let mut seen = HashSet::new();
        let mut rejected = String::new();
        let mut other_majors = Vec::new();
        for bin in candidates {
            let Ok(real) = bin.join("postgres").canonicalize() else {
                continue;
            };
            if !seen.insert(real) {
                continue;
            }
            match Self::at(&bin) {
                Ok(found) if found.is_too_old() => {
                    let holds = format!("; `{}` holds Postgres {}", bin.display(), found.major);
                    rejected.push_str(&holds);
                }
                Ok(found) if data.is_none_or(|data| data.major == found.major) => return Ok(found),
                Ok(found) => other_majors.push(found.major.to_string()),
                Err(problem) => {
                    let reason = format!("; `{}` does not serve: {problem}", bin.display());
                    rejected.push_str(&reason);
                }
            }
        }
        match data {
            Some(data) if !other_majors.is_empty() => Err(data.refuses(other_majors.join(", "))),
            _ => Err(DevError::NotInstalled {
                rejected,
                install: places::install_hint(),
            }),
        }
    }

    fn at(bin: &Path) -> Result<Self, String> {
        if !bin.join("initdb").is_file() {
            return Err("it holds no `initdb`".to_owned());
        }
        let output = Command::new(bin.join("postgres"))
            .arg("--version")
            .output()
            .map_err(|error| format!("its `postgres` can't be run ({error})"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let major = major_version(&text)
            .ok_or_else(|| format!("its `postgres --version` says {:?}", text.trim()))?;
        Ok(Self {
            bin: bin.to_owned(),
            major,
        })
    }

    fn is_too_old(&self) -> bool {
        self.major < MINIMUM
    }
}

/// The major version in the output of `postgres --version`, such as `postgres (PostgreSQL) 17.2
/// (Debian ..)`.
fn major_version(output: &str) -> Option<u32> {
    let version = output
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn installation(root: &Path, name: &str, version: &str) -> PathBuf {
        let bin = root.join(name);
        fs::create_dir(&bin).unwrap();
        for tool in ["postgres", "initdb"] {
            let path = bin.join(tool);
            fs::write(&path, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bin
    }

    #[test]
    fn major_version_of_releases_betas_and_forks() {
        for (output, major) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
                Some(15),
            ),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres (PostgreSQL) 9.6.24\n", Some(9)),
            ("postgres (EnterpriseDB) 16.1\n", Some(16)),
            ("command not found\n", None),
            ("", None),
        ] {
            assert_eq!(major_version(output), major, "{output:?}");
        }
    }

    #[test]
    fn takes_the_first_that_is_new_enough() {
        let root = tempfile::tempdir().unwrap();
        let old = installation(root.path(), "old", "postgres (PostgreSQL) 13.4");
        let new = installation(root.path(), "new", "postgres (PostgreSQL) 17.1");
        let absent = root.path().join("absent");
        let found = Postgres::among([absent, old, new.clone()], None).unwrap();
        assert_eq!(
            found,
            Postgres {
                bin: new,
                major: 17
            }
        );
    }

    #[test]
    fn data_decides_between_major_versions() {
        let root = tempfile::tempdir().unwrap();
        let newer = installation(root.path(), "17", "postgres (PostgreSQL) 17.1");
        let older = installation(root.path(), "15", "postgres (PostgreSQL) 15.2");
        let both = [newer, older.clone()];
        let written_by = |major| Written {
            major,
            home: PathBuf::from("/srv/kept"),
        };
        let found = Postgres::among(both.clone(), Some(&written_by(15))).unwrap();
        assert_eq!(found.bin, older);
        let among = Postgres::among(both, Some(&written_by(16))).unwrap_err();
        let chosen = Postgres::at_chosen(older, Some(&written_by(16))).unwrap_err();
        for (error, found) in [
            (among, "found 17, 15;"),
            (chosen, "found 15 in PGFLOW_PG_BIN;"),
        ] {
            let message = error.to_string();
            assert!(
                message.contains("`/srv/kept` was written by Postgres 16"),
                "{message}"
            );
            assert!(message.contains(found), "{message}");
        }
    }

    #[test]
    fn says_what_is_too_old_and_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let old = installation(root.path(), "old", "postgres (PostgreSQL) 13.4");
        let error = Postgres::among([old.clone()], None).unwrap_err();
        let message = error.to_string();
        let holds = format!("`{}` holds Postgres 13", old.display());
        assert!(message.contains(&holds), "{message}");
        assert!(message.contains("14 or newer"), "{message}");
        assert!(message.contains("PGFLOW_PG_BIN"), "{message}");
    }

    #[test]
    fn a_chosen_directory_is_never_replaced_by_another() {
        let root = tempfile::tempdir().unwrap();
        let old = installation(root.path(), "old", "postgres (PostgreSQL) 13.4");
        for (bin, problem) in [
            (root.path().join("absent"), "it holds no `initdb`"),
            (old, "it holds Postgres 13"),
        ] {
            let error = Postgres::at_chosen(bin, None).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
