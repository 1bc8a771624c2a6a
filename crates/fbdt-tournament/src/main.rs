//! `fbdt-tournament`: runs the matrix and writes the table.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use fbdt_proto::SchedulerKind;
use fbdt_tournament::kept::{behaviour, fingerprint};
use fbdt_tournament::matrix::{GROUPS, conditions};
use fbdt_tournament::measure::Rules;
use fbdt_tournament::table::{Plan, Row, play};
use fbdt_tournament::traces::{TraceError, pairs};

const EXAMPLE: &str = "\
Examples:
  fbdt-tournament --output tournament.json
  fbdt-tournament --group loss --scheduler minrtt --scheduler just-in-time --output loss.json
  fbdt-tournament --group short --condition 0 --seeds 40 --output equal-links.json
  fbdt-tournament --group trace --traces traces/ --output traces.json

Everything is simulated: the same command gives the same table. python -m sumrate.report.tournament
draws it.";

/// Which rules schedulers run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RulesArg {
    /// Those that each is published with
    Published,
    /// The product's early copies and commit limit for all of them
    Product,
    /// The product's without early copies
    Uncopied,
    /// The product's without the commit limit
    Unlimited,
    /// Neither of these for any of them, FBDT's own included
    Bare,
}

/// Every scheduler over a matrix of conditions, in virtual time.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLE)]
struct Arguments {
    /// Only this group of conditions: rate-rtt, loss, buffer, outage, short, trace (can be repeated)
    #[arg(long, value_name = "GROUP", value_parser = GROUPS)]
    group: Vec<String>,
    /// Only this scheduler (can be repeated)
    #[arg(long, value_name = "NAME", value_parser = SchedulerKind::ALL.map(SchedulerKind::name))]
    scheduler: Vec<String>,
    /// Rules of redundancy and commit limit
    #[arg(long, value_enum, default_value = "published")]
    rules: RulesArg,
    /// Directory with pairs of traces, NAME.wigig.trace and NAME.wifi.trace, for the group trace
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Rates of traces are multiplied by this
    #[arg(long, value_name = "FACTOR", default_value = "0.025")]
    trace_scale: f64,
    /// Each condition is run with this many seeds [default: 5 with losses, else 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Only every N-th condition of each group
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    every: u16,
    /// Only the condition with this number in the table of the same groups (can be repeated)
    #[arg(long, value_name = "NUMBER")]
    condition: Vec<usize>,
    /// The time that counts is this many times as long, except of short transfers: what is left of a
    /// run's beginning then
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    longer: u32,
    /// Threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write the table as JSON here; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Traces(#[from] TraceError),
    #[error("--group trace needs --traces DIR; python -m sumrate.traces writes traces")]
    NoTraces,
    #[error("--condition {number}: the conditions have the numbers 0 to {last}")]
    NoCondition { number: usize, last: usize },
    #[error("--trace-scale {0} is out of range; give a number above 0 and up to 1")]
    Scale(f64),
    #[error("{path}: {error}")]
    Output { path: PathBuf, error: io::Error },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match table(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("fbdt-tournament: {failure}");
            ExitCode::from(if matches!(failure, Failure::Output { .. }) { 1 } else { 2 })
        }
    }
}

fn table(arguments: &Arguments) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    if arguments.traces.is_none() && arguments.group.is_empty() {
        eprintln!("without the group trace, which needs --traces DIR");
    }
    let failed = |error| Failure::Output { path: arguments.output.clone(), error };
    // Before the long run: whether there is where to write. A table that is there already stays until
    // this one is whole.
    let partial = (arguments.output.as_os_str() != "-").then(|| {
        let mut name = arguments.output.clone().into_os_string();
        name.push(".part");
        PathBuf::from(name)
    });
    let mut output: Box<dyn Write> = match &partial {
        Some(path) => Box::new(std::fs::File::create(path).map_err(failed)?),
        None => Box::new(io::stdout()),
    };
    let cells = plan.conditions.iter().map(|c| c.seeds).sum::<u64>() * plan.schedulers.len() as u64;
    eprintln!("{} conditions, {cells} cells", plan.conditions.len());
    let rows = play(&plan, |done, all| {
        if done % 20 == 0 || done == all {
            let done = done * plan.schedulers.len();
            eprintln!("{done} of {cells} cells done");
        }
    });
    let text = encode(&rows).map_err(failed)?;
    output.write_all(text.as_bytes()).map_err(failed)?;
    partial.map_or(Ok(()), |path| std::fs::rename(path, &arguments.output)).map_err(failed)
}

/// One JSON object with a row a line.
fn encode(rows: &[Row]) -> io::Result<String> {
    let rows: Vec<String> = rows.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let command = serde_json::to_string(&command)?;
    Ok(format!(
        "{{\"schema\":\"tournament.v1\",\"arguments\":{command},\"matrix\":\"{}\",\"behaviour\":\"{}\",\"rows\":[\n{}\n]}}\n",
        fingerprint(),
        behaviour(),
        rows.join(",\n")
    ))
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    if !(arguments.trace_scale > 0.0 && arguments.trace_scale <= 1.0) {
        return Err(Failure::Scale(arguments.trace_scale));
    }
    let traces = match &arguments.traces {
        Some(directory) => pairs(directory, arguments.trace_scale)?,
        None if arguments.group.iter().any(|group| group == "trace") => {
            return Err(Failure::NoTraces);
        }
        None => Vec::new(),
    };
    let wanted = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let groups = GROUPS.into_iter().filter(|group| wanted(&arguments.group, group));
    let mut conditions: Vec<_> = groups
        .flat_map(|group| {
            conditions(group, &traces).into_iter().step_by(usize::from(arguments.every))
        })
        .collect();
    if let Some(&number) = arguments.condition.iter().find(|number| **number >= conditions.len()) {
        return Err(Failure::NoCondition { number, last: conditions.len().saturating_sub(1) });
    }
    if !arguments.condition.is_empty() {
        let mut number = 0..;
        conditions.retain(|_| number.next().is_some_and(|n| arguments.condition.contains(&n)));
    }
    if let Some(seeds) = arguments.seeds {
        conditions.iter_mut().for_each(|condition| condition.seeds = seeds);
    }
    conditions.iter_mut().for_each(|condition| condition.time *= arguments.longer);
    let schedulers = SchedulerKind::ALL.into_iter();
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Plan {
        conditions,
        schedulers: schedulers.filter(|k| wanted(&arguments.scheduler, k.name())).collect(),
        rules: match arguments.rules {
            RulesArg::Published => Rules::Published,
            RulesArg::Product => Rules::Product,
            RulesArg::Uncopied => Rules::Uncopied,
            RulesArg::Unlimited => Rules::Unlimited,
            RulesArg::Bare => Rules::Bare,
        },
        threads: arguments.threads.map_or_else(available, usize::from),
    })
}
