//! The server's state directory: its key, its certificate, one file per credential.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fbdt_proto::plain_text::is_hidden;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::credential::{
    Credential, CredentialFile, CredentialId, CredentialInfo, CredentialLimits,
};
use super::private_file::{self, PrivateFileError};
use super::process_lock::{ProcessLock, ProcessLockError};
use super::secret::RandomError;
use super::server_key::{KeyFingerprint, ServerKey, ServerKeyError};

/// Longest name of a credential, in bytes.
const LONGEST_NAME: usize = 64;

/// The files of the server's key.
const KEY: &str = "server.key";
const CERTIFICATE: &str = "server.crt";
/// The file that a running server has locked; it holds the number of its process.
const CLAIM: &str = "server.lock";

/// A server's identity and the clients it knows, kept in one directory.
///
/// The directory has mode 0700, its files 0600; anything more open is refused. Credentials are
/// read from disk when they are used, so that a revocation by another process counts at once.
#[derive(Debug, Clone)]
pub struct ServerState {
    directory: PathBuf,
    key: ServerKey,
}

/// Version of the directory and of each of its files. Absent where the first release wrote none.
pub(super) const FILE_VERSION: u32 = 1;

/// What a credential has used.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageFile {
    #[serde(default = "first_version")]
    version: u32,
    pub(super) bytes: u64,
}

/// The part of a JSON file that every version has; read first, because the rest may be unknown.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default = "first_version")]
    version: u32,
}

fn first_version() -> u32 {
    1
}

/// The state directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A file is missing, unreadable, or readable by others.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The key could not be made or read.
    #[error("server state in {directory}: {source}")]
    Key {
        /// The state directory.
        directory: PathBuf,
        /// The reason.
        source: ServerKeyError,
    },
    /// A later version of this program wrote it.
    #[error(
        "{path} has version {found}, this program reads version 1; update this program, or name another state directory"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A file does not hold what its name says.
    #[error("{path} is damaged: {reason}; remove it, or restore it from where it was made")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which field, and what is wrong with it.
        reason: String,
    },
    /// No credential has this id.
    #[error("there is no credential {0}; list them to see the ids")]
    Unknown(CredentialId),
    /// Another server has the directory.
    #[error(
        "{directory} is in use by {holder}, a running `sumrate serve`: stop it, or give another --state"
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// Which process.
        holder: String,
    },
    /// The name cannot be used.
    #[error(
        "`{0}` cannot name a credential; use 1 to 64 bytes without control and invisible characters"
    )]
    Name(String),
    /// No randomness.
    #[error(transparent)]
    Random(#[from] RandomError),
}

impl ServerState {
    /// Opens the directory, and makes it, the key and the certificate if they are not there.
    ///
    /// # Errors
    /// [`StateError`] if anything in it cannot be used or is open to others.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StateError> {
        let directory = directory.as_ref().to_owned();
        private_file::ensure_directory(&directory)?;
        check_directory_version(&directory)?;
        private_file::ensure_directory(&directory.join("credentials"))?;
        let key = load_or_make_key(&directory)?;
        Ok(Self { directory, key })
    }

    /// Takes the directory for the one server that runs on it, as long as the answer lives. Others may
    /// still make and revoke credentials.
    ///
    /// # Errors
    /// [`StateError::InUse`] if another process has it.
    pub fn claim(&self) -> Result<ProcessLock, StateError> {
        ProcessLock::acquire(&self.directory.join(CLAIM)).map_err(|error| match error {
            ProcessLockError::Held { holder, .. } => {
                StateError::InUse { directory: self.directory.clone(), holder }
            }
            ProcessLockError::File(error) => error.into(),
        })
    }

    /// What clients pin.
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.key.fingerprint()
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn key(&self) -> &ServerKey {
        &self.key
    }

    /// Makes and stores a credential.
    ///
    /// # Errors
    /// [`StateError::Name`] for an unusable name; else what prevented the file.
    pub fn new_credential(
        &self,
        name: &str,
        limits: CredentialLimits,
    ) -> Result<Credential, StateError> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(is_hidden) {
            return Err(StateError::Name(name.to_owned()));
        }
        let created =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let credential = Credential::generate(name, created, limits)?;
        let path = self.credential_path(credential.id);
        let json = serde_json::to_vec_pretty(&CredentialFile::from(&credential))
            .map_err(|error| damaged(&path, error))?;
        private_file::write(&path, &json)?;
        Ok(credential)
    }

    /// The credential of this id, with its secret.
    ///
    /// # Errors
    /// [`StateError::Unknown`] if there is none or it was revoked.
    pub fn credential(&self, id: CredentialId) -> Result<Credential, StateError> {
        let path = self.credential_path(id);
        let bytes = private_file::read(&path).map_err(|error| {
            if error.is_not_found() { StateError::Unknown(id) } else { error.into() }
        })?;
        let credential = parse_credential(&path, &bytes)?;
        if credential.id != id {
            return Err(damaged(&path, "its id is not its file's name"));
        }
        Ok(credential)
    }

    /// All credentials, oldest first, without secrets.
    ///
    /// # Errors
    /// [`StateError`] if a file of the directory cannot be used.
    pub fn list(&self) -> Result<Vec<CredentialInfo>, StateError> {
        let directory = self.directory.join("credentials");
        let entries = fs::read_dir(&directory).map_err(|source| PrivateFileError::Io {
            action: "list",
            path: directory,
            source,
        })?;
        let mut found = BTreeMap::new();
        for id in entries.filter_map(Result::ok).filter_map(|entry| credential_id_of(&entry.path()))
        {
            match self.credential(id) {
                Ok(credential) => found.insert((credential.created, id), credential.info()),
                Err(StateError::Unknown(_)) => continue,
                Err(error) => return Err(error),
            };
        }
        Ok(found.into_values().collect())
    }

    /// Removes a credential: it opens no session from now on, and its live sessions are closed.
    ///
    /// # Errors
    /// [`StateError::Unknown`] if there is none of this id.
    pub fn revoke(&self, id: CredentialId) -> Result<(), StateError> {
        private_file::remove(&self.credential_path(id)).map_err(|error| {
            if error.is_not_found() { StateError::Unknown(id) } else { error.into() }
        })?;
        match private_file::remove(&self.usage_path(id)) {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Bytes that the credential has used, as last written down.
    ///
    /// # Errors
    /// [`StateError`] if the file cannot be used.
    pub fn usage(&self, id: CredentialId) -> Result<u64, StateError> {
        let path = self.usage_path(id);
        match private_file::read(&path) {
            Ok(bytes) => parse::<UsageFile>(&path, &bytes).map(|file| file.bytes),
            Err(error) if error.is_not_found() => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes down what the credential has used.
    ///
    /// # Errors
    /// [`StateError`] if the file cannot be written.
    pub fn set_usage(&self, id: CredentialId, bytes: u64) -> Result<(), StateError> {
        let path = self.usage_path(id);
        let file = UsageFile { version: FILE_VERSION, bytes };
        let json = serde_json::to_vec(&file).map_err(|error| damaged(&path, error))?;
        private_file::ensure_directory(&self.directory.join("usage"))?;
        Ok(private_file::write(&path, &json)?)
    }

    fn usage_path(&self, id: CredentialId) -> PathBuf {
        self.directory.join("usage").join(format!("{id}.json"))
    }

    /// Whether the credential's file is still there. Only a file that is known to be gone is not:
    /// who is told that its credential was revoked never comes back.
    pub(crate) fn knows(&self, id: CredentialId) -> bool {
        !matches!(self.credential_path(id).try_exists(), Ok(false))
    }

    fn credential_path(&self, id: CredentialId) -> PathBuf {
        self.directory.join("credentials").join(format!("{id}.json"))
    }
}

fn credential_id_of(path: &Path) -> Option<CredentialId> {
    if path.extension()? != "json" {
        return None;
    }
    path.file_stem()?.to_str()?.parse().ok()
}

fn damaged(path: &Path, reason: impl ToString) -> StateError {
    StateError::Damaged { path: path.to_owned(), reason: reason.to_string() }
}

pub(super) fn parse_credential(path: &Path, bytes: &[u8]) -> Result<Credential, StateError> {
    let file: CredentialFile = parse(path, bytes)?;
    file.into_credential().map_err(|reason| damaged(path, reason))
}

pub(super) fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, StateError> {
    // serde_json's messages may quote the text, which can hold a secret: say only where.
    let failed = |error: serde_json::Error| {
        damaged(path, format!("JSON error in line {}, column {}", error.line(), error.column()))
    };
    let Versioned { version } = serde_json::from_slice(bytes).map_err(failed)?;
    check_version(path, version)?;
    serde_json::from_slice(bytes).map_err(failed)
}

fn check_version(path: &Path, found: u32) -> Result<(), StateError> {
    match found {
        FILE_VERSION => Ok(()),
        0 => Err(damaged(path, "its version is 0")),
        _ => Err(StateError::Newer { path: path.to_owned(), found }),
    }
}

/// A later version whose directory is laid out differently says so in a file `version`.
fn check_directory_version(directory: &Path) -> Result<(), StateError> {
    let path = directory.join("version");
    let bytes = match private_file::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    check_version_file(&path, &bytes)
}

pub(super) fn check_version_file(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let text = String::from_utf8_lossy(bytes);
    let found = text.trim().parse().map_err(|_| damaged(path, "it is not a number"))?;
    check_version(path, found)
}

fn load_or_make_key(directory: &Path) -> Result<ServerKey, StateError> {
    if let Some(key) = load_key(directory)? {
        return Ok(key);
    }
    // Somebody else may be making it, who must not end with the one's key and the other's certificate.
    let _lock = private_file::lock_directory(directory)?;
    match load_key(directory)? {
        Some(key) => Ok(key),
        None => make_key(directory),
    }
}

/// The key, if the directory has one.
fn load_key(directory: &Path) -> Result<Option<ServerKey>, StateError> {
    let pkcs8 = match private_file::read(&directory.join(KEY)) {
        Ok(pkcs8) => pkcs8,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let certificate = private_file::read(&directory.join(CERTIFICATE))?;
    ServerKey::from_parts(pkcs8, certificate).map(Some).map_err(key_error(directory))
}

fn make_key(directory: &Path) -> Result<ServerKey, StateError> {
    let key = ServerKey::generate().map_err(key_error(directory))?;
    // The key is written last: a directory with a key always has its certificate.
    private_file::write(&directory.join(CERTIFICATE), key.certificate())?;
    private_file::write(&directory.join(KEY), key.pkcs8())?;
    Ok(key)
}

fn key_error(directory: &Path) -> impl FnOnce(ServerKeyError) -> StateError + '_ {
    move |source| StateError::Key { directory: directory.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn state() -> (tempfile::TempDir, ServerState) {
        let dir = tempfile::tempdir().unwrap();
        let state = ServerState::open(dir.path().join("state")).unwrap();
        (dir, state)
    }

    #[test]
    fn the_key_is_made_once() {
        let (dir, state) = state();
        let again = ServerState::open(dir.path().join("state")).unwrap();
        assert_eq!(state.fingerprint(), again.fingerprint());
    }

    #[test]
    fn one_server_at_a_time_has_a_directory() {
        let (dir, state) = state();
        let claim = state.claim().unwrap();
        let other = ServerState::open(dir.path().join("state")).unwrap();
        let error = other.claim().unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        let made = other.new_credential("beside", CredentialLimits::default()).unwrap();
        other.revoke(made.id).unwrap();
        drop(claim);
        other.claim().unwrap();
    }

    #[test]
    fn credentials_are_kept_listed_and_revoked() {
        let (_dir, state) = state();
        let limits = CredentialLimits { quota: Some(1 << 30), ..CredentialLimits::default() };
        let laptop = state.new_credential("laptop", limits).unwrap();
        assert_eq!(state.credential(laptop.id).unwrap(), laptop);
        assert_eq!(state.list().unwrap(), [laptop.info()]);
        state.revoke(laptop.id).unwrap();
        assert!(matches!(
            state.credential(laptop.id),
            Err(StateError::Unknown(id)) if id == laptop.id
        ));
        assert!(state.list().unwrap().is_empty());
    }

    #[test]
    fn a_readable_credential_is_refused() {
        let (_dir, state) = state();
        let made = state.new_credential("a", CredentialLimits::default()).unwrap();
        let path = state.credential_path(made.id);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            state.credential(made.id),
            Err(StateError::File(PrivateFileError::Exposed { .. }))
        ));
    }

    #[test]
    fn damage_is_reported_without_the_secret() {
        let (_dir, state) = state();
        let made = state.new_credential("a", CredentialLimits::default()).unwrap();
        let path = state.credential_path(made.id);
        private_file::write(&path, br#"{"version":1,"secret":"TOPSECRET""#).unwrap();
        let message = state.credential(made.id).unwrap_err().to_string();
        assert!(message.contains("JSON error"), "{message}");
        assert!(!message.contains("TOPSECRET"), "{message}");
    }

    #[test]
    fn a_key_that_several_make_at_once_is_one_key() {
        for _ in 0..8 {
            let dir = tempfile::tempdir().unwrap();
            let directory = dir.path().join("state");
            let (ready, go) =
                (std::sync::Barrier::new(6), || ServerState::open(&directory).unwrap());
            let found = std::thread::scope(|scope| {
                let one = || {
                    ready.wait();
                    go().fingerprint()
                };
                let threads = [(); 6].map(|()| scope.spawn(one));
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(found, [go().fingerprint(); 6]);
        }
    }

    #[test]
    fn a_credential_is_gone_only_if_its_file_is_known_to_be_gone() {
        let (_dir, state) = state();
        let made = state.new_credential("a", CredentialLimits::default()).unwrap();
        assert!(state.knows(made.id));
        let (place, aside) = (state.directory.join("credentials"), state.directory.join("aside"));
        fs::rename(&place, &aside).unwrap();
        // Even root is told that this is no directory.
        fs::write(&place, b"").unwrap();
        assert!(state.knows(made.id), "nobody can say whether it is there");
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
        state.revoke(made.id).unwrap();
        assert!(!state.knows(made.id));
    }
}
