//! Which paths wait in reserve.
//!
//! Rule: F15.

use fbdt_units::Priority;

use crate::path::Health;

/// The priority in service: the best of the paths that are active. Paths of
/// that priority carry bytes; others that are active stand by. `None` while no
/// path is active.
pub(crate) fn in_service(paths: impl IntoIterator<Item = (Health, Priority)>) -> Option<Priority> {
    let active = paths.into_iter().filter(|(health, _)| *health == Health::Active);
    active.map(|(_, priority)| priority).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BACKUP: Priority = Priority::BACKUP;

    #[test]
    fn f15_a_backup_serves_while_no_primary_is_active() {
        use Health::{Active, Dead, Suspect};
        let primary = Priority::PRIMARY;
        assert_eq!(in_service([(Active, primary), (Active, BACKUP)]), Some(primary));
        assert_eq!(in_service([(Suspect, primary), (Active, BACKUP)]), Some(BACKUP));
        assert_eq!(in_service([(Dead, primary), (Active, BACKUP)]), Some(BACKUP));
        let others = [(Suspect, primary), (Active, primary), (Active, BACKUP)];
        assert_eq!(in_service(others), Some(primary), "one primary is enough");
        let second = Priority::new(2).unwrap();
        assert_eq!(in_service([(Dead, BACKUP), (Active, second)]), Some(second));
        assert_eq!(in_service([(Suspect, primary), (Dead, BACKUP)]), None);
    }

    proptest! {
        /// Somebody active always serves, and nobody active is better.
        #[test]
        fn f15_whoever_serves_is_active_and_best(
            paths in prop::collection::vec((0..3usize, 0..=9u8), 0..8),
        ) {
            let health = [Health::Active, Health::Suspect, Health::Dead];
            let paths: alloc::vec::Vec<_> = paths
                .into_iter()
                .map(|(state, level)| (health[state], Priority::new(level).unwrap()))
                .collect();
            let serves = in_service(paths.clone());
            let active = || paths.iter().filter(|(health, _)| *health == Health::Active);
            prop_assert_eq!(serves.is_some(), active().count() > 0);
            if let Some(serves) = serves {
                prop_assert!(active().all(|(_, priority)| *priority >= serves));
                prop_assert!(active().any(|(_, priority)| *priority == serves));
            }
        }
    }
}
