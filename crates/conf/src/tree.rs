//! The structure of a configuration: words, statements, blocks, and their places.
//!
//! Not here: meaning. A [`Statement`] is any text before a `;` or a `{`. Invariant: every span is within the bytes of
//! its source, and spans of one source's statements are in rising order.

/// Bytes `start..end` of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of this span; empty if it does not fit `source`.
    pub fn of<'a>(&self, source: &'a [u8]) -> &'a [u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// A place in a configuration: the file, the line to report, the bytes to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct At {
    /// Index into [`Tree::files`].
    pub file: u32,
    /// The line that nginx would name, from 1: the line of its reader when it noticed. For a word that is the line of
    /// the `;` or `{` at the end of the statement.
    pub line: u32,
    /// The bytes to point at; they may be on an earlier line than `line`.
    pub span: Span,
}

/// One word of a statement, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The decoded text; bytes that are not UTF-8 become U+FFFD here, see [`Word::bytes`].
    pub text: String,
    /// Its place, with quotes.
    pub at: At,
    /// `"` or `'` for a quoted word, `{` for the raw text of an opaque block.
    pub quoted: Option<char>,
    /// The exact bytes, kept only if `text` cannot represent them.
    exact: Option<Box<[u8]>>,
}

impl Word {
    /// A word with these decoded bytes.
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

    /// The decoded bytes exactly as nginx has them.
    pub fn bytes(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Changes the text of the word; printing then writes the new text, quoted if necessary.
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
    /// The words after the name; for an opaque block, the last one is the block's raw text.
    pub args: Vec<Word>,
    /// The statements between `{` and `}`, with includes replaced; `None` after a `;`.
    pub block: Option<Vec<Statement>>,
    /// The head, from the name to the last argument; `at.line` is the line of the `;` or `{`.
    pub at: At,
    /// The `;`, or the `}` of a block: nginx reports problems of a whole block there.
    pub end: At,
}

impl Statement {
    /// The argument with this index, from 0.
    pub fn arg(&self, index: usize) -> Option<&Word> {
        self.args.get(index)
    }

    /// The text of the argument with this index, from 0; empty if there is none.
    pub fn text(&self, index: usize) -> &str {
        self.args.get(index).map_or("", |word| word.text.as_str())
    }

    /// True if the statement has a block.
    pub fn is_block(&self) -> bool {
        self.block.is_some()
    }

    /// The statements of its block; empty if it has no block.
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
    /// Its place, with the `#`; `line` is its own line.
    pub at: At,
}

/// One file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The full path as in nginx's messages.
    pub name: String,
    /// The exact bytes.
    pub bytes: Vec<u8>,
    /// True if these bytes came from `-g` instead of a file: then messages end with ` in command line`, and `-T` does
    /// not dump it.
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

/// One `include` and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// Place of the `include` statement.
    pub at: At,
    /// The included files, in order; indices into [`Tree::files`].
    pub files: Vec<u32>,
}

/// A whole configuration: every file read, and the statements with includes in place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Each file once, in the order of first reading (the order of `-T`).
    pub files: Vec<Source>,
    /// The top-level statements; there is no `include` among them or below.
    pub root: Vec<Statement>,
    /// The files of each `include`, in reading order.
    pub includes: Vec<Include>,
    /// True if a part could not be read: a file is missing, or a line is not a statement.
    pub is_partial: bool,
}

impl Tree {
    /// The top-level statements with this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Statement> {
        self.root.iter().filter(move |statement| statement.name == *name)
    }

    /// The first statement that matches, in the order of the files; the reader limits the nesting of blocks.
    pub fn first(&self, is_one: &dyn Fn(&Statement) -> bool) -> Option<&Statement> {
        fn among<'t>(all: &'t [Statement], is_one: &dyn Fn(&Statement) -> bool) -> Option<&'t Statement> {
            all.iter().find_map(|one| if is_one(one) { Some(one) } else { among(one.children(), is_one) })
        }
        among(&self.root, is_one)
    }

    /// The file of a place.
    pub fn source(&self, at: &At) -> Option<&Source> {
        self.files.get(at.file as usize)
    }

    /// The bytes of a place.
    pub fn bytes(&self, at: &At) -> &[u8] {
        self.source(at).map_or(&[], |source| at.span.of(&source.bytes))
    }
}
