//! Reading fixed-size big-endian fields off a slice.

use crate::WireError;

/// A cursor over one message's body; every read is checked.
pub(crate) struct Cursor<'a> {
    kind: u8,
    length: u32,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A cursor over the body of a message of type `kind`.
    pub(crate) fn new(kind: u8, body: &'a [u8]) -> Self {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        Self { kind, length, rest: body }
    }

    /// The error for a body of the wrong length.
    pub(crate) const fn length_error(&self) -> WireError {
        WireError::Length { kind: self.kind, length: self.length }
    }

    /// The error for a field with a bad value.
    pub(crate) const fn field_error(&self, field: &'static str) -> WireError {
        WireError::Field { kind: self.kind, field }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(self.length_error())?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Refuses bytes behind the last field.
    pub(crate) const fn finish(&self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.length_error()) }
    }
}
