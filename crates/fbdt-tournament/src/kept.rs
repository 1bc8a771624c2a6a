//! Which matrix a kept table is of.

use fbdt_proto::SchedulerKind;

use crate::matrix::{GROUPS, conditions};
use crate::measure::{Rules, scenario};

/// FNV-1a, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Changes with how cells are measured or simulated: 2, links alone without the session's buffer, and
/// bursts that arrive segment by segment.
const METHOD: u32 = 2;

/// A number of the whole matrix, 16 hexadecimal digits: of all conditions but the traces, with
/// their links, changes, times and seeds, of whether sockets are paced, and of how cells are measured.
/// A table with another number is of other conditions.
#[must_use]
pub fn fingerprint() -> String {
    let mut hash = BASIS;
    for condition in GROUPS.iter().flat_map(|group| conditions(group, &[])) {
        let paced = scenario(&condition, SchedulerKind::default(), Rules::default(), 1).paced;
        for byte in format!("{condition:?} {paced} {METHOD}").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: [(&str, &str); 3] = [
        ("tournament.md", include_str!("../../../docs/results/tournament.md")),
        ("tournament-rules.md", include_str!("../../../docs/results/tournament-rules.md")),
        ("tournament-causes.md", include_str!("../../../docs/results/tournament-causes.md")),
    ];
    const DOCUMENT: &str = include_str!("../../../docs/schedulers.md");
    /// What the document says while the kept table is of another matrix.
    const STALE: &str = "of earlier conditions";

    #[test]
    fn a_kept_table_of_other_conditions_is_called_so() {
        let number = fingerprint();
        let others: Vec<&str> = KEPT
            .iter()
            .filter(|(_, text)| !text.contains(&number))
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(
            DOCUMENT.contains(STALE),
            !others.is_empty(),
            "the matrix has the number {number}, which {others:?} of docs/results lack: run `make \
             tournament tournament-rules tournament-causes` and keep their summaries and the figure, and say in \
             docs/schedulers.md `{STALE}` only as long as that is so",
        );
        for (name, text) in KEPT {
            assert!(text.contains("commit"), "{name} does not say its commit");
        }
    }
}
