//! Sends the frames of exchanges over one HTTP/3 connection, and keeps the reader of each answer.

use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;

use weir_net::clock;
use weir_net::worker::Task;
use weir_quic::connection::{QuicConnection, StreamId};
use weir_wire::Version;
use weir_wire::h3::connection::{H3Connection, OurStream, Role};
use weir_wire::h3::settings::H3Limits;
use weir_wire::h3::stream::RequestStream;
use weir_wire::h3::{H3Code, write};
use weir_wire::section::composed::Composed;

use super::super::streams::{Carrier, Lost, SECTION_MAX, StreamSlot};
use super::lost;

/// An HTTP/3 connection as exchanges see it.
pub(super) struct H3Carrier {
    pub quic: Rc<QuicConnection>,
    pub wire: RefCell<H3Connection>,
    pub channels: RefCell<Vec<AnswerStream>>,
    /// Our control stream and our decoder stream, once they are open.
    ours: [Cell<Option<StreamId>>; 2],
    /// A stream that is open and unused: only opening one tells whether there is room.
    spare: Cell<Option<StreamId>>,
    driver: Cell<Task>,
}

/// The stream of one exchange.
pub(super) struct AnswerStream {
    pub id: StreamId,
    pub reader: RequestStream,
    /// Bytes of the answer behind a section that is blocked, and whether they are the last ones.
    pub rest: (Vec<u8>, bool),
    /// Frames to be sent before the body: those for which there was no room.
    ahead: Vec<u8>,
    /// The request has no body, so its end follows the frames.
    ends: bool,
}

impl H3Carrier {
    pub fn new(quic: Rc<QuicConnection>) -> H3Carrier {
        H3Carrier {
            quic,
            wire: RefCell::new(connection()),
            channels: RefCell::default(),
            ours: [Cell::new(None), Cell::new(None)],
            spare: Cell::new(None),
            driver: Cell::new(Task::NONE),
        }
    }

    /// Begins anew after early data that the server did not take: QUIC has forgotten all streams.
    pub fn begin_anew(&self) {
        self.wire.replace(connection());
        self.channels.borrow_mut().clear();
        self.ours.iter().for_each(|place| place.set(None));
        self.spare.set(None);
    }

    pub fn driven_here(&self) {
        self.driver.set(Task::current());
        self.quic.keep(Task::current());
    }

    /// Nobody drives it any more.
    pub fn leave(&self) {
        self.driver.set(Task::NONE);
        self.quic.keep(Task::NONE);
    }

    /// Sends the bytes of our own unidirectional streams, as far as the server's windows allow.
    pub fn flush(&self) {
        for (stream, place) in [OurStream::Control, OurStream::Decoder].into_iter().zip(&self.ours) {
            self.quic.send_own(place, self.wire.borrow_mut().output(stream));
        }
    }

    /// Sends the frames that waited for room on a stream.
    pub fn send_ahead(&self, id: StreamId) {
        let mut channels = self.channels.borrow_mut();
        if let Some(channel) = channels.iter_mut().find(|channel| channel.id == id) {
            self.push(channel, &mut &[][..]);
        }
    }

    /// Sends what waits ahead of a body, and as much of the body as there is room for.
    fn push(&self, channel: &mut AnswerStream, body: &mut &[u8]) {
        let ends = channel.ends || !body.is_empty();
        while !channel.ahead.is_empty() || !body.is_empty() {
            let pieces = [IoSlice::new(&channel.ahead), IoSlice::new(body)];
            // Only a write that finds no room brings an event when there is some. A stream that the server refuses takes
            // nothing: its reset, or its answer, comes.
            let Ok(count) = self.quic.write(channel.id, &pieces, u64::MAX) else { return };
            let of_ahead = count.min(channel.ahead.len());
            channel.ahead.drain(..of_ahead);
            *body = body.get(count - of_ahead..).unwrap_or_default();
        }
        if ends {
            self.quic.finish(channel.id);
        }
    }

    /// Takes the channel of a stream out; the caller puts it back.
    pub fn take(&self, id: StreamId) -> Option<AnswerStream> {
        let mut channels = self.channels.borrow_mut();
        let index = channels.iter().position(|channel| channel.id == id)?;
        Some(channels.swap_remove(index))
    }

    /// The stream of this number, if it is open.
    pub fn stream(&self, number: u64) -> Option<StreamId> {
        self.channels.borrow().iter().map(|channel| channel.id).find(|id| id.number() == number)
    }
}

fn connection() -> H3Connection {
    H3Connection::new(Role::Client, H3Limits { section: SECTION_MAX, ..H3Limits::default() })
}

impl Carrier for H3Carrier {
    fn version(&self) -> Version {
        Version::Http3
    }

    fn has_numbers(&self) -> bool {
        true
    }

    fn has_room(&self) -> bool {
        if self.spare.get().is_none() {
            self.spare.set(self.quic.open_bidirectional());
        }
        self.spare.get().is_some()
    }

    fn begin(&self, slot: &Rc<StreamSlot>, head: &Composed<'_>, body: u64) -> Option<u64> {
        let id = self.spare.take().or_else(|| self.quic.open_bidirectional())?;
        let reader = RequestStream::begin(&mut self.wire.borrow_mut(), id.number()).ok()?;
        let mut ahead = Vec::new();
        write::section(&mut ahead, |encoder, out| head.write(b"https", encoder, out));
        if body > 0 {
            write::data_head(body, &mut ahead);
        }
        let mut channel = AnswerStream { id, reader, rest: (Vec::new(), false), ahead, ends: body == 0 };
        slot.state.borrow_mut().sent.get_or_insert(clock::precise());
        self.push(&mut channel, &mut &[][..]);
        self.channels.borrow_mut().push(channel);
        Some(id.number())
    }

    fn send_body(&self, stream: u64, body: &mut &[u8]) {
        let mut channels = self.channels.borrow_mut();
        if let Some(channel) = channels.iter_mut().find(|channel| channel.id.number() == stream) {
            self.push(channel, body);
        }
    }

    fn forget(&self, _: &Rc<StreamSlot>, stream: u64) {
        if let Some(id) = self.stream(stream) {
            self.take(id);
        }
    }

    fn cancel(&self, stream: u64) {
        if let Some(id) = self.stream(stream) {
            self.wire.borrow_mut().cancel(stream);
            self.quic.reset(id, H3Code::RequestCancelled as u64);
            self.quic.stop(id, H3Code::RequestCancelled as u64);
        }
    }

    fn too_late(&self) -> Lost {
        lost::unbegun()
    }

    fn tell_driver(&self) {
        self.driver.get().wake();
    }
}
