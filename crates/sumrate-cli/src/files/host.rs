//! The server's part of copies: one directory, and clients whose credential allows it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fbdt::FileAccess;
use tokio::sync::Semaphore;

use super::asked::Asked;
use super::destination::{Destination, Naming};
use super::link::{Limits, TransferError, receive_over, send_over};
use super::path::EntryPath;
use super::root::{Root, RootError};
use super::tally::Progress;
use super::walk::Source;
use crate::exit::Allowance;
use crate::service::{
    Answer, FILES_NAMED, FILES_VERSION, FailureCode, FilesDirection, FilesRequest, ServiceError,
    write_answer,
};
use crate::tunnel::TunnelStream;

/// Copies at a time: of all sessions, and of one. Each holds a thread.
const TRANSFERS_MAX: usize = 64;
const SESSION_TRANSFERS_MAX: usize = 8;
/// Most things that one request names.
const PATHS_MAX: usize = 64;

/// The directory that clients may copy from and to, if there is one.
#[derive(Debug)]
pub struct FilesHost {
    root: Mutex<Option<Arc<Root>>>,
    transfers: Semaphore,
}

/// What a session's copies share.
pub struct Transfers {
    places: Semaphore,
    has_gone: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Transfers {
    /// `has_gone` says whether the session has no connection at the moment.
    pub fn new(has_gone: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { places: Semaphore::new(SESSION_TRANSFERS_MAX), has_gone }
    }
}

/// What a request came down to.
enum Job {
    Receive(Destination),
    Send(Vec<Source>),
}

type Refusal = (FailureCode, String);

impl FilesHost {
    /// Offers a directory, or none.
    ///
    /// # Errors
    /// [`RootError`]
    pub fn new(directory: Option<&Path>) -> Result<Self, RootError> {
        let root = directory.map(Root::open).transpose()?.map(Arc::new);
        Ok(Self { root: Mutex::new(root), transfers: Semaphore::new(TRANSFERS_MAX) })
    }

    /// Offers another directory, or none, from now on; copies that run go on where they are.
    ///
    /// # Errors
    /// [`RootError`]; the old one is offered on then.
    pub fn replace(&self, directory: Option<&Path>) -> Result<(), RootError> {
        let root = directory.map(Root::open).transpose()?.map(Arc::new);
        *self.root.lock().unwrap_or_else(PoisonError::into_inner) = root;
        Ok(())
    }

    /// Serves a request to its end.
    ///
    /// # Errors
    /// [`ServiceError`] when the stream fails; a copy that fails is logged.
    pub async fn serve<S: TunnelStream>(
        &self,
        mut stream: S,
        request: FilesRequest,
        access: Option<FileAccess>,
        allowance: &Arc<Allowance>,
        session: &Transfers,
    ) -> Result<(), ServiceError> {
        use tokio::io::AsyncWriteExt;
        let places = (session.places.try_acquire(), self.transfers.try_acquire());
        let job = match places {
            (Ok(_), Ok(_)) => self.job(&request, access).await,
            _ => Err((FailureCode::Busy, "too many copies are under way".to_owned())),
        };
        let job = match job {
            Ok(job) => job,
            Err((code, message)) => {
                write_answer(&mut stream, &Answer::Refused { code, message }).await?;
                return Ok(stream.shutdown().await?);
            }
        };
        let is_named = matches!(&job, Job::Receive(destination) if destination.is_named());
        let answer = if is_named { FILES_NAMED } else { "" };
        write_answer(&mut stream, &Answer::Ready(answer.to_owned())).await?;
        let (limits, progress) = (Limits(vec![Arc::clone(allowance)]), Arc::default());
        let outcome = match job {
            Job::Receive(destination) => {
                let destination = destination.giving_way(Arc::clone(&session.has_gone));
                receive_over(stream, destination, Asked::Nothing, &limits, progress).await
            }
            Job::Send(sources) => {
                let paced = request.rate.map(Allowance::paced).map(Arc::new);
                let limits = Limits(limits.0.into_iter().chain(paced).collect());
                send_over(stream, sources, &limits, Arc::<Progress>::default()).await
            }
        };
        match outcome {
            Ok(tally) => {
                let (files, failed) = (tally.files, tally.failed);
                tracing::info!(files, tally.sent_bytes, failed, "a copy is done");
            }
            Err(error) => tracing::info!(%error, "a copy ended early"),
        }
        Ok(())
    }

    async fn job(
        &self,
        request: &FilesRequest,
        access: Option<FileAccess>,
    ) -> Result<Job, Refusal> {
        let not_allowed = |message: &str| (FailureCode::NotAllowed, message.to_owned());
        let root = self.root.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let root = root.ok_or_else(|| {
            not_allowed("this server offers no files; `sumrate serve --files DIR` does")
        })?;
        match (access, request.direction) {
            (None, _) => Err(not_allowed(
                "the credential may copy no files; `sumrate credential add --files` makes one that may",
            )),
            (Some(FileAccess::ReadOnly), FilesDirection::ToServer) => {
                Err(not_allowed("the credential may read files and not write them"))
            }
            _ => Ok(()),
        }?;
        if request.version != FILES_VERSION {
            let message = format!("this server copies files with version {FILES_VERSION} only");
            return Err((FailureCode::Unsupported, message));
        }
        let request = request.clone();
        // Looking at the disk may take its time.
        let planned = tokio::task::spawn_blocking(move || plan(&root, &request)).await;
        planned.unwrap_or_else(|error| Err((FailureCode::General, error.to_string())))
    }
}

fn plan(root: &Arc<Root>, request: &FilesRequest) -> Result<Job, Refusal> {
    let bad = |message: String| (FailureCode::BadRequest, message);
    let paths: Vec<Option<EntryPath>> = request
        .paths
        .iter()
        .map(|path| {
            EntryPath::normal(path.as_bytes()).map_err(|error| bad(format!("{path}: {error}")))
        })
        .collect::<Result<_, _>>()?;
    if paths.is_empty() || paths.len() > PATHS_MAX {
        return Err(bad(format!("{} paths; 1 to {PATHS_MAX} are allowed", paths.len())));
    }
    let naming = match (request.exact, request.into) {
        (true, _) => Naming::Exact,
        (false, true) => Naming::Into,
        (false, false) => Naming::Either,
    };
    match (request.direction, paths.as_slice()) {
        (FilesDirection::ToServer, [path]) => Destination::new(root, path.as_ref(), naming)
            .map(Job::Receive)
            .map_err(|error: TransferError| bad(error.to_string())),
        (FilesDirection::ToServer, _) => Err(bad("one destination is allowed".to_owned())),
        (FilesDirection::ToClient, _) => {
            let source = |path| Source { root: Arc::clone(root), path, name: None };
            Ok(Job::Send(paths.into_iter().map(source).collect()))
        }
    }
}
