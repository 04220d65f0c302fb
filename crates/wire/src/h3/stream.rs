//! One request stream: reads a request on a server, an answer on a client (RFC 9114 §4.1).

use std::ops::{ControlFlow, Range};

use crate::role::Role;
use crate::section::message::Malformed;
use crate::section::{Block, BodyCount, Urgency};

use super::connection::H3Connection;
use super::frame::{FrameReader, H3FrameHead, H3Kind};
use super::qpack::QpackRead;
use super::{H3Code, H3Fault};

/// The meaning of bytes for the caller. `ends` is true if nothing follows on the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum H3Event {
    /// A request (on a server), an answer or interim answer (on a client): its fields are in [`H3Connection::block`].
    Head {
        /// There is no body.
        ends: bool,
        /// On a server: how its length breaks the rules of a message. The server may answer it, and must then reset the
        /// stream with [`H3Code::Message`] (RFC 9114 §4.1.2).
        malformed: Option<Malformed>,
    },
    /// A piece of a body, as a range of the input.
    Data {
        /// The piece.
        range: Range<usize>,
        /// It is the last piece.
        ends: bool,
    },
    /// Trailers, in [`H3Connection::block`]; the body is over.
    Trailers {
        /// [`H3Event::End`] does not follow.
        ends: bool,
    },
    /// On a server: a body does not have its declared length. As with a malformed head, the server may answer it. The rest
    /// of the stream is left out.
    Malformed(Malformed),
    /// The message is complete.
    End,
    /// The next section needs insertions that have not arrived: keep the rest of the input, and go on when
    /// [`H3Connection::take_ready`] returns this stream.
    Blocked,
}

/// The result of reading the input once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H3Step {
    /// Bytes of the input that are done with. Without an event, they are all.
    pub used: usize,
    /// `None` if more bytes are needed.
    pub event: Option<H3Event>,
}

/// The part of the message that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A head; on a client, interim answers come before it.
    Head,
    /// A body or trailers.
    Body,
    /// Nothing but the end.
    End,
    /// The message is broken: the rest is left out.
    Broken,
    /// Nothing: the end has come.
    Done,
}

/// The place within a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FrameHead,
    Data,
    Section,
    /// The payload is a section that has come whole, and waits.
    BlockedSection,
    /// The payload is a section larger than the limit.
    LargeSection,
    /// The payload has no meaning.
    Unknown,
}

/// See the module. It has no buffer, except while a section has come in part, or is blocked.
#[derive(Debug)]
pub struct RequestStream {
    id: u64,
    reader: FrameReader,
    part: Part,
    place: Place,
    body: BodyCount,
    is_tunnel: bool,
    urgency: Option<Urgency>,
}

impl RequestStream {
    /// On a server: a stream that the client opened. A fault of the stream refuses the request. On a client: a stream of
    /// ours, before its request is sent; a bidirectional stream that the server opened is a fault (RFC 9114 §6.1).
    pub fn begin(connection: &mut H3Connection, id: u64) -> Result<RequestStream, H3Fault> {
        let urgency = connection.begin(id)?;
        let (reader, body) = (FrameReader::default(), BodyCount::default());
        Ok(RequestStream { id, reader, part: Part::Head, place: Place::FrameHead, body, is_tunnel: false, urgency })
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The priority of the request: of the last PRIORITY_UPDATE, or else of its Priority field.
    pub fn urgency(&self) -> Urgency {
        self.urgency.unwrap_or_default()
    }

    /// Notes a priority that [`super::connection::H3News::Priority`] brought.
    pub fn set_urgency(&mut self, urgency: Urgency) {
        self.urgency = Some(urgency);
    }

    /// How many bytes of a body are still to come, if the length was declared.
    pub fn expected(&self) -> Option<u64> {
        self.body.left()
    }

    /// On a client: the length of the final answer's body, if known.
    pub fn answered(&mut self, declared: Option<u64>) {
        self.body = BodyCount::new(declared);
    }

    /// Whether the peer has sent everything.
    pub fn is_done(&self) -> bool {
        self.part == Part::Done
    }

    /// Reads the stream's next bytes; `is_last` is true if nothing follows the input. Call it again with the rest of the
    /// input until there is no event. A fault ends the stream or the connection.
    pub fn next(&mut self, connection: &mut H3Connection, bytes: &[u8], is_last: bool) -> Result<H3Step, H3Fault> {
        let mut input = Input { bytes, used: 0, is_last };
        loop {
            if let ControlFlow::Break(event) = self.advance(connection, &mut input)? {
                return Ok(H3Step { used: input.used, event });
            }
        }
    }

    fn advance(&mut self, connection: &mut H3Connection, input: &mut Input<'_>) -> Result<Turn, H3Fault> {
        match (self.part, self.place) {
            (Part::Broken | Part::Done, _) => {
                input.used = input.bytes.len();
                if input.is_last {
                    self.part = Part::Done;
                }
                Ok(Turn::Break(None))
            }
            (_, Place::FrameHead) => self.frame_head(connection, input),
            (_, Place::Section) => self.section(connection, input),
            (_, Place::BlockedSection) => {
                let section = self.reader.take_kept();
                let read = connection.decode(self.id, Some(&section))?;
                if matches!(read, QpackRead::Blocked(_)) {
                    self.reader.hold(&section);
                }
                self.section_came(connection, read, input.is_over())
            }
            (_, Place::Data | Place::LargeSection | Place::Unknown) => self.payload(connection, input),
        }
    }

    fn frame_head(&mut self, connection: &mut H3Connection, input: &mut Input<'_>) -> Result<Turn, H3Fault> {
        if input.rest().is_empty() && input.is_last && !self.reader.is_in_head() {
            return self.end(connection);
        }
        let (used, head) = self.reader.head(input.rest());
        input.used += used;
        match head {
            Some(head) => self.frame(connection, head),
            None => input.more(),
        }
    }

    /// Checks that a frame may come here (RFC 9114 §4.1, §7.2).
    fn frame(&mut self, connection: &mut H3Connection, head: H3FrameHead) -> Result<Turn, H3Fault> {
        let unexpected = |what| Err(H3Fault::connection(H3Code::FrameUnexpected, what));
        connection.calm().frame()?;
        self.place = match (head.kind, self.part) {
            (H3Kind::Other, _) => Place::Unknown,
            (H3Kind::Data, Part::Body) => Place::Data,
            (H3Kind::Data, Part::Head) => return unexpected("DATA before HEADERS"),
            (H3Kind::Data, _) => return unexpected("DATA after trailers"),
            (H3Kind::Headers, Part::Body) if self.is_tunnel => return unexpected("HEADERS in a tunnel"),
            (H3Kind::Headers, Part::Head | Part::Body) if head.length > connection.limits().section as u64 => {
                Place::LargeSection
            }
            (H3Kind::Headers, Part::Head | Part::Body) => Place::Section,
            (H3Kind::Headers, _) => return unexpected("HEADERS after trailers"),
            (H3Kind::PushPromise, _) if connection.role() == Role::Client => {
                return Err(H3Fault::connection(H3Code::Id, "a push that was not allowed"));
            }
            (H3Kind::Forbidden, _) => return unexpected("a frame of HTTP/2"),
            _ => return unexpected("a frame that belongs on another stream"),
        };
        if matches!(self.place, Place::Section | Place::LargeSection)
            && self.part == Part::Body
            && let Err(what) = self.body.end()
        {
            return self.misshapen(connection, what);
        }
        Ok(Turn::Continue(()))
    }

    fn section(&mut self, connection: &mut H3Connection, input: &mut Input<'_>) -> Result<Turn, H3Fault> {
        // The payload is in the reader or in the input.
        let mut reader = std::mem::take(&mut self.reader);
        let (used, payload) = reader.keep(input.rest());
        let Some(payload) = payload else {
            input.used += used;
            self.reader = reader;
            return input.more();
        };
        let read = connection.decode(self.id, Some(payload))?;
        match read {
            QpackRead::Whole => drop(reader.take_kept()),
            QpackRead::Blocked(_) => reader.hold(input.rest().get(..used).unwrap_or_default()),
        }
        input.used += used;
        self.reader = reader;
        self.section_came(connection, read, input.is_over())
    }

    fn section_came(&mut self, connection: &mut H3Connection, read: QpackRead, ends: bool) -> Result<Turn, H3Fault> {
        if matches!(read, QpackRead::Blocked(_)) {
            self.place = Place::BlockedSection;
            return Ok(Turn::Break(Some(H3Event::Blocked)));
        }
        self.place = Place::FrameHead;
        let event = match self.part {
            Part::Head => self.head(connection, ends),
            _ => {
                self.part = if ends { Part::Done } else { Part::End };
                H3Event::Trailers { ends }
            }
        };
        Ok(Turn::Break(Some(event)))
    }

    fn head(&mut self, connection: &mut H3Connection, ends: bool) -> H3Event {
        let mut malformed = None;
        self.part = Part::Body;
        if connection.role() == Role::Client {
            // Another head follows an interim answer.
            if first_value(connection.block(), b":status").is_some_and(|status| status.first() == Some(&b'1')) {
                self.part = Part::Head;
            }
        } else {
            connection.calm().request();
            let block = connection.block();
            self.urgency = self.urgency.or_else(|| Urgency::of(block));
            self.is_tunnel = first_value(block, b":method") == Some(b"CONNECT");
            match BodyCount::of(block) {
                Ok(body) => self.body = body,
                Err(what) => malformed = Some(what),
            }
            if ends {
                malformed = malformed.or(self.body.end().err());
            }
        }
        // A stream that ends with an interim answer is a fault, which the next call finds.
        let ends = ends && self.part == Part::Body;
        if ends {
            self.part = Part::Done;
        }
        H3Event::Head { ends, malformed }
    }

    /// A payload that is not kept.
    fn payload(&mut self, connection: &mut H3Connection, input: &mut Input<'_>) -> Result<Turn, H3Fault> {
        let piece = self.reader.pass(input.rest());
        let range = input.used..input.used + piece;
        input.used = range.end;
        let (place, is_whole) = (self.place, self.reader.is_payload_over());
        if is_whole {
            self.place = Place::FrameHead;
        }
        match place {
            Place::Data if piece > 0 => {
                let ends = is_whole && input.is_over();
                self.data(connection, range, is_whole, ends)
            }
            _ if !is_whole => input.more(),
            Place::LargeSection => {
                let read = connection.decode(self.id, None)?;
                self.section_came(connection, read, input.is_over())
            }
            _ => Ok(Turn::Continue(())),
        }
    }

    fn data(
        &mut self,
        connection: &mut H3Connection,
        range: Range<usize>,
        is_whole: bool,
        ends: bool,
    ) -> Result<Turn, H3Fault> {
        connection.calm().data_piece(range.len(), is_whole);
        let counted = self.body.take(range.len());
        if let Err(what) = counted.and_then(|()| if ends { self.body.end() } else { Ok(()) }) {
            return self.misshapen(connection, what);
        }
        if ends {
            self.part = Part::Done;
        }
        Ok(Turn::Break(Some(H3Event::Data { range, ends })))
    }

    /// The stream has ended between two frames.
    fn end(&mut self, connection: &mut H3Connection) -> Result<Turn, H3Fault> {
        match self.part {
            Part::Head => {
                self.part = Part::Done;
                Err(H3Fault::stream(self.id, H3Code::RequestIncomplete, "a stream that ends without a message"))
            }
            Part::Body if let Err(what) = self.body.end() => self.misshapen(connection, what),
            _ => {
                self.part = Part::Done;
                Ok(Turn::Break(Some(H3Event::End)))
            }
        }
    }

    /// A message without its declared length. A server may still answer it.
    fn misshapen(&mut self, connection: &mut H3Connection, what: Malformed) -> Result<Turn, H3Fault> {
        self.part = Part::Broken;
        connection.cancel(self.id);
        if connection.role() == Role::Client {
            return Err(H3Fault::stream(self.id, H3Code::Message, what));
        }
        connection.calm().reset()?;
        Ok(Turn::Break(Some(H3Event::Malformed(what))))
    }
}

/// RFC 9114 §7.1.
const CUT: H3Fault = H3Fault::connection(H3Code::Frame, "a stream that ends within a frame");

type Turn = ControlFlow<Option<H3Event>>;

/// The bytes of one call.
struct Input<'b> {
    bytes: &'b [u8],
    used: usize,
    is_last: bool,
}

impl<'b> Input<'b> {
    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.used..).unwrap_or_default()
    }

    /// Whether the stream has no more bytes.
    fn is_over(&self) -> bool {
        self.is_last && self.used == self.bytes.len()
    }

    /// More bytes are needed.
    fn more(&self) -> Result<Turn, H3Fault> {
        if self.is_last { Err(CUT) } else { Ok(Turn::Break(None)) }
    }
}

fn first_value<'b>(block: &'b Block, name: &[u8]) -> Option<&'b [u8]> {
    block.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
}
