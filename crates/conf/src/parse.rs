//! Parses words into statements and blocks: one source, without its includes.
//!
//! Nesting uses an explicit stack, so a source full of braces cannot exhaust the thread's stack.

use crate::lex::{Lexer, Turn};
use crate::problem::Problem;
use crate::tree::{At, Comment, Statement, Word};

/// Deepest nesting of blocks, over all included files.
pub const BLOCK_DEPTH_MAX: usize = 256;

/// One parsed source: `include` statements are still statements here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    /// The top-level statements.
    pub statements: Vec<Statement>,
    /// Every comment, in order.
    pub comments: Vec<Comment>,
    /// Every lexical problem, in order.
    pub problems: Vec<Problem>,
}

/// Parses one source. Never fails: unreadable parts become problems.
///
/// `file` is the index for every [`At`]. `opaque` returns true for directives whose block is not in nginx's syntax
/// (`content_by_lua_block`): its text becomes their last argument.
pub fn parse(bytes: &[u8], file: u32, opaque: &dyn Fn(&str) -> bool) -> Parsed {
    Parser::new(bytes, file, false, opaque).run()
}

/// Parses the text of `-g`, in which blocks are not supported.
pub(crate) fn parse_command_line(bytes: &[u8], file: u32) -> Parsed {
    Parser::new(bytes, file, true, &|_| false).run()
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    is_command_line: bool,
    opaque: &'a dyn Fn(&str) -> bool,
    /// Statements of the current block.
    statements: Vec<Statement>,
    /// The blocks around it, the innermost last.
    open: Vec<Open>,
    /// Number of open braces beyond the limit of `open`.
    too_deep: usize,
    /// True if an opaque block had no end: then the next one would have none either.
    is_opaque_lost: bool,
}

/// A block that is not closed yet.
struct Open {
    /// The statement of the block; `None` for a `{` without a name, whose content is checked and dropped.
    head: Option<Statement>,
    /// Earlier statements in the block around it.
    before: Vec<Statement>,
    /// Place of its `{`.
    brace: At,
}

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8], file: u32, is_command_line: bool, opaque: &'a dyn Fn(&str) -> bool) -> Parser<'a> {
        Parser {
            lexer: Lexer::new(bytes, file, is_command_line),
            is_command_line,
            opaque,
            statements: Vec::new(),
            open: Vec::new(),
            too_deep: 0,
            is_opaque_lost: false,
        }
    }

    fn run(mut self) -> Parsed {
        let mut words = Vec::new();
        loop {
            let (turn, at) = self.lexer.next(&mut words);
            match turn {
                Turn::End => self.push(&mut words, at),
                Turn::Open => self.begin(&mut words, at),
                Turn::Close => {
                    self.push(&mut words, at);
                    self.close(at);
                }
                Turn::Eof => break,
            }
        }
        self.end_of_file();
        Parsed { statements: self.statements, comments: self.lexer.comments, problems: self.lexer.problems }
    }

    /// Adds a statement without a block; without words, adds nothing.
    fn push(&mut self, words: &mut Vec<Word>, end: At) {
        if self.too_deep == 0
            && let Some(statement) = statement(words, end)
        {
            self.statements.push(statement);
        }
    }

    fn begin(&mut self, words: &mut Vec<Word>, brace: At) {
        if self.is_command_line {
            let what = "block directives are not supported in -g option";
            self.problem(what.to_owned(), brace);
        }
        if self.too_deep > 0 || self.open.len() >= BLOCK_DEPTH_MAX {
            if self.too_deep == 0 {
                let what = format!("blocks are nested deeper than {BLOCK_DEPTH_MAX}");
                self.problem(what, brace);
            }
            self.too_deep += 1;
            return;
        }
        let mut head = statement(words, brace);
        if let Some(head) = &mut head
            && !self.is_opaque_lost
            && (self.opaque)(&head.name.text)
        {
            if let Some(text) = self.lexer.raw_block() {
                let close = text.at.span.end as usize;
                head.end = self.lexer.at(close, close + 1);
                head.args.push(text);
                self.statements.push(std::mem::take(head));
                return;
            }
            self.is_opaque_lost = true;
        }
        let before = std::mem::take(&mut self.statements);
        self.open.push(Open { head, before, brace });
    }

    fn close(&mut self, end: At) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let Some(open) = self.open.pop() else {
            // Words before it were reported together with it.
            if self.lexer.problems.last().is_none_or(|last| last.at != Some(end)) {
                self.problem("unexpected \"}\"".to_owned(), end);
            }
            return;
        };
        self.fold(open, end);
    }

    /// Adds a finished block to the block around it.
    fn fold(&mut self, open: Open, end: At) {
        let block = std::mem::replace(&mut self.statements, open.before);
        if let Some(mut head) = open.head {
            head.block = Some(block);
            head.end = end;
            self.statements.push(head);
        }
    }

    fn end_of_file(&mut self) {
        let end = self.lexer.end();
        let is_reported = self.lexer.is_cut_short();
        if let Some(open) = self.open.last()
            && !is_reported
            && !self.is_command_line
        {
            // nginx names the last line; the place of the unclosed block is more useful.
            let place = open.head.as_ref().map_or(open.brace, |head| head.at);
            let at = At { line: end.line, ..place };
            let problem = Problem::emerg("unexpected end of file, expecting \"}\"".to_owned(), at);
            self.lexer.problems.push(problem.todo("this block has no \"}\""));
        }
        while let Some(open) = self.open.pop() {
            self.fold(open, end);
        }
    }

    fn problem(&mut self, what: String, at: At) {
        self.lexer.report(Problem::emerg(what, at));
    }
}

/// Makes a statement of these words and takes them; `None` without words.
fn statement(words: &mut Vec<Word>, end: At) -> Option<Statement> {
    let mut words = words.drain(..);
    let name = words.next()?;
    let args: Vec<Word> = words.collect();
    let mut at = At { line: end.line, ..name.at };
    at.span.end = args.last().map_or(name.at.span.end, |word| word.at.span.end);
    Some(Statement { name, args, block: None, at, end })
}

/// Length of a Lua text before the `}` that closes the block around it, in bytes.
pub(crate) fn lua_block_length(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut pos = 0usize;
    while let Some(byte) = text.get(pos).copied() {
        let rest = text.get(pos..).unwrap_or_default();
        pos += match byte {
            b'{' => {
                depth += 1;
                1
            }
            b'}' if depth == 0 => return Some(pos),
            b'}' => {
                depth -= 1;
                1
            }
            b'"' | b'\'' => lua_string_length(rest, byte),
            b'-' if rest.starts_with(b"--") => {
                let comment = rest.get(2..).unwrap_or_default();
                match lua_long_length(comment) {
                    Some(length) => 2 + length,
                    None => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
                }
            }
            b'[' => lua_long_length(rest).unwrap_or(1),
            _ => 1,
        };
    }
    None
}

/// Length of a quoted Lua string with its quotes, in bytes.
fn lua_string_length(text: &[u8], quote: u8) -> usize {
    let mut pos = 1;
    while let Some(byte) = text.get(pos) {
        pos += match byte {
            b'\\' => 2,
            byte if *byte == quote => return pos + 1,
            _ => 1,
        };
    }
    text.len()
}

/// Length of a Lua long string (`[[…]]`, `[==[…]==]`) that starts here, in bytes; the whole text if the string has no
/// end. `None` if no long string starts here.
fn lua_long_length(text: &[u8]) -> Option<usize> {
    let level = text.strip_prefix(b"[")?.iter().take_while(|byte| **byte == b'=').count();
    if text.get(level + 1) != Some(&b'[') {
        return None;
    }
    let opening = level + 2;
    let closing = [b"]".as_slice(), &vec![b'='; level], b"]"].concat();
    let body = text.get(opening..).unwrap_or_default();
    let found = body.windows(closing.len()).position(|window| window == closing);
    Some(found.map_or(text.len(), |length| opening + length + closing.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn nesting_ends_at_its_limit_and_reading_goes_on() {
        let nested = |depth| format!("{}b;{}\nc;", "a {".repeat(depth), "}".repeat(depth));
        let parsed = parse(nested(BLOCK_DEPTH_MAX).as_bytes(), 0, &|_| false);
        assert_eq!((parsed.problems.len(), parsed.statements.len()), (0, 2));

        let parsed = parse(nested(100_000).as_bytes(), 0, &|_| false);
        let found: Vec<&str> = parsed.problems.iter().map(|p| p.what.as_str()).collect();
        assert_eq!(found, ["blocks are nested deeper than 256"]);
        assert_eq!(parsed.statements.len(), 2);
    }

    #[test]
    fn braces_in_lua_strings_and_comments_do_not_count() {
        let length = |text: &str| lua_block_length(text.as_bytes());
        assert_eq!(length("a}"), Some(1));
        assert_eq!(length("{}}"), Some(2));
        assert_eq!(length("'}' }"), Some(4));
        assert_eq!(length("'\\'}' }"), Some(6));
        assert_eq!(length("--}\n}"), Some(4));
        assert_eq!(length("--[[}\n]]}"), Some(8));
        assert_eq!(length("[=[ ]] } ]=]}"), Some(12));
        assert_eq!(length("t[1]}"), Some(4));
        assert_eq!(length("[[ }"), None);
        assert_eq!(length("{}"), None);
    }
}
