//! Flags of `sumrate credential`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fbdt::{FileAccess, ServerAddress};

use super::listen::server_address;
use crate::exit::AllowRule;
use crate::units::bytes;

const EXAMPLE: &str = "\
Examples:
  sumrate credential list
  sumrate credential add --advertise 203.0.113.9:7443
  sumrate credential add --advertise 203.0.113.9:7443 --quota 50G --rate 10M --destination 192.0.2.0/24
  sumrate credential add --advertise 203.0.113.9:7443 --name backups --files rw
  sumrate credential revoke 3f9c01d2a77b4e10";

/// Arguments of `sumrate credential`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct CredentialArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: CredentialAction,
    /// Directory of the server's key and credentials [default: $XDG_STATE_HOME/sumrate]
    #[arg(long, value_name = "DIR", global = true)]
    pub state: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with credentials.
#[derive(Debug, Subcommand)]
pub enum CredentialAction {
    /// List the credentials by id; secrets are not shown
    #[command(after_help = "Example:\n  sumrate credential list --state /var/lib/sumrate --json")]
    List,
    /// Make a new credential and print its join link
    #[command(after_help = "Example:\n  sumrate credential add --advertise 203.0.113.9:7443")]
    Add {
        /// Address or name that the link has; repeat it for several
        #[arg(long, value_name = "HOST:PORT", value_parser = server_address, required = true)]
        advertise: Vec<ServerAddress>,
        /// Name of the credential, for your own use
        #[arg(long, value_name = "NAME", default_value = "client")]
        name: String,
        /// Maximum rate of all its sessions, in bytes per second (K, M, G, T mean powers of 1000; Ki,
        /// Mi, Gi, Ti of 1024)
        #[arg(long, value_name = "BYTES/S", value_parser = bytes, allow_hyphen_values = true)]
        rate: Option<u64>,
        /// Maximum data in total, both directions together (K, M, G, T mean powers of 1000; Ki, Mi, Gi,
        /// Ti of 1024)
        #[arg(long, value_name = "BYTES", value_parser = bytes, allow_hyphen_values = true)]
        quota: Option<u64>,
        /// Allow only this network, address or ADDRESS:PORT as destination; repeat it for several
        #[arg(long, value_name = "NET")]
        destination: Vec<AllowRule>,
        /// Allow copies from the directory of `serve --files` (ro), or in both directions (rw)
        #[arg(long, value_name = "ro|rw")]
        files: Option<FileAccess>,
        /// The link is for a server with --insecure-plaintext
        #[arg(long)]
        insecure_plaintext: bool,
    },
    /// Stop accepting a credential
    #[command(after_help = "Example:\n  sumrate credential revoke 3f9c01d2a77b4e10")]
    Revoke {
        /// Id of the credential, as `list` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
}
