//! `sumrate run`.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sumrate_capture::names_file;
use sumrate_capture::preload::{Installed, PreloadError, install};
use sumrate_capture::program::{ProgramError, find};
use sumrate_preload::config::{Config, Net, VARIABLE};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::CommandError;
use crate::args::{ProxyAuth, RunArgs};
use crate::interfaces;
use crate::private_directory::{of_runtime, resolve};
use crate::status::{SocketError, ask, ask_all};

/// Methods of a SOCKS5 greeting.
const NO_PASSWORD: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
/// How long the proxy may take to answer a greeting.
const GREETING: Duration = Duration::from_secs(3);

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No `sumrate up` with a SOCKS5 proxy.
    #[error(
        "no `sumrate up` with a SOCKS5 proxy answers in {0}: start one, or name its proxy with --socks"
    )]
    NoDaemon(PathBuf),
    /// Several.
    #[error("several `sumrate up` are running; choose one with --socket: {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// The proxy has an IPv6 address.
    #[error(
        "the proxy on {0} cannot be used: the preload library speaks to a proxy on an IPv4 address of this machine, such as 127.0.0.1"
    )]
    Proxy(SocketAddr),
    /// Another machine's.
    #[error(
        "the proxy on {0} is not on this machine, and nothing is sent there: name the address of a `sumrate up` of this machine with --socks"
    )]
    Elsewhere(SocketAddr),
    /// It does not take what it is told of who asks.
    #[error(
        "the proxy on {0} {1}: name the user and password that `sumrate up --socks-auth` was given with --socks-auth USER:PASSWORD or --socks-auth @FILE"
    )]
    Password(SocketAddrV4, &'static str),
    /// The program is missing, or out of reach.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The library has no place.
    #[error(transparent)]
    Preload(#[from] PreloadError),
    /// The system does not start it.
    #[error("cannot start {program}: {error}")]
    Exec {
        /// The program.
        program: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

/// Becomes the command, with its connections led to a running `sumrate up`.
///
/// # Errors
/// [`CommandError`]; otherwise this does not return.
pub fn run(args: &RunArgs) -> Result<Infallible, CommandError> {
    let (name, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| RunError::Program(ProgramError::NotFound(String::new())))?;
    let program = find(name, std::env::var_os("PATH").as_deref()).map_err(RunError::Program)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let proxy = match args.socks {
        Some(address) => address,
        None => runtime.block_on(running_proxy(args.socket.as_deref()))?,
    };
    let proxy = on_this_machine(proxy, is_own)?;
    runtime.block_on(greet(proxy, args.socks_auth.as_ref()))?;
    drop(runtime);
    let installed = install_preload().map_err(RunError::Preload)?;
    let config = Config {
        proxy,
        auth: args.socks_auth.as_ref().map(|auth| {
            let (user, password) = auth.expose();
            (user.as_bytes().to_vec(), password.as_bytes().to_vec())
        }),
        direct: args
            .direct
            .iter()
            .map(|net| Net { address: net.network(), bits: net.prefix_len() })
            .collect(),
        names_at_exit: !args.local_names,
        names: installed.names.to_str().map(str::to_owned),
        strict: args.strict,
    };
    let mut preload = installed.library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|value| !value.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    if let Err(error) = names_file::remove_after_this_process(&installed.names) {
        tracing::warn!(
            "cannot delete the list of names in {} (the next `sumrate run` or `up` does): {error}",
            installed.names.display()
        );
    }
    let error = Command::new(&program)
        .arg0(name)
        .args(arguments)
        .env("LD_PRELOAD", preload)
        .env(VARIABLE, config.to_string())
        .exec();
    Err(RunError::Exec { program, error }.into())
}

/// The SOCKS5 proxy of a client that runs here.
async fn running_proxy(socket: Option<&Path>) -> Result<SocketAddr, CommandError> {
    let answers = match socket {
        Some(socket) => vec![(socket.to_owned(), ask(socket).await?)],
        None => match ask_all().await {
            Ok(answers) => answers,
            // Its proxy can be used without asking it.
            Err(SocketError::Denied(place)) => return Err(RunError::NoDaemon(place).into()),
            Err(SocketError::Nothing(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        },
    };
    let mut found = Vec::new();
    for (path, report) in answers {
        let socks = report.proxies.socks.and_then(|address| address.parse().ok());
        found.extend(socks.map(|address: SocketAddr| (path, address)));
    }
    match found.as_slice() {
        [] => Err(RunError::NoDaemon(socket.map_or_else(of_runtime, Path::to_owned)).into()),
        [(_, address)] => Ok(*address),
        several => {
            let names = several.iter().map(|(path, _)| path.display().to_string());
            Err(RunError::Ambiguous(names.collect()).into())
        }
    }
}

/// Says hello to the proxy as the library will for each connection (RFC 1928 §3, RFC 1929): what it
/// refuses there the command would only see as connections that end. A proxy that is not there, or
/// says nothing, is left to the command.
async fn greet(proxy: SocketAddrV4, auth: Option<&ProxyAuth>) -> Result<(), RunError> {
    let refused = tokio::time::timeout(GREETING, async {
        let mut stream = TcpStream::connect(proxy).await.ok()?;
        let method = if auth.is_some() { USER_AND_PASSWORD } else { NO_PASSWORD };
        stream.write_all(&[5, 1, method]).await.ok()?;
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).await.ok()?;
        if answer == [5, 0xff] {
            return Some(if auth.is_some() { "takes no password" } else { "wants a password" });
        }
        let (user, password) = auth?.expose();
        let length = |text: &str| u8::try_from(text.len()).ok();
        let mut words = vec![1, length(user)?];
        words.extend_from_slice(user.as_bytes());
        words.push(length(password)?);
        words.extend_from_slice(password.as_bytes());
        stream.write_all(&words).await.ok()?;
        stream.read_exact(&mut answer).await.ok()?;
        (answer[1] != 0).then_some("does not take this user and password")
    });
    match refused.await {
        Ok(Some(what)) => Err(RunError::Password(proxy, what)),
        _ => Ok(()),
    }
}

/// The proxy as it is reached from here.
fn on_this_machine(
    proxy: SocketAddr,
    is_own: impl Fn(Ipv4Addr) -> bool,
) -> Result<SocketAddrV4, RunError> {
    let at = |address| SocketAddrV4::new(address, proxy.port());
    match proxy.ip().to_canonical() {
        IpAddr::V4(any) if any.is_unspecified() => Ok(at(Ipv4Addr::LOCALHOST)),
        IpAddr::V4(address) if is_own(address) => Ok(at(address)),
        IpAddr::V4(_) => Err(RunError::Elsewhere(proxy)),
        IpAddr::V6(_) => Err(RunError::Proxy(proxy)),
    }
}

/// Removes left-over files with the names of ended commands.
pub(super) fn clear_names() {
    names_file::clear(&[places(), vec![memory()]].concat());
}

/// The directory in memory for the names of commands.
fn memory() -> PathBuf {
    PathBuf::from(format!("/dev/shm/sumrate-{}", nix::unistd::geteuid()))
}

/// Whether the address is this machine's; none but loopback is where the system does not tell.
fn is_own(address: Ipv4Addr) -> bool {
    let own = || interfaces::addresses().unwrap_or_default();
    address.is_loopback() || own().iter().any(|(_, own)| own.to_canonical() == address)
}

/// Puts the library where others can neither make nor replace it.
fn install_preload() -> Result<Installed, PreloadError> {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for place in places() {
        match resolve(&place) {
            Ok(place) => usable.push(place),
            Err(error) => refused.push((place, error.to_string())),
        }
    }
    install(&usable, &memory()).map_err(|PreloadError(failures)| {
        refused.extend(failures);
        PreloadError(refused)
    })
}

/// Where the library may lie, best first; root's never where others can make it first.
fn places() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/sumrate"));
    let user = nix::unistd::geteuid();
    let fallback = (!user.is_root()).then(|| PathBuf::from(format!("/tmp/sumrate-{user}")));
    let places = [Some(of_runtime()), home, fallback];
    places.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_is_reached_over_ipv4() {
        let own = Ipv4Addr::new(192, 0, 2, 1);
        let reach = |text: &str| {
            let proxy = text.parse().unwrap();
            on_this_machine(proxy, |address| address == own).map(|a| a.to_string())
        };
        assert_eq!(reach("0.0.0.0:9").unwrap(), "127.0.0.1:9");
        assert_eq!(reach("192.0.2.1:9").unwrap(), "192.0.2.1:9");
        assert_eq!(reach("[::ffff:192.0.2.1]:9").unwrap(), "192.0.2.1:9");
        assert!(matches!(reach("192.0.2.2:9"), Err(RunError::Elsewhere(_))));
        assert!(matches!(reach("[::1]:9"), Err(RunError::Proxy(_))));
    }

    #[test]
    fn a_proxy_of_another_machine_gets_nothing() {
        assert!(is_own(Ipv4Addr::LOCALHOST) && is_own(Ipv4Addr::new(127, 9, 9, 9)));
        for elsewhere in [[192, 0, 2, 1], [198, 51, 100, 7], [255, 255, 255, 255]] {
            assert!(!is_own(elsewhere.into()), "{elsewhere:?}");
        }
    }
}
