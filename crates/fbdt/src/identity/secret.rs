//! Secret bytes that neither print nor compare in variable time.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// 32 secret bytes. `Debug` prints `<redacted>`; equality takes constant time.
#[derive(Clone)]
pub struct Secret([u8; Self::LENGTH]);

impl Secret {
    /// Length of every secret, in bytes.
    pub const LENGTH: usize = 32;

    /// Takes bytes that come from a file or a link.
    pub fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Draws a new secret from the system's random generator.
    ///
    /// # Errors
    /// [`RandomError`] if the generator fails.
    pub fn generate() -> Result<Self, RandomError> {
        let mut bytes = [0; Self::LENGTH];
        fill_random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The bytes themselves: for keying a MAC or for writing a file, never for a log.
    pub fn expose(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    pub(crate) fn to_base64(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    pub(crate) fn from_base64(text: &str) -> Option<Self> {
        decode_base64(text).map(Self)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for Secret {}

/// The system's random generator failed; nothing secret can be made.
#[derive(Debug, thiserror::Error)]
#[error("the system's random generator failed; check that /dev/urandom works")]
pub struct RandomError;

pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), RandomError> {
    rand::fill(bytes).map_err(|_| RandomError)
}

/// Decodes base64url without padding into exactly `N` bytes.
pub(crate) fn decode_base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_byte() {
        let secret = Secret::from_bytes([0xAB; 32]);
        assert_eq!(format!("{secret:?}"), "<redacted>");
    }

    #[test]
    fn base64_round_trip() {
        let secret = Secret::generate().unwrap();
        assert_eq!(Secret::from_base64(&secret.to_base64()).unwrap(), secret);
        assert!(Secret::from_base64("short").is_none());
    }
}
