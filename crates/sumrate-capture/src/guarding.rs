//! The life of a guardian: it makes everything, watches it, makes again what somebody removes, and tells
//! the daemon.

use std::collections::BTreeSet;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::socket::{ControlMessage, MsgFlags, recv, send, sendmsg};
use nix::unistd::setsid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_name, set_no_new_privs,
};

use crate::changes::{Changes, Event};
use crate::commands::{ask, listed_rules, run};
use crate::declared::{Declared, Kind};
use crate::earlier;
use crate::guardian::{
    ANSWER_MAX, CGROUPS, PORTS_LENGTH, STOPS, Tag, refused_until, undo, undo_routes,
};
use crate::held::Held;
use crate::owner::{Owner, PROCESS_NAME, owners_of_tables};
use crate::rules::{Found, Method, Plan, Ports, WhenDown, chains, free_preference, installation};
use crate::rules::{refusal, removal_of_table, taking};
use crate::tun::Device;

/// How often what cannot be made again is tried.
const RETRY: Duration = Duration::from_secs(1);

/// How often somebody may remove something while it is made again.
const ROUNDS: u32 = 5;

/// What a guardian has made.
struct Made {
    declared: Declared,
    found: Found,
    /// Another copy of the table.
    held: Held,
    /// Something cannot be made again, and connections are refused.
    is_broken: bool,
}

/// A guardian at work.
struct Guarding<'a> {
    plan: &'a Plan,
    own: Owner,
    socket: &'a OwnedFd,
    /// Guardians that are gone, whose rules go when there are new ones.
    dead: &'a [Owner],
    made: Option<Made>,
}

/// The guardian's whole life. The `dead` left rules, which go when there are new ones.
pub(crate) fn guard(plan: &Plan, socket: &OwnedFd, dead: &[Owner]) {
    settle();
    let own = Owner::of(std::process::id());
    let mut guarding = Guarding { plan, own, socket, dead, made: None };
    let stops = guarding.run();
    let Guarding { made, .. } = guarding;
    match made.is_some() && !stops && plan.when_down == WhenDown::Refuse {
        true => refuse(plan, own),
        false => undo(own),
    }
    // The other copy goes last.
    drop(made);
}

impl Guarding<'_> {
    /// Works until the daemon ends; whether in order.
    fn run(&mut self) -> bool {
        let changes = Changes::watch(self.plan.method != Method::Redirect);
        let mut message = [0; PORTS_LENGTH];
        loop {
            if let Ok(changes) = &changes {
                let is_broken = self.made.as_ref().is_some_and(|made| made.is_broken);
                let event = changes.wait(self.socket, is_broken.then_some(RETRY));
                if event != Event::Daemon {
                    self.restore();
                    Changes::pause(self.socket);
                    continue;
                }
            }
            let length = match recv(self.socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
                Err(Errno::EINTR) => continue,
                Ok(length) => length,
                Err(_) => 0,
            };
            if length != message.len() {
                return length == STOPS.len();
            }
            // Rules that somebody may remove unseen would open the direct way.
            let watched = changes.as_ref().map(|_| ());
            let watched = watched.map_err(|error| format!("changes cannot be watched: {error}"));
            let done = watched.and_then(|()| self.take(Ports::of_message(&message)));
            if !self.tell(Tag::Answer, &done.err().unwrap_or_default()) {
                return false;
            }
        }
    }

    /// Makes everything; later, the table for other ports.
    fn take(&mut self, ports: Ports) -> Result<(), String> {
        let (plan, own) = (self.plan, self.own);
        match &mut self.made {
            None => {
                let made = carry_out(plan, ports, own, self.dead).inspect_err(|_| undo(own))?;
                self.made = Some(made);
            }
            Some(made) => {
                made.declared.replace_table(taking(plan, ports, own, &made.found))?;
                if made.held.is_wanted() {
                    made.held.hold(&chains(plan, ports, &made.found.earlier))?;
                }
                // A guardian that was alive at the start may have left some since.
                replace_left(&owners_of_tables(&ask("nft list tables")), own);
            }
        }
        Ok(())
    }

    fn tell(&self, tag: Tag, words: &str) -> bool {
        let mut message = vec![tag as u8];
        message.extend(words.bytes());
        message.truncate(ANSWER_MAX);
        send(self.socket.as_raw_fd(), &message, MsgFlags::MSG_NOSIGNAL).is_ok()
    }

    /// Makes again what somebody removed or changed. If that fails, connections are refused until it
    /// succeeds.
    fn restore(&mut self) {
        let Some(mut made) = self.made.take() else { return };
        if made.held.is_wanted() && !made.held.is_there() {
            // The table is as the command says that made it.
            let again = made.held.again();
            match again {
                Ok(()) => self.say_restored("the protected copy of the nftables table"),
                Err(reason) => tracing::warn!("no protected copy of the nftables table: {reason}"),
            }
        }
        let (names, mended) = self.mend(&made.declared);
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        match mended {
            Ok(()) if names.is_empty() && !made.is_broken => {}
            Ok(()) => {
                made.is_broken = false;
                self.say_restored(&names);
            }
            Err(reason) => {
                if !made.is_broken {
                    self.say_broken(&names, &reason);
                    refuse_the_present(self.plan, self.own);
                }
                made.is_broken = true;
            }
        }
        self.made = Some(made);
    }

    /// Makes everything again that is missing, the table last: it may refuse until the others are there.
    /// Gives what was missing.
    fn mend(&self, declared: &Declared) -> (BTreeSet<String>, Result<(), String>) {
        let mut names = BTreeSet::new();
        for _ in 0..ROUNDS {
            let missing = declared.missing();
            if missing.is_empty() {
                return (names, Ok(()));
            }
            names.extend(missing.iter().map(|part| declared.name(part.kind)));
            for part in &missing {
                let new = if part.kind == Kind::Device { self.renew_device() } else { Ok(()) };
                if let Err(reason) = new.and_then(|()| declared.mend(part)) {
                    return (names, Err(reason));
                }
            }
        }
        (names, Err("it is removed again and again".to_owned()))
    }

    /// Gives the daemon a new device, if there is none.
    fn renew_device(&self) -> Result<(), String> {
        let Some(device) = Device::open_again().map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let message = [IoSlice::new(&[Tag::Device as u8])];
        let descriptors = [device.descriptor()];
        let attached = [ControlMessage::ScmRights(&descriptors)];
        let flags = MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(self.socket.as_raw_fd(), &message, &attached, flags, None)
            .map(|_| ())
            .map_err(|error| format!("the new device does not reach `sumrate up`: {error}"))
    }

    fn say_restored(&self, names: &str) {
        tracing::error!(
            "somebody removed or changed {names} (a restart of nftables or of the network?): it is \
             there again"
        );
        self.tell(Tag::Restored, names);
    }

    fn say_broken(&self, names: &str, reason: &str) {
        tracing::error!(
            "somebody removed or changed {names}, and it cannot be made again: {reason}. Captured \
             connections are refused until it is back; it is tried every second"
        );
        self.tell(Tag::Broken, &format!("{names}: {reason}"));
    }
}

/// Refuses what the plan takes, but for programs of cgroups that are gone: they have none.
fn refuse_the_present(plan: &Plan, own: Owner) {
    let mut present = plan.clone();
    present
        .selection
        .cgroups
        .retain(|name| Path::new(CGROUPS).join(name.trim_matches('/')).is_dir());
    if plan.selection.is_of_all() != present.selection.is_of_all() {
        return;
    }
    if let Err(reason) = run(&refusal(&present, own)) {
        tracing::error!("nor can connections be refused: {reason}");
    }
}

/// Turns the rules into such that refuse. If that fails they stay: they lead to where nobody listens.
fn refuse(plan: &Plan, own: Owner) {
    let refused = run(&refusal(plan, own));
    if refused.is_ok() {
        undo_routes(own.pid);
    }
    let _ = refused.map_err(|reason| tracing::error!("the rules stay as they are: {reason}"));
    tracing::error!("`sumrate up` ended without a stop. {}", refused_until(&own.table()));
}

/// Removes what the `dead` left.
fn replace_left(dead: &[Owner], own: Owner) {
    for owner in dead.iter().filter(|owner| !owner.lives()) {
        tracing::warn!("the rules that process {} left are replaced", owner.pid);
        let _ = run(&removal_of_table(*owner));
        if owner.pid != own.pid {
            undo_routes(owner.pid);
        }
    }
}

/// Makes everything, and removes what the `dead` left.
fn carry_out(plan: &Plan, ports: Ports, own: Owner, dead: &[Owner]) -> Result<Made, String> {
    // Routes of a dead guardian with this number would mix with these.
    undo_routes(own.pid);
    let preference = free_preference(own.pid, &listed_rules());
    let found = Found { preference, earlier: earlier::connections() };
    let steps = installation(plan, ports, own, &found);
    let mut declared = Declared::new(plan, ports, own, preference, &steps);
    declared.make()?;
    replace_left(dead, own);
    let mut held = Held::new(own.pid);
    if let Err(reason) = held.hold(&chains(plan, ports, &found.earlier)) {
        tracing::warn!(
            "the nftables table has no protected copy: {reason}; if somebody removes it, captured \
             connections go out directly for up to a second"
        );
    }
    Ok(Made { declared, found, held, is_broken: false })
}

/// Own session, no standard files but the log, no rights but one, and deaf to what ends the daemon.
fn settle() {
    let _ = set_name(&std::ffi::CString::new(PROCESS_NAME).unwrap_or_default());
    let _ = setsid();
    for number in
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE]
    {
        // SAFETY: ignoring a signal runs no code.
        #[allow(unsafe_code)]
        let _ = unsafe { signal(number, SigHandler::SigIgn) };
    }
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
    }
    let keep = CapabilitySet::NET_ADMIN;
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if capability != keep {
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    // The programs that it starts get the one right also where it is not root.
    let sets = CapabilitySets { effective: keep, permitted: keep, inheritable: keep };
    let _ = set_capabilities(None, sets);
    let _ = configure_capability_in_ambient_set(keep, true);
    let _ = set_no_new_privs(true);
}
