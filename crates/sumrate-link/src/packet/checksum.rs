//! The Internet checksum (RFC 1071) over header bytes.

/// Adds `bytes`, read as big-endian 16-bit words, to a running sum; an odd last byte is padded with zero.
pub fn add(mut sum: u32, bytes: &[u8]) -> u32 {
    let mut words = bytes.chunks_exact(2);
    for word in &mut words {
        sum += u32::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u32::from(*last) << 8;
    }
    sum
}

/// Folds a running sum to 16 bits. Not inverted.
pub fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

/// Sum of a pseudo-header: `addresses` are source and destination, `length` is header and payload of layer 4, bytes.
///
/// This is what a packet with `NEEDS_CSUM` carries in its checksum field (folded, not inverted).
pub fn pseudo_header(addresses: &[u8], protocol: u8, length: u32) -> u16 {
    let sum = add(0, addresses);
    fold(sum + u32::from(protocol) + (length >> 16) + (length & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_1071() {
        let sum = fold(add(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]));
        assert_eq!(sum, 0xddf2);
    }

    #[test]
    fn odd_length_is_padded() {
        assert_eq!(fold(add(0, &[0x12])), 0x1200);
    }
}
