//! `sumrate up`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, CongestionControl, ConnectError, Health, Session, connect};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::event::{UpEvent, path_summaries, session_id};
use super::far::FarEnd;
use super::keep::{Outage, keep_session};
use super::observe::{Change, Observers, Snapshot, Sources};
use super::reloading::{Reloaded, Reloads, Unchanged, split};
use super::serve::optional;
use super::setup::Missing;
use super::stopping::{Stopping, drain};
use super::wishes::{grant, reprioritised, warn_of_absent};
use super::{CommandError, SetupError, capture, dial, setup};
use crate::args::{Command, ProxyAddress, UpArgs};
use crate::classes::ClassRules;
use crate::control::{ControlRequest, ControlSocket};
use crate::flows::Flows;
use crate::history::{History, HistorySocket, Look, OutageLook, SessionLook};
use crate::interrupt::{Hangups, Interrupt, Interrupts};
use crate::output;
use crate::policy::{Keeper, Month};
use crate::proxy::{Proxy, ProxyKind};
use crate::refusals::Refusals;
use crate::session::{SessionTunnel, report};
use crate::sessions::Sessions;
use crate::status::{
    PathReport, ProxyReport, STATUS_SCHEMA, StatusReport, StatusSocket, annotate_headline, list,
    rtt_words,
};
use crate::systemd;

/// Flags of the session: a reload opens one with their new values, beside the old one.
const SESSION_FLAGS: [&str; 12] = [
    "link",
    "path",
    "backup",
    "scheduler",
    "window-mode",
    "window",
    "thesis-window",
    "stream-buffer",
    "redundancy",
    "coupling",
    "forward",
    "linger",
];
/// Longest time for a reload to open its session.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs until a signal.
///
/// # Errors
/// [`CommandError`]
pub async fn up(args: UpArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let mut hangups = Hangups::new()?;
    super::run::clear_names();
    let (client, doors) = Client::bind(args, &mut interrupts).await?;
    systemd::ready();
    let outcome = client.run(doors, &mut interrupts, &mut hangups).await;
    let in_order = matches!(outcome, Ok(()) | Err(CommandError::Interrupted(_)));
    client.stop(in_order).await?;
    outcome
}

/// Where programs and people reach the client.
struct Doors {
    socks: Option<Proxy>,
    http: Option<Proxy>,
    addresses: ProxyReport,
    status: Option<StatusSocket>,
    control: Option<ControlSocket>,
    history: Option<HistorySocket>,
    observers: Observers,
}

impl Doors {
    /// Listens everywhere; the proxies take nobody any more once `stop` is cancelled.
    fn bind(
        args: &UpArgs,
        congestion_control: &CongestionControl,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let socks = proxy(args, ProxyKind::Socks5, congestion_control, stop)?;
        let http = proxy(args, ProxyKind::Http, congestion_control, stop)?;
        let addresses =
            ProxyReport { socks: address(socks.as_ref())?, http: address(http.as_ref())? };
        let bound = StatusSocket::bind(args.status_socket.as_deref(), "up");
        let status = optional(args.status_socket.as_deref(), bound)?;
        let control =
            status.as_ref().map(|socket| ControlSocket::bind(socket.path())).transpose()?;
        let history =
            status.as_ref().map(|socket| HistorySocket::bind(socket.path())).transpose()?;
        let observers = Observers::bind(&args.observe, status.as_ref())?;
        Ok(Self { socks, http, addresses, status, control, history, observers })
    }

    /// Says where, in the ready file and on standard output.
    fn announce(
        &self,
        args: &UpArgs,
        taken: Option<&capture::Capture>,
        session: Option<&Session>,
        unrouted: &[String],
    ) -> std::io::Result<()> {
        let paths = session.map(path_summaries).unwrap_or_default();
        let line = UpEvent::Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            socks: self.addresses.socks.clone(),
            http: self.addresses.http.clone(),
            status_socket: self.status.as_ref().map(|socket| socket.path().display().to_string()),
            metrics: self.observers.metrics_url(),
            web: self.observers.web_url(),
            session: session.map(session_id),
            paths,
        }
        .into_line();
        if let Some(path) = &args.ready_file {
            output::write_private(path, &format!("{}\n", serde_json::to_string(&line)?))?;
        }
        if args.json {
            return output::json(&line);
        }
        output::line(&connected(session, unrouted))?;
        if let Some(socks) = &self.addresses.socks {
            output::line(&format!(
                "SOCKS5 proxy on {socks}, for example: curl -x socks5h://{socks} https://example.org/"
            ))?;
        }
        if let Some(http) = &self.addresses.http {
            output::line(&format!("HTTP proxy on {http}"))?;
        }
        if let Some(taken) = taken {
            output::line(&taken.describe())?;
        }
        self.observers.announce()?;
        output::line("watch: sumrate status, or sumrate top; stop: Ctrl-C")
    }
}

/// A client with all its sessions.
struct Client {
    /// As they are since the last reload.
    args: Mutex<UpArgs>,
    config: watch::Sender<ClientConfig>,
    sessions: Arc<Sessions>,
    keeper: Arc<Keeper>,
    outage: Arc<Outage>,
    reloads: Arc<Reloads>,
    /// What UDP associations carry.
    flows: Arc<Flows>,
    /// Destinations that the server refused.
    refusals: Arc<Refusals>,
    /// What the server says of the paths.
    far: Arc<FarEnd>,
    /// The last five minutes.
    history: Arc<History>,
    taken: Option<capture::Capture>,
    /// Cancelled when nothing new is to be taken any more.
    stop: CancellationToken,
    stopping: Arc<Stopping>,
    started: Instant,
    ready_file: Option<PathBuf>,
    json: bool,
}

impl Client {
    /// Listens, opens the first session, and says so.
    async fn bind(
        mut args: UpArgs,
        interrupts: &mut Interrupts,
    ) -> Result<(Self, Doors), CommandError> {
        let started = Instant::now();
        let mut config = configure(&args, args.capture.guardian.is_some())?;
        let directory = setup::state_directory(args.state.as_deref()).ok();
        let keeper = Arc::new(Keeper::new(config.policies.clone(), directory));
        grant(&args.policy, &config, &keeper)?;
        warn_of_absent(&args.backup, &args.policy, &config);
        setup::clear_file("--ready-file", args.ready_file.as_deref())?;
        let stop = CancellationToken::new();
        let doors = Doors::bind(&args, &config.congestion_control, &stop)?;
        let taken = capture::Capture::bind(&mut args, &stop)?;
        if let Some(taken) = &taken {
            taken.exempt(&mut config).await?;
        }
        let session = match dial::open(config.clone(), interrupts).await {
            Ok(session) => Some(session),
            // Programs are told why, and there is a session as soon as a path may be used.
            Err(CommandError::Connect(ConnectError::Withheld { .. })) => None,
            Err(error) => return Err(error),
        };
        if let Some(taken) = &taken {
            taken.begin()?;
        }
        if let Some(session) = &session {
            settle(session).await;
        }
        let unrouted = config.unrouted_interfaces.names();
        doors.announce(&args, taken.as_ref(), session.as_ref(), &unrouted)?;
        let client = Self {
            ready_file: args.ready_file.clone(),
            json: args.json,
            args: Mutex::new(args),
            config: watch::Sender::new(config),
            sessions: Arc::new(Sessions::new(session)),
            keeper,
            outage: Arc::default(),
            reloads: Arc::default(),
            flows: Arc::default(),
            refusals: Arc::default(),
            far: Arc::default(),
            history: Arc::new(History::new(started)),
            taken,
            stop,
            stopping: Arc::default(),
            started,
        };
        Ok((client, doors))
    }

    fn args(&self) -> MutexGuard<'_, UpArgs> {
        self.args.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until a signal, and after SIGTERM until what is under way has come to its end.
    async fn run(
        &self,
        doors: Doors,
        interrupts: &mut Interrupts,
        hangups: &mut Hangups,
    ) -> Result<(), CommandError> {
        let Doors { socks, http, addresses, status, control, history, observers } = doors;
        let snapshot = self.snapshot(addresses);
        let change = self.changer();
        let sources = Sources {
            watched: self.watched(&snapshot),
            snapshot: Arc::clone(&snapshot),
            history: Arc::clone(&self.history),
            change: Some(Arc::clone(&change)),
        };
        let mut running = Box::pin(async {
            tokio::select! {
                error = self.keep_session() => Err(error),
                served = self.serve(socks, http) => served,
                () = answer(status.as_ref(), &self.far, &snapshot) => Ok(()),
                () = self.far.ask(&self.sessions) => Ok(()),
                () = take_changes(control.as_ref(), &change) => Ok(()),
                () = self.reload_at(hangups) => Ok(()),
                () = observers.run(&sources) => Ok(()),
                () = self.keeper.keep(&self.sessions) => Ok(()),
                () = self.history.keep(|| self.look()) => Ok(()),
                () = answer_history(history.as_ref(), &self.history) => Ok(()),
            }
        });
        tokio::select! {
            outcome = &mut running => outcome,
            interrupt = interrupts.next() => match interrupt {
                Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
                Interrupt::Terminated => {
                    let limit = self.args().daemon.drain;
                    self.stopping.begin(limit);
                    self.stop.cancel();
                    match drain(&mut running, limit, interrupts).await {
                        cut if cut.is_cut() => tracing::warn!("{cut}"),
                        finished => tracing::info!("{finished}"),
                    }
                    Ok(())
                }
            },
        }
    }

    async fn keep_session(&self) -> CommandError {
        keep_session(&self.config, &self.sessions, &self.outage, &self.keeper, self.json).await
    }

    /// Serves until it was stopped, every connection has ended, and the server has what they sent.
    async fn serve(&self, socks: Option<Proxy>, http: Option<Proxy>) -> Result<(), CommandError> {
        let tunnel = SessionTunnel::new(self.sessions.subscribe());
        let outage = Arc::clone(&self.outage);
        let tunnel = tunnel.counting(Arc::clone(&self.flows)).noting(Arc::clone(&self.refusals));
        let tunnel = tunnel.refusing(move || outage.refusal());
        let rules = Arc::new(ClassRules::new(self.args().class_rule.clone()));
        let taken = self.taken.as_ref();
        if taken.is_some() && rules.name_hosts() {
            tracing::warn!(
                "--class-rule with a host name does not match captured connections, which have \
                 addresses only; use ports or addresses in those rules"
            );
        }
        let finished = async {
            tokio::join!(
                run_proxy(socks, tunnel.clone(), &self.stop),
                run_proxy(http, tunnel.clone(), &self.stop),
                capture::finished(taken),
            );
            self.sessions.delivered().await;
        };
        tokio::select! {
            () = finished => Ok(()),
            failed = capture::run(taken, tunnel.clone(), &rules) => {
                failed.map_err(CommandError::from)
            }
        }
    }

    /// The counters for one sample of the history.
    fn look(&self) -> Look {
        let withheld = |path: &str| self.keeper.withheld(path);
        let session = |session: &Session| SessionLook::new(session, None, withheld);
        let sessions = self.sessions.live().iter().map(session).collect();
        let outage = self
            .outage
            .report()
            .map(|outage| OutageLook { words: outage.last_error, is_spent: outage.quotas_spent });
        Look { sessions, outage }
    }

    /// Changes paths of all sessions, whoever asks: the control socket or the status page.
    fn changer(&self) -> Change {
        let (sessions, keeper) = (Arc::clone(&self.sessions), Arc::clone(&self.keeper));
        let history = Arc::clone(&self.history);
        Arc::new(move |ControlRequest { path, set, .. }| {
            let changed = keeper.change(&sessions.live(), path, set);
            changed.map_err(|error| error.to_string())?;
            history.note_change(path, set.words(path));
            Ok(())
        })
    }

    async fn reload_at(&self, hangups: &mut Hangups) {
        loop {
            hangups.next().await;
            self.reloads.run(self.reload()).await;
        }
    }

    /// What all who watch are told.
    fn snapshot(&self, proxies: ProxyReport) -> Snapshot {
        let (sessions, keeper) = (Arc::clone(&self.sessions), Arc::clone(&self.keeper));
        let (outage, reloads) = (Arc::clone(&self.outage), Arc::clone(&self.reloads));
        let (flows, stopping) = (Arc::clone(&self.flows), Arc::clone(&self.stopping));
        let (refusals, history) = (Arc::clone(&self.refusals), Arc::clone(&self.history));
        let capture = self.taken.as_ref().map(capture::Capture::reporter);
        let (started, config, far) = (self.started, self.config.subscribe(), Arc::clone(&self.far));
        Arc::new(move || {
            let sessions: Vec<_> = sessions.live().iter().map(report).collect();
            let (unrouted_interfaces, idle_paths) = {
                let config = config.borrow();
                let named = sessions.is_empty().then(|| outage.paths(&config.paths));
                (config.unrouted_interfaces.names(), named.unwrap_or_default())
            };
            let mut now = StatusReport {
                schema: STATUS_SCHEMA.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                role: "client".to_owned(),
                pid: std::process::id(),
                uptime_s: started.elapsed().as_secs_f64(),
                proxies: proxies.clone(),
                capture: capture.as_ref().map(|capture| capture()),
                udp: flows.report(),
                refusals: refusals.report(),
                stopping: stopping.report(&sessions),
                outage: outage.report(),
                unrouted_interfaces,
                reload: reloads.report(),
                idle_paths,
                sessions,
                ..StatusReport::default()
            };
            history.annotate(&mut now);
            far.annotate(&mut now);
            keeper.annotate(&mut now);
            annotate_headline(&mut now);
            now
        })
    }

    /// The same for who looks at both directions: the server is asked for its part.
    fn watched(&self, snapshot: &Snapshot) -> Snapshot {
        let (far, snapshot) = (Arc::clone(&self.far), Arc::clone(snapshot));
        Arc::new(move || {
            far.want();
            snapshot()
        })
    }

    /// Gives everything back, closes all sessions and says so. `in_order`: somebody wanted the end.
    async fn stop(self, in_order: bool) -> Result<(), CommandError> {
        match self.taken {
            // Programs connect directly again before the sessions are gone.
            Some(taken) if in_order => taken.release(),
            taken => drop(taken),
        }
        let last = self.sessions.take();
        self.keeper.count(&last, Month::now());
        self.keeper.save();
        let mut closing = JoinSet::new();
        for session in last {
            closing.spawn(async move { session.close(0, "the client stops").await });
        }
        closing.join_all().await;
        if let Some(path) = &self.ready_file {
            let _ = std::fs::remove_file(path);
        }
        if self.json {
            output::json(&UpEvent::Stopped.into_line())?;
        }
        Ok(())
    }

    /// Reads the configuration again. Where the session would be another, a new one is opened; the old
    /// one goes on for its streams.
    async fn reload(&self) -> Result<Reloaded, Unchanged> {
        let mut current = self.args().clone();
        let reread = current.daemon.source.reread().map_err(Unchanged::Configuration)?;
        let Command::Up(mut wanted) = reread.cli.command else {
            let text = "the configuration is of another command".to_owned();
            return Err(Unchanged::Configuration(text));
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
        let config = self.reconfigure(&wanted).await?;
        let link = |config: &ClientConfig| config.link.to_string_with_secret();
        let is_other_link = link(&config) != link(&self.config.borrow());
        if is_other_link && !applied.iter().any(|flag| flag == "link") {
            applied.insert(0, "link".to_owned());
        }
        if applied.iter().any(|flag| SESSION_FLAGS.contains(&flag.as_str())) {
            self.open_another(config).await?;
        }
        current.daemon.source.accept(reread.accepted);
        wanted.daemon.source = current.daemon.source;
        *self.args() = *wanted;
        Ok(Reloaded { applied, needs_restart })
    }

    /// What is dialled from now on.
    async fn reconfigure(&self, wanted: &UpArgs) -> Result<ClientConfig, Unchanged> {
        let configured = configure(wanted, self.taken.is_some());
        let wrong = |error: CommandError| Unchanged::Configuration(error.to_string());
        let mut config = configured.map_err(wrong)?;
        // Whoever changes policies of paths changes them for the new session too.
        config.policies = self.config.borrow().policies.clone();
        if let Some(taken) = &self.taken {
            let exempted = taken.exempt(&mut config).await;
            exempted.map_err(|error| Unchanged::Failed(error.to_string()))?;
        }
        Ok(config)
    }

    /// Opens a session beside the one that there is, for all streams that come.
    async fn open_another(&self, config: ClientConfig) -> Result<(), Unchanged> {
        let session = tokio::time::timeout(RELOAD_TIMEOUT, connect(config.clone()))
            .await
            .map_err(|_| Unchanged::Failed("no connection to the server within 30 s".to_owned()))?
            .map_err(|error| match error {
                ConnectError::Withheld { paths } => self.keeper.all_spent(&paths),
                other => other.to_string(),
            })
            .map_err(Unchanged::Failed)?;
        let before = self.config.send_replace(config.clone());
        self.sessions.replace(Some(session));
        // What was wished for a path counts before its own priority, which is the newer one here.
        let sessions = self.sessions.live();
        for (name, priority) in reprioritised(&before, &config) {
            self.keeper.prioritise(&sessions, &name, priority);
        }
        Ok(())
    }
}

/// The server and the paths to it, with addresses and RTT.
fn connected(session: Option<&Session>, unrouted: &[String]) -> String {
    let Some(session) = session else {
        return "not connected yet, as no path may be used: `sumrate status` says why".to_owned();
    };
    let paths = report(session).paths;
    let address = |text: &str| text.parse::<SocketAddr>().ok();
    let server = paths.iter().find_map(|path| path.remote.clone()).unwrap_or_default();
    let words = |path: &PathReport| {
        let mut facts = Vec::new();
        facts.extend(path.local.as_deref().and_then(address).map(|local| local.ip().to_string()));
        facts.extend((path.rtt_ms > 0.0).then(|| format!("RTT {}", rtt_words(path.rtt_ms))));
        facts.extend((path.health == "dead").then(|| "not connected yet".to_owned()));
        facts.extend((path.priority != "primary").then(|| path.priority.clone()));
        format!("{} ({})", path.name, facts.join(", "))
    };
    let paths: Vec<String> = paths.iter().map(words).collect();
    let unused = match unrouted {
        [] => String::new(),
        names => format!("; not used, as no route to the server: {}", names.join(", ")),
    };
    format!("connected to {server}, paths: {}{unused}", list(&paths))
}

/// How long what is announced waits for paths beside the first one.
const SETTLE: Duration = Duration::from_millis(500);

/// Waits a moment until all paths are up, so that what is announced names them.
async fn settle(session: &Session) {
    let all_up = async {
        // The other paths enter the session's list only after the first one has opened it.
        tokio::time::sleep(SETTLE / 10).await;
        while session.paths().iter().any(|path| path.health == Health::Dead) {
            tokio::time::sleep(SETTLE / 50).await;
        }
    };
    let _ = tokio::time::timeout(SETTLE, all_up).await;
}

/// `takes`: whether connections are taken, so that no proxy is needed.
fn configure(args: &UpArgs, takes: bool) -> Result<ClientConfig, CommandError> {
    let paths = (&args.path[..], &args.backup[..]);
    let config = dial::configure(args.link.expose(), paths, &args.protocol, Missing::Awaited)?;
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

/// Takes changes of paths.
async fn take_changes(control: Option<&ControlSocket>, change: &Change) {
    let Some(control) = control else { return std::future::pending().await };
    control.serve(|request| change(request)).await;
}

/// Answers who draws the last five minutes.
pub(super) async fn answer_history(socket: Option<&HistorySocket>, history: &History) {
    let Some(socket) = socket else { return std::future::pending().await };
    socket.serve(history).await;
}

/// Answers `sumrate status`.
async fn answer(status: Option<&StatusSocket>, far: &FarEnd, snapshot: &Snapshot) {
    let Some(socket) = status else { return std::future::pending().await };
    let report = || async {
        far.look().await;
        snapshot()
    };
    socket.serve(report).await;
}
