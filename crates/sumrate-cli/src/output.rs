//! Standard output and standard error: text of others has no effect on the terminal that shows it.
//! A reader that goes away (`| head`) is no failure.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use fbdt_proto::plain_text::{is_hidden, plain};
use serde::Serialize;

/// Prints a line of text.
///
/// # Errors
/// What the system says, except that the reader has gone.
pub fn line(text: &str) -> io::Result<()> {
    is_read(&format!("{text}\n")).map(drop)
}

/// Prints text for a reader of which more is to come, and says whether it is still there: who prints
/// without end stops when nobody reads.
///
/// # Errors
/// What the system says, except that the reader has gone.
pub fn is_read(text: &str) -> io::Result<bool> {
    print_bytes(plain_lines(text).as_bytes())
}

/// Prints bytes unchanged: only those that this program made itself.
///
/// # Errors
/// As [`is_read`].
pub fn print_bytes(text: &[u8]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true),
    }
}

/// Prints a value as one line of JSON, as [`is_read`] prints.
///
/// # Errors
/// As [`is_read`].
pub fn is_json_read<T: Serialize>(value: &T) -> io::Result<bool> {
    print_json(&serde_json::to_string(value)?)
}

fn print_json(json: &str) -> io::Result<bool> {
    print_bytes(format!("{}\n", escaped_json(json)).as_bytes())
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// As [`line`].
pub fn json<T: Serialize>(value: &T) -> io::Result<()> {
    print_json(&serde_json::to_string(value)?).map(drop)
}

/// Prints a value as indented JSON.
///
/// # Errors
/// As [`line`].
pub fn pretty_json<T: Serialize>(value: &T) -> io::Result<()> {
    print_json(&serde_json::to_string_pretty(value)?).map(drop)
}

/// Prints a line on standard error.
pub fn print_error(text: &str) {
    // Nobody is left to be told.
    let _ = writeln!(io::stderr(), "{}", plain_lines(&without_codes(text)));
}

/// Several lines of text, each of them plain.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// JSON of the same value without a hidden character: strings have escapes in their place.
pub fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside strings, JSON has line breaks only; inside them, it has none.
        if c == '\n' || !is_hidden(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

/// A number with what is counted, in one of its two forms.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
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

/// The text without the numbers by which the system knows its errors, which stand behind their words.
pub fn without_codes(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match part[digits..].strip_prefix(')').filter(|_| digits > 0) {
            Some(rest) => shown += rest,
            None => shown.extend([" (os error ", part]),
        }
    }
    shown
}

/// Writes a file for its owner alone, whole or not at all: a reader sees the old one or the new one.
///
/// # Errors
/// What the system says.
pub fn write_private(path: &Path, content: &str) -> io::Result<()> {
    replace_private(path, content).map(drop)
}

/// Replaces `path` by a private file and returns it open for writing.
///
/// # Errors
/// What the system says.
pub fn replace_private(path: &Path, content: &str) -> io::Result<File> {
    let (temporary, mut file) = create_beside(path)?;
    let mut write = || {
        file.write_all(content.as_bytes())?;
        // Else a crash of the machine can leave the new name on no content.
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    match write() {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = std::fs::remove_file(&temporary);
            Err(error)
        }
    }
}

/// Makes a new file for its owner alone in the directory of `path`, under a name that nobody can
/// know before: what others have put there is neither followed nor used.
///
/// # Errors
/// What the system says.
pub fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    use std::os::unix::fs::OpenOptionsExt;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut random = [0; 8];
    let got = rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    if got != random.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut temporary_name = name.to_owned();
    temporary_name.push(format!(".{:016x}.tmp", u64::from_ne_bytes(random)));
    let temporary = path.with_file_name(temporary_name);
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
    Ok((temporary, file))
}

/// What is wrong with a file that holds a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Others than its owner have access.
    Mode(u32),
    /// It belongs to this user, who is neither the one that runs this nor root.
    Owner(u32),
}

/// Whether others than this process's user and root could have read or written a regular file. What
/// is no file (a pipe, say) is nobody else's to open.
pub fn exposure(found: &Metadata) -> Option<Exposure> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (mode, owner) = (found.permissions().mode() & 0o777, found.uid());
    if !found.is_file() {
        None
    } else if mode & 0o077 != 0 {
        Some(Exposure::Mode(mode))
    } else if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
        Some(Exposure::Owner(owner))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn numbers_of_errors_are_left_out_and_nothing_else() {
        let shown = |text: &str| without_codes(text);
        assert_eq!(shown("a: refused (os error 111); b (os error 2)"), "a: refused; b");
        for other in ["", "a (os error )", "a (os error x1)", "a (os error 1", "(os error 1)"] {
            assert_eq!(shown(other), other);
        }
        let system = std::io::Error::from_raw_os_error(nix::libc::ECONNREFUSED);
        assert_eq!(shown(&system.to_string()), "Connection refused");
    }

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
    fn printed_text_has_no_hidden_characters() {
        let hostile =
            "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}gpj.exe\u{200b}\u{e0041}\r\nnext\u{2028}";
        assert_eq!(
            plain_lines(hostile),
            " ]0;owned  31m\u{fffd}gpj.exe\u{fffd}\u{fffd} \nnext\u{fffd}"
        );
        let json = serde_json::to_string_pretty(&[hostile]).unwrap();
        let escaped = escaped_json(&json);
        assert!(!escaped.contains(|c| c != '\n' && is_hidden(c)), "{escaped:?}");
        assert!(escaped.contains("\\u202e") && escaped.contains("\\udb40\\udc41"), "{escaped}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).unwrap(), [hostile]);
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

    #[test]
    fn what_others_put_beside_a_private_file_is_neither_followed_nor_used() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: String| directory.path().join(name);
        let victim = place("victim".to_owned());
        std::fs::write(&victim, "untouched").unwrap();
        let (link, file) = (place("link".to_owned()), place("ready".to_owned()));
        // Names that can be known: the process's number is no secret.
        let id = std::process::id();
        std::os::unix::fs::symlink(&victim, place(format!("link.{id}.tmp"))).unwrap();
        let planted = place(format!("ready.{id}.tmp"));
        std::fs::write(&planted, "").unwrap();
        std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o666)).unwrap();
        for path in [&link, &file] {
            write_private(path, "secret").unwrap();
            let found = std::fs::symlink_metadata(path).unwrap();
            assert!(found.is_file(), "{path:?}");
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(&planted).unwrap(), "");
    }

    #[test]
    fn a_secret_of_another_user_is_exposed_even_to_root() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("link");
        write_private(&path, "secret").unwrap();
        let found = || exposure(&std::fs::metadata(&path).unwrap());
        assert_eq!(found(), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(found(), Some(Exposure::Mode(0o640)));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        if !nix::unistd::geteuid().is_root() {
            return test_skip::skipped("only root can give files away");
        }
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        assert_eq!(found(), Some(Exposure::Owner(65534)));
        assert_eq!(exposure(&std::fs::metadata("/dev/null").unwrap()), None);
    }
}
