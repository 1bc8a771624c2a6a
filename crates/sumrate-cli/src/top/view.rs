//! What it looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, Wrap};

use super::TopState;
use super::window;
use crate::output::counted;
use crate::status::{PathReport, SessionReport, StatusReport, StreamReport, bytes, lasting};

/// Streams that are listed.
const STREAMS: usize = 5;

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
    frame.render_widget(heading(state, head.width), head);
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

fn heading(state: &TopState, width: u16) -> Paragraph<'_> {
    let Some(report) = &state.report else {
        let waiting = state.error.clone().unwrap_or_else(|| "waiting for an answer".to_owned());
        return Paragraph::new(waiting);
    };
    let proxies = [("SOCKS5", &report.proxies.socks), ("HTTP", &report.proxies.http)];
    let proxies: String = proxies
        .iter()
        .filter_map(|(name, address)| Some(format!("  {name} {}", address.as_ref()?)))
        .collect();
    let (role, version) = (&report.role, &report.version);
    let (process, up) = (report.pid, lasting(report.uptime_s));
    let first = fitting(
        width,
        [
            format!("sumrate {role} {version}, process {process}, up for {up}{proxies}"),
            format!("sumrate {role} {version}, up for {up}{proxies}"),
            format!("sumrate {role}, up for {up}{proxies}"),
            format!("sumrate {role}{proxies}"),
            format!("sumrate {role}"),
        ],
    );
    let second = match (&state.error, &report.stopping, &report.outage) {
        (Some(error), ..) => Line::styled(error.clone(), BOLD),
        (None, Some(stopping), _) => Line::styled(stopping.words(), BOLD),
        (None, None, Some(outage)) => Line::styled(outage.words(), BOLD),
        (None, None, None) => Line::raw(totals(report, width)),
    };
    Paragraph::new(vec![Line::styled(first, BOLD), second])
}

fn totals(report: &StatusReport, width: u16) -> String {
    let sum = |of: fn(&SessionReport) -> u64| bytes(report.sessions.iter().map(of).sum());
    let streams: usize = report.sessions.iter().map(|session| session.streams.len()).sum();
    let sessions = counted(report.sessions.len() as u64, "session", "sessions");
    let streams = counted(streams as u64, "stream", "streams");
    let flows = report.udp.map_or_else(String::new, |udp| {
        let carried = bytes(udp.sent_bytes + udp.received_bytes);
        format!(", {} ({carried})", counted(udp.flows, "UDP flow", "UDP flows"))
    });
    let sent = sum(|session| session.sent_bytes);
    let redundant = sum(|session| session.redundant_bytes);
    let received = sum(|session| session.received_bytes);
    fitting(
        width,
        [
            format!(
                "{sessions}, {streams}{flows}; sent {sent} (redundant {redundant}), received {received}"
            ),
            format!("{sessions}, {streams}{flows}; sent {sent}, received {received}"),
            format!("{sessions}, {streams}; sent {sent}, received {received}"),
            format!("sent {sent}, received {received}"),
        ],
    )
}

/// The column that tells the paths of several sessions apart; there is none where there is one session.
const SESSION: &str = "session";
/// The column for what the other end says, if it says anything.
const LINK_IN: &str = "link-in";
/// Columns of the paths' table: head, and least width, so that a number that grows moves nothing.
const COLUMNS: [(&str, usize); 13] = [
    ("", 1),
    ("path", 4),
    (SESSION, 8),
    ("health", 7),
    ("priority", 8),
    ("direction", 9),
    ("out", 7),
    ("in", 7),
    ("link-out", 8),
    (LINK_IN, 7),
    ("RTT", 8),
    ("commit", 6),
    ("now", 15),
];
/// Those that a terminal without room for all of them leaves out, the least important one first.
const LEFT_OUT: [&str; 9] =
    ["direction", "commit", "link-out", LINK_IN, "priority", "RTT", "now", SESSION, "health"];

/// What the table says of a path, column by column.
type Cells = [String; COLUMNS.len()];

/// Each path with its session, if there is one, and its place there.
fn all_paths(
    report: &StatusReport,
) -> impl Iterator<Item = (Option<&SessionReport>, usize, &PathReport)> {
    let idle = (None, report.idle_paths.as_slice());
    let of_sessions =
        report.sessions.iter().map(|session| (Some(session), session.paths.as_slice()));
    of_sessions.chain([idle]).flat_map(|(session, paths)| {
        paths.iter().enumerate().map(move |(place, path)| (session, place, path))
    })
}

/// What rates are kept under.
fn id(session: Option<&SessionReport>) -> &str {
    session.map_or("", |session| session.id.as_str())
}

fn draw_paths(frame: &mut Frame<'_>, area: Rect, state: &TopState, report: &StatusReport) {
    let paths: Vec<(usize, Cells)> = all_paths(report)
        .map(|(session, place, path)| {
            let history = state.history(id(session), &path.name);
            let newest = |rates: Option<&std::collections::VecDeque<f64>>| {
                rates.and_then(|rates| rates.back()).copied()
            };
            let rates = (newest(history.map(|h| &h.sent)), newest(history.map(|h| &h.received)));
            let of = session.map_or_else(String::new, SessionReport::label);
            (place, path_cells(path, (place, of), rates))
        })
        .collect();
    let widths = widths(&paths);
    let room = usize::from(area.width.saturating_sub(2));
    let is_told = all_paths(report).any(|(_, _, path)| path.far.is_some());
    let mut hidden = Vec::new();
    hidden.extend((report.sessions.len() < 2).then_some(SESSION));
    hidden.extend((!is_told).then_some(LINK_IN));
    let columns = columns(&widths, room, &hidden);
    let rows = paths.iter().enumerate().map(|(index, (place, cells))| {
        let row = path_row(cells, *place, &columns);
        if index == state.selected {
            row.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            row
        }
    });
    let constraints = columns.iter().map(|column| {
        let width = u16::try_from(widths[*column]).unwrap_or(u16::MAX);
        let is_last = columns.last() == Some(column);
        if is_last { Constraint::Min(width) } else { Constraint::Length(width) }
    });
    let heads = columns.iter().map(|column| COLUMNS[*column].0);
    let table = Table::new(rows, constraints)
        .header(Row::new(heads).style(DIM))
        .block(Block::bordered().title(" paths, Mbit/s "));
    frame.render_widget(table, area);
}

fn path_cells(
    path: &PathReport,
    (place, session): (usize, String),
    rates: (Option<f64>, Option<f64>),
) -> Cells {
    let none = || "-".to_owned();
    let rate = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{rate:.1}"));
    let now = match (&path.last_error, &path.far) {
        (Some(error), _) => format!("{}: {}", path.why, error.reason),
        // What comes is what counts where there is nothing to send.
        (None, Some(far)) if path.why == "nothing-to-send" && far.why != path.why => {
            format!("in {}", far.why)
        }
        _ => path.why.clone(),
    };
    let link = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{rate:.0}"));
    let full = 100 * path.commit_bytes / path.commit_limit_bytes.max(1);
    [
        window::letter(place).to_string(),
        path.name.clone(),
        session,
        path.health.clone(),
        path.priority.clone(),
        path.direction.clone(),
        rate(rates.0),
        rate(rates.1),
        link(path.rate_mbps),
        link(path.far.as_ref().and_then(|far| far.rate_mbps)),
        if path.rtt_ms > 0.0 { format!("{:.1} ms", path.rtt_ms) } else { none() },
        format!("{full} %"),
        now,
    ]
}

/// Widths at which nothing is cut, but for what went wrong with a path, which may be long.
fn widths(paths: &[(usize, Cells)]) -> [usize; COLUMNS.len()] {
    std::array::from_fn(|column| {
        let (head, least) = COLUMNS[column];
        let shortest = |text: &str| text.split(": ").next().map_or(0, |text| text.chars().count());
        let cells = paths.iter().map(|(_, cells)| shortest(&cells[column]));
        cells.fold(least.max(head.len()), usize::max)
    })
}

/// The columns that a table of this width has room for beside each other; none of those without content.
fn columns(widths: &[usize; COLUMNS.len()], room: usize, hidden: &[&str]) -> Vec<usize> {
    let mut shown: Vec<usize> =
        (0..COLUMNS.len()).filter(|column| !hidden.contains(&COLUMNS[*column].0)).collect();
    for head in LEFT_OUT {
        let needed: usize = shown.iter().map(|column| widths[*column] + 1).sum();
        if needed <= room + 1 {
            break;
        }
        shown.retain(|column| COLUMNS[*column].0 != head);
    }
    shown
}

fn path_row(cells: &Cells, place: usize, columns: &[usize]) -> Row<'static> {
    let styled = |column: &usize| {
        let cell = Cell::new(cells[*column].clone());
        match COLUMNS[*column].0 {
            "" => cell.style(Style::new().fg(window::colour(place)).add_modifier(Modifier::BOLD)),
            "health" if cells[*column] != "active" => cell.style(BOLD),
            _ => cell,
        }
    };
    Row::new(columns.iter().map(styled))
}

/// The first of several wordings, from the longest on, that there is room for; the last one if none is
/// short enough.
fn fitting<const N: usize>(room: u16, wordings: [String; N]) -> String {
    let fits = |words: &String| words.chars().count() <= usize::from(room);
    let place = wordings.iter().position(fits).unwrap_or(N.saturating_sub(1));
    wordings.into_iter().nth(place).unwrap_or_default()
}

/// The selected path over the last two minutes.
fn draw_rates(frame: &mut Frame<'_>, area: Rect, state: &TopState, report: &StatusReport) {
    let Some((session, _, path)) = all_paths(report).nth(state.selected) else { return };
    let empty = super::state::History::default();
    let history = state.history(id(session), &path.name).unwrap_or(&empty);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    for (area, what, rates) in [(left, "out", &history.sent), (right, "in", &history.received)] {
        let room = usize::from(area.width.saturating_sub(2));
        let shown: Vec<f64> =
            rates.iter().skip(rates.len().saturating_sub(room)).copied().collect();
        let most = shown.iter().copied().fold(0.0, f64::max);
        // Tenths, so that slow paths have a curve too.
        let bars: Vec<u64> = shown.iter().map(|rate| (rate * 10.0).round() as u64).collect();
        let long = format!(" {} {what}, at most {most:.1} ", path.name);
        let title =
            fitting(area.width.saturating_sub(2), [long, format!(" {} {what} ", path.name)]);
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
        lines.push(Line::styled("no window waits for anything at this end", DIM));
    }
    let mut streams: Vec<_> = report.sessions.iter().flat_map(|session| &session.streams).collect();
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.written_bytes + stream.received_bytes));
    let room = area.width.saturating_sub(2);
    lines.extend(
        streams
            .into_iter()
            .take(STREAMS)
            .map(|stream| Line::styled(fitting(room, stream_words(stream)), DIM)),
    );
    let title = fitting(
        room,
        [
            " windows, closing from both ends: letter = on that path, · unsent, █ arrived, - missing ",
            " windows: letter = on that path, · unsent, █ arrived, - missing ",
            " windows: letter = path, · unsent, █ arrived, - missing ",
            " windows ",
        ]
        .map(str::to_owned),
    );
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

/// A stream in more and in fewer words.
fn stream_words(stream: &StreamReport) -> [String; 4] {
    let (id, class, delay) = (stream.id, stream.class_words(), stream.in_order_delay_ms);
    let (written, received) = (bytes(stream.written_bytes), bytes(stream.received_bytes));
    let carried = format!("written {written}, received {received}");
    let delay = format!("in-order delay p50 {:.1} p99 {:.1} ms", delay.p50, delay.p99);
    let stall = format!("longest stall {:.0} ms", stream.longest_stall_ms);
    [
        format!("stream {id} {class}: {carried}, {delay}, {stall}"),
        format!("stream {id} {class}: {carried}, {stall}"),
        format!("stream {id} {class}: {carried}"),
        format!("stream {id}: {carried}"),
    ]
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
