//! Offsets of bytes and positions of the protocol.
//!
//! A position is a line and a place in the line, from 0. The place counts UTF-16 units, or bytes if the client takes UTF-8. A
//! line ends at `\n`, `\r\n` or `\r`, as the protocol says.

/// The unit of a position's place in its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16 units, which every client knows.
    #[default]
    Utf16,
    /// Bytes.
    Utf8,
}

impl Encoding {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf16 => "utf-16",
            Encoding::Utf8 => "utf-8",
        }
    }
}

/// A place in a text: line and place in the line, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The place in the line, in the unit of the [`Encoding`].
    pub character: u32,
}

/// Bytes between two counts of UTF-16 units. A look-up reads at most so many bytes, however long a line is.
const STRIDE: usize = 4096;

/// The lines of a text.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    /// The first byte of each line.
    starts: Vec<u32>,
    /// The UTF-16 units before each [`STRIDE`] bytes.
    units: Vec<u32>,
    /// Length of the text in bytes.
    length: usize,
}

impl LineTable {
    /// The lines of a text, which has less than 4 GiB.
    pub fn of(bytes: &[u8]) -> LineTable {
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            let ends = *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
            if ends {
                starts.push(narrow(at + 1));
            }
        }
        let mut units = vec![0];
        let mut sum = 0;
        for piece in bytes.chunks(STRIDE) {
            sum += units_of(piece);
            units.push(sum);
        }
        LineTable { starts, units, length: bytes.len() }
    }

    /// The position of a byte; the end of the text for a later one.
    pub fn position(&self, bytes: &[u8], offset: u32, encoding: Encoding) -> Position {
        let offset = (offset as usize).min(self.length);
        let line = self.starts.partition_point(|start| *start as usize <= offset).saturating_sub(1);
        let start = self.starts.get(line).map_or(0, |start| *start as usize);
        let character = match encoding {
            Encoding::Utf8 => narrow(offset - start),
            Encoding::Utf16 => self.before(bytes, offset).saturating_sub(self.before(bytes, start)),
        };
        Position { line: narrow(line), character }
    }

    /// The byte at a position. A place after the end of its line is the end of the line, a line after the end of the text is
    /// the end of the text, and a place inside a character is its first byte.
    pub fn offset(&self, bytes: &[u8], position: Position, encoding: Encoding) -> u32 {
        let Some(start) = self.starts.get(position.line as usize).map(|start| *start as usize) else {
            return narrow(self.length);
        };
        let end = self.end_of(bytes, position.line as usize);
        let wanted = position.character as usize;
        let offset = match encoding {
            Encoding::Utf8 => {
                let mut at = start.saturating_add(wanted).min(end);
                while at > start && is_inner(bytes.get(at)) {
                    at -= 1;
                }
                at
            }
            Encoding::Utf16 => self.after(bytes, start, end, position.character),
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

    /// The UTF-16 units before a byte of the text.
    fn before(&self, bytes: &[u8], offset: usize) -> u32 {
        let stride = offset / STRIDE;
        let known = self.units.get(stride).copied().unwrap_or(0);
        known.saturating_add(units_of(bytes.get(stride * STRIDE..offset).unwrap_or_default()))
    }

    /// The byte that lies so many UTF-16 units after `start`, at most `end`.
    fn after(&self, bytes: &[u8], start: usize, end: usize, units: u32) -> usize {
        let wanted = self.before(bytes, start).saturating_add(units);
        // The last stride that begins at or before the place.
        let stride = self.units.partition_point(|before| *before <= wanted).saturating_sub(1);
        let from = (stride * STRIDE).max(start);
        let mut counted = self.before(bytes, from.min(self.length));
        let mut at = from;
        while at < end {
            let unit = bytes.get(at).map_or(0, |byte| units_of(&[*byte]));
            if counted + unit > wanted {
                break;
            }
            counted += unit;
            at += 1;
        }
        // A place inside a character, or between its bytes.
        while at > start && is_inner(bytes.get(at)) {
            at -= 1;
        }
        at.min(end)
    }
}

/// The UTF-16 units of some bytes: each first byte of a character counts, so that the sum of two pieces is that of the whole.
fn units_of(bytes: &[u8]) -> u32 {
    if bytes.is_ascii() {
        return narrow(bytes.len());
    }
    let unit = |byte: &u8| match byte {
        0x80..=0xbf => 0,
        0xf0..=0xff => 2,
        _ => 1,
    };
    bytes.iter().map(unit).sum()
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

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn places_count_utf16_units_or_bytes() {
        let text = "a\nb가😀c\r\nd\re".as_bytes();
        let lines = LineTable::of(text);
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
            assert_eq!(lines.position(text, offset, Encoding::Utf16), utf16, "{offset}");
            assert_eq!(lines.position(text, offset, Encoding::Utf8), utf8, "{offset}");
            assert_eq!(lines.offset(text, utf16, Encoding::Utf16), offset);
            assert_eq!(lines.offset(text, utf8, Encoding::Utf8), offset);
        }
    }

    #[test]
    fn a_place_that_no_byte_has_is_the_nearest_one_before() {
        let text = "ab\r\n가😀\n".as_bytes();
        let lines = LineTable::of(text);
        let offset = |line, character| lines.offset(text, at(line, character), Encoding::Utf16);
        assert_eq!(offset(0, 99), 2, "the end of the line, before its line break");
        assert_eq!(offset(1, 2), 7, "inside the surrogate pair");
        assert_eq!(offset(9, 0), 12);
        assert_eq!(offset(0, u32::MAX), 2);
        assert_eq!(lines.offset(text, at(1, 1), Encoding::Utf8), 4);
        assert_eq!(lines.position(text, 999, Encoding::Utf16), at(2, 0));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

        #[test]
        fn each_character_has_one_place(text in "[a가😀\n]{0,200}", fill in 0usize..2) {
            // With the filling, the text has several strides.
            let text = format!("{}{text}", "가나다".repeat(fill * 500));
            let lines = LineTable::of(text.as_bytes());
            let (mut line, mut units) = (0, 0);
            for (offset, c) in text.char_indices() {
                let position = lines.position(text.as_bytes(), offset as u32, Encoding::Utf16);
                proptest::prop_assert_eq!(position, at(line, units));
                proptest::prop_assert_eq!(lines.offset(text.as_bytes(), position, Encoding::Utf16), offset as u32);
                (line, units) = if c == '\n' { (line + 1, 0) } else { (line, units + c.len_utf16() as u32) };
            }
        }

    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_places(bytes: Vec<u8>, offset: u16, line: u8, character: u32) {
            let lines = LineTable::of(&bytes);
            for encoding in [Encoding::Utf16, Encoding::Utf8] {
                lines.position(&bytes, u32::from(offset), encoding);
                let found = lines.offset(&bytes, at(u32::from(line), character), encoding);
                proptest::prop_assert!(found as usize <= bytes.len());
            }
        }
    }
}
