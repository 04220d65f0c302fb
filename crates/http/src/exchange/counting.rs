//! Counts exchanges and their tries into the cells of their worker.

use weir_meter::live::cells::Why;
use weir_meter::live::histogram::Spot;
use weir_net::{Instant, clock};

use crate::exchange::Exchange;
use crate::exchange::message::Try;
use crate::hold::board::{self, Leg};

/// A request whose start was counted: if its task panics, its end is counted too.
pub struct Opened<'w>(Option<&'w board::Board>, u32);

impl Opened<'_> {
    /// The log phase counts the end.
    #[inline]
    pub fn close(mut self) {
        self.0 = None;
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if let Some(board) = self.0 {
            board.zone(self.1).discarded.one();
        }
    }
}

/// Notes a step that comes before the source of the answer, and ends at this moment.
pub fn held(exchange: &mut Exchange<'_>, leg: Leg, begun: Instant) {
    let us = clock::now().us_since(begun);
    exchange.worker.board.took(leg, us);
    let us = u32::try_from(us).unwrap_or(u32::MAX);
    exchange.facts.held_us = exchange.facts.held_us.saturating_add(us);
}

/// Counts the start of a request whose server is known.
pub fn begin<'w>(exchange: &mut Exchange<'w>) -> Opened<'w> {
    let (worker, cell) = (exchange.worker, exchange.conf.location(exchange.server.root).cell);
    let board = &*worker.board;
    board.zone(cell).begun.one();
    board.took(Leg::Accept, clock::now().us_since(exchange.facts.started));
    exchange.flags.is_counted = true;
    Opened(Some(board), cell)
}

/// Counts the tries of an exchange with their peers, also for an exchange without a client, such as a refresh. Returns
/// the last time recorded, which often is the exchange's too.
pub fn count_tries(exchange: &Exchange<'_>) -> Spot {
    let mut spot = Spot::default();
    for (index, attempt) in exchange.tries.iter().enumerate() {
        if let Some(started) = attempt.started {
            spot = count_try(exchange, attempt, started, spot);
            if index > 0 && !attempt.after_redirect {
                exchange.worker.board.peer(attempt.cell).retries.one();
            }
        }
    }
    spot
}

#[inline]
fn count_try(exchange: &Exchange<'_>, attempt: &Try, started: Instant, mut spot: Spot) -> Spot {
    let board = &*exchange.worker.board;
    let cell = board.peer(attempt.cell);
    cell.requests.one();
    cell.sent.add(attempt.bytes_sent);
    cell.received.add(attempt.bytes_received);
    let waited_ms = if started == exchange.facts.started { 0 } else { started.ms_since(exchange.facts.started) };
    cell.selected_ms.set(exchange.facts.started_wall_ms + waited_ms);
    if let Some(why) = attempt.why {
        cell.failed(why);
    }
    // A subrequest's time is in a step of the request that waits for it, or nobody waits for it.
    let took = |leg: Leg, us: u64| {
        if !exchange.flags.is_subrequest {
            board.took(leg, us);
        }
    };
    let Some(connect) = attempt.connect_us.map(u64::from) else { return spot };
    if attempt.reused {
        cell.reused.one();
        took(Leg::Pool, connect);
    } else {
        cell.opened.one();
        cell.connect.record(connect);
        took(Leg::Connect, connect);
    }
    let Some(header) = attempt.header_us else { return spot };
    cell.codes.count(attempt.status);
    spot = spot.or(header);
    cell.header.put(spot);
    if !exchange.flags.is_subrequest {
        board.took_at(Leg::Wait, spot.or(header.saturating_sub(connect)));
    }
    // The data after a 101 is not a response.
    if let Some(response) = attempt.response_us.filter(|_| attempt.status != 101) {
        spot = spot.or(response);
        cell.responded(response, spot);
        // The pauses of a rate are a step of their own; the upstream waits meanwhile.
        took(Leg::Body, response.saturating_sub(header).saturating_sub(exchange.paced_us()));
    }
    spot
}

/// Records why the last try failed.
pub fn blame(exchange: &mut Exchange<'_>, why: Why) {
    let Some(attempt) = exchange.last_try() else { return };
    attempt.why = Some(why);
    let cell = attempt.cell;
    exchange.worker.board.peer_failed(cell, clock::unix_ms(), || board::line_of(exchange.asked()));
}
