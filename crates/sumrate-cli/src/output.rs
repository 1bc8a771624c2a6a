//! Standard output. A reader that goes away (`| head`) is no failure.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

/// Prints a line of text.
///
/// # Errors
/// What the system says, except that the reader has gone.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    forgive_broken_pipe(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// As [`line`].
pub fn json<T: Serialize>(value: &T) -> io::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Prints a value as indented JSON.
///
/// # Errors
/// As [`line`].
pub fn pretty_json<T: Serialize>(value: &T) -> io::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Takes a broken pipe for success.
///
/// # Errors
/// Every other error.
pub fn forgive_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a file for its owner alone, whole or not at all: a reader sees the old one or the new one.
///
/// # Errors
/// What the system says.
pub fn write_private(path: &Path, content: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary_name = name.to_owned();
    temporary_name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary_name);
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(content.as_bytes())?;
        std::fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn private_files_are_private_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("link");
        write_private(&path, "one").unwrap();
        write_private(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        assert!(write_private(&directory.path().join("no/such"), "x").is_err());
    }
}
