//! One directory and what is below it. The kernel keeps every access inside (openat2(2) with
//! `RESOLVE_BENEATH`), whatever symbolic links are put there meanwhile.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat, Timespec,
    Timestamps, fchmod, flock, fstat, futimens, mkdirat, openat, openat2, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::message::MODE_MASK;
use super::path::EntryPath;

/// No access leaves the directory, and none goes through the links of /proc.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// No symbolic link is followed at all.
const PLAIN: ResolveFlags = BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// How long a copy may take to give way, and how often that is looked at.
const GIVE_WAY: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// A directory cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It cannot be opened.
    #[error("{path}: {error}; name a directory that exists and that this user may open")]
    Open {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel cannot confine.
    #[error(
        "there is no openat2, which keeps copies inside their directory: Linux has it since 5.6, and RestrictSUIDSGID= in a unit of systemd takes it away"
    )]
    NoOpenat2,
}

/// Which links the name of an entry may lead through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// None.
    Refuse,
    /// Those that stay beneath the directory.
    Beneath,
}

/// An open directory.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    /// Who writes files below it; shared with the directories below.
    writers: Arc<Writers>,
}

impl Root {
    /// Opens a directory of this machine; links on the way to it are its owner's matter.
    ///
    /// # Errors
    /// [`RootError`]
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let failed = |errno: Errno| RootError::Open { path: path.to_owned(), error: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
        let root = Self { directory, writers: Arc::default() };
        match openat2(&root.directory, c".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), PLAIN) {
            Err(Errno::NOSYS) => Err(RootError::NoOpenat2),
            Err(errno) => Err(failed(errno)),
            Ok(_) => Ok(root),
        }
    }

    /// A directory below this one, which may be reached through links that stay beneath.
    ///
    /// # Errors
    /// What the system says; EXDEV for a link that leads out.
    pub fn directory(&self, path: Option<&EntryPath>, links: Links) -> io::Result<Self> {
        let name = path.map_or_else(|| c".".to_owned(), EntryPath::to_c_string);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat2(&self.directory, name, flags, Mode::empty(), links.resolve())?;
        Ok(Self { directory, writers: Arc::clone(&self.writers) })
    }

    /// What is known of an entry.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn stat(&self, path: &EntryPath, links: Links) -> io::Result<Stat> {
        if links == Links::Refuse {
            // The last name may be a link: it is looked at, not followed.
            let (parent, name) = path.split_last();
            let parent = self.parent(parent.as_ref())?;
            return Ok(statat(parent.fd(self), name.to_c_string(), AtFlags::SYMLINK_NOFOLLOW)?);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let entry = openat2(&self.directory, path.to_c_string(), flags, Mode::empty(), BENEATH)?;
        Ok(fstat(entry)?)
    }

    /// Opens a regular file for reading; anything else is refused unopened.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn open_file(&self, path: &EntryPath, links: Links) -> io::Result<File> {
        refuse_special(&self.stat(path, links)?)?;
        // It might have become a pipe meanwhile, which must not hold this thread up.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            openat2(&self.directory, path.to_c_string(), flags, Mode::empty(), links.resolve())?;
        refuse_special(&fstat(&file)?)?;
        Ok(File::from(file))
    }

    /// Opens a file for writing what belongs to `path`, locked against other copies; one that is not
    /// this program's own is replaced. A copy whose other end has gone is ended for this one.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::ResourceBusy`] while another copy writes it.
    pub(super) fn open_partial(&self, path: &EntryPath, writer: &Writer) -> io::Result<File> {
        let (parent, name) = path.split_last();
        let parent = self.parent(parent.as_ref())?;
        let name = name.to_c_string();
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = |more, mode| openat2(parent.fd(self), &name, flags | more, mode, PLAIN);
        let create = || open(OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR);
        let file = match open(OFlags::empty(), Mode::empty()) {
            Ok(file) if is_own(&fstat(&file)?) => file,
            Err(Errno::NOENT) => create()?,
            Ok(_) | Err(Errno::LOOP | Errno::NXIO) => {
                unlinkat(parent.fd(self), &name, AtFlags::empty())?;
                create()?
            }
            Err(errno) => return Err(errno.into()),
        };
        let found = fstat(&file)?;
        self.writers.take(&file, (found.st_dev, found.st_ino), writer)?;
        Ok(File::from(file))
    }

    /// Makes a directory, or finds it there; whether it is new.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::NotADirectory`] where something else has the name.
    pub(super) fn make_directory(&self, path: &EntryPath) -> io::Result<bool> {
        let (parent, name) = path.split_last();
        let parent = self.parent(parent.as_ref())?;
        let name = name.to_c_string();
        match mkdirat(parent.fd(self), &name, Mode::RWXU) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => {
                let found = statat(parent.fd(self), &name, AtFlags::SYMLINK_NOFOLLOW)?;
                match FileType::from_raw_mode(found.st_mode) {
                    FileType::Directory => Ok(false),
                    _ => Err(io::ErrorKind::NotADirectory.into()),
                }
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Renames within one directory, over what is there.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn rename(&self, from: &EntryPath, to: &EntryPath) -> io::Result<()> {
        let (parent, from) = from.split_last();
        let (_, to) = to.split_last();
        let parent = self.parent(parent.as_ref())?;
        let fd = parent.fd(self);
        Ok(renameat(fd, from.to_c_string(), fd, to.to_c_string())?)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn remove(&self, path: &EntryPath) -> io::Result<()> {
        let (parent, name) = path.split_last();
        let parent = self.parent(parent.as_ref())?;
        Ok(unlinkat(parent.fd(self), name.to_c_string(), AtFlags::empty())?)
    }

    /// The entries of this directory, without `.` and `..`, in the order of their names.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn names(&self) -> io::Result<Vec<EntryPath>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            if let Ok(name) = EntryPath::new(entry.file_name().to_bytes()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Sets permission bits and time of change of this directory.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn set_attributes(&self, mode: u32, modified: (i64, u32)) -> io::Result<()> {
        set_attributes(self.directory.as_fd(), mode, modified)
    }

    fn parent(&self, path: Option<&EntryPath>) -> io::Result<Parent> {
        path.map(|path| self.directory(Some(path), Links::Refuse)).transpose().map(Parent)
    }
}

/// One copy, as others that want to write the same file see it.
#[derive(Clone)]
pub(super) struct Writer {
    /// Ends the copy.
    pub(super) stop: CancellationToken,
    /// Whether its other end has gone, so that nothing more will come of it.
    pub(super) has_gone: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { stop: CancellationToken::new(), has_gone: Arc::new(|| false) }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// Who writes which file, by device and number.
#[derive(Debug, Default)]
struct Writers(Mutex<HashMap<(u64, u64), Writer>>);

impl Writers {
    /// Locks a file for a copy. A client that was killed leaves one behind here, which waits for it
    /// to come back: that one gives way.
    fn take(&self, file: &OwnedFd, number: (u64, u64), writer: &Writer) -> io::Result<()> {
        let others = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(errno.into()),
            }
            let other = others().get(&number).filter(|other| (other.has_gone)()).cloned();
            match other {
                Some(other) if begun.elapsed() < GIVE_WAY => other.stop.cancel(),
                _ => return Err(io::ErrorKind::ResourceBusy.into()),
            }
            std::thread::sleep(LOOK);
        }
        let mut others = others();
        others.retain(|_, other| !other.stop.is_cancelled());
        others.insert(number, writer.clone());
        Ok(())
    }
}

/// The directory of an entry: another one, or the root itself.
struct Parent(Option<Root>);

impl Parent {
    fn fd<'a>(&'a self, root: &'a Root) -> BorrowedFd<'a> {
        self.0.as_ref().unwrap_or(root).directory.as_fd()
    }
}

impl Links {
    fn resolve(self) -> ResolveFlags {
        match self {
            Self::Refuse => PLAIN,
            Self::Beneath => BENEATH,
        }
    }
}

/// Sets permission bits and time of change of a file that is open.
pub(super) fn set_attributes(
    fd: BorrowedFd<'_>,
    mode: u32,
    (seconds, nanoseconds): (i64, u32),
) -> io::Result<()> {
    fchmod(fd, Mode::from_raw_mode(mode & MODE_MASK))?;
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    Ok(futimens(fd, &Timestamps { last_access: modified, last_modification: modified })?)
}

/// What an entry is called that is neither file nor directory; `None` for those.
pub(super) fn special(found: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Directory => None,
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Unknown => Some("of no known type"),
    }
}

fn refuse_special(found: &Stat) -> io::Result<()> {
    match special(found) {
        Some(what) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}"))),
        None if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
            Err(io::ErrorKind::IsADirectory.into())
        }
        None => Ok(()),
    }
}

/// A partial file that somebody else put there, or that has a second name, is not written to.
pub(super) fn is_own(found: &Stat) -> bool {
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    regular && found.st_nlink == 1 && found.st_uid == nix::unistd::geteuid().as_raw()
}

/// Seconds and nanoseconds of the last change.
pub(super) fn modified(found: &Stat) -> (i64, u32) {
    let nanoseconds = u32::try_from(found.st_mtime_nsec).unwrap_or(0).min(999_999_999);
    #[allow(clippy::useless_conversion)] // another width elsewhere
    (found.st_mtime.into(), nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn path(text: &str) -> EntryPath {
        EntryPath::new(text.as_bytes()).unwrap()
    }

    /// A root with `inside/file`, and a secret beside it.
    fn place() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("root/inside")).unwrap();
        std::fs::write(directory.path().join("root/inside/file"), "in").unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/secret"), "out").unwrap();
        let root = Root::open(&directory.path().join("root")).unwrap();
        (directory, root)
    }

    #[test]
    fn links_never_lead_out() {
        let (directory, root) = place();
        let inner = directory.path().join("root");
        symlink("../outside", inner.join("up")).unwrap();
        symlink(directory.path().join("outside"), inner.join("absolute")).unwrap();
        symlink("../outside/secret", inner.join("file")).unwrap();
        symlink("/proc/self/root", inner.join("magic")).unwrap();
        symlink("inside", inner.join("within")).unwrap();
        for name in ["up", "absolute", "magic"] {
            for links in [Links::Refuse, Links::Beneath] {
                let below = path(&format!("{name}/secret"));
                assert!(root.directory(Some(&path(name)), links).is_err(), "{name}");
                assert!(root.open_file(&below, links).is_err(), "{name}");
            }
            assert!(
                root.open_partial(&path(&format!("{name}/new")), &Writer::default()).is_err(),
                "{name}"
            );
            assert!(root.make_directory(&path(&format!("{name}/new"))).is_err(), "{name}");
            assert!(root.remove(&path(&format!("{name}/secret"))).is_err(), "{name}");
            let (from, to) = (path(&format!("{name}/secret")), path(&format!("{name}/x")));
            assert!(root.rename(&from, &to).is_err(), "{name}");
        }
        for links in [Links::Refuse, Links::Beneath] {
            assert!(root.open_file(&path("file"), links).is_err());
        }
        // A link that stays inside is followed only where that is asked for.
        assert!(root.open_file(&path("within/file"), Links::Beneath).is_ok());
        assert!(root.open_file(&path("within/file"), Links::Refuse).is_err());
        let outside: Vec<_> =
            std::fs::read_dir(directory.path().join("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1);
        assert_eq!(std::fs::read(directory.path().join("outside/secret")).unwrap(), b"out");
    }

    #[test]
    fn a_link_in_the_place_of_a_partial_file_is_replaced_and_not_followed() {
        let (directory, root) = place();
        let secret = directory.path().join("outside/secret");
        let planted = directory.path().join("root/inside/part");
        symlink(&secret, &planted).unwrap();
        root.open_partial(&path("inside/part"), &Writer::default())
            .unwrap()
            .write_all(b"new")
            .unwrap();
        assert!(std::fs::symlink_metadata(&planted).unwrap().is_file());
        std::fs::remove_file(&planted).unwrap();
        std::fs::hard_link(&secret, &planted).unwrap();
        root.open_partial(&path("inside/part"), &Writer::default())
            .unwrap()
            .write_all(b"new")
            .unwrap();
        assert_eq!(std::fs::read(&secret).unwrap(), b"out");
        assert_eq!(std::fs::read(&planted).unwrap(), b"new");
    }

    #[test]
    fn one_copy_at_a_time_writes_a_file() {
        let (_directory, root) = place();
        let first = root.open_partial(&path("part"), &Writer::default()).unwrap();
        let error = root.open_partial(&path("part"), &Writer::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        assert!(root.open_partial(&path("part"), &Writer::default()).is_ok());
    }

    #[test]
    fn a_copy_whose_other_end_has_gone_gives_way() {
        let (_directory, root) = place();
        let orphan = Writer { has_gone: Arc::new(|| true), ..Writer::default() };
        let first = root.open_partial(&path("part"), &orphan).unwrap();
        let stopped = orphan.stop.clone();
        let holder = std::thread::spawn(move || {
            while !stopped.is_cancelled() {
                std::thread::sleep(LOOK);
            }
            drop(first);
        });
        assert!(root.open_partial(&path("part"), &Writer::default()).is_ok());
        holder.join().unwrap();
    }

    #[test]
    fn pipes_and_devices_are_refused_unopened() {
        let (directory, root) = place();
        let pipe = directory.path().join("root/pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let error = root.open_file(&path("pipe"), Links::Beneath).unwrap_err();
        assert!(error.to_string().contains("a pipe"), "{error}");
        let devices = Root::open(Path::new("/dev")).unwrap();
        let error = devices.open_file(&path("null"), Links::Refuse).unwrap_err();
        assert!(error.to_string().contains("a device"), "{error}");
        assert!(root.open_file(&path("inside"), Links::Refuse).is_err());
    }

    #[test]
    fn directories_and_attributes() {
        let (directory, root) = place();
        assert!(root.make_directory(&path("new")).unwrap());
        assert!(!root.make_directory(&path("new")).unwrap());
        let error = root.make_directory(&path("inside/file")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        let new = root.directory(Some(&path("new")), Links::Refuse).unwrap();
        new.set_attributes(0o4750, (86400, 5)).unwrap();
        let found = root.stat(&path("new"), Links::Refuse).unwrap();
        assert_eq!(modified(&found), (86400, 5));
        let mode =
            std::fs::metadata(directory.path().join("root/new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o750, "no set-user-id");
        assert_eq!(root.names().unwrap(), [path("inside"), path("new")]);
    }
}
