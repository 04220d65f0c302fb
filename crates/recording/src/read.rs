//! Reads a recording.

use std::io::Read;

pub use self::RecordingReader as Reader;
use crate::block::decode::BlockState;
use crate::frame::FrameReader;
use crate::model::RecordingPart;
use crate::{Fault, FaultKind};

/// Reads the parts of a recording, in the order of the file. It holds one block.
///
/// It gives all parts before a fault, then the fault, then nothing.
pub struct RecordingReader<R> {
    frames: FrameReader<R>,
    block: Vec<u8>,
    /// The place of the frame of `block`.
    frame: u64,
    state: BlockState,
    has_begun: bool,
    has_ended: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Reads the head of the file.
    ///
    /// # Errors
    /// If the file is no recording, or one of another version.
    pub fn new(input: R) -> Result<RecordingReader<R>, Fault> {
        Ok(RecordingReader {
            frames: FrameReader::new(input)?,
            block: Vec::new(),
            frame: 0,
            state: BlockState::default(),
            has_begun: false,
            has_ended: false,
        })
    }

    fn part(&mut self) -> Result<Option<RecordingPart>, Fault> {
        loop {
            let inside = |(inside, kind)| Fault { at: self.frame, inside: Some(inside), kind };
            if let Some(part) = self.state.next(&self.block) {
                let part = part.map_err(inside)?;
                self.has_begun |= matches!(part, RecordingPart::Beginning(_));
                if !self.has_begun {
                    return Err(Fault::at(self.frame, FaultKind::Beginning));
                }
                return Ok(Some(part));
            }
            self.frame = self.frames.at();
            if !self.frames.next(&mut self.block)? {
                return Ok(None);
            }
            self.state.begin(&self.block).map_err(|(inside, kind)| Fault {
                at: self.frame,
                inside: Some(inside),
                kind,
            })?;
        }
    }
}

impl<R: Read> Iterator for RecordingReader<R> {
    type Item = Result<RecordingPart, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let part = self.part();
        self.has_ended = !matches!(part, Ok(Some(_)));
        part.transpose()
    }
}

/// The length of the whole frames of a file that may end within a frame: a recorder that appends cuts the rest.
///
/// # Errors
/// Every fault but a file that is cut.
pub fn whole_bytes(input: impl Read) -> Result<u64, Fault> {
    let mut frames = FrameReader::new(input)?;
    let mut block = Vec::new();
    loop {
        match frames.next(&mut block) {
            Ok(true) => {}
            Ok(false) => return Ok(frames.at()),
            Err(fault) if fault.kind == FaultKind::Cut => return Ok(frames.at()),
            Err(fault) => return Err(fault),
        }
    }
}
