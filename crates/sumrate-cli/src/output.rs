//! Standard output. A reader that goes away (`| head`) is no failure.

use std::io::{self, IsTerminal, Write};
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

/// Whether the service manager may keep what is printed, in a journal that others can read.
pub fn is_kept() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !io::stdout().is_terminal() && (is_set("NOTIFY_SOCKET") || is_set("JOURNAL_STREAM"))
}

/// The text without the credentials of join links, which users put where they do not belong: errors
/// quote what they were given, and errors are logged.
pub fn without_secrets(text: &str) -> String {
    const FEWEST: usize = 20;
    let is_secret = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let mut parts = text.split("c=");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.bytes().take_while(|byte| is_secret(byte)).count();
        let visible = if length < FEWEST { part } else { &part[length..] };
        let mark = if length < FEWEST { "" } else { "<redacted>" };
        shown.extend(["c=", mark, visible]);
    }
    shown
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
        // Else a crash of the machine can leave the new name on no content.
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// The mode of a regular file that others than its owner have access to.
pub fn exposed_mode(found: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = found.permissions().mode() & 0o777;
    (found.is_file() && mode & 0o077 != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn credentials_of_links_are_taken_out_and_nothing_else() {
        let secret = "EscYkP6FyA2W7DklTfVzJaXP4TJQ1UBe5fDeQcy12R8GdSq_RILACQ";
        let said = format!("bad 'sumrate://h:1?v=1#k=KQu2&c={secret}' for '--path', c={secret}");
        let expected = "bad 'sumrate://h:1?v=1#k=KQu2&c=<redacted>' for '--path', c=<redacted>";
        assert_eq!(without_secrets(&said), expected);
        for harmless in ["", "c=", "--cc=cubic", "src=1 c=é", "abc=short"] {
            assert_eq!(without_secrets(harmless), harmless);
        }
    }

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
