//! Which matrix and which schedulers a kept table is of.

use std::time::Duration;

use fbdt_proto::SchedulerKind;

use crate::matrix::{GROUPS, conditions};
use crate::measure::{Rules, scenario};
use crate::table::run;

/// FNV-1a, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Changes with how cells are measured or simulated: 2, links alone without the session's buffer, and
/// bursts that arrive segment by segment.
const METHOD: u32 = 2;

/// Groups whose middle condition tells schedulers apart: between them every rule has a part in one, those of
/// full buffers, silent paths, losses, late paths and a transfer's end.
const TELLING: [&str; 5] = ["buffer", "outage", "loss", "rate-rtt", "short"];

/// A number of the whole matrix, 16 hexadecimal digits: of all conditions but the traces, with
/// their links, changes, times and seeds, of whether sockets are paced, and of how cells are measured.
/// A table with another number is of other conditions.
#[must_use]
pub fn fingerprint() -> String {
    let all = GROUPS.iter().flat_map(|group| conditions(group, &[]));
    number(all.map(|condition| {
        let paced = scenario(&condition, SchedulerKind::default(), Rules::default(), 1).paced;
        format!("{condition:?} {paced} {METHOD}")
    }))
}

/// A number of what the schedulers do, 16 hexadecimal digits: what comes out of a second of each in the
/// middle condition of the groups that tell them apart. A table with another number is of other rules, or
/// of another simulation. It takes seconds.
#[must_use]
pub fn behaviour() -> String {
    let middle = |group: &str| {
        let mut all = conditions(group, &[]);
        (!all.is_empty()).then(|| all.swap_remove(all.len() / 2))
    };
    let cells = TELLING.iter().filter_map(|group| middle(group)).flat_map(|mut condition| {
        condition.time = Duration::from_secs(1);
        SchedulerKind::ALL.map(|kind| format!("{:?}", run(&condition, kind, Rules::default(), 1)))
    });
    number(cells)
}

fn number(texts: impl Iterator<Item = String>) -> String {
    let mut hash = BASIS;
    for text in texts {
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published value of FNV-1a for one letter.
    #[test]
    fn the_number_is_fnv() {
        assert_eq!(number(["a".to_owned()].into_iter()), "af63dc4c8601ec8c");
        assert_eq!(
            number(["a".to_owned(), "b".to_owned()].into_iter()),
            number(["ab".to_owned()].into_iter())
        );
    }

    #[test]
    fn the_number_of_the_matrix_is_of_its_conditions() {
        assert_eq!(fingerprint().len(), 16);
        assert_ne!(fingerprint(), number(std::iter::empty()), "there are conditions");
    }
}
