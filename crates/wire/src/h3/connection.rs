//! One connection: the peer's unidirectional streams, the compression of fields, and the bytes of our own control and
//! decoder streams.
//!
//! ```text
//!  bytes of the peer's unidirectional streams ─ uni ─► H3News (settings, goaway, priority, ready)
//!  bytes of a request stream ─ RequestStream::next ─► H3Event (head, data, trailers, end, blocked)
//!  announce_end / goaway ─► output(Control)          acknowledgments of QPACK ─► output(Decoder)
//! ```
//!
//! QUIC has streams, windows and resets, so there are none here: the caller opens streams and passes on resets.
//!
//! Invariants: [`H3Limits`] bounds the memory for all input; an idle connection has no buffer; a frame that the RFC forbids
//! ends its stream or the connection with the RFC's code.

use crate::calm::Calm;
pub use crate::role::Role;
use crate::section::{Block, Urgency};

use super::control::{ControlFrame, ControlReader};
use super::frame::{H3FrameHead, H3Kind, UniKind};
use super::qpack::{PeerAcks, QpackDecoder, QpackRead};
use super::settings::{H3Limits, PeerSettings};
use super::uni::UniStreams;
use super::varint::{self, VARINT_MAX};
use super::{H3Code, H3Fault};

/// Instructions of the peer's encoder that cost as much as a frame.
const INSTRUCTIONS_PER_FRAME: usize = 4;
/// Priorities kept for requests that have not begun, at most; the oldest makes room.
const PRIORITIES_MAX: usize = 16;
/// Acknowledgments that wait because the peer does not read, in bytes.
const ACKS_BYTES_MAX: usize = 64 * 1024;
/// The number in a GOAWAY that stops nothing yet (RFC 9114 §5.2): the highest that a request can have.
const LAST_REQUEST: u64 = VARINT_MAX - 3;

/// A unidirectional stream of ours. The caller opens it when there are bytes for it, and never ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OurStream {
    /// SETTINGS and GOAWAY. It has bytes from the beginning.
    Control,
    /// Acknowledgments for the peer's QPACK encoder.
    Decoder,
}

/// News from the peer's unidirectional streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum H3News {
    /// The peer's SETTINGS: see [`H3Connection::peer`].
    Settings,
    /// On a client: the peer processes no request with this number or a higher one. On a server: the client ends the
    /// connection soon.
    GoAway(u64),
    /// The priority of a request that has begun; it may have ended.
    Priority(u64, Urgency),
    /// Sections that were blocked can be decoded: call [`H3Connection::take_ready`] until it has no more streams.
    Ready,
    /// The stream has an unknown type: stop it with [`H3Code::StreamCreation`], and pass no more of its bytes (RFC 9114
    /// §6.2.3).
    Unwanted,
}

/// See the module.
#[derive(Debug)]
pub struct H3Connection {
    role: Role,
    limits: H3Limits,
    unis: UniStreams,
    control: ControlReader,
    decoder: QpackDecoder,
    peer_acks: PeerAcks,
    block: Block,
    calm: Calm,
    /// Instructions that were not yet counted as a frame.
    instructions: usize,
    priorities: Vec<(u64, Urgency)>,
    /// The lowest request that has not begun.
    next_request: u64,
    /// The number in our last GOAWAY.
    going: Option<u64>,
    output: Vec<u8>,
    /// Bytes for the decoder stream; the first is its type.
    acks: Vec<u8>,
    is_decoder_open: bool,
}

impl H3Connection {
    /// A new connection. The type of its control stream and its SETTINGS wait to be sent.
    pub fn new(role: Role, limits: H3Limits) -> H3Connection {
        let mut output = vec![0];
        limits.push(&mut output);
        H3Connection {
            role,
            limits,
            unis: UniStreams::new(role),
            control: ControlReader::new(role),
            decoder: QpackDecoder::new(limits.table, limits.blocked),
            peer_acks: PeerAcks::default(),
            block: Block::default(),
            calm: Calm::default(),
            instructions: 0,
            priorities: Vec::new(),
            next_request: 0,
            going: None,
            output,
            acks: Vec::new(),
            is_decoder_open: false,
        }
    }

    /// The side that it was made for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The limits that it was made with.
    pub fn limits(&self) -> H3Limits {
        self.limits
    }

    /// The peer's SETTINGS; `None` until they have come. A client may send requests before (RFC 9114 §7.2.4.2).
    pub fn peer(&self) -> Option<PeerSettings> {
        self.control.settings()
    }

    /// The bytes to send on a stream of ours; the caller takes all of them.
    pub fn output(&mut self, stream: OurStream) -> &mut Vec<u8> {
        match stream {
            OurStream::Control => &mut self.output,
            OurStream::Decoder => {
                let acks = self.decoder.acks();
                if !acks.is_empty() {
                    if !std::mem::replace(&mut self.is_decoder_open, true) {
                        self.acks.push(3);
                    }
                    self.acks.append(acks);
                }
                &mut self.acks
            }
        }
    }

    /// The fields of the last head or trailers; to keep them, swap the block for another.
    pub fn block(&mut self) -> &mut Block {
        &mut self.block
    }

    /// Reads bytes of a unidirectional stream of the peer; `ends` is true if nothing follows them. Returns the number of
    /// bytes used, which are all if there are no news: call it again with the rest, until there are none. A fault ends the
    /// connection.
    pub fn uni(&mut self, id: u64, input: &[u8], ends: bool) -> Result<(usize, Option<H3News>), H3Fault> {
        let (mut used, kind) = self.unis.kind(id, input)?;
        let mut news = None;
        while used < input.len() && news.is_none() {
            let rest = input.get(used..).unwrap_or_default();
            match kind {
                Some(UniKind::Control) => {
                    let (more, frame) = self.control.next(rest)?;
                    used += more;
                    news = frame.map(|frame| self.control_came(frame)).transpose()?.flatten();
                }
                Some(UniKind::Encoder) => {
                    used = input.len();
                    let count = self.instructions + self.decoder.instructions(rest)?;
                    self.instructions = count % INSTRUCTIONS_PER_FRAME;
                    self.calm.frames(count / INSTRUCTIONS_PER_FRAME)?;
                    news = self.decoder.is_ready().then_some(H3News::Ready);
                }
                Some(UniKind::Decoder) => {
                    used = input.len();
                    self.calm.frames(self.peer_acks.take(rest)?)?;
                }
                Some(UniKind::Push | UniKind::Other) | None => break,
            }
        }
        if kind == Some(UniKind::Other) {
            self.calm.frames(1)?;
            return Ok((input.len(), Some(H3News::Unwanted)));
        }
        self.check_acks()?;
        if ends && news.is_none() {
            self.unis.closed(id)?;
        }
        Ok((used, news))
    }

    /// The peer reset a unidirectional stream.
    pub fn uni_reset(&mut self, id: u64) -> Result<(), H3Fault> {
        self.unis.closed(id)
    }

    /// A stream whose section is not blocked any more: its reader can go on.
    pub fn take_ready(&mut self) -> Option<u64> {
        self.decoder.take_ready()
    }

    /// The peer reset a request stream before its end, or asked to stop an answer. A fault ends the connection.
    pub fn reset_came(&mut self, stream: u64) -> Result<(), H3Fault> {
        self.cancel(stream);
        self.calm.reset()?;
        self.check_acks()
    }

    /// weir reads no more of a request stream, whose end has not come.
    pub fn cancel(&mut self, stream: u64) {
        self.decoder.cancel(stream);
    }

    /// An answer was sent to its end.
    pub fn answered(&mut self) {
        self.calm.answered();
    }

    /// Announces that no new requests may begin soon. Those that the peer began before it knew have begun a round trip
    /// later, and [`H3Connection::goaway`] may follow (RFC 9114 §5.2).
    pub fn announce_end(&mut self) {
        let last = if self.role == Role::Server { LAST_REQUEST } else { VARINT_MAX };
        self.push_goaway(last);
    }

    /// Lets no new requests begin; those that have begun go on. On a client: wants no push.
    pub fn goaway(&mut self) {
        let last = if self.role == Role::Server { self.next_request } else { 0 };
        if self.going.is_none_or(|before| before > last) {
            self.push_goaway(last);
        }
    }

    /// Whether weir has sent GOAWAY, so that the peer may begin no more requests.
    pub fn is_going(&self) -> bool {
        self.going.is_some_and(|last| last < LAST_REQUEST)
    }

    /// The number in the peer's last GOAWAY.
    pub fn peer_goaway(&self) -> Option<u64> {
        self.control.goaway()
    }

    /// A request begins: the priority that came before it. A fault of the stream refuses the request.
    pub(super) fn begin(&mut self, id: u64) -> Result<Option<Urgency>, H3Fault> {
        if !id.is_multiple_of(4) {
            return Err(H3Fault::connection(H3Code::StreamCreation, "a bidirectional stream of the server"));
        }
        if self.role == Role::Client {
            return Ok(None);
        }
        if self.going.is_some_and(|last| id >= last) {
            self.reset_came(id)?;
            return Err(H3Fault::stream(id, H3Code::RequestRejected, "a request after GOAWAY"));
        }
        self.next_request = self.next_request.max(id.saturating_add(4));
        let at = self.priorities.iter().position(|&(request, _)| request == id);
        Ok(at.map(|at| self.priorities.remove(at).1))
    }

    /// Decodes a section to the block; without one, it was too large to be kept.
    pub(super) fn decode(&mut self, stream: u64, section: Option<&[u8]>) -> Result<QpackRead, H3Fault> {
        self.block.clear();
        let Some(section) = section else {
            self.block.is_too_large = true;
            self.cancel(stream);
            return Ok(QpackRead::Whole);
        };
        self.block.sent = section.len();
        let read = self.decoder.decode(stream, section, self.limits.section, &mut self.block);
        self.check_acks()?;
        read
    }

    pub(super) fn calm(&mut self) -> &mut Calm {
        &mut self.calm
    }

    fn control_came(&mut self, frame: ControlFrame) -> Result<Option<H3News>, H3Fault> {
        self.calm.frames(1)?;
        Ok(match frame {
            ControlFrame::Settings => Some(H3News::Settings),
            ControlFrame::GoAway(id) => Some(H3News::GoAway(id)),
            ControlFrame::Priority(id, urgency) if id < self.next_request => Some(H3News::Priority(id, urgency)),
            ControlFrame::Priority(id, urgency) => {
                self.keep_priority(id, urgency);
                None
            }
            ControlFrame::Nothing => None,
        })
    }

    /// RFC 9218 §7.2: the last priority of a request that has not begun counts when it begins.
    fn keep_priority(&mut self, id: u64, urgency: Urgency) {
        self.priorities.retain(|&(request, _)| request != id);
        if self.priorities.len() >= PRIORITIES_MAX {
            self.priorities.remove(0);
        }
        self.priorities.push((id, urgency));
    }

    fn push_goaway(&mut self, last: u64) {
        H3FrameHead { kind: H3Kind::GoAway, length: varint::length(last) as u64 }.push(&mut self.output);
        varint::push(last, &mut self.output);
        self.going = Some(last);
    }

    fn check_acks(&mut self) -> Result<(), H3Fault> {
        if self.decoder.acks().len() + self.acks.len() > ACKS_BYTES_MAX {
            return Err(H3Fault::connection(H3Code::ExcessiveLoad, "a peer that asks and does not read"));
        }
        Ok(())
    }
}
