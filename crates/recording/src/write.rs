//! Writes a recording whose secrets are replaced already.

use std::io::{self, ErrorKind, Write};

pub use self::RecordingWriter as Writer;
use crate::block::encode::{BlockRefusal, Encoder};
use crate::block::put::put;
use crate::frame::{file_head, seal};
use crate::model::{Beginning, RecordingPart};

/// Writes the parts of a recording.
pub struct RecordingWriter<W> {
    output: W,
    encoder: Encoder,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the head of the file, and begins.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut output: W, beginning: &Beginning) -> io::Result<RecordingWriter<W>> {
        output.write_all(&file_head())?;
        let mut writer = RecordingWriter { output, encoder: Encoder::new(beginning.key_id) };
        writer.put(&RecordingPart::Beginning(beginning.clone()))?;
        Ok(writer)
    }

    /// Adds a part. A full block goes to the output.
    ///
    /// # Errors
    /// Those of the output; `InvalidInput` for a part of more than [`PART_BYTES_MAX`](crate::block::PART_BYTES_MAX).
    pub fn put(&mut self, part: &RecordingPart) -> io::Result<()> {
        let mut refused = put(&mut self.encoder, part);
        if refused == Err(BlockRefusal::Full) {
            self.flush()?;
            refused = put(&mut self.encoder, part);
        }
        refused.map_err(|_| io::Error::new(ErrorKind::InvalidInput, "the part is too large for a recording"))
    }

    /// Writes the parts so far.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.encoder.is_empty() {
            let block = self.encoder.take(Vec::new());
            self.output.write_all(&seal(&block)?)?;
        }
        self.output.flush()
    }

    /// Writes the last parts, and gives the output back.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.output)
    }
}
