//! A decoded field section.

use crate::known::Known;
use crate::span::{Field, Span};

use super::text::NotText;

/// A field section: one buffer, and each field as ranges of it, in order. Pseudo-header fields keep their colon.
///
/// If an object is reused, its memory stays.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Names and values.
    pub bytes: Vec<u8>,
    /// The fields.
    pub fields: Vec<Field>,
    /// Its length in bytes on the wire.
    pub sent: usize,
    /// The section was larger than the caller's limit: fields that did not fit are not in it.
    pub is_too_large: bool,
    size: usize,
}

impl Block {
    /// Forgets the last section; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.sent = 0;
        self.is_too_large = false;
        self.size = 0;
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|field| (field.name.of(&self.bytes), field.value.of(&self.bytes)))
    }

    /// Keeps a field unless the limit is exceeded; only names and values count, as in HTTP/1.1 and in nginx.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8], known: Option<Known>, limit: usize) {
        self.size = self.size.saturating_add(name.len() + value.len());
        if self.size > limit {
            self.is_too_large = true;
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.fields.push(Field { name: Span::new(start, middle), value: Span::new(middle, end), known });
    }

    /// As [`Block::push`], for a field whose name and value `write` appends; it returns the end of the name.
    pub(crate) fn push_with(
        &mut self,
        limit: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(usize, Option<Known>), NotText>,
    ) -> Result<(), NotText> {
        let start = self.bytes.len();
        let (middle, known) = write(&mut self.bytes)?;
        let end = self.bytes.len();
        self.size = self.size.saturating_add(end - start);
        if self.size > limit {
            self.is_too_large = true;
            self.bytes.truncate(start);
            return Ok(());
        }
        self.fields.push(Field { name: Span::new(start, middle), value: Span::new(middle, end), known });
        Ok(())
    }
}
