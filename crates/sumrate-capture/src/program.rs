//! Finds a program as a shell does, and whether the preload library reaches it.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access, getegid, geteuid};
use sumrate_preload::elf::{HEAD, Kind, OTHER_RIGHTS, inspect};

/// Scripts whose interpreters are scripts; the kernel follows as many.
const SCRIPTS_MAX: usize = 5;

/// Why a program is not started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is none of this name.
    #[error("{0}: no such program in PATH")]
    NotFound(String),
    /// It is there, and not executable or not readable.
    #[error("{path}: {reason}")]
    Unusable {
        /// The program.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The preload library cannot reach it.
    #[error(
        "{path} {obstacle}: the preload library cannot reach it. Start `sumrate up` with --redirect, --tproxy or --tun (these need root), or give the program the SOCKS5 proxy itself"
    )]
    OutOfReach {
        /// The program.
        path: PathBuf,
        /// Why not.
        obstacle: &'static str,
    },
}

/// The file of a program that the preload library reaches: `name`, or the file of that name in `path`
/// (the variable PATH). A script is followed to its interpreter.
///
/// # Errors
/// [`ProgramError`]
pub fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let found = locate(name, path)?;
    let mut file = found.clone();
    for _ in 0..SCRIPTS_MAX {
        match next(&file, path)? {
            Some(interpreter) => file = interpreter,
            None => break,
        }
    }
    Ok(found)
}

fn locate(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let executable = |file: &Path| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match access(&file, AccessFlags::X_OK) {
            Ok(()) if file.is_file() => Ok(file),
            Ok(()) => Err(ProgramError::Unusable { path: file, reason: "is no file".to_owned() }),
            Err(error) => {
                Err(ProgramError::Unusable { path: file, reason: error.desc().to_owned() })
            }
        };
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    std::env::split_paths(path)
        .map(|directory| directory.join(name))
        .find(|file| executable(file))
        .ok_or_else(|| ProgramError::NotFound(name.to_string_lossy().into_owned()))
}

/// Checks a file; the interpreter if it is a script.
fn next(file: &Path, path: Option<&OsStr>) -> Result<Option<PathBuf>, ProgramError> {
    let failed = |error: std::io::Error| ProgramError::Unusable {
        path: file.to_owned(),
        reason: error.to_string(),
    };
    let out_of_reach = |obstacle| ProgramError::OutOfReach { path: file.to_owned(), obstacle };
    let found = file.metadata().map_err(failed)?;
    let mode = found.permissions().mode();
    let becomes_other = (mode & 0o4000 != 0 && found.uid() != geteuid().as_raw())
        || (mode & 0o2000 != 0 && found.gid() != getegid().as_raw());
    if becomes_other || (!geteuid().is_root() && has_capabilities(file)) {
        return Err(out_of_reach(OTHER_RIGHTS));
    }
    let mut head = Vec::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened.take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    let kind = inspect(&head);
    match (kind.obstacle(), kind) {
        (Some(obstacle), _) => Err(out_of_reach(obstacle)),
        (None, Kind::Script(line)) => interpreter(line, path).map(Some),
        (None, _) => Ok(None),
    }
}

/// The program that runs a script: the line's first word, or what `env` will find.
fn interpreter(line: &[u8], path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    if first.ends_with(b"/env") {
        let is_name = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
        if let Some(name) = words.find(is_name) {
            return locate(OsStr::from_bytes(name), path);
        }
    }
    locate(&OsString::from(OsStr::from_bytes(first)), path)
}

/// File capabilities have the same effect as another owner's rights.
fn has_capabilities(file: &Path) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(file, "security.capability", &mut value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn programs_are_found_and_scripts_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]);
        let path = path.unwrap();
        let look = |name: &str| find(OsStr::new(name), Some(&path));
        assert!(look("sh").unwrap().ends_with("sh"));
        assert_eq!(look("no-such-program"), Err(ProgramError::NotFound("no-such-program".into())));
        file(folder.path(), "script", b"#!/usr/bin/env -S sh -e\n", 0o755);
        assert_eq!(look("script"), Ok(folder.path().join("script")));
        let stat = file(folder.path(), "static", b"\x7fELF\x01\x01", 0o755);
        let error = look("static").unwrap_err();
        assert!(
            matches!(&error, ProgramError::OutOfReach { path, .. } if *path == stat),
            "{error}"
        );
        file(folder.path(), "over", format!("#!{}\n", stat.display()).as_bytes(), 0o755);
        assert_eq!(look("over").unwrap_err(), error);
        let plain = file(folder.path(), "plain", b"#!/bin/sh\n", 0o644);
        assert!(matches!(look("plain"), Err(ProgramError::NotFound(_))));
        assert!(matches!(look(plain.to_str().unwrap()), Err(ProgramError::Unusable { .. })));
    }

    #[test]
    fn a_program_with_another_owners_rights_is_out_of_reach() {
        let folder = tempfile::tempdir().unwrap();
        if !geteuid().is_root() {
            return test_skip::skipped("only root can make such a file");
        }
        let own = file(folder.path(), "own", b"#!/bin/sh\n", 0o755);
        std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o4755)).unwrap();
        assert!(matches!(find(own.as_os_str(), None), Err(ProgramError::OutOfReach { .. })));
    }
}
