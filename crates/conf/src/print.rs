//! Prints a tree as text.
//!
//! [`print`] keeps every byte that was not changed: spaces, comments, quotes. [`lay_out`] writes statements that have
//! no text yet, or whose text does not matter.

use crate::lex::decode;
use crate::tree::{Statement, Word};

/// The source with these statements (parsed from it) in it: copies the bytes between words and the unchanged words,
/// and writes changed words again.
///
/// An unchanged tree returns the source byte for byte.
pub fn print(statements: &[Statement], source: &[u8]) -> Vec<u8> {
    let mut printer = Printer { source, copied: 0, text: Vec::with_capacity(source.len()) };
    printer.statements(statements);
    printer.copy_to(source.len());
    printer.text
}

struct Printer<'a> {
    source: &'a [u8],
    copied: usize,
    text: Vec<u8>,
}

impl Printer<'_> {
    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            for word in statement.words() {
                self.word(word);
            }
            self.statements(statement.children());
            self.copy_to(statement.end.span.end as usize);
        }
    }

    fn word(&mut self, word: &Word) {
        let span = word.at.span;
        self.copy_to(span.start as usize);
        if says(word, span.of(self.source)) {
            self.copy_to(span.end as usize);
            return;
        }
        match word.quoted {
            Some('{') => self.text.extend_from_slice(word.bytes()),
            _ => self.text.extend_from_slice(&quote(word.bytes())),
        }
        self.copied = self.copied.max(span.end as usize);
    }

    fn copy_to(&mut self, end: usize) {
        self.text.extend_from_slice(self.source.get(self.copied..end).unwrap_or_default());
        self.copied = self.copied.max(end);
    }
}

/// True if this raw text still has the meaning of the word.
fn says(word: &Word, raw: &[u8]) -> bool {
    let inner = match word.quoted {
        Some('{') => return raw == word.bytes(),
        Some(_) => raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default(),
        None => raw,
    };
    decode(inner) == word.bytes()
}

/// A word in a form that is read back as these bytes: without quotes if possible.
pub fn quote(text: &[u8]) -> Vec<u8> {
    if is_bare(text) {
        return text.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}

/// True if a word needs no quotes.
fn is_bare(text: &[u8]) -> bool {
    let starts_well = text.first().is_some_and(|byte| !matches!(byte, b'"' | b'\'' | b'#' | b'}'));
    let stays_whole = !text.iter().any(|byte| b" \t\r\n;{".contains(byte));
    let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    starts_well && stays_whole && escapes == 0 && decode(text) == text
}

/// Statements in nginx's usual layout: one statement a line, four spaces a block.
pub fn lay_out(statements: &[Statement]) -> Vec<u8> {
    let mut text = Vec::new();
    lay_out_block(statements, 0, &mut text);
    text
}

fn lay_out_block(statements: &[Statement], depth: usize, text: &mut Vec<u8>) {
    for statement in statements {
        text.extend(std::iter::repeat_n(b' ', depth * 4));
        let mut is_raw = false;
        for (index, word) in statement.words().enumerate() {
            if index > 0 {
                text.push(b' ');
            }
            is_raw = word.quoted == Some('{');
            if is_raw {
                text.push(b'{');
                text.extend_from_slice(word.bytes());
                text.push(b'}');
            } else {
                text.extend_from_slice(&quote(word.bytes()));
            }
        }
        if let Some(block) = &statement.block {
            text.extend_from_slice(b" {\n");
            lay_out_block(block, depth + 1, text);
            text.extend(std::iter::repeat_n(b' ', depth * 4));
            text.push(b'}');
        } else if !is_raw {
            text.push(b';');
        }
        text.push(b'\n');
    }
}
