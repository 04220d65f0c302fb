//! The facts that weir notes about an exchange before its end.

use std::cell::RefCell;
use std::rc::Rc;

use weir_http::hold::own::Owned;
use weir_recording::secrets::BodyHash;

use super::options::BODY_BYTES_MAX;

/// The facts about an exchange that weir knows before its end.
pub struct Noted {
    /// The number of the run that noted it.
    pub run: u64,
    /// The client, if it is among the recorded ones.
    pub client: Option<u64>,
    /// The body of the answer.
    pub answer: Option<Rc<RefCell<SeenBody>>>,
    /// The number of the WebSocket; 0 without one.
    pub tunnel: u64,
}

impl Owned for Noted {}

/// The body of an answer, as far as weir has seen it, before weir compresses it.
pub struct SeenBody {
    hash: BodyHash,
    /// The bytes so far; `None` if the body is not kept.
    bytes: Option<Vec<u8>>,
    is_whole: bool,
}

impl SeenBody {
    /// Nothing yet.
    pub fn new(hash: BodyHash, is_kept: bool) -> SeenBody {
        SeenBody { hash, bytes: is_kept.then(Vec::new), is_whole: false }
    }

    /// The hash of a body that weir has seen to its end.
    pub fn hash(&self) -> Option<u64> {
        self.is_whole.then(|| self.hash.clone().finish())
    }

    /// The bytes of a body that weir has seen to its end.
    pub fn kept(&self) -> Option<&[u8]> {
        self.bytes.as_deref().filter(|_| self.is_whole)
    }

    /// Sees the next bytes, and perhaps the last ones.
    pub fn see(&mut self, bytes: &[u8], last: bool) {
        self.hash.update(bytes);
        self.is_whole |= last;
        if let Some(kept) = &mut self.bytes {
            if (kept.len() + bytes.len()) as u64 > BODY_BYTES_MAX {
                self.bytes = None;
            } else {
                kept.extend_from_slice(bytes);
            }
        }
    }
}
