//! Splits bytes into words, with nginx's exact quoting.
//!
//! One call of [`Lexer::next`] reads the words up to the `;`, `{`, `}` or end that closes them, like one call of
//! nginx's reader. So nginx's quirks are the same here: `\` hides any next byte, `#` starts a comment only where a
//! word could start, `{` after `$` belongs to the word, and a parameter or comment must be shorter than
//! [`PARAMETER_BYTES_MAX`].
//!
//! Unlike nginx it continues after an error: it skips a stray byte and reads the next word.

use crate::problem::Problem;
use crate::tree::{At, Comment, Span, Word};

/// Limit of a parameter's length: nginx's reader keeps a parameter in a buffer of this size, and a comment counts as
/// a parameter.
pub const PARAMETER_BYTES_MAX: usize = 4096;

/// Most problems reported for one file; after so many, the others are not useful.
pub const PROBLEMS_MAX: usize = 100;

/// The end of a run of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`; words before it, if any, were reported and still form a statement.
    Close,
    /// The end of the file; unfinished words were reported.
    Eof,
}

/// A reader over the bytes of one source.
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    file: u32,
    is_command_line: bool,
    pos: usize,
    line: u32,
    is_cut_short: bool,
    /// First byte of a word that the end of the source cuts off, its quote included.
    cut: Option<usize>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) comments: Vec<Comment>,
}

/// The state of the reader while it reads a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Between words.
    Gap,
    /// Inside a bare word.
    Bare,
    /// Inside a word opened by this quote.
    Quoted(u8),
    /// Just after a closing quote: only a space, `;`, `{` or `)` may follow.
    Closed,
}

impl Mode {
    fn quote(self) -> Option<u8> {
        match self {
            Mode::Quoted(quote) => Some(quote),
            Mode::Gap | Mode::Bare | Mode::Closed => None,
        }
    }
}

/// The state while the words of one statement are read.
struct Reading {
    mode: Mode,
    /// First byte of the word, or of the last gap or comment, which counts as one parameter.
    start: usize,
    /// The line of `start`.
    line: u32,
    /// True if the byte before was a `$`: then a `{` belongs to the word.
    after_dollar: bool,
    /// True if the byte before was a `\`: then the next byte has no special meaning.
    is_hidden: bool,
}

impl Reading {
    fn at(start: usize, line: u32) -> Reading {
        Reading { mode: Mode::Gap, start, line, after_dollar: false, is_hidden: false }
    }
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(bytes: &'a [u8], file: u32, is_command_line: bool) -> Lexer<'a> {
        Lexer {
            bytes,
            file,
            is_command_line,
            pos: 0,
            line: 1,
            is_cut_short: false,
            cut: None,
            problems: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// Reads words into `words` until something ends them; returns the kind of end and its place.
    pub(crate) fn next(&mut self, words: &mut Vec<Word>) -> (Turn, At) {
        words.clear();
        let ended = self.read(words);
        // As in nginx: a message about a statement names the line that the reader has reached at its end.
        for word in words.iter_mut() {
            word.at.line = self.line;
        }
        ended
    }

    fn read(&mut self, words: &mut Vec<Word>) -> (Turn, At) {
        let mut now = Reading::at(self.pos, self.line);
        loop {
            if self.is_too_long(now.start) && self.too_long(&now) {
                words.clear();
                return (Turn::Eof, self.end());
            }
            let Some(byte) = self.take() else {
                return self.end_of_file(words, &now);
            };
            if std::mem::take(&mut now.is_hidden) {
                continue;
            }
            let turn = match now.mode {
                Mode::Closed => self.after_quote(byte, &mut now, words),
                Mode::Gap => self.between(byte, &mut now, words),
                Mode::Bare | Mode::Quoted(_) => self.inside(byte, &mut now, words),
            };
            if let Some(turn) = turn {
                return (turn, self.here());
            }
        }
    }

    /// Handles a byte right after a closing quote.
    fn after_quote(&mut self, byte: u8, now: &mut Reading, words: &[Word]) -> Option<Turn> {
        match byte {
            b';' => return Some(Turn::End),
            b'{' => return Some(Turn::Open),
            b' ' | b'\t' | b'\r' | b'\n' => {
                now.mode = Mode::Gap;
                return None;
            }
            // As in nginx: if ($a = "b") {
            b')' => {}
            _ => self.unexpected(byte, Some("put a space or \";\" after the closing quote")),
        }
        self.between(byte, now, words)
    }

    /// Handles a byte where a word may begin.
    fn between(&mut self, byte: u8, now: &mut Reading, words: &[Word]) -> Option<Turn> {
        now.mode = Mode::Gap;
        now.start = self.pos - 1;
        now.line = self.line;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b';' if words.is_empty() => self.unexpected(byte, None),
            b';' => return Some(Turn::End),
            b'{' => {
                if words.is_empty() {
                    self.unexpected(byte, None);
                }
                return Some(Turn::Open);
            }
            b'}' => {
                if !words.is_empty() {
                    self.unexpected(byte, Some("put a \";\" before it"));
                }
                return Some(Turn::Close);
            }
            b'#' => self.comment(now.start),
            b'"' | b'\'' => {
                now.start = self.pos;
                now.after_dollar = false;
                now.mode = Mode::Quoted(byte);
            }
            _ => {
                now.is_hidden = byte == b'\\';
                now.after_dollar = byte == b'$';
                now.mode = Mode::Bare;
            }
        }
        None
    }

    /// Handles a byte inside a word.
    fn inside(&self, byte: u8, now: &mut Reading, words: &mut Vec<Word>) -> Option<Turn> {
        if byte == b'{' && now.after_dollar {
            return None;
        }
        now.after_dollar = byte == b'$';
        now.is_hidden = byte == b'\\';
        let (end, quote) = (self.pos - 1, now.mode.quote());
        if quote.is_some() {
            if quote == Some(byte) {
                self.push(words, now.start, end, quote);
                now.mode = Mode::Closed;
            }
            return None;
        }
        let turn = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => None,
            b';' => Some(Turn::End),
            b'{' => Some(Turn::Open),
            _ => return None,
        };
        self.push(words, now.start, end, None);
        now.mode = Mode::Gap;
        turn
    }

    /// The raw text from here to the `}` that closes an opaque block, which is consumed. `None` if there is no such
    /// `}`; the caller reports the end of the file.
    ///
    /// The text is read as Lua: braces in its strings and comments do not count.
    pub(crate) fn raw_block(&mut self) -> Option<Word> {
        let start = self.pos;
        let length = crate::parse::lua_block_length(self.bytes.get(start..).unwrap_or_default())?;
        let end = start + length;
        for _ in start..=end {
            self.take();
        }
        let text = self.bytes.get(start..end).unwrap_or_default().to_vec();
        Some(Word::new(text, self.at(start, end), Some('{')))
    }

    /// True if the file ended inside a statement, which was reported.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// The first byte of the word that the end of the source cuts off, its quote included.
    pub(crate) fn cut(&self) -> Option<u32> {
        self.cut.map(narrow)
    }

    /// The place where reading stopped.
    pub(crate) fn end(&self) -> At {
        self.at(self.pos, self.pos)
    }

    /// Records a problem, unless there are [`PROBLEMS_MAX`] already: a file that is not a configuration has a problem
    /// at every byte.
    pub(crate) fn report(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// A place at the current line.
    pub(crate) fn at(&self, start: usize, end: usize) -> At {
        At { file: self.file, line: self.line, span: Span { start: narrow(start), end: narrow(end) } }
    }

    /// The place of the byte just read.
    fn here(&self) -> At {
        self.at(self.pos.saturating_sub(1), self.pos)
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.pos).copied()?;
        self.pos += 1;
        if byte == b'\n' {
            self.line = self.line.saturating_add(1);
        }
        Some(byte)
    }

    fn is_too_long(&self, start: usize) -> bool {
        // In nginx, the text of -g is in one buffer already and has no such limit.
        !self.is_command_line && self.pos - start == PARAMETER_BYTES_MAX && self.pos < self.bytes.len()
    }

    fn push(&self, words: &mut Vec<Word>, start: usize, end: usize, quote: Option<u8>) {
        let text = decode(self.bytes.get(start..end).unwrap_or_default());
        let (start, end) = if quote.is_some() { (start - 1, end + 1) } else { (start, end) };
        words.push(Word::new(text, self.at(start, end), quote.map(char::from)));
    }

    /// Skips to the end of the line; `start` is the place of the `#`.
    fn comment(&mut self, start: usize) {
        let now = Reading::at(start, self.line);
        while self.bytes.get(self.pos).is_some_and(|byte| *byte != b'\n') {
            if self.is_too_long(start) {
                self.too_long(&now);
            }
            self.pos += 1;
        }
        let text = self.bytes.get(start + 1..self.pos).unwrap_or_default().to_vec();
        let at = self.at(start, self.pos);
        self.comments.push(Comment { text, at });
    }

    /// Reports the byte just read, or the whole character that it begins.
    fn unexpected(&mut self, byte: u8, todo: Option<&str>) {
        let start = self.pos - 1;
        let mut at = self.here();
        let is_character = |length: &usize| {
            let bytes = self.bytes.get(start..start + length);
            bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
        };
        let what = match (1..=4usize).find(is_character) {
            Some(length) => {
                at = self.at(start, start + length);
                format!("unexpected \"{}\"", String::from_utf8_lossy(at.span.of(self.bytes)))
            }
            None => format!("unexpected \"\\x{byte:02x}\""),
        };
        let mut problem = Problem::emerg(what, at);
        problem.todo = todo.map(str::to_owned);
        self.report(problem);
    }

    /// Reports a parameter that fills the buffer. Returns true if reading cannot continue: after a missing quote, the
    /// end of the parameter is unknown.
    fn too_long(&mut self, now: &Reading) -> bool {
        let shown = Span { start: narrow(now.start), end: narrow(now.start + 10) };
        let quote = now.mode.quote();
        let what = match quote {
            Some(quote) => {
                format!("too long parameter, probably missing terminating \"{}\" character", char::from(quote))
            }
            None => {
                let shown = String::from_utf8_lossy(shown.of(self.bytes));
                format!("too long parameter \"{shown}...\" started")
            }
        };
        let at = At { file: self.file, line: now.line, span: shown };
        let remedy = format!("a parameter or a comment may have {} bytes", PARAMETER_BYTES_MAX - 1);
        self.report(Problem::emerg(what, at).todo(&remedy));
        if quote.is_some() {
            self.pos = self.bytes.len();
            self.is_cut_short = true;
            self.cut = Some(now.start.saturating_sub(1));
        }
        quote.is_some()
    }

    fn end_of_file(&mut self, words: &[Word], now: &Reading) -> (Turn, At) {
        let start = now.start;
        let end = self.at(self.pos, self.pos);
        if words.is_empty() && now.mode == Mode::Gap {
            return (Turn::Eof, end);
        }
        self.cut = match now.mode {
            Mode::Bare => Some(start),
            Mode::Quoted(_) => Some(start.saturating_sub(1)),
            Mode::Gap | Mode::Closed => None,
        };
        let what = if self.is_command_line {
            "unexpected end of parameter, expecting \";\""
        } else {
            "unexpected end of file, expecting \";\" or \"}\""
        };
        // The excerpt shows the beginning of the unfinished statement, because there is nothing to show at the end.
        let mut at = words.first().map_or(self.at(start, self.pos), |word| word.at);
        at.line = self.line;
        let mut problem = Problem::emerg(what.to_owned(), at);
        if let Some(quote) = now.mode.quote() {
            problem.at = Some(self.at(start.saturating_sub(1), start));
            problem.todo = Some(format!("this {} is never closed", char::from(quote)));
        }
        self.report(problem);
        self.is_cut_short = true;
        (Turn::Eof, end)
    }
}

/// Spans are 32 bits wide: larger sources are refused before they are read.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Resolves nginx's escapes: `\"`, `\'`, `\\`, `\t`, `\r`, `\n`; any other `\` stays.
pub fn decode(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        let decoded = match (byte, rest.peek()) {
            (b'\\', Some(next @ (b'"' | b'\'' | b'\\'))) => Some(*next),
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            _ => None,
        };
        if decoded.is_some() {
            rest.next();
        }
        text.push(decoded.unwrap_or(byte));
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::parse::parse;

    fn problems(text: &str) -> Vec<(String, u32)> {
        let parsed = parse(text.as_bytes(), 0, &|_| false);
        let found = parsed.problems.into_iter();
        found.map(|problem| (problem.what, problem.at.map_or(0, |at| at.line))).collect()
    }

    /// The lengths were tried with nginx: these pass, and one byte more fails.
    #[test]
    fn a_parameter_stays_below_the_buffer() {
        let cases = [
            (4095, "", ";", "too long parameter \"xxxxxxxxxx...\" started"),
            (4094, "\"", "\";", "too long parameter \"xxxxxxxxxx...\" started"),
            (4094, "\\", ";", "too long parameter \"\\xxxxxxxxx...\" started"),
            (4094, "#", "\nx;", "too long parameter \"#xxxxxxxxx...\" started"),
        ];
        for (length, before, after, message) in cases {
            let text = |length| format!("a 1;\nb 1;\n{before}{}{after}\n", "x".repeat(length));
            assert_eq!(problems(&text(length)), [], "{before}");
            assert_eq!(problems(&text(length + 1)), [(message.to_owned(), 3)], "{before}");
        }
    }

    #[test]
    fn a_lost_quote_ends_the_reading() {
        let text = format!("a 1;\nb {{\nc \"lost;\n{}}}\n", "d 1;\n".repeat(1000));
        let message = "too long parameter, probably missing terminating \"\"\" character";
        assert_eq!(problems(&text), [(message.to_owned(), 3)]);
    }

    #[test]
    fn only_nginx_s_escapes_are_resolved() {
        assert_eq!(decode(br#"\"\'\\\t\r\n\a\.\"#), b"\"'\\\t\r\n\\a\\.\\");
    }
}
