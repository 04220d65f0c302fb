//! A stored response: its head as bytes ready to be written, its body as shared slices, and its times.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use weir_wire::ResponseHead;

use super::growth::Growth;
use super::label::Label;
use super::piece::{Chunk, FileBody};
use crate::ready::Ready;

/// A whole body of up to this size becomes one piece: one allocation, one slice to write.
const ONE_PIECE_BYTES_MAX: u64 = 256 << 10;

/// The head of a stored response, in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredHead {
    /// The status code.
    pub status: u16,
    /// The bytes as the exchange rendered them: a status line and field lines. The store does not interpret them.
    pub bytes: Box<[u8]>,
    /// The start of the part that is kept for decisions and not sent to clients; `bytes.len()` if there is none.
    pub hidden_from: u32,
    /// The range of the value of ETag in `bytes`, with its quotes; empty if there is none.
    pub etag: Range<u32>,
    /// Last-Modified in seconds since 1970; `None` if it is absent or invalid.
    pub last_modified: Option<i64>,
}

impl StoredHead {
    /// The bytes for clients.
    pub fn shown(&self) -> &[u8] {
        self.bytes.get(..self.hidden_from as usize).unwrap_or(&self.bytes)
    }

    /// The bytes that are not sent.
    pub fn hidden(&self) -> &[u8] {
        self.bytes.get(self.hidden_from as usize..).unwrap_or_default()
    }

    /// The value of ETag; empty if there is none.
    pub fn etag(&self) -> &[u8] {
        self.bytes.get(self.etag.start as usize..self.etag.end as usize).unwrap_or_default()
    }
}

/// The times of a response in milliseconds since 1970. The store keeps them for the rules and does not use them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time when its head was received or last confirmed.
    pub stored_ms: u64,
    /// Its age at that moment (RFC 9111 §4.2.3: corrected initial age).
    pub age_ms: u64,
    /// Fresh before this.
    pub fresh_until_ms: u64,
    /// May be served during a refresh before this (RFC 5861 §3).
    pub updating_until_ms: u64,
    /// May be served instead of an error before this (RFC 5861 §4).
    pub error_until_ms: u64,
    /// Flags of the rules (such as must-revalidate).
    pub flags: u32,
}

/// A body, by its place.
#[derive(Clone)]
pub enum Body {
    /// In memory, whole, in one piece: most bodies are small.
    One(Chunk),
    /// In memory, whole.
    Many(Arc<[Chunk]>),
    /// In a file, whole, too large for the memory tier: for `try_sendfile`.
    File(FileBody),
    /// Arriving from the origin; read it with a [`super::Reader`].
    Growing(Arc<Growth>),
}

impl Body {
    /// The body of a growth for storing; `None` if it was cut, has not ended, or has left memory in part.
    pub(super) fn of(growth: &Growth) -> Option<Body> {
        growth.whole(|pieces, len| {
            if pieces.len() == 1
                && let Some((_, chunk)) = pieces.front()
            {
                return Body::One(chunk.clone());
            }
            if len <= ONE_PIECE_BYTES_MAX {
                let mut all = Vec::with_capacity(len as usize);
                pieces.iter().for_each(|(_, chunk)| all.extend_from_slice(chunk));
                return Body::One(all.into());
            }
            Body::Many(pieces.iter().map(|(_, chunk)| chunk.clone()).collect())
        })
    }

    /// Its length; for a growing body, the length so far.
    pub fn len(&self) -> u64 {
        match self {
            Body::One(chunk) => chunk.len() as u64,
            Body::Many(chunks) => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            Body::File(body) => body.len,
            Body::Growing(growth) => growth.len(),
        }
    }

    /// Whether it is empty so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces of a whole body in memory, for one vectored write; empty for other bodies.
    pub fn chunks(&self) -> &[Chunk] {
        match self {
            Body::One(chunk) => std::slice::from_ref(chunk),
            Body::Many(chunks) => chunks,
            Body::File(_) | Body::Growing(_) => &[],
        }
    }

    /// Whether it is whole and in memory: then `chunks` has all of it.
    pub fn is_in_memory(&self) -> bool {
        matches!(self, Body::One(_) | Body::Many(_))
    }
}

/// A stored response. It never changes except for the soft-purge mark. A refresh makes another object with the same
/// body, and so does keeping a form of it (`Zone::dress`).
pub struct Object {
    /// Its identity: key, variant, tags.
    pub label: Arc<Label>,
    /// Its head.
    pub head: StoredHead,
    /// Its times.
    pub times: Times,
    /// Its body.
    pub body: Body,
    /// The parsed head, once a request needed it.
    pub parsed: OnceLock<ResponseHead>,
    /// A number that no other object in the process has.
    pub serial: u64,
    /// The number of purges when its fetch began: later ones apply to it.
    pub(super) born: u32,
    pub(super) soft_purged: AtomicBool,
    /// Its file is already in place.
    pub(super) is_spooled: bool,
    /// It is not written to the directory if it fits in memory.
    pub(super) stays_in_memory: bool,
    /// Its derived forms.
    pub(super) forms: Forms,
    /// A request is compressing the body, and will keep the result.
    pub(super) is_being_packed: AtomicBool,
}

impl Object {
    /// Whether a soft purge made it stale, regardless of its times.
    pub fn is_soft_purged(&self) -> bool {
        self.soft_purged.load(Ordering::Acquire)
    }

    /// Whether its body is whole.
    pub fn is_whole(&self) -> bool {
        !matches!(self.body, Body::Growing(_))
    }

    /// Its size in the memory tier in bytes, including the store's own overhead.
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

/// The derived forms of one object: see `forms`.
#[derive(Clone, Default)]
pub(super) struct Forms {
    /// The body in content codings, at most once in each.
    pub(super) packed: Vec<Packed>,
    /// The ready head for the plain body.
    pub(super) ready: Option<Arc<Ready>>,
}

/// A content coding of a body, and how well it was compressed. The store only compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// Which coding. Of several bodies in one coding, the store keeps the last.
    pub number: u8,
    /// The settings of the compressor.
    pub level: i32,
}

/// A compressed body.
#[derive(Clone)]
pub(super) struct Packed {
    pub(super) coding: Coding,
    /// An object of its own with only the body.
    pub(super) object: Arc<Object>,
    /// The ready head for this body.
    pub(super) ready: Option<Arc<Ready>>,
}

impl Forms {
    /// The forms that depend only on the body: they survive a change of the head.
    pub fn of_body(&self) -> Forms {
        let packed = self.packed.iter().map(|packed| Packed { ready: None, ..packed.clone() });
        Forms { packed: packed.collect(), ready: None }
    }

    /// Their size in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let ready = |ready: &Option<Arc<Ready>>| ready.as_ref().map_or(0, |ready| ready.memory_bytes());
        let own = size_of::<Packed>() as u64;
        let packed = self.packed.iter().map(|packed| own + packed.object.memory_bytes() + ready(&packed.ready));
        packed.sum::<u64>() + ready(&self.ready)
    }
}

impl Object {
    /// The body in this coding, if one is kept.
    pub fn packed(&self, coding: Coding) -> Option<&Arc<Object>> {
        self.in_coding_kept(coding).map(|packed| &packed.object)
    }

    fn in_coding_kept(&self, coding: Coding) -> Option<&Packed> {
        self.forms.packed.iter().find(|packed| packed.coding == coding)
    }

    /// All ready heads: for the plain body and for those in codings.
    pub fn readies(&self) -> impl Iterator<Item = &Arc<Ready>> {
        self.forms.packed.iter().filter_map(|packed| packed.ready.as_ref()).chain(&self.forms.ready)
    }

    /// The ready head for the plain body.
    pub fn ready(&self) -> Option<&Arc<Ready>> {
        self.forms.ready.as_ref()
    }

    /// The body in this coding, and its ready head.
    pub fn ready_packed(&self, coding: Coding) -> Option<(&Arc<Object>, &Arc<Ready>)> {
        let packed = self.in_coding_kept(coding)?;
        Some((&packed.object, packed.ready.as_ref()?))
    }

    /// The size of `parsed` once it is made: one row per line of the head.
    fn parsed_bytes(&self) -> usize {
        memchr::memchr_iter(b'\n', &self.head.bytes).count() * size_of::<weir_wire::Field>()
    }
}

/// The two counters of an `Arc`.
const COUNTS_BYTES: usize = 16;

/// The size of a chunk besides its bytes: its counters, and the fat pointer to it.
const CHUNK_BYTES: usize = 32;
