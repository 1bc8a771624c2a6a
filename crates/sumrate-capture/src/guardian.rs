//! A process that makes rules for the daemon and removes them when the daemon stops: the daemon itself
//! gives its rights up before it talks to anybody, and may be killed. Then the rules refuse what they took
//! ([`WhenDown`]), until the next guardian has made its own.
//!
//! It starts before the daemon has threads, keeps CAP_NET_ADMIN alone, is told port numbers and that the
//! daemon stops, and ends when its end of a socket does. If it is killed too, its rules lead nowhere.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recv, recvmsg, send,
    socketpair,
};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::commands::{ask, command, find, listed_rules, run};
use crate::guarding::guard;
use crate::owner::{Owner, merge, owners_of_tables};
pub use crate::rules::{MARK_OWN, Method, Plan, Ports, WhenDown};
use crate::rules::{owners_of_rules, removal_of_routes, removal_of_table};
use crate::tun::TunError;

/// Length of a message with port numbers: two families for each of three listeners.
pub(crate) const PORTS_LENGTH: usize = 12;
/// The message that the daemon stops, which is shorter.
pub(crate) const STOPS: [u8; 1] = [0];
/// Longest answer of the guardian, in bytes.
pub(crate) const ANSWER_MAX: usize = 2048;
/// First byte of what the guardian says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// What came of ports; empty if nothing failed.
    Answer,
    /// Somebody removed something, and it is there again.
    Restored,
    /// Somebody removed something, and it cannot be made again.
    Broken,
    /// A new TUN device comes with this message.
    Device,
}

/// What the guardian says.
#[derive(Debug)]
pub enum News {
    /// The rules are for other ports now, or why they are not.
    Changed(Result<(), String>),
    /// Somebody removed or changed this, and it is as it was.
    Restored(String),
    /// Somebody removed or changed this, and it cannot be made again: connections are refused.
    Broken(String),
    /// A TUN device in the place of one that somebody removed.
    Device(OwnedFd),
}

impl News {
    /// The next message; `None` at the end.
    fn receive(socket: &OwnedFd) -> nix::Result<Option<Self>> {
        let mut message = [0; ANSWER_MAX];
        let mut space = nix::cmsg_space!([RawFd; 1]);
        let (length, device) = {
            let mut pieces = [IoSliceMut::new(&mut message)];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
            let got = recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut space), flags)?;
            let attached = got.cmsgs()?.find_map(|one| match one {
                ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
                _ => None,
            });
            (got.bytes, attached)
        };
        // SAFETY: the kernel has made this descriptor for this process with the message.
        #[allow(unsafe_code)]
        let device = device.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) });
        let Some((tag, words)) = message[..length].split_first() else { return Ok(None) };
        let words = String::from_utf8_lossy(words).into_owned();
        Ok(Some(match (*tag, device) {
            (tag, Some(device)) if tag == Tag::Device as u8 => Self::Device(device),
            (tag, _) if tag == Tag::Restored as u8 => Self::Restored(words),
            (tag, _) if tag == Tag::Broken as u8 => Self::Broken(words),
            _ if words.is_empty() => Self::Changed(Ok(())),
            _ => Self::Changed(Err(words)),
        }))
    }
}

/// Connections cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// CAP_NET_ADMIN is missing.
    #[error(
        "{0} changes this machine's network and needs root (CAP_NET_ADMIN): run it with sudo, or use `sumrate run -- COMMAND`, which needs no rights"
    )]
    Privilege(&'static str),
    /// A system program is missing.
    #[error("{program} is needed and not installed: `apt-get install {package}` as root")]
    Missing {
        /// The program.
        program: &'static str,
        /// Its Debian package.
        package: &'static str,
    },
    /// There is no device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// A family that is in use has no listener.
    #[error(
        "cannot {action} over IPv6 ({error}), and IPv6 is in use on {interface}: its connections would \
         not be taken; give lo its address back (`sysctl net.ipv6.conf.lo.disable_ipv6=0` and \
         `net.ipv6.conf.default.disable_ipv6=0` for a device), or switch IPv6 off \
         (`sysctl net.ipv6.conf.all.disable_ipv6=1`)"
    )]
    Ipv6 {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
        /// An interface with an IPv6 address or route.
        interface: String,
    },
    /// The rules were refused.
    #[error("the rules cannot be made: {0}")]
    Rules(String),
    /// The system refused.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl CaptureError {
    /// Whether a privilege would cure it.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::Privilege(_))
    }
}

fn failed<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> CaptureError {
    move |error| CaptureError::System { action, error: error.into() }
}

/// The daemon's end. Dropping it ends the guardian, and waits for that: the rules are removed after
/// [`Guardian::release`], and do what the plan says otherwise.
#[derive(Debug)]
pub struct Guardian {
    socket: Option<OwnedFd>,
    owner: Owner,
    when_down: WhenDown,
    /// The daemon stops in order.
    stops: bool,
}

impl Guardian {
    /// Checks that the plan, whose flag is `flag`, can be carried out, and starts a guardian. What dead
    /// ones left stays until there are new rules. There must be no other thread.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing was changed then.
    pub fn start(plan: &Plan, flag: &'static str) -> Result<Self, CaptureError> {
        Self::check_rights(flag)?;
        for (program, package) in [("nft", "nftables"), ("ip", "iproute2")] {
            if find(program).is_none() {
                return Err(CaptureError::Missing { program, package });
            }
        }
        let dead: Vec<Owner> = owners().into_iter().filter(|owner| !owner.lives()).collect();
        let none = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, none)
            .map_err(failed("make a pair of sockets"))?;
        // SAFETY: there is one thread, so the child may do whatever this process may.
        #[allow(unsafe_code)]
        let forked = unsafe { fork() }.map_err(failed("start the guardian"))?;
        match forked {
            ForkResult::Parent { child } => {
                let owner = Owner::of(child.as_raw().unsigned_abs());
                let when_down = plan.when_down;
                Ok(Self { socket: Some(ours), owner, when_down, stops: false })
            }
            ForkResult::Child => {
                drop(ours);
                guard(plan, &theirs, &dead);
                // SAFETY: ends this process without what the daemon would do at its end.
                #[allow(unsafe_code)]
                unsafe {
                    nix::libc::_exit(0)
                }
            }
        }
    }

    /// Checks that this process may do what `flag` asks for.
    ///
    /// # Errors
    /// [`CaptureError::Privilege`]
    pub fn check_rights(flag: &'static str) -> Result<(), CaptureError> {
        let permitted = capabilities(None).map_err(failed("read capabilities"))?.effective;
        match permitted.contains(CapabilitySet::NET_ADMIN) {
            true => Ok(()),
            false => Err(CaptureError::Privilege(flag)),
        }
    }

    /// Has the rules made. Waits for it: a few milliseconds.
    ///
    /// # Errors
    /// [`CaptureError::Rules`] with what was said; then there are none.
    pub fn install(&self, ports: Ports) -> Result<(), CaptureError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        self.change(ports)?;
        let mut answer = [0; ANSWER_MAX];
        match recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())
            .map_err(failed("reach the guardian"))?
        {
            0 => Err(CaptureError::Rules("the guardian is gone".to_owned())),
            1 => Ok(()),
            length => {
                let said = String::from_utf8_lossy(&answer[1..length]);
                Err(CaptureError::Rules(said.into_owned()))
            }
        }
    }

    /// Has rules made for other ports: those of a family that has none any more are refused. What comes
    /// of it is [`News::Changed`].
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn change(&self, ports: Ports) -> Result<(), CaptureError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let sent = send(socket.as_raw_fd(), &ports.message(), MsgFlags::MSG_NOSIGNAL);
        sent.map(|_| ()).map_err(failed("reach the guardian"))
    }

    /// Passes on what the guardian says; returns when it has ended although nobody wanted it to.
    ///
    /// # Errors
    /// It cannot be watched.
    pub async fn watch(&self, told: impl Fn(News)) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        // SAFETY: the socket is this guardian's, which is borrowed for longer, and registered nowhere else.
        #[allow(unsafe_code)]
        let watched =
            unsafe { AsyncFd::register_with_interest(socket.as_fd(), Interest::READABLE) }
                .map_err(|failed| failed.into_parts().1)?;
        loop {
            let mut ready = watched.readable().await?;
            match News::receive(socket) {
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Ok(Some(news)) => told(news),
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    /// Its process id, which is a part of the names of what it made.
    pub fn process(&self) -> u32 {
        self.owner.pid
    }

    /// Has the rules removed: the daemon stops in order. Waits until they are gone.
    pub fn release(mut self) {
        self.stops = true;
        if let Some(socket) = &self.socket {
            // If it is gone already, the rules are removed from here.
            let _ = send(socket.as_raw_fd(), &STOPS, MsgFlags::MSG_NOSIGNAL);
        }
    }

    /// Removes what a guardian left that did not come to its end, with the rights that are left here.
    fn clean_up(&self) {
        let (pid, table) = (self.owner.pid, self.owner.table());
        if !self.stops && self.when_down == WhenDown::Refuse {
            tracing::error!("the guardian (process {pid}) was killed. {}", refused_until(&table));
            return;
        }
        lend_right();
        undo(self.owner);
        let may_know = run(&command("nft list tables")).is_ok();
        match may_know && !owners().iter().any(|owner| owner.pid == pid) {
            true => {
                tracing::warn!("the guardian (process {pid}) was killed; its rules are removed")
            }
            false => tracing::error!(
                "the guardian (process {pid}) was killed, and its rules cannot be removed from here. {}",
                refused_until(&table)
            ),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.socket.take());
        let process = Pid::from_raw(self.owner.pid.cast_signed());
        let ended = loop {
            match waitpid(process, None) {
                Err(Errno::EINTR) => {}
                ended => break ended,
            }
        };
        if !matches!(ended, Ok(WaitStatus::Exited(_, 0))) {
            self.clean_up();
        }
    }
}

/// What a guardian left that is no more: it refuses connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its nftables table.
    pub table: String,
    /// The commands that lift it.
    pub lift: String,
}

/// Everything that dead guardians left, as far as this process may know.
pub fn leftovers() -> Vec<Leftover> {
    let listed = listed_rules();
    let dead = owners_of_tables(&ask("nft list tables")).into_iter().filter(|one| !one.lives());
    dead.map(|owner| {
        let table = owner.table();
        let routes = removal_of_routes(owner.pid, &listed).into_iter();
        let rules = routes.map(|step| step.words.join(" ")).filter(|words| words.contains(" del "));
        let lift: Vec<String> =
            std::iter::once(format!("nft delete table inet {table}")).chain(rules).collect();
        Leftover { table, lift: lift.join("; ") }
    })
    .collect()
}

/// What is said where connections are refused.
pub(crate) fn refused_until(table: &str) -> String {
    format!(
        "Connections that were taken are refused until the next `sumrate up` that takes some is \
         connected, or until you run `nft delete table inet {table}` as root; \
         `--when-down direct` lets them reach the net directly"
    )
}

/// Whether a program that makes rules is where it is looked for.
pub fn is_installed(program: &str) -> bool {
    find(program).is_some()
}

/// Where nftables looks for cgroups, whatever else is mounted.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// Removes what there is; what is not there is no failure.
pub(crate) fn undo(owner: Owner) {
    let _ = run(&removal_of_table(owner));
    undo_routes(owner.pid);
}

pub(crate) fn undo_routes(pid: u32) {
    for step in removal_of_routes(pid, &listed_rules()) {
        let _ = run(&step);
    }
}

/// Everybody who has rules or, as far as this process may know, a table.
fn owners() -> Vec<Owner> {
    let of_rules = listed_rules().iter().flat_map(|listed| owners_of_rules(listed)).collect();
    merge(owners_of_tables(&ask("nft list tables")), of_rules)
}

/// Has the programs that this thread starts get the one right, if it has it.
fn lend_right() {
    let right = CapabilitySet::NET_ADMIN;
    let Ok(sets) = capabilities(None) else { return };
    if sets.permitted.contains(right) {
        let lent = CapabilitySets { inheritable: sets.inheritable | right, ..sets };
        let _ = set_capabilities(None, lent);
        let _ = configure_capability_in_ambient_set(right, true);
    }
}
