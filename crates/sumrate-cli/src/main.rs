//! The `sumrate` command.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    sumrate_cli::run(std::env::args_os(), allocator::before_sleep)
}
