//! Everything that a guardian has in the kernel, as parts that can be looked at and made again.

use std::fs;

use crate::commands::{ask, run};
use crate::owner::Owner;
use crate::rules::{Family, Method, OF_EACH, Plan, Ports, Step, own_address, routing_table};

/// A part that somebody may remove or change alone, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Device,
    /// A switch of the device in /proc/sys/net, and its value.
    Switch(&'static str, &'static str),
    Address(Family),
    Routes(Family),
    Rules(Family),
    Table,
}

impl Kind {
    /// What a command of the installation makes.
    fn of(step: &Step) -> Option<Self> {
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        match words[..] {
            ["nft", ..] => Some(Self::Table),
            ["ip", _, "link", ..] => Some(Self::Device),
            ["ip", flag, what, ..] => {
                let family = if flag == "-4" { Family::V4 } else { Family::V6 };
                match what {
                    "address" => Some(Self::Address(family)),
                    "route" => Some(Self::Routes(family)),
                    "rule" => Some(Self::Rules(family)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A part, and how it is made.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) kind: Kind,
    make: Vec<Step>,
    /// How it looks when it is there.
    wanted: String,
}

/// All parts of one guardian.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    owner: Owner,
    preference: u32,
    device: Option<String>,
    pub(crate) parts: Vec<Part>,
}

impl Declared {
    /// The parts that these commands make. They are there, unless [`Declared::note`] follows.
    pub(crate) fn new(
        plan: &Plan,
        ports: Ports,
        owner: Owner,
        preference: u32,
        steps: &[Step],
    ) -> Self {
        let device = match &plan.method {
            Method::Tun(device) => Some(device.clone()),
            _ => None,
        };
        let mut parts: Vec<Part> = Vec::new();
        let empty = |kind| Part { kind, make: Vec::new(), wanted: String::new() };
        if device.is_some() {
            // What comes out of the device comes from everywhere.
            parts.push(empty(Kind::Switch("ipv4/conf/DEVICE/rp_filter", "2")));
            if ports.tcp[Family::V6.index()] != 0 {
                parts.push(empty(Kind::Switch("ipv6/conf/DEVICE/disable_ipv6", "0")));
            }
        }
        for step in steps {
            let Some(kind) = Kind::of(step) else { continue };
            match parts.iter_mut().find(|part| part.kind == kind) {
                Some(part) => part.make.push(step.clone()),
                None => parts.push(Part { make: vec![step.clone()], ..empty(kind) }),
            }
        }
        parts.sort_by_key(|part| part.kind);
        Self { owner, preference, device, parts }
    }

    /// Makes everything.
    ///
    /// # Errors
    /// What was said of the first part that could not be made.
    pub(crate) fn make(&mut self) -> Result<(), String> {
        for part in &self.parts {
            for step in &part.make {
                run(step)?;
            }
            self.switch(part.kind)?;
        }
        self.note();
        Ok(())
    }

    /// Takes the present as what is to be there.
    fn note(&mut self) {
        let looks: Vec<String> = self.parts.iter().map(|part| self.look(part.kind)).collect();
        for (part, look) in self.parts.iter_mut().zip(looks) {
            part.wanted = look;
        }
    }

    /// Puts another command in the place of the one that makes the table, and runs it.
    ///
    /// # Errors
    /// What was said; the table is as it was then.
    pub(crate) fn replace_table(&mut self, step: Step) -> Result<(), String> {
        run(&step)?;
        let look = self.look(Kind::Table);
        if let Some(part) = self.parts.iter_mut().find(|part| part.kind == Kind::Table) {
            (part.make, part.wanted) = (vec![step], look);
        }
        Ok(())
    }

    /// The parts that are missing, or are not as they were made.
    pub(crate) fn missing(&self) -> Vec<Part> {
        self.parts.iter().filter(|part| !self.is_there(part)).cloned().collect()
    }

    pub(crate) fn is_there(&self, part: &Part) -> bool {
        self.look(part.kind) == part.wanted
    }

    /// Makes a part again: adds what is missing and, if it is still another one, makes it afresh.
    ///
    /// # Errors
    /// Why it is not as it was.
    pub(crate) fn mend(&self, part: &Part) -> Result<(), String> {
        let mut said = self.switch(part.kind);
        for afresh in [false, true] {
            if afresh {
                self.clear(part.kind);
            }
            for step in &part.make {
                if let Err(reason) = run(step) {
                    said = Err(reason);
                }
            }
            if self.is_there(part) {
                return Ok(());
            }
        }
        said.and_then(|()| Err(format!("{} is another one", self.name(part.kind))))
    }

    /// Removes what remains of a part. Without it the others refuse.
    fn clear(&self, kind: Kind) {
        match kind {
            Kind::Routes(family) => {
                let table = routing_table(self.owner.pid);
                let _ = run(&Step::ip(family, &format!("route flush table {table}")));
            }
            Kind::Rules(family) => {
                for line in self.look(kind).lines() {
                    let preference = line.split(':').next().unwrap_or_default();
                    let _ = run(&Step::ip(family, &format!("rule del pref {preference}")));
                }
            }
            // The others are replaced as they are made.
            _ => {}
        }
    }

    /// Its name for people.
    pub(crate) fn name(&self, kind: Kind) -> String {
        let device = self.device.as_deref().unwrap_or_default();
        let table = routing_table(self.owner.pid);
        match kind {
            Kind::Device => format!("the device {device}"),
            Kind::Switch(switch, value) => {
                let name = switch.replace('/', ".").replace("DEVICE", device);
                format!("the switch net.{name}={value}")
            }
            Kind::Address(family) => format!("the {} address of {device}", family.title()),
            Kind::Routes(family) => format!("the {} routes of table {table}", family.title()),
            Kind::Rules(family) => {
                format!("the {} rules that lead to table {table}", family.title())
            }
            Kind::Table => format!("the nftables table {}", self.owner.table()),
        }
    }

    fn switch(&self, kind: Kind) -> Result<(), String> {
        let Some((file, value)) = self.file(kind) else { return Ok(()) };
        fs::write(&file, value).map_err(|error| format!("{file}: {error}"))
    }

    fn file(&self, kind: Kind) -> Option<(String, &'static str)> {
        let Kind::Switch(switch, value) = kind else { return None };
        let device = self.device.as_deref()?;
        Some((format!("/proc/sys/net/{}", switch.replace("DEVICE", device)), value))
    }

    /// How a part looks now, without what changes by itself.
    fn look(&self, kind: Kind) -> String {
        let device = self.device.as_deref().unwrap_or_default();
        match kind {
            Kind::Device => up_with_mtu(&ask(&format!("ip -o link show dev {device}"))),
            Kind::Switch(..) => {
                let read = self.file(kind).map(|(file, _)| fs::read_to_string(file));
                read.and_then(Result::ok).unwrap_or_default()
            }
            Kind::Address(family) => {
                let listed = ask(&format!("ip {} -o address show dev {device}", family.flag()));
                let own = own_address(family);
                let is_there = listed.split_whitespace().any(|word| word == own);
                if is_there { own } else { String::new() }
            }
            Kind::Routes(family) => {
                let table = routing_table(self.owner.pid);
                sorted(&ask(&format!("ip {} route show table {table}", family.flag())))
            }
            Kind::Rules(family) => {
                let own = self.preference..self.preference + OF_EACH;
                let listed = ask(&format!("ip {} rule", family.flag()));
                let preference = |line: &&str| line.split(':').next()?.trim().parse().ok();
                let is_own = |line: &&str| preference(line).is_some_and(|one| own.contains(&one));
                listed.lines().filter(is_own).collect::<Vec<_>>().join("\n")
            }
            Kind::Table => {
                without_cgroups(&ask(&format!("nft -s list table inet {}", self.owner.table())))
            }
        }
    }
}

/// Whether a device is up, and its MTU.
fn up_with_mtu(listed: &str) -> String {
    let flags = listed.split(['<', '>']).nth(1).unwrap_or_default();
    let is_up = flags.split(',').any(|flag| flag == "UP");
    let mtu = listed.split_whitespace().skip_while(|word| *word != "mtu").nth(1);
    format!("{} {}", if is_up { "up" } else { "down" }, mtu.unwrap_or_default())
}

/// Routes without what they say of the carrier.
fn sorted(listed: &str) -> String {
    let words = |line: &str| -> String {
        let fixed = line.split_whitespace().filter(|word| !["linkdown", "dead"].contains(word));
        fixed.collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = listed.lines().map(words).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// A table without the names of cgroups: those that are gone have none any more.
fn without_cgroups(listed: &str) -> String {
    let fixed = |line: &str| match line.split_once("socket cgroupv2 level ") {
        Some((before, after)) => {
            let rest: Vec<&str> = after.split_whitespace().skip(2).collect();
            format!("{before} cgroup {}", rest.join(" "))
        }
        None => line.to_owned(),
    };
    listed.lines().map(fixed).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_by_itself_is_no_difference() {
        let up =
            "9: sumrate0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 65520 qdisc x state UP";
        assert_eq!(up_with_mtu(up), "up 65520");
        assert_eq!(up_with_mtu(&up.replace("UP,LOWER_UP", "NO-CARRIER,UP")), "up 65520");
        assert_eq!(up_with_mtu(&up.replace("UP,LOWER_UP", "LOWER_UP")), "down 65520");
        assert_ne!(up_with_mtu(&up.replace("65520", "1500")), "up 65520");
        assert_ne!(up_with_mtu(""), "up 65520");
        assert_eq!(sorted("b dev x linkdown \na\n"), sorted("a\nb dev x\n"));
        assert_ne!(sorted("a\nb\n"), sorted("a\n"));
        let named = "  socket cgroupv2 level 2 \"a/b\" goto take";
        assert_eq!(without_cgroups(named), without_cgroups(&named.replace("\"a/b\"", "77")));
        assert_ne!(without_cgroups(named), without_cgroups(&named.replace("take", "other")));
    }
}
