//! The configuration that a request of an editor is about, and places in its files.

use weir_conf::{Span, Tree};
use weir_doctor::Target;
use weir_words::Language;

/// A configuration, the program that reads it, and the language of the reader.
pub struct Look<'l> {
    /// All files, with includes in place.
    pub tree: &'l Tree,
    /// The program.
    pub target: Target,
    /// The language of answers.
    pub language: Language,
}

impl<'l> Look<'l> {
    /// The bytes of a file; empty if there is no such file.
    pub fn bytes(&self, file: u32) -> &'l [u8] {
        self.tree.files.get(file as usize).map_or(&[], |source| source.bytes.as_slice())
    }

    /// The name of a file.
    pub fn name(&self, file: u32) -> &'l str {
        self.tree.files.get(file as usize).map_or("", |source| source.name.as_str())
    }
}

/// Bytes of one file of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilePlace {
    /// Index into [`Tree::files`].
    pub file: u32,
    /// The bytes.
    pub span: Span,
}

impl FilePlace {
    /// The order of places: by file, then by bytes.
    pub fn order(&self) -> (u32, u32, u32) {
        (self.file, self.span.start, self.span.end)
    }
}
