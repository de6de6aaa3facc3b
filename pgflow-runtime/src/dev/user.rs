//! Whom the server runs as. Postgres refuses to run as root.

use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::DevError;

/// Another user than ours, because we are root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerUser {
    uid: u32,
    gid: u32,
    name: String,
}

impl ServerUser {
    /// The user for a server with data in `home`; `None` means our own user.
    ///
    /// A directory that belongs to somebody keeps its owner, so that root and its owner can use it in turns.
    pub(super) fn for_directory(home: Option<&Path>) -> Result<Option<Self>, DevError> {
        if id(&["-u"])? != Some(0) {
            return Ok(None);
        }
        if let Some(owner) = home.and_then(|home| home.metadata().ok())
            && owner.uid() != 0
        {
            return Ok(Some(Self {
                uid: owner.uid(),
                gid: owner.gid(),
                name: owner.uid().to_string(),
            }));
        }
        for name in ["postgres", "nobody"] {
            if let (Some(uid), Some(gid)) = (id(&["-u", name])?, id(&["-g", name])?) {
                let name = name.to_owned();
                return Ok(Some(Self { uid, gid, name }));
            }
        }
        Err(DevError::NoServerUser)
    }

    pub(super) fn give(&self, path: &Path) -> Result<(), DevError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(|source| DevError::Io {
            what: format!("giving `{}` to user `{}`", path.display(), self.name),
            expected: "a file system that supports owners",
            source,
        })
    }

    /// Lets `command` run as this user. Std drops root's supplementary groups along with its user.
    pub(super) fn run(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Checks that this user gets into `directory`, which depends on every directory above it.
    pub(super) fn check_reach(&self, directory: &Path) -> Result<(), DevError> {
        let expected = "it to be able to search every directory above";
        self.check("cd \"$1\"", directory, expected)
    }

    /// Checks that this user may remove its `directory`, which depends on the one above it.
    pub(super) fn check_removal(&self, directory: &Path) -> Result<(), DevError> {
        let expected = "it to be able to write to the directory above";
        self.check("[ -w \"$1/..\" ]", directory, expected)
    }

    fn check(&self, test: &str, path: &Path, expected: &'static str) -> Result<(), DevError> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", test, "sh"]).arg(path).current_dir("/");
        shell.stderr(Stdio::null());
        self.run(&mut shell);
        let status = shell.status().map_err(|source| DevError::Io {
            what: format!("running /bin/sh as user `{}`", self.name),
            expected: "that root may change its user",
            source,
        })?;
        if status.success() {
            return Ok(());
        }
        Err(DevError::OutOfReach {
            path: path.to_owned(),
            user: self.name.clone(),
            expected,
        })
    }
}

/// The number that `id` prints; `None` when it knows no such user.
fn id(arguments: &[&str]) -> Result<Option<u32>, DevError> {
    let failed = |source: io::Error| DevError::Io {
        what: format!("running `id {}`", arguments.join(" ")),
        expected: "the number of a user",
        source,
    };
    let output = Command::new("id")
        .args(arguments)
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.trim().parse();
    number
        .map(Some)
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_users_have_no_number() {
        assert_eq!(id(&["-u", "no-such-user-here"]).unwrap(), None);
        assert_eq!(id(&["-u", "root"]).unwrap(), Some(0));
    }

    #[test]
    fn a_directory_keeps_its_owner() {
        if id(&["-u"]).unwrap() != Some(0) {
            println!("skipped: only root runs servers as another user");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let of_root = ServerUser::for_directory(Some(directory.path()))
            .unwrap()
            .unwrap();
        assert_ne!(of_root.uid, 0);
        chown(directory.path(), Some(4711), Some(4712)).unwrap();
        let of_another = ServerUser::for_directory(Some(directory.path()))
            .unwrap()
            .unwrap();
        assert_eq!((of_another.uid, of_another.gid), (4711, 4712));
    }
}
