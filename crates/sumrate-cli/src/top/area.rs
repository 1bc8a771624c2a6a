//! Stacked areas of characters: the rates of all links on top of each other, so that the top edge is the sum.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::Widget;

/// Characters that fill so many eighths of a cell from below.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The samples of one link.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    /// The link.
    pub(super) name: String,
    /// Its colour.
    pub(super) colour: Color,
    /// Its rates in Mbit/s, newest last.
    pub(super) rates: Vec<f64>,
}

/// Layers on top of each other, the first at the bottom, with their names at the right edge.
#[derive(Debug, Clone)]
pub(super) struct StackedArea {
    /// The layers; all have equally many rates.
    pub(super) layers: Vec<Layer>,
    /// The value at the top edge.
    pub(super) most: f64,
    /// Seconds that the whole width stands for.
    pub(super) span: usize,
}

/// Columns beside the area for the numbers of the scale.
const SCALE: u16 = 5;
/// Least columns of the area itself: there are no names where it would have fewer.
const LEAST: u16 = 24;

impl Widget for StackedArea {
    fn render(self, room: Rect, buffer: &mut Buffer) {
        let names = self.names(room);
        let width = room.width.saturating_sub(SCALE + names);
        if room.height == 0 || width == 0 {
            return;
        }
        let area = Rect { x: room.x + SCALE, width, ..room };
        self.draw_scale(room, buffer);
        for column in 0..width {
            let levels = self.levels(column, width, room.height);
            draw_column(area, column, &levels, buffer);
        }
        if names > 0 {
            let newest = self.levels(width - 1, width, room.height);
            self.draw_names(
                Rect { x: area.right() + 1, width: names - 1, ..room },
                &newest,
                buffer,
            );
        }
    }
}

impl StackedArea {
    /// Columns for the names with their newest rates.
    fn names(&self, room: Rect) -> u16 {
        let longest = self.layers.iter().map(|layer| label(layer).chars().count()).max();
        let wanted =
            longest.map_or(0, |longest| u16::try_from(longest).unwrap_or(u16::MAX).min(18));
        let fits = room.width >= SCALE.saturating_add(LEAST).saturating_add(wanted);
        if wanted > 0 && fits { wanted + 1 } else { 0 }
    }

    /// The upper edges of the layers in one column, in eighths of a cell, with their colours.
    fn levels(&self, column: u16, width: u16, height: u16) -> Vec<(f64, Color)> {
        let part = self.span as f64 / f64::from(width);
        let from = self.span as f64 - part * f64::from(width - column);
        let scale = f64::from(height) * 8.0 / self.most;
        let mut sum = 0.0;
        let level = |layer: &Layer| {
            sum += mean(&layer.rates, self.span, from, from + part);
            (sum * scale, layer.colour)
        };
        self.layers.iter().map(level).collect()
    }

    fn draw_scale(&self, room: Rect, buffer: &mut Buffer) {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let text = if self.most < 10.0 {
            format!("{:.1}", self.most)
        } else {
            format!("{:.0}", self.most)
        };
        buffer.set_stringn(room.x, room.y, format!("{text:>4}"), usize::from(SCALE - 1), dim);
        if room.height > 1 {
            buffer.set_stringn(room.x, room.bottom() - 1, "   0", usize::from(SCALE - 1), dim);
        }
    }

    /// The names in the middle of their layers, each on a line of its own.
    fn draw_names(&self, room: Rect, levels: &[(f64, Color)], buffer: &mut Buffer) {
        let mut free = i32::from(room.bottom()) - 1;
        let mut floor = 0.0;
        for (layer, (level, _)) in self.layers.iter().zip(levels) {
            let middle = f64::midpoint(floor, *level) / 8.0;
            floor = *level;
            if layer.rates.last().is_none_or(|rate| *rate < 0.01 * self.most) {
                continue;
            }
            let line = (i32::from(room.bottom()) - 1 - middle as i32).min(free);
            free = line - 1;
            if let Some(line) = u16::try_from(line).ok().filter(|line| *line >= room.y) {
                let style = Style::new().fg(layer.colour).add_modifier(Modifier::BOLD);
                let text = Span::styled(label(layer), style);
                buffer.set_span(room.x, line, &text, room.width);
            }
        }
    }
}

/// A layer's name and its newest rate.
fn label(layer: &Layer) -> String {
    let rate = layer.rates.last().copied().unwrap_or_default();
    let name: String = layer.name.chars().take(12).collect();
    if rate < 9.95 { format!("{name} {rate:.1}") } else { format!("{name} {rate:.0}") }
}

/// The mean of the rates between two seconds of a span whose end is now. There is nothing before the first.
fn mean(rates: &[f64], span: usize, from: f64, to: f64) -> f64 {
    let missing = span.saturating_sub(rates.len());
    let first = from.round().max(0.0) as usize;
    let last = (to.round() as usize).max(first + 1).min(span);
    let rate = |second: usize| second.checked_sub(missing).and_then(|index| rates.get(index));
    let sum: f64 = (first..last).filter_map(rate).sum();
    sum / (last.saturating_sub(first)).max(1) as f64
}

/// One column: full cells in the colour of their layer, and where two layers meet in a cell the lower one
/// as a part of it before the colour of the upper one.
fn draw_column(area: Rect, column: u16, levels: &[(f64, Color)], buffer: &mut Buffer) {
    for row in 0..area.height {
        let bottom = f64::from(row) * 8.0;
        let within = |level: f64| ((level - bottom).round() as i64).clamp(0, 8);
        let Some(lower) = levels.iter().position(|(level, _)| within(*level) > 0) else { break };
        let (level, colour) = levels[lower];
        let filled = usize::try_from(within(level)).unwrap_or(8);
        let upper = levels[lower + 1..].iter().find(|(above, _)| within(*above) > within(level));
        let mut style = Style::new().fg(colour);
        if let Some((_, above)) = upper.filter(|_| filled < 8) {
            style = style.bg(*above);
        }
        let place = (area.x + column, area.bottom() - 1 - row);
        buffer[place].set_symbol(EIGHTHS[filled]).set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(layers: &[(&str, u8, Vec<f64>)], width: u16, height: u16) -> Buffer {
        let layer = |(name, colour, rates): &(&str, u8, Vec<f64>)| Layer {
            name: (*name).to_owned(),
            colour: Color::Indexed(*colour),
            rates: rates.clone(),
        };
        let layers = layers.iter().map(layer).collect();
        let room = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(room);
        StackedArea { layers, most: 100.0, span: 300 }.render(room, &mut buffer);
        buffer
    }

    #[test]
    fn layers_lie_on_each_other_and_the_top_is_the_sum() {
        let both = [("wlan0", 32, vec![50.0; 300]), ("usb0", 214, vec![25.0; 300])];
        let buffer = drawn(&both, 60, 8);
        let column: Vec<(&str, Color)> =
            (0..8).map(|row| (buffer[(20, row)].symbol(), buffer[(20, row)].fg)).collect();
        let (blue, orange) = (Color::Indexed(32), Color::Indexed(214));
        assert_eq!(column[0], (" ", Color::Reset), "a quarter is free");
        assert_eq!((column[2], column[3]), (("█", orange), ("█", orange)));
        assert_eq!((column[4], column[7]), (("█", blue), ("█", blue)));
        let text =
            |row: u16| (0..60).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        assert!(text(3).ends_with("usb0 25 ") || text(2).contains("usb0 25"), "{buffer:?}");
        assert!(text(5).contains("wlan0 50"), "{buffer:?}");
        assert!(text(0).starts_with(" 100"), "{buffer:?}");
    }

    #[test]
    fn a_cell_in_which_two_layers_meet_has_both_colours() {
        let both = [("a", 1, vec![56.25; 300]), ("b", 2, vec![43.75; 300])];
        let cell = &drawn(&both, 60, 8)[(20, 3)];
        let both = (cell.symbol(), cell.fg, cell.bg);
        assert_eq!(both, ("▄", Color::Indexed(1), Color::Indexed(2)));
    }

    #[test]
    fn before_the_first_sample_there_is_nothing() {
        let buffer = drawn(&[("a", 1, vec![100.0; 30])], 105, 4);
        assert_eq!(buffer[(10, 3)].symbol(), " ");
        assert_eq!(mean(&[1.0, 2.0], 4, 0.0, 2.0), 0.0);
        assert_eq!(mean(&[1.0, 2.0], 4, 2.0, 4.0), 1.5);
        drawn(&[], 3, 1);
        drawn(&[("a", 1, vec![])], 1, 1);
    }
}
