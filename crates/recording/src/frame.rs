//! FrameReader: a block of parts, compressed, with its lengths and a checksum.

use std::io::{self, ErrorKind, Read};

use crate::{Fault, FaultKind};

/// The first bytes of a recording.
pub const MAGIC: [u8; 8] = *b"weir-rec";
/// The version of the format, behind the magic bytes.
pub const VERSION: u32 = 1;
/// Magic bytes and version.
pub const FILE_HEAD_BYTES: usize = 12;
/// The lengths and the checksum of a frame.
pub const FRAME_HEAD_BYTES: usize = 12;
/// Most bytes of a compressed block.
pub const STORED_BYTES_MAX: usize = 2 << 20;
/// Most bytes of a block.
pub const UNPACKED_BYTES_MAX: usize = 4 << 20;

/// The level of zstd: the writer has to keep up with all workers. Level 1 takes half as long again, for files that are a third smaller
/// (`examples/push.rs`).
const LEVEL: i32 = -1;

/// The bytes with which a recording begins.
pub fn file_head() -> [u8; FILE_HEAD_BYTES] {
    let mut head = [0; FILE_HEAD_BYTES];
    let (magic, version) = head.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    version.copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// Makes frames of blocks, with the same memory.
pub struct Sealer {
    context: zstd_safe::CCtx<'static>,
    stored: Vec<u8>,
}

impl Sealer {
    /// No frame yet.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> io::Result<Sealer> {
        let context = zstd_safe::CCtx::try_create().ok_or(ErrorKind::OutOfMemory)?;
        Ok(Sealer { context, stored: Vec::new() })
    }

    /// Compresses a block and appends its frame to `out`.
    ///
    /// # Errors
    /// If the block is longer than [`UNPACKED_BYTES_MAX`], or does not shrink to [`STORED_BYTES_MAX`].
    pub fn seal(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let too_large = || io::Error::new(ErrorKind::InvalidInput, "the block is too large");
        if block.len() > UNPACKED_BYTES_MAX {
            return Err(too_large());
        }
        let Sealer { context, stored } = self;
        stored.clear();
        stored.reserve(zstd_safe::compress_bound(block.len()));
        let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
        context.compress(stored, block, LEVEL).map_err(failed)?;
        if stored.len() > STORED_BYTES_MAX {
            return Err(too_large());
        }
        let lengths = (stored.len() as u64 | (block.len() as u64) << 32).to_le_bytes();
        out.extend_from_slice(&lengths);
        out.extend_from_slice(&checksum(&lengths, stored).to_le_bytes());
        out.extend_from_slice(stored);
        Ok(())
    }
}

/// As [`Sealer::seal`], for one block.
///
/// # Errors
/// Those of [`Sealer`].
pub fn seal(block: &[u8]) -> io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    Sealer::new()?.seal(block, &mut frame)?;
    Ok(frame)
}

/// The checksum of both lengths and of the compressed bytes.
fn checksum(lengths: &[u8], stored: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(lengths);
    sum.update(stored);
    sum.finalize()
}

/// Reads the frames of a file. Counts the bytes, for the places of faults.
pub(crate) struct FrameReader<R> {
    input: R,
    /// The bytes of whole heads and frames.
    at: u64,
    stored: Vec<u8>,
}

impl<R: Read> FrameReader<R> {
    /// Reads the head of the file.
    pub(crate) fn new(input: R) -> Result<FrameReader<R>, Fault> {
        let mut frames = FrameReader { input, at: 0, stored: Vec::new() };
        let mut magic = [0; 4];
        match frames.fill(&mut magic)? {
            4 if MAGIC.starts_with(&magic) => frames.head()?,
            _ => return Err(Fault::at(0, FaultKind::Foreign)),
        }
        Ok(frames)
    }

    /// The place of the next frame.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Reads the next block into `block`. `false`: the file has ended.
    pub(crate) fn next(&mut self, block: &mut Vec<u8>) -> Result<bool, Fault> {
        let mut first = [0; 4];
        loop {
            match self.fill(&mut first)? {
                0 => return Ok(false),
                4 if MAGIC.starts_with(&first) => self.head()?,
                4 => break,
                _ => return Err(self.fault(FaultKind::Cut)),
            }
        }
        let mut rest = [0; FRAME_HEAD_BYTES - 4];
        self.fill_all(&mut rest)?;
        let [u0, u1, u2, u3, c0, c1, c2, c3] = rest;
        let stored = u32::from_le_bytes(first) as usize;
        let unpacked = u32::from_le_bytes([u0, u1, u2, u3]) as usize;
        if stored > STORED_BYTES_MAX || unpacked > UNPACKED_BYTES_MAX {
            return Err(self.fault(FaultKind::Length));
        }
        let mut bytes = std::mem::take(&mut self.stored);
        bytes.resize(stored, 0);
        self.fill_all(&mut bytes)?;
        let mut lengths = [0; 8];
        lengths[..4].copy_from_slice(&first);
        lengths[4..].copy_from_slice(&rest[..4]);
        if checksum(&lengths, &bytes) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err(self.fault(FaultKind::Checksum));
        }
        block.clear();
        block.reserve_exact(unpacked);
        // It stops at the capacity of `block`, which may be larger than asked for.
        match zstd_safe::decompress(block, &bytes) {
            Ok(length) if length == unpacked => {}
            _ => return Err(self.fault(FaultKind::Unpacking)),
        }
        self.stored = bytes;
        self.at += (FRAME_HEAD_BYTES + stored) as u64;
        Ok(true)
    }

    /// Reads the head of a file behind its first four bytes.
    fn head(&mut self) -> Result<(), Fault> {
        let mut rest = [0; FILE_HEAD_BYTES - 4];
        self.fill_all(&mut rest)?;
        let (magic, version) = rest.split_at(MAGIC.len() - 4);
        if !MAGIC.ends_with(magic) {
            return Err(self.fault(FaultKind::Foreign));
        }
        let version = version.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        if version != VERSION {
            return Err(self.fault(FaultKind::Version(version)));
        }
        self.at += FILE_HEAD_BYTES as u64;
        Ok(())
    }

    fn fill_all(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        if self.fill(bytes)? < bytes.len() {
            return Err(self.fault(FaultKind::Cut));
        }
        Ok(())
    }

    /// Reads until `bytes` are full or the file ends.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, Fault> {
        let mut length = 0;
        while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(FaultKind::Reading(error.kind()))),
            }
        }
        Ok(length)
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault::at(self.at, kind)
    }
}
