//! `sumrate up`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, CongestionControl, PathPolicy, Priority, Session, connect};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::event::{UpEvent, path_summaries, session_id};
use super::keep::{Outage, keep_session};
use super::observe::{Observers, Snapshot};
use super::reloading::{Reloaded, Reloads, split};
use super::serve::optional;
use super::{CommandError, SetupError, capture, dial, setup};
use crate::args::{Command, PolicyArg, ProxyAddress, UpArgs};
use crate::classes::ClassRules;
use crate::control::{ControlRequest, ControlSocket};
use crate::interrupt::{Hangups, Interrupt, Interrupts};
use crate::output;
use crate::policy::{Keeper, Month, PathWish, PolicyError};
use crate::proxy::{Proxy, ProxyKind};
use crate::session::{SessionTunnel, report};
use crate::status::{ProxyReport, STATUS_SCHEMA, StatusReport, StatusSocket};
use crate::systemd;

/// Flags of the session: a reload opens one with their new values, beside the old one.
const SESSION_FLAGS: [&str; 11] = [
    "link",
    "path",
    "backup",
    "scheduler",
    "window-mode",
    "window",
    "thesis-window",
    "redundancy",
    "coupling",
    "forward",
    "linger",
];
/// Longest time for a reload to open its session.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a stopping client looks whether everything has arrived.
const LOOK: Duration = Duration::from_millis(10);

/// Runs until a signal.
///
/// # Errors
/// [`CommandError`]
pub async fn up(mut args: UpArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let mut hangups = Hangups::new()?;
    let started = Instant::now();
    let mut config = configure(&args, args.capture.guardian.is_some())?;
    let keeper = Arc::new(keeper(&args, &config)?);
    setup::clear_file("--ready-file", args.ready_file.as_deref())?;
    let stop = CancellationToken::new();
    let socks = proxy(&args, ProxyKind::Socks5, &config.congestion_control, &stop)?;
    let http = proxy(&args, ProxyKind::Http, &config.congestion_control, &stop)?;
    let bound = StatusSocket::bind(args.status_socket.as_deref(), "up");
    let status = optional(args.status_socket.as_deref(), bound)?;
    let control = status.as_ref().map(|socket| ControlSocket::bind(socket.path())).transpose()?;
    let observers = Observers::bind(&args.observe)?;
    let taken = capture::Capture::bind(&mut args, &stop).await?;
    if let Some(taken) = &taken {
        taken.exempt(&mut config).await?;
    }
    let session = dial::open(config.clone(), &mut interrupts).await?;
    let addresses = ProxyReport { socks: address(socks.as_ref())?, http: address(http.as_ref())? };
    if let Some(taken) = &taken {
        taken.begin()?;
    }
    announce(&args, (&addresses, taken.as_ref()), status.as_ref(), &observers, &session)?;
    let (sender, receiver) = watch::channel(Some(session));
    let tunnel = SessionTunnel::new(receiver.clone());
    let rules = Arc::new(ClassRules::new(args.class_rule.clone()));
    let client = Client::new(&args, config, sender);
    let (outage, reloads) = (Arc::new(Outage::default()), Arc::new(Reloads::default()));
    let snapshot: Snapshot = {
        let (receiver, outage) = (receiver.clone(), Arc::clone(&outage));
        let (keeper, reloads) = (Arc::clone(&keeper), Arc::clone(&reloads));
        let capture = taken.as_ref().map(capture::Capture::reporter);
        Arc::new(move || {
            let mut report = status_report(&receiver, &addresses, &outage, &reloads, started);
            report.capture = capture.as_ref().map(|capture| capture());
            keeper.annotate(&mut report);
            report
        })
    };
    let controlled = async {
        let change = |request: &ControlRequest| {
            let session = receiver.borrow().clone();
            let changed = keeper.change(session.as_ref(), &request.path, &request.set);
            changed.map(drop).map_err(|error| error.to_string())
        };
        match &control {
            Some(socket) => socket.serve(change).await,
            None => std::future::pending().await,
        }
    };
    let answering = async {
        match &status {
            Some(socket) => socket.serve(|| snapshot()).await,
            None => std::future::pending().await,
        }
    };
    let reloading = async {
        loop {
            hangups.next().await;
            reloads.run(client.reload(taken.as_ref())).await;
        }
    };
    let keeping = keep_session(&client.config, &client.session, &outage, args.json);
    let serving = async {
        tokio::join!(
            run_proxy(socks, tunnel.clone(), &stop),
            run_proxy(http, tunnel.clone(), &stop)
        );
        all_delivered(&receiver).await;
    };
    let mut running = Box::pin(async {
        tokio::select! {
            error = keeping => Err(error),
            () = serving => Ok(()),
            () = answering => Ok(()),
            () = reloading => Ok(()),
            failed = capture::run(taken.as_ref(), tunnel.clone(), &rules) => {
                failed.map_err(CommandError::from)
            }
            () = observers.run(&snapshot) => Ok(()),
            () = controlled => Ok(()),
            () = keeper.keep(&receiver) => Ok(()),
        }
    });
    systemd::ready();
    let outcome = tokio::select! {
        outcome = &mut running => outcome,
        interrupt = interrupts.next() => match interrupt {
            Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
            Interrupt::Terminated => {
                stop.cancel();
                drain(&mut running, client.drain(), &mut interrupts).await;
                Ok(())
            }
        },
    };
    drop(running);
    // Programs connect directly again before the session is gone.
    drop(taken);
    let last = client.session.send_replace(None);
    keeper.count(last.as_ref(), Month::now());
    keeper.save();
    if let Some(session) = last {
        session.close(0, "the client stops").await;
    }
    if let Some(path) = &args.ready_file {
        let _ = std::fs::remove_file(path);
    }
    if args.json {
        output::json(&UpEvent::Stopped.into_line())?;
    }
    outcome
}

/// How paths are used: as `--policy` says, beside what `--path` and `--backup` say.
fn keeper(args: &UpArgs, config: &ClientConfig) -> Result<Keeper, CommandError> {
    let directory = setup::state_directory(args.state.as_deref()).ok();
    let keeper = Keeper::new(config.policies.clone(), directory);
    for PolicyArg { name, change } in &args.policy {
        let path = config.paths.iter().find(|path| path.name == *name);
        let interface = config.backup_interfaces.iter().find(|(known, _)| known == name);
        let priority = match (path, interface) {
            (Some(path), _) => path.priority,
            (None, Some((_, priority))) => *priority,
            (None, None) if config.paths.is_empty() => Priority::PRIMARY,
            (None, None) => {
                let known: Vec<_> = config.paths.iter().map(|path| path.name.clone()).collect();
                let (name, known) = (name.clone(), known.join(", "));
                return Err(PolicyError::UnknownPath { name, known }.into());
            }
        };
        let usual = PathWish { policy: PathPolicy::of_priority(priority), quota: None };
        keeper.begin(name, usual, change)?;
    }
    Ok(keeper)
}

/// Lets work that takes nothing new on come to its end, within a limit; a second signal ends it.
pub(super) async fn drain<T>(
    work: impl Future<Output = T>,
    limit: Duration,
    interrupts: &mut Interrupts,
) {
    systemd::stopping();
    let begun = Instant::now();
    tokio::select! {
        _ = work => tracing::info!("every stream was finished after {:.1?}", begun.elapsed()),
        () = tokio::time::sleep(limit) => {
            tracing::warn!("streams are cut off: they were not finished within {limit:.1?}");
        }
        _ = interrupts.next() => tracing::warn!("streams are cut off by a second signal"),
    }
}

/// Waits until the peer has everything that was written on streams of the session.
async fn all_delivered(sessions: &watch::Receiver<Option<Session>>) {
    let current = sessions.borrow().clone();
    while current.as_ref().is_some_and(|session| !session.stats().streams.is_empty()) {
        tokio::time::sleep(LOOK).await;
    }
}

/// What a reload changes.
struct Client {
    args: Mutex<UpArgs>,
    config: watch::Sender<ClientConfig>,
    session: watch::Sender<Option<Session>>,
}

impl Client {
    fn new(args: &UpArgs, config: ClientConfig, session: watch::Sender<Option<Session>>) -> Self {
        let args = Mutex::new(args.clone());
        Self { args, config: watch::Sender::new(config), session }
    }

    fn args(&self) -> MutexGuard<'_, UpArgs> {
        self.args.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drain(&self) -> Duration {
        self.args().daemon.drain
    }

    /// Reads the configuration again. Where the session would be another, a new one is opened; the old
    /// one goes on for its streams.
    async fn reload(&self, taken: Option<&capture::Capture>) -> Result<Reloaded, String> {
        let mut current = self.args().clone();
        let reread = current.daemon.source.reread()?;
        let Command::Up(mut wanted) = reread.cli.command else {
            return Err("the configuration is of another command".to_owned());
        };
        let live: Vec<&str> = SESSION_FLAGS.into_iter().chain(["drain", "config"]).collect();
        let (mut applied, _) = split(reread.changes, &live);
        let (_, needs_restart) = split(reread.since_start, &live);
        // What privileges were needed for stays as it was made at the start.
        wanted.protocol.coupling = current.protocol.coupling.clone();
        wanted.protocol.congestion_control.clone_from(&current.protocol.congestion_control);
        wanted.protocol.shared_bottleneck.clone_from(&current.protocol.shared_bottleneck);
        wanted.protocol.insecure_plaintext = current.protocol.insecure_plaintext;
        if current.user.is_some() && !applied.iter().any(|flag| flag == "link") {
            wanted.link.clone_from(&current.link);
        }
        let mut config = configure(&wanted, taken.is_some()).map_err(|error| error.to_string())?;
        // Whoever changes policies of paths changes them for the new session too.
        config.policies = self.config.borrow().policies.clone();
        if let Some(taken) = taken {
            taken.exempt(&mut config).await.map_err(|error| error.to_string())?;
        }
        let link = |config: &ClientConfig| config.link.to_string_with_secret();
        let is_other_link = link(&config) != link(&self.config.borrow());
        if is_other_link && !applied.iter().any(|flag| flag == "link") {
            applied.insert(0, "link".to_owned());
        }
        if applied.iter().any(|flag| SESSION_FLAGS.contains(&flag.as_str())) {
            let session = tokio::time::timeout(RELOAD_TIMEOUT, connect(config.clone()))
                .await
                .map_err(|_| "no session came about within 30 s".to_owned())?
                .map_err(|error| error.to_string())?;
            self.config.send_replace(config);
            self.session.send_replace(Some(session));
        }
        current.daemon.source.accept(reread.accepted);
        wanted.daemon.source = current.daemon.source;
        *self.args() = *wanted;
        Ok(Reloaded { applied, needs_restart })
    }
}

/// `takes`: whether connections are taken, so that no proxy is needed.
fn configure(args: &UpArgs, takes: bool) -> Result<ClientConfig, CommandError> {
    let config = dial::configure(&args.link, (&args.path, &args.backup), &args.protocol)?;
    if !takes && (args.socks, args.http) == (ProxyAddress::Off, ProxyAddress::Off) {
        return Err(SetupError::NoProxy.into());
    }
    Ok(config)
}

fn proxy(
    args: &UpArgs,
    kind: ProxyKind,
    congestion_control: &CongestionControl,
    stop: &CancellationToken,
) -> Result<Option<Proxy>, CommandError> {
    let (address, name) = match kind {
        ProxyKind::Socks5 => (args.socks.address(), "SOCKS5"),
        ProxyKind::Http => (args.http.address(), "HTTP"),
    };
    let Some(address) = address else { return Ok(None) };
    if !address.ip().is_loopback() && args.socks_auth.is_none() && !args.socks_open {
        return Err(SetupError::OpenProxy(address).into());
    }
    let listener = setup::listen(name, address, congestion_control)?;
    let auth = args.socks_auth.clone().map(Arc::new);
    let rules = ClassRules::new(args.class_rule.clone());
    let proxy = Proxy::new(kind, listener, auth, args.max_connections);
    Ok(Some(proxy.with_class_rules(rules).until(stop.clone())))
}

fn address(proxy: Option<&Proxy>) -> std::io::Result<Option<String>> {
    proxy.map(|proxy| proxy.address().map(|address| address.to_string())).transpose()
}

/// Ends when the proxy was stopped and has let its connections finish.
async fn run_proxy(proxy: Option<Proxy>, tunnel: SessionTunnel, stop: &CancellationToken) {
    match proxy {
        Some(proxy) => proxy.run(tunnel).await,
        None => stop.cancelled().await,
    }
}

fn announce(
    args: &UpArgs,
    (addresses, taken): (&ProxyReport, Option<&capture::Capture>),
    status: Option<&StatusSocket>,
    observers: &Observers,
    session: &Session,
) -> std::io::Result<()> {
    let line = UpEvent::Ready {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        socks: addresses.socks.clone(),
        http: addresses.http.clone(),
        status_socket: status.map(|socket| socket.path().display().to_string()),
        metrics: observers.metrics_url(),
        web: observers.web_url(),
        session: session_id(session),
        paths: path_summaries(session),
    }
    .into_line();
    if let Some(path) = &args.ready_file {
        output::write_private(path, &format!("{}\n", serde_json::to_string(&line)?))?;
    }
    if args.json {
        return output::json(&line);
    }
    let proxies = [("SOCKS5", &addresses.socks), ("HTTP CONNECT", &addresses.http)];
    for (name, address) in proxies {
        if let Some(address) = address {
            output::line(&format!("{name} proxy on {address}"))?;
        }
    }
    if let Some(taken) = taken {
        output::line(&taken.describe())?;
    }
    observers.announce()?;
    let names: Vec<String> = path_summaries(session).into_iter().map(|path| path.name).collect();
    output::line(&format!("paths: {}", names.join(", ")))
}

fn status_report(
    sessions: &watch::Receiver<Option<Session>>,
    proxies: &ProxyReport,
    outage: &Outage,
    reloads: &Reloads,
    started: Instant,
) -> StatusReport {
    StatusReport {
        schema: STATUS_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: "client".to_owned(),
        pid: std::process::id(),
        uptime_s: started.elapsed().as_secs_f64(),
        proxies: proxies.clone(),
        capture: None,
        outage: outage.report(),
        reload: reloads.report(),
        sessions: sessions.borrow().iter().map(report).collect(),
    }
}
