//! The preload library as a file, which is what the dynamic loader takes.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;
use sumrate_preload::config::LIBRARY as LIBRARY_NAME;

use crate::names_file;

/// The library, built beside this one.
static LIBRARY: &[u8] = include_bytes!(env!("SUMRATE_PRELOAD_LIBRARY"));

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

/// Writes the library into the first suitable directory, unless it is there, and makes a file for the
/// names of the command that this process becomes. That file lies in `memory` if the directory is on a
/// disk. Missing directories are made for their owner alone. Files of ended commands are removed.
///
/// # Errors
/// [`PreloadError`] with what is wrong with each of them.
pub fn install(directories: &[PathBuf], memory: &Path) -> Result<Installed, PreloadError> {
    let mut failures = Vec::new();
    for directory in directories {
        match install_in(directory) {
            Ok(library) => {
                let places = [directory.clone(), memory.to_owned()];
                let is_needed = !names_file::is_in_memory(directory);
                if is_needed && memory.parent().is_some_and(Path::is_dir) {
                    let _ = private(memory); // one place is enough
                }
                names_file::clear(&[directories, &places].concat());
                return match names_file::make(&places) {
                    Ok(names) => Ok(Installed { library, names }),
                    Err(error) => Err(PreloadError(vec![(directory.clone(), error.to_string())])),
                };
            }
            Err(reason) => failures.push((directory.clone(), reason)),
        }
    }
    Err(PreloadError(failures))
}

/// Makes a directory for its owner alone, or checks an existing one. LD_PRELOAD must be able to name it.
fn private(directory: &Path) -> Result<(), String> {
    if directory.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
        return Err("LD_PRELOAD cannot name a path with a space, `:` or `$`".to_owned());
    }
    if directory.to_str().is_none() {
        return Err("its path is not UTF-8".to_owned());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| error.to_string())?;
    is_own(directory)
}

/// Checks that a directory is this user's, and that nobody else may change it.
pub(crate) fn is_own(directory: &Path) -> Result<(), String> {
    let found = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
    let others_may_write = found.permissions().mode() & 0o022 != 0;
    match !found.is_dir() || found.uid() != geteuid().as_raw() || others_may_write {
        true => Err("it is not a directory of yours alone".to_owned()),
        false => Ok(()),
    }
}

fn install_in(directory: &Path) -> Result<PathBuf, String> {
    private(directory)?;
    if statvfs(directory).is_ok_and(|found| found.flags().contains(FsFlags::ST_NOEXEC)) {
        return Err("its file system is mounted noexec".to_owned());
    }
    // A program that runs keeps the file of its own version.
    let path = directory.join(format!("{LIBRARY_NAME}-{:016x}.so", checksum(LIBRARY)));
    if !fs::read(&path).is_ok_and(|found| found == LIBRARY) {
        write(&path).map_err(|error| error.to_string())?;
    }
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
        let nowhere = Path::new("/nonexistent/sumrate");
        let Installed { library: path, names } =
            install(std::slice::from_ref(&directory), nowhere).unwrap();
        assert!(!left.exists(), "of a command that has ended");
        assert!(names.starts_with(&directory));
        let before = fs::metadata(&path).unwrap();
        assert_eq!(before.permissions().mode() & 0o777, 0o500);
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(fs::read(&path).unwrap().starts_with(b"\x7fELF"));
        assert_eq!(install(&[directory], nowhere).unwrap().library, path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), before.ino());
    }

    #[test]
    fn a_directory_that_will_not_do_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let odd = folder.path().join("a b");
        let nowhere = Path::new("/nonexistent/sumrate");
        let error = install(&[open.clone(), odd.clone()], nowhere).unwrap_err();
        assert!(error.to_string().contains("yours alone"), "{error}");
        assert_eq!(error.0.len(), 2);
        let good = folder.path().join("good");
        let directories = [open, odd, good.clone()];
        assert!(install(&directories, nowhere).unwrap().library.starts_with(good));
    }
}
