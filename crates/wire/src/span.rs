//! Ranges of the buffer that a head was parsed from, and the fields made of them.

use crate::known::Known;

/// A range of the buffer a head was parsed from.
///
/// Half-open, in bytes; `u32` because a head is always far below 4 GiB (see [`crate::parse::HEAD_BYTES_MAX`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of `start..end`; positions beyond `u32::MAX` saturate.
    #[inline]
    pub fn new(start: usize, end: usize) -> Span {
        let clip = |n: usize| n.min(u32::MAX as usize) as u32;
        Span { start: clip(start), end: clip(end) }
    }

    /// The bytes of this span; empty if `buf` is another buffer and too short.
    #[inline]
    pub fn of(self, buf: &[u8]) -> &[u8] {
        buf.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether the span covers no byte.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// One field line (RFC 9110 §5), the parser has already looked up its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as it was sent.
    pub name: Span,
    /// The value without surrounding spaces and tabs (RFC 9110 §5.5 OWS).
    pub value: Span,
    /// The name's place in the table of names that weir acts on.
    pub known: Option<Known>,
}
