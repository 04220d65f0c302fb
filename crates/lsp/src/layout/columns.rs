//! The columns of a text.

/// The columns from one tab stop to the next.
const TAB_COLUMNS: i64 = 8;

/// Counts columns through a text from its beginning on.
pub(super) struct Columns<'b> {
    bytes: &'b [u8],
    at: usize,
    column: i64,
}

impl<'b> Columns<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Columns<'b> {
        Columns { bytes, at: 0, column: 0 }
    }

    /// The column of a byte, from 0. Bytes are asked for in rising order.
    pub(super) fn to(&mut self, offset: u32) -> i64 {
        let offset = offset as usize;
        for byte in self.bytes.get(self.at..offset).unwrap_or_default() {
            self.column = after(self.column, *byte);
        }
        self.at = self.at.max(offset);
        self.column
    }
}

fn after(column: i64, byte: u8) -> i64 {
    match byte {
        b'\n' => 0,
        b'\t' => (column / TAB_COLUMNS + 1) * TAB_COLUMNS,
        // The bytes of a character behind its first.
        0x80..=0xbf => column,
        _ => column + 1,
    }
}

/// The number of columns of a text on one line that begins at a tab stop.
pub(super) fn width_of(text: &[u8]) -> i64 {
    text.iter().fold(0, |column, byte| after(column, *byte))
}
