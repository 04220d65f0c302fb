//! An answer: its head as ranges of the buffer it was read into, its body in the buffer where it was read.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut, Range};
use std::sync::LazyLock;

use weir_net::Lease;
use weir_wire::{Known, ResponseHead, Version};

use super::timings::Timings;

/// Parsed heads that a worker keeps for the next answers.
const HEADS_KEPT: usize = 64;

thread_local! {
    #[expect(clippy::vec_box, reason = "lent as it is: a pointer changes hands, not the head")]
    static HEADS: RefCell<Vec<Box<ResponseHead>>> = const { RefCell::new(Vec::new()) };
}

/// A parsed head on loan: its field lists are reused.
#[derive(Debug)]
pub struct Head(Option<Box<ResponseHead>>);

static EMPTY: LazyLock<ResponseHead> = LazyLock::new(ResponseHead::new);

impl Head {
    pub(super) fn lease() -> Head {
        let kept = HEADS.try_with(|heads| heads.borrow_mut().pop()).ok().flatten();
        Head(Some(kept.unwrap_or_default()))
    }
}

impl Deref for Head {
    type Target = ResponseHead;

    #[inline]
    fn deref(&self) -> &ResponseHead {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for Head {
    #[inline]
    fn deref_mut(&mut self) -> &mut ResponseHead {
        self.0.get_or_insert_default()
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        if let Some(head) = self.0.take() {
            let _ = HEADS.try_with(|heads| {
                let mut heads = heads.borrow_mut();
                if heads.len() < HEADS_KEPT {
                    heads.push(head);
                }
            });
        }
    }
}

/// The place of the body.
#[derive(Debug)]
pub enum BodyPlace {
    /// The body was not wanted, or there was none.
    Gone,
    /// In the buffer of the head, at this range.
    Here(Range<usize>),
    /// In a buffer of its own.
    Own(Lease),
}

/// A complete answer; gives its buffers back when dropped.
#[derive(Debug)]
pub struct Answer {
    /// The parsed head.
    pub head: Head,
    pub(super) buffer: Lease,
    /// The body.
    pub body: BodyPlace,
    /// The length of the body as received, before decompression; without chunk lines.
    pub body_bytes: u64,
    /// All bytes received, with heads and chunk lines.
    pub received_bytes: u64,
    /// The times of the exchange.
    pub timings: Timings,
}

impl Answer {
    /// The status code.
    #[inline]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The reason phrase; empty if the server sends none, as always over HTTP/2.
    pub fn reason(&self) -> &[u8] {
        self.head.reason.of(&self.buffer)
    }

    /// The protocol's version, as Node writes it.
    pub fn version(&self) -> &'static str {
        match self.head.version {
            Version::Http09 | Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2.0",
            // As curl and browsers do.
            Version::Http3 => "3",
        }
    }

    /// The first field of that name.
    pub fn value(&self, name: Known) -> Option<&[u8]> {
        self.head.value(&self.buffer, name)
    }

    /// All fields: name and value.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.fields.iter().map(|field| (field.name.of(&self.buffer), field.value.of(&self.buffer)))
    }

    /// The first field of that name, in any case.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body as received.
    pub fn body(&self) -> &[u8] {
        match &self.body {
            BodyPlace::Gone => b"",
            BodyPlace::Here(range) => self.buffer.get(range.clone()).unwrap_or_default(),
            BodyPlace::Own(bytes) => bytes,
        }
    }

    /// After 101: the bytes after the head.
    pub fn unread(&self) -> &[u8] {
        self.buffer.get(self.head.len..).unwrap_or_default()
    }
}
