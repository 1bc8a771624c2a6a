//! A process that makes rules for the daemon and removes them when the daemon stops: the daemon itself
//! gives its rights up before it talks to anybody, and may be killed. Then the rules refuse what they took
//! ([`WhenDown`]), until the next guardian has made its own.
//!
//! It starts before the daemon has threads, keeps CAP_NET_ADMIN alone, is told port numbers and that the
//! daemon stops, and ends when its end of a socket does. If it is killed too, its rules lead nowhere.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_name, set_no_new_privs,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::changes::Changes;
use crate::earlier;
use crate::owner::{Owner, PROCESS_NAME, merge, owners_of_tables};
use crate::rules::{
    Found, Listed, Step, free_preference, installation, owners_of_rules, refusal,
    removal_of_routes, removal_of_table,
};
pub use crate::rules::{MARK_OWN, Method, Plan, Ports, WhenDown};
use crate::tun::TunError;

/// Length of a message with port numbers: two families for each of three listeners.
const PORTS_LENGTH: usize = 12;
/// The message that the daemon stops, which is shorter.
const STOPS: [u8; 1] = [0];
/// Longest answer of the guardian, in bytes.
const ANSWER_MAX: usize = 2048;
/// Where system programs are, whatever PATH says: this runs as root.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];

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
        let numbers = [ports.tcp, ports.dns, ports.dns_tcp].concat();
        let message: Vec<u8> = numbers.iter().flat_map(|port| port.to_be_bytes()).collect();
        let mut answer = [0; ANSWER_MAX];
        let exchange = send(socket.as_raw_fd(), &message, MsgFlags::MSG_NOSIGNAL)
            .and_then(|_| recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()));
        match exchange.map_err(failed("reach the guardian"))? {
            0 => Err(CaptureError::Rules("the guardian is gone".to_owned())),
            1 => Ok(()),
            length => {
                let said = String::from_utf8_lossy(&answer[1..length]);
                Err(CaptureError::Rules(said.into_owned()))
            }
        }
    }

    /// Returns when the guardian has ended although nobody wanted it to.
    ///
    /// # Errors
    /// It cannot be watched.
    pub async fn ended(&self) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        // SAFETY: the socket is this guardian's, which is borrowed for longer, and registered nowhere else.
        #[allow(unsafe_code)]
        let watched =
            unsafe { AsyncFd::register_with_interest(socket.as_fd(), Interest::READABLE) }
                .map_err(|failed| failed.into_parts().1)?;
        loop {
            let mut ready = watched.readable().await?;
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            match recv(socket.as_raw_fd(), &mut [0; 1], flags) {
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                // It says nothing that it was not asked.
                Ok(_) | Err(_) => return Ok(()),
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
fn refused_until(table: &str) -> String {
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

fn find(program: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| PathBuf::from(folder).join(program)).find(|file| file.is_file())
}

/// Where nftables looks for cgroups, whatever else is mounted.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// The guardian's whole life. The `dead` left rules, which go when there are new ones.
fn guard(plan: &Plan, socket: &OwnedFd, dead: &[Owner]) {
    settle();
    let own = Owner::of(std::process::id());
    let (changes, mut message) = (Changes::watch(), [0; PORTS_LENGTH]);
    let (mut table, mut stops) = (None, false);
    loop {
        if changes.as_ref().is_ok_and(|changes| !changes.wait(socket)) {
            if let Some(table) = &table {
                restore(plan, own, table);
                Changes::pause(socket);
            }
            continue;
        }
        let length = match recv(socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            Ok(length) => length,
            Err(_) => 0,
        };
        if length != message.len() {
            stops = length == STOPS.len();
            break;
        }
        let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        let ports = Ports {
            tcp: [port(0), port(2)],
            dns: [port(4), port(6)],
            dns_tcp: [port(8), port(10)],
        };
        let mut answer = vec![0];
        // Rules that somebody may remove unseen would open the direct way.
        let watched =
            changes.as_ref().map_err(|error| format!("nftables cannot be watched: {error}"));
        match watched.and_then(|_| carry_out(plan, ports, own, dead)) {
            Ok(made) => table = Some(made),
            Err(reason) => {
                undo(own);
                answer.extend(reason.into_bytes());
                answer.truncate(ANSWER_MAX);
            }
        }
        if send(socket.as_raw_fd(), &answer, MsgFlags::MSG_NOSIGNAL).is_err() {
            break;
        }
    }
    match table.is_some() && !stops && plan.when_down == WhenDown::Refuse {
        true => refuse(plan, own),
        false => undo(own),
    }
}

/// Makes the nftables table again, if somebody removed it. One that cannot be made, because a cgroup is
/// gone, say, is replaced by one that refuses.
fn restore(plan: &Plan, own: Owner, table: &Step) {
    let listed = run(&command("nft list tables"));
    if listed.is_ok_and(|listed| owners_of_tables(&listed).contains(&own)) {
        return;
    }
    match run(table) {
        Ok(_) => tracing::error!(
            "somebody removed the nftables table {} (a restart of nftables?): connections were not \
             taken for a moment; it is there again",
            own.table()
        ),
        Err(reason) => {
            tracing::error!("the rules were removed and cannot be made again: {reason}");
            refuse_the_present(plan, own);
        }
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
    match run(&refusal(&present, own)) {
        Ok(_) => tracing::error!("connections are refused until `sumrate up` is started again"),
        Err(reason) => tracing::error!("nor can they be refused: {reason}"),
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

/// Makes everything, and removes what the `dead` left. Gives the command that makes the nftables table, or
/// what was said if something could not be made.
fn carry_out(plan: &Plan, ports: Ports, own: Owner, dead: &[Owner]) -> Result<Step, String> {
    // Routes of a dead guardian with this number would mix with these.
    undo_routes(own.pid);
    let preference = free_preference(own.pid, &listed_rules());
    let found = Found { preference, earlier: earlier::connections() };
    let steps = installation(plan, ports, own, &found);
    for step in &steps {
        run(step)?;
    }
    if let Method::Tun(device) = &plan.method {
        // What comes out of the device comes from everywhere.
        let loose = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
        std::fs::write(&loose, "2").map_err(|error| format!("{loose}: {error}"))?;
    }
    for owner in dead.iter().filter(|owner| !owner.lives()) {
        tracing::warn!("the rules that process {} left are replaced", owner.pid);
        let _ = run(&removal_of_table(*owner));
        if owner.pid != own.pid {
            undo_routes(owner.pid);
        }
    }
    steps.into_iter().next_back().ok_or_else(|| "there is no rule".to_owned())
}

/// Runs a command; what it said.
fn run(step: &Step) -> Result<String, String> {
    let words = step.words.join(" ");
    let (name, arguments) = step.words.split_first().ok_or("no command")?;
    let program = find(name).ok_or_else(|| format!("{name} is not installed"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{words}`: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(step.input.as_bytes());
    }
    let done = child.wait_with_output().map_err(|error| format!("`{words}`: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("`{words}` failed: {}", String::from_utf8_lossy(&done.stderr).trim()))
}

/// Removes what there is; what is not there is no failure.
fn undo(owner: Owner) {
    let _ = run(&removal_of_table(owner));
    undo_routes(owner.pid);
}

fn undo_routes(pid: u32) {
    for step in removal_of_routes(pid, &listed_rules()) {
        let _ = run(&step);
    }
}

/// A command of plain words.
fn command(words: &str) -> Step {
    Step { words: words.split(' ').map(str::to_owned).collect(), input: String::new() }
}

/// What a command says; nothing if it fails.
fn ask(words: &str) -> String {
    run(&command(words)).unwrap_or_default()
}

fn listed_rules() -> Listed {
    ["ip -4 rule", "ip -6 rule"].map(ask)
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
