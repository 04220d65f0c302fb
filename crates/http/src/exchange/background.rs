//! Exchanges in the background: weir makes them beside a client's exchange, and no client gets their answers.
//!
//! nginx calls them background subrequests. Such an exchange has a copy of the client's request head and a connection
//! without a client. Unlike nginx's subrequest, it holds neither the client's connection nor the client's log line. A
//! worker that drains waits for it.
//! <https://nginx.org/en/docs/dev/development_guide.html#http_subrequests>

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use weir_net::{SocketAddress, clock};

use crate::exchange::message::Request;
use crate::exchange::route::ServerId;
use crate::exchange::{Exchange, Parts};
use crate::hold::conn::Conn;
use crate::hold::own::Own;
use crate::hold::worker::{Generation, OwnEntry, Worker};
use crate::text::slots::SlotStore;

/// The most exchanges in the background at a time on one worker.
pub const BACKGROUND_MAX: usize = 1024;

/// The places of the worker's connection table for each exchange in the background. Such an exchange takes one place
/// for itself and usually one for its peer. So the clients' exchanges keep half of the table, even if no exchange in the
/// background gets an answer.
const PLACES_PER_EXCHANGE: usize = 4;

/// The most exchanges in the background with a table of this size.
fn most(places: usize) -> usize {
    (places / PLACES_PER_EXCHANGE).clamp(1, BACKGROUND_MAX)
}

thread_local! {
    static UNDER_WAY: Cell<usize> = const { Cell::new(0) };
}

/// A place among the exchanges in the background of this worker; dropping it frees the place.
struct Turn;

impl Turn {
    fn take(most: usize) -> Option<Turn> {
        let taken = UNDER_WAY.get();
        (taken < most).then(|| {
            UNDER_WAY.set(taken + 1);
            Turn
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        UNDER_WAY.set(UNDER_WAY.get().saturating_sub(1));
    }
}

/// An exchange in the background that can start: it has its connection and its place.
pub struct Background {
    /// The copy of the client's request head, without its body.
    pub request: Request,
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    server: ServerId,
    slots: SlotStore,
    args: Vec<u8>,
    told_address: Option<SocketAddress>,
    own: Own,
    conn: Conn,
    /// Held until the exchange ends: the other end of the connection, and its places in the worker's lists.
    held: (OwnedFd, OwnEntry, Turn),
}

/// Why an exchange in the background cannot start.
pub enum NoBackground {
    /// So many of them run already.
    TooMany(usize),
    /// The worker's table is full; the log says so.
    NoPlace,
    /// The system refused a connection.
    Os(io::Error),
}

impl Background {
    /// An exchange beside this one, with the same client, server and variables.
    pub fn beside(exchange: &Exchange<'_>) -> Result<Background, NoBackground> {
        let most = most(exchange.conf.places().0);
        let turn = Turn::take(most).ok_or(NoBackground::TooMany(most))?;
        let worker = exchange.worker;
        let (conn, other) = Conn::of_nobody(worker, exchange.client, exchange.conf.generation)
            .map_err(NoBackground::Os)?
            .ok_or(NoBackground::NoPlace)?;
        let entry = worker.enlist_own(&conn.shared);
        Ok(Background {
            request: exchange.request.head_alone(),
            worker: worker.clone(),
            generation: exchange.generation.clone(),
            server: exchange.server.id,
            slots: (*exchange.slots).clone(),
            args: exchange.args.clone(),
            told_address: exchange.told_address().cloned(),
            own: exchange.own.copy(),
            conn,
            held: (other, entry, turn),
        })
    }

    /// Makes the exchange for this URI, and does `work` with it in a task of its own.
    pub fn spawn(self, uri: Vec<u8>, work: impl AsyncFnOnce(&mut Exchange<'_>, &mut Conn) + 'static) {
        weir_net::worker::spawn(self.run(uri, work));
    }

    async fn run(mut self, uri: Vec<u8>, work: impl AsyncFnOnce(&mut Exchange<'_>, &mut Conn)) {
        let (conf, client) = (&*self.generation.conf, self.conn.client.clone());
        let mut parts = Parts::of(self.request, self.slots, uri, self.args);
        let (now, wall_ms) = (clock::now(), clock::unix_ms());
        let (worker, generation, server) = (&self.worker, &self.generation, conf.server(self.server));
        let mut exchange = Exchange::new(conf, worker, generation, &client, server, &mut parts, now, wall_ms);
        exchange.follow(self.told_address, None);
        exchange.own = self.own;
        work(&mut exchange, &mut self.conn).await;
        drop(exchange);
        drop(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_a_bounded_number_of_turns() {
        for (places, expected) in [(0, 1), (16, 4), (1_000_000, BACKGROUND_MAX)] {
            let turns: Vec<_> = std::iter::from_fn(|| Turn::take(most(places))).collect();
            assert_eq!(turns.len(), expected, "{places}");
            drop(turns);
            assert!(Turn::take(most(places)).is_some(), "a dropped turn is free again");
        }
    }
}
