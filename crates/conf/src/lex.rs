//! Bytes to words, with nginx's exact quoting.
//!
//! One call of [`Lexer::next`] reads the words up to the `;`, `{`, `}` or end that closes them,
//! as one call of nginx's reader does, so quirks fall where nginx's fall: `\` hides any next
//! byte, `#` comments only where a word could start, `{` after `$` belongs to the word, and a
//! parameter or comment may not reach [`PARAMETER_BYTES_MAX`].
//!
//! Unlike nginx it goes on after an error: a stray byte is skipped and the next word is read.

use crate::problem::Problem;
use crate::tree::{At, Comment, Span, Word};

/// Bytes a parameter must stay below: nginx's reader keeps it in a buffer of this size, and a
/// comment counts as a parameter.
pub const PARAMETER_BYTES_MAX: usize = 4096;

/// Problems reported of one file; what is wrong after so many is not worth reading.
pub const PROBLEMS_MAX: usize = 100;

/// What ended a run of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`; words before it, if any, were reported and still belong to a statement.
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
    pub(crate) problems: Vec<Problem>,
    pub(crate) comments: Vec<Comment>,
}

/// Where a word stands while its bytes go by.
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

impl<'a> Lexer<'a> {
    pub(crate) fn new(bytes: &'a [u8], file: u32, is_command_line: bool) -> Lexer<'a> {
        Lexer {
            bytes,
            file,
            is_command_line,
            pos: 0,
            line: 1,
            is_cut_short: false,
            problems: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// Reads words into `words` until something ends them, and says what and where.
    pub(crate) fn next(&mut self, words: &mut Vec<Word>) -> (Turn, At) {
        words.clear();
        let ended = self.read(words);
        // nginx: a message about a statement names the line its reader has reached by its end.
        for word in words.iter_mut() {
            word.at.line = self.line;
        }
        ended
    }

    fn read(&mut self, words: &mut Vec<Word>) -> (Turn, At) {
        let mut mode = Mode::Gap;
        let mut start = self.pos;
        let mut start_line = self.line;
        let mut after_dollar = false;
        let mut is_hidden = false;
        loop {
            if self.is_too_long(start) {
                let quote = if let Mode::Quoted(quote) = mode {
                    Some(quote)
                } else {
                    None
                };
                self.too_long(start, start_line, quote);
                if quote.is_some() {
                    // What follows a lost quote cannot be told apart; the rest is not read.
                    self.pos = self.bytes.len();
                    self.is_cut_short = true;
                    words.clear();
                    return (Turn::Eof, self.at(start, start));
                }
            }
            let Some(byte) = self.take() else {
                return self.end_of_file(words, mode, start);
            };
            if std::mem::take(&mut is_hidden) {
                continue;
            }

            if mode == Mode::Closed {
                match byte {
                    b' ' | b'\t' | b'\r' | b'\n' => {
                        mode = Mode::Gap;
                        continue;
                    }
                    b';' => return (Turn::End, self.here()),
                    b'{' => return (Turn::Open, self.here()),
                    b')' => mode = Mode::Gap,
                    other => {
                        self.unexpected(
                            other,
                            Some("put a space or \";\" after the closing quote"),
                        );
                        mode = Mode::Gap;
                    }
                }
            }

            match mode {
                Mode::Gap => {
                    start = self.pos - 1;
                    start_line = self.line;
                    match byte {
                        b' ' | b'\t' | b'\r' | b'\n' => {}
                        b';' | b'{' if words.is_empty() => {
                            self.unexpected(byte, None);
                            if byte == b'{' {
                                return (Turn::Open, self.here());
                            }
                        }
                        b';' => return (Turn::End, self.here()),
                        b'{' => return (Turn::Open, self.here()),
                        b'}' => {
                            if !words.is_empty() {
                                self.unexpected(byte, Some("put a \";\" before it"));
                            }
                            return (Turn::Close, self.here());
                        }
                        b'#' => self.comment(start),
                        b'\\' => {
                            is_hidden = true;
                            mode = Mode::Bare;
                        }
                        b'"' | b'\'' => {
                            start = self.pos;
                            after_dollar = false;
                            mode = Mode::Quoted(byte);
                        }
                        _ => {
                            after_dollar = byte == b'$';
                            mode = Mode::Bare;
                        }
                    }
                }
                Mode::Bare | Mode::Quoted(_) => {
                    if byte == b'{' && after_dollar {
                        continue;
                    }
                    after_dollar = byte == b'$';
                    match (mode, byte) {
                        (_, b'\\') => is_hidden = true,
                        (Mode::Quoted(quote), _) if byte == quote => {
                            self.push(words, start, self.pos - 1, Some(quote));
                            mode = Mode::Closed;
                        }
                        (Mode::Bare, b' ' | b'\t' | b'\r' | b'\n') => {
                            self.push(words, start, self.pos - 1, None);
                            mode = Mode::Gap;
                        }
                        (Mode::Bare, b';') => {
                            self.push(words, start, self.pos - 1, None);
                            return (Turn::End, self.here());
                        }
                        (Mode::Bare, b'{') => {
                            self.push(words, start, self.pos - 1, None);
                            return (Turn::Open, self.here());
                        }
                        _ => {}
                    }
                }
                Mode::Closed => {}
            }
        }
    }

    /// The raw text from here to the `}` that closes an opaque block, which is consumed; `None`
    /// (reported by the caller's end of file) when there is no such `}`.
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

    /// Whether the end came inside a statement, which was reported.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// The place where reading stopped.
    pub(crate) fn end(&self) -> At {
        self.at(self.pos, self.pos)
    }

    /// Notes a problem, unless there are [`PROBLEMS_MAX`] already: a file that is no
    /// configuration at all has a problem a byte.
    pub(crate) fn report(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// A place at the current line.
    pub(crate) fn at(&self, start: usize, end: usize) -> At {
        At {
            file: self.file,
            line: self.line,
            span: Span {
                start: narrow(start),
                end: narrow(end),
            },
        }
    }

    /// The byte just taken.
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
        // nginx: the text of -g is one buffer already and has no such limit.
        !self.is_command_line
            && self.pos - start == PARAMETER_BYTES_MAX
            && self.pos < self.bytes.len()
    }

    fn push(&self, words: &mut Vec<Word>, start: usize, end: usize, quote: Option<u8>) {
        let text = decode(self.bytes.get(start..end).unwrap_or_default());
        let (start, end) = if quote.is_some() {
            (start - 1, end + 1)
        } else {
            (start, end)
        };
        words.push(Word::new(text, self.at(start, end), quote.map(char::from)));
    }

    /// Skips to the end of the line; `start` is where the `#` stands.
    fn comment(&mut self, start: usize) {
        let line = self.line;
        while self.bytes.get(self.pos).is_some_and(|byte| *byte != b'\n') {
            if self.is_too_long(start) {
                self.too_long(start, line, None);
            }
            self.pos += 1;
        }
        let text = self
            .bytes
            .get(start + 1..self.pos)
            .unwrap_or_default()
            .to_vec();
        self.comments.push(Comment {
            text,
            at: self.at(start, self.pos),
        });
    }

    /// Reports the byte just taken, or the whole character it begins.
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
                format!(
                    "unexpected \"{}\"",
                    String::from_utf8_lossy(at.span.of(self.bytes))
                )
            }
            None => format!("unexpected \"\\x{byte:02x}\""),
        };
        let mut problem = Problem::emerg(what, at);
        problem.todo = todo.map(str::to_owned);
        self.report(problem);
    }

    fn too_long(&mut self, start: usize, start_line: u32, quote: Option<u8>) {
        let shown = self.bytes.get(start..start + 10).unwrap_or_default();
        let what = match quote {
            Some(quote) => format!(
                "too long parameter, probably missing terminating \"{}\" character",
                char::from(quote)
            ),
            None => format!(
                "too long parameter \"{}...\" started",
                String::from_utf8_lossy(shown)
            ),
        };
        let mut at = self.at(start, start + shown.len());
        at.line = start_line;
        let remedy = format!(
            "a parameter or a comment may have {} bytes",
            PARAMETER_BYTES_MAX - 1
        );
        self.report(Problem::emerg(what, at).todo(&remedy));
    }

    fn end_of_file(&mut self, words: &[Word], mode: Mode, start: usize) -> (Turn, At) {
        let end = self.at(self.pos, self.pos);
        if words.is_empty() && matches!(mode, Mode::Gap) {
            return (Turn::Eof, end);
        }
        let what = if self.is_command_line {
            "unexpected end of parameter, expecting \";\""
        } else {
            "unexpected end of file, expecting \";\" or \"}\""
        };
        // The excerpt shows where the unfinished statement began; the end has nothing to show.
        let mut at = words
            .first()
            .map_or(self.at(start, self.pos), |word| word.at);
        at.line = self.line;
        let mut problem = Problem::emerg(what.to_owned(), at);
        if let Mode::Quoted(quote) = mode {
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
pub(crate) fn decode(raw: &[u8]) -> Vec<u8> {
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
        found
            .map(|problem| (problem.what, problem.at.map_or(0, |at| at.line)))
            .collect()
    }

    /// The lengths were tried on nginx: these pass, one byte more does not.
    #[test]
    fn a_parameter_stays_below_the_buffer() {
        let cases = [
            (
                4095,
                "",
                ";",
                "too long parameter \"xxxxxxxxxx...\" started",
            ),
            (
                4094,
                "\"",
                "\";",
                "too long parameter \"xxxxxxxxxx...\" started",
            ),
            (
                4094,
                "\\",
                ";",
                "too long parameter \"\\xxxxxxxxx...\" started",
            ),
            (
                4094,
                "#",
                "\nx;",
                "too long parameter \"#xxxxxxxxx...\" started",
            ),
        ];
        for (length, before, after, message) in cases {
            let text = |length| format!("a 1;\nb 1;\n{before}{}{after}\n", "x".repeat(length));
            assert_eq!(problems(&text(length)), [], "{before}");
            assert_eq!(
                problems(&text(length + 1)),
                [(message.to_owned(), 3)],
                "{before}"
            );
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
