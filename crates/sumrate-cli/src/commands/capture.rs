//! The part of `sumrate up` that takes connections of programs that know nothing of it.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fbdt::{ClientConfig, Link};
use ipnet::IpNet;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::User;
use sumrate_capture::guardian::{CaptureError, Guardian, MARK_OWN, Method, Plan, Ports};
use sumrate_capture::selection::Selection;
use sumrate_capture::tun::Device;
use tokio_util::sync::CancellationToken;

use super::{CommandError, SetupError};
use crate::args::{CaptureArgs, UpArgs};
use crate::capture::{Connections, NameServer, Source};
use crate::classes::ClassRules;
use crate::status::CaptureReport;
use crate::tunnel::Tunnel;

/// Where nftables looks for cgroups, whatever else is mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// What is to be taken, and the flag that says so; `None` if nothing is.
fn plan(args: &CaptureArgs) -> Result<Option<(Plan, &'static str)>, SetupError> {
    let (method, flag) = match (args.redirect, args.tproxy, &args.device) {
        (_, _, Some(device)) => (Method::Tun(device.name().to_owned()), "--tun"),
        (true, ..) => (Method::Redirect, "--redirect"),
        (_, true, _) => (Method::Tproxy { gateway: args.gateway }, "--tproxy"),
        _ => return Ok(None),
    };
    let selection = Selection {
        users: args.only_user.iter().map(|user| user_id(user)).collect::<Result<_, _>>()?,
        cgroups: args.only_cgroup.clone(),
        only_to: args.only_to.clone(),
        direct: args.direct.clone(),
    };
    Ok(Some((Plan { method, selection, dns: args.dns.is_some() }, flag)))
}

fn user_id(name: &str) -> Result<u32, SetupError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        _ => Err(SetupError::UnknownUser(name.to_owned())),
    }
}

/// Refuses cgroups that are not there: nftables would, after everything else has started.
fn check_cgroups(names: &[String]) -> Result<(), SetupError> {
    let mounted = statfs(CGROUPS);
    let is_version_2 = mounted.is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC);
    names.iter().try_for_each(|name| check_cgroup(Path::new(CGROUPS), is_version_2, name))
}

fn check_cgroup(root: &Path, is_version_2: bool, name: &str) -> Result<(), SetupError> {
    let (name, place) = (name.to_owned(), root.join(name));
    match (is_version_2, place.is_dir()) {
        (true, true) => Ok(()),
        (true, false) => Err(SetupError::UnknownCgroup { name, place }),
        (false, _) => Err(SetupError::NoCgroups { name, place, root: root.to_owned() }),
    }
}

/// Starts the guardian, while there are the rights for it and no thread.
///
/// # Errors
/// [`CommandError`]
pub(super) fn prepare(args: &mut CaptureArgs) -> Result<(), CommandError> {
    check_cgroups(&args.only_cgroup)?;
    if args.tun {
        Guardian::check_rights("--tun")?;
        args.device = Some(Device::open().map_err(CaptureError::from)?);
    }
    if let Some((plan, flag)) = plan(args)? {
        args.guardian = Some(Guardian::start(&plan, flag)?);
    }
    Ok(())
}

/// What is taken, once it is taken. Dropping it removes the rules.
pub(super) struct Capture {
    guardian: Guardian,
    connections: Connections,
    names: Option<NameServer>,
    device: Option<String>,
    flag: &'static str,
    report: CaptureReport,
}

impl Capture {
    /// Listens until `stop` is cancelled; `None` if nothing is to be taken.
    ///
    /// # Errors
    /// [`CommandError`]
    pub(super) async fn bind(
        args: &mut UpArgs,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, CommandError> {
        let planned = plan(&args.capture)?;
        let (Some((plan, flag)), Some(guardian)) = (planned, args.capture.guardian.take()) else {
            return Ok(None);
        };
        let device = args.capture.device.take();
        let name = device.as_ref().map(|device| device.name().to_owned());
        let failed = |action| move |error| CaptureError::System { action, error };
        let names = match args.capture.dns {
            Some(asked) => Some(
                NameServer::bind(asked, stop.clone())
                    .await
                    .map_err(failed("listen for questions of names"))?,
            ),
            None => None,
        };
        let source = match device {
            Some(device) => Source::tun(device),
            None => Source::rules(&plan.method),
        };
        let source = source.map_err(failed("listen for taken connections"))?;
        let (most, asked) = (args.max_connections, args.capture.dns);
        let connections = Connections::new(source, most, asked, stop.clone());
        let report = report(&args.capture, flag);
        Ok(Some(Self { guardian, connections, names, device: name, flag, report }))
    }

    /// Has everything taken from now on.
    ///
    /// # Errors
    /// [`CommandError`]
    pub(super) fn begin(&self) -> Result<(), CommandError> {
        let dns = self.names.as_ref().map(NameServer::ports).transpose()?.unwrap_or_default();
        Ok(self.guardian.install(Ports { tcp: self.connections.ports(), dns })?)
    }

    /// Has the client's own sockets left alone, and its own device not taken for a path.
    ///
    /// # Errors
    /// What the system says of the server's name.
    pub(super) async fn exempt(&self, config: &mut ClientConfig) -> io::Result<()> {
        config.socket_mark = Some(MARK_OWN);
        config.excluded_interfaces.extend(self.device.clone());
        resolve_now(&mut config.link).await
    }

    /// What `status` says of it, whenever it is asked.
    pub(super) fn reporter(&self) -> impl Fn() -> CaptureReport + Send + Sync + 'static {
        let (report, taken) = (self.report.clone(), self.connections.counter());
        move || CaptureReport { connections: taken.load(Ordering::Relaxed), ..report.clone() }
    }

    /// What is said of it.
    pub(super) fn describe(&self) -> String {
        let what = match (self.device.is_some(), self.names.is_some()) {
            (true, _) => "TCP connections, UDP and questions to name servers",
            (false, true) => "TCP connections and questions to name servers",
            (false, false) => "TCP connections",
        };
        format!("{what} are taken ({})", self.flag)
    }
}

fn report(args: &CaptureArgs, flag: &str) -> CaptureReport {
    let networks = |nets: &[IpNet]| nets.iter().map(IpNet::to_string).collect();
    CaptureReport {
        method: flag.trim_start_matches('-').to_owned(),
        gateway: args.gateway,
        dns: args.dns.map(|asked| asked.to_string()),
        only_user: args.only_user.clone(),
        only_cgroup: args.only_cgroup.clone(),
        only_to: networks(&args.only_to),
        direct: networks(&args.direct),
        connections: 0,
    }
}

/// Serves what is taken, if anything is, until the future is dropped.
///
/// # Errors
/// What the system says of a TUN device that fails.
pub(super) async fn run<T: Tunnel>(
    capture: Option<&Capture>,
    tunnel: T,
    rules: &Arc<ClassRules>,
) -> io::Result<()> {
    let Some(capture) = capture else { return std::future::pending().await };
    let names = async {
        match &capture.names {
            Some(names) => names.run(tunnel.clone()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        failed = capture.connections.run(tunnel.clone(), rules) => failed,
        () = names => Ok(()),
        never = watch(&capture.guardian) => match never {},
    }
}

/// Says when the guardian is gone; everything else goes on.
async fn watch(guardian: &Guardian) -> Infallible {
    let process = guardian.process();
    match guardian.ended().await {
        Ok(()) => tracing::error!(
            "the guardian (process {process}), which removes the rules, was killed: they stay in \
             force, and this process removes them when it stops; if it is killed too, the next \
             `sumrate up` that takes connections does"
        ),
        Err(error) => tracing::warn!(%error, "the guardian (process {process}) cannot be watched"),
    }
    std::future::pending().await
}

/// Waits until nothing is taken any more, and what was taken has come to its end.
pub(super) async fn finished(capture: Option<&Capture>) {
    let Some(capture) = capture else { return };
    capture.connections.finished().await;
    if let Some(names) = &capture.names {
        names.finished().await;
    }
}

/// Resolves the server's name for good: later the question of the daemon itself might be taken, too.
///
/// # Errors
/// What the system says of the name.
async fn resolve_now(link: &mut Link) -> io::Result<()> {
    let mut addresses = Vec::new();
    for server in link.servers() {
        match server.ip() {
            Some(_) => addresses.push(server.to_string()),
            None => {
                let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await?;
                addresses.extend(found.map(|address| address.to_string()));
            }
        }
    }
    let text = link.to_string_with_secret();
    if let Some((_, rest)) = text.split_once('?') {
        let pinned = format!("sumrate://{}?{rest}", addresses.join(","));
        *link = pinned.parse::<Link>().map_err(io::Error::other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found() {
        assert_eq!(user_id("1000").unwrap(), 1000);
        assert_eq!(user_id("root").unwrap(), 0);
        assert!(matches!(user_id("no-such-user"), Err(SetupError::UnknownUser(_))));
    }

    #[test]
    fn cgroups_are_looked_for_before_anything_starts() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("user.slice/app")).unwrap();
        let said = |is_version_2, name| {
            let checked = check_cgroup(root.path(), is_version_2, name);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(said(true, "user.slice/app"), Ok(()));
        let unknown = said(true, "user.slice/no").unwrap_err();
        let place = root.path().join("user.slice/no");
        assert!(unknown.contains("--only-cgroup user.slice/no: there is no cgroup"), "{unknown}");
        assert!(unknown.contains(place.to_str().unwrap()), "{unknown}");
        assert!(unknown.contains("`systemd-cgls`"), "{unknown}");
        let old = said(false, "user.slice/app").unwrap_err();
        assert!(old.contains("no cgroups of version 2 are mounted on"), "{old}");
        assert!(
            old.contains("--only-cgroup user.slice/app") && old.contains("--only-user"),
            "{old}"
        );
        assert!(check_cgroups(&[]).is_ok());
        assert!(check_cgroups(&["no/such/cgroup".to_owned()]).is_err());
    }

    #[tokio::test]
    async fn the_servers_name_is_resolved_and_the_credential_kept() {
        let secret = "EscYkP6FyA2W7DklTfVzJaXP4TJQ1UBe5fDeQcy12R8GdSq_RILACQ";
        let text = format!("sumrate://localhost:7443,192.0.2.1:1?v=1&insecure=1#c={secret}");
        let mut link: Link = text.parse().unwrap();
        resolve_now(&mut link).await.unwrap();
        assert!(link.servers().iter().all(|server| server.ip().is_some()));
        assert!(link.servers().iter().any(|server| server.port == 1));
        assert!(link.to_string_with_secret().ends_with(secret));
    }
}
