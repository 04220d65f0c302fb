//! A seat is the memory that a connection needs while weir serves it: the future of `requests::active`. One connection
//! after another uses it.
//!
//! That future has some kilobytes. A waiting connection should not keep it, and a new future for every request would be
//! an allocation for every request. So the worker has seats, and a connection takes one while it is busy. A connection
//! takes the seat that was used last, because this seat is in the CPU's cache. Invariant: an empty seat refers to
//! nothing outside itself.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use weir_http::exchange::Parts;
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Generation, SPARE_BYTES_MAX, Worker};
use weir_http::receive::request::Begun;

use super::after::After;
use super::requests;

/// Seats kept for later connections, per worker: as many connections as the events of one turn may wake.
const SEATS_MAX: usize = 256;

thread_local! {
    /// The worker's empty seats. A thread-local variable gives the fastest access, which matters because every wake of
    /// a connection takes a seat.
    static SPARE: RefCell<Vec<Seat>> = const { RefCell::new(Vec::new()) };
}

/// A seat for a busy connection.
pub fn lease() -> Seat {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes back an empty seat.
pub fn give_back(seat: Seat) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < SEATS_MAX {
            spare.push(seat);
        }
    });
}

/// A place to serve one connection.
pub struct Seat {
    table: Rc<Table>,
    /// The future of this seat: it serves the connection on the table, and never ends.
    future: Pin<Box<dyn Future<Output = ()>>>,
}

/// A connection that is ready to be served.
pub struct Guest {
    /// The connection.
    pub conn: Box<Conn>,
    /// The worker it belongs to.
    pub worker: Rc<Worker>,
    /// Bytes of the connection that were read already.
    pub early: Option<Box<[u8]>>,
    /// A request from a stream, and its configuration; this is the only request of the connection.
    pub carried: Option<Box<(Begun, Rc<Generation>)>>,
}

#[derive(Default)]
struct Table {
    guest: Cell<Option<Guest>>,
    served: Cell<Option<(Box<Conn>, After)>>,
}

impl Seat {
    /// An empty seat.
    pub fn new() -> Seat {
        let table = Rc::new(Table::default());
        let future = Box::pin(serve(table.clone()));
        Seat { table, future }
    }

    /// Seats a connection; `poll` serves it.
    pub fn take(&self, guest: Guest) {
        self.table.guest.set(Some(guest));
    }

    /// Serves all requests that have arrived; returns the connection and its next step.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<(Box<Conn>, After)> {
        match (self.future.as_mut().poll(context), self.table.served.take()) {
            (_, Some(served)) => Poll::Ready(served),
            (_, None) => Poll::Pending,
        }
    }
}

impl Default for Seat {
    fn default() -> Seat {
        Seat::new()
    }
}

async fn serve(table: Rc<Table>) {
    let mut parts = Parts::default();
    loop {
        let Guest { mut conn, worker, early, carried } = poll_fn(|_| match table.guest.take() {
            Some(guest) => Poll::Ready(guest),
            // This needs no waker: the worker polls a seat after a connection has taken it.
            None => Poll::Pending,
        })
        .await;
        if let Some(carried) = carried {
            let (sent, after) = requests::on_stream(&mut conn, &worker, *carried).await;
            sent.give_back(&worker);
            table.served.set(Some((conn, after)));
            continue;
        }
        if let Some(early) = early {
            parts.request().bytes.extend_from_slice(&early);
        }
        let after = requests::active(&mut conn, &worker, &mut parts).await;
        if parts.capacity() > SPARE_BYTES_MAX {
            parts = Parts::default();
        } else if !parts.request().bytes.is_empty() {
            // Bytes that the client sent after its last request, or of a request that did not become complete.
            parts.clear();
        }
        table.served.set(Some((conn, after)));
    }
}
