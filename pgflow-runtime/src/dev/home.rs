//! The directory of a private server: its layout, who may enter it, and who uses it.
//!
//! `data/` the cluster; `server.log`; `owner.lock`; `exited`; and the socket. Nobody but the server's user (and
//! root) gets in, which is why connections through the socket need no password.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::error::DevError;
use super::postgres::Written;
use super::user::ServerUser;

/// The longest path of a Unix socket: `sun_path` without its final NUL.
const SOCKET_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// The longest name of the socket below its directory, with the slash.
const SOCKET_NAME: usize = "/.s.PGSQL.65535".len();
/// How long the server of an ended owner may take to stop.
const SHUTDOWN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    socket_directory: String,
    /// Goes away with the server; here until a supervisor takes over.
    ephemeral: Option<TempDir>,
    pub(super) user: Option<ServerUser>,
    pub(super) is_kept: bool,
}

impl Home {
    /// A new directory below `parent`, or where the system keeps temporary files.
    pub(super) fn temporary(parent: Option<&Path>) -> Result<Self, DevError> {
        let user = ServerUser::for_directory(None)?;
        let (directory, socket_directory) = match parent {
            Some(parent) => directory_in(parent, user.as_ref())?,
            None => short_directory(user.as_ref())?,
        };
        Ok(Self {
            path: directory.path().to_owned(),
            socket_directory,
            ephemeral: Some(directory),
            user,
            is_kept: false,
        })
    }

    pub(super) fn kept(path: &Path) -> Result<Self, DevError> {
        let failed = |source| DevError::Io {
            what: format!("preparing `{}`", path.display()),
            expected: "a path for a directory of your own",
            source,
        };
        let path = std::path::absolute(path).map_err(failed)?;
        fs::create_dir_all(&path).map_err(failed)?;
        let is_empty = fs::read_dir(&path).map_err(failed)?.next().is_none();
        if !is_empty && !path.join(OWNER_LOCK).exists() {
            return Err(DevError::ForeignDirectory { path });
        }
        let user = ServerUser::for_directory(Some(&path))?;
        close(&path, user.as_ref())?;
        let (socket_directory, ephemeral) = if let Some(path) = for_socket(&path) {
            (path, None)
        } else {
            let (directory, path) = short_directory(user.as_ref())?;
            (path, Some(directory))
        };
        Ok(Self {
            path,
            socket_directory,
            ephemeral,
            user,
            is_kept: true,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn socket_directory(&self) -> &str {
        &self.socket_directory
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    pub(super) fn exited(&self) -> PathBuf {
        self.path.join("exited")
    }

    /// The directory that the supervisor removes when the server has stopped.
    pub(super) fn ephemeral(&self) -> Option<&Path> {
        self.ephemeral.as_ref().map(TempDir::path)
    }

    /// From here on the supervisor removes what goes away with the server.
    pub(super) fn leave_to_supervisor(&mut self) {
        if let Some(directory) = self.ephemeral.take() {
            let _ = directory.keep();
        }
    }

    /// The Postgres that wrote the data; `None` when there is none yet.
    pub(super) fn written_by(&self) -> Result<Option<Written>, DevError> {
        let path = self.data().join("PG_VERSION");
        let failed = |source| DevError::Io {
            what: format!("reading `{}`", path.display()),
            expected: "the major version of Postgres",
            source,
        };
        match fs::read_to_string(&path) {
            Ok(text) => {
                let major = text
                    .trim()
                    .parse()
                    .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
                let home = self.path.clone();
                Ok(Some(Written { major, home }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes the caller the one owner, and waits until the server of an earlier owner has stopped.
    pub(super) fn claim(&self, url: &str) -> Result<Claim, DevError> {
        let mut owner = self.open(OWNER_LOCK)?;
        if !try_lock(&owner, &self.path)? {
            let mut url = String::new();
            owner
                .read_to_string(&mut url)
                .map_err(|source| self.failed("reading the lock of", source))?;
            return Err(DevError::DataInUse {
                path: self.path.clone(),
                url,
            });
        }
        owner
            .set_len(0)
            .and_then(|()| owner.write_all(url.as_bytes()))
            .map_err(|source| self.failed("writing the lock of", source))?;

        let log = self.open("server.log")?;
        let deadline = Instant::now() + SHUTDOWN;
        while !try_lock(&log, &self.path)? {
            if Instant::now() > deadline {
                return Err(DevError::StillRunning {
                    path: self.path.clone(),
                    pid: self.server_pid(),
                    waited: SHUTDOWN.as_secs(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        log.set_len(0)
            .map_err(|source| self.failed("emptying the log of", source))?;
        match fs::remove_file(self.exited()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("cleaning", error))
            }
            _ => Ok(Claim { owner, log }),
        }
    }

    fn open(&self, name: &str) -> Result<File, DevError> {
        let path = self.path.join(name);
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|source| self.failed("opening a file of", source))?;
        if let Some(user) = &self.user {
            user.give(&path)?;
        }
        Ok(file)
    }

    fn server_pid(&self) -> String {
        let pid_file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        pid_file.lines().next().unwrap_or("PID").to_owned()
    }

    fn failed(&self, what: &str, source: io::Error) -> DevError {
        DevError::Io {
            what: format!("{what} `{}`", self.path.display()),
            expected: "a directory of your own on a local file system",
            source,
        }
    }
}

const OWNER_LOCK: &str = "owner.lock";

/// The two locks of a directory.
#[derive(Debug)]
pub(super) struct Claim {
    /// Locked while the owner lives; holds the URL. No child process inherits it.
    pub(super) owner: File,
    /// Locked while any process of the server lives, as all of them inherit it.
    pub(super) log: File,
}

fn try_lock(file: &File, home: &Path) -> Result<bool, DevError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(DevError::Io {
            what: format!("locking a file in `{}`", home.display()),
            expected: "a file system that supports locks",
            source,
        }),
    }
}

/// Closes `directory` to everybody but the server's user.
fn close(directory: &Path, user: Option<&ServerUser>) -> Result<(), DevError> {
    if let Some(user) = user {
        user.give(directory)?;
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).map_err(|source| {
        DevError::Io {
            what: format!("closing `{}` to other users", directory.display()),
            expected: "a directory of your own",
            source,
        }
    })?;
    user.map_or(Ok(()), |user| user.check_reach(directory))
}

/// A new directory that can hold a socket and that the server's user can reach.
fn short_directory(user: Option<&ServerUser>) -> Result<(TempDir, String), DevError> {
    let first = directory_in(&std::env::temp_dir(), user);
    // TMPDIR may be deep, or closed to the server's user.
    first.or_else(|error| directory_in(Path::new("/tmp"), user).map_err(|_| error))
}

fn directory_in(parent: &Path, user: Option<&ServerUser>) -> Result<(TempDir, String), DevError> {
    let directory = tempfile::Builder::new()
        .prefix("pgflow-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(|source| DevError::Io {
            what: format!("creating a directory in `{}`", parent.display()),
            expected: "a directory that we may write to",
            source,
        })?;
    let Some(path) = for_socket(directory.path()) else {
        return Err(DevError::SocketPath {
            path: directory.path().to_owned(),
            limit: SOCKET_LIMIT,
        });
    };
    close(directory.path(), user)?;
    if let Some(user) = user {
        user.check_removal(directory.path())?;
    }
    Ok((directory, path))
}

/// The path as text when a socket fits into it and a URL can name it.
fn for_socket(directory: &Path) -> Option<String> {
    let path = directory.to_str()?;
    (path.len() + SOCKET_NAME <= SOCKET_LIMIT).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_other_files_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("thesis.tex"), "\\begin").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = Home::kept(directory.path()).unwrap_err();
        assert!(
            matches!(error, DevError::ForeignDirectory { .. }),
            "{error}"
        );
        let mode = directory.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn only_one_owner_and_the_second_learns_the_url() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        let home = Home::kept(&path).unwrap();
        let claim = home.claim("postgres://first").unwrap();
        let error = Home::kept(&path)
            .unwrap()
            .claim("postgres://second")
            .unwrap_err();
        assert!(
            error.to_string().contains("DATABASE_URL=postgres://first "),
            "{error}"
        );
        drop(claim);
        // A test beside this one that starts a program just now holds a copy of the lock until that program is loaded.
        let since = std::time::Instant::now();
        while let Err(error) = home.claim("postgres://third") {
            assert!(
                since.elapsed() < std::time::Duration::from_secs(10),
                "{error}"
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn nobody_else_can_enter() {
        for home in [Home::temporary(None).unwrap(), {
            let directory = tempfile::tempdir().unwrap();
            Home::kept(&directory.keep()).unwrap()
        }] {
            let mode = home.path().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            fs::remove_dir_all(home.path()).unwrap();
        }
    }

    #[test]
    fn a_deep_directory_gets_a_short_socket() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(100));
        let home = Home::kept(&deep).unwrap();
        assert!(home.socket_directory().len() + SOCKET_NAME <= SOCKET_LIMIT);
        assert_eq!(home.ephemeral(), Some(Path::new(home.socket_directory())));
        let shallow = Home::kept(&directory.path().join("d")).unwrap();
        assert_eq!(Path::new(shallow.socket_directory()), shallow.path());
        assert_eq!(shallow.ephemeral(), None);
    }

    #[test]
    fn half_written_versions_are_errors() {
        let home = Home::temporary(None).unwrap();
        assert!(home.written_by().unwrap().is_none());
        fs::create_dir(home.data()).unwrap();
        fs::write(home.data().join("PG_VERSION"), "15\n").unwrap();
        assert_eq!(home.written_by().unwrap().unwrap().major, 15);
        fs::write(home.data().join("PG_VERSION"), "").unwrap();
        assert!(home.written_by().is_err());
    }
}
