//! `fbdt-tournament`: runs the matrix and writes the table.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use fbdt_proto::SchedulerKind;
use fbdt_sim::TcpGrowth;
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
  fbdt-tournament --every 3 --tcp cubic --output cubic.json
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

/// How the congestion window of each path grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TcpArg {
    /// 8 segments in an RTT, 0.7 at a loss: fills any link soon
    Brisk,
    /// A segment in an RTT, half at a loss (RFC 5681)
    Reno,
    /// RFC 9438
    Cubic,
}

impl TcpArg {
    const fn growth(self) -> TcpGrowth {
        match self {
            Self::Brisk => TcpGrowth::Brisk,
            Self::Reno => TcpGrowth::Reno,
            Self::Cubic => TcpGrowth::Cubic,
        }
    }
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
    /// Congestion control of every path
    #[arg(long, value_enum, default_value = "brisk")]
    tcp: TcpArg,
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
    let text = encode(&rows, arguments.tcp).map_err(failed)?;
    output.write_all(text.as_bytes()).map_err(failed)?;
    partial.map_or(Ok(()), |path| std::fs::rename(path, &arguments.output)).map_err(failed)
}

/// One JSON object with a row a line.
fn encode(rows: &[Row], tcp: TcpArg) -> io::Result<String> {
    let rows: Vec<String> = rows.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let command = serde_json::to_string(&command)?;
    Ok(format!(
        "{{\"schema\":\"tournament.v1\",\"arguments\":{command},\"tcp\":\"{}\",\"matrix\":\"{}\",\"behaviour\":\"{}\",\"rows\":[\n{}\n]}}\n",
        tcp.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default(),
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
    for condition in &mut conditions {
        condition.time *= arguments.longer;
        condition.tcp = arguments.tcp.growth();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(words: &[&str]) -> Result<Plan, Failure> {
        plan(&Arguments::parse_from([&["fbdt-tournament"][..], words].concat()))
    }

    fn described(plan: &Plan) -> Vec<String> {
        plan.conditions.iter().map(|condition| format!("{:?}", condition.parameters)).collect()
    }

    #[test]
    fn a_condition_has_the_number_that_the_table_of_the_same_flags_gives_it() {
        for flags in [&["--group", "loss"][..], &["--every", "3"]] {
            let all = described(&planned(flags).unwrap());
            let some = planned(&[flags, &["--condition", "20", "--condition", "4"]].concat());
            assert_eq!(described(&some.unwrap()), [all[4].clone(), all[20].clone()], "{flags:?}");
        }
        let beyond = planned(&["--group", "short", "--condition", "36"]);
        assert!(matches!(beyond, Err(Failure::NoCondition { number: 36, last: 35 })));
    }

    #[test]
    fn every_nth_is_of_each_group() {
        let groups = |plan: &Plan| {
            GROUPS
                .map(|group| plan.conditions.iter().filter(|c| c.parameters.group == group).count())
        };
        let (all, third) = (planned(&[]).unwrap(), planned(&["--every", "3"]).unwrap());
        assert_eq!(groups(&all).map(|n| n.div_ceil(3)), groups(&third));
    }

    #[test]
    fn what_is_asked_of_a_condition_is_done_to_all() {
        let plain = planned(&["--group", "outage"]).unwrap();
        let asked = [
            "--group",
            "outage",
            "--seeds",
            "7",
            "--longer",
            "4",
            "--tcp",
            "cubic",
            "--scheduler",
            "ecf",
        ];
        let asked = planned(&asked).unwrap();
        assert_eq!(asked.schedulers, [SchedulerKind::Ecf]);
        assert_eq!(plain.schedulers, SchedulerKind::ALL);
        for (plain, asked) in plain.conditions.iter().zip(&asked.conditions) {
            assert_eq!((asked.seeds, asked.time), (7, plain.time * 4));
            assert_eq!((plain.tcp, asked.tcp), (TcpGrowth::Brisk, TcpGrowth::Cubic));
        }
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        assert!(matches!(planned(&["--group", "trace"]), Err(Failure::NoTraces)));
        assert!(matches!(planned(&["--trace-scale", "0"]), Err(Failure::Scale(_))));
        let missing = planned(&["--traces", "no/such/folder"]);
        assert!(matches!(missing, Err(Failure::Traces(TraceError::File { .. }))));
    }
}
