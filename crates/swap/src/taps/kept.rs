//! The parts of a request that a tap keeps, and their bounds.

use weir_recording::Secrets;
use weir_recording::secrets::BodyHash;

/// Longest head that is read. The bytes of a longer one go on unread.
pub(super) const HEAD_MAX: usize = 128 << 10;
/// Most bytes of a request's body that are kept; of a longer one also the length and a hash.
pub(super) const BODY_MAX: usize = 64 << 10;

/// The first bytes of a body, and a hash of all of them.
#[derive(Debug)]
pub(super) struct KeptBody {
    bytes: Vec<u8>,
    length: u64,
    hash: BodyHash,
}

impl Default for KeptBody {
    fn default() -> KeptBody {
        // The hash is compared, and hides nothing.
        KeptBody { bytes: Vec::new(), length: 0, hash: Secrets::new([0; 16]).body_hash() }
    }
}

impl KeptBody {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = BODY_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        self.length += bytes.len() as u64;
        self.hash.update(bytes);
    }

    pub(super) fn whole(self) -> Vec<u8> {
        let KeptBody { mut bytes, length, hash } = self;
        if length > bytes.len() as u64 {
            bytes.extend_from_slice(format!("… {length} bytes, {:016x}", hash.finish()).as_bytes());
        }
        bytes
    }
}
