//! The bytes of a measurement: they depend on their offset, so that a byte that is wrong, lost or in
//! the wrong place shows. The pattern repeats after a prime number of bytes, which no window, segment
//! or frame size divides.

use std::sync::LazyLock;

use bytes::Bytes;

/// Length after which the pattern repeats; prime.
const PERIOD: usize = 262_147;
/// Longest piece that is contiguous in memory wherever it starts.
pub(super) const PIECE_MAX: usize = 256 << 10;

static PATTERN: LazyLock<Bytes> = LazyLock::new(|| {
    // xorshift64*, from a fixed state: both ends make the same bytes.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()[7]
    };
    let mut bytes: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
    bytes.extend_from_within(..PIECE_MAX);
    bytes.into()
});

/// The pattern's bytes from `offset` on, `length` of them, at most [`PIECE_MAX`].
pub(super) fn piece(offset: u64, length: usize) -> Bytes {
    let start = (offset % PERIOD as u64) as usize;
    PATTERN.slice(start..start + length.min(PIECE_MAX))
}

/// Offset of the first byte of `data`, which starts at `offset`, that is not the pattern's.
pub(super) fn first_difference(offset: u64, data: &[u8]) -> Option<u64> {
    let mut at = offset;
    for chunk in data.chunks(PIECE_MAX) {
        let expected = piece(at, chunk.len());
        if *chunk != *expected {
            let wrong = chunk.iter().zip(&expected).position(|(a, b)| a != b)?;
            return Some(at + wrong as u64);
        }
        at += chunk.len() as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_bytes_pass_and_wrong_ones_are_located() {
        for offset in [0, 1, PERIOD as u64 - 1, 123_456_789_012] {
            let mut data = piece(offset, PIECE_MAX).to_vec();
            data.extend_from_slice(&piece(offset + PIECE_MAX as u64, 1000));
            assert_eq!(first_difference(offset, &data), None);
            data[PIECE_MAX + 7] ^= 1;
            assert_eq!(first_difference(offset, &data), Some(offset + PIECE_MAX as u64 + 7));
        }
        // Bytes from elsewhere do not pass.
        for shift in [1_u64, 1448, 65_536, 1 << 20] {
            assert!(first_difference(0, &piece(shift, 64)).is_some(), "{shift}");
        }
    }
}
