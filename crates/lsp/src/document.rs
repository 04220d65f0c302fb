//! The text of an open file, as the client has it.

use weir_conf::{ColumnUnit, LineEnd, LineTable, TextPosition};
use weir_words::{Said, say};

use crate::texts;

/// Most bytes of one open document.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// Most bytes that the changes of one message may move: the length of the text, for each change.
const MOVED_BYTES_MAX: usize = 1 << 30;

/// A file that the client has open.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its URI, as the client writes it.
    pub uri: String,
    /// Its path, as the client writes it.
    pub path: String,
    /// The client's number of its state.
    pub version: i64,
    /// The text.
    pub bytes: Vec<u8>,
    /// The lines of the text.
    pub lines: LineTable,
    /// Whether it has one of nginx's outermost blocks.
    pub is_main: bool,
    /// Why weir does not read it; then the text is empty.
    pub refusal: Option<Said>,
}

/// One change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The replaced part; `None` for the whole text.
    pub range: Option<(TextPosition, TextPosition)>,
    /// The text in its place.
    pub text: String,
}

impl Document {
    /// A document that was opened.
    pub fn new(uri: String, path: String, version: i64, text: String) -> Document {
        let lines = LineTable::of(&[], LineEnd::Any);
        let mut document = Document { uri, path, version, bytes: Vec::new(), lines, is_main: false, refusal: None };
        document.set(text.into_bytes());
        document.is_main = is_main(&document.bytes);
        document
    }

    /// Makes the changes of one message, in their order. If weir cannot make them, it does not read the document until the client
    /// sends its whole text.
    pub fn change(&mut self, version: i64, changes: Vec<TextChange>, unit: ColumnUnit) {
        self.version = version;
        let mut moved = 0_usize;
        for change in changes {
            let Some((start, end)) = change.range else {
                self.set(change.text.into_bytes());
                continue;
            };
            if self.refusal.is_some() {
                continue;
            }
            moved = moved.saturating_add(self.bytes.len());
            if moved > MOVED_BYTES_MAX {
                self.refuse(say!(texts::TOO_MANY_CHANGES));
                continue;
            }
            let start = self.lines.offset(&self.bytes, start, unit) as usize;
            let end = (self.lines.offset(&self.bytes, end, unit) as usize).max(start);
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.splice(start..end, change.text.into_bytes());
            self.set(bytes);
        }
        self.is_main = is_main(&self.bytes);
    }

    fn set(&mut self, bytes: Vec<u8>) {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            self.refuse(say!(texts::DOCUMENT_TOO_LARGE, DOCUMENT_BYTES_MAX));
            return;
        }
        self.lines = LineTable::of(&bytes, LineEnd::Any);
        self.bytes = bytes;
        self.refusal = None;
    }

    /// Drops the text, and keeps the reason.
    pub fn refuse(&mut self, why: Said) {
        self.bytes = Vec::new();
        self.lines = LineTable::of(&[], LineEnd::Any);
        self.is_main = false;
        self.refusal = Some(why);
    }
}

/// Whether a file is a main file: it has one of nginx's outermost blocks.
pub fn is_main(bytes: &[u8]) -> bool {
    let parsed = weir_conf::parse(bytes, 0, &|name| name.ends_with("_by_lua_block"));
    let is_outermost = |name: &str| matches!(name, "events" | "http" | "stream" | "mail");
    parsed.statements.iter().any(|statement| statement.is_block() && is_outermost(&statement.name.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::new("file:///a".into(), "/a".into(), 1, text.into())
    }

    fn part(from: (u32, u32), to: (u32, u32), text: &str) -> TextChange {
        let at = |(line, column)| TextPosition { line, column };
        TextChange { range: Some((at(from), at(to))), text: text.into() }
    }

    #[test]
    fn changes_are_made_in_their_order() {
        let mut open = document("a 가;\nb;\n");
        let changes = vec![part((0, 2), (0, 3), "나다"), part((1, 0), (1, 1), "c\nd"), part((0, 4), (1, 0), "; ")];
        open.change(2, changes, ColumnUnit::Utf16);
        assert_eq!(String::from_utf8_lossy(&open.bytes), "a 나다; c\nd;\n");
        assert_eq!(open.version, 2);
        open.change(3, vec![TextChange { range: None, text: "x".into() }], ColumnUnit::Utf16);
        assert_eq!(open.bytes, b"x");
        // A range whose end is before its start is an insertion.
        open.change(4, vec![part((0, 1), (0, 0), "y")], ColumnUnit::Utf16);
        assert_eq!(open.bytes, b"xy");
    }

    #[test]
    fn a_text_that_grows_too_large_is_refused_until_it_is_sent_again() {
        let mut open = document(&"a".repeat(DOCUMENT_BYTES_MAX));
        assert_eq!(open.refusal, None);
        open.change(2, vec![part((0, 0), (0, 0), "b")], ColumnUnit::Utf16);
        assert!(open.refusal.is_some() && open.bytes.is_empty());
        open.change(3, vec![part((0, 0), (0, 0), "b")], ColumnUnit::Utf16);
        assert!(open.refusal.is_some() && open.bytes.is_empty());
        open.change(4, vec![TextChange { range: None, text: "c".into() }], ColumnUnit::Utf16);
        assert!(open.refusal.is_none() && open.bytes == b"c");
        let mut open = document(&"a".repeat(1 << 20));
        open.change(2, vec![part((0, 0), (0, 0), ""); 2_000], ColumnUnit::Utf16);
        assert!(open.refusal.is_some_and(|why| why.is(texts::TOO_MANY_CHANGES)));
    }
}
