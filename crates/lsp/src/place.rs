//! A place in the files of a configuration.

use weir_conf::Span;

/// Bytes of one file of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilePlace {
    /// Index into the files of the tree.
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
