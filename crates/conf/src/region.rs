//! The lines and columns of a span, for programs that show or change a file.

use crate::tree::Span;

/// The unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnUnit {
    /// A character (Unicode scalar value). A byte that is no UTF-8 counts as one.
    Character,
    /// A unit of UTF-16, as SARIF and editors count.
    Utf16,
}

/// A range of a file: lines and columns from 1, the end behind the last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRegion {
    /// Line and column of the first byte.
    pub start: (u32, u32),
    /// Line and column behind the last byte.
    pub end: (u32, u32),
}

impl TextRegion {
    /// The region of a span. A span beyond the end of the file is cut there.
    pub fn of(bytes: &[u8], span: Span, unit: ColumnUnit) -> TextRegion {
        TextRegion { start: position(bytes, span.start, unit), end: position(bytes, span.end.max(span.start), unit) }
    }
}

fn position(bytes: &[u8], offset: u32, unit: ColumnUnit) -> (u32, u32) {
    let before = bytes.get(..offset as usize).unwrap_or(bytes);
    let line = before.iter().filter(|byte| **byte == b'\n').count();
    let own = before.iter().rposition(|byte| *byte == b'\n').and_then(|at| before.get(at + 1..)).unwrap_or(before);
    let text = String::from_utf8_lossy(own);
    let column = match unit {
        ColumnUnit::Character => text.chars().count(),
        ColumnUnit::Utf16 => text.encode_utf16().count(),
    };
    let from_one = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
    (from_one(line), from_one(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let text = "a b;\n# 한😀 x\nc d;".as_bytes();
        let of = |start, end, unit| {
            let region = TextRegion::of(text, Span { start, end }, unit);
            (region.start, region.end)
        };
        assert_eq!(of(0, 4, ColumnUnit::Character), ((1, 1), (1, 5)));
        assert_eq!(of(7, 14, ColumnUnit::Character), ((2, 3), (2, 5)));
        assert_eq!(of(7, 14, ColumnUnit::Utf16), ((2, 3), (2, 6)));
        assert_eq!(of(17, 18, ColumnUnit::Character), ((3, 1), (3, 2)));
        assert_eq!(of(900, 9_000, ColumnUnit::Character), ((3, 5), (3, 5)), "beyond the end");
        assert_eq!(of(3, 1, ColumnUnit::Character), ((1, 4), (1, 4)), "an empty span");
        assert_eq!(TextRegion::of(b"\xff\xfex", Span { start: 2, end: 3 }, ColumnUnit::Character).start, (1, 3));
    }
}
