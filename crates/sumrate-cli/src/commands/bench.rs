//! `sumrate bench`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, Health, Session};
use indicatif::{ProgressBar, ProgressStyle};

use super::setup::Missing;
use super::wishes::{grant, warn_of_absent};
use super::{CommandError, SetupError, dial, setup};
use crate::args::BenchArgs;
use crate::bench::{BenchReport, MessageBenchReport, MessagePlan, Plan, measure, measure_messages};
use crate::interrupt::Interrupts;
use crate::output;
use crate::policy::Keeper;
use crate::service::{BenchDirection, BenchLimit, BenchRequest};
use crate::session::SessionTunnel;

/// Length of a measurement for which none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Longest wait for the paths beyond the first.
const PATHS_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects, measures, prints.
///
/// # Errors
/// [`CommandError`]
pub async fn bench(args: BenchArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let (link, missing) = (args.link.expose(), Missing::Refused);
    let mut config = dial::configure(link, &args.reach, &args.protocol, missing)?;
    dial::want(&mut config, &args.policy);
    wish(&args, &mut config)?;
    if args.messages {
        return messages(&args, config, interrupts).await;
    }
    let request = request(&args);
    Plan::try_from(&request).map_err(|error| CommandError::Bench(error.into()))?;
    let wanted = wanted_paths(&args)?;
    let sending = setup::sending(&config.congestion_control, &config.proto);
    let session = dial::open(config, &mut interrupts).await?;
    let progress = progress(&args);
    let stall = Some(args.stall_timeout).filter(|stall| !stall.is_zero());
    let work = async {
        ready(&args, &session, wanted).await;
        let tunnel = SessionTunnel::fixed(session.clone());
        let tell = |bytes| progress.set_position(bytes);
        measure(&tunnel, request, &sending, stall, command(), tell).await
    };
    let measured = tokio::select! {
        measured = work => measured.map_err(CommandError::from),
        interrupt = interrupts.next() => Err(CommandError::Interrupted(interrupt)),
    };
    progress.finish_and_clear();
    session.close(0, "measured").await;
    let report = measured?;
    if args.json {
        output::pretty_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(())
}

/// Enters what --policy wishes. Nothing is kept of a measurement, so there is no month's quota.
fn wish(args: &BenchArgs, config: &mut ClientConfig) -> Result<(), CommandError> {
    if let Some(policy) = args.policy.iter().find(|policy| policy.change.quota_bytes.is_some()) {
        return Err(SetupError::BenchQuota(policy.name.clone()).into());
    }
    let keeper = Arc::new(Keeper::new(config.policies.clone(), None));
    grant(&args.policy, config, &keeper)?;
    config.path_interfaces = Some(keeper);
    warn_of_absent(&args.reach.backup, &args.policy, config);
    Ok(())
}

/// The mode that measures messages.
async fn messages(
    args: &BenchArgs,
    config: ClientConfig,
    mut interrupts: Interrupts,
) -> Result<(), CommandError> {
    let wanted = wanted_paths(args)?;
    let session = dial::open(config, &mut interrupts).await?;
    let progress = progress(args);
    let plan = MessagePlan {
        bytes: args.message_bytes,
        interval: args.message_interval,
        length: args.time.unwrap_or(DEFAULT_TIME),
        lifetime: Some(args.message_lifetime).filter(|lifetime| !lifetime.is_zero()),
        delivery: args.message_delivery.into(),
    };
    let work = async {
        ready(args, &session, wanted).await;
        let tunnel = SessionTunnel::fixed(session.clone());
        measure_messages(&tunnel, plan, command(), |bytes| progress.set_position(bytes)).await
    };
    let measured = tokio::select! {
        measured = work => measured.map_err(CommandError::from),
        interrupt = interrupts.next() => Err(CommandError::Interrupted(interrupt)),
    };
    progress.finish_and_clear();
    session.close(0, "measured").await;
    let report = measured?;
    if args.json {
        return Ok(output::pretty_json(&report)?);
    }
    Ok(print_messages(&report)?)
}

/// Waits until the paths are up and, with --hold, until standard input ends.
async fn ready(args: &BenchArgs, session: &Session, wanted: usize) {
    wait_for_paths(session, wanted).await;
    if args.hold {
        let (ended, end) = tokio::sync::oneshot::channel();
        // A thread of its own: the runtime would wait for one of its own at an interrupt.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = ended.send(());
        });
        let _ = end.await;
    }
}

fn print_messages(report: &MessageBenchReport) -> std::io::Result<()> {
    let echo = report.echo_ms;
    output::line(&format!(
        "{} messages of {} bytes, {} echoes, {:.3} % lost or later than {:.0} ms",
        report.offered,
        report.message_bytes,
        report.received,
        report.loss * 100.0,
        report.lifetime_ms
    ))?;
    output::line(&format!(
        "echo after p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1} ms; longest gap {:.1} ms",
        echo.p50, echo.p99, echo.p999, echo.max, report.longest_gap_ms
    ))?;
    for path in &report.paths {
        output::line(&format!(
            "  {}: {} bytes sent, {} of them copies",
            path.name,
            path.sent_bytes + path.redundant_bytes,
            path.redundant_bytes
        ))?;
    }
    Ok(())
}

fn request(args: &BenchArgs) -> BenchRequest {
    let limit = match args.bytes {
        Some(bytes) => BenchLimit::Bytes(bytes),
        None => BenchLimit::Seconds(args.time.unwrap_or(DEFAULT_TIME).as_secs_f64()),
    };
    BenchRequest {
        id: 1,
        direction: match args.reverse {
            true => BenchDirection::ServerToClient,
            false => BenchDirection::ClientToServer,
        },
        streams: args.streams,
        limit,
        warmup_s: args.warmup.as_secs_f64(),
        interval_s: args.interval.as_secs_f64(),
        verify: args.verify,
    }
}

fn wanted_paths(args: &BenchArgs) -> Result<usize, SetupError> {
    let given = args.reach.path.len();
    match args.wait_paths {
        Some(wanted) if given > 0 && usize::from(wanted) > given => {
            Err(SetupError::WaitPaths { wanted, given })
        }
        Some(wanted) => Ok(usize::from(wanted)),
        None => Ok(given.max(1)),
    }
}

/// Waits for the paths; those that do not come in time are left out, with a warning.
async fn wait_for_paths(session: &Session, wanted: usize) {
    let begun = Instant::now();
    loop {
        let paths = session.paths();
        let up = paths.iter().filter(|path| path.health == Health::Active).count();
        if up >= wanted {
            return;
        }
        if begun.elapsed() > PATHS_TIMEOUT {
            tracing::warn!(up, wanted, "some paths are not up after 10 s; measuring without them");
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn progress(args: &BenchArgs) -> ProgressBar {
    if args.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{spinner} {elapsed} {binary_bytes} {binary_bytes_per_sec}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

/// The command line, without the secret part of a link.
fn command() -> Vec<String> {
    std::env::args().map(|arg| redact(&arg)).collect()
}

fn redact(arg: &str) -> String {
    match arg.split_once('#') {
        Some((public, _)) if arg.contains("sumrate://") => format!("{public}#<redacted>"),
        _ => arg.to_owned(),
    }
}

fn print(report: &BenchReport) -> std::io::Result<()> {
    output::line(&format!(
        "goodput {:.1} Mbit/s: {} bytes in {:.2} s, {} redundant bytes{}",
        report.goodput_mbps,
        report.bytes,
        report.duration_s,
        report.redundant_bytes,
        if report.verified { ", every byte verified" } else { "" }
    ))?;
    for path in &report.paths {
        output::line(&format!(
            "  {}: {:.1} Mbit/s, {}, rtt {:.1} ms, {:.2} % retransmitted by TCP, {} redundant bytes",
            path.name,
            path.goodput_mbps,
            path.direction,
            path.rtt_ms,
            path.retransmitted_share * 100.0,
            path.redundant_bytes
        ))?;
    }
    if report.streams > 1 {
        let goodput = report.stream_goodput_mbps;
        output::line(&format!(
            "{} streams: {:.2} / {:.2} / {:.2} Mbit/s (least, median, most), Jain index {:.3}",
            report.streams, goodput.min, goodput.median, goodput.max, report.jain_index
        ))?;
    }
    let delay = report.in_order_delay_ms;
    output::line(&format!(
        "in-order delay p50 {:.1}, p99 {:.1}, max {:.1} ms; longest stall {:.1} ms; \
         receive buffer peak {} bytes",
        delay.p50, delay.p99, delay.max, report.longest_stall_ms, report.receive_buffer_peak_bytes
    ))?;
    output::line(&format!(
        "CPU {:.2} s client ({:.2} s in the kernel), {:.2} s server ({:.2} s); {} sends with {}, {}",
        report.cpu_seconds.client,
        report.kernel_cpu_seconds.client,
        report.cpu_seconds.server,
        report.kernel_cpu_seconds.server,
        match report.direction {
            BenchDirection::ClientToServer => "client",
            BenchDirection::ServerToClient => "server",
        },
        report.congestion_control,
        report.scheduler
    ))
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn secrets_stay_out_of_results() {
        assert_eq!(redact("sumrate://h:1?v=1#k=a&c=b"), "sumrate://h:1?v=1#<redacted>");
        assert_eq!(redact("--json"), "--json");
    }
}
