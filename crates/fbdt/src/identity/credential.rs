//! Client credentials: who may open a session with a server, and within which limits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::secret::{RandomError, Secret, fill_random};
use super::state::FILE_VERSION;

/// Public name of a credential: 8 random bytes, printed as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialId(pub [u8; 8]);

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialId({self})")
    }
}

/// The text is not 16 hexadecimal digits.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{0}` is not a credential id; write its 16 hexadecimal digits as listed")]
pub struct ParseCredentialIdError(String);

impl FromStr for CredentialId {
    type Err = ParseCredentialIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseCredentialIdError(text.to_owned());
        if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let number = u64::from_str_radix(text, 16).map_err(|_| wrong())?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// What a credential may use. An absent field is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialLimits {
    /// Greatest rate over all sessions of the credential, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Bytes that may be carried in total, both directions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Destinations that the exit may connect to, as the exit's policy writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<Vec<String>>,
    /// What it may do with the files that a server offers. Absent: nothing, unlike the limits above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileAccess>,
}

/// What a credential may do with the files that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileAccess {
    /// Read them.
    #[serde(rename = "ro")]
    ReadOnly,
    /// Read and write them.
    #[serde(rename = "rw")]
    ReadWrite,
}

impl FileAccess {
    /// `ro` or `rw`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        }
    }
}

/// The text is neither `ro` nor `rw`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{0}` is no access to files; write ro or rw")]
pub struct ParseFileAccessError(String);

impl FromStr for FileAccess {
    type Err = ParseFileAccessError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "ro" => Ok(Self::ReadOnly),
            "rw" => Ok(Self::ReadWrite),
            other => Err(ParseFileAccessError(other.to_owned())),
        }
    }
}

/// A client credential with its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Public name.
    pub id: CredentialId,
    /// Key of the client's proofs.
    pub secret: Secret,
    /// What the operator calls it.
    pub name: String,
    /// When it was made, seconds since 1970-01-01 UTC.
    pub created: u64,
    /// What it may use.
    pub limits: CredentialLimits,
}

impl Credential {
    pub(crate) fn generate(
        name: &str,
        created: u64,
        limits: CredentialLimits,
    ) -> Result<Self, RandomError> {
        let mut id = [0; 8];
        fill_random(&mut id)?;
        Ok(Self {
            id: CredentialId(id),
            secret: Secret::generate()?,
            name: name.to_owned(),
            created,
            limits,
        })
    }

    /// The credential without its secret.
    pub fn info(&self) -> CredentialInfo {
        CredentialInfo {
            id: self.id,
            name: self.name.clone(),
            created: self.created,
            limits: self.limits.clone(),
        }
    }
}

/// A credential without its secret: for lists, logs and policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialInfo {
    /// Public name.
    pub id: CredentialId,
    /// What the operator calls it.
    pub name: String,
    /// When it was made, seconds since 1970-01-01 UTC.
    pub created: u64,
    /// What it may use.
    pub limits: CredentialLimits,
}

/// The JSON form of a credential file, version [`FILE_VERSION`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialFile {
    version: u32,
    id: String,
    secret: String,
    name: String,
    created: u64,
    #[serde(default)]
    limits: CredentialLimits,
}

impl From<&Credential> for CredentialFile {
    fn from(credential: &Credential) -> Self {
        Self {
            version: FILE_VERSION,
            id: credential.id.to_string(),
            secret: credential.secret.to_base64(),
            name: credential.name.clone(),
            created: credential.created,
            limits: credential.limits.clone(),
        }
    }
}

impl CredentialFile {
    /// The credential, or which field of the file is wrong.
    pub(crate) fn into_credential(self) -> Result<Credential, &'static str> {
        Ok(Credential {
            id: self.id.parse().map_err(|_| "`id` is not 16 hexadecimal digits")?,
            secret: Secret::from_base64(&self.secret)
                .ok_or("`secret` is not 32 bytes of base64url")?,
            name: self.name,
            created: self.created,
            limits: self.limits,
        })
    }
}
