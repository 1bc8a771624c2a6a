//! The log: on standard error, or in systemd's journal.

use std::fmt::{self, Debug};
use std::io::{self, IsTerminal};

use fbdt_proto::plain_text::plain;
use time::{OffsetDateTime, UtcOffset};
use tracing::field::Field;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{FormatEvent, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;
use crate::output;

/// Logs as `format` says: SUMRATE_LOG decides what, else the number of `-v`. The journal is written to
/// where systemd says that stderr leads there anyway, because it then keeps fields and levels.
pub(crate) fn start(verbose: u8, format: LogFormat) {
    let level = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    // What name servers get wrong is nothing that anybody here can mend: it would only fill the log.
    let all = format!("{level},hickory_net=off,hickory_proto=off,hickory_resolver=off");
    let filter = EnvFilter::try_from_env("SUMRATE_LOG").unwrap_or_else(|_| EnvFilter::new(all));
    let is_service = std::env::var_os("JOURNAL_STREAM").is_some();
    let wants_journal = match format {
        LogFormat::Journald => true,
        LogFormat::Auto => is_service && !io::stderr().is_terminal(),
        LogFormat::Text | LogFormat::Json => false,
    };
    if wants_journal {
        match tracing_journald::layer() {
            Ok(journal) => {
                let _ = tracing_subscriber::registry().with(filter).with(journal).try_init();
                return;
            }
            Err(error) if format == LogFormat::Journald => {
                output::print_error(&format!(
                    "sumrate: no journal ({error}): the log goes to stderr"
                ));
            }
            Err(_) => {}
        }
    }
    let text =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(io::stderr().is_terminal());
    let _ = match format {
        LogFormat::Json => {
            text.with_writer(|| JsonLog(io::stderr())).json().flatten_event(true).try_init()
        }
        LogFormat::Auto if io::stderr().is_terminal() => {
            let lines = TerminalLines::of_this_place();
            text.with_writer(io::stderr).fmt_fields(plain_fields()).event_format(lines).try_init()
        }
        _ => text.with_writer(io::stderr).fmt_fields(plain_fields()).try_init(),
    };
}

/// Lines for a person at a terminal: local time to the second, level, message.
#[derive(Debug, Clone, Copy)]
struct TerminalLines(UtcOffset);

impl TerminalLines {
    /// With this machine's time zone; UTC where it cannot be known.
    fn of_this_place() -> Self {
        Self(UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC))
    }
}

impl<S, N> FormatEvent<S, N> for TerminalLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (hour, minute, second) = OffsetDateTime::now_utc().to_offset(self.0).to_hms();
        let level = *event.metadata().level();
        let (on, off) = match (writer.has_ansi_escapes(), level) {
            (false, _) => ("", ""),
            (true, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[0m"),
            (true, Level::WARN) => ("\u{1b}[33m", "\u{1b}[0m"),
            (true, _) => ("\u{1b}[2m", "\u{1b}[0m"),
        };
        write!(writer, "{hour:02}:{minute:02}:{second:02} {on}{level}{off} ")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Formats each field as plain text: the subscriber's own format lets `%` values through as they are.
fn plain_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    let format = |writer: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        let value = plain(&output::without_codes(&format!("{value:?}")));
        match (field.name(), writer.has_ansi_escapes()) {
            ("message", _) => write!(writer, "{value}"),
            (name, false) => write!(writer, "{name}={value}"),
            // The name italic, the sign dim.
            (name, true) => {
                write!(writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{value}")
            }
        }
    };
    debug_fn(format).delimited(" ")
}

/// Writes events, each of which comes whole, as JSON without hidden characters.
struct JsonLog<W>(W);

impl<W: io::Write> io::Write for JsonLog<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let event = (String::from_utf8_lossy(event), event.len());
        self.0.write_all(output::escaped_json(&event.0).as_bytes())?;
        Ok(event.1)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt_proto::plain_text::is_hidden;
    use std::sync::{Arc, Mutex};

    const HOSTILE: &str = "\u{1b}[2Jx\u{1b}[31my\u{9b}0m\u{202e}z\u{200b}\nMESSAGE=forged\nPRIORITY=0\n\u{2028}\r\u{7f}\u{e0041}";

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// One event with a hostile text in each kind of field.
    fn log_hostile() {
        let error = io::Error::other(HOSTILE);
        tracing::warn!(text = HOSTILE, %error, debug = ?HOSTILE, "said {HOSTILE}");
    }

    #[test]
    fn a_person_reads_time_level_and_message_alone() {
        let (kept, lines) = (Kept::default(), TerminalLines(UtcOffset::UTC));
        let out = kept.clone();
        let text = tracing_subscriber::fmt().with_ansi(false).with_writer(move || out.clone());
        let text = text.fmt_fields(plain_fields()).event_format(lines);
        let error = io::Error::other(HOSTILE);
        tracing::subscriber::with_default(text.finish(), || {
            tracing::warn!("wlan0 lost");
            tracing::warn!(%error, "failed");
        });
        let said = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let time = |line: &str| {
            line.char_indices().take(8).all(|(at, c)| match at {
                2 | 5 => c == ':',
                _ => c.is_ascii_digit(),
            })
        };
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines.iter().all(|line| time(line)), "{said}");
        assert_eq!(&lines[0][8..], " WARN wlan0 lost");
        assert!(lines[1][8..].starts_with(" WARN failed error="), "{said}");
        assert!(!said.lines().any(|line| line.contains(is_hidden)), "{said}");
    }

    fn logged(is_json: bool, is_styled: bool) -> String {
        let kept = Kept::default();
        let out = kept.clone();
        let text = tracing_subscriber::fmt().with_ansi(is_styled);
        if is_json {
            let json = text.with_writer(move || JsonLog(out.clone())).json();
            tracing::subscriber::with_default(json.finish(), log_hostile);
        } else {
            let text = text.with_writer(move || out.clone()).fmt_fields(plain_fields());
            tracing::subscriber::with_default(text.finish(), log_hostile);
        }
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    /// Where the journal's socket is; set for the process that the test below starts.
    const JOURNAL: &str = "/run/systemd/journal";

    /// The fields of a datagram of systemd's native protocol.
    fn fields(mut rest: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if let Some(sign) = line.iter().position(|byte| *byte == b'=') {
                fields.push((text(&line[..sign]), text(&line[sign + 1..])));
                rest = after;
                continue;
            }
            let length = u64::from_le_bytes(after[..8].try_into().unwrap()) as usize;
            fields.push((text(line), text(&after[8..8 + length])));
            assert_eq!(after[8 + length], b'\n');
            rest = &after[9 + length..];
        }
        fields
    }

    /// Sends one event to the journal of the next test.
    #[test]
    #[ignore = "the next test runs it in a namespace with a journal of its own"]
    fn one_event_goes_to_a_journal_of_its_own() {
        assert!(std::env::var_os("SUMRATE_TEST_JOURNAL").is_some(), "this is the user's journal");
        start(0, LogFormat::Journald);
        log_hostile();
    }

    #[test]
    fn hostile_words_forge_no_field_of_the_journal() {
        let directory = tempfile::tempdir().unwrap();
        let journal =
            std::os::unix::net::UnixDatagram::bind(directory.path().join("socket")).unwrap();
        let script = format!(
            "mount --bind \"$1\" /mnt && mount -t tmpfs none /run && mkdir -p {JOURNAL} \
             && mount --move /mnt {JOURNAL} && exec \"$2\" --ignored --exact \"$3\""
        );
        let test = "logging::tests::one_event_goes_to_a_journal_of_its_own";
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
            .arg(directory.path())
            .arg(std::env::current_exe().unwrap())
            .arg(test)
            .env("SUMRATE_TEST_JOURNAL", "1")
            .env_remove("SUMRATE_LOG")
            .output()
            .unwrap();
        if String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
            let is_required = std::env::var_os("SUMRATE_EVERY_PROGRAM").is_some();
            assert!(!is_required, "the kernel refuses namespaces: {output:?}");
            return test_skip::skipped("the kernel refuses namespaces");
        }
        assert!(output.status.success(), "{output:?}");
        journal.set_nonblocking(true).unwrap();
        let mut datagram = vec![0; 1 << 16];
        let said = loop {
            // The first one is empty.
            let length = journal.recv(&mut datagram).unwrap();
            if length > 0 {
                break fields(&datagram[..length]);
            }
        };
        let values = |name: &str| -> Vec<&str> {
            said.iter().filter(|(of, _)| of == name).map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(values("MESSAGE"), [format!("said {HOSTILE}")]);
        assert_eq!(values("F_TEXT"), [HOSTILE]);
        assert_eq!(values("PRIORITY"), ["4"]);
        let known = ["PRIORITY", "TARGET", "CODE_FILE", "CODE_LINE", "SYSLOG_IDENTIFIER"];
        let known =
            |name: &str| known.contains(&name) || name == "MESSAGE" || name.starts_with("F_");
        assert!(said.iter().all(|(name, _)| known(name)), "{said:?}");
    }

    #[test]
    fn an_event_is_one_plain_line() {
        for is_json in [false, true] {
            let line = logged(is_json, false);
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert!(!line.trim_end().contains(is_hidden), "{line:?}");
            assert!(line.contains("MESSAGE=forged"), "{line:?}");
        }
        let styled = logged(false, true);
        assert_eq!(styled.matches('\n').count(), 1, "{styled:?}");
        assert!(styled.contains("\u{1b}[3merror"), "{styled:?}");
        for forged in ["\u{1b}[2J", "\u{1b}[31m", "\u{9b}"] {
            assert!(!styled.contains(forged), "{styled:?}");
        }
        let unstyled = styled.replace('\u{1b}', "");
        assert!(!unstyled.trim_end().contains(is_hidden), "{styled:?}");
    }
}
