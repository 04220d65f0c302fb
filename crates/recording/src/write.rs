//! Writes a recording whose secrets are replaced already.

use std::io::{self, ErrorKind, Write};

pub use self::RecordingWriter as Writer;
use crate::block::encode::{BlockRefusal, Encoder};
use crate::block::put::put;
use crate::frame::{Sealer, file_head};
use crate::model::{Beginning, RecordingPart};

/// Writes the parts of a recording.
pub struct RecordingWriter<W> {
    output: W,
    encoder: Encoder,
    sealer: Sealer,
    /// The memory of blocks.
    block: Vec<u8>,
    frame: Vec<u8>,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the head of the file, and begins.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut output: W, beginning: &Beginning) -> io::Result<RecordingWriter<W>> {
        output.write_all(&file_head())?;
        let encoder = Encoder::new(beginning.key_id);
        let (block, frame) = (Vec::new(), Vec::new());
        let mut writer = RecordingWriter { output, encoder, sealer: Sealer::new()?, block, frame };
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
            self.block = self.encoder.take(std::mem::take(&mut self.block));
            let RecordingWriter { sealer, block, .. } = self;
            Self::put_frame(sealer, block, &mut self.frame, &mut self.output)?;
        }
        self.output.flush()
    }

    /// Adds a block of a [`BlockWriter`](crate::BlockWriter), behind the parts so far.
    ///
    /// # Errors
    /// Those of the output, and of [`Sealer::seal`].
    pub fn put_block(&mut self, block: &[u8]) -> io::Result<()> {
        self.flush()?;
        Self::put_frame(&mut self.sealer, block, &mut self.frame, &mut self.output)
    }

    fn put_frame(sealer: &mut Sealer, block: &[u8], frame: &mut Vec<u8>, output: &mut W) -> io::Result<()> {
        frame.clear();
        sealer.seal(block, frame)?;
        output.write_all(frame)
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
