//! `fbdt-world`: judges the scheduler on random draws, and replays one.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{Args, Parser, Subcommand};
use fbdt_proto::SchedulerKind;
use fbdt_world::draw::Draw;
use fbdt_world::goals::{self, Verdict};
use fbdt_world::judge::{DEFAULT, Judge, Setting, verdict};
use fbdt_world::words;
use signal_hook::consts::{SIGINT, SIGTERM};

const EXAMPLE: &str = "\
Examples:
  fbdt-world judge --draws 500
  fbdt-world judge --draws 2000 --from 10000 --all --json world.json
  fbdt-world replay 17 --scheduler minrtt
  fbdt-world draw 17 --json

Everything is simulated: a seed gives the same draw, and a draw the same outcome.";

/// The worst draws that are printed.
const WORST: usize = 20;
/// Status of a judge that was interrupted, as shells have it.
const INTERRUPTED: u8 = 130;

/// The scheduler under random conditions, in virtual time.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run many draws; exit status 1 if a goal is missed
    Judge(JudgeArguments),
    /// Run the default scheduler alone on many draws: an outcome a line, as JSON
    Outcomes(OutcomesArguments),
    /// Run one draw, and print it and what came out
    Replay(ReplayArguments),
    /// Print a draw
    Draw(DrawArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: fbdt-world judge --draws 2000 --schedulers default,minrtt --json world.json"
)]
struct JudgeArguments {
    /// How many draws
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    draws: u64,
    /// The first seed; 0 to 99999 are for building, others for judging
    #[arg(long, value_name = "SEED", default_value = "0")]
    from: u64,
    /// Schedulers, of which the first one is judged
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = DEFAULT, value_parser = names(), conflicts_with = "all")]
    schedulers: Vec<String>,
    /// The default and all other schedulers
    #[arg(long)]
    all: bool,
    /// Threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write goals and all draws with their outcomes as JSON here; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: fbdt-world outcomes --draws 100 --json outcomes.jsonl")]
struct OutcomesArguments {
    /// How many draws
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    draws: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value = "0")]
    from: u64,
    /// Threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write the outcomes here; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: fbdt-world replay 17 --log | less")]
struct ReplayArguments {
    /// The seed, or a file with a draw as `fbdt-world draw SEED --json` prints it
    draw: String,
    /// Only this scheduler (can be repeated) [default: all of them]
    #[arg(long, value_name = "NAME", value_parser = names())]
    scheduler: Vec<String>,
    /// With this path alone, by its number
    #[arg(long, value_name = "PATH", value_parser = clap::value_parser!(u8).range(0..=7))]
    only: Option<u8>,
    /// Print what each path did in each 100 ms, and all events of the session, of the first scheduler
    #[arg(long)]
    log: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: fbdt-world draw 17 --json")]
struct DrawArguments {
    /// The seed
    seed: u64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

fn names() -> clap::builder::PossibleValuesParser {
    let all = SchedulerKind::ALL.map(SchedulerKind::name);
    clap::builder::PossibleValuesParser::new(std::iter::once(DEFAULT).chain(all))
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("--only {path}: the draw has the paths 0 to {last}")]
    NoPath { path: usize, last: usize },
    #[error(
        "{path} is neither a seed nor a draw: {reason}; `fbdt-world draw 17 --json` prints a draw"
    )]
    Draw { path: PathBuf, reason: String },
    #[error("{path}: {error}")]
    Output { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Judge(arguments) => judge(&arguments),
        Command::Outcomes(arguments) => outcomes(&arguments),
        Command::Replay(arguments) => replay(&arguments),
        Command::Draw(arguments) => draw(&arguments),
    };
    match result {
        Ok(code) => code,
        // The reader of a pipe has gone: it has what it wants.
        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("fbdt-world: {failure}");
            ExitCode::from(2)
        }
    }
}

/// A file that has its name when it is whole, or stdout.
struct Output {
    path: PathBuf,
    partial: Option<PathBuf>,
    writer: Box<dyn Write>,
}

impl Output {
    fn create(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            let writer = Box::new(io::stdout());
            return Ok(Self { path: path.to_owned(), partial: None, writer });
        }
        let failed = |error| Failure::Output { path: path.to_owned(), error };
        // A device or a pipe is written to; a renamed file would take its place.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let writer = Box::new(File::options().write(true).open(path).map_err(failed)?);
            return Ok(Self { path: path.to_owned(), partial: None, writer });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let partial = PathBuf::from(name);
        let writer = Box::new(io::BufWriter::new(File::create(&partial).map_err(failed)?));
        Ok(Self { path: path.to_owned(), partial: Some(partial), writer })
    }

    fn finish(mut self, text: &str) -> Result<(), Failure> {
        let path = self.path.clone();
        let failed = |error| Failure::Output { path: path.clone(), error };
        self.writer.write_all(text.as_bytes()).map_err(failed)?;
        self.writer.flush().map_err(failed)?;
        match &self.partial {
            Some(partial) => std::fs::rename(partial, &self.path).map_err(failed),
            None => Ok(()),
        }
    }
}

fn judge(arguments: &JudgeArguments) -> Result<ExitCode, Failure> {
    // Before the long run: whether there is where to write.
    let output = arguments.json.as_deref().map(Output::create).transpose()?;
    let stop = interruption()?;
    let judge = Judge {
        first: arguments.from,
        draws: arguments.draws,
        settings: if arguments.all {
            Setting::all()
        } else {
            arguments.schedulers.iter().filter_map(|name| Setting::named(name)).collect()
        },
        threads: threads(arguments.threads),
    };
    let started = Instant::now();
    let verdicts = judge.run(&stop, |done| progress(done, judge.draws, started));
    let wall = started.elapsed().as_secs_f64();
    let to_stdout = arguments.json.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if !to_stdout {
        report(&verdicts, wall)?;
    }
    if let Some(output) = output {
        output.finish(&encode(&verdicts, wall)?)?;
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted(verdicts.len(), judge.draws));
    }
    let reached = goals::goals(&verdicts).iter().all(goals::Goal::is_reached);
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn outcomes(arguments: &OutcomesArguments) -> Result<ExitCode, Failure> {
    let output = Output::create(&arguments.json)?;
    let stop = interruption()?;
    let judge = Judge {
        first: arguments.from,
        draws: arguments.draws,
        settings: vec![Setting::product()],
        threads: threads(arguments.threads),
    };
    let started = Instant::now();
    let outcomes = judge.outcomes(&stop, |done| progress(done, judge.draws, started));
    let mut lines = String::new();
    for outcome in &outcomes {
        lines += &serde_json::to_string(outcome)?;
        lines.push('\n');
    }
    output.finish(&lines)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted(outcomes.len(), judge.draws));
    }
    Ok(ExitCode::SUCCESS)
}

/// A flag that SIGINT and SIGTERM set.
fn interruption() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn interrupted(done: usize, all: u64) -> ExitCode {
    eprintln!("interrupted after {done} of {all} draws");
    ExitCode::from(INTERRUPTED)
}

fn threads(wanted: Option<u16>) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    wanted.map_or_else(available, usize::from)
}

/// Prints the time left: on a terminal after each draw, elsewhere twenty times.
fn progress(done: u64, all: u64, started: Instant) {
    let terminal = io::stderr().is_terminal();
    if !terminal && !done.is_multiple_of((all / 20).max(1)) && done != all {
        return;
    }
    let spent = started.elapsed().as_secs_f64();
    let left = spent / done as f64 * (all - done) as f64;
    let (minutes, seconds) = ((left / 60.0) as u64, left as u64 % 60);
    let line = format!("{done} of {all} draws, {minutes} min {seconds:02} s left");
    match terminal {
        true if done == all => eprintln!("\r{line}   "),
        true => eprint!("\r{line}   "),
        false => eprintln!("{line}"),
    }
}

fn report(verdicts: &[Verdict], wall: f64) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{} draws in {wall:.0} s", verdicts.len())?;
    writeln!(out, "\n{}", words::goals(&goals::goals(verdicts)))?;
    writeln!(out, "{}", words::kinds(&goals::kinds(verdicts)))?;
    writeln!(out, "worst draws beside the best path alone:")?;
    for verdict in goals::worst(verdicts, WORST) {
        let (fair, strict) =
            (verdict.fair_ratio(verdict.judged()), verdict.ratio(verdict.judged()));
        let single = verdict.fair_ratio(&verdict.single);
        let seed = verdict.draw.seed;
        writeln!(
            out,
            "{fair:.3} of its worst luck ({strict:.3} of its first run, {single:.3} over it alone): \
             fbdt-world replay {seed}"
        )?;
        write!(out, "{}", words::draw(&verdict.draw))?;
    }
    Ok(())
}

/// One JSON object with a draw a line.
fn encode(verdicts: &[Verdict], wall: f64) -> Result<String, Failure> {
    let rows: Vec<String> = verdicts.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let command: Vec<String> = std::env::args().skip(1).collect();
    Ok(format!(
        "{{\"schema\":\"world.v1\",\"arguments\":{},\"wall_s\":{wall:.1},\"goals\":{},\"kinds\":{},\"draws\":[\n{}\n]}}\n",
        serde_json::to_string(&command)?,
        serde_json::to_string(&goals::goals(verdicts))?,
        serde_json::to_string(&goals::kinds(verdicts))?,
        rows.join(",\n")
    ))
}

fn replay(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    let settings = if arguments.scheduler.is_empty() {
        Setting::all()
    } else {
        arguments.scheduler.iter().filter_map(|name| Setting::named(name)).collect()
    };
    let mut draw = condition(&arguments.draw)?;
    if let Some(path) = arguments.only.map(usize::from) {
        if path >= draw.paths.len() {
            return Err(Failure::NoPath { path, last: draw.paths.len() - 1 });
        }
        draw = draw.only(path);
    }
    let mut out = io::stdout().lock();
    if arguments.log
        && let Some(setting) = settings.first()
    {
        let log = fbdt_world::log::session(&draw, &setting.config);
        out.write_all(log.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    write!(out, "{}", words::verdict(&verdict(draw, &settings)))?;
    Ok(ExitCode::SUCCESS)
}

/// The draw of a seed, or the one in a file.
fn condition(seed_or_file: &str) -> Result<Draw, Failure> {
    if let Ok(seed) = seed_or_file.parse() {
        return Ok(Draw::from_seed(seed));
    }
    let failed = |reason: String| Failure::Draw { path: seed_or_file.into(), reason };
    let text = std::fs::read_to_string(seed_or_file).map_err(|error| failed(error.to_string()))?;
    let draw: Draw = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    draw.check().map_err(failed)?;
    Ok(draw)
}

fn draw(arguments: &DrawArguments) -> Result<ExitCode, Failure> {
    let draw = Draw::from_seed(arguments.seed);
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&draw)?)?;
    } else {
        write!(out, "{}", words::draw(&draw))?;
    }
    Ok(ExitCode::SUCCESS)
}
