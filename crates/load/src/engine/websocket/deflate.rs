//! permessage-deflate (RFC 7692 §7.2): compresses and decompresses messages.
//!
//! A client may compress each message separately whatever was agreed (RFC 7692 §7.1.1.2). So one compressor serves
//! all virtual users of a worker, and none of them needs a window of its own. A server that keeps its window from
//! message to message needs one window per connection in weir, 32 KiB; `serverNoContextTakeover` avoids that.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use weir_wire::websocket::{Deflate, Violation, check_text};

/// The end of a flush, which is removed from a message (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Step in which the output buffer grows.
const STEP_BYTES: usize = 4 << 10;

/// The agreed parameters for sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deflating {
    agreed: Deflate,
    threshold_bytes: usize,
}

thread_local! {
    static COMPRESS: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
    static DECOMPRESS: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

impl Deflating {
    /// Messages shorter than the threshold are not compressed.
    pub(crate) fn new(agreed: Deflate, threshold_bytes: usize) -> Deflating {
        Deflating { agreed, threshold_bytes }
    }

    /// The decompressor for received messages.
    pub(crate) fn inflating(&self) -> Inflating {
        let needs_window = !self.agreed.server_no_context_takeover;
        Inflating { own: needs_window.then(|| Box::new(Decompress::new(false))) }
    }

    /// The compressed message; `None` if the message is sent uncompressed.
    pub(crate) fn deflate(&self, payload: &[u8]) -> Option<Vec<u8>> {
        if payload.len() < self.threshold_bytes {
            return None;
        }
        COMPRESS.with_borrow_mut(|compress| {
            compress.reset();
            let mut out = Vec::with_capacity(payload.len() / 2 + STEP_BYTES);
            let mut used = 0;
            loop {
                let before = compress.total_in();
                let rest = payload.get(used..).unwrap_or_default();
                compress.compress_vec(rest, &mut out, FlushCompress::Sync).ok()?;
                used += usize::try_from(compress.total_in() - before).ok()?;
                // A flush is complete only if the output still has room.
                if used == payload.len() && out.len() < out.capacity() {
                    break;
                }
                out.reserve(STEP_BYTES);
            }
            out.ends_with(&TAIL).then(|| {
                out.truncate(out.len() - TAIL.len());
                out
            })
        })
    }
}

/// Decompresses the messages of one server.
pub(crate) struct Inflating {
    /// The window, if it is kept from message to message.
    own: Option<Box<Decompress>>,
}

impl Inflating {
    /// Decompresses a message of at most `bytes_max`; checks that text is UTF-8.
    pub(super) fn inflate(&mut self, payload: &[u8], is_text: bool, bytes_max: usize) -> Result<Vec<u8>, Violation> {
        let out = match &mut self.own {
            Some(own) => inflate(own, payload, bytes_max)?,
            None => DECOMPRESS.with_borrow_mut(|shared| {
                shared.reset(false);
                inflate(shared, payload, bytes_max)
            })?,
        };
        if is_text {
            check_text(&out)?;
        }
        Ok(out)
    }
}

fn inflate(decompress: &mut Decompress, payload: &[u8], bytes_max: usize) -> Result<Vec<u8>, Violation> {
    let mut out = Vec::with_capacity(payload.len() * 2 + STEP_BYTES);
    for input in [payload, &TAIL] {
        let mut rest = input;
        loop {
            let (before_in, before_out) = (decompress.total_in(), out.len());
            let status = decompress.decompress_vec(rest, &mut out, FlushDecompress::Sync);
            let status = status.map_err(|_| Violation::ReservedBit)?;
            let used = usize::try_from(decompress.total_in() - before_in).unwrap_or(usize::MAX);
            rest = rest.get(used..).unwrap_or_default();
            if out.len() > bytes_max {
                return Err(Violation::MessageTooLarge);
            }
            // A block marked as the last one is allowed inside a message (RFC 7692 §7.2.3.5).
            if status == Status::StreamEnd {
                decompress.reset(false);
            }
            if out.len() == out.capacity() {
                out.reserve(STEP_BYTES.max(out.len() / 2));
            } else if rest.is_empty() || (used == 0 && out.len() == before_out) {
                break;
            }
        }
        if !rest.is_empty() {
            return Err(Violation::ReservedBit);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn both(server_no_context_takeover: bool) -> (Deflating, Inflating) {
        let agreed = Deflate { server_no_context_takeover, ..Deflate::default() };
        let deflating = Deflating::new(agreed, 0);
        (deflating, deflating.inflating())
    }

    #[test]
    fn the_rfcs_own_examples() {
        // RFC 7692 §7.2.3.1, §7.2.3.2 (the second message uses the first one's window), §7.2.3.3, §7.2.3.4.
        let (_, mut inflating) = both(false);
        for packed in [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
            &[0xf2, 0x00, 0x11, 0x00, 0x00],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
        ] {
            assert_eq!(inflating.inflate(packed, true, 100).unwrap(), b"Hello");
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        for no_takeover in [false, true] {
            let (deflating, mut inflating) = both(no_takeover);
            for size in [0, 1, 1000, 70_000, 1_000_000] {
                let payload: Vec<u8> = (0..size).map(|n: u32| b'a' + (n.wrapping_mul(n) >> 7) as u8 % 20).collect();
                let packed = deflating.deflate(&payload).unwrap();
                assert!(inflating.inflate(&packed, true, 1 << 20).unwrap() == payload, "{size}");
            }
        }
    }

    #[test]
    fn bounds_and_refusals() {
        let (deflating, mut inflating) = both(true);
        let packed = deflating.deflate(&[b'a'; 100_000]).unwrap();
        assert!(packed.len() < 1000);
        assert_eq!(inflating.inflate(&packed, true, 99_999), Err(Violation::MessageTooLarge));
        let packed = deflating.deflate(b"\xff\xfe").unwrap();
        assert_eq!(inflating.inflate(&packed, true, 100), Err(Violation::NotUtf8));
        assert_eq!(inflating.inflate(&packed, false, 100).unwrap(), b"\xff\xfe");
        assert!(inflating.inflate(b"\xff\xff\xff\xff", false, 100).is_err());
        assert_eq!(Deflating::new(Deflate::default(), 10).deflate(b"123456789"), None);
    }
}
