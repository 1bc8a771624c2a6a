//! `fbdt-soak`: many seeds, one seed again, and what it takes to fail.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand};
use fbdt_sim::soak::{Outcome, Plan, Report, Soak, run_plan, shrink};

/// Runs the protocol in virtual time under mixes of faults, one per seed.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: fbdt-soak run --seeds 5000\n         fbdt-soak replay 42 --log"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run many seeds; exit status 1 if any breaks an invariant.
    Run(RunArguments),
    /// Run one seed or one kept plan again.
    Replay(ReplayArguments),
}

#[derive(Args)]
#[command(after_help = "Example: fbdt-soak run --seeds 100000 --json out/soak/report.json")]
struct RunArguments {
    /// How many seeds.
    #[arg(long, default_value_t = 5000)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Begin no more seeds after so many seconds.
    #[arg(long, value_name = "S")]
    time: Option<u64>,
    /// Threads; one per core if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Write the report as JSON to this file (`-`: standard output).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the shrunk plan of each failure (20 at most) into this folder.
    #[arg(long, value_name = "FOLDER")]
    failures: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Example: fbdt-soak replay 42 --shrink > plan.json\n         fbdt-soak replay --plan plan.json --log"
)]
struct ReplayArguments {
    /// The seed.
    #[arg(required_unless_present = "plan")]
    seed: Option<u64>,
    /// A kept plan (JSON) instead of a seed's.
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    plan: Option<PathBuf>,
    /// Print everything that happens, a line each.
    #[arg(long)]
    log: bool,
    /// Print the smallest plan that fails in the same way, as JSON.
    #[arg(long, conflicts_with = "log")]
    shrink: bool,
    /// Print what came of it as JSON.
    #[arg(long, conflicts_with_all = ["log", "shrink"])]
    json: bool,
}

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Replay(arguments) => replay(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("fbdt-soak: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &RunArguments) -> Result<bool, Failed> {
    let threads = arguments
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let soak = Soak { first: arguments.first, seeds: arguments.seeds, threads };
    let (started, terminal) = (Instant::now(), std::io::stderr().is_terminal());
    // A panic is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let report = soak.run(|done, failed| {
        if terminal && done % 256 == 0 {
            eprint!("\r{done} of {} seeds, {failed} failed", arguments.seeds);
        }
        arguments.time.is_none_or(|limit| started.elapsed().as_secs() < limit)
    })?;
    let _ = std::panic::take_hook();
    if terminal {
        eprintln!();
    }
    let wall = started.elapsed().as_secs_f64();
    let mut value = serde_json::to_value(&report)?;
    value["first"] = arguments.first.into();
    value["threads"] = threads.into();
    value["wall_s"] = ((wall * 10.0).round() / 10.0).into();
    match arguments.json.as_deref() {
        Some(path) if path.as_os_str() == "-" => println!("{value:#}"),
        Some(path) => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path, format!("{value:#}\n"))?;
            summary(&report, wall);
        }
        None => summary(&report, wall),
    }
    if let Some(folder) = &arguments.failures {
        keep_failures(&report, folder)?;
    }
    Ok(report.failed == 0)
}

fn summary(report: &Report, wall: f64) {
    println!(
        "{} seeds in {wall:.1} s ({:.0}/s): {} sessions, {} bytes read and compared, {:.1} h of \
         virtual time, {} failed",
        report.seeds,
        report.seeds as f64 / wall,
        report.sessions,
        report.bytes,
        report.virtual_ms as f64 / 3.6e6,
        report.failed
    );
    for (rule, words) in report.unseen() {
        println!("{rule}: no seed saw that {words}");
    }
    for name in report.idle_schedulers() {
        println!("{name}: no seed saw it spread bytes over several paths");
    }
    for failure in &report.failures {
        println!("seed {}: {}", failure.seed, failure.violation);
    }
    if let Some(failure) = report.failures.first() {
        println!("again, with all that happens: fbdt-soak replay {} --log", failure.seed);
    }
}

fn keep_failures(report: &Report, folder: &std::path::Path) -> Result<(), Failed> {
    for failure in &report.failures {
        std::fs::create_dir_all(folder)?;
        let plan = shrink(&Plan::of_seed(failure.seed));
        let path = folder.join(format!("seed-{}.json", failure.seed));
        std::fs::write(&path, serde_json::to_string_pretty(&plan)? + "\n")?;
        println!(
            "seed {} shrunk to {} operations: {}",
            failure.seed,
            plan.operations.len(),
            path.display()
        );
    }
    Ok(())
}

fn replay(arguments: &ReplayArguments) -> Result<bool, Failed> {
    let plan = match (&arguments.plan, arguments.seed) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?
        }
        (None, Some(seed)) => Plan::of_seed(seed),
        (None, None) => return Err("give a seed or --plan".into()),
    };
    if arguments.shrink {
        std::panic::set_hook(Box::new(|_| {}));
        let smallest = shrink(&plan);
        println!("{}", serde_json::to_string_pretty(&smallest)?);
        let violation = run_plan(&smallest, false)?.violation;
        match &violation {
            Some(violation) => eprintln!("broken: {violation}"),
            None => {
                eprintln!("no invariant broken: this plan is whole, there is nothing to shrink")
            }
        }
        return Ok(violation.is_none());
    }
    let outcome = run_plan(&plan, arguments.log)?;
    let mut out = std::io::stdout().lock();
    if arguments.log {
        writeln!(out, "{}", serde_json::to_string(&plan)?)?;
        out.write_all(outcome.log.as_bytes())?;
    }
    if arguments.json {
        writeln!(out, "{:#}", as_json(&outcome))?;
    } else {
        match &outcome.violation {
            Some(violation) => writeln!(out, "broken: {violation}")?,
            None => writeln!(out, "no invariant broken, {} bytes read", outcome.delivered)?,
        }
    }
    Ok(outcome.violation.is_none())
}

fn as_json(outcome: &Outcome) -> serde_json::Value {
    serde_json::json!({
        "violation": outcome.violation.as_ref().map(ToString::to_string),
        "faults": outcome.faults,
        "delivered": outcome.delivered,
        "elapsed_ms": outcome.elapsed.as_millis() as u64,
        "recovery_ms": outcome.recovery.as_millis() as u64,
        "sessions": outcome.sessions,
        "schedulers_that_placed": outcome.placed,
        "rules": outcome.coverage.marks().map(|m| (m.rule(), m.words())).collect::<Vec<_>>(),
    })
}
