//! What a daemon gives up before it talks to anybody: another user's rights, capabilities, new
//! privileges by running programs, and core dumps, which would hold its secrets.
//!
//! Capabilities are a thread's own: this happens before there is a second thread.

use std::ffi::CString;
use std::io;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{User, geteuid, initgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

/// What a daemon has to go on being able to do.
#[derive(Debug, Default, Clone)]
pub struct Needs<'a> {
    /// Run as this user from now on.
    pub user: Option<&'a str>,
    /// Listen on these ports.
    pub ports: Vec<u16>,
    /// Use these congestion controls; empty: the default one, or the kernel's choice without it.
    pub congestion_controls: Vec<&'a str>,
    /// Mark sockets, so that rules for others leave them alone.
    pub marks: bool,
}

/// Privileges could not be given up.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// There is no such user.
    #[error("--user {0}: there is no such user; `useradd --system {0}` makes one")]
    UnknownUser(String),
    /// The user is root.
    #[error("--user {0} has all of root's rights; name another one")]
    Root(String),
    /// Only root can become somebody else.
    #[error("--user {0} needs root: leave it out, and this runs as the user who starts it")]
    NotRoot(String),
    /// The system refused.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl PrivilegeError {
    /// Whether a privilege would cure it.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::NotRoot(_))
    }
}

fn failed<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> PrivilegeError {
    move |error| PrivilegeError::System { action, error: error.into() }
}

/// Gives up everything that the needs do not name, for good.
///
/// # Errors
/// [`PrivilegeError`]; the process must not go on then.
pub fn lower(needs: &Needs<'_>) -> Result<(), PrivilegeError> {
    without_core_dumps()?;
    let user = needs.user.map(find_user).transpose()?;
    let keep = kept_capabilities(needs);
    limit_bounding_set(keep)?;
    if let Some(user) = user {
        become_user(&user)?;
    }
    let permitted = capabilities(None).map_err(failed("read capabilities"))?.permitted & keep;
    let sets =
        CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed("drop capabilities"))?;
    set_no_new_privs(true).map_err(failed("rule out new privileges"))
}

/// A limit of 1 also keeps a handler that `core_pattern` pipes to from being started (core(5)).
fn without_core_dumps() -> Result<(), PrivilegeError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).map_err(failed("read the core limit"))?;
    let limit = hard.min(1);
    setrlimit(Resource::RLIMIT_CORE, limit, limit).map_err(failed("rule out core dumps"))
}

fn find_user(name: &str) -> Result<User, PrivilegeError> {
    if !geteuid().is_root() {
        return Err(PrivilegeError::NotRoot(name.to_owned()));
    }
    match User::from_name(name).map_err(failed("look up --user"))? {
        None => Err(PrivilegeError::UnknownUser(name.to_owned())),
        Some(user) if user.uid.is_root() => Err(PrivilegeError::Root(name.to_owned())),
        Some(user) => Ok(user),
    }
}

fn become_user(user: &User) -> Result<(), PrivilegeError> {
    let name = CString::new(user.name.as_str())
        .map_err(|_| PrivilegeError::UnknownUser(user.name.clone()))?;
    set_keep_capabilities(true).map_err(failed("keep capabilities"))?;
    initgroups(&name, user.gid).map_err(failed("set the groups"))?;
    setresgid(user.gid, user.gid, user.gid).map_err(failed("set the group"))?;
    setresuid(user.uid, user.uid, user.uid).map_err(failed("set the user"))?;
    set_keep_capabilities(false).map_err(failed("keep no capabilities"))
}

/// The few that the needs name. Root keeps no access to files of others: whoever gets hold of the
/// process could write any file.
fn kept_capabilities(needs: &Needs<'_>) -> CapabilitySet {
    let setting = |key: &str| {
        std::fs::read_to_string(format!("/proc/sys/net/ipv4/{key}")).unwrap_or_default()
    };
    let mut keep = CapabilitySet::empty();
    let first_open = setting("ip_unprivileged_port_start").trim().parse().unwrap_or(1024_u16);
    if needs.ports.iter().any(|&port| port != 0 && port < first_open) {
        keep |= CapabilitySet::NET_BIND_SERVICE;
    }
    let allowed = setting("tcp_allowed_congestion_control");
    let default: &[&str] = if needs.user.is_none() { &["cubic"] } else { &[] };
    let wanted = match needs.congestion_controls.as_slice() {
        [] => default,
        named => named,
    };
    if needs.marks
        || wanted.iter().any(|name| !allowed.split_whitespace().any(|free| free == *name))
    {
        keep |= CapabilitySet::NET_ADMIN;
    }
    keep
}

/// No program run later could have more; only root can limit this, and only root needs to.
fn limit_bounding_set(keep: CapabilitySet) -> Result<(), PrivilegeError> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !keep.contains(capability) => {}
            Ok(_) => continue,
            Err(_) => return Ok(()), // the kernel has no more of them
        }
        match remove_capability_from_bounding_set(capability).map_err(io::Error::from) {
            Err(error) if error.raw_os_error() == Some(Errno::EPERM as i32) => return Ok(()),
            result => result.map_err(failed("limit capabilities"))?,
        }
    }
    Ok(())
}
