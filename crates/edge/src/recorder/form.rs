//! The form of the file.

use std::fs::File;
use std::io::{self, Write};

use weir_recording::model::{Beginning, RecordingPart};

use super::block::Block;

/// Whether a file that begins with these bytes is a recording.
pub fn is_recording(first: &[u8]) -> bool {
    first.starts_with(b"Beginning")
}

/// Where the last whole part of a file ends.
pub fn whole_length(file: &File) -> Result<u64, String> {
    file.metadata().map(|facts| facts.len()).map_err(|error| error.to_string())
}

/// Writes parts.
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// A writer that has written the beginning.
    pub fn new(mut out: W, beginning: &Beginning) -> io::Result<Writer<W>> {
        writeln!(out, "{beginning:?}")?;
        Ok(Writer(out))
    }

    /// Writes a part.
    pub fn put(&mut self, part: &RecordingPart) -> io::Result<()> {
        writeln!(self.0, "{part:?}")
    }

    /// Writes a block.
    pub fn put_block(&mut self, block: &Block) -> io::Result<()> {
        block.parts.iter().try_for_each(|part| self.put(part))
    }

    /// What it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.0
    }
}
