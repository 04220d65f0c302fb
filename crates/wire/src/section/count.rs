//! The length of a body against its Content-Length.

use crate::framing::content_length;
use crate::known::Known;

use super::block::Block;
use super::message::Malformed;

/// Counts the bytes of one body (RFC 9113 §8.1.1, RFC 9114 §4.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyCount {
    declared: Option<u64>,
    received: u64,
}

impl BodyCount {
    /// A body of this length, if it is declared.
    pub fn new(declared: Option<u64>) -> BodyCount {
        BodyCount { declared, received: 0 }
    }

    /// The body after a head with these fields.
    pub fn of(block: &Block) -> Result<BodyCount, Malformed> {
        let mut found = None;
        for field in block.fields.iter().filter(|field| field.known == Some(Known::ContentLength)) {
            let length = content_length(field.value.of(&block.bytes));
            if length.is_none() || found.is_some_and(|before| Some(before) != length) {
                return Err("a content-length that is none");
            }
            found = length;
        }
        Ok(BodyCount::new(found))
    }

    /// Counts a piece.
    pub fn take(&mut self, length: usize) -> Result<(), Malformed> {
        self.received = self.received.saturating_add(length as u64);
        if self.declared.is_some_and(|declared| self.received > declared) {
            return Err("a body longer than its content-length");
        }
        Ok(())
    }

    /// The body has ended.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.declared.is_some_and(|declared| self.received != declared) {
            return Err("a body shorter than its content-length");
        }
        Ok(())
    }

    /// How many bytes are still to come, if the length was declared.
    pub fn left(&self) -> Option<u64> {
        self.declared.map(|declared| declared.saturating_sub(self.received))
    }
}
