//! The part of `sumrate up` that takes connections of programs that know nothing of it.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fbdt::{ClientConfig, Session};
use ipnet::IpNet;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::User;
use sumrate_capture::guardian::{
    CGROUPS, CaptureError, Guardian, MARK_OWN, Method, News, Plan, Ports, WhenDown, leftovers,
};
use sumrate_capture::selection::Selection;
use sumrate_capture::tun::Device;
use tokio::sync::watch::{self, Receiver};
use tokio_util::sync::CancellationToken;

use super::far::FarEnd;
use super::{CommandError, SetupError};
use crate::args::{CaptureArgs, UpArgs};
use crate::capture::{Connections, NameServer, Source};
use crate::classes::ClassRules;
use crate::status::CaptureReport;
use crate::tunnel::Tunnel;

/// How often a server is asked whether it reaches IPv6.
const ASKED_MAX: usize = 3;

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
    let (dns, when_down) = (args.dns.is_some(), args.when_down.into());
    let refuse_quic = args.refuse_quic;
    Ok(Some((Plan { method, selection, dns, refuse_quic, when_down }, flag)))
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

/// What is taken, once it is taken. Dropping it without [`Capture::release`] is a crash to the guardian.
pub(super) struct Capture {
    guardian: Guardian,
    connections: Connections,
    names: Option<NameServer>,
    device: Option<String>,
    flag: &'static str,
    when_down: WhenDown,
    /// Rules of a crashed process were replaced.
    replaces: AtomicBool,
    report: watch::Sender<CaptureReport>,
}

impl Capture {
    /// Listens until `stop` is cancelled; `None` if nothing is to be taken.
    ///
    /// # Errors
    /// [`CommandError`]
    pub(super) fn bind(
        args: &mut UpArgs,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, CommandError> {
        let planned = plan(&args.capture)?;
        let (Some((plan, flag)), Some(guardian)) = (planned, args.capture.guardian.take()) else {
            return Ok(None);
        };
        let device = args.capture.device.take();
        let name = device.as_ref().map(|device| device.name().to_owned());
        let asked = args.capture.dns;
        let names = asked.map(|asked| NameServer::bind(asked, stop.clone())).transpose()?;
        let source = match device {
            Some(device) => Source::tun(device)?,
            None => Source::rules(&plan.method, asked.is_some())?,
        };
        let connections = Connections::new(source, args.max_connections, asked, stop.clone());
        let report = watch::Sender::new(report(&args.capture, flag));
        let (when_down, replaces) = (plan.when_down, AtomicBool::default());
        Ok(Some(Self {
            guardian,
            connections,
            names,
            device: name,
            flag,
            when_down,
            replaces,
            report,
        }))
    }

    /// Has everything taken from now on, if it is not yet.
    ///
    /// # Errors
    /// [`CommandError`]
    pub(super) fn begin(&self) -> Result<(), CommandError> {
        if !self.report.borrow().waits {
            // Another one may have ended since, and its guardian refuses connections.
            if !leftovers().is_empty() {
                self.guardian.change(self.ports(self.report.borrow().ipv6_refused)?)?;
            }
            return Ok(());
        }
        // Before that they go on as they are: refused, if somebody crashed, or direct.
        self.replaces.store(!leftovers().is_empty(), Ordering::Relaxed);
        self.guardian.install(self.ports(false)?)?;
        self.report.send_modify(|report| report.waits = false);
        Ok(())
    }

    fn ports(&self, refuses_ipv6: bool) -> io::Result<Ports> {
        let dns = self.names.as_ref().map(NameServer::ports).transpose()?.unwrap_or_default();
        let (mut tcp, dns_tcp) = (self.connections.ports(), self.connections.question_ports());
        if refuses_ipv6 {
            tcp[1] = 0;
        }
        Ok(Ports { tcp, dns, dns_tcp })
    }

    /// Whether connections are refused, rather than direct, until the server is reached.
    pub(super) fn refuses_at_first(&self) -> bool {
        self.when_down == WhenDown::Refuse
    }

    /// The start failed: everything is as it was before, but connections that were refused stay refused.
    pub(super) fn give_up(self) {
        if !self.replaces.load(Ordering::Relaxed) {
            self.release();
        }
    }

    /// Begins as soon as there is a session, and refuses IPv6 while the server has no way to it: programs
    /// take IPv4 then, which they do not after a connection that was accepted.
    ///
    /// # Errors
    /// The rules cannot be made.
    async fn follow(&self, mut sessions: Receiver<Option<Session>>, far: &FarEnd) -> CommandError {
        loop {
            let Ok(session) = sessions.wait_for(Option::is_some).await.map(|found| found.clone())
            else {
                return std::future::pending().await;
            };
            if let Err(error) = self.begin() {
                return error;
            }
            let mut reaches = None;
            for _ in 0..ASKED_MAX {
                if let (None, Some(session)) = (reaches, &session) {
                    reaches = far.reaches_ipv6(session).await;
                }
            }
            if let Some(reaches) = reaches
                && let Err(error) = self.refuse_ipv6(!reaches)
            {
                tracing::error!(%error, "IPv6 is not refused, and the server does not reach it");
            }
            if sessions.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn refuse_ipv6(&self, refused: bool) -> Result<(), CommandError> {
        if self.report.borrow().ipv6_refused == refused {
            return Ok(());
        }
        self.guardian.change(self.ports(refused)?)?;
        self.report.send_modify(|report| report.ipv6_refused = refused);
        match refused {
            true => tracing::warn!(
                "the server has no way to IPv6 addresses: captured programs are refused them, and take IPv4"
            ),
            false => tracing::info!("the server has a way to IPv6 addresses again"),
        }
        Ok(())
    }

    /// Has nothing taken any more, and programs connect directly: an orderly stop.
    pub(super) fn release(self) {
        self.guardian.release();
    }

    /// What `status` says of it, whenever it is asked.
    pub(super) fn reporter(&self) -> impl Fn() -> CaptureReport + Send + Sync + 'static {
        let (report, taken) = (self.report.subscribe(), self.connections.counter());
        move || CaptureReport {
            connections: taken.load(Ordering::Relaxed),
            ..report.borrow().clone()
        }
    }

    /// Notes what the guardian says, which has logged it.
    fn told(&self, news: News) {
        let broken = match news {
            News::Restored(_) => None,
            News::Broken(what) => Some(what),
            News::Device(device) => {
                if let Err(error) = self.connections.renew(device) {
                    tracing::error!(%error, "the new TUN device cannot be used");
                }
                return;
            }
            News::Changed(Ok(())) => return,
            News::Changed(Err(reason)) => {
                tracing::error!("the rules cannot be changed: {reason}");
                return;
            }
        };
        self.report.send_modify(|report| {
            report.restored += u64::from(broken.is_none());
            report.broken = broken;
        });
    }

    /// What is said of it.
    pub(super) fn describe(&self) -> String {
        let (what, direct) = match (self.device.is_some(), self.names.is_some()) {
            (true, true) => ("TCP, UDP and DNS", ""),
            (true, false) => (
                "TCP and UDP",
                "; DNS questions to a private name server go out directly (--dns changes that)",
            ),
            (false, true) => ("TCP and DNS", "; other UDP goes out directly"),
            (false, false) => ("TCP", "; UDP and DNS go out directly (--dns captures DNS)"),
        };
        format!("captures {what} of this machine ({}){direct}", self.flag)
    }
}

/// Has the client's own sockets, and its questions to name servers, left alone.
pub(super) fn exempt(config: &mut ClientConfig) {
    config.socket_mark = Some(MARK_OWN);
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
        restored: 0,
        broken: None,
        waits: true,
        ipv6_refused: false,
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
    sessions: Receiver<Option<Session>>,
    far: &FarEnd,
) -> Result<(), CommandError> {
    let Some(capture) = capture else { return std::future::pending().await };
    let names = async {
        match &capture.names {
            Some(names) => names.run(tunnel.clone()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        failed = capture.connections.run(tunnel.clone(), rules) => Ok(failed?),
        failed = capture.follow(sessions, far) => Err(failed),
        () = names => Ok(()),
        never = watch_guardian(capture) => match never {},
    }
}

/// Notes what the guardian says, and says when it is gone; everything else goes on.
async fn watch_guardian(capture: &Capture) -> Infallible {
    let process = capture.guardian.process();
    match capture.guardian.watch(|news| capture.told(news)).await {
        Ok(()) => tracing::error!(
            "the helper (process {process}) that removes the firewall rules was killed; this process \
             removes them when it stops; if it is killed too, they block connections until the next \
             `sumrate up` with capture"
        ),
        Err(error) => {
            tracing::warn!(%error, "cannot watch the helper (process {process}) that removes the firewall rules")
        }
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
}
