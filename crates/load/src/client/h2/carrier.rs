//! Sends the frames of exchanges over one HTTP/2 connection.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use weir_net::worker::Task;
use weir_net::{Transport, clock};
use weir_wire::Version;
use weir_wire::h2::ErrorCode;
use weir_wire::h2::connection::{Connection, Limits, Role};
use weir_wire::section::composed::Composed;

use super::super::incoming::is_passing;
use super::super::streams::{Carrier, Lost, SECTION_MAX, StreamSlot};
use super::lost;

/// Limit of bytes that wait for the socket. Above it, no body is written and no frame is read.
pub(super) const OUT_MAX: usize = 64 << 10;
/// Capacity kept while no bytes wait.
const OUT_KEPT: usize = 16 << 10;
/// The receive window. The driver consumes all data at once, so the server never waits for a window update.
const WINDOW: u32 = (1 << 30) - 1;

/// An HTTP/2 connection as exchanges see it.
pub(super) struct H2Carrier {
    pub transport: Transport,
    pub wire: RefCell<Connection>,
    out: RefCell<Out>,
    /// Exchanges that have begun and whose requests the kernel has not taken completely.
    unsent: RefCell<Vec<Rc<StreamSlot>>>,
    driver: Cell<Task>,
    /// Something was read.
    is_heard: Cell<bool>,
}

/// Bytes that wait for the socket.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    start: usize,
}

impl Out {
    fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The buffer for new frames, which come after the connection's own frames.
    fn behind(&mut self, wire: &mut Connection) -> &mut Vec<u8> {
        let own = wire.output();
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, own);
        } else {
            self.bytes.append(own);
        }
        &mut self.bytes
    }
}

impl H2Carrier {
    pub fn new(transport: Transport) -> H2Carrier {
        let limits = Limits {
            streams: 0,
            section: SECTION_MAX,
            window: WINDOW,
            connection_window: WINDOW,
            is_connect_extended: false,
        };
        H2Carrier {
            transport,
            wire: RefCell::new(Connection::new(Role::Client, limits)),
            out: RefCell::default(),
            unsent: RefCell::default(),
            driver: Cell::new(Task::NONE),
            is_heard: Cell::new(false),
        }
    }

    pub fn driven_here(&self) {
        self.driver.set(Task::current());
    }

    /// Nobody drives it any more.
    pub fn leave(&self) {
        self.driver.set(Task::NONE);
    }

    pub fn hear(&self) {
        self.is_heard.set(true);
    }

    /// True if nothing has been read yet.
    pub fn is_unheard(&self) -> bool {
        !self.is_heard.get()
    }

    /// Bytes that wait for the socket.
    pub fn waiting_bytes(&self) -> usize {
        self.out.borrow().len()
    }

    /// Sends the waiting bytes, as far as the socket accepts them; true if there is room for more.
    pub fn flush(&self) -> io::Result<bool> {
        let (mut wire, mut out) = (self.wire.borrow_mut(), self.out.borrow_mut());
        out.behind(&mut wire);
        if out.len() == 0 {
            return Ok(true);
        }
        let mut unsent = self.unsent.borrow_mut();
        if !unsent.is_empty() {
            let now = clock::precise();
            unsent.drain(..).for_each(|slot| {
                slot.state.borrow_mut().sent.get_or_insert(now);
            });
        }
        while out.len() > 0 {
            match self.transport.try_write(out.bytes.get(out.start..).unwrap_or_default()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => out.start += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.transport.poll_writable().is_pending() {
                        break;
                    }
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if out.len() == 0 {
            out.start = 0;
            out.bytes.clear();
            out.bytes.shrink_to(OUT_KEPT);
        }
        Ok(out.len() < OUT_MAX)
    }
}

impl Carrier for H2Carrier {
    fn version(&self) -> Version {
        Version::Http2
    }

    fn has_numbers(&self) -> bool {
        self.wire.borrow().has_numbers()
    }

    fn has_room(&self) -> bool {
        self.wire.borrow().room() > 0
    }

    fn begin(&self, slot: &Rc<StreamSlot>, head: &Composed<'_>, body: u64) -> Option<u64> {
        let scheme: &[u8] = if self.transport.is_secure() { b"https" } else { b"http" };
        let mut wire = self.wire.borrow_mut();
        let id = wire.open()?;
        wire.head(id, body == 0, |encoder, out| head.write(scheme, encoder, out));
        self.out.borrow_mut().behind(&mut wire);
        self.unsent.borrow_mut().push(slot.clone());
        Some(id.into())
    }

    fn send_body(&self, stream: u64, body: &mut &[u8]) {
        let (mut wire, mut out) = (self.wire.borrow_mut(), self.out.borrow_mut());
        let id = number(stream);
        while !body.is_empty() {
            let length = wire.sendable(id).min(body.len());
            if length == 0 || out.len() >= OUT_MAX {
                break;
            }
            let (piece, rest) = body.split_at(length);
            let frame = wire.data(id, length, rest.is_empty());
            let bytes = out.behind(&mut wire);
            bytes.extend_from_slice(&frame);
            bytes.extend_from_slice(piece);
            *body = rest;
        }
        self.tell_driver();
    }

    fn forget(&self, slot: &Rc<StreamSlot>, _: u64) {
        self.unsent.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
    }

    fn cancel(&self, stream: u64) {
        self.wire.borrow_mut().reset(number(stream), ErrorCode::Cancel);
    }

    fn too_late(&self) -> Lost {
        lost::unbegun(0)
    }

    fn tell_driver(&self) {
        self.driver.get().wake();
    }
}

/// The number of a stream in frames, where it has 31 bits.
fn number(stream: u64) -> u32 {
    u32::try_from(stream).unwrap_or(0)
}
