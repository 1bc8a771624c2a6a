//! The `sumrate` command.

use std::process::ExitCode;

/// Buffers of 64 KiB come and go by the thousand in a second; the system's allocator gives their
/// pages back each time and faults them in again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sumrate_cli::run(std::env::args_os())
}
