//! What a disk, a backup or an editor can leave in the account of what paths have used.
#![allow(clippy::panic, clippy::expect_used)] // this is what finds

use super::ledger::{Found, account, written};

/// The account: what is read is what would be written, and its month is over some day.
pub fn path_usage(data: &[u8]) {
    let Ok(Found::Account(month, used)) = account(data) else { return };
    let text = written(month, &used).expect("it can be written");
    match account(text.as_bytes()) {
        Ok(Found::Account(again, as_much)) => assert_eq!((again, as_much), (month, used)),
        _ => panic!("what was written is no account: {text}"),
    }
    assert!(month.end().ends_with("-01"), "a month ends with the first day of another");
}
