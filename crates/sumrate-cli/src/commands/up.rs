//! `sumrate up`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, ConnectError, Health, KnownServers, Session};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::doors::Doors;
use super::event::UpEvent;
use super::far::FarEnd;
use super::keep::keep_session;
use super::observe::{Change, Snapshot, Sources};
use super::outage::Outage;
use super::reloading::{Reloaded, Reloads, Unchanged, split};
use super::servers::Servers;
use super::setup::Missing;
use super::stopping::{Stopping, drain};
use super::wishes::{grant, reprioritised, warn_of_absent};
use super::{CommandError, SetupError, capture, dial, first, setup};
use crate::args::{Command, ProxyAddress, UpArgs};
use crate::classes::ClassRules;
use crate::control::{ControlRequest, ControlSocket};
use crate::flows::Flows;
use crate::history::{History, HistorySocket, Look, OutageLook, SessionLook};
use crate::interrupt::{Hangups, Interrupt, Interrupts};
use crate::output;
use crate::policy::{Keeper, Month};
use crate::proxy::Proxy;
use crate::refusals::Refusals;
use crate::session::{SessionTunnel, report};
use crate::sessions::Sessions;
use crate::status::{
    LeftOutReport, ProxyReport, STATUS_SCHEMA, StatusReport, StatusSocket, annotate_headline,
};
use crate::systemd;

/// Flags of the session: a reload opens one with their new values, beside the old one.
const SESSION_FLAGS: [&str; 15] = [
    "link",
    "path",
    "backup",
    "not",
    "sni",
    "alpn",
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

/// A client with all its sessions.
struct Client {
    /// As they are since the last reload.
    args: Mutex<UpArgs>,
    servers: Arc<Servers>,
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
        let directory = setup::state_directory(args.state.as_deref()).ok();
        let known = directory.as_deref().map(KnownServers::kept_in).unwrap_or_default();
        let mut configs = configure(&args, args.capture.guardian.is_some(), &known)?;
        let Some(first) = configs.first().cloned() else { return Err(SetupError::NoLink.into()) };
        let keeper = Arc::new(Keeper::new(first.policies.clone(), directory));
        for config in &mut configs {
            config.path_interfaces = Some(keeper.clone());
        }
        grant(&args.policy, &first, &keeper)?;
        warn_of_absent(&args.reach.backup, &args.policy, &first);
        setup::clear_file("--ready-file", args.ready_file.as_deref())?;
        let stop = CancellationToken::new();
        let doors = Doors::bind(&args, &first.congestion_control, &stop)?;
        let taken = capture::Capture::bind(&mut args, &stop)?;
        if taken.is_some() {
            configs.iter_mut().for_each(capture::exempt);
        }
        let servers = Arc::new(Servers::new(configs));
        let outage = Arc::<Outage>::default();
        let opened = first::open(&servers, taken.as_ref(), &outage, interrupts).await;
        let (session, taken) = match (opened, taken) {
            (Ok(session), taken) => (session, taken),
            (Err(error), taken) => {
                if let Some(taken) = taken {
                    taken.give_up();
                }
                return Err(error);
            }
        };
        if let Some(session) = &session {
            settle(session).await;
        }
        let left_out = LeftOutReport::list(&first.left_out);
        doors.announce(&args, taken.as_ref(), session.as_ref(), &left_out)?;
        let client = Self {
            ready_file: args.ready_file.clone(),
            json: args.json,
            args: Mutex::new(args),
            servers,
            sessions: Arc::new(Sessions::new(session)),
            keeper,
            outage,
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
        keep_session(&self.servers, &self.sessions, &self.outage, &self.keeper, self.json).await
    }

    /// Serves until it was stopped, every connection has ended, and the server has what they sent.
    async fn serve(&self, socks: Option<Proxy>, http: Option<Proxy>) -> Result<(), CommandError> {
        let tunnel = SessionTunnel::new(self.sessions.subscribe());
        let (outage, servers) = (Arc::clone(&self.outage), Arc::clone(&self.servers));
        let tunnel = tunnel.counting(Arc::clone(&self.flows)).noting(Arc::clone(&self.refusals));
        let tunnel = tunnel.bounded(self.args().max_connections);
        let tunnel = tunnel.refusing(move || {
            let (outage, servers) = (Arc::clone(&outage), Arc::clone(&servers));
            async move { outage.refusal(|| servers.names()).await }
        });
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
        let sessions = self.sessions.subscribe();
        tokio::select! {
            () = finished => Ok(()),
            failed = capture::run(taken, tunnel.clone(), &rules, sessions, &self.far) => failed,
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
        let (started, servers, far) =
            (self.started, Arc::clone(&self.servers), Arc::clone(&self.far));
        Arc::new(move || {
            let sessions: Vec<_> = sessions.live().iter().map(report).collect();
            let config = servers.current();
            let left_out = config.as_ref().map(|config| LeftOutReport::list(&config.left_out));
            let left_out = left_out.unwrap_or_default();
            let named = config.filter(|_| sessions.is_empty());
            let idle_paths = named.map(|config| outage.paths(&config.paths)).unwrap_or_default();
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
                servers: servers.report(),
                unrouted_interfaces: LeftOutReport::unrouted(&left_out),
                left_out,
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
        let configs = self.reconfigure(&wanted)?;
        let links = |configs: &[ClientConfig]| -> Vec<String> {
            configs.iter().map(|config| config.link.to_string_with_secret()).collect()
        };
        let is_other_link = links(&configs) != links(&self.servers.configs());
        if is_other_link && !applied.iter().any(|flag| flag == "link") {
            applied.insert(0, "link".to_owned());
        }
        if applied.iter().any(|flag| SESSION_FLAGS.contains(&flag.as_str())) {
            self.open_another(configs).await?;
        }
        current.daemon.source.accept(reread.accepted);
        wanted.daemon.source = current.daemon.source;
        *self.args() = *wanted;
        Ok(Reloaded { applied, needs_restart })
    }

    /// What is dialled from now on.
    fn reconfigure(&self, wanted: &UpArgs) -> Result<Vec<ClientConfig>, Unchanged> {
        let before = self.servers.current();
        let known = before.as_ref().map(|config| config.known_servers.clone()).unwrap_or_default();
        let configured = configure(wanted, self.taken.is_some(), &known);
        let wrong = |error: CommandError| Unchanged::Configuration(error.to_string());
        let mut configs = configured.map_err(wrong)?;
        for config in &mut configs {
            // Whoever changes policies of paths changes them for the new session too.
            if let Some(before) = &before {
                config.policies = before.policies.clone();
            }
            // What was learnt by dialling is true of that server only.
            let known = self.servers.configs();
            let same = known.iter().find(|known| known.link.servers() == config.link.servers());
            if let Some(same) = same {
                config.dial_memory = same.dial_memory.clone();
            }
            config.path_interfaces = Some(self.keeper.clone());
            if self.taken.is_some() {
                capture::exempt(config);
            }
        }
        Ok(configs)
    }

    /// Opens a session beside the one that there is, for all streams that come.
    async fn open_another(&self, configs: Vec<ClientConfig>) -> Result<(), Unchanged> {
        let wanted = Servers::new(configs);
        let session = tokio::time::timeout(RELOAD_TIMEOUT, wanted.open())
            .await
            .map_err(|_| Unchanged::Failed("no connection to the server within 30 s".to_owned()))?
            .map_err(|error| match error {
                ConnectError::Withheld { paths } => self.keeper.all_spent(&paths),
                other => other.to_string(),
            })
            .map_err(Unchanged::Failed)?;
        let before = self.servers.current();
        self.servers.replace(wanted);
        self.sessions.replace(Some(session));
        // What was wished for a path counts before its own priority, which is the newer one here.
        let sessions = self.sessions.live();
        if let (Some(before), Some(now)) = (before, self.servers.current()) {
            for (name, priority) in reprioritised(&before, &now) {
                self.keeper.prioritise(&sessions, &name, priority);
            }
        }
        Ok(())
    }
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

/// What is dialled at each server, over the same paths. `takes`: whether connections are taken, so that
/// no proxy is needed.
fn configure(
    args: &UpArgs,
    takes: bool,
    known: &KnownServers,
) -> Result<Vec<ClientConfig>, CommandError> {
    let mut configs: Vec<ClientConfig> = Vec::new();
    for link in &args.link {
        let missing = Missing::Awaited;
        let mut config = dial::configure(link.expose(), &args.reach, &args.protocol, missing)?;
        dial::want(&mut config, &args.policy);
        config.known_servers = known.clone();
        let mut others = configs.iter().flat_map(|other| other.link.servers());
        if let Some(twice) = others.find(|other| config.link.servers().contains(other)) {
            return Err(SetupError::SameServer(twice.to_string()).into());
        }
        if let Some(first) = configs.first() {
            config.policies = first.policies.clone();
            config.left_out = first.left_out.clone();
        }
        configs.push(config);
    }
    if !takes && (args.socks, args.http) == (ProxyAddress::Off, ProxyAddress::Off) {
        return Err(SetupError::NoProxy.into());
    }
    Ok(configs)
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
