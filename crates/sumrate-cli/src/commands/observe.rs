//! What runs beside a daemon for those who watch it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::Request;

use super::{CommandError, SetupError, setup};
use crate::args::ObserveArgs;
use crate::control::ControlRequest;
use crate::eventlog::{Differences, EventLog};
use crate::history::History;
use crate::metrics;
use crate::output;
use crate::private_text::PrivateText;
use crate::status::{StatusReport, StatusSocket, beside};
use crate::web::{CHANGES_AT, HttpServer, Site, Token};

/// Time between two looks for the event log, and the least that it can be.
const EVENT_INTERVAL: Duration = Duration::from_millis(100);
const EVENT_INTERVAL_LEAST: Duration = Duration::from_millis(10);

/// Says what the process is doing now; all surfaces show this one report.
pub(super) type Snapshot = Arc<dyn Fn() -> StatusReport + Send + Sync>;

/// Changes how a path is used, or says why not.
pub(super) type Change = Arc<dyn Fn(&ControlRequest) -> Result<(), String> + Send + Sync>;

/// The sources of what observers show, and what carries out their changes.
pub(super) struct Sources {
    /// The status.
    pub(super) snapshot: Snapshot,
    /// The status for people who look at the page.
    pub(super) watched: Snapshot,
    /// The last five minutes.
    pub(super) history: Arc<History>,
    /// For a client: changes paths.
    pub(super) change: Option<Change>,
}

/// The surfaces that were asked for, listening.
#[derive(Debug)]
pub(super) struct Observers {
    metrics: Option<HttpServer>,
    web: Option<(HttpServer, Token)>,
    /// Whether the page may change paths.
    has_controls: bool,
    /// Where the page's address is, instead of on standard output.
    address_file: Option<AddressFile>,
    event_log: Option<(PathBuf, Duration)>,
}

impl Observers {
    /// Listens where it was told to. The page's address goes into a file beside the status socket
    /// where the service manager would keep what is printed.
    pub(super) fn bind(
        args: &ObserveArgs,
        status: Option<&StatusSocket>,
    ) -> Result<Self, CommandError> {
        let metrics = args
            .metrics
            .map(|address| HttpServer::bind("--metrics", address, args.metrics_open))
            .transpose()
            .map_err(SetupError::from)?
            // Nothing in them is secret: who opens them has them scraped by any name.
            .map(|server| server.answering_any_host(args.metrics_open));
        // The token of a page that others reach travels unencrypted: it opens no controls.
        let has_controls = !args.web_open && !args.web_read_only;
        let web = match args.web {
            Some(address) => {
                let server =
                    HttpServer::bind("--web", address, args.web_open).map_err(SetupError::from)?;
                let changes_at = has_controls.then_some(CHANGES_AT);
                Some((server.taking_changes_at(changes_at), Token::random()?))
            }
            None => None,
        };
        setup::clear_file("--event-log", args.event_log.as_deref())?;
        let interval = args.event_interval.unwrap_or(EVENT_INTERVAL).max(EVENT_INTERVAL_LEAST);
        let event_log = args.event_log.clone().map(|path| (path, interval));
        let address_file = match &web {
            Some(page) if output::is_kept() => {
                Some(AddressFile::write(&address(page), status.map(StatusSocket::path))?)
            }
            _ => None,
        };
        Ok(Self { metrics, web, has_controls, address_file, event_log })
    }

    /// URL of the metrics.
    pub(super) fn metrics_url(&self) -> Option<String> {
        self.metrics.as_ref().map(|server| format!("http://{}/metrics", server.address()))
    }

    /// URL of the page, with its token, if it may be printed.
    pub(super) fn web_url(&self) -> Option<PrivateText> {
        self.web.as_ref().filter(|_| self.address_file.is_none()).map(address)
    }

    /// Says where, for people.
    pub(super) fn announce(&self) -> std::io::Result<()> {
        if let Some(url) = self.metrics_url() {
            output::line(&format!("metrics on {url}"))?;
        }
        if let Some(url) = self.web_url() {
            output::line(&format!("web page on {}", url.expose()))?;
        }
        Ok(())
    }

    /// Answers until the future is dropped.
    pub(super) async fn run(&self, sources: &Sources) {
        tokio::join!(
            serve_metrics(self.metrics.as_ref(), &sources.snapshot),
            self.serve_page(sources),
            log_events(self.event_log.as_ref(), &sources.snapshot)
        );
    }

    async fn serve_page(&self, sources: &Sources) {
        let Some((server, token)) = &self.web else { return std::future::pending().await };
        let (watched, history) = (Arc::clone(&sources.watched), Arc::clone(&sources.history));
        let site = Site::new(token.clone(), move || watched(), move || history.report());
        let site = match sources.change.clone().filter(|_| self.has_controls) {
            Some(change) => site.with_controls(move |request| change(request)),
            None => site,
        };
        server.serve(move |request: &Request<Bytes>| site.answer(request)).await;
    }
}

/// URL of the page, with its token.
fn address((server, token): &(HttpServer, Token)) -> PrivateText {
    format!("http://{}/#token={}", server.address(), token.secret()).into()
}

/// The page's address in a file for this user alone; it goes when this is dropped.
#[derive(Debug)]
struct AddressFile(PathBuf);

impl AddressFile {
    fn write(address: &PrivateText, socket: Option<&Path>) -> Result<Self, SetupError> {
        let path = beside(socket.ok_or(SetupError::NoPlaceForAddress)?, "web-url");
        output::write_private(&path, &format!("{}\n", address.expose()))
            .map_err(|error| SetupError::AddressFile { path: path.clone(), error })?;
        // A warning, because less is not logged unless it is asked for.
        tracing::warn!("address of the status page (a password): see {}", path.display());
        Ok(Self(path))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn serve_metrics(server: Option<&HttpServer>, snapshot: &Snapshot) {
    let Some(server) = server else { return std::future::pending().await };
    let snapshot = Arc::clone(snapshot);
    server
        .serve(move |request: &Request<Bytes>| metrics::answer(request.uri().path(), || snapshot()))
        .await;
}

async fn log_events(log: Option<&(PathBuf, Duration)>, snapshot: &Snapshot) {
    let Some((path, interval)) = log else { return std::future::pending().await };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let log = match EventLog::create(path, &snapshot(), now) {
        Ok(log) => log,
        Err(error) => {
            tracing::warn!(%error, "cannot write the event log");
            return std::future::pending().await;
        }
    };
    let mut logging = Logging { log, differences: Differences::default(), snapshot };
    let mut ticks = tokio::time::interval(*interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        logging.note();
    }
}

/// Writes what happened since the last time; also when the process stops between two times.
struct Logging<'a> {
    log: EventLog,
    differences: Differences,
    snapshot: &'a Snapshot,
}

impl Logging<'_> {
    fn note(&mut self) {
        self.log.write(&self.differences.take((self.snapshot)()));
    }
}

impl Drop for Logging<'_> {
    fn drop(&mut self) {
        self.note();
    }
}
