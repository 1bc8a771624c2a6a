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

    const KEPT: [(&str, &str); 4] = [
        ("tournament.md", include_str!("../../../docs/results/tournament.md")),
        ("tournament-rules.md", include_str!("../../../docs/results/tournament-rules.md")),
        ("tournament-causes.md", include_str!("../../../docs/results/tournament-causes.md")),
        ("tournament-cubic.md", include_str!("../../../docs/results/tournament-cubic.md")),
    ];
    const DOCUMENT: &str = include_str!("../../../docs/schedulers.md");
    /// What the document says while a kept table is of another matrix.
    const OTHER_CONDITIONS: &str = "of earlier conditions";
    /// What it says while one is of other schedulers.
    const OTHER_SCHEDULERS: &str = "of earlier schedulers";

    /// A table of several numbers, which is of code that never was, has no sentence with this one alone.
    fn assert_said(number: &str, sentence: &str, of: &str, said: &str) {
        let of_it = |text: &str| text.contains(sentence);
        let others: Vec<&str> =
            KEPT.iter().filter(|(_, text)| !of_it(text)).map(|(name, _)| *name).collect();
        assert_eq!(
            DOCUMENT.contains(said),
            !others.is_empty(),
            "the number of {of} is {number}, which {others:?} of docs/results lack: run `make \
             tournament tournament-rules tournament-causes tournament-cubic` and keep their summaries and the figure, and say in \
             docs/schedulers.md `{said}` only as long as that is so",
        );
    }

    #[test]
    fn a_kept_table_of_other_conditions_is_called_so() {
        let number = fingerprint();
        let sentence = format!("the number of the matrix is {number}, ");
        assert_said(&number, &sentence, "the matrix", OTHER_CONDITIONS);
        for (name, text) in KEPT {
            assert!(text.contains("commit"), "{name} does not say its commit");
        }
    }

    /// Elsewhere the last digit of a logarithm may differ.
    #[test]
    #[cfg_attr(
        not(all(target_arch = "x86_64", target_os = "linux")),
        ignore = "tables are made on x86_64 Linux"
    )]
    fn a_kept_table_of_other_schedulers_is_called_so() {
        let number = behaviour();
        let sentence = format!("that of what the schedulers do {number}.");
        assert_said(&number, &sentence, "what the schedulers do", OTHER_SCHEDULERS);
    }
}
