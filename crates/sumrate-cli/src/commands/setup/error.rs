//! What is wrong with flags, and what to do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fbdt::LinkError;
use fbdt_proto::ConfigError;

use crate::args::PathArgError;
use crate::socket::CongestionRefusal;
use crate::web::HttpError;

/// A configuration that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The join link is malformed.
    #[error("the join link is malformed: {0}")]
    Link(#[from] LinkError),
    /// A file's name where the link is expected.
    #[error("`{0}` is a file and no join link; write @{0} to read the link from it")]
    LinkIsFile(String),
    /// The file with the link cannot be read.
    #[error("cannot read the join link from {path}: {error}{advice}", advice = file_advice(.error))]
    LinkFile {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// Others can read the file with the link.
    #[error(
        "the join link in {path} is a password, and mode {mode:03o} lets others read it; run `chmod 600 {path}`, and make a new link if it was shared"
    )]
    ExposedLink {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The file with the link is somebody else's.
    #[error(
        "the join link in {path} is a password, and user {owner}, to whom the file belongs, could have changed it; run this as that user, or copy the link to a file of your own"
    )]
    ForeignLink {
        /// The file.
        path: String,
        /// Whose it is.
        owner: u32,
    },
    /// A service's page has an address that nobody could learn.
    #[error(
        "--web: the page's address is a password, which a service writes beside its status socket, and there is no status socket; name one with --status-socket"
    )]
    NoPlaceForAddress,
    /// The page's address cannot be written down.
    #[error(
        "--web: cannot write the page's address to {path}: {error}; name another --status-socket"
    )]
    AddressFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Link and flag disagree.
    #[error("{}", if *.link_is_insecure {
        "the link is for the plaintext lab mode: pass --insecure-plaintext if this is a lab, else get a link of a server without it"
    } else {
        "the link is for an encrypted server: leave --insecure-plaintext out"
    })]
    Plaintext {
        /// Whether it is the link that wants plaintext.
        link_is_insecure: bool,
    },
    /// Two paths of one name.
    #[error("two paths are called {0}; give each a name of its own")]
    DuplicatePath(String),
    /// No such interface.
    #[error("path {path}: there is no interface {interface}; this machine has: {known}")]
    UnknownInterface {
        /// The path.
        path: String,
        /// The interface.
        interface: String,
        /// Those that exist.
        known: String,
    },
    /// No such address.
    #[error(
        "path {path}: no interface of this machine has the address {address}; `ip address` shows them"
    )]
    UnknownAddress {
        /// The path.
        path: String,
        /// The address.
        address: IpAddr,
    },
    /// The forward path is none of the paths.
    #[error("--forward {forward}: no --path has this name; the names are: {known}")]
    UnknownForward {
        /// The name.
        forward: String,
        /// Those that exist.
        known: String,
    },
    /// A path that should share a bottleneck is none of the paths.
    #[error("--shared-bottleneck {name}: no --path has this name; the names are: {known}")]
    UnknownShared {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A backup path is none of the paths.
    #[error("--backup {backup}: no --path has this name; the names are: {known}")]
    UnknownBackup {
        /// The name.
        backup: String,
        /// Those that exist.
        known: String,
    },
    /// A backup path's name is too long.
    #[error(transparent)]
    Backup(#[from] PathArgError),
    /// The congestion control cannot be had.
    #[error("--cc {name}: {}", congestion_advice(.refusal))]
    CongestionControl {
        /// The name.
        name: String,
        /// Why not.
        refusal: CongestionRefusal,
    },
    /// One path shares a bottleneck with none.
    #[error(
        "--shared-bottleneck {0} names one path; name those that share one, separated by commas"
    )]
    SharedAlone(String),
    /// A measurement keeps no account of what a path has used.
    #[error(
        "--policy {0}: bench keeps no account of a month, so it takes no quota; rate= limits a path"
    )]
    BenchQuota(String),
    /// A window's size for a mode that has no such window.
    #[error("{flag} is for --window-mode {mode}; {advice}")]
    WindowFlag {
        /// The flag.
        flag: &'static str,
        /// The mode that it is for.
        mode: &'static str,
        /// What to do instead.
        advice: &'static str,
    },
    /// A protocol parameter is wrong.
    #[error(transparent)]
    Protocol(#[from] ConfigError),
    /// A surface for watchers cannot be had.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A proxy would be open to others.
    #[error(
        "the proxy on {0} could be used by others: listen on 127.0.0.1, set --socks-auth, or pass --socks-open"
    )]
    OpenProxy(SocketAddr),
    /// No server at all.
    #[error("no join link is given; `sumrate serve` prints it")]
    NoLink,
    /// Two links lead to the same server.
    #[error("two join links lead to the server {0}; give one link for each server")]
    SameServer(String),
    /// No proxy at all.
    #[error("both proxies are off; give --socks or --http an address")]
    NoProxy,
    /// A proxy cannot listen.
    #[error("the {proxy} proxy cannot listen on {address}: {error}; {}", listen_advice(.error, .proxy))]
    Listen {
        /// `SOCKS5` or `HTTP`.
        proxy: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("{flag} {path}: {error}; name a file in a directory that exists and is yours")]
    File {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// No place for the state.
    #[error("neither XDG_STATE_HOME nor HOME is set; name the state directory with --state")]
    NoStateDirectory,
    /// Not a credential id.
    #[error("`{0}` is not the id of a credential; `sumrate credential list` shows them")]
    CredentialId(String),
    /// A user whose connections are to be taken.
    #[error("--only-user {0}: there is no such user; `getent passwd` shows them")]
    UnknownUser(String),
    /// A cgroup whose connections are to be taken.
    #[error(
        "--only-cgroup {name}: there is no cgroup {place}; `systemd-cgls` shows those that there are, or make it before `sumrate up` starts"
    )]
    UnknownCgroup {
        /// The name.
        name: String,
        /// Where it was looked for.
        place: PathBuf,
    },
    /// No place where there could be one.
    #[error(
        "--only-cgroup {name}: {place} cannot be looked for, as no cgroups of version 2 are mounted on {root}, where nftables finds them; boot with systemd.unified_cgroup_hierarchy=1, or name users with --only-user"
    )]
    NoCgroups {
        /// The name.
        name: String,
        /// Where it would be.
        place: PathBuf,
        /// Where they would be mounted.
        root: PathBuf,
    },
    /// Nothing to draw on.
    #[error("`sumrate top` draws on a terminal; use `sumrate status --watch`, or --json")]
    NoTerminal,
    /// More paths awaited than there can be.
    #[error("--wait-paths {wanted}: only {given} paths are named with --path")]
    WaitPaths {
        /// Awaited.
        wanted: u16,
        /// Named.
        given: usize,
    },
}

fn file_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; `sumrate serve --link-file` writes one",
        io::ErrorKind::PermissionDenied => {
            "; run this as the file's user, or copy the link to a file of your own"
        }
        _ => "",
    }
}

fn listen_advice(error: &io::Error, proxy: &str) -> String {
    let flag = if proxy == "HTTP" { "--http" } else { "--socks" };
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another process has the port: stop it or choose another with {flag}")
        }
        io::ErrorKind::PermissionDenied => {
            format!("ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one with {flag}")
        }
        _ => format!("choose an address of this machine with {flag}"),
    }
}

fn congestion_advice(refusal: &CongestionRefusal) -> String {
    match refusal {
        CongestionRefusal::Unknown(known) => {
            format!("this kernel does not offer it; choose one of: {known} (or auto)")
        }
        CongestionRefusal::NotPermitted(allowed) => format!(
            "it needs CAP_NET_ADMIN here; choose one of: {allowed}, or let root add it to \
             net.ipv4.tcp_allowed_congestion_control"
        ),
    }
}

impl SetupError {
    /// Whether a privilege would cure it.
    pub fn is_privilege(&self) -> bool {
        match self {
            Self::Http(error) => error.is_privilege(),
            Self::Listen { error, .. } => error.kind() == io::ErrorKind::PermissionDenied,
            Self::CongestionControl { refusal, .. } => {
                matches!(refusal, CongestionRefusal::NotPermitted(_))
            }
            _ => false,
        }
    }
}
