//! `import`.

use std::io::Read as _;
use std::process::ExitCode;

use super::{Failure, ImportArgs, ImportFormat, print};
use crate::time::to_millis;
use crate::trace::{mahimahi, native};

pub(super) fn import(arguments: &ImportArgs) -> Result<ExitCode, Failure> {
    let name = arguments.file.display();
    let fail = |error: &dyn std::fmt::Display| Failure::usage(format!("{name}: {error}"));
    let mut text = String::new();
    if arguments.file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(|error| fail(&error))?;
    } else {
        text = std::fs::read_to_string(&arguments.file).map_err(|error| fail(&error))?;
    }
    let trace = match arguments.format {
        ImportFormat::Mahimahi => mahimahi::parse(&text),
    }
    .map_err(|error| fail(&error))?;
    if arguments.json {
        let summary = serde_json::json!({
            "duration_ms": to_millis(trace.duration()),
            "mean_rate_mbps": trace.mean_rate() as f64 / 1e6,
            "steps": trace.steps().len(),
        });
        print(&summary.to_string());
    } else {
        print(native::write(&trace, &format!("imported from mahimahi trace {name}")).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
