//! The preload library as a file, which is what the dynamic loader takes.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;
use sumrate_preload::names::FILE_LENGTH;

/// The library, built beside this one.
static LIBRARY: &[u8] = include_bytes!(env!("SUMRATE_PRELOAD_LIBRARY"));

/// What files for names are called, with a process id behind it.
const NAMES: &str = "names-";

/// The library could not be put anywhere.
#[derive(Debug, thiserror::Error)]
#[error(
    "the preload library has no place: {}; set XDG_RUNTIME_DIR to a directory of yours alone from which programs may be run",
    .0.iter().map(|(place, reason)| format!("{}: {reason}", place.display())).collect::<Vec<_>>().join("; ")
)]
pub struct PreloadError(pub Vec<(PathBuf, String)>);

/// What a command is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The library.
    pub library: PathBuf,
    /// A file for the names that the command's processes have in common.
    pub names: PathBuf,
}

/// Writes the library into the first of the directories that will do, unless it is there, and gives
/// where it is, with a file for names that is this process's, and the
/// command's that it becomes. Files for names of commands that have ended are removed. A directory is made for its owner alone if it does not exist.
///
/// # Errors
/// [`PreloadError`] with what is wrong with each of them.
pub fn install(directories: &[PathBuf]) -> Result<Installed, PreloadError> {
    let mut failures = Vec::new();
    for directory in directories {
        match install_in(directory) {
            Ok(path) => return Ok(path),
            Err(reason) => failures.push((directory.clone(), reason)),
        }
    }
    Err(PreloadError(failures))
}

fn install_in(directory: &Path) -> Result<Installed, String> {
    if directory.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
        return Err("LD_PRELOAD cannot name a path with a space, `:` or `$`".to_owned());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| error.to_string())?;
    let found = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
    let others_may_write = found.permissions().mode() & 0o022 != 0;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || others_may_write {
        return Err("it is not a directory of yours alone".to_owned());
    }
    if statvfs(directory).is_ok_and(|found| found.flags().contains(FsFlags::ST_NOEXEC)) {
        return Err("its file system is mounted noexec".to_owned());
    }
    // A program that runs keeps the file of its own version.
    let path = directory.join(format!("libsumrate_preload-{:016x}.so", checksum(LIBRARY)));
    if !fs::read(&path).is_ok_and(|found| found == LIBRARY) {
        write(&path).map_err(|error| error.to_string())?;
    }
    let names = make_names(directory).map_err(|error| error.to_string())?;
    Ok(Installed { library: path, names })
}

/// The file is called by the process that needs it, which the command becomes.
fn make_names(directory: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(NAMES)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let path = directory.join(format!("{NAMES}{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.set_len(FILE_LENGTH as u64)?;
    Ok(path)
}

fn write(path: &Path) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o500).open(&temporary)?;
    file.write_all(LIBRARY)
        .and_then(|()| fs::rename(&temporary, path))
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// FNV-1a: tells versions apart, no more.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_written_once_and_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("run/sumrate");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
        let left = directory.join("names-4294967295");
        fs::write(&left, "").unwrap();
        let Installed { library: path, names } = install(std::slice::from_ref(&directory)).unwrap();
        assert!(!left.exists(), "of a command that has ended");
        let made = fs::metadata(&names).unwrap();
        assert_eq!((made.permissions().mode() & 0o777, made.len()), (0o600, FILE_LENGTH as u64));
        let before = fs::metadata(&path).unwrap();
        assert_eq!(before.permissions().mode() & 0o777, 0o500);
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(fs::read(&path).unwrap().starts_with(b"\x7fELF"));
        assert_eq!(install(&[directory]).unwrap(), Installed { library: path.clone(), names });
        assert_eq!(fs::metadata(&path).unwrap().ino(), before.ino());
    }

    #[test]
    fn a_directory_that_will_not_do_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let odd = folder.path().join("a b");
        let error = install(&[open.clone(), odd.clone()]).unwrap_err();
        assert!(error.to_string().contains("yours alone"), "{error}");
        assert_eq!(error.0.len(), 2);
        let good = folder.path().join("good");
        assert!(install(&[open, odd, good.clone()]).unwrap().library.starts_with(good));
    }
}
