//! The notes of a worker about the requests of its clients, while a canary runs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_http::exchange::{Exchange, lane};
use weir_http::hold::worker::Worker;
use weir_net::{Instant, clock, timer};

use super::clients::Note;
use super::run::CanaryRun;

/// Notes of one block.
const BLOCK: usize = 128;
/// The judge gets a note after this time, at most.
const AGE: Duration = Duration::from_millis(200);

/// The notes of a worker.
#[derive(Default)]
struct Notes {
    run: RefCell<Option<Arc<CanaryRun>>>,
    /// When this worker began.
    since: Cell<Option<Instant>>,
    block: RefCell<Vec<Note>>,
}

/// The worker notes its requests for this canary from now on.
pub fn begin(worker: &Worker, run: Arc<CanaryRun>) {
    let notes = worker.own.of(Notes::default);
    notes.block.take();
    run.join();
    notes.run.replace(Some(run));
    notes.since.set(Some(clock::now()));
}

/// The worker notes nothing any more for the canary of this number.
pub fn end(worker: &Worker, number: u32) {
    let notes = worker.own.of(Notes::default);
    if notes.run.borrow().as_ref().is_some_and(|run| run.generation == number) {
        notes.block.take();
        notes.run.take();
    }
}

/// Notes the end of an exchange. `took_us` is its time, unless that says nothing about speed.
pub fn note(exchange: &Exchange<'_>, took_us: Option<u64>, was_reset: bool) {
    let worker = exchange.worker;
    let notes = worker.own.of(Notes::default);
    let Some(run) = notes.run.borrow().clone() else { return };
    let started = exchange.facts.started;
    // Its configuration was chosen before the coin was thrown.
    if notes.since.get().is_none_or(|since| started <= since) || run.is_early(started) {
        return;
    }
    let coin = run.coin();
    let Some(client) = lane::number(coin, exchange.client, exchange.request) else { return run.no_key() };
    let limit = coin.limit();
    let status = exchange.response.status.get();
    let note = Note {
        client,
        limit,
        is_new: if run.is_rehearsal() { client < limit } else { worker.is_beside(exchange.generation) },
        took_us,
        has_failed: status >= FAILED,
        was_refused: (REFUSED..FAILED).contains(&status) && !OF_CLIENT.contains(&status),
        was_reset,
    };
    let mut block = notes.block.borrow_mut();
    let is_first = block.is_empty();
    block.push(note);
    // The evidence of failures is wanted at once.
    if block.len() >= BLOCK || note.has_failed || was_reset {
        run.take(std::mem::take(&mut *block));
    } else if is_first {
        let worker = worker.clone();
        weir_net::worker::spawn(async move {
            timer::sleep(AGE).await;
            give(&worker);
        });
    }
}

/// Gives the notes of a worker to the judge.
fn give(worker: &Rc<Worker>) {
    let notes = worker.own.of(Notes::default);
    let block = notes.block.take();
    if let Some(run) = &*notes.run.borrow()
        && !block.is_empty()
    {
        run.take(block);
    }
}

/// Statuses from here on are refusals.
const REFUSED: u16 = 400;
/// The client was late; its certificate was verified before the canary; the configuration closed the connection; the client
/// closed it.
const OF_CLIENT: [u16; 4] = [408, 421, 444, 499];
/// Statuses from here on are failures of weir or of an origin.
const FAILED: u16 = 500;
