//! What it looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, Wrap};

use super::TopState;
use super::window;
use crate::output::counted;
use crate::status::{PathReport, SessionReport, StatusReport, bytes, lasting};

/// Streams that are listed.
const STREAMS: usize = 5;
/// Width from which on all columns fit.
const WIDE: u16 = 96;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &TopState) {
    let paths = state.report.as_ref().map_or(0, |report| all_paths(report).count());
    let paths = u16::try_from(paths).unwrap_or(u16::MAX).min(frame.area().height / 3);
    let [head, table, chart, rest, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(paths + 3),
        Constraint::Length(5),
        Constraint::Min(4),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(heading(state), head);
    if let Some(report) = &state.report {
        draw_paths(frame, table, state, report);
        draw_rates(frame, chart, state, report);
        if state.explaining {
            draw_explanation(frame, rest, state);
        } else {
            draw_windows(frame, rest, report);
        }
    }
    let keys = " q quit   ↑ ↓ path   e explain   p pause";
    let paused = if state.paused { "   PAUSED" } else { "" };
    frame.render_widget(Line::styled(format!("{keys}{paused}"), DIM), foot);
}

fn heading(state: &TopState) -> Paragraph<'_> {
    let Some(report) = &state.report else {
        let waiting = state.error.clone().unwrap_or_else(|| "waiting for an answer".to_owned());
        return Paragraph::new(waiting);
    };
    let proxies = [("SOCKS5", &report.proxies.socks), ("HTTP", &report.proxies.http)];
    let proxies: String = proxies
        .iter()
        .filter_map(|(name, address)| Some(format!("  {name} {}", address.as_ref()?)))
        .collect();
    let first = format!(
        "sumrate {} {}, process {}, up for {}{proxies}",
        report.role,
        report.version,
        report.pid,
        lasting(report.uptime_s)
    );
    let second = match (&state.error, &report.stopping, &report.outage) {
        (Some(error), ..) => Line::styled(error.clone(), BOLD),
        (None, Some(stopping), _) => Line::styled(stopping.words(), BOLD),
        (None, None, Some(outage)) => Line::styled(outage.words(), BOLD),
        (None, None, None) => Line::raw(totals(report)),
    };
    Paragraph::new(vec![Line::styled(first, BOLD), second])
}

fn totals(report: &StatusReport) -> String {
    let sum = |of: fn(&SessionReport) -> u64| bytes(report.sessions.iter().map(of).sum());
    let streams: usize = report.sessions.iter().map(|session| session.streams.len()).sum();
    let flows = report.udp.map_or_else(String::new, |udp| {
        let carried = bytes(udp.sent_bytes + udp.received_bytes);
        format!(", {} ({carried})", counted(udp.flows, "UDP flow", "UDP flows"))
    });
    format!(
        "{}, {}{flows}; sent {} (redundant {}), received {}",
        counted(report.sessions.len() as u64, "session", "sessions"),
        counted(streams as u64, "stream", "streams"),
        sum(|session| session.sent_bytes),
        sum(|session| session.redundant_bytes),
        sum(|session| session.received_bytes)
    )
}

/// Heads and widths of the paths' table, and whether a narrow terminal shows the column too.
const COLUMNS: [(&str, Constraint, bool); 11] = [
    ("", Constraint::Length(1), true),
    ("path", Constraint::Length(10), true),
    ("health", Constraint::Length(7), true),
    ("priority", Constraint::Length(8), false),
    ("direction", Constraint::Length(12), false),
    ("out", Constraint::Length(7), true),
    ("in", Constraint::Length(7), true),
    ("link", Constraint::Length(7), false),
    ("RTT", Constraint::Length(8), true),
    ("commit", Constraint::Length(9), false),
    ("now", Constraint::Min(10), true),
];

/// Each path with the id of its session, which is empty where there is none, and its place there.
fn all_paths(report: &StatusReport) -> impl Iterator<Item = (&str, usize, &PathReport)> {
    let idle = ("", report.idle_paths.as_slice());
    let of_sessions =
        report.sessions.iter().map(|session| (session.id.as_str(), session.paths.as_slice()));
    of_sessions.chain([idle]).flat_map(|(session, paths)| {
        paths.iter().enumerate().map(move |(place, path)| (session, place, path))
    })
}

fn draw_paths(frame: &mut Frame<'_>, area: Rect, state: &TopState, report: &StatusReport) {
    let wide = area.width >= WIDE;
    let columns = || COLUMNS.iter().filter(|(_, _, narrow)| wide || *narrow);
    let rows = all_paths(report).enumerate().map(|(index, (session, place, path))| {
        let history = state.history(session, &path.name);
        let newest = |rates: Option<&std::collections::VecDeque<f64>>| {
            rates.and_then(|rates| rates.back()).copied()
        };
        let rates = (newest(history.map(|h| &h.sent)), newest(history.map(|h| &h.received)));
        let row = path_row(path, place, rates, wide);
        if index == state.selected {
            row.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            row
        }
    });
    let table = Table::new(rows, columns().map(|(_, width, _)| *width))
        .header(Row::new(columns().map(|(head, _, _)| *head)).style(DIM))
        .block(Block::bordered().title(" paths, Mbit/s "));
    frame.render_widget(table, area);
}

fn path_row(
    path: &PathReport,
    place: usize,
    rates: (Option<f64>, Option<f64>),
    wide: bool,
) -> Row<'static> {
    let none = || "-".to_owned();
    let rate = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{rate:.1}"));
    let mark = Cell::new(window::letter(place).to_string())
        .style(Style::new().fg(window::colour(place)).add_modifier(Modifier::BOLD));
    let health = Cell::new(path.health.clone());
    let health = if path.health == "active" { health } else { health.style(BOLD) };
    let (out, into) = (rate(rates.0), rate(rates.1));
    let rtt = if path.rtt_ms > 0.0 { format!("{:.1} ms", path.rtt_ms) } else { none() };
    let now = match &path.last_error {
        Some(error) => format!("{}: {}", path.why, error.reason),
        None => path.why.clone(),
    };
    if !wide {
        return Row::new([
            mark,
            path.name.clone().into(),
            health,
            out.into(),
            into.into(),
            rtt.into(),
            now.into(),
        ]);
    }
    let full = 100 * path.commit_bytes / path.commit_limit_bytes.max(1);
    Row::new([
        mark,
        path.name.clone().into(),
        health,
        path.priority.clone().into(),
        path.direction.clone().into(),
        out.into(),
        into.into(),
        path.rate_mbps.map_or_else(none, |rate| format!("{rate:.0}")).into(),
        rtt.into(),
        format!("{full} %").into(),
        now.into(),
    ])
}

/// The selected path over the last two minutes.
fn draw_rates(frame: &mut Frame<'_>, area: Rect, state: &TopState, report: &StatusReport) {
    let Some((session, _, path)) = all_paths(report).nth(state.selected) else { return };
    let empty = super::state::History::default();
    let history = state.history(session, &path.name).unwrap_or(&empty);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    for (area, what, rates) in [(left, "out", &history.sent), (right, "in", &history.received)] {
        let room = usize::from(area.width.saturating_sub(2));
        let shown: Vec<f64> =
            rates.iter().skip(rates.len().saturating_sub(room)).copied().collect();
        let most = shown.iter().copied().fold(0.0, f64::max);
        // Tenths, so that slow paths have a curve too.
        let bars: Vec<u64> = shown.iter().map(|rate| (rate * 10.0).round() as u64).collect();
        let title = format!(" {} {what}, at most {most:.1} ", path.name);
        let sparkline = Sparkline::default().data(bars).block(Block::bordered().title(title));
        frame.render_widget(sparkline, area);
    }
}

fn draw_windows(frame: &mut Frame<'_>, area: Rect, report: &StatusReport) {
    let mut lines = Vec::new();
    for window in report.sessions.iter().flat_map(|session| &session.windows) {
        lines.extend(window::lines(window));
    }
    if lines.is_empty() {
        lines.push(Line::styled("nothing is on its way", DIM));
    }
    let mut streams: Vec<_> = report.sessions.iter().flat_map(|session| &session.streams).collect();
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.written_bytes + stream.received_bytes));
    for stream in streams.into_iter().take(STREAMS) {
        let delay = stream.in_order_delay_ms;
        lines.push(Line::styled(
            format!(
                "stream {} {}: written {}, received {}, in-order delay p50 {:.1} p99 {:.1} ms, longest stall {:.0} ms",
                stream.id,
                stream.class,
                bytes(stream.written_bytes),
                bytes(stream.received_bytes),
                delay.p50,
                delay.p99,
                stream.longest_stall_ms
            ),
            DIM,
        ));
    }
    let title = if area.width >= WIDE {
        " windows, closing from both ends: letter = on that path, · unsent, █ arrived, - missing "
    } else {
        " windows: letter = on that path, · unsent, █ arrived, - missing "
    };
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn draw_explanation(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let sentences = state.explained.get(state.selected).cloned().unwrap_or_default();
    let lines: Vec<Line<'_>> = sentences.into_iter().map(Line::from).collect();
    let paragraph =
        Paragraph::new(lines).wrap(Wrap { trim: true }).block(Block::bordered().title(" why "));
    frame.render_widget(paragraph, area);
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
