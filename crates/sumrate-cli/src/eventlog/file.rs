//! The file: written by a thread of its own, so that a slow disk holds nobody up, and never larger
//! than twice [`LOG_MAX`] with the one before.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::event::{EVENT_LOG_SCHEMA, EventLine, Header};
use crate::output;
use crate::status::StatusReport;

/// Bytes after which the file becomes `FILE.1` and a new one begins.
pub const LOG_MAX: u64 = 64 << 20;
/// Batches that wait for the disk; more are dropped.
const WAITING_MAX: usize = 256;

/// The log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("--event-log {path}: {error}; name a file in a directory that exists and is yours")]
pub struct EventLogError {
    path: PathBuf,
    error: io::Error,
}

/// An open log; what was given to it is on the disk when it is dropped.
#[derive(Debug)]
pub struct EventLog {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl EventLog {
    /// Begins a new file; an old one is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(
        path: &Path,
        report: &StatusReport,
        unix_time_s: f64,
    ) -> Result<Self, EventLogError> {
        let failed = |error| EventLogError { path: path.to_owned(), error };
        let header = Header {
            schema: EVENT_LOG_SCHEMA.to_owned(),
            version: report.version.clone(),
            role: report.role.clone(),
            pid: report.pid,
            reference_time_s: unix_time_s - report.uptime_s,
        };
        let header = serde_json::to_string(&header).map_err(|error| failed(error.into()))?;
        let mut writer = Writer { path: path.to_owned(), header, file: None, written: 0 };
        writer.begin().map_err(failed)?;
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("event-log".to_owned());
        let writer = thread.spawn(move || writer.run(&receiver)).map_err(failed)?;
        Ok(Self { lines: Some(sender), writer: Some(writer) })
    }

    /// Writes events, unless the disk is far behind.
    pub fn write(&self, events: &[EventLine]) {
        let mut text = String::new();
        for event in events {
            if let Ok(line) = serde_json::to_string(event) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        if text.is_empty() {
            return;
        }
        if let Some(Err(TrySendError::Full(_))) =
            self.lines.as_ref().map(|lines| lines.try_send(text))
        {
            tracing::debug!("the disk is behind: events are left out of the log");
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

struct Writer {
    path: PathBuf,
    header: String,
    file: Option<File>,
    written: u64,
}

impl Writer {
    fn begin(&mut self) -> io::Result<()> {
        let header = format!("{}\n", self.header);
        let file = output::replace_private(&self.path, &header)?;
        self.written = self.header.len() as u64 + 1;
        self.file = Some(file);
        Ok(())
    }

    fn run(mut self, lines: &Receiver<String>) {
        let mut failing = false;
        while let Ok(text) = lines.recv() {
            match self.append(&text) {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    tracing::warn!(%error, "events are missing from {}", self.path.display());
                    failing = true;
                }
                Err(_) => {}
            }
        }
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        if self.written + text.len() as u64 > LOG_MAX {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            std::fs::rename(&self.path, old)?;
            self.begin()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text.as_bytes())?;
        self.written += text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::LogEvent;
    use crate::status::STATUS_SCHEMA;
    use std::os::unix::fs::PermissionsExt;

    fn report() -> StatusReport {
        StatusReport {
            schema: STATUS_SCHEMA.to_owned(),
            version: "0".to_owned(),
            role: "client".to_owned(),
            pid: 1,
            uptime_s: 10.0,
            ..StatusReport::default()
        }
    }

    #[test]
    fn lines_are_there_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        let log = EventLog::create(&path, &report(), 1010.0).unwrap();
        let line = EventLine { time_s: 1.5, event: LogEvent::ServerFound {} };
        log.write(&[line.clone(), line]);
        log.write(&[]);
        drop(log);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let header: Header = serde_json::from_str(lines[0]).unwrap();
        assert!((header.reference_time_s - 1000.0).abs() < 1e-9);
        assert_eq!(lines[1..], [r#"{"time_s":1.5,"name":"server:found","data":{}}"#; 2]);
        let nowhere = directory.path().join("no/such");
        assert!(EventLog::create(&nowhere, &report(), 0.0).is_err());
    }

    #[test]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, victim) = (directory.path().join("events"), directory.path().join("victim"));
        std::fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        drop(EventLog::create(&path, &report(), 0.0).unwrap());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn a_file_that_others_can_read_becomes_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        // Who has it open writes to the old file.
        let mut stranger = File::options().append(true).open(&path).unwrap();
        let log = EventLog::create(&path, &report(), 0.0).unwrap();
        stranger.write_all(b"forged").unwrap();
        drop(log);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with('{') && !text.contains("forged"), "{text}");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_full_file_makes_room_for_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        let mut writer =
            Writer { path: path.clone(), header: "{}".to_owned(), file: None, written: 0 };
        writer.begin().unwrap();
        writer.append("one\n").unwrap();
        writer.written = LOG_MAX;
        writer.append("two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\ntwo\n");
        let old = directory.path().join("events.1");
        assert_eq!(std::fs::read_to_string(old).unwrap(), "{}\none\n");
    }
}
