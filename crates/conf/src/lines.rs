//! The lines of a text: offsets of bytes as lines and columns, and back.
//!
//! A table knows where the lines of a text begin, so a look-up does not read the text from its beginning. Lines and columns
//! of a [`TextPosition`] count from 0, as editors count; those of a [`TextRegion`] from 1, as people count.

use std::cell::OnceCell;
use std::ops::Range;

use crate::tree::{Span, Tree};

/// The unit of a column. A byte that is no UTF-8 counts as the character that it seems to begin, or as a part of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnUnit {
    /// A character (Unicode scalar value).
    Character,
    /// A unit of UTF-16, as SARIF and editors count.
    #[default]
    Utf16,
    /// A byte.
    Byte,
}

/// The bytes that end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// `\n`, as nginx counts.
    Newline,
    /// `\n`, `\r\n` or `\r`, as the Language Server Protocol counts.
    Any,
}

/// A place in a text: line and column, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A range of a text: lines and columns from 1, the end behind the last character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRegion {
    /// Line and column of the first byte.
    pub start: (u32, u32),
    /// Line and column behind the last byte.
    pub end: (u32, u32),
}

/// Bytes between two counts of units. A look-up reads at most so many bytes, however long a line is.
const STRIDE: usize = 4096;

/// The lines of a text.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    /// The first byte of each line.
    starts: Vec<u32>,
    /// The characters and the UTF-16 units before each [`STRIDE`] bytes.
    units: Vec<(u32, u32)>,
    /// Length of the text in bytes.
    length: usize,
}

impl LineTable {
    /// The lines of a text, which has less than 4 GiB.
    pub fn of(bytes: &[u8], end: LineEnd) -> LineTable {
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            let is_return = *byte == b'\r' && end == LineEnd::Any && bytes.get(at + 1) != Some(&b'\n');
            if *byte == b'\n' || is_return {
                starts.push(narrow(at + 1));
            }
        }
        let mut units = vec![(0, 0)];
        let (mut characters, mut utf16) = (0, 0);
        for piece in bytes.chunks(STRIDE) {
            characters += count(piece, ColumnUnit::Character);
            utf16 += count(piece, ColumnUnit::Utf16);
            units.push((characters, utf16));
        }
        LineTable { starts, units, length: bytes.len() }
    }

    /// The line of a byte, from 0; the last line for a byte behind the text.
    pub fn line_of(&self, offset: u32) -> u32 {
        narrow(self.starts.partition_point(|start| *start <= offset).saturating_sub(1))
    }

    /// The first byte of a line; the end of the text for a line behind it.
    pub fn start_of(&self, line: u32) -> u32 {
        self.starts.get(line as usize).copied().unwrap_or(narrow(self.length))
    }

    /// The position of a byte; the end of the text for a later one.
    pub fn position(&self, bytes: &[u8], offset: u32, unit: ColumnUnit) -> TextPosition {
        let offset = (offset as usize).min(self.length);
        let line = self.line_of(narrow(offset));
        let start = self.start_of(line) as usize;
        // Most lines are short.
        let is_near = unit == ColumnUnit::Byte || offset.saturating_sub(start) <= STRIDE;
        let column = if is_near {
            count(bytes.get(start..offset).unwrap_or_default(), unit)
        } else {
            self.before(bytes, offset, unit).saturating_sub(self.before(bytes, start, unit))
        };
        TextPosition { line, column }
    }

    /// The region of some bytes. Bytes behind the end of the text are cut there.
    pub fn region(&self, bytes: &[u8], span: Span, unit: ColumnUnit) -> TextRegion {
        let at = |offset: u32| {
            let TextPosition { line, column } = self.position(bytes, offset, unit);
            (line.saturating_add(1), column.saturating_add(1))
        };
        TextRegion { start: at(span.start), end: at(span.end.max(span.start)) }
    }

    /// The byte at a position. A column after the end of its line is the end of the line, a line after the end of the text is
    /// the end of the text, and a column inside a character is its first byte.
    pub fn offset(&self, bytes: &[u8], position: TextPosition, unit: ColumnUnit) -> u32 {
        let Some(start) = self.starts.get(position.line as usize).map(|start| *start as usize) else {
            return narrow(self.length);
        };
        let end = self.end_of(bytes, position.line as usize);
        let wanted = position.column as usize;
        let offset = match unit {
            ColumnUnit::Byte => {
                let mut at = start.saturating_add(wanted).min(end);
                while at > start && is_inner(bytes.get(at)) {
                    at -= 1;
                }
                at
            }
            ColumnUnit::Character | ColumnUnit::Utf16 => self.after(bytes, start..end, position.column, unit),
        };
        narrow(offset)
    }

    /// The end of a line, before its line break.
    fn end_of(&self, bytes: &[u8], line: usize) -> usize {
        let Some(next) = self.starts.get(line + 1).map(|next| *next as usize) else { return self.length };
        let at = |back: usize| next.checked_sub(back).and_then(|at| bytes.get(at));
        match (at(2), at(1)) {
            (Some(b'\r'), Some(b'\n')) => next - 2,
            _ => next - 1,
        }
    }

    /// The units before a byte of the text.
    fn before(&self, bytes: &[u8], offset: usize, unit: ColumnUnit) -> u32 {
        let stride = offset / STRIDE;
        let known = self.units.get(stride).map_or(0, |units| of_unit(*units, unit));
        known.saturating_add(count(bytes.get(stride * STRIDE..offset).unwrap_or_default(), unit))
    }

    /// The byte that lies so many units after the start of a line, at most its end.
    fn after(&self, bytes: &[u8], line: Range<usize>, units: u32, unit: ColumnUnit) -> usize {
        let Range { start, end } = line;
        let wanted = self.before(bytes, start, unit).saturating_add(units);
        // The last stride that begins at or before the place.
        let stride = self.units.partition_point(|before| of_unit(*before, unit) <= wanted).saturating_sub(1);
        let from = (stride * STRIDE).max(start);
        let mut counted = self.before(bytes, from.min(self.length), unit);
        let mut at = from;
        while at < end {
            let one = bytes.get(at).map_or(0, |byte| count(&[*byte], unit));
            if counted + one > wanted {
                break;
            }
            counted += one;
            at += 1;
        }
        // A place inside a character, or between its bytes.
        while at > start && is_inner(bytes.get(at)) {
            at -= 1;
        }
        at.min(end)
    }
}

/// The lines of the files of a tree. Those of a file are found once, when they are first asked for.
pub struct TreeLines<'t> {
    tree: &'t Tree,
    tables: Vec<OnceCell<LineTable>>,
}

impl<'t> TreeLines<'t> {
    /// The lines of a tree.
    pub fn new(tree: &'t Tree) -> TreeLines<'t> {
        TreeLines { tree, tables: tree.files.iter().map(|_| OnceCell::new()).collect() }
    }

    /// The region of some bytes of a file; `None` if there is no such file.
    pub fn region(&self, file: u32, span: Span, unit: ColumnUnit) -> Option<TextRegion> {
        let bytes = &self.tree.files.get(file as usize)?.bytes;
        let table = self.tables.get(file as usize)?.get_or_init(|| LineTable::of(bytes, LineEnd::Newline));
        Some(table.region(bytes, span, unit))
    }
}

fn of_unit((characters, utf16): (u32, u32), unit: ColumnUnit) -> u32 {
    if unit == ColumnUnit::Character { characters } else { utf16 }
}

/// The units of some bytes: each first byte of a character counts, so that the sum of two pieces is that of the whole.
fn count(bytes: &[u8], unit: ColumnUnit) -> u32 {
    if unit == ColumnUnit::Byte || bytes.is_ascii() {
        return narrow(bytes.len());
    }
    let of = |byte: &u8| match (byte, unit) {
        (0x80..=0xbf, _) => 0,
        (0xf0..=0xff, ColumnUnit::Utf16) => 2,
        _ => 1,
    };
    bytes.iter().map(of).sum()
}

/// Whether a byte is within a character of UTF-8.
fn is_inner(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| (0x80..=0xbf).contains(byte))
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32) -> TextPosition {
        TextPosition { line, column }
    }

    #[test]
    fn regions_count_from_one() {
        let text = "a b;\n# 한😀 x\nc d;".as_bytes();
        let lines = LineTable::of(text, LineEnd::Newline);
        let of = |start, end, unit| {
            let region = lines.region(text, Span { start, end }, unit);
            (region.start, region.end)
        };
        assert_eq!(of(0, 4, ColumnUnit::Character), ((1, 1), (1, 5)));
        assert_eq!(of(7, 14, ColumnUnit::Character), ((2, 3), (2, 5)));
        assert_eq!(of(7, 14, ColumnUnit::Utf16), ((2, 3), (2, 6)));
        assert_eq!(of(17, 18, ColumnUnit::Character), ((3, 1), (3, 2)));
        assert_eq!(of(900, 9_000, ColumnUnit::Character), ((3, 5), (3, 5)), "beyond the end");
        assert_eq!(of(3, 1, ColumnUnit::Character), ((1, 4), (1, 4)), "an empty span");
        let bytes = b"\xff\xfex";
        let lines = LineTable::of(bytes, LineEnd::Newline);
        assert_eq!(lines.region(bytes, Span { start: 2, end: 3 }, ColumnUnit::Character).start, (1, 3));
    }

    #[test]
    fn a_return_alone_ends_a_line_of_the_protocol_but_none_of_nginx() {
        let text = b"a\rb\r\nc";
        let line = |end| LineTable::of(text, end).position(text, 5, ColumnUnit::Byte);
        assert_eq!(line(LineEnd::Any), at(2, 0));
        assert_eq!(line(LineEnd::Newline), at(1, 0));
        let lines = LineTable::of(text, LineEnd::Newline);
        assert_eq!((lines.line_of(3), lines.start_of(1), lines.start_of(9)), (0, 5, 6));
    }

    #[test]
    fn each_file_of_a_tree_has_its_own_lines() {
        let files = crate::MemoryFiles::new().with("/n", "a;\ninclude /b;").with("/b", "\n\nc;");
        let (tree, _) = crate::load(&files, "/n", "/", &|_| false);
        let lines = TreeLines::new(&tree);
        let of = |file, start| lines.region(file, Span { start, end: start }, ColumnUnit::Utf16);
        assert_eq!(of(0, 3).map(|region| region.start), Some((2, 1)));
        assert_eq!(of(1, 2).map(|region| region.start), Some((3, 1)));
        assert_eq!(of(2, 0), None);
    }

    #[test]
    fn places_count_utf16_units_or_bytes() {
        let text = "a\nb가😀c\r\nd\re".as_bytes();
        let lines = LineTable::of(text, LineEnd::Any);
        assert_eq!(lines.starts.len(), 4);
        // Byte, position in UTF-16, position in UTF-8.
        for (offset, utf16, utf8) in [
            (0, at(0, 0), at(0, 0)),
            (1, at(0, 1), at(0, 1)),
            (2, at(1, 0), at(1, 0)),
            (3, at(1, 1), at(1, 1)),
            (6, at(1, 2), at(1, 4)),
            (10, at(1, 4), at(1, 8)),
            (11, at(1, 5), at(1, 9)),
            (13, at(2, 0), at(2, 0)),
            (15, at(3, 0), at(3, 0)),
            (16, at(3, 1), at(3, 1)),
        ] {
            assert_eq!(lines.position(text, offset, ColumnUnit::Utf16), utf16, "{offset}");
            assert_eq!(lines.position(text, offset, ColumnUnit::Byte), utf8, "{offset}");
            assert_eq!(lines.offset(text, utf16, ColumnUnit::Utf16), offset);
            assert_eq!(lines.offset(text, utf8, ColumnUnit::Byte), offset);
        }
    }

    #[test]
    fn a_place_that_no_byte_has_is_the_nearest_one_before() {
        let text = "ab\r\n가😀\n".as_bytes();
        let lines = LineTable::of(text, LineEnd::Any);
        let offset = |line, character| lines.offset(text, at(line, character), ColumnUnit::Utf16);
        assert_eq!(offset(0, 99), 2, "the end of the line, before its line break");
        assert_eq!(offset(1, 2), 7, "inside the surrogate pair");
        assert_eq!(offset(9, 0), 12);
        assert_eq!(offset(0, u32::MAX), 2);
        assert_eq!(lines.offset(text, at(1, 1), ColumnUnit::Byte), 4);
        assert_eq!(lines.position(text, 999, ColumnUnit::Utf16), at(2, 0));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

        #[test]
        fn each_character_has_one_place(text in "[a가😀\n]{0,200}", fill in 0usize..2) {
            // With the filling, the text has several strides.
            let text = format!("{}{text}", "가나다".repeat(fill * 700));
            let lines = LineTable::of(text.as_bytes(), LineEnd::Any);
            let (mut line, mut units) = (0, 0);
            let mut characters = 0;
            for (offset, c) in text.char_indices() {
                for (unit, column) in [(ColumnUnit::Utf16, units), (ColumnUnit::Character, characters)] {
                    let position = lines.position(text.as_bytes(), offset as u32, unit);
                    proptest::prop_assert_eq!(position, at(line, column));
                    proptest::prop_assert_eq!(lines.offset(text.as_bytes(), position, unit), offset as u32);
                }
                (line, units) = if c == '\n' { (line + 1, 0) } else { (line, units + c.len_utf16() as u32) };
                characters = if c == '\n' { 0 } else { characters + 1 };
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_places(bytes: Vec<u8>, offset: u16, line: u8, character: u32) {
            let lines = LineTable::of(&bytes, LineEnd::Any);
            for unit in [ColumnUnit::Character, ColumnUnit::Utf16, ColumnUnit::Byte] {
                lines.position(&bytes, u32::from(offset), unit);
                let found = lines.offset(&bytes, at(u32::from(line), character), unit);
                proptest::prop_assert!(found as usize <= bytes.len());
            }
        }
    }
}
