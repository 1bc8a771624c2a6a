//! The `sumrate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    sumrate_cli::run(std::env::args_os())
}
