//! Flags of `sumrate man` and `sumrate completions`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const MAN_EXAMPLE: &str = "\
Examples:
  sumrate man | man -l -
  sumrate man --dir /usr/local/share/man/man1       a page for every command";

const COMPLETIONS_EXAMPLE: &str = "\
Examples:
  sumrate completions bash > ~/.local/share/bash-completion/completions/sumrate
  sumrate completions zsh > /usr/local/share/zsh/site-functions/_sumrate
  sumrate completions fish > ~/.config/fish/completions/sumrate.fish";

/// Arguments of `sumrate man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLE)]
pub struct ManArgs {
    /// Write a page for every command into this directory, instead of the first to standard output
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print what was written as JSON
    #[arg(long, requires = "dir")]
    pub json: bool,
}

/// Arguments of `sumrate completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLE)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}
