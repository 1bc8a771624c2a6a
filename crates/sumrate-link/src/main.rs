//! The `sumrate-link` command.

use std::process::ExitCode;

use clap::Parser;
use sumrate_link::LinkCommand;

/// Emulated links between network namespaces.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: LinkCommand,
}

fn main() -> ExitCode {
    sumrate_link::run(Arguments::parse().command)
}
