//! Where a connection is served: the memory of `conn::active`, used by one connection after another.
//!
//! That future is some kilobytes. A connection that waits should not keep it, and making one for every request is
//! an allocation for every request: so the worker has seats, and a connection takes one for as long as it is busy.
//! The seat last left is taken first, for it is warm. Invariant: an empty seat refers to nothing outside itself.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::conn::{self, After, Conn};
use crate::exchange::Parts;
use crate::h2::Begun;
use crate::worker::{SPARE_BYTES_MAX, Worker};

/// One place to be served at.
pub struct Seat {
    table: Rc<Table>,
    /// Serves whoever is laid on the table; never ends.
    future: Pin<Box<dyn Future<Output = ()>>>,
}

/// A connection that has something to say.
pub struct Guest {
    /// The connection.
    pub conn: Box<Conn>,
    /// The worker it belongs to.
    pub worker: Rc<Worker>,
    /// Bytes of its that were read already.
    pub early: Option<Box<[u8]>>,
    /// A request that came on a stream, and is all that it came for.
    pub begun: Option<Begun>,
}

#[derive(Default)]
struct Table {
    guest: Cell<Option<Guest>>,
    served: Cell<Option<(Box<Conn>, After)>>,
}

impl Seat {
    /// A seat nobody sits on.
    pub fn new() -> Seat {
        let table = Rc::new(Table::default());
        let future = Box::pin(serve(table.clone()));
        Seat { table, future }
    }

    /// Seats a connection; `poll` serves it.
    pub fn take(&self, guest: Guest) {
        self.table.guest.set(Some(guest));
    }

    /// Serves to the end of the requests that came; gives the connection back, and what becomes of it.
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
        let Guest { mut conn, worker, early, begun } = poll_fn(|_| match table.guest.take() {
            Some(guest) => Poll::Ready(guest),
            // Not to be woken: whoever takes the seat polls it.
            None => Poll::Pending,
        })
        .await;
        if let Some(begun) = begun {
            let (sent, after) = conn::on_stream(&mut conn, &worker, begun).await;
            worker.return_parts(sent);
            table.served.set(Some((conn, after)));
            continue;
        }
        if let Some(early) = early {
            parts.request().bytes.extend_from_slice(&early);
        }
        let after;
        (parts, after) = conn::active(&mut conn, &worker, parts).await;
        if parts.capacity() > SPARE_BYTES_MAX {
            parts = Parts::default();
        } else if !parts.request().bytes.is_empty() {
            // What the client sent behind its last request, or of a request that did not become whole.
            parts.clear();
        }
        table.served.set(Some((conn, after)));
    }
}
