//! From flags to configurations. Whatever can be known to be wrong is refused here, before anything
//! starts, with what to do.

mod error;
pub(super) mod idle_flags;

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use fbdt::{CongestionControl, Link, LocalBinding, PathSpec, ServerAddress};
use fbdt_proto::{Config, Redundancy, SharedBottleneck, WindowMode};
use sumrate_cc::Algorithm;
use tokio::net::TcpListener;

use crate::args::{
    CongestionArg, PathArg, PathBinding, ProtocolArgs, RedundancyArg, SchedulerArg, WindowModeArg,
};
use crate::bench::{SendingReport, WindowReport};
use crate::coupling::CouplingState;
use crate::output::Exposure;
use crate::socket::CongestionRefusal;
use crate::{interfaces, output, socket};

pub use error::SetupError;

/// Longest link file, in bytes.
const LINK_FILE_MAX: u64 = 64 << 10;

/// Reads a link given as text, `@FILE` or `@-`, and checks it against the plaintext flag.
pub(super) fn link(text: &str, insecure: bool) -> Result<Link, SetupError> {
    let link: Link = link_text(text)?.trim().parse()?;
    if link.is_insecure() != insecure {
        return Err(SetupError::Plaintext { link_is_insecure: link.is_insecure() });
    }
    Ok(link)
}

/// The link as text, from its file where it is given as `@FILE` or `@-`.
pub(super) fn link_text(text: &str) -> Result<String, SetupError> {
    let Some(path) = text.strip_prefix('@') else {
        if !text.contains("://") && Path::new(text).is_file() {
            return Err(SetupError::LinkIsFile(text.to_owned()));
        }
        return Ok(text.to_owned());
    };
    let failed = |error| SetupError::LinkFile { path: path.to_owned(), error };
    let source: Box<dyn Read> = match path {
        "-" => Box::new(io::stdin()),
        path => {
            let file = File::open(path).map_err(failed)?;
            let found = file.metadata().map_err(failed)?;
            match output::exposure(&found) {
                None => Box::new(file),
                Some(Exposure::Mode(mode)) => {
                    return Err(SetupError::ExposedLink { path: path.to_owned(), mode });
                }
                Some(Exposure::Owner(owner)) => {
                    return Err(SetupError::ForeignLink { path: path.to_owned(), owner });
                }
            }
        }
    };
    let mut link = String::new();
    source.take(LINK_FILE_MAX).read_to_string(&mut link).map_err(failed)?;
    Ok(link)
}

/// The paths that `--path` names, those that `--backup` names standing by.
pub(super) fn with_backups(
    paths: &[PathArg],
    backups: &[String],
) -> Result<Vec<PathArg>, SetupError> {
    let mut paths = paths.to_vec();
    for backup in backups.iter().filter(|_| !paths.is_empty()).collect::<Vec<_>>() {
        match paths.iter_mut().find(|path| path.name == *backup) {
            Some(path) => path.stand_by()?,
            None => {
                let known = names(&paths);
                return Err(SetupError::UnknownBackup { backup: backup.clone(), known });
            }
        }
    }
    Ok(paths)
}

fn names(paths: &[PathArg]) -> String {
    paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What becomes of a path whose interface or address this machine does not have at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is taken for a mistake.
    Refused,
    /// It may come, like a radio that is plugged in: it is waited for beside paths that are there.
    Awaited,
}

/// The paths of a client: those named, or, where the server is on this very machine, one over
/// loopback, or none, which means every usable interface.
pub(super) fn client_paths(
    args: &[PathArg],
    link: &Link,
    missing: Missing,
) -> Result<Vec<PathSpec>, SetupError> {
    let is_loopback = |server: &ServerAddress| server.ip().is_some_and(|ip| ip.is_loopback());
    if args.is_empty() && link.servers().iter().all(is_loopback) {
        return Ok(vec![PathSpec { name: "loopback".to_owned(), ..PathSpec::default() }]);
    }
    paths(args, missing)
}

/// The paths, after checking that their names differ and that what they are bound to exists.
fn paths(args: &[PathArg], missing: Missing) -> Result<Vec<PathSpec>, SetupError> {
    for (index, path) in args.iter().enumerate() {
        if args[..index].iter().any(|earlier| earlier.name == path.name) {
            return Err(SetupError::DuplicatePath(path.name.clone()));
        }
    }
    // Where the system does not tell, they are taken for absent, and named.
    let (addresses, names) = (interfaces::addresses().unwrap_or_default(), interfaces::names());
    let is_own = |address: &IpAddr| addresses.iter().any(|(_, own)| own == address);
    let absent = |path: &PathArg| why_absent(path, &names, is_own);
    let absent: Vec<SetupError> = args.iter().filter_map(absent).collect();
    if missing == Missing::Awaited && absent.len() < args.len() {
        for error in &absent {
            tracing::warn!("{error}; the path is used when it appears");
        }
    } else if let Some(error) = absent.into_iter().next() {
        return Err(error);
    }
    Ok(args.iter().map(path_spec).collect())
}

/// What `--backup` and `--policy` name without `--path` and this machine does not have. That may be
/// plugged in later, or is mistyped: the user is told.
pub(super) fn absent_interfaces<'a>(named: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let there = interfaces::names();
    let mut absent: Vec<&str> = Vec::new();
    for name in named.into_iter().filter(|name| !there.contains(*name)) {
        if !absent.contains(&name.as_str()) {
            absent.push(name);
        }
    }
    absent
}

/// What the path is bound to and this machine does not have.
fn why_absent(
    path: &PathArg,
    interfaces: &[String],
    is_own: impl Fn(&IpAddr) -> bool,
) -> Option<SetupError> {
    let name = path.name.clone();
    match &path.binding {
        PathBinding::Interface(interface) if !interfaces.contains(interface) => {
            let (interface, known) = (interface.clone(), interfaces.join(", "));
            Some(SetupError::UnknownInterface { path: name, interface, known })
        }
        // Any address of 127.0.0.0/8 is this machine's.
        PathBinding::Address(address) if !address.is_loopback() && !is_own(address) => {
            Some(SetupError::UnknownAddress { path: name, address: *address })
        }
        _ => None,
    }
}

fn path_spec(path: &PathArg) -> PathSpec {
    PathSpec {
        name: path.name.clone(),
        local: match &path.binding {
            PathBinding::Interface(name) => LocalBinding::Interface(name.clone()),
            PathBinding::Address(address) => LocalBinding::Address(*address),
        },
        server: path.server,
        priority: path.priority,
    }
}

/// The protocol's configuration.
pub(super) fn protocol(args: &ProtocolArgs) -> Result<Config, SetupError> {
    let mut config = Config::default();
    if let Some(SchedulerArg(kind)) = args.scheduler {
        config = config.with_scheduler(kind);
    }
    if let Some(mode) = args.window_mode {
        config.window_mode = match mode {
            WindowModeArg::Pipelined => WindowMode::Pipelined,
            WindowModeArg::Thesis => WindowMode::Thesis,
        };
    }
    window_sizes(args, &mut config)?;
    if let Some(bytes) = args.stream_buffer {
        config = config.with_stream_buffer(bytes);
    }
    if let Some(redundancy) = args.redundancy {
        config.redundancy = match redundancy {
            RedundancyArg::ExpectedArrival => Redundancy::ExpectedArrival,
            RedundancyArg::RttWait => Redundancy::RttWait,
            RedundancyArg::Suspect => Redundancy::Suspect,
            RedundancyArg::Off => Redundancy::Off,
        };
    }
    config.coupling = args.coupling_mode.map_or(config.coupling, Into::into);
    config.forward.clone_from(&args.forward);
    config.shared_bottleneck = shared_bottleneck(args)?;
    if let Some(linger) = args.linger {
        config.linger = linger;
    }
    config.validate()?;
    Ok(config)
}

/// A size that the mode would ignore is a mistake: a sweep over it would measure nothing.
fn window_sizes(args: &ProtocolArgs, config: &mut Config) -> Result<(), SetupError> {
    match (config.window_mode, args.window, args.thesis_window) {
        (WindowMode::Pipelined, _, Some(_)) => Err(SetupError::WindowFlag {
            flag: "--thesis-window",
            mode: WindowMode::Thesis.name(),
            advice: "add that, or size overlapping windows with --window",
        }),
        (WindowMode::Thesis, Some(_), _) => Err(SetupError::WindowFlag {
            flag: "--window",
            mode: WindowMode::Pipelined.name(),
            advice: "leave thesis out, or size its window with --thesis-window",
        }),
        (_, window, thesis_window) => {
            config.window = window.map_or(config.window, |bytes| (bytes, bytes));
            config.thesis_window = thesis_window.unwrap_or(config.thesis_window);
            Ok(())
        }
    }
}

/// The paths whose windows are scaled.
fn shared_bottleneck(args: &ProtocolArgs) -> Result<SharedBottleneck, SetupError> {
    match (args.shared_bottleneck.as_slice(), &args.coupling) {
        ([], CouplingState::Scaled) => Ok(SharedBottleneck::All),
        ([], _) => Ok(SharedBottleneck::None),
        ([only], _) => Err(SetupError::SharedAlone(only.clone())),
        // The same command line has to do with and without the privilege to load --cc.
        (_, CouplingState::Kernel(coupler)) if coupler.algorithm() != Algorithm::Reno => {
            Ok(SharedBottleneck::None)
        }
        (names, _) => Ok(SharedBottleneck::Paths(names.to_vec())),
    }
}

/// Refuses names of paths that cannot exist.
pub(super) fn check_path_names(args: &ProtocolArgs, paths: &[PathArg]) -> Result<(), SetupError> {
    let unknown = |name: &&String| !paths.is_empty() && !paths.iter().any(|p| p.name == **name);
    if let Some(name) = args.forward.iter().find(unknown) {
        return Err(SetupError::UnknownForward { forward: name.clone(), known: names(paths) });
    }
    if let Some(name) = args.shared_bottleneck.iter().find(unknown) {
        return Err(SetupError::UnknownShared { name: name.clone(), known: names(paths) });
    }
    Ok(())
}

/// The congestion control, after asking the kernel for it. Without a wish it is cubic, or the kernel's
/// own choice where this process may not have cubic; where windows are scaled it is reno then, which
/// everybody may have: what is left of a window of bbr would not slow it down.
pub(super) fn congestion_control(args: &ProtocolArgs) -> Result<CongestionControl, SetupError> {
    let Some(CongestionArg(name)) = &args.congestion_control else {
        let scaled = matches!(args.coupling, CouplingState::Scaled);
        return Ok(default_congestion_control(scaled));
    };
    let unknown = || SetupError::CongestionControl {
        name: name.clone(),
        refusal: CongestionRefusal::Unknown(String::new()),
    };
    let wanted: CongestionControl = name.parse().map_err(|_| unknown())?;
    socket::check_congestion_control(wanted.algorithm())
        .map_err(|refusal| SetupError::CongestionControl { name: name.clone(), refusal })?;
    Ok(wanted)
}

fn default_congestion_control(scaled: bool) -> CongestionControl {
    let cubic = CongestionControl::default();
    if socket::check_congestion_control(cubic.algorithm()).is_ok() {
        return cubic;
    }
    let name = if scaled { "reno".to_owned() } else { socket::default_congestion_control() };
    tracing::warn!(
        "this process may not use cubic and uses {name} instead; `--cc NAME` chooses another"
    );
    name.parse().unwrap_or(cubic)
}

/// How this end sends, for reports.
pub(super) fn sending(cc: &CongestionControl, config: &Config) -> SendingReport {
    SendingReport {
        congestion_control: cc.to_string(),
        shared_bottleneck: config.shared_bottleneck != SharedBottleneck::None,
        scheduler: config.scheduler.name().to_owned(),
        window_mode: config.window_mode.name().to_owned(),
        redundancy: config.redundancy.name().to_owned(),
        coupling: config.coupling.name().to_owned(),
        window_bytes: match config.window_mode {
            WindowMode::Pipelined => WindowReport { min: config.window.0, max: config.window.1 },
            WindowMode::Thesis => {
                WindowReport { min: config.thesis_window, max: config.thesis_window }
            }
        },
    }
}

/// Listens for a proxy.
pub(super) fn listen(
    proxy: &'static str,
    address: SocketAddr,
    cc: &CongestionControl,
) -> Result<TcpListener, SetupError> {
    socket::listen(address, cc.algorithm()).map_err(|error| SetupError::Listen {
        proxy,
        address,
        error,
    })
}

/// Removes a file that an earlier run left, so that its presence means what it says, and finds out
/// whether it can be written.
pub(super) fn clear_file(flag: &'static str, path: Option<&Path>) -> Result<(), SetupError> {
    let Some(path) = path else { return Ok(()) };
    let failed = |error| SetupError::File { flag, path: path.to_owned(), error };
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(found) if found.is_file() || found.is_symlink() => {
            // The link goes, and not what it leads to; a link to a device was meant for the device.
            if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
                return Err(failed(no_file()));
            }
            std::fs::remove_file(path).map_err(failed)?;
        }
        Ok(_) => return Err(failed(no_file())),
        Err(_) => {}
    }
    let (probe, _) = output::create_beside(path).map_err(failed)?;
    std::fs::remove_file(&probe).map_err(failed)
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file, and is not replaced")
}

/// The state directory: the flag's, or the default.
pub(super) fn state_directory(flag: Option<&Path>) -> Result<PathBuf, SetupError> {
    let from =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    flag.map(Path::to_owned)
        .or_else(|| from("XDG_STATE_HOME").map(|home| home.join("sumrate")))
        .or_else(|| from("HOME").map(|home| home.join(".local/state/sumrate")))
        .ok_or(SetupError::NoStateDirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_args(texts: &[&str]) -> Vec<PathArg> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn paths_are_checked_before_anything_starts() {
        let checked = |texts: &[&str]| paths(&path_args(texts), Missing::Refused);
        assert_eq!(checked(&["a=lo", "b=127.0.0.2"]).unwrap().len(), 2);
        assert!(matches!(checked(&["a=lo", "a=lo"]), Err(SetupError::DuplicatePath(_))));
        let unknown = checked(&["b=lo", "a=nosuch0"]).unwrap_err();
        assert!(unknown.to_string().contains("lo"), "{unknown}");
        let address = checked(&["b=lo", "a=192.0.2.77"]);
        assert!(matches!(address, Err(SetupError::UnknownAddress { .. })));
    }

    #[test]
    fn what_is_not_there_is_waited_for_beside_a_path_that_is() {
        let waited = |texts: &[&str]| paths(&path_args(texts), Missing::Awaited);
        let both = waited(&["wifi=lo", "lte=nosuch0,backup", "sat=192.0.2.77"]).unwrap();
        assert_eq!(both[1].local, LocalBinding::Interface("nosuch0".to_owned()));
        assert_eq!(both[1].priority.name(), "backup");
        assert_eq!(both.len(), 3);
        let alone = waited(&["lte=nosuch0", "sat=192.0.2.77"]).unwrap_err();
        assert!(matches!(alone, SetupError::UnknownInterface { .. }), "{alone}");
        assert!(matches!(waited(&["a=lo", "a=lo"]), Err(SetupError::DuplicatePath(_))));
        assert!(waited(&[]).unwrap().is_empty());
    }

    #[test]
    fn backups_are_paths() {
        let given = path_args(&["a=lo", "b=127.0.0.2,backup2"]);
        let priorities = |paths: &[PathArg]| -> Vec<&str> {
            paths.iter().map(|path| path.priority.name()).collect()
        };
        let both = with_backups(&given, &["a".to_owned(), "b".to_owned()]).unwrap();
        assert_eq!(priorities(&both), ["backup", "backup2"]);
        assert_eq!(paths(&both, Missing::Refused).unwrap()[0].priority.name(), "backup");
        let unknown = with_backups(&given, &["c".to_owned()]).unwrap_err();
        assert!(unknown.to_string().contains("a, b"), "{unknown}");
        assert_eq!(with_backups(&[], &["wwan0".to_owned()]).unwrap(), []);
    }

    #[test]
    fn interfaces_that_are_not_there_are_named_once() {
        let named = ["lo", "nosuch0", "nosuch0", "nosuch1"].map(str::to_owned);
        assert_eq!(absent_interfaces(&named), ["nosuch0", "nosuch1"]);
    }

    #[test]
    fn links_and_files() {
        assert!(matches!(link("sumrate:/x", false), Err(SetupError::Link(_))));
        let file = link("Cargo.toml", false).unwrap_err();
        assert!(file.to_string().contains("write @Cargo.toml"), "{file}");
        let missing = link("@/nonexistent", false).unwrap_err();
        assert!(missing.to_string().ends_with("; `sumrate serve --link-file` writes one"));
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let denied = SetupError::LinkFile { path: "a.link".into(), error: denied };
        assert!(denied.to_string().contains("; run this as the file's user"), "{denied}");
        // A pipe is nobody else's to open.
        assert!(link_text("@/dev/null").is_ok());
    }

    #[test]
    fn a_link_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("link");
        output::write_private(&path, "sumrate://").unwrap();
        let argument = format!("@{}", path.display());
        assert_eq!(link_text(&argument).unwrap(), "sumrate://");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let error = link_text(&argument).unwrap_err();
        assert!(error.to_string().contains(&format!("chmod 600 {}", path.display())), "{error}");
        if !nix::unistd::geteuid().is_root() {
            return test_skip::skipped("only root can give files away");
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let error = link_text(&argument).unwrap_err();
        assert!(matches!(error, SetupError::ForeignLink { owner: 65534, .. }), "{error}");
    }

    #[test]
    fn a_left_over_file_is_removed_and_a_bad_place_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ready");
        std::fs::write(&file, "old").unwrap();
        clear_file("--ready-file", Some(&file)).unwrap();
        assert!(!file.exists());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        // Where the name of the probe can be known, a link leads it to a file of somebody else's.
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        let planted = file.with_extension(format!("{}.probe", std::process::id()));
        std::os::unix::fs::symlink(&victim, &planted).unwrap();
        clear_file("--ready-file", Some(&file)).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        // A link in the file's own place goes, and what it leads to stays.
        std::os::unix::fs::symlink(&victim, &file).unwrap();
        clear_file("--ready-file", Some(&file)).unwrap();
        assert!(std::fs::symlink_metadata(&file).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        // What stands for the terminal or a device is not replaced by a file.
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        for special in [&file, Path::new("/dev/null")] {
            let error = clear_file("--event-log", Some(special)).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
        assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
        std::fs::remove_file(&file).unwrap();
        assert!(clear_file("--ready-file", Some(&directory.path().join("no/such"))).is_err());
        assert!(clear_file("--ready-file", Some(directory.path())).is_err());
    }
}
