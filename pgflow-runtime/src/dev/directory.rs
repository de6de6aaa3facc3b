//! A directory that is held open, and never reached through a link.
//!
//! Root may run a server in a directory of another user, who could put a link in the place of an
//! expected file. The opened, emptied or handed over file would then be any file of the machine. So
//! every step goes from an open directory to a name in it, without following links; the owner is
//! read from the opened file, not from a path; and only files that were created here change their
//! owner.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::error::DevError;

/// As many links as Linux follows in one path.
const LINKS: usize = 40;
/// Small files are read whole up to here, of a log the end.
const LONGEST: u64 = 64 * 1024;

/// A descriptor that stands for a directory on the way; it needs no right to read it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const WALK: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const WALK: OFlags = OFlags::RDONLY;

#[derive(Debug)]
pub(super) struct Directory {
    descriptor: OwnedFd,
    /// Without links.
    path: PathBuf,
}

impl Directory {
    /// Opens `path`, as [`resolve`](Self::resolve) does, so that its entries can be listed and its
    /// owner changed.
    pub(super) fn open(path: &Path, creates: bool) -> Result<Self, DevError> {
        let found = Self::resolve(path, creates)?;
        let path = found.path.clone();
        found.readable().map_err(|source| DevError::Io {
            what: format!("opening `{}`", path.display()),
            expected: "a directory of your own",
            source: source.into(),
        })
    }

    /// Finds `path`; `creates` makes the directories that are missing.
    ///
    /// Links above it are followed where only root or this process' user could have made them.
    /// The directory itself must not be one.
    pub(super) fn resolve(path: &Path, creates: bool) -> Result<Self, DevError> {
        let failed = |at: &Path, source: io::Error| DevError::Io {
            what: format!("opening `{}`", at.display()),
            expected: "a path for a directory of your own",
            source,
        };
        let path = std::path::absolute(path).map_err(|source| failed(path, source))?;
        let root = fs::open(
            "/",
            WALK | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|source| failed(Path::new("/"), source.into()))?;
        let mut walked = vec![Self {
            descriptor: root,
            path: PathBuf::from("/"),
        }];
        let mut rest = names(&path);
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            // Never empty: `..` of the root is the root.
            let last = walked.len() - 1;
            if name == ".." {
                walked.truncate(last.max(1));
                continue;
            }
            let here = &walked[last];
            let at = here.path.join(&name);
            let is_last = rest.is_empty();
            let stat = match here.stat(&name) {
                Err(Errno::NOENT) if creates => {
                    here.create(&name, is_last)
                        .map_err(|source| failed(&at, source.into()))?;
                    here.stat(&name)
                }
                found => found,
            }
            .map_err(|source| failed(&at, source.into()))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                let opened = here.enter(&name);
                walked.push(opened.map_err(|source| failed(&at, source.into()))?);
                continue;
            }
            let target = fs::readlinkat(&here.descriptor, &name, Vec::new())
                .map_err(|source| failed(&at, source.into()))?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            if is_last {
                return Err(DevError::Unsafe {
                    problem: format!("it is a link to `{}`", target.display()),
                    expected: "a directory, as links are not followed",
                    path: at,
                });
            }
            check_link(
                &at,
                &stat,
                &here
                    .stat_itself()
                    .map_err(|source| failed(&at, source.into()))?,
            )?;
            links += 1;
            if links > LINKS {
                return Err(failed(&at, Errno::LOOP.into()));
            }
            if target.is_absolute() {
                walked.truncate(1);
            }
            for name in names(&target).into_iter().rev() {
                rest.push_front(name);
            }
        }
        let end = walked.len() - 1;
        Ok(walked.swap_remove(end))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in this one; none when there is no such name.
    pub(super) fn subdirectory(&self, name: &str) -> io::Result<Option<Self>> {
        match self.enter(OsStr::new(name)) {
            Ok(opened) => Ok(Some(opened.readable()?)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn is_empty(&self) -> io::Result<bool> {
        for entry in fs::Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_owned();
            if ![&b"."[..], b".."].contains(&name.to_bytes()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.stat(OsStr::new(name)).is_ok()
    }

    /// The user and the group that own it.
    pub(super) fn owner(&self) -> io::Result<(u32, u32)> {
        let stat = fs::fstat(&self.descriptor)?;
        Ok((stat.st_uid, stat.st_gid))
    }

    pub(super) fn give(&self, uid: u32, gid: u32) -> io::Result<()> {
        Ok(fs::fchown(
            &self.descriptor,
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
        )?)
    }

    /// Closes it to everybody but its owner.
    pub(super) fn close(&self) -> io::Result<()> {
        Ok(fs::fchmod(&self.descriptor, Mode::RWXU)?)
    }

    /// Opens a file to read and append, or creates it for `owner`.
    ///
    /// An existing one must be a file of that owner with no other name: nothing else may be
    /// emptied, and a file of another user never changes its owner.
    pub(super) fn open_file(&self, name: &str, owner: (u32, u32)) -> Result<File, DevError> {
        let path = self.path.join(name);
        let failed = |source: io::Error| DevError::Io {
            what: format!("opening `{}`", path.display()),
            expected: "a directory of your own on a local file system",
            source,
        };
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let created = fs::openat(
            &self.descriptor,
            name,
            flags | OFlags::CREATE | OFlags::EXCL,
            mode,
        );
        match created {
            Ok(file) => {
                let (uid, gid) = owner;
                if (fs::fstat(&file).map_err(|source| failed(source.into()))?).st_uid == uid {
                    return Ok(file.into());
                }
                fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(
                    |source| {
                        // One that stays would be in the way of the next start.
                        let _ = self.remove(name);
                        DevError::not_given(&path, uid, source.into())
                    },
                )?;
                Ok(file.into())
            }
            Err(Errno::EXIST) => {
                self.check_file(
                    name,
                    &self
                        .stat(OsStr::new(name))
                        .map_err(|source| failed(source.into()))?,
                    owner,
                )?;
                // Without waiting, should it have become a pipe meanwhile.
                let file = fs::openat(&self.descriptor, name, flags | OFlags::NONBLOCK, mode)
                    .map_err(|source| failed(source.into()))?;
                let stat = fs::fstat(&file).map_err(|source| failed(source.into()))?;
                self.check_file(name, &stat, owner)?;
                Ok(file.into())
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    fn check_file(&self, name: &str, stat: &Stat, owner: (u32, u32)) -> Result<(), DevError> {
        let problem = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_uid != owner.0 => {
                format!("it belongs to user {}", stat.st_uid)
            }
            FileType::RegularFile if stat.st_nlink != 1 => {
                "it has a second name (a hard link)".to_owned()
            }
            FileType::RegularFile => return Ok(()),
            FileType::Symlink => "it is a link".to_owned(),
            other => format!("it is no file, but a {other:?}").to_lowercase(),
        };
        Err(DevError::Unsafe {
            path: self.path.join(name),
            problem,
            expected: "a file that the server's user made here",
        })
    }

    /// The text of a small file, or the end of a long one; none when there is no such file.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&file)?;
        // A second name could be that of a file which this user must not read, or show.
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
            return Err(io::Error::other("it is no file with a single name"));
        }
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        fs::seek(&file, fs::SeekFrom::Start(length.saturating_sub(LONGEST)))?;
        let mut bytes = Vec::new();
        File::from(file).take(LONGEST).read_to_end(&mut bytes)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Removes a file, or a link and not what it leads to. One that is not there is no error.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Err(Errno::NOENT) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a socket of this user has that name.
    pub(super) fn has_socket(&self, name: &str, uid: u32) -> bool {
        self.stat(OsStr::new(name)).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Socket && stat.st_uid == uid
        })
    }

    fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn stat_itself(&self) -> Result<Stat, Errno> {
        fs::fstat(&self.descriptor)
    }

    fn create(&self, name: &OsStr, is_last: bool) -> Result<(), Errno> {
        // The directories above are for others too, as far as the umask goes.
        let mode = if is_last { 0o700 } else { 0o777 };
        match fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(mode)) {
            Err(Errno::EXIST) => Ok(()),
            result => result,
        }
    }

    fn enter(&self, name: &OsStr) -> Result<Self, Errno> {
        let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            descriptor: fs::openat(&self.descriptor, name, flags, Mode::empty())?,
            path: self.path.join(name),
        })
    }

    /// One whose entries can be listed and whose owner can be changed.
    fn readable(self) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            descriptor: fs::openat(&self.descriptor, ".", flags, Mode::empty())?,
            path: self.path,
        })
    }
}

/// Refuses a link that another user has made, or could have put in the place of ours.
fn check_link(at: &Path, link: &Stat, directory: &Stat) -> Result<(), DevError> {
    let own = rustix::process::geteuid().as_raw();
    let is_trusted = |uid: u32| uid == 0 || uid == own;
    let problem = if !is_trusted(link.st_uid) {
        format!("it is a link of user {}", link.st_uid)
    } else if !is_trusted(directory.st_uid) {
        format!("it is a link in a directory of user {}", directory.st_uid)
    } else if directory.st_mode & 0o1002 == 0o0002 {
        "it is a link in a directory where everybody may replace it".to_owned()
    } else {
        return Ok(());
    };
    Err(DevError::Unsafe {
        path: at.to_owned(),
        problem,
        expected: "no links but those of root and of your own user",
    })
}

/// The names of a path, and `..` where it goes up.
fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs as files;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    fn own() -> (u32, u32) {
        let root = tempfile::tempdir().unwrap();
        let metadata = root.path().metadata().unwrap();
        (metadata.uid(), metadata.gid())
    }

    fn refusal(error: &DevError) -> String {
        assert!(matches!(error, DevError::Unsafe { .. }), "{error}");
        error.to_string()
    }

    #[test]
    fn a_link_is_no_directory_whether_it_leads_somewhere_or_not() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        let link = root.path().join("link");
        symlink(&target, &link).unwrap();
        let error = refusal(&Directory::open(&link, true).unwrap_err());
        assert!(error.contains("it is a link to"), "{error}");
        assert!(!target.exists());
        files::create_dir(&target).unwrap();
        refusal(&Directory::open(&link, true).unwrap_err());
    }

    #[test]
    fn own_links_above_are_followed_and_those_of_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap().join("real");
        files::create_dir(&real).unwrap();
        let link = root.path().join("link");
        symlink(
            "../".to_owned() + root.path().file_name().unwrap().to_str().unwrap() + "/real",
            &link,
        )
        .unwrap();
        let opened = Directory::open(&link.join("data"), true).unwrap();
        assert_eq!(opened.path(), real.join("data"));
        if own().0 != 0 {
            println!("skipped: only root can make a link of another user");
            return;
        }
        std::os::unix::fs::lchown(&link, Some(4711), None).unwrap();
        let error = refusal(&Directory::open(&link.join("more"), true).unwrap_err());
        assert!(error.contains("a link of user 4711"), "{error}");
        std::os::unix::fs::lchown(&link, Some(0), None).unwrap();
        chown(root.path(), Some(4711), None).unwrap();
        let error = refusal(&Directory::open(&link.join("more"), true).unwrap_err());
        assert!(error.contains("in a directory of user 4711"), "{error}");
        assert!(!real.join("more").exists());
    }

    #[test]
    fn what_is_no_file_of_the_owner_alone_is_not_opened() {
        let root = tempfile::tempdir().unwrap();
        let precious = root.path().join("precious");
        files::write(&precious, "precious").unwrap();
        let home = Directory::open(&root.path().join("home"), true).unwrap();
        let at = |name: &str| home.path().join(name);
        symlink(&precious, at("link")).unwrap();
        symlink(root.path().join("absent"), at("dangling")).unwrap();
        files::hard_link(&precious, at("hard")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(made.unwrap().success());
        files::create_dir(at("folder")).unwrap();
        for (name, problem) in [
            ("link", "it is a link"),
            ("dangling", "it is a link"),
            ("hard", "second name"),
            ("pipe", "fifo"),
            ("folder", "directory"),
        ] {
            let error = refusal(&home.open_file(name, own()).unwrap_err());
            assert!(error.contains(problem), "{name}: {error}");
            assert!(home.read(name).is_err(), "{name}");
        }
        assert_eq!(files::read_to_string(&precious).unwrap(), "precious");
        assert!(!root.path().join("absent").exists());
    }

    #[test]
    fn a_file_of_somebody_else_is_not_given_away() {
        if own().0 != 0 {
            println!("skipped: only root can give files away");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let home = Directory::open(root.path(), true).unwrap();
        files::write(root.path().join("of_root"), "").unwrap();
        let error = refusal(&home.open_file("of_root", (4711, 4711)).unwrap_err());
        assert!(error.contains("it belongs to user 0"), "{error}");
        assert_eq!(root.path().join("of_root").metadata().unwrap().uid(), 0);
        drop(home.open_file("new", (4711, 4712)).unwrap());
        let new = root.path().join("new").metadata().unwrap();
        assert_eq!(
            (new.uid(), new.gid(), new.permissions().mode() & 0o777),
            (4711, 4712, 0o600)
        );
        home.open_file("new", (4711, 4712)).unwrap();
    }

    #[test]
    fn removing_a_link_leaves_what_it_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let home = Directory::open(root.path(), true).unwrap();
        files::write(root.path().join("kept"), "kept").unwrap();
        symlink(root.path().join("kept"), root.path().join("link")).unwrap();
        home.remove("link").unwrap();
        home.remove("link").unwrap();
        assert_eq!(home.read("kept").unwrap().unwrap(), "kept");
        assert_eq!(home.read("link").unwrap(), None);
    }
}
