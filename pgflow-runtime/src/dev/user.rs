//! The user of a server. Postgres refuses to run as root.

use std::fs;
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
    /// The user for a server in a directory of this user and group; `None` means our own user.
    ///
    /// A directory with an owner keeps it, so that root and its owner can use it alternately.
    pub(super) fn for_owner(owner: Option<(u32, u32)>) -> Result<Option<Self>, DevError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        if let Some((uid, gid)) = owner
            && uid != 0
        {
            let name = uid.to_string();
            return Ok(Some(Self { uid, gid, name }));
        }
        for name in ["postgres", "nobody"] {
            if let Some((uid, gid)) = ids_of(name) {
                let name = name.to_owned();
                return Ok(Some(Self { uid, gid, name }));
            }
        }
        Err(DevError::NoServerUser)
    }

    /// The numbers of the user and of its group.
    pub(super) fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
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
            expected: "that root may change its user, which takes CAP_SETUID and CAP_SETGID; \
                       in a container without them, start as an ordinary user",
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

/// The user and the group of that name; `None` when there is no such user.
fn ids_of(name: &str) -> Option<(u32, u32)> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // Users of a directory service are not in the file; `id` knows them.
    ids_in(&passwd, name).or_else(|| Some((id("-u", name)?, id("-g", name)?)))
}

/// Of the lines `name:password:uid:gid:..`.
fn ids_in(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let mut number = || fields.next()?.parse().ok();
        number();
        Some((number()?, number()?))
    })
}

/// The number that `id` prints; `None` when it knows no such user, or is not there.
fn id(option: &str, name: &str) -> Option<u32> {
    // Not what lies on PATH: root runs it.
    let places = ["/usr/bin/id", "/bin/id"];
    let program = places.into_iter().find(|place| Path::new(place).exists())?;
    let output = Command::new(program).args([option, name]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:7::/:\npostgres:x:70:71::/:\n";
        assert_eq!(ids_in(passwd, "postgres"), Some((70, 71)));
        assert_eq!(ids_in(passwd, "nobody"), None);
        assert_eq!(ids_in("postgres:x:none:1\n", "postgres"), None);
        assert_eq!(ids_of("no-such-user-here"), None);
        assert_eq!(id("-u", "root"), Some(0));
    }

    #[test]
    fn a_directory_keeps_its_owner() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root runs servers as another user");
            return;
        }
        let of_root = ServerUser::for_owner(Some((0, 0))).unwrap().unwrap();
        assert_ne!(of_root.uid, 0);
        let of_another = ServerUser::for_owner(Some((4711, 4712))).unwrap().unwrap();
        assert_eq!(of_another.ids(), (4711, 4712));
    }
}
