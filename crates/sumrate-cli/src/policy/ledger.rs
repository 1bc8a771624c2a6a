//! What each path has carried this month, kept over restarts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use crate::output;

/// Name and version of the file's form.
const SCHEMA: &str = "sumrate.path-usage.v1";
/// Name of the file in the state directory.
const FILE: &str = "path-usage.json";
/// What a file that is damaged is called from then on.
const DAMAGED: &str = "path-usage.json.damaged";
/// What the names of all versions of the form begin with.
const SCHEMAS: &str = "sumrate.path-usage.";

/// A calendar month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// As in 2026.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
}

impl Month {
    /// The present one.
    pub fn now() -> Self {
        let now = time::OffsetDateTime::now_utc();
        Self { year: now.year(), month: now.month().into() }
    }

    /// The day on which it is over, as in 2026-12-01.
    pub fn end(self) -> String {
        let (year, month) = if self.month < 12 {
            (self.year, self.month + 1)
        } else {
            (self.year.saturating_add(1), 1)
        };
        format!("{year:04}-{month:02}-01")
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let (year, month) = (year.parse().ok()?, month.parse().ok()?);
        (1..=12).contains(&month).then_some(Self { year, month })
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// The account cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It is damaged, and stays where it is.
    #[error(
        "{path}, the data used by paths, is damaged ({damage}) and cannot be renamed to {aside}: {error}; repair it, or remove it to count from zero"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: String,
        /// What it was to be called.
        aside: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another version of this program wrote it.
    #[error(
        "{path} is of another version of sumrate: its schema is {schema}, and this one reads {known}; start the version that wrote it, or remove the file to count from zero",
        known = SCHEMA
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: String,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// What there is of an account in the directory.
pub(super) enum Found {
    Nothing,
    Account(Month, Used),
    /// What is wrong with it.
    Damaged(String),
}

/// What every version of the file has.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    month: String,
    used_bytes: BTreeMap<String, u64>,
}

impl File {
    fn new(month: Month, used: &Used) -> Self {
        Self { schema: SCHEMA.to_owned(), month: month.to_string(), used_bytes: used.clone() }
    }
}

/// Bytes by path.
pub(super) type Used = BTreeMap<String, u64>;

/// Bytes by path in the present month, and the file that keeps them.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    month: Month,
    used: Used,
    changed: bool,
    claim: Claim,
    /// What this process has counted while another writes the file.
    unwritten: Used,
}

impl Ledger {
    /// Reads the account of a state directory; without one, nothing was used. An account of a month
    /// that the clock has not reached yet is gone on with: the clock is behind. Where another process
    /// writes the account, this one only follows it, until that one has ended. A damaged account is
    /// renamed, with a warning, and another begun.
    ///
    /// # Errors
    /// [`LedgerError`]
    pub fn open(directory: &Path, month: Month) -> Result<Self, LedgerError> {
        let (path, claim) = (directory.join(FILE), Claim::attempt(directory));
        let (used, unwritten) = (Used::new(), Used::new());
        let mut ledger = Self { path, month, used, changed: false, claim, unwritten };
        ledger.take_over()?;
        let file = ledger.path.display();
        if ledger.month > month {
            tracing::warn!(
                "{file} counts data of {}, but the clock says {month}: quotas stay in the later month until the clock reaches it; if the clock is right, remove the file and start again",
                ledger.month
            );
        }
        if let Claim::Theirs(holder) = &ledger.claim {
            tracing::warn!(
                "{holder} counts data in {file}: the data of this process is added when that one ends; give each `sumrate up` its own --state"
            );
        }
        Ok(ledger)
    }

    /// What the file says, and what this process has counted beside it.
    fn take_over(&mut self) -> Result<(), LedgerError> {
        let (month, used) = match self.read()? {
            Found::Account(month, used) => (month, used),
            Found::Nothing => return Ok(()),
            Found::Damaged(damage) => return self.set_aside(damage),
        };
        if month < self.month {
            return Ok(());
        }
        self.turn(month);
        self.used = used;
        for (path, bytes) in &self.unwritten {
            let used = self.used.entry(path.clone()).or_default();
            *used = used.saturating_add(*bytes);
        }
        Ok(())
    }

    fn read(&self) -> Result<Found, LedgerError> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(self.failed("read", error)),
        };
        match serde_json::from_slice::<Head>(&text) {
            Ok(Head { schema }) if schema != SCHEMA && schema.starts_with(SCHEMAS) => {
                Err(LedgerError::OtherVersion { path: self.path.clone(), schema })
            }
            _ => Ok(account(&text).unwrap_or_else(Found::Damaged)),
        }
    }

    /// Keeps what is damaged for whoever can mend it, and goes on with what this process knows.
    fn set_aside(&mut self, damage: String) -> Result<(), LedgerError> {
        if !self.claim.is_ours() {
            // The process that counts in it knows what it has counted, and writes it anew.
            return Ok(());
        }
        let (path, aside) = (self.path.clone(), self.path.with_file_name(DAMAGED));
        if let Err(error) = std::fs::rename(&path, &aside) {
            return Err(LedgerError::Damaged { path, damage, aside, error });
        }
        let known = self.used.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        self.changed |= known > 0;
        tracing::warn!(
            "{} is damaged ({damage}) and was renamed to {}: the count of {} starts again at {known} bytes; to restore it, repair the file and put it back while no `sumrate up` runs",
            path.display(),
            aside.display(),
            self.month
        );
        Ok(())
    }

    fn failed(&self, action: &'static str, error: io::Error) -> LedgerError {
        LedgerError::Io { action, path: self.path.clone(), error }
    }

    /// The month that is counted.
    pub fn month(&self) -> Month {
        self.month
    }

    /// A new month begins with nothing used. A clock that was set back begins none.
    pub fn turn(&mut self, month: Month) {
        if month > self.month {
            self.month = month;
            self.used.clear();
            self.unwritten.clear();
            self.changed = true;
        }
    }

    /// Bytes that a path has carried this month.
    pub fn used(&self, path: &str) -> u64 {
        self.used.get(path).copied().unwrap_or(0)
    }

    /// A path carried more.
    pub fn count(&mut self, path: &str, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let add = |account: &mut Used| {
            let used = account.entry(path.to_owned()).or_default();
            *used = used.saturating_add(bytes);
        };
        add(&mut self.used);
        if !self.claim.is_ours() {
            add(&mut self.unwritten);
        }
        self.changed = true;
    }

    /// Writes the account if it has changed, whole or not at all. Where another process writes it, its
    /// account is read instead; once that process has ended, this one goes on with it.
    ///
    /// # Errors
    /// What the system said; the account in memory goes on.
    pub fn save(&mut self) -> Result<(), LedgerError> {
        if !self.claim.is_ours() {
            self.claim = Claim::attempt(self.path.parent().unwrap_or(Path::new(".")));
            self.take_over()?;
            if !self.claim.is_ours() {
                return Ok(());
            }
            self.unwritten.clear();
        }
        if !self.changed {
            return Ok(());
        }
        let text = written(self.month, &self.used).map_err(|error| self.failed("write", error))?;
        let write = || {
            if let Some(directory) = self.path.parent() {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            }
            output::write_private(&self.path, &text)
        };
        write().map_err(|error| self.failed("write", error))?;
        self.changed = false;
        Ok(())
    }
}

/// The content of the file.
pub(super) fn written(month: Month, used: &Used) -> io::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(&File::new(month, used))?))
}

/// What the content of the file says, or what is wrong with it.
pub(super) fn account(text: &[u8]) -> Result<Found, String> {
    let file: File = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("its schema is {}, not {SCHEMA}", file.schema));
    }
    let month = Month::parse(&file.month)
        .ok_or_else(|| format!("`{}` is not a month such as 2026-11", file.month))?;
    Ok(Found::Account(month, file.used_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const NOVEMBER: Month = Month { year: 2026, month: 11 };
    const DECEMBER: Month = Month { year: 2026, month: 12 };

    #[test]
    fn a_month_is_over_on_the_first_day_of_the_next() {
        assert_eq!(NOVEMBER.end(), "2026-12-01");
        assert_eq!(DECEMBER.end(), "2027-01-01");
        assert_eq!(Month::parse("2026-11"), Some(NOVEMBER));
        assert_eq!(Month::parse("2026-13"), None);
    }

    #[test]
    fn use_outlives_the_process_and_not_the_month() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let mut ledger = Ledger::open(&state, NOVEMBER).unwrap();
        ledger.save().unwrap();
        assert!(!state.join(FILE).exists(), "nothing was used");
        ledger.count("wwan0", 700);
        ledger.count("wwan0", 300);
        ledger.save().unwrap();
        drop(ledger);
        let mut ledger = Ledger::open(&state, NOVEMBER).unwrap();
        assert_eq!(ledger.used("wwan0"), 1000);
        assert_eq!(Ledger::open(&state, DECEMBER).unwrap().used("wwan0"), 0);
        let mode = std::fs::metadata(state.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        ledger.turn(Month { year: 2025, month: 1 });
        assert_eq!(ledger.used("wwan0"), 1000, "a clock that was set back begins no month");
        ledger.turn(DECEMBER);
        assert_eq!((ledger.used("wwan0"), ledger.month()), (0, DECEMBER));
        ledger.save().unwrap();
        assert_eq!(Ledger::open(&state, NOVEMBER).unwrap().used("wwan0"), 0);
    }

    #[test]
    fn a_clock_that_is_behind_at_the_start_loses_no_account() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(directory.path(), DECEMBER).unwrap();
        ledger.count("wwan0", 1000);
        ledger.save().unwrap();
        drop(ledger);
        // Without a battery the clock begins somewhere in the past, until the time is known.
        let past = Month { year: 1970, month: 1 };
        let mut ledger = Ledger::open(directory.path(), past).unwrap();
        assert_eq!((ledger.used("wwan0"), ledger.month()), (1000, DECEMBER));
        ledger.turn(past);
        ledger.count("wwan0", 10);
        ledger.turn(DECEMBER);
        ledger.save().unwrap();
        drop(ledger);
        assert_eq!(Ledger::open(directory.path(), DECEMBER).unwrap().used("wwan0"), 1010);
        let mut ledger = Ledger::open(directory.path(), past).unwrap();
        ledger.turn(Month { year: 2027, month: 1 });
        assert_eq!(ledger.used("wwan0"), 0, "the clock has caught up, and the month is over");
    }

    #[test]
    fn one_of_two_processes_writes_and_the_other_goes_on_with_its_account() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Ledger::open(directory.path(), NOVEMBER).unwrap();
        let (mut first, mut second) = (open(), open());
        first.count("wwan0", 100);
        second.count("wwan0", 7);
        second.count("wlan0", 3);
        first.save().unwrap();
        second.save().unwrap();
        assert_eq!((second.used("wwan0"), second.used("wlan0")), (107, 3), "its own on top");
        let text = std::fs::read_to_string(directory.path().join(FILE)).unwrap();
        assert!(text.contains("100") && !text.contains("107"), "{text}");
        first.count("wwan0", 50);
        first.save().unwrap();
        drop(first);
        second.save().unwrap();
        second.save().unwrap();
        assert_eq!(second.used("wwan0"), 157, "once");
        drop(second);
        assert_eq!((open().used("wwan0"), open().used("wlan0")), (157, 3));
    }

    #[test]
    fn a_full_disk_loses_nothing_and_the_next_attempt_writes_all() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(directory.path(), NOVEMBER).unwrap();
        ledger.count("a", 5);
        ledger.save().unwrap();
        // A directory in the way of the file is refused like a full disk is.
        std::fs::remove_file(directory.path().join(FILE)).unwrap();
        std::fs::create_dir(directory.path().join(FILE)).unwrap();
        ledger.count("a", 5);
        assert!(matches!(ledger.save(), Err(LedgerError::Io { action: "write", .. })));
        assert_eq!(ledger.used("a"), 10);
        std::fs::remove_dir(directory.path().join(FILE)).unwrap();
        ledger.save().unwrap();
        assert_eq!(Ledger::open(directory.path(), NOVEMBER).unwrap().used("a"), 10);
    }

    const BAD: [&[u8]; 6] = [
        b"",
        b"{}",
        b"\xff\xfe",
        br#"{"schema":"x","month":"2026-11","used_bytes":{}}"#,
        br#"{"schema":"sumrate.path-usage.v1","month":"2026-13","used_bytes":{}}"#,
        br#"{"schema":"sumrate.path-usage.v1","month":"2026-11","used_bytes":{"a":-1}}"#,
    ];

    #[test]
    fn what_is_damaged_is_kept_beside_and_another_account_begun() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for text in BAD {
            std::fs::write(place(FILE), text).unwrap();
            let mut ledger = Ledger::open(directory.path(), NOVEMBER).unwrap();
            assert_eq!(ledger.used("wwan0"), 0);
            assert!(!place(FILE).exists());
            assert_eq!(std::fs::read(place(DAMAGED)).unwrap(), text);
            ledger.count("wwan0", 7);
            ledger.save().unwrap();
            drop(ledger);
            assert_eq!(Ledger::open(directory.path(), NOVEMBER).unwrap().used("wwan0"), 7);
        }
    }

    #[test]
    fn what_is_damaged_and_cannot_be_renamed_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        // In the way of the name: refused as in a directory that cannot be changed, to root too.
        std::fs::create_dir(directory.path().join(DAMAGED)).unwrap();
        for text in BAD {
            std::fs::write(directory.path().join(FILE), text).unwrap();
            let error = Ledger::open(directory.path(), NOVEMBER).unwrap_err().to_string();
            assert!(error.contains("cannot be renamed to"), "{error}");
            assert!(error.contains("remove it to count from zero"), "{error}");
            assert_eq!(std::fs::read(directory.path().join(FILE)).unwrap(), text);
        }
    }

    #[test]
    fn an_account_of_another_version_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let text = r#"{"schema":"sumrate.path-usage.v2","months":[]}"#;
        std::fs::write(directory.path().join(FILE), text).unwrap();
        let error = Ledger::open(directory.path(), NOVEMBER).unwrap_err().to_string();
        assert!(error.contains("sumrate.path-usage.v2, and this one reads"), "{error}");
        assert_eq!(std::fs::read_to_string(directory.path().join(FILE)).unwrap(), text);
    }

    #[test]
    fn who_only_follows_leaves_what_is_damaged_to_the_one_that_writes() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Ledger::open(directory.path(), NOVEMBER).unwrap();
        let mut first = open();
        first.count("wwan0", 100);
        first.save().unwrap();
        std::fs::write(directory.path().join(FILE), "").unwrap();
        let mut second = open();
        second.count("wwan0", 7);
        second.save().unwrap();
        assert!(!directory.path().join(DAMAGED).exists());
        first.count("wwan0", 50);
        first.save().unwrap();
        second.save().unwrap();
        assert_eq!(second.used("wwan0"), 157, "it was written anew");
        std::fs::write(directory.path().join(FILE), "").unwrap();
        drop(first);
        second.save().unwrap();
        assert!(directory.path().join(DAMAGED).exists());
        drop(second);
        assert_eq!(open().used("wwan0"), 157, "as the follower knew it");
    }
}
