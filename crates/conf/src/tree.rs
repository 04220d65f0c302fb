//! The shape of a configuration: words, statements, blocks, and where each was written.
//!
//! Not here: meaning. A [`Statement`] is whatever stood before a `;` or a `{`.
//! Invariant: every span lies inside the bytes of its source, and spans of one source's
//! statements are in rising order.

/// Bytes `start..end` of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes this span names; empty when it does not fit `source`.
    pub fn of<'a>(&self, source: &'a [u8]) -> &'a [u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// A place in a configuration: which file, which line to report, which bytes to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct At {
    /// Index into [`Tree::files`].
    pub file: u32,
    /// The line nginx would name, from 1: the one its reader stood on when it noticed, which for
    /// a word is the line of the `;` or `{` that ended the statement.
    pub line: u32,
    /// The bytes to point at; their own line may be an earlier one than `line`.
    pub span: Span,
}

/// One word of a statement, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The decoded text; bytes that are not UTF-8 show as U+FFFD here, see [`Word::bytes`].
    pub text: String,
    /// Where it was written, quotes included.
    pub at: At,
    /// `"` or `'` for a quoted word, `{` for the raw text of an opaque block.
    pub quoted: Option<char>,
    /// The exact bytes, kept only when `text` could not hold them.
    exact: Option<Box<[u8]>>,
}

impl Word {
    /// A word of these decoded bytes.
    pub fn new(bytes: Vec<u8>, at: At, quoted: Option<char>) -> Word {
        match String::from_utf8(bytes) {
            Ok(text) => Word { text, at, quoted, exact: None },
            Err(error) => {
                let bytes = error.into_bytes();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Word { text, at, quoted, exact: Some(bytes.into_boxed_slice()) }
            }
        }
    }

    /// The decoded bytes exactly as nginx would hold them.
    pub fn bytes(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Changes what the word says; printing then writes the new text, quoted where needed.
    pub fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.exact = None;
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, other: &str) -> bool {
        self.bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

/// One statement: `name args… ;` or `name args… { block }`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// The first word.
    pub name: Word,
    /// The words after the name; for an opaque block the last one is the block's raw text.
    pub args: Vec<Word>,
    /// The statements between `{` and `}`, files included there in place; `None` after a `;`.
    pub block: Option<Vec<Statement>>,
    /// The head, from the name to the last argument; `at.line` is the line of the `;` or `{`.
    pub at: At,
    /// The `;`, or the `}` of a block: nginx reports what it finds wrong with a whole block there.
    pub end: At,
}

impl Statement {
    /// The argument with this index, from 0.
    pub fn arg(&self, index: usize) -> Option<&Word> {
        self.args.get(index)
    }

    /// The text of the argument with this index, from 0; empty when there is none.
    pub fn text(&self, index: usize) -> &str {
        self.args.get(index).map_or("", |word| word.text.as_str())
    }

    /// Whether it was ended by a `{`.
    pub fn is_block(&self) -> bool {
        self.block.is_some()
    }

    /// The statements of its block; none when it has no block.
    pub fn children(&self) -> &[Statement] {
        self.block.as_deref().unwrap_or_default()
    }

    /// The statements of its block with this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Statement> {
        self.children().iter().filter(move |statement| statement.name == *name)
    }

    /// The name, then the arguments.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        std::iter::once(&self.name).chain(&self.args)
    }
}

/// A comment as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The bytes after the `#`, up to the end of the line.
    pub text: Vec<u8>,
    /// Its place, `#` included; `line` is the line it stands on.
    pub at: At,
}

/// One file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The full path as nginx would name it in a message.
    pub name: String,
    /// The exact bytes.
    pub bytes: Vec<u8>,
    /// Whether these bytes came from `-g` instead of a file: messages then end in
    /// ` in command line`, and `-T` does not dump it.
    pub is_command_line: bool,
}

impl Source {
    /// The line of a byte, from 1.
    pub fn line_of(&self, offset: u32) -> u32 {
        let before = self.bytes.get(..offset as usize).unwrap_or(&self.bytes);
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// One `include` as it was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// Where the `include` statement stands.
    pub at: At,
    /// The files it brought in, in order; indices into [`Tree::files`].
    pub files: Vec<u32>,
}

/// A whole configuration: every file read, and the statements with includes in place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Each file once, in the order of first reading (the order of `-T`).
    pub files: Vec<Source>,
    /// The top-level statements; no `include` is left among them or below.
    pub root: Vec<Statement>,
    /// What each `include` brought in, in reading order.
    pub includes: Vec<Include>,
    /// Whether something of it could not be read: a file is missing, or a line is no statement.
    pub is_partial: bool,
}

impl Tree {
    /// The top-level statements with this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Statement> {
        self.root.iter().filter(move |statement| statement.name == *name)
    }

    /// The file a place lies in.
    pub fn source(&self, at: &At) -> Option<&Source> {
        self.files.get(at.file as usize)
    }

    /// The bytes a place names.
    pub fn bytes(&self, at: &At) -> &[u8] {
        self.source(at).map_or(&[], |source| at.span.of(&source.bytes))
    }
}
