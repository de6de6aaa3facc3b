use std::io;
use std::path::PathBuf;

use crate::migrate::MigrateError;
use crate::sql::CallError;

/// The reason why a development database is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevError {
    /// No usable Postgres binaries on this machine.
    #[error(
        "no usable Postgres was found{rejected}; expected `postgres` and `initdb` of version {} or newer; \
         {install}, name their directory in PGFLOW_PG_BIN, or set DATABASE_URL to a running server",
        super::MINIMUM
    )]
    NotInstalled {
        /// The binaries that were found, with the reasons against them; empty when nothing was
        /// found.
        rejected: String,
        /// The instructions for this platform.
        install: String,
    },

    /// `PGFLOW_PG_BIN` names a directory that does not serve.
    #[error(
        "PGFLOW_PG_BIN is `{}`: {problem}; expected a directory with `postgres` and `initdb` of \
         version {} or newer; correct or unset it",
        path.display(),
        super::MINIMUM
    )]
    BinDirectory {
        /// The value of the variable.
        path: PathBuf,
        /// The fault of the directory.
        problem: String,
    },

    /// The kept data was written by another major version of Postgres.
    #[error(
        "the data in `{}` was written by Postgres {written_by}; expected the binaries of that major \
         version, found {found}; install Postgres {written_by}, or remove the directory to start afresh",
        path.display()
    )]
    DataVersion {
        /// The directory given to `data_dir`.
        path: PathBuf,
        /// Major version that wrote the data.
        written_by: u32,
        /// The version on this machine.
        found: String,
    },

    /// Another owner runs a server on the kept data.
    #[error(
        "the data in `{}` is in use by another owner; expected one owner at a time; set DATABASE_URL={url} \
         to share its server, or end that owner",
        path.display()
    )]
    DataInUse {
        /// The directory given to `data_dir`.
        path: PathBuf,
        /// URL of the running server.
        url: String,
    },

    /// A server of an earlier owner does not stop.
    #[error(
        "the server of an earlier owner still runs on the data in `{}`; expected it to stop within \
         {waited} s; stop it with `kill -INT {pid}`",
        path.display()
    )]
    StillRunning {
        /// The directory given to `data_dir`.
        path: PathBuf,
        /// Process id of the server.
        pid: String,
        /// Seconds waited.
        waited: u64,
    },

    /// The directory given to `data_dir` holds files of others.
    #[error(
        "`{}` holds other files; expected a directory that is absent, empty or made by an earlier \
         development database; choose another one",
        path.display()
    )]
    ForeignDirectory {
        /// The directory given to `data_dir`.
        path: PathBuf,
    },

    /// A directory entry could be a trap: a link, or a file or directory of another user.
    #[error(
        "`{}` is not used, because {problem}; expected {expected}; remove it, or choose another directory",
        path.display()
    )]
    Unsafe {
        /// The path of the entry.
        path: PathBuf,
        /// The fault of the entry.
        problem: String,
        /// The expected entry.
        expected: &'static str,
    },

    /// The user of the server is not in the list of users, in which initdb looks it up.
    #[error(
        "initdb of Postgres needs a name for the user that runs it, and user id {uid} has none; expected \
         an entry in /etc/passwd, which a container that is given a number for its user often lacks; add \
         one, start as a user that has one, or set DATABASE_URL to a running server"
    )]
    NamelessUser {
        /// The number of the user.
        uid: u32,
    },

    /// The limit of open files is too low for a server.
    #[error(
        "a process may open {limit} files here, which is too few for Postgres; expected some hundreds; \
         raise the limit (`ulimit -n 1024`), or set DATABASE_URL to a running server"
    )]
    TooFewFiles {
        /// The limit of this process, which the server inherits.
        limit: u64,
    },

    /// The private server ended without a request.
    #[error(
        "the private Postgres ended {status} while it was in use; expected it to run until it is stopped; \
         start it again; see the end of its log:\n{log}"
    )]
    Ended {
        /// The exit status.
        status: String,
        /// The last lines of its log.
        log: String,
    },

    /// Started by root, and the server's user can't use the directory.
    #[error(
        "`{}` is out of reach for user `{user}`, as whom the server runs because Postgres refuses to run \
         as root; expected {expected}; choose another directory, or start as an ordinary user",
        path.display()
    )]
    OutOfReach {
        /// The directory.
        path: PathBuf,
        /// The server's user.
        user: String,
        /// The right that the user lacks.
        expected: &'static str,
    },

    /// Started by root, and there is no user to run the server as.
    #[error(
        "Postgres refuses to run as root, and there is no other user to run it as; expected a user \
         `postgres` or `nobody`; create one with `useradd --system postgres`, or start as an ordinary user"
    )]
    NoServerUser,

    /// A path is too long for a Unix socket.
    #[error(
        "there is no directory for the server's socket: `{}` is too long; expected at most {limit} bytes \
         with the name of the socket; choose a shorter directory",
        path.display()
    )]
    SocketPath {
        /// The last path tried.
        path: PathBuf,
        /// The operating system's limit for the whole path.
        limit: usize,
    },

    /// A setting that can't be passed on.
    #[error("setting `{name}` is refused: {problem}")]
    Setting {
        /// Name of the setting.
        name: String,
        /// The fault and the expectation.
        problem: String,
    },

    /// The server ended, or did not accept connections in time.
    #[error(
        "the private Postgres {problem}; expected it to accept connections within {waited} s; see the end \
         of its log:\n{log}"
    )]
    NotStarted {
        /// The error of the command.
        problem: String,
        /// Seconds it was given.
        waited: u64,
        /// The last lines of the server's log.
        log: String,
    },

    /// The supervisor of the server did not end well.
    #[error(
        "the supervisor of the private Postgres ended with {status}; expected it to stop the server and to \
         clean up; see whether a server still runs on `{}`, stop it with `pg_ctl stop -D {}/data`",
        home.display(),
        home.display()
    )]
    NotStopped {
        /// Exit status of the supervisor.
        status: String,
        /// The directory of the server.
        home: PathBuf,
    },

    /// Connecting or a statement failed.
    #[error("{what} failed; expected {expected}")]
    Database {
        /// The attempted action.
        what: String,
        /// The precondition of the action.
        expected: &'static str,
        /// The error of the driver.
        #[source]
        source: sqlx::Error,
    },

    /// The database could not be migrated.
    #[error(transparent)]
    Migrate(#[from] MigrateError),

    /// The migrated database could not be marked as a developer's own.
    #[error("marking the database as local failed; expected a migrated database of this release")]
    MarkLocal {
        /// The answer of the database.
        #[source]
        source: CallError,
    },

    /// The operating system refused something.
    #[error("{what} failed; expected {expected}")]
    Io {
        /// The attempted action.
        what: String,
        /// The precondition of the action.
        expected: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },

    /// Private servers are not supported on this platform.
    #[error(
        "private Postgres servers need a Unix; expected DATABASE_URL on this platform; set it to a running server"
    )]
    Unsupported,
}

impl DevError {
    /// The error when a file or directory could not be given to the server's user.
    #[cfg(unix)]
    pub(super) fn not_given(path: &std::path::Path, uid: u32, source: io::Error) -> Self {
        let expected = if source.kind() == io::ErrorKind::PermissionDenied {
            "that root may give files away, which takes CAP_CHOWN and a file system on which root has \
             its rights; grant that, or start as an ordinary user"
        } else {
            "a file system that supports owners"
        };
        Self::Io {
            what: format!("giving `{}` to user {uid}", path.display()),
            expected,
            source,
        }
    }
}
