//! Flags of `sumrate doctor`.

use clap::Args;

use crate::private_text::PrivateText;

const EXAMPLE: &str = "\
Examples:
  sumrate doctor                 interfaces, routes, kernel and clock of this machine
  sumrate doctor @link.txt       routes to that link's servers, names, keys and portals of each network
  sumrate doctor --json

Nothing is changed. Only with a link is anything sent: it asks name servers and connects to the link's
servers over each network. Exit code 1: something does not work.";

/// Arguments of `sumrate doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct DoctorArgs {
    /// A join link, or @FILE that holds it (@- is stdin): examine the ways to its servers
    #[arg(value_name = "LINK|@FILE")]
    pub link: Option<PrivateText>,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}
