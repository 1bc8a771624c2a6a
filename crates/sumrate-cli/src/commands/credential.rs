//! `sumrate credential`.

use fbdt::{Credential, CredentialId, CredentialInfo, Link, ServerAddress, ServerState};
use serde::{Deserialize, Serialize};

use super::{CommandError, SetupError, setup};
use crate::args::{CredentialAction, CredentialArgs};
use crate::output;

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
    pub link: Option<String>,
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
}

impl From<&CredentialInfo> for CredentialSummary {
    fn from(info: &CredentialInfo) -> Self {
        Self { id: info.id.to_string(), name: info.name.clone(), created: info.created }
    }
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
            report.credentials = Some(state.list()?.iter().map(Into::into).collect());
        }
        CredentialAction::Add { advertise, name, insecure_plaintext } => {
            let credential = state.new_credential(name, Default::default())?;
            report.added = Some((&credential.info()).into());
            let servers = advertise.iter().copied().map(ServerAddress::from).collect();
            report.link = Some(link(&state, servers, &credential, *insecure_plaintext));
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
) -> String {
    let fingerprint = (!insecure).then(|| state.fingerprint());
    Link::new(servers, fingerprint, credential).to_string_with_secret()
}

fn print(report: &CredentialReport) -> std::io::Result<()> {
    if let Some(credentials) = &report.credentials {
        for credential in credentials {
            let CredentialSummary { id, name, created } = credential;
            output::line(&format!("{id}  created {created}  {name}"))?;
        }
    }
    if let Some(link) = &report.link {
        output::line(link)?;
    }
    if let Some(id) = &report.revoked {
        output::line(&format!("revoked {id}: its sessions are closed, a new link is needed"))?;
    }
    Ok(())
}
