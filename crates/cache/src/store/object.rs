//! A stored response: its head as bytes ready to be written, its body as shared slices, and what is known of it.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use weir_wire::ResponseHead;

use super::forms::Forms;
use super::growth::Growth;
use super::label::Label;

/// Bytes of a body that workers share; writing them to a socket copies nothing.
pub type Chunk = Arc<[u8]>;

/// The head of a stored response, in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The bytes as the exchange rendered them: a status line, field lines. The store never looks into them.
    pub bytes: Box<[u8]>,
    /// Where the part begins that is kept for decisions and not written to clients; `bytes.len()` when there is none.
    pub hidden_from: u32,
    /// Where the value of ETag stands in `bytes`, with its quotes; an empty range when there is none.
    pub etag: Range<u32>,
    /// Last-Modified in seconds since 1970; `None` without one that can be read.
    pub last_modified: Option<i64>,
}

impl Head {
    /// The bytes that are written to clients.
    pub fn shown(&self) -> &[u8] {
        self.bytes.get(..self.hidden_from as usize).unwrap_or(&self.bytes)
    }

    /// The bytes that are only kept.
    pub fn hidden(&self) -> &[u8] {
        self.bytes.get(self.hidden_from as usize..).unwrap_or_default()
    }

    /// The value of ETag; empty when there is none.
    pub fn etag(&self) -> &[u8] {
        self.bytes.get(self.etag.start as usize..self.etag.end as usize).unwrap_or_default()
    }
}

/// When a response is what: milliseconds since 1970. The store keeps these for the rules and decides nothing by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When its head was received or last confirmed.
    pub stored_ms: u64,
    /// Its age at that moment (RFC 9111 §4.2.3: corrected initial age).
    pub age_ms: u64,
    /// Fresh before this.
    pub fresh_until_ms: u64,
    /// May be served while it is refreshed before this (RFC 5861 §3).
    pub updating_until_ms: u64,
    /// May be served in place of an error before this (RFC 5861 §4).
    pub error_until_ms: u64,
    /// Bits that belong to the rules (must-revalidate and the like).
    pub flags: u32,
}

/// A body, where it is now.
#[derive(Clone)]
pub enum Body {
    /// In memory, whole, in one piece: most are small.
    One(Chunk),
    /// In memory, whole.
    Many(Arc<[Chunk]>),
    /// In a file, whole, too large for the memory tier: for `try_sendfile`.
    File(FileBody),
    /// On its way from the origin; read it with a [`super::Reader`].
    Growing(Arc<Growth>),
}

/// A body within a file; the file stays readable after it was removed or replaced.
#[derive(Clone)]
pub struct FileBody {
    /// The file.
    pub file: Arc<File>,
    /// Where the body begins.
    pub offset: u64,
    /// Its length.
    pub len: u64,
}

impl Body {
    /// Its length; for one that grows, what there is of it now.
    pub fn len(&self) -> u64 {
        match self {
            Body::One(chunk) => chunk.len() as u64,
            Body::Many(chunks) => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            Body::File(body) => body.len,
            Body::Growing(growth) => growth.len(),
        }
    }

    /// Whether there is nothing in it (now).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces of a whole body in memory, for one vectored write; empty for the others.
    pub fn chunks(&self) -> &[Chunk] {
        match self {
            Body::One(chunk) => std::slice::from_ref(chunk),
            Body::Many(chunks) => chunks,
            Body::File(_) | Body::Growing(_) => &[],
        }
    }

    /// Whether it is whole and in memory: `chunks` is all of it.
    pub fn is_in_memory(&self) -> bool {
        matches!(self, Body::One(_) | Body::Many(_))
    }
}

/// A stored response. It never changes but for the mark of a soft purge; a refresh makes another that shares the body,
/// and so does keeping a form of it (`Zone::dress`).
pub struct Object {
    /// What it is stored as: key, variant, tags.
    pub label: Arc<Label>,
    /// Its head.
    pub head: Head,
    /// Its times.
    pub times: Times,
    /// Its body.
    pub body: Body,
    /// Where the parts of its head stand, once somebody looked.
    pub parsed: OnceLock<ResponseHead>,
    /// Unlike that of any other object in the process.
    pub serial: u64,
    /// How many purges had been made when its fetch began: later ones apply to it.
    pub(super) born: u32,
    pub(super) soft_purged: AtomicBool,
    /// Its file is in place already.
    pub(super) is_spooled: bool,
    /// What was made of it for clients.
    pub(super) forms: Forms,
    /// Somebody compresses it, to keep that.
    pub(super) is_being_packed: AtomicBool,
}

impl Object {
    /// Whether a soft purge made it stale, whatever its times say.
    pub fn is_soft_purged(&self) -> bool {
        self.soft_purged.load(Ordering::Acquire)
    }

    /// Whether its body is whole.
    pub fn is_whole(&self) -> bool {
        !matches!(self.body, Body::Growing(_))
    }

    /// What it takes in the memory tier, in bytes, the store's own part with it.
    pub fn memory_bytes(&self) -> u64 {
        let body = match &self.body {
            Body::One(chunk) => chunk.len() + CHUNK_BYTES,
            Body::Many(chunks) => chunks.iter().map(|chunk| chunk.len() + CHUNK_BYTES).sum(),
            Body::File(_) | Body::Growing(_) => 0,
        };
        let own = size_of::<Object>() + COUNTS_BYTES + self.head.bytes.len() + self.parsed_bytes() + body;
        own as u64 + self.forms.memory_bytes()
    }
}

impl Object {
    /// What `parsed` takes once it is made: a row a line of the head.
    fn parsed_bytes(&self) -> usize {
        memchr::memchr_iter(b'\n', &self.head.bytes).count() * size_of::<weir_wire::Field>()
    }
}

/// The two counts of an `Arc`.
const COUNTS_BYTES: usize = 16;

/// What a chunk takes besides its bytes: its counts, and the fat pointer to it.
const CHUNK_BYTES: usize = 32;
