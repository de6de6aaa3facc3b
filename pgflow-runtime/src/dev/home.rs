//! The directory of a private server: its layout, its permissions, and its owner.
//!
//! `data/` the cluster; `server.log`; `owner.lock`; `exited`; and the socket. Only the server's
//! user (and root) has access, so connections through the socket need no password.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::directory::Directory;
use super::error::DevError;
use super::postgres::Written;
use super::user::ServerUser;

/// The longest path of a Unix socket: `sun_path` without its final NUL.
const SOCKET_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// The longest name of the socket below its directory, with the slash.
const SOCKET_NAME: usize = "/.s.PGSQL.65535".len();
/// The longest time for the server of an ended owner to stop.
const SHUTDOWN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Home {
    directory: Directory,
    /// The directory of the socket, if it is another one.
    sockets: Option<Directory>,
    socket_directory: String,
    /// Removed with the server; here until a supervisor takes over.
    ephemeral: Option<TempDir>,
    pub(super) user: Option<ServerUser>,
    pub(super) is_kept: bool,
}

impl Home {
    /// A new directory below `parent`, or where the system keeps temporary files.
    pub(super) fn temporary(parent: Option<&Path>) -> Result<Self, DevError> {
        let user = ServerUser::for_owner(None)?;
        let short = match parent {
            Some(parent) => directory_in(parent, user.as_ref())?,
            None => short_directory(user.as_ref())?,
        };
        Ok(Self {
            directory: short.directory,
            sockets: None,
            socket_directory: short.as_text,
            ephemeral: Some(short.removed),
            user,
            is_kept: false,
        })
    }

    pub(super) fn kept(path: &Path) -> Result<Self, DevError> {
        let directory = Directory::open(path, true)?;
        let failed = |source| DevError::Io {
            what: format!("preparing `{}`", directory.path().display()),
            expected: "a path for a directory of your own",
            source,
        };
        if !directory.is_empty().map_err(failed)? && !directory.has(OWNER_LOCK) {
            let path = directory.path().to_owned();
            return Err(DevError::ForeignDirectory { path });
        }
        let user = ServerUser::for_owner(Some(directory.owner().map_err(failed)?))?;
        close(&directory, user.as_ref())?;
        let mut home = Self {
            socket_directory: String::new(),
            sockets: None,
            ephemeral: None,
            user,
            is_kept: true,
            directory,
        };
        if let Some(as_text) = for_socket(home.directory.path()) {
            home.socket_directory = as_text;
        } else {
            let short = short_directory(home.user.as_ref())?;
            home.socket_directory = short.as_text;
            home.sockets = Some(short.directory);
            home.ephemeral = Some(short.removed);
        }
        Ok(home)
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn socket_directory(&self) -> &str {
        &self.socket_directory
    }

    /// Returns whether the server itself listens on its socket for this port: not another process,
    /// and not through a link that leads to another server.
    pub(super) fn has_socket(&self, port: u16) -> bool {
        let sockets = self.sockets.as_ref().unwrap_or(&self.directory);
        sockets.has_socket(&format!(".s.PGSQL.{port}"), self.server_ids().0)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path().join(DATA)
    }

    pub(super) fn exited(&self) -> PathBuf {
        self.path().join(EXITED)
    }

    /// The exit status of the server; none while it runs.
    pub(super) fn exit_status(&self) -> io::Result<Option<String>> {
        let status = self.directory.read(EXITED)?;
        Ok(status.map(|status| status.trim().to_owned()))
    }

    /// The last lines of the server's log; when it can't be read, why.
    pub(super) fn log_tail(&self) -> String {
        const LINES: usize = 20;
        match self.directory.read(LOG) {
            Ok(text) => {
                let text = text.unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(LINES)..].join("\n")
            }
            Err(error) => {
                let path = self.path().join(LOG);
                format!("(`{}` can't be read: {error})", path.display())
            }
        }
    }

    /// The directory that the supervisor removes when the server has stopped.
    pub(super) fn ephemeral(&self) -> Option<&Path> {
        self.ephemeral.as_ref().map(TempDir::path)
    }

    /// From here on the supervisor removes the temporary files of the server.
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
            expected: "the major version of Postgres in a file that is no link",
            source,
        };
        let data = self.directory.subdirectory(DATA).map_err(failed)?;
        let Some(text) = data
            .map_or(Ok(None), |data| data.read("PG_VERSION"))
            .map_err(failed)?
        else {
            return Ok(None);
        };
        let major = text
            .trim()
            .parse()
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let home = self.path().to_owned();
        Ok(Some(Written { major, home }))
    }

    /// Makes the caller the one owner, and waits until the server of an earlier owner has stopped.
    pub(super) fn claim(&self, url: &str) -> Result<Claim, DevError> {
        let mut owner = self.directory.open_file(OWNER_LOCK, self.server_ids())?;
        if !try_lock(&owner, self.path())? {
            let mut url = String::new();
            owner
                .read_to_string(&mut url)
                .map_err(|source| self.failed("reading the lock of", source))?;
            return Err(DevError::DataInUse {
                path: self.path().to_owned(),
                url,
            });
        }
        owner
            .set_len(0)
            .and_then(|()| owner.write_all(url.as_bytes()))
            .map_err(|source| self.failed("writing the lock of", source))?;

        let log = self.directory.open_file(LOG, self.server_ids())?;
        let deadline = Instant::now() + SHUTDOWN;
        while !try_lock(&log, self.path())? {
            if Instant::now() > deadline {
                return Err(DevError::StillRunning {
                    path: self.path().to_owned(),
                    pid: self.server_pid(),
                    waited: SHUTDOWN.as_secs(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        log.set_len(0)
            .map_err(|source| self.failed("emptying the log of", source))?;
        self.directory
            .remove(EXITED)
            .map_err(|source| self.failed("cleaning", source))?;
        Ok(Claim { owner, log })
    }

    /// The user and the group of the server.
    pub(super) fn server_ids(&self) -> (u32, u32) {
        self.user.as_ref().map_or_else(own_ids, ServerUser::ids)
    }

    fn server_pid(&self) -> String {
        let data = self.directory.subdirectory(DATA).ok().flatten();
        let pid_file = data.and_then(|data| data.read("postmaster.pid").ok().flatten());
        let pid = pid_file.unwrap_or_default();
        pid.lines().next().unwrap_or("PID").to_owned()
    }

    fn failed(&self, what: &str, source: io::Error) -> DevError {
        DevError::Io {
            what: format!("{what} `{}`", self.path().display()),
            expected: "a directory of your own on a local file system",
            source,
        }
    }
}

const DATA: &str = "data";
const LOG: &str = "server.log";
const EXITED: &str = "exited";
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
fn close(directory: &Directory, user: Option<&ServerUser>) -> Result<(), DevError> {
    let failed = |source| DevError::Io {
        what: format!("closing `{}` to other users", directory.path().display()),
        expected: "a directory of your own",
        source,
    };
    // First: what its next owner may do is done before it is given away.
    directory.close().map_err(failed)?;
    let Some(user) = user else {
        return Ok(());
    };
    let ids = user.ids();
    if directory.owner().map_err(failed)? != ids {
        directory
            .give(ids.0, ids.1)
            .map_err(|source| DevError::not_given(directory.path(), ids.0, source))?;
    }
    user.check_reach(directory.path())
}

/// A new temporary directory that can hold a socket.
struct ShortDirectory {
    directory: Directory,
    as_text: String,
    removed: TempDir,
}

/// A new directory that can hold a socket and that the server's user can reach.
fn short_directory(user: Option<&ServerUser>) -> Result<ShortDirectory, DevError> {
    let first = directory_in(&std::env::temp_dir(), user);
    // TMPDIR may be deep, or closed to the server's user.
    first.or_else(|error| directory_in(Path::new("/tmp"), user).map_err(|_| error))
}

fn directory_in(parent: &Path, user: Option<&ServerUser>) -> Result<ShortDirectory, DevError> {
    let parent = Directory::resolve(parent, false).or_else(|error| {
        resolved(parent).map_or(Err(error), |path| Directory::resolve(&path, false))
    })?;
    let failed = |source| DevError::Io {
        what: format!("creating a directory in `{}`", parent.path().display()),
        expected: "a directory that we may write to",
        source,
    };
    let removed = tempfile::Builder::new()
        .prefix("pgflow-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent.path())
        .map_err(failed)?;
    let Some(as_text) = for_socket(removed.path()) else {
        return Err(DevError::SocketPath {
            path: removed.path().to_owned(),
            limit: SOCKET_LIMIT,
        });
    };
    let directory = Directory::open(removed.path(), false)?;
    // Where others may rename it, another one may have taken its place.
    if directory.owner().map_err(failed)?.0 != own_ids().0
        || !directory.is_empty().map_err(failed)?
    {
        return Err(DevError::Unsafe {
            path: directory.path().to_owned(),
            problem: "somebody else has put it there".to_owned(),
            expected: "a directory in which only its owner may rename files",
        });
    }
    close(&directory, user)?;
    if let Some(user) = user {
        user.check_removal(directory.path())?;
    }
    Ok(ShortDirectory {
        directory,
        as_text,
        removed,
    })
}

/// Returns the target of a link that root or the current user has made of a whole directory, such
/// as `/tmp` on macOS; none for other links.
fn resolved(path: &Path) -> Option<PathBuf> {
    let link = path.symlink_metadata().ok()?;
    let is_ours = [0, own_ids().0].contains(&link.uid()) && link.is_symlink();
    is_ours.then(|| path.canonicalize().ok()).flatten()
}

fn own_ids() -> (u32, u32) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    (uid.as_raw(), gid.as_raw())
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
    fn a_planted_link_is_refused_and_what_it_leads_to_left_alone() {
        for name in [OWNER_LOCK, LOG] {
            let root = tempfile::tempdir().unwrap();
            let precious = root.path().join("precious");
            fs::write(&precious, "precious").unwrap();
            let path = root.path().join("kept");
            fs::create_dir(&path).unwrap();
            // As an earlier database left it.
            Home::kept(&path)
                .unwrap()
                .claim("postgres://earlier")
                .unwrap();
            fs::remove_file(path.join(name)).unwrap();
            std::os::unix::fs::symlink(&precious, path.join(name)).unwrap();
            let before = precious.metadata().unwrap();
            let error = Home::kept(&path)
                .unwrap()
                .claim("postgres://x")
                .unwrap_err();
            assert!(error.to_string().contains("it is a link"), "{error}");
            let after = precious.metadata().unwrap();
            assert_eq!((before.uid(), before.mode()), (after.uid(), after.mode()));
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        }
    }

    #[test]
    fn reading_the_state_of_a_server_follows_no_link() {
        let root = tempfile::tempdir().unwrap();
        let secret = root.path().join("secret");
        fs::write(&secret, "hunter2").unwrap();
        let home = Home::kept(&root.path().join("kept")).unwrap();
        for name in [LOG, EXITED] {
            std::os::unix::fs::symlink(&secret, home.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.path(), home.data()).unwrap();
        assert!(!home.log_tail().contains("hunter2"));
        assert!(home.exit_status().is_err());
        assert!(home.written_by().is_err());
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
        // A test beside this one that starts a program just now holds a copy of the lock until that
        // program is loaded.
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
