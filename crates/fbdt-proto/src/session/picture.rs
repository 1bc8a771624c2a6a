//! A window as it closes, for people.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use fbdt_units::StreamId;

use super::{Session, Stream};
use crate::stats::{Cell, WindowPicture};

/// Parts of a picture.
const CELLS: u64 = 64;
/// Streams that are pictured in each direction.
const STREAMS: usize = 2;

impl Session {
    /// The streams that have most under way, in each direction.
    pub(super) fn window_pictures(&self) -> Vec<WindowPicture> {
        let sent = self.longest(|id, stream| self.sent_range(id, stream));
        let received = self.longest(|_, stream| received_range(stream));
        let sent = sent.into_iter().map(|(range, id, s)| self.sent_picture(range, id, s));
        let received = received.into_iter().map(|(range, id, s)| received_picture(range, id, s));
        sent.chain(received).collect()
    }

    /// The streams whose range is longest, not one that is empty.
    fn longest(
        &self,
        range: impl Fn(StreamId, &Stream) -> Range<u64>,
    ) -> Vec<(Range<u64>, StreamId, &Stream)> {
        let ordinary = self.streams.iter().filter(|(id, _)| **id != StreamId::CONTROL);
        let all = ordinary.map(|(id, stream)| (range(*id, stream), *id, stream));
        let mut list: Vec<_> = all.filter(|(range, ..)| !range.is_empty()).collect();
        list.sort_by_key(|(range, id, _)| (core::cmp::Reverse(range.end - range.start), *id));
        list.truncate(STREAMS);
        list
    }

    fn sent_range(&self, id: StreamId, stream: &Stream) -> Range<u64> {
        let send = &stream.send;
        let end = self.open_windows(id, send).end;
        send.cumulative..end.max(send.highest_sent()).min(send.written())
    }

    fn sent_picture(&self, range: Range<u64>, id: StreamId, stream: &Stream) -> WindowPicture {
        let mut picture = Picture::new(range.clone(), Cell::Arrived);
        for path in &self.paths {
            for chunk in path.in_flight.iter().filter(|chunk| chunk.stream == id) {
                let mut at = chunk.range.start;
                while let Some(gap) = stream.send.unacknowledged(at..chunk.range.end) {
                    at = gap.end;
                    picture.paint(gap, Cell::Carried(path.id));
                }
            }
        }
        for unsent in stream.send.lost.iter().chain(stream.send.unsent.iter()) {
            picture.paint(unsent, Cell::Unsent);
        }
        WindowPicture { stream: id, sending: true, range, cells: picture.cells }
    }
}

fn received_range(stream: &Stream) -> Range<u64> {
    stream.receive.assembler.cumulative..stream.receive.highest
}

fn received_picture(range: Range<u64>, id: StreamId, stream: &Stream) -> WindowPicture {
    let mut picture = Picture::new(range.clone(), Cell::Missing);
    for arrived in stream.receive.assembler.received.iter() {
        picture.paint(arrived, Cell::Arrived);
    }
    WindowPicture { stream: id, sending: false, range, cells: picture.cells }
}

/// Equal parts of a range; what is painted last covers what was painted before.
struct Picture {
    range: Range<u64>,
    cells: Vec<Cell>,
}

impl Picture {
    fn new(range: Range<u64>, ground: Cell) -> Self {
        let cells = (range.end - range.start).min(CELLS);
        Self { range, cells: vec![ground; usize::try_from(cells).unwrap_or(0)] }
    }

    /// Paints every part that `piece` touches.
    fn paint(&mut self, piece: Range<u64>, cell: Cell) {
        let (start, end) = (piece.start.max(self.range.start), piece.end.min(self.range.end));
        if start >= end {
            return;
        }
        let (first, last) = (self.cell_of(start), self.cell_of(end - 1));
        if let Some(cells) = self.cells.get_mut(first..=last) {
            cells.fill(cell);
        }
    }

    fn cell_of(&self, offset: u64) -> usize {
        let length = u128::from(self.range.end - self.range.start);
        let cell = u128::from(offset - self.range.start) * self.cells.len() as u128 / length;
        usize::try_from(cell).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt_units::PathId;
    use proptest::prelude::*;

    #[test]
    fn parts_are_painted_where_they_are() {
        let mut picture = Picture::new(1000..1640, Cell::Arrived);
        assert_eq!(picture.cells.len(), 64);
        picture.paint(0..1010, Cell::Unsent);
        picture.paint(1020..1021, Cell::Carried(PathId(1)));
        picture.paint(1630..9999, Cell::Missing);
        picture.paint(5000..6000, Cell::Unsent);
        let carried = Cell::Carried(PathId(1));
        assert_eq!(picture.cells[..4], [Cell::Unsent, Cell::Arrived, carried, Cell::Arrived]);
        assert_eq!(picture.cells[62..], [Cell::Arrived, Cell::Missing]);
        assert_eq!(Picture::new(5..8, Cell::Unsent).cells.len(), 3);
    }

    proptest! {
        #[test]
        fn any_piece_fits(range in (0..u64::MAX, 1..u64::MAX), piece in any::<(u64, u64)>()) {
            let end = range.0.saturating_add(range.1);
            let mut picture = Picture::new(range.0..end, Cell::Arrived);
            picture.paint(piece.0..piece.1, Cell::Unsent);
            let touched = picture.cells.contains(&Cell::Unsent);
            let meets = piece.0.max(range.0) < piece.1.min(end);
            prop_assert_eq!(touched, meets);
        }
    }
}
