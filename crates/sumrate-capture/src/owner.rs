//! Guardians as owners of what they made: how their nftables tables are called, and whether they live.

use std::fs;

/// Name of a guardian's process.
pub(crate) const PROCESS_NAME: &str = "sumrate-guard";
const TABLE_PREFIX: &str = "sumrate_";
/// Place of the start time (field 22 of proc_pid_stat(5)) behind the process's name.
const START_FIELD: usize = 19;

/// A guardian, dead or alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    /// Start of the process in clock ticks since boot: a later process with its number has another. 0 if
    /// it is unknown.
    pub(crate) started: u64,
}

impl Owner {
    /// The process that has this number now.
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, started: Stat::of(pid).map_or(0, |stat| stat.started) }
    }

    /// Name of its nftables table.
    pub(crate) fn table(self) -> String {
        format!("{TABLE_PREFIX}{}_{}", self.pid, self.started)
    }

    /// Owner of an nftables table, if a guardian made it.
    fn of_table(name: &str) -> Option<Self> {
        let (pid, started) = name.strip_prefix(TABLE_PREFIX)?.split_once('_')?;
        Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    /// Whether it still runs. A zombie, or a later process with its number, does not count.
    pub(crate) fn lives(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.is_of(self))
    }
}

/// Owners of the tables that `nft list tables` names.
pub(crate) fn owners_of_tables(listed: &str) -> Vec<Owner> {
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("table inet "));
    names.filter_map(Owner::of_table).collect()
}

/// Owners of tables and of rules, each once. Rules tell a process id alone: they belong to the owner of a
/// table with that id, if there is one.
pub(crate) fn merge(of_tables: Vec<Owner>, of_rules: Vec<u32>) -> Vec<Owner> {
    let is_named = |pid: &u32| of_tables.iter().any(|owner| owner.pid == *pid);
    let nameless: Vec<u32> = of_rules.into_iter().filter(|pid| !is_named(pid)).collect();
    let mut owners = of_tables;
    owners.extend(nameless.into_iter().map(|pid| Owner { pid, started: 0 }));
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// The part of /proc/PID/stat that tells a guardian.
struct Stat {
    name: String,
    is_zombie: bool,
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// A name may hold brackets and spaces: the last bracket ends it.
    fn parse(text: &str) -> Option<Self> {
        let (start, rest) = text.rsplit_once(") ")?;
        let name = start.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let is_zombie = matches!(*fields.first()?, "Z" | "X");
        Some(Self { name, is_zombie, started: fields.get(START_FIELD)?.parse().ok()? })
    }

    fn is_of(&self, owner: Owner) -> bool {
        let is_its_time = owner.started == 0 || owner.started == self.started;
        self.name == PROCESS_NAME && !self.is_zombie && is_its_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, state: &str, started: u64) -> Stat {
        let middle = "1 ".repeat(START_FIELD - 1);
        Stat::parse(&format!("77 ({name}) {state} {middle}{started} 0 0\n")).unwrap()
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let owner = Owner { pid: 77, started: 4242 };
        assert!(stat(PROCESS_NAME, "S", 4242).is_of(owner));
        assert!(!stat(PROCESS_NAME, "S", 4243).is_of(owner), "it started later");
        assert!(!stat(PROCESS_NAME, "Z", 4242).is_of(owner), "it has ended");
        assert!(!stat("sumrate-guard) S", "S", 4242).is_of(owner), "another name");
        assert!(stat(PROCESS_NAME, "S", 4243).is_of(Owner { started: 0, ..owner }));
    }

    #[test]
    fn a_living_process_has_a_start() {
        let own = Owner::of(std::process::id());
        assert!(own.started > 0);
        assert!(!own.lives(), "it is no guardian");
        assert_eq!(Owner::of(u32::MAX).started, 0);
    }

    #[test]
    fn tables_tell_their_owner() {
        let listed = "table ip nat\ntable inet sumrate_4194303_99\ntable inet sumrate_x_1\n\
                      table inet sumrate_5\ntable inet other_5_6\n";
        let owner = Owner { pid: 4_194_303, started: 99 };
        assert_eq!(owners_of_tables(listed), [owner]);
        assert_eq!(owner.table(), "sumrate_4194303_99");
    }

    #[test]
    fn rules_belong_to_the_table_of_their_number() {
        let owner = |pid, started| Owner { pid, started };
        let merged = merge(vec![owner(9, 5), owner(7, 3)], vec![7, 8, 8]);
        assert_eq!(merged, [owner(7, 3), owner(8, 0), owner(9, 5)]);
    }
}
