//! Reads CSV text as csv-parse 4 does, which Artillery uses: the same records, lines and errors. Writes CSV that it reads.
//!
//! There are three exceptions. weir removes a byte order mark, and csv-parse puts it into the first field. A comment at
//! the end of the last skipped line ends with its line, and csv-parse loses the next line too. An error shows a whole
//! character, and csv-parse shows its first byte.
//!
//! The first line end outside quotes says how all lines end: `\n`, `\r\n` or `\r`. Lines are counted as csv-parse counts
//! them: each `\r` and each `\n` inside quotes is one.

use weir_words::{Said, say};

use crate::texts::script as texts;
use crate::value::is_space;

/// The CSV format of a file, with csv-parse's meaning of the options.
#[derive(Clone, Debug)]
pub(crate) struct CsvFormat {
    pub delimiter: u8,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub comment: Option<u8>,
    pub from_line: u64,
    pub to_line: u64,
    /// White space before a field is left out.
    pub trims_left: bool,
    /// White space after a field is left out.
    pub trims_right: bool,
    /// A quote inside a field is a byte of it.
    pub is_relaxed: bool,
    /// Records may differ in length.
    pub is_ragged: bool,
    /// An empty line is a record with an empty field.
    pub keeps_empty: bool,
}

/// The records; `value` makes a value of a field. The error names the problem and the line.
pub(crate) fn read<V>(bytes: &[u8], format: &CsvFormat, value: impl Fn(&str) -> V) -> Result<Vec<Vec<V>>, Said> {
    let mut reader = Reader {
        format,
        value,
        line_end: None,
        line: 1,
        ends_line: false,
        is_enabled: format.from_line <= 1,
        is_quoting: false,
        was_quoted: false,
        is_escaped: false,
        is_comment: false,
        field: Vec::new(),
        record: Vec::new(),
        records: Vec::new(),
    };
    // A byte order mark is no part of the first field.
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    while let Some(&byte) = rest.first() {
        reader.line += u64::from(std::mem::take(&mut reader.ends_line));
        if reader.line > format.to_line {
            return Ok(reader.records);
        }
        if !reader.is_quoting {
            reader.learn_line_end(rest);
        }
        reader.ends_line = matches!(byte, b'\r' | b'\n');
        let taken = reader.take(byte, rest)?;
        rest = rest.get(taken..).unwrap_or_default();
    }
    reader.end()
}

/// Adds a record to a CSV text, with quotes where they are needed.
pub(crate) fn write<'v>(fields: impl Iterator<Item = &'v str>, text: &mut String) {
    let start = text.len();
    for (index, field) in fields.enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        if field.contains([',', '"', '\r', '\n']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(field);
        }
    }
    // An empty line would be no record.
    text.push_str(if text.len() == start { "\"\"\n" } else { "\n" });
}

struct Reader<'f, F, V> {
    format: &'f CsvFormat,
    value: F,
    /// The line end of this text, once one was found.
    line_end: Option<&'static [u8]>,
    line: u64,
    /// The last byte ended a line.
    ends_line: bool,
    /// `from_line` is reached.
    is_enabled: bool,
    is_quoting: bool,
    was_quoted: bool,
    is_escaped: bool,
    is_comment: bool,
    field: Vec<u8>,
    record: Vec<V>,
    records: Vec<Vec<V>>,
}

impl<V, F: Fn(&str) -> V> Reader<'_, F, V> {
    fn learn_line_end(&mut self, rest: &[u8]) {
        if self.line_end.is_none() {
            self.line_end = match rest {
                [b'\r', b'\n', ..] => Some(b"\r\n"),
                [b'\r', ..] => Some(b"\r"),
                [b'\n', ..] => Some(b"\n"),
                _ => None,
            };
        }
    }

    /// The line end at the start of `rest`.
    fn line_end_at(&self, rest: &[u8]) -> Option<&'static [u8]> {
        self.line_end.filter(|end| rest.starts_with(end))
    }

    /// Takes the first byte of `rest`, and what belongs to it; returns the number of bytes.
    fn take(&mut self, byte: u8, rest: &[u8]) -> Result<usize, Said> {
        let format = self.format;
        if std::mem::take(&mut self.is_escaped) {
            return self.append(byte).map(|()| 1);
        }
        let next = rest.get(1).copied();
        if self.is_quoting && format.escape == Some(byte) && next.is_some() {
            self.is_escaped = format.escape != format.quote || next == format.quote;
            if self.is_escaped {
                return Ok(1);
            }
        }
        if !self.is_comment && format.quote == Some(byte) && self.take_quote(byte, rest.get(1..).unwrap_or_default())? {
            return Ok(1);
        }
        if !self.is_quoting {
            if let Some(end) = self.line_end_at(rest) {
                self.end_line()?;
                return Ok(end.len());
            }
            if self.is_comment || format.comment == Some(byte) {
                self.is_comment = true;
                return Ok(1);
            }
            if format.delimiter == byte {
                self.end_field();
                return Ok(1);
            }
        }
        self.append(byte).map(|()| 1)
    }

    /// Takes a quote that begins or ends a quoted field. `false`: the quote is a byte of the field.
    fn take_quote(&mut self, quote: u8, after: &[u8]) -> Result<bool, Said> {
        let format = self.format;
        if !self.is_quoting {
            if self.field.is_empty() {
                self.is_quoting = true;
                return Ok(true);
            }
            return if format.is_relaxed { Ok(false) } else { Err(say!(texts::OPENING_QUOTE, self.line)) };
        }
        self.learn_line_end(after);
        let may_follow = |next: u8| {
            next == 0
                || next == format.delimiter
                || format.comment == Some(next)
                || format.trims_right && is_blank(next)
                || self.line_end_at(after).is_some()
        };
        let is_end = after.first().is_none_or(|&next| may_follow(next));
        if !is_end && !format.is_relaxed {
            let next = String::from_utf8_lossy(after.get(..4).unwrap_or(after)).chars().next().unwrap_or_default();
            return Err(say!(texts::CLOSING_QUOTE, next.to_string(), self.line));
        }
        (self.is_quoting, self.was_quoted) = (false, true);
        if !is_end {
            self.field.insert(0, quote);
        }
        Ok(is_end)
    }

    fn append(&mut self, byte: u8) -> Result<(), Said> {
        let format = self.format;
        let is_blank = is_blank(byte);
        if format.trims_right && self.was_quoted {
            return if is_blank { Ok(()) } else { Err(say!(texts::AFTER_QUOTE, self.line)) };
        }
        if !(format.trims_left && !self.is_quoting && self.field.is_empty() && is_blank) {
            self.field.push(byte);
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), Said> {
        let is_bare = self.record.is_empty() && self.field.is_empty() && !self.was_quoted;
        let was_comment = std::mem::take(&mut self.is_comment);
        if is_bare && (was_comment || self.is_enabled && !self.format.keeps_empty) {
            return Ok(());
        }
        if !self.is_enabled {
            self.is_enabled = self.line + 1 >= self.format.from_line;
            self.field.clear();
            self.was_quoted = false;
            return Ok(());
        }
        self.end_field();
        self.end_record()
    }

    fn end_field(&mut self) {
        if self.is_enabled {
            let field = String::from_utf8_lossy(&self.field);
            let trims = self.format.trims_right && !self.was_quoted;
            self.record.push((self.value)(if trims { field.trim_end_matches(is_space) } else { &field }));
        }
        self.field.clear();
        self.was_quoted = false;
    }

    fn end_record(&mut self) -> Result<(), Said> {
        let record = std::mem::take(&mut self.record);
        match self.records.first().map(Vec::len) {
            Some(expected) if expected != record.len() && !self.format.is_ragged => {
                Err(say!(texts::RECORD_LENGTH, expected, record.len(), self.line))
            }
            _ => {
                self.records.push(record);
                Ok(())
            }
        }
    }

    /// The end of the text.
    fn end(mut self) -> Result<Vec<Vec<V>>, Said> {
        if self.is_quoting {
            return Err(say!(texts::OPEN_QUOTE, self.line));
        }
        if self.is_enabled && (self.was_quoted || !self.record.is_empty() || !self.field.is_empty()) {
            self.end_field();
            self.end_record()?;
        }
        Ok(self.records)
    }
}

/// True for a byte that csv-parse trims before a field and after a quote. Elsewhere it uses JavaScript's `trimRight`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\x0c')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLAIN: CsvFormat = CsvFormat {
        delimiter: b',',
        quote: Some(b'"'),
        escape: Some(b'"'),
        comment: None,
        from_line: 1,
        to_line: u64::MAX,
        trims_left: false,
        trims_right: false,
        is_relaxed: false,
        is_ragged: false,
        keeps_empty: false,
    };

    fn shown(csv: &str, format: &CsvFormat) -> String {
        match read(csv.as_bytes(), format, str::to_owned) {
            Ok(records) => records.iter().map(|record| record.join("|")).collect::<Vec<_>>().join("/"),
            Err(why) => why.en().to_owned(),
        }
    }

    /// csv-parse 4.16.3 gave these results.
    #[test]
    fn lines_are_those_of_csv_parse_however_they_end() {
        let from = |from_line| CsvFormat { from_line, ..PLAIN };
        let to = |to_line| CsvFormat { to_line, ..PLAIN };
        let kept = CsvFormat { keeps_empty: true, ..PLAIN };
        for end in ["\n", "\r\n", "\r"] {
            for (format, lines, rows) in [
                (PLAIN, &["a,b", "1,2", ""][..], "a|b/1|2"),
                (from(2), &["a,b", "1,2", "3,4", ""], "1|2/3|4"),
                (from(2), &["a,b", "1,2"], "1|2"),
                (from(3), &["a,b", "1,2", "3,4"], "3|4"),
                (from(2), &["a,b"], ""),
                (to(2), &["a,b", "1,2", "3,4"], "a|b/1|2"),
                (to(1), &["a,b", "1,2"], "a|b"),
                (PLAIN, &["", "a", "", "", "b", ""], "a/b"),
                (kept.clone(), &["", "a", "", "", "b", "", ""], "/a///b/"),
                (PLAIN, &["a,b", "1"], "Invalid Record Length: expect 2, got 1 on line 2"),
                (PLAIN, &["a,b", "", "1,2", "3"], "Invalid Record Length: expect 2, got 1 on line 4"),
            ] {
                assert_eq!(shown(&lines.join(end), &format), rows, "{end:?} {lines:?} {format:?}");
            }
        }
    }

    #[test]
    fn a_field_may_have_several_lines_and_each_end_of_them_counts() {
        let text = "id,note\r\n1,\"x\r\ny\"\r\n2,z\r\n";
        assert_eq!(shown(text, &CsvFormat { from_line: 2, ..PLAIN }), "1|x\r\ny/2|z");
        // `\r\n` in quotes is two lines for csv-parse: the third and the fourth.
        assert_eq!(shown(text, &CsvFormat { from_line: 5, ..PLAIN }), "2|z");
        assert_eq!(shown(text, &CsvFormat { to_line: 4, ..PLAIN }), "id|note/1|x\r\ny");
        assert_eq!(shown("a\nb\r\n", &PLAIN), "a/b\r");
        assert_eq!(shown("a\r\nb\nc\r\n", &PLAIN), "a/b\nc");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let records = [vec!["a", "b,c"], vec!["say \"x\"", "two\nlines"], vec!["", "\r"]];
        let mut text = String::new();
        records.iter().for_each(|record| write(record.iter().copied(), &mut text));
        let read = read(text.as_bytes(), &PLAIN, str::to_owned);
        assert_eq!(read.unwrap(), records);
        let mut text = String::new();
        write([""].into_iter(), &mut text);
        assert_eq!(text, "\"\"\n");
    }

    #[test]
    fn quotes_and_blanks_are_read_strictly() {
        let trims = CsvFormat { trims_left: true, trims_right: true, ..PLAIN };
        let relaxed = CsvFormat { is_relaxed: true, ..PLAIN };
        let escape = CsvFormat { escape: Some(b'\\'), ..PLAIN };
        let none = CsvFormat { quote: None, ..PLAIN };
        let comment = CsvFormat { comment: Some(b'#'), ..PLAIN };
        let skips = CsvFormat { from_line: 2, ..comment.clone() };
        for (format, csv, rows) in [
            (&PLAIN, "\"a,\"\"b\"\"\",c", "a,\"b\"|c"),
            (&PLAIN, "\"\",x", "|x"),
            (&PLAIN, "a\"b,c", "Invalid Opening Quote: a quote is found inside a field at line 1"),
            (&PLAIN, "x\n\"a", "Quote Not Closed: the parsing is finished with an opening quote at line 2"),
            (&relaxed, "a\"b,\"c\"d", "a\"b|\"c\"d"),
            (&trims, " a , \" b \" ,\tc", "a| b |c"),
            // On the left csv-parse trims five characters, on the right all white space of JavaScript.
            (&trims, "\u{3000}a\u{3000}\u{2028},\u{b}b\u{b},\u{feff}c\u{a0}\u{feff}", "\u{3000}a|\u{b}b|\u{feff}c"),
            (&trims, "\u{a0},x\u{85},y\u{200b}", "|x\u{85}|y\u{200b}"),
            (&trims, "x,\u{b}\"a\"", "Invalid Opening Quote: a quote is found inside a field at line 1"),
            (&trims, "\"a\" x", "Invalid Closing Quote: found non trimable byte after quote at line 1"),
            (&escape, "\"a\\\"b\",c", "a\"b|c"),
            (&none, "\"a\",b", "\"a\"|b"),
            (&comment, "#x,y\n1,2 # z\n\"3\"#,\n", "Invalid Record Length: expect 2, got 1 on line 3"),
            (&comment, "#x,y\n1,2 # z\n3,4", "1|2 /3|4"),
            (&skips, "a,b #c\n1,2\n3,4", "1|2/3|4"),
            (&PLAIN, "\u{feff}a,b", "a|b"),
        ] {
            assert_eq!(shown(csv, format), rows, "{csv:?}");
        }
        for next in ["b", "é", "𝄞"] {
            let said = format!("Invalid Closing Quote: got \"{next}\" at line 1");
            assert!(shown(&format!("\"a\"{next}{next}"), &PLAIN).starts_with(&said), "{said}");
        }
    }
}
