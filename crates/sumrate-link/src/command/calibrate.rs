//! `calibrate`.

use std::process::ExitCode;
use std::time::Duration;

use super::{CalibrateArgs, Failure, MEASURED_FAILURE, PRIVILEGE, USAGE, print};
use crate::calibrate::verdict::Measurement;
use crate::calibrate::{CalibrateError, Calibration, calibrate};
use crate::config::Config;

pub(super) fn run(arguments: &CalibrateArgs) -> Result<ExitCode, Failure> {
    let config = Config::load(&arguments.config).map_err(Failure::usage)?;
    let duration = Duration::try_from_secs_f64(arguments.duration)
        .ok()
        .filter(|duration| (0.1..=600.0).contains(&duration.as_secs_f64()))
        .ok_or_else(|| {
            Failure::usage(format!(
                "--duration must be 0.1 to 600 seconds, not {}",
                arguments.duration
            ))
        })?;
    let calibration = calibrate(&config, duration).map_err(failure)?;
    if arguments.json {
        print(&serde_json::to_string_pretty(&calibration).map_err(Failure::usage)?);
    } else {
        print(&table(&calibration));
    }
    if calibration.passed {
        return Ok(ExitCode::SUCCESS);
    }
    let lateness = calibration.emulator.lateness;
    let hint = if lateness.late_over_2ms > 0 {
        format!(
            "; the emulator was up to {:.1} ms late ({} events over 2 ms): stop what else runs on this machine",
            lateness.worst_ms, lateness.late_over_2ms
        )
    } else {
        String::new()
    };
    Err(Failure::new(MEASURED_FAILURE, format!("the links are not what was set{hint}")))
}

fn failure(error: CalibrateError) -> Failure {
    match error {
        CalibrateError::Setup(setup) if setup.is_privilege() => Failure::new(PRIVILEGE, setup),
        other => Failure::new(USAGE, other),
    }
}

fn table(calibration: &Calibration) -> String {
    let mut lines = vec![row("link", "direction", "quantity", "set", "measured", "tolerance", "")];
    for link in &calibration.links {
        for Measurement { quantity, direction, expected, measured, tolerance, ok } in
            &link.measurements
        {
            let text = |value: &Option<f64>| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
            };
            let verdict = if *ok { "ok" } else { "OFF" };
            lines.push(row(
                &link.name,
                direction,
                quantity,
                &text(expected),
                &format!("{measured:.4}"),
                &text(tolerance),
                verdict,
            ));
        }
    }
    lines.join("\n")
}

fn row(
    link: &str,
    direction: &str,
    quantity: &str,
    set: &str,
    measured: &str,
    tolerance: &str,
    verdict: &str,
) -> String {
    format!(
        "{link:<12} {direction:<9} {quantity:<14} {set:>11} {measured:>11} {tolerance:>10} {verdict}"
    )
}
