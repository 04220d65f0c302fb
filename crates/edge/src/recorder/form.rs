//! Composes the frames of a segment in memory, so that they go to the file as one.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::rc::Rc;

use weir_recording::model::{Beginning, RecordingPart};
use weir_recording::read::whole_bytes;
use weir_recording::write::Writer;

use super::block::RecordBlock;

/// Where the last whole frame of a file ends.
///
/// # Errors
/// The file is damaged before its end, in the words of the fault.
pub fn whole_length(mut file: &File) -> Result<u64, String> {
    let failed = |error: io::Error| error.to_string();
    if file.metadata().map_err(failed)?.len() < HEAD_BYTES {
        // Another process ended before it had written the head.
        return Ok(0);
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    whole_bytes(BufReader::with_capacity(READ_BYTES, file)).map_err(|fault| fault.to_string())
}

/// Bytes of the head of a file.
const HEAD_BYTES: u64 = weir_recording::frame::FILE_HEAD_BYTES as u64;

/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// SegmentFrames that are composed.
pub struct SegmentFrames {
    writer: Writer<Composed>,
    composed: Composed,
}

/// Bytes for the file.
#[derive(Clone, Default)]
struct Composed(Rc<RefCell<Vec<u8>>>);

impl Write for Composed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SegmentFrames {
    /// SegmentFrames that begin a recorder.
    ///
    /// # Errors
    /// The beginning cannot be composed.
    pub fn new(beginning: &Beginning) -> io::Result<SegmentFrames> {
        let composed = Composed::default();
        Ok(SegmentFrames { writer: Writer::new(composed.clone(), beginning)?, composed })
    }

    /// Adds a part.
    ///
    /// # Errors
    /// The part is larger than the format allows.
    pub fn put(&mut self, part: &RecordingPart) -> io::Result<()> {
        self.writer.put(part)
    }

    /// Adds a block.
    ///
    /// # Errors
    /// The block is larger than the format allows.
    pub fn put_block(&mut self, block: &RecordBlock) -> io::Result<()> {
        self.writer.put_block(&block.bytes)
    }

    /// Takes what is composed.
    ///
    /// # Errors
    /// A frame is larger than the format allows.
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        self.writer.flush()?;
        Ok(self.composed.0.take())
    }
}
