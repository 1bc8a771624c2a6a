//! The file with the names that a command of `sumrate run` has asked for. All processes of the command
//! share it. It is removed when the last of them has ended.
//!
//! No file serves a second command: an address that stands for a name never gets another meaning.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, setsid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FsWord;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use rustix::thread::set_name;
use sumrate_preload::names::FILE_LENGTH;

use crate::preload::is_own;

/// Prefix of the files' names; the process id of the command and the time follow.
const NAMES: &str = "names-";
/// Time between two scans of /proc: longer than the kernel takes for an exec(2).
const BETWEEN_SCANS: Duration = Duration::from_millis(50);
/// Type number of a tmpfs (statfs(2)), which reaches a disk by swapping alone.
const TMPFS: FsWord = 0x0102_1994;

/// Makes a file for the command that this process becomes. The first directory that is in memory is
/// used, or else the first one that belongs to this user.
///
/// # Errors
/// The error of the last directory.
pub(crate) fn make(directories: &[PathBuf]) -> io::Result<PathBuf> {
    let own: Vec<_> = directories.iter().filter(|directory| is_own(directory).is_ok()).collect();
    let in_memory = own.iter().filter(|directory| is_in_memory(directory));
    let mut outcome = Err(io::Error::from(io::ErrorKind::NotFound));
    for directory in in_memory.chain(&own) {
        outcome = make_in(directory);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Checks for a directory of a tmpfs.
pub(crate) fn is_in_memory(directory: &Path) -> bool {
    rustix::fs::statfs(directory).is_ok_and(|found| found.f_type == TMPFS)
}

fn make_in(directory: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!("{NAMES}{}-{:x}", std::process::id(), now.as_nanos());
    let path = directory.join(name);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.set_len(FILE_LENGTH as u64)?;
    Ok(path)
}

/// Removes the files of ended commands from the directories, as far as these are this user's.
pub fn clear(directories: &[PathBuf]) {
    for directory in directories.iter().filter(|directory| is_own(directory).is_ok()) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(NAMES)?.split('-').next());
            let is_alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
            let has_ended = pid.is_some_and(|pid| pid.parse().is_ok_and(|pid| !is_alive(pid)));
            if has_ended && user_of(&entry.path()).is_none() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Starts a process that removes the file after its last user has ended: this process, which becomes the
/// command, and every other one that has the file mapped. There must be no other thread.
///
/// # Errors
/// No process can be started.
pub fn remove_after_this_process(file: &Path) -> io::Result<()> {
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    // SAFETY: there is one thread, so the child may do whatever this process may.
    #[allow(unsafe_code)]
    match unsafe { fork() }? {
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
                _ => return Err(io::Error::other("no process can be started that waits")),
            }
        },
        ForkResult::Child => {
            hide_arguments();
            // The command must find no child that it has not started, so a grandchild waits: init adopts it.
            // SAFETY: as above. Both processes end without the exit handlers of this one.
            #[allow(unsafe_code)]
            unsafe {
                match fork() {
                    Ok(ForkResult::Parent { .. }) => nix::libc::_exit(0),
                    Ok(ForkResult::Child) => {
                        wait_and_remove(&process, file);
                        nix::libc::_exit(0)
                    }
                    Err(_) => nix::libc::_exit(1),
                }
            }
        }
    }
}

/// Clears this process's command line. Every user can read it, and it may contain a password. In the
/// other process the command's own line replaces it.
fn hide_arguments() {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // arg_start and arg_end are the 48th and 49th (proc_pid_stat(5)), state is the 3rd.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let mut ends = fields.split(' ').skip(45).map(str::parse::<usize>);
    if let (Some(Ok(start)), Some(Ok(end))) = (ends.next(), ends.next())
        && start > 0
        && end > start
    {
        // SAFETY: the kernel names these bytes of this process's own stack as its arguments. Nothing in
        // this process or its child reads them any more.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::write_bytes(start as *mut u8, 0, end - start);
        }
    }
}

/// Waits for the command and every later user of the file, and removes it.
fn wait_and_remove(process: &OwnedFd, file: &Path) {
    let Ok(made) = fs::metadata(file) else { return };
    detach(process.as_raw_fd());
    wait_for(process);
    // Background processes of the command may use it longer.
    while let Some(user) = user_of(file) {
        match pidfd_open(user, PidfdFlags::empty()) {
            Ok(user) => wait_for(&user),
            Err(rustix::io::Errno::SRCH) => {}
            Err(_) => return, // `clear` removes it
        }
    }
    let is_the_same = |found: &fs::Metadata| (found.dev(), found.ino()) == (made.dev(), made.ino());
    if fs::symlink_metadata(file).is_ok_and(|found| is_the_same(&found)) {
        let _ = fs::remove_file(file);
    }
}

fn wait_for(process: &impl AsFd) {
    let mut entry = [PollFd::new(process, PollFlags::IN)];
    while poll(&mut entry, None) == Err(rustix::io::Errno::INTR) {}
}

/// Leaves the command's session and directory, and closes every file except one.
fn detach(kept: RawFd) {
    let _ = setsid();
    let _ = set_name(c"sumrate-names");
    let _ = std::env::set_current_dir("/");
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open = open.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    for file in open.collect::<Vec<_>>().into_iter().filter(|file| *file != kept) {
        let _ = nix::unistd::close(file);
    }
}

/// Finds a process that uses the file. A scan of /proc can miss a program during its exec(2), so a file is
/// unused only if two scans find no process.
fn user_of(file: &Path) -> Option<Pid> {
    scan(file).or_else(|| {
        std::thread::sleep(BETWEEN_SCANS);
        scan(file)
    })
}

/// Finds a process that has the file mapped, or whose environment names it: a program that has just
/// been started maps the file a moment later.
fn scan(file: &Path) -> Option<Pid> {
    let name = file.file_name()?.to_str()?;
    let (number, end) = (fs::metadata(file).ok()?.ino().to_string(), format!("/{name}"));
    let uses = |maps: String| {
        let mut lines = maps.lines().map(|line| line.trim_end_matches(" (deleted)"));
        // Range, access, offset, device, inode, path (proc_pid_maps(5)).
        lines.any(|line| {
            line.ends_with(&end) && line.split_whitespace().nth(4) == Some(number.as_str())
        })
    };
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        let is_named = || {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.windows(end.len()).any(|part| part == end.as_bytes())
        };
        let maps = fs::read(entry.path().join("maps")).ok()?;
        (uses(String::from_utf8_lossy(&maps).into_owned()) || is_named()).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn directory() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let path = folder.path().to_owned();
        (folder, vec![path])
    }

    #[test]
    fn every_command_has_a_file_of_its_own() {
        let (_folder, directories) = directory();
        let (one, other) = (make(&directories).unwrap(), make(&directories).unwrap());
        assert_ne!(one, other, "no number gets another meaning");
        let made = fs::metadata(&one).unwrap();
        assert_eq!((made.permissions().mode() & 0o777, made.len()), (0o600, FILE_LENGTH as u64));
    }

    #[test]
    fn memory_is_preferred_to_a_disk() {
        let (_folder, disk) = directory();
        let shm = Path::new("/dev/shm");
        if !is_in_memory(shm) || is_in_memory(&disk[0]) {
            return; // this machine has not both
        }
        let memory = tempfile::tempdir_in(shm).unwrap();
        fs::set_permissions(memory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let both = [disk[0].clone(), memory.path().to_owned()];
        assert!(make(&both).unwrap().starts_with(memory.path()));
    }

    #[test]
    fn files_of_ended_commands_are_cleared() {
        let (folder, directories) = directory();
        let left = ["names-4294967295", "names-4294967295-1f"].map(|name| folder.path().join(name));
        let kept = ["names-", "names-x-1", "other"].map(|name| folder.path().join(name));
        for file in left.iter().chain(&kept) {
            fs::write(file, "").unwrap();
        }
        let own = make(&directories).unwrap();
        clear(&directories);
        assert!(left.iter().all(|file| !file.exists()), "of commands that have ended");
        assert!(kept.iter().chain([&own]).all(|file| file.exists()));
    }

    #[test]
    fn a_directory_of_others_is_not_touched() {
        let (folder, directories) = directory();
        let left = folder.path().join("names-4294967295");
        fs::write(&left, "").unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        clear(&directories);
        assert!(left.exists());
        assert!(make(&directories).is_err());
    }

    #[test]
    fn a_program_that_has_not_mapped_the_file_yet_is_known() {
        let (_folder, directories) = directory();
        let path = make(&directories).unwrap();
        let mut program = std::process::Command::new("cat")
            .env("SUMRATE_PRELOAD", format!("1 127.0.0.1:1 names={}", path.display()))
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(program.id()).unwrap());
        assert_eq!(user_of(&path), pid);
        drop(program.stdin.take());
        program.wait().unwrap();
        assert_eq!(user_of(&path), None);
    }

    #[test]
    fn a_file_in_use_is_known() {
        let (_folder, directories) = directory();
        let path = make(&directories).unwrap();
        assert_eq!(user_of(&path), None);
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let length = std::num::NonZeroUsize::new(4096).unwrap();
        // SAFETY: a new mapping of a file that stays as long.
        #[allow(unsafe_code)]
        let mapped = unsafe {
            nix::sys::mman::mmap(
                None,
                length,
                nix::sys::mman::ProtFlags::PROT_READ,
                nix::sys::mman::MapFlags::MAP_SHARED,
                &file,
                0,
            )
        };
        assert_eq!(user_of(&path), Some(getpid()));
        // SAFETY: the mapping from above.
        #[allow(unsafe_code)]
        unsafe {
            nix::sys::mman::munmap(mapped.unwrap(), 4096).unwrap();
        }
    }
}
