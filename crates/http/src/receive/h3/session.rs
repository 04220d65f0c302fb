//! The state that the streams of a connection share: QUIC and the frames.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use weir_net::buffer;
use weir_net::worker::Task;
use weir_quic::connection::{Follows, QuicConnection, QuicEnd, StreamId};
use weir_wire::h3::connection::{H3Connection, H3News, OurStream, Role};
use weir_wire::h3::settings::H3Limits;
use weir_wire::h3::{H3Code, H3Fault};

/// Bytes read from a unidirectional stream at a time.
const READ_BYTES: usize = 4 << 10;

/// A connection of HTTP/3.
pub struct H3Session {
    /// The connection of QUIC.
    pub quic: Rc<QuicConnection>,
    /// Its frames and tables.
    pub wire: RefCell<H3Connection>,
    /// The host for requests of HTTP/0.9, which has no frames and names none (`hq`); `None` for HTTP/3.
    pub hq: Option<String>,
    /// Our control stream and our decoder stream, once they are open.
    ours: [Cell<Option<StreamId>>; 2],
    driver: Cell<Task>,
    fault: Cell<Option<H3Fault>>,
    /// Rules that the client broke on single streams, for the log; one for each stream at most.
    notes: RefCell<Vec<&'static str>>,
    is_dead: Cell<bool>,
}

impl H3Session {
    /// A session over a connection whose handshake may go on; its SETTINGS wait to be sent.
    pub fn new(quic: Rc<QuicConnection>, limits: H3Limits, hq: Option<String>) -> Rc<H3Session> {
        Rc::new(H3Session {
            quic,
            wire: RefCell::new(H3Connection::new(Role::Server, limits)),
            hq,
            ours: [Cell::new(None), Cell::new(None)],
            driver: Cell::new(Task::NONE),
            fault: Cell::new(None),
            notes: RefCell::default(),
            is_dead: Cell::new(false),
        })
    }

    /// Notes that the current task drives the connection.
    pub fn driven_here(&self) {
        self.driver.set(Task::current());
        self.quic.keep(Task::current());
    }

    /// Wakes the driving task.
    pub fn tell_driver(&self) {
        self.driver.get().wake();
    }

    /// Whether nothing can be sent or received any more.
    pub fn is_dead(&self) -> bool {
        self.is_dead.get()
    }

    /// Reads all that has come on a unidirectional stream of the client; hands news to `act`.
    ///
    /// # Errors
    /// The client broke a rule, which ends the connection.
    pub fn read_uni(&self, id: StreamId, act: &mut dyn FnMut(H3News)) -> Result<(), H3Fault> {
        if self.hq.is_some() {
            return Err(H3Fault::connection(H3Code::StreamCreation, "a unidirectional stream in hq mode"));
        }
        let mut bytes = buffer::lease(READ_BYTES);
        loop {
            bytes.clear();
            let follows = self.quic.read(id, &mut bytes, READ_BYTES);
            self.uni_came(id, &bytes, act)?;
            match follows {
                Follows::More => {}
                Follows::Nothing | Follows::Gone => return Ok(()),
                Follows::End => return self.wire.borrow_mut().uni(id.number(), &[], true).map(drop),
                Follows::Reset(_) => return self.wire.borrow_mut().uni_reset(id.number()),
            }
        }
    }

    fn uni_came(&self, id: StreamId, bytes: &[u8], act: &mut dyn FnMut(H3News)) -> Result<(), H3Fault> {
        let mut rest = bytes;
        loop {
            let (used, news) = self.wire.borrow_mut().uni(id.number(), rest, false)?;
            rest = rest.get(used..).unwrap_or_default();
            match news {
                Some(H3News::Unwanted) => {
                    self.quic.stop(id, H3Code::StreamCreation as u64);
                    return Ok(());
                }
                Some(news) => act(news),
                None => return Ok(()),
            }
        }
    }

    /// Sends the bytes of our own unidirectional streams, as far as the client's windows allow.
    pub fn flush(&self) {
        if self.hq.is_some() {
            return;
        }
        for (stream, place) in [OurStream::Control, OurStream::Decoder].into_iter().zip(&self.ours) {
            self.quic.send_own(place, self.wire.borrow_mut().output(stream));
        }
    }

    /// Notes the rule that the client broke on a stream; the driver ends the connection.
    pub fn blame(&self, fault: H3Fault) {
        if self.fault.replace(Some(fault)).is_none() {
            self.tell_driver();
        }
    }

    /// Notes the rule that the client broke on a stream, which ends that stream alone; the driver logs it.
    pub fn note(&self, what: &'static str) {
        self.notes.borrow_mut().push(what);
        self.tell_driver();
    }

    /// The rules of [`H3Session::note`] since the last call.
    pub fn take_notes(&self) -> Vec<&'static str> {
        self.notes.take()
    }

    /// The rule that the client broke.
    pub fn fault(&self) -> Option<H3Fault> {
        self.fault.get()
    }

    /// Why the connection has ended.
    pub fn end(&self) -> Option<QuicEnd> {
        self.quic.end()
    }

    /// Ends the session. The driver wakes every stream, so that it notices.
    pub fn kill(&self) {
        self.is_dead.set(true);
        self.driver.set(Task::NONE);
        self.quic.keep(Task::NONE);
    }
}
