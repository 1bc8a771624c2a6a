//! `sumrate credential`.

use fbdt::{
    Credential, CredentialId, CredentialInfo, CredentialLimits, FileAccess, Link, ServerAddress,
    ServerState, StateError,
};
use serde::{Deserialize, Serialize};

use super::{CommandError, SetupError, setup};
use crate::args::{CredentialAction, CredentialArgs};
use crate::output;
use crate::private_text::PrivateText;
use crate::status::bytes;

/// Name and version of the JSON form.
pub const CREDENTIAL_SCHEMA: &str = "sumrate.credential.v1";

/// The answer of every action; what does not concern the action is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialReport {
    /// [`CREDENTIAL_SCHEMA`].
    pub schema: String,
    /// All credentials, for `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Vec<CredentialSummary>>,
    /// The new one, for `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<CredentialSummary>,
    /// Its join link, with the secret, for `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PrivateText>,
    /// Id of the revoked one, for `revoke`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

/// A credential without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialSummary {
    /// Id, 16 hexadecimal digits.
    pub id: String,
    /// The operator's name for it.
    pub name: String,
    /// When it was made, in seconds since 1970-01-01 UTC.
    pub created: u64,
    /// Greatest rate, bytes per second; absent: no limit, also below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Bytes that it may have relayed in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Of those, spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// What it may do with the files that the server offers: `ro` or `rw`; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileAccess>,
    /// The only destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<Vec<String>>,
}

fn summary(state: &ServerState, info: &CredentialInfo) -> Result<CredentialSummary, StateError> {
    let CredentialLimits { rate, quota, destinations, files } = info.limits.clone();
    Ok(CredentialSummary {
        id: info.id.to_string(),
        name: info.name.clone(),
        created: info.created,
        rate,
        quota,
        used: quota.map(|_| state.usage(info.id)).transpose()?,
        files,
        destinations,
    })
}

/// Lists, adds or revokes.
///
/// # Errors
/// [`CommandError`]
pub fn credential(args: &CredentialArgs) -> Result<(), CommandError> {
    let state = ServerState::open(setup::state_directory(args.state.as_deref())?)?;
    let mut report =
        CredentialReport { schema: CREDENTIAL_SCHEMA.to_owned(), ..CredentialReport::default() };
    match &args.action {
        CredentialAction::List => {
            let credentials = state.list()?;
            let summaries = credentials.iter().map(|info| summary(&state, info));
            report.credentials = Some(summaries.collect::<Result<_, _>>()?);
        }
        CredentialAction::Add {
            advertise,
            name,
            rate,
            quota,
            destination,
            files,
            insecure_plaintext,
        } => {
            let destinations = destination.iter().map(ToString::to_string).collect();
            let limits = CredentialLimits {
                rate: *rate,
                quota: *quota,
                destinations: Some(destinations).filter(|rules: &Vec<_>| !rules.is_empty()),
                files: *files,
            };
            let credential = state.new_credential(name, limits)?;
            report.added = Some(summary(&state, &credential.info())?);
            report.link = Some(link(&state, advertise.clone(), &credential, *insecure_plaintext));
        }
        CredentialAction::Revoke { id } => {
            let id: CredentialId = id.parse().map_err(|_| SetupError::CredentialId(id.clone()))?;
            state.revoke(id)?;
            report.revoked = Some(id.to_string());
        }
    }
    if args.json {
        output::pretty_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(())
}

fn link(
    state: &ServerState,
    servers: Vec<ServerAddress>,
    credential: &Credential,
    insecure: bool,
) -> PrivateText {
    let fingerprint = (!insecure).then(|| state.fingerprint());
    Link::new(servers, fingerprint, credential).to_string_with_secret().into()
}

fn line(credential: &CredentialSummary) -> String {
    let CredentialSummary { id, name, created, rate, quota, used, files, destinations } =
        credential;
    let created = i64::try_from(*created).ok();
    let day = created.and_then(|at| time::OffsetDateTime::from_unix_timestamp(at).ok());
    let day = day.map_or_else(|| "at an unknown time".to_owned(), |at| at.date().to_string());
    let mut line = format!("{id}  created {day}  {name}");
    if let Some(rate) = rate {
        line += &format!("  {}/s", bytes(*rate));
    }
    if let Some(quota) = quota {
        line += &format!("  {} of {} used", bytes(used.unwrap_or_default()), bytes(*quota));
    }
    if let Some(files) = files {
        line += &format!("  files {}", files.name());
    }
    if let Some(destinations) = destinations {
        line += &format!("  only {}", destinations.join(", "));
    }
    line
}

fn print(report: &CredentialReport) -> std::io::Result<()> {
    if let Some(credentials) = &report.credentials {
        for credential in credentials {
            output::line(&line(credential))?;
        }
    }
    if let Some(link) = &report.link {
        output::line(link.expose())?;
    }
    if let Some(id) = &report.revoked {
        output::line(&format!("revoked {id}: its sessions are closed, a new link is needed"))?;
    }
    Ok(())
}
