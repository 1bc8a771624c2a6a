//! A process that makes rules for the daemon and removes them when the daemon is gone, however it went:
//! the daemon itself gives its rights up before it talks to anybody, and may be killed.
//!
//! It starts before the daemon has threads, keeps CAP_NET_ADMIN alone, is told nothing but port numbers,
//! and ends when its end of a socket does. If it is killed too, whoever starts next removes what it left.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
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

use crate::rules::{
    Listed, Step, free_preference, installation, owners_of_rules, owners_of_tables, removal,
};
pub use crate::rules::{MARK_OWN, Method, Plan, Ports};
use crate::tun::TunError;

/// What the guardian is called, so that it is told from a later process with its number.
const NAME: &str = "sumrate-guard";
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

/// The daemon's end. Dropping it removes the rules, and waits until they are gone.
#[derive(Debug)]
pub struct Guardian {
    socket: Option<OwnedFd>,
    process: Pid,
}

impl Guardian {
    /// Checks that the plan, whose flag is `flag`, can be carried out, removes what dead guardians
    /// left, and starts one. There must be no other thread.
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
        remove_stale();
        let none = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, none)
            .map_err(failed("make a pair of sockets"))?;
        // SAFETY: there is one thread, so the child may do whatever this process may.
        #[allow(unsafe_code)]
        let forked = unsafe { fork() }.map_err(failed("start the guardian"))?;
        match forked {
            ForkResult::Parent { child } => Ok(Self { socket: Some(ours), process: child }),
            ForkResult::Child => {
                drop(ours);
                guard(plan, &theirs);
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
        let numbers = [ports.tcp, ports.dns].concat();
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
        self.process.as_raw().unsigned_abs()
    }

    /// Removes what a guardian left that did not come to its end, with the rights that are left here.
    fn clean_up(&self) {
        let pid = self.process();
        lend_right();
        undo(pid);
        let may_know = run(&command("nft list tables")).is_ok();
        match may_know && !owners().contains(&pid) {
            true => {
                tracing::warn!("the guardian (process {pid}) was killed; its rules are removed")
            }
            false => tracing::error!(
                "the guardian (process {pid}) was killed, and its rules cannot be removed from here: \
                 connections fail until the next `sumrate up` that takes some, or until you run \
                 `nft delete table inet sumrate_{pid}` as root"
            ),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.socket.take());
        let ended = loop {
            match waitpid(self.process, None) {
                Err(Errno::EINTR) => {}
                ended => break ended,
            }
        };
        if !matches!(ended, Ok(WaitStatus::Exited(_, 0))) {
            self.clean_up();
        }
    }
}

/// Whether a program that makes rules is where it is looked for.
pub fn is_installed(program: &str) -> bool {
    find(program).is_some()
}

fn find(program: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| PathBuf::from(folder).join(program)).find(|file| file.is_file())
}

/// The guardian's whole life.
fn guard(plan: &Plan, socket: &OwnedFd) {
    settle();
    let pid = std::process::id();
    let mut message = [0; 8];
    loop {
        let length = match recv(socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            Ok(length) => length,
            Err(_) => 0,
        };
        if length != message.len() {
            break;
        }
        let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        let ports = Ports { tcp: [port(0), port(2)], dns: [port(4), port(6)] };
        let mut answer = vec![0];
        if let Err(reason) = carry_out(plan, ports, pid) {
            undo(pid);
            answer.extend(reason.into_bytes());
            answer.truncate(ANSWER_MAX);
        }
        if send(socket.as_raw_fd(), &answer, MsgFlags::MSG_NOSIGNAL).is_err() {
            break;
        }
    }
    undo(pid);
}

/// Own session, no standard files, no rights but one, and deaf to what ends the daemon.
fn settle() {
    let _ = set_name(&std::ffi::CString::new(NAME).unwrap_or_default());
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
        let _ = nix::unistd::dup2_stderr(&null);
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

/// Makes everything; what was said if something could not be made.
fn carry_out(plan: &Plan, ports: Ports, pid: u32) -> Result<(), String> {
    let preference = free_preference(pid, &listed_rules());
    for step in installation(plan, ports, pid, preference) {
        run(&step)?;
    }
    if let Method::Tun(device) = &plan.method {
        // What comes out of the device comes from everywhere.
        let loose = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
        std::fs::write(&loose, "2").map_err(|error| format!("{loose}: {error}"))?;
    }
    Ok(())
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
fn undo(pid: u32) {
    for step in removal(pid, &listed_rules()) {
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
fn owners() -> Vec<u32> {
    let mut owners = owners_of_tables(&ask("nft list tables"));
    for listed in listed_rules() {
        owners.extend(owners_of_rules(&listed));
    }
    owners.sort_unstable();
    owners.dedup();
    owners
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

/// Removes what guardians left that are no more.
fn remove_stale() {
    for pid in owners().into_iter().filter(|pid| !is_guardian(*pid)) {
        tracing::info!(pid, "rules that a killed process left are removed");
        undo(pid);
    }
}

/// Whether the process is a guardian, and not one whose end nobody has noticed.
fn is_guardian(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.split_once(&format!("({NAME}) ")).map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}
