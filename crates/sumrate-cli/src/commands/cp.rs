//! `sumrate cp`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, ConnectError, Session};
use serde::{Deserialize, Serialize};

use super::cp_progress::show;
use super::operand::{Copy, link_of};
use super::setup::Missing;
use super::{CommandError, dial};
use crate::args::CpArgs;
use crate::config::default_path;
use crate::exit::Allowance;
use crate::files::{
    Asked, AskedError, Destination, EntryPath, Failure, Limits, Naming, Progress, Root, RootError,
    Source, Tally, TransferError, receive_over, send_over,
};
use crate::interrupt::Interrupts;
use crate::output;
use crate::service::{
    Answer, FILES_NAMED, FILES_VERSION, FailureCode, FilesDirection, FilesRequest, Request,
    ServiceError, read_answer, write_request,
};
use crate::session::SessionTunnel;
use crate::status::bytes as amount;
use crate::tunnel::{Tunnel, TunnelError, Use};

/// Name and version of the JSON form.
pub const CP_SCHEMA: &str = "sumrate.cp.v1";
/// Pause between two attempts to go on.
const PAUSE: Duration = Duration::from_secs(1);
/// Failures that are printed; `--json` has up to a thousand.
const FAILURES_SHOWN: usize = 20;

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CpError {
    /// The server did not take the request.
    #[error("the server refuses: {message}")]
    Refused {
        /// Why, for programs.
        code: FailureCode,
        /// Why, for people.
        message: String,
    },
    /// A local path cannot be used.
    #[error("{path}: {reason}")]
    Local {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The paths cannot be requested.
    #[error(transparent)]
    Asked(#[from] AskedError),
    /// The local directory cannot be used.
    #[error(transparent)]
    Root(#[from] RootError),
    /// No stream.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// The request could not be made.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The copy ended early.
    #[error("{0}{advice}", advice = advice(.0))]
    Transfer(#[from] TransferError),
    /// Some entries were not copied.
    #[error("not copied: {}", output::counted(*.0, "entry", "entries"))]
    Incomplete(u64),
}

/// Advice to repeat the command, where that can help.
fn advice(error: &TransferError) -> &'static str {
    let is_final = error.is_violation() || matches!(error, TransferError::Destination(_));
    if is_final { "" } else { "; give the same command again to go on" }
}

impl CpError {
    /// Whether another connection may do better.
    fn is_lost(&self) -> bool {
        match self {
            Self::Tunnel(_) | Self::Service(ServiceError::Io(_)) => true,
            Self::Transfer(error) => error.is_lost(),
            _ => false,
        }
    }
}

/// A line of `cp --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpLine {
    /// [`CP_SCHEMA`].
    pub schema: String,
    /// What happened.
    #[serde(flatten)]
    pub event: CpEvent,
}

/// How far a copy is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CpEvent {
    /// About once a second.
    Progress {
        /// Files that are settled.
        files: u64,
        /// All files.
        total_files: u64,
        /// Bytes of them that are settled.
        bytes: u64,
        /// All bytes.
        total_bytes: u64,
        /// The file that moves now.
        current: String,
    },
    /// The connection was lost; what is there is gone on from.
    Lost {
        /// Why.
        reason: String,
    },
    /// The end.
    Done {
        /// What became of everything.
        #[serde(flatten)]
        tally: Tally,
        /// Seconds that it took.
        duration_s: f64,
    },
}

impl CpEvent {
    pub(super) fn into_line(self) -> CpLine {
        CpLine { schema: CP_SCHEMA.to_owned(), event: self }
    }
}

/// What is copied, looked up at this end. Where it goes is decided by the first attempt; later ones
/// find what that one made there.
enum Plan {
    Send { sources: Vec<Source>, path: String, naming: Naming },
    Receive { paths: Vec<String>, asked: Asked, place: Place },
}

/// Where the things that are received go.
struct Place {
    root: Arc<Root>,
    name: Option<EntryPath>,
    naming: Naming,
    decided: Option<Destination>,
}

impl Place {
    /// The destination, which the first attempt decides for all.
    fn destination(&mut self) -> Result<Destination, TransferError> {
        let decided = match self.decided.take() {
            Some(decided) => decided,
            None => Destination::new(&self.root, self.name.as_ref(), self.naming)?,
        };
        Ok(self.decided.insert(decided).again())
    }
}

impl Plan {
    fn request(&self, limit: Option<u64>) -> FilesRequest {
        match self {
            Self::Send { path, naming, .. } => FilesRequest {
                version: FILES_VERSION,
                direction: FilesDirection::ToServer,
                paths: vec![path.clone()],
                into: *naming == Naming::Into,
                exact: *naming == Naming::Exact,
                rate: None,
            },
            Self::Receive { paths, .. } => FilesRequest {
                version: FILES_VERSION,
                direction: FilesDirection::ToClient,
                paths: paths.clone(),
                into: false,
                exact: false,
                rate: limit,
            },
        }
    }
}

/// Copies, and goes on after lost connections.
///
/// # Errors
/// [`CommandError`]
pub async fn cp(args: CpArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let copy = Copy::of(&args.operands)?;
    let config_file = match &args.config {
        Some(none) if none.as_os_str() == "none" => None,
        named => named.clone().or_else(default_path),
    };
    let link = link_of(copy.host(), config_file.as_deref())?;
    let config = dial::configure(link.expose(), &args.reach, &args.protocol, Missing::Refused)?;
    let mut plan = plan(&copy)?;
    let progress = Arc::new(Progress::default());
    let begun = Instant::now();
    let work = async {
        tokio::select! {
            tally = copied(&args, &config, &mut plan, &progress) => tally,
            never = show(&args, &progress) => match never {},
        }
    };
    let tally = tokio::select! {
        tally = work => tally?,
        interrupt = interrupts.next() => return Err(CommandError::Interrupted(interrupt)),
    };
    finish(&args, tally, begun.elapsed())
}

/// Tries until it is done, it fails for good, or nothing has moved for the time of `--retry`.
async fn copied(
    args: &CpArgs,
    config: &ClientConfig,
    plan: &mut Plan,
    progress: &Arc<Progress>,
) -> Result<Tally, CommandError> {
    let (mut moved_at, mut moved) = (Instant::now(), 0);
    let mut first = true;
    loop {
        let failure = match fbdt::connect(config.clone()).await {
            Ok(session) => {
                let outcome = attempt(&session, args, plan, Arc::clone(progress)).await;
                session.close(0, "the copy is over").await;
                match outcome {
                    Ok(tally) => return Ok(Tally { sent_bytes: progress.moved(), ..tally }),
                    Err(error) if error.is_lost() => CommandError::from(error),
                    Err(error) => return Err(error.into()),
                }
            }
            // Who cannot be reached at all is not waited for.
            Err(error) if first => return Err(error.into()),
            Err(error) => CommandError::from(error),
        };
        first = false;
        if progress.moved() > moved {
            (moved_at, moved) = (Instant::now(), progress.moved());
        }
        let is_final = matches!(
            &failure,
            CommandError::Connect(ConnectError::Refused { .. } | ConnectError::WrongKey { .. })
        ) || failure.exit_code() == 2;
        if is_final || moved_at.elapsed() >= args.retry {
            return Err(failure);
        }
        let reason = output::without_secrets(&lost_words(&failure));
        tracing::warn!("copy interrupted: {reason}; it continues when the server answers");
        if args.json {
            output::json(&CpEvent::Lost { reason }.into_line())?;
        }
        tokio::time::sleep(PAUSE.min(args.retry)).await;
    }
}

/// Why a connection was lost, without the advice that who gives up needs: `cp` goes on by itself.
fn lost_words(failure: &CommandError) -> String {
    match failure {
        CommandError::Cp(CpError::Transfer(error)) => error.to_string(),
        other => other.to_string(),
    }
}

async fn attempt(
    session: &Session,
    args: &CpArgs,
    plan: &mut Plan,
    progress: Arc<Progress>,
) -> Result<Tally, CpError> {
    let mut stream = SessionTunnel::fixed(session.clone()).open(Use::Bulk).await?;
    write_request(&mut stream, &Request::Files(plan.request(args.limit))).await?;
    let answer = match read_answer(&mut stream).await? {
        Answer::Ready(answer) => answer,
        Answer::Refused { code, message } => return Err(CpError::Refused { code, message }),
    };
    let tally = match plan {
        Plan::Send { sources, naming, .. } => {
            if answer == FILES_NAMED {
                *naming = Naming::Exact;
            }
            let limits =
                Limits(args.limit.map(Allowance::paced).map(Arc::new).into_iter().collect());
            send_over(stream, sources.clone(), &limits, progress).await
        }
        Plan::Receive { place, asked, .. } => {
            let destination = place.destination()?;
            let limits = Limits::default();
            receive_over(stream, destination, asked.clone(), &limits, progress).await
        }
    };
    Ok(tally?)
}

fn plan(copy: &Copy) -> Result<Plan, CpError> {
    match copy {
        Copy::ToServer { sources, path, .. } => {
            let into = sources.len() > 1 || path.ends_with('/');
            let sources = sources.iter().map(|path| source(path)).collect::<Result<_, _>>()?;
            Ok(Plan::Send { sources, path: path.clone(), naming: naming(into) })
        }
        Copy::ToClient { paths, destination, .. } => {
            let asked = Asked::of(paths)?;
            let whole = asked == Asked::Directory;
            let shown = destination.as_os_str().as_bytes();
            let into = whole || paths.len() > 1 || shown.ends_with(b"/");
            let (root, name) = local_place(destination)?;
            let (root, naming) = (Arc::new(root), naming(into));
            let place = Place { root, name, naming, decided: None };
            Ok(Plan::Receive { paths: paths.clone(), asked, place })
        }
    }
}

fn naming(into: bool) -> Naming {
    if into { Naming::Into } else { Naming::Either }
}

fn local(path: &Path, reason: impl ToString) -> CpError {
    CpError::Local { path: path.to_owned(), reason: reason.to_string() }
}

/// A local source: its directory, its name there, and what it is called at the server.
fn source(path: &Path) -> Result<Source, CpError> {
    let real = path.canonicalize().map_err(|error| local(path, error))?;
    let found = real.metadata().map_err(|error| local(path, error))?;
    if !found.is_file() && !found.is_dir() {
        return Err(local(path, "it is neither a file nor a directory, which is not copied"));
    }
    let (root, inner) = local_place(&real)?;
    // `.` and `dir/..` have no name of their own.
    let called = path.file_name().or(real.file_name()).map(OsStr::as_bytes);
    let name = called.and_then(|name| EntryPath::new(name).ok());
    Ok(Source { root: Arc::new(root), path: inner, name })
}

/// The parent of a path, opened, and the name below it; none for `/`.
fn local_place(path: &Path) -> Result<(Root, Option<EntryPath>), CpError> {
    let name = match path.file_name() {
        Some(name) => EntryPath::new(name.as_bytes()).map_err(|error| local(path, error))?,
        None => return Ok((Root::open(path)?, None)),
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // A link in the place of a directory is the user's own, and followed.
    if path.is_dir() {
        return match path.is_symlink() || path.as_os_str().as_bytes().ends_with(b"/.") {
            true => Ok((Root::open(path)?, None)),
            false => Ok((Root::open(parent)?, Some(name))),
        };
    }
    Ok((Root::open(parent)?, Some(name)))
}

fn finish(args: &CpArgs, tally: Tally, took: Duration) -> Result<(), CommandError> {
    let failed = tally.failed;
    if args.json {
        output::json(&CpEvent::Done { tally, duration_s: took.as_secs_f64() }.into_line())?;
    } else {
        for Failure { path, reason } in tally.failures.iter().take(FAILURES_SHOWN) {
            output::line(&format!("not copied: {path}: {reason}"))?;
        }
        let Tally { files, unchanged_files, directories, bytes, sent_bytes, .. } = tally;
        output::line(&format!(
            "{} ({unchanged_files} unchanged), {}: {}, {} of that sent, in {:.1} s",
            output::counted(files, "file", "files"),
            output::counted(directories, "directory", "directories"),
            amount(bytes),
            amount(sent_bytes),
            took.as_secs_f64()
        ))?;
    }
    if failed > 0 { Err(CpError::Incomplete(failed).into()) } else { Ok(()) }
}
