//! All that arrives on a stream to an origin except the body: heads, trailers, and the reason of an early end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

use weir_net::buffer;
use weir_wire::Version;
use weir_wire::fields::Fields;
use weir_wire::h2::ErrorCode;
use weir_wire::h2::connection::Connection;
use weir_wire::section::message;

use super::session::Session;
use super::stream::Stream;
use crate::exchange::message::Origin;

/// Heads that wait to be read, at most: interim answers, of which an exchange accepts sixteen, and the answer.
const HEADS_MAX: usize = 17;

/// Room for a head, and for the body of a small answer behind it.
const HEAD_BYTES: usize = 16 << 10;

/// See the module.
pub struct Replies {
    heads: RefCell<VecDeque<Box<Origin>>>,
    trailers: RefCell<Fields>,
    /// The answer's head arrived.
    is_answered: Cell<bool>,
    /// The request is HEAD: the length in the answer is not that of a body.
    is_to_head: Cell<bool>,
    lost: Cell<Option<Lost>>,
    /// The session's count of reads when this stream began.
    heard: u64,
}

/// Why a stream ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The origin has not processed it (RFC 9113 §8.7): weir may send it to any peer again.
    Unprocessed(u32),
    /// The origin reset it.
    Rejected(u32),
    /// The response is malformed.
    Malformed(&'static str),
    /// Its head exceeds the limit.
    TooBig,
    /// The connection ended.
    Closed,
}

impl fmt::Display for Lost {
    /// nginx's words, if nginx has this error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Unprocessed(code) | Lost::Rejected(code) => write!(f, "upstream rejected request with error {code}"),
            Lost::Malformed(what) => write!(f, "upstream sent {what}"),
            Lost::TooBig => f.write_str("upstream sent too big header"),
            Lost::Closed => f.write_str("upstream prematurely closed connection"),
        }
    }
}

impl Replies {
    pub(super) fn new(heard: u64) -> Replies {
        Replies {
            heads: RefCell::default(),
            trailers: RefCell::default(),
            is_answered: Cell::new(false),
            is_to_head: Cell::new(false),
            lost: Cell::new(None),
            heard,
        }
    }

    pub(super) fn lose(&self, lost: Lost) {
        if matches!(self.lost.get(), None | Some(Lost::Rejected(0))) {
            self.lost.set(Some(lost));
        }
    }

    /// The request is a HEAD.
    pub(super) fn expect_no_body(&self) {
        self.is_to_head.set(true);
    }

    /// Whether nothing was read from the peer, on any stream, since this stream began.
    pub(super) fn heard_nothing(&self, heard: u64) -> bool {
        !self.is_answered.get() && heard == self.heard
    }
}

impl Stream {
    /// The next head: of an interim answer, or of the answer. The answer's head is followed by the part of the body
    /// that has arrived. If the origin has reset the stream with an error already, there is no answer: its client would get
    /// the beginning of a body that never ends.
    pub fn poll_head(&self) -> Poll<Result<Box<Origin>, Lost>> {
        let Some(replies) = self.replies() else { return Poll::Ready(Err(Lost::Closed)) };
        if let Some(lost @ Lost::Rejected(1..)) = replies.lost.get()
            && !self.has_ended()
        {
            return Poll::Ready(Err(lost));
        }
        if let Some(mut origin) = replies.heads.borrow_mut().pop_front() {
            if !origin.head.is_interim() {
                self.read_behind(&mut origin);
            }
            return Poll::Ready(Ok(origin));
        }
        if self.is_lost() {
            return Poll::Ready(Err(self.lost()));
        }
        self.await_reply();
        Poll::Pending
    }

    /// Why the stream ended early.
    pub fn lost(&self) -> Lost {
        let told = self.replies().and_then(|replies| replies.lost.get());
        told.or_else(|| self.session().fault().map(Lost::Malformed)).unwrap_or(Lost::Closed)
    }

    /// Whether trailers have arrived.
    pub fn has_trailers(&self) -> bool {
        self.replies().is_some_and(|replies| !replies.trailers.borrow().is_empty())
    }

    /// The trailers; a second call returns none.
    pub fn take_trailers(&self) -> Fields {
        self.replies().map(|replies| replies.trailers.take()).unwrap_or_default()
    }
}

/// Handles the head of an answer or of an interim answer, which is in `session`'s block. It goes into `origin`; returns
/// `origin` if nothing needs it.
pub fn head_came(session: &Rc<Session>, mut origin: Box<Origin>, id: u32, ends: bool) -> Option<Box<Origin>> {
    let Some(stream) = session.stream(id) else {
        session.wire.borrow_mut().answered(id, None);
        return Some(origin);
    };
    let Some(replies) = stream.replies() else { return Some(origin) };
    let read = {
        let mut wire = session.wire.borrow_mut();
        read(&mut wire, &mut origin).and_then(|()| judge(&origin, replies, ends))
    };
    match read {
        Ok(declared) => {
            if !origin.head.is_interim() {
                replies.is_answered.set(true);
                session.wire.borrow_mut().answered(id, declared);
            }
            replies.heads.borrow_mut().push_back(origin);
            stream.note_head(ends);
            None
        }
        Err(lost) => {
            session.wire.borrow_mut().reset(id, ErrorCode::Protocol);
            stream.lose(lost);
            Some(origin)
        }
    }
}

fn read(wire: &mut Connection, origin: &mut Origin) -> Result<(), Lost> {
    let block = wire.block();
    if block.is_too_large {
        return Err(Lost::TooBig);
    }
    message::response(block, Version::Http2, &mut origin.head).map_err(Lost::Malformed)?;
    origin.bytes = buffer::lease(block.bytes.len().max(HEAD_BYTES));
    origin.bytes.extend_from_slice(&block.bytes);
    Ok(())
}

/// The length of the body, if it is declared and matters.
fn judge(origin: &Origin, replies: &Replies, ends: bool) -> Result<Option<u64>, Lost> {
    if replies.heads.borrow().len() >= HEADS_MAX {
        return Err(Lost::Malformed("too many interim answers"));
    }
    message::declared(&origin.head, &origin.bytes, replies.is_to_head.get(), ends).map_err(Lost::Malformed)
}

/// Handles trailers, which are in `session`'s block, and the end that comes with them.
pub fn trailers_came(session: &Rc<Session>, id: u32) {
    let Some(stream) = session.stream(id) else { return };
    let mut wire = session.wire.borrow_mut();
    let block = wire.block();
    if let Err(what) = message::check_trailers(block) {
        wire.reset(id, ErrorCode::Protocol);
        drop(wire);
        return stream.lose(Lost::Malformed(what));
    }
    if let Some(replies) = stream.replies() {
        let mut trailers = replies.trailers.borrow_mut();
        for field in &block.fields {
            let (name, value) = (field.name.of(&block.bytes), field.value.of(&block.bytes));
            trailers.push_known(name, value, field.known);
        }
    }
    drop(wire);
    stream.take_in(&[], true);
}
