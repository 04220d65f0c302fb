//! The notes of a worker about the requests of its clients, while a canary runs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_http::exchange::{Exchange, lane};
use weir_http::hold::split::Coin;
use weir_http::hold::worker::Worker;
use weir_net::slots::{SlotKey, Slots};
use weir_net::{Instant, clock, timer};
use weir_stream::part::Part;
use weir_stream::session::Session;

use super::clients::{Note, NotePart};
use super::run::CanaryRun;

/// Notes of one block.
const BLOCK: usize = 128;
/// The judge gets a note after this time, at most.
const AGE: Duration = Duration::from_millis(200);
/// How often the requests under way are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The judge gets a note about a request that is under way for longer than this, before its end.
const LONG: Duration = Duration::from_secs(5);

/// The notes of a worker.
#[derive(Default)]
struct Notes {
    run: RefCell<Option<Arc<CanaryRun>>>,
    /// When this worker began.
    since: Cell<Option<Instant>>,
    block: RefCell<Vec<Note>>,
    under_way: RefCell<Slots<Begun>>,
}

/// A request that has begun.
struct Begun {
    lane: ClientLane,
    started: Instant,
    /// The number by which the judge knows it.
    told: Cell<Option<u64>>,
}

/// A request under way: the judge gets a note about it when it lasts long. It ends with this.
pub struct UnderWay<'w> {
    worker: &'w Worker,
    key: SlotKey,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let notes = self.worker.own.of(Notes::default);
        let begun = notes.under_way.borrow_mut().remove(self.key);
        if let Some(begun) = begun
            && let Some(number) = begun.told.get()
            && let Some(run) = &*notes.run.borrow()
        {
            run.take(vec![begun.note(NotePart::Over(number))]);
        }
    }
}

impl Begun {
    fn note(&self, part: NotePart) -> Note {
        self.lane.note(Note { part, ..Note::default() })
    }
}

/// The worker notes its requests for this canary from now on.
pub fn begin(worker: &Rc<Worker>, run: Arc<CanaryRun>) {
    let notes = worker.own.of(Notes::default);
    notes.block.take();
    run.join();
    let before = notes.run.replace(Some(run.clone()));
    notes.since.set(Some(clock::now()));
    if before.is_some_and(|before| Arc::ptr_eq(&before, &run)) {
        // The look is over, and requests under way are looked at already.
        return;
    }
    let worker = worker.clone();
    weir_net::worker::spawn(async move {
        while tell_long(&worker, &run) {
            timer::sleep(LOOK_EVERY).await;
        }
    });
}

/// Tells the judge about requests that last long. Whether the worker still notes for this canary.
fn tell_long(worker: &Worker, run: &Arc<CanaryRun>) -> bool {
    let notes = worker.own.of(Notes::default);
    if worker.is_draining() || notes.run.borrow().as_ref().is_none_or(|own| !Arc::ptr_eq(own, run)) {
        return false;
    }
    let (now, under_way) = (clock::now(), notes.under_way.borrow());
    let is_long =
        |begun: &&Begun| begun.told.get().is_none() && now >= begun.started + LONG && !run.is_early(begun.started);
    let tell = |begun: &Begun| {
        let number = run.number();
        begun.told.set(Some(number));
        begun.note(NotePart::Long { number, us: now.us_since(begun.started) })
    };
    let block: Vec<Note> = under_way.iter().filter(is_long).map(tell).collect();
    if !block.is_empty() {
        run.take(block);
    }
    true
}

/// Notes the begin of an exchange, if a canary runs.
#[inline]
pub fn begun<'w>(exchange: &Exchange<'w>) -> Option<UnderWay<'w>> {
    exchange.worker.is_split().then(|| begun_with(exchange)).flatten()
}

fn begun_with<'w>(exchange: &Exchange<'w>) -> Option<UnderWay<'w>> {
    let (worker, started) = (exchange.worker, exchange.facts.started);
    let notes = worker.own.of(Notes::default);
    let run = notes.run.borrow();
    let run = run.as_ref()?;
    // The event streams of dashboard viewers say nothing about the speed of requests.
    if crate::values(exchange.location).dashboard.is_on || notes.is_early(run, started) {
        return None;
    }
    let lane = lane_of(run, exchange)?;
    let begun = Begun { lane, started, told: Cell::new(None) };
    let key = notes.under_way.borrow_mut().insert(begun);
    Some(UnderWay { worker, key })
}

/// A client, and what its coin says.
#[derive(Clone, Copy)]
struct ClientLane {
    client: u64,
    limit: u64,
    is_before: bool,
    is_new: bool,
}

impl ClientLane {
    fn note(self, note: Note) -> Note {
        let ClientLane { client, limit, is_before, is_new } = self;
        Note { client, limit, is_before, is_new, ..note }
    }

    /// `number` asks the coin for the number of the client. Before the canary begins, all have the old configuration.
    fn new(run: &CanaryRun, is_beside: bool, number: impl FnOnce(&Coin) -> Option<u64>) -> Option<ClientLane> {
        let is_before = run.is_before();
        let coin = if is_before { &run.coin_before } else { &run.coin };
        let (client, limit) = (number(coin)?, coin.limit());
        Some(ClientLane { client, limit, is_before, is_new: if is_before { client < limit } else { is_beside } })
    }
}

fn lane_of(run: &CanaryRun, exchange: &Exchange<'_>) -> Option<ClientLane> {
    let is_beside = exchange.worker.is_beside(exchange.generation);
    ClientLane::new(run, is_beside, |coin| lane::number(coin, exchange.client, exchange.request))
}

impl Notes {
    /// Whether the configuration of a request was chosen before the coin was thrown.
    fn is_early(&self, run: &CanaryRun, started: Instant) -> bool {
        self.since.get().is_none_or(|since| started <= since) || run.is_early(started)
    }
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
    if notes.is_early(&run, exchange.facts.started) {
        return;
    }
    let Some(lane) = lane_of(&run, exchange) else { return run.no_key() };
    let status = exchange.response.status.get();
    let note = Note {
        took_us,
        has_failed: status >= FAILED,
        was_refused: (REFUSED..FAILED).contains(&status) && !OF_CLIENT.contains(&status),
        was_reset,
        ..Note::default()
    };
    push(worker, &run, lane.note(note));
}

/// The part of a canary in sessions of `stream`.
pub const PART: Part = Part { answered: Some(answered), log: Some(ended), ..Part::NOTHING };

fn answered(session: &mut Session<'_>) {
    note_session(session, Note { took_us: Some(clock::now().us_since(session.started)), ..Note::default() });
}

/// A session may last for days: its speed was noted when its peer answered. One without an answer has lasted until now.
fn ended(session: &mut Session<'_>) {
    let (has_failed, was_reset) = (session.status >= FAILED, session.is_cut);
    let has_answer = session.tries.last().is_none_or(|attempt| attempt.first_byte.is_some());
    let took_us = (!has_answer).then(|| clock::now().us_since(session.started));
    if has_failed || was_reset || took_us.is_some() || session.tries.is_empty() {
        note_session(session, Note { took_us, has_failed, was_reset, ..Note::default() });
    }
}

fn note_session(session: &Session<'_>, note: Note) {
    let worker = session.worker;
    if !worker.is_split() {
        return;
    }
    let notes = worker.own.of(Notes::default);
    let Some(run) = notes.run.borrow().clone() else { return };
    if notes.is_early(&run, session.started) {
        return;
    }
    // With another key, sessions have the old configuration.
    let number = |coin: &Coin| coin.of_address(session.peer().tcp().map(|address| address.ip()));
    if let Some(lane) = ClientLane::new(&run, worker.is_beside(session.generation), number) {
        push(worker, &run, lane.note(note));
    }
}

fn push(worker: &Rc<Worker>, run: &Arc<CanaryRun>, note: Note) {
    let notes = worker.own.of(Notes::default);
    let mut block = notes.block.borrow_mut();
    let is_first = block.is_empty();
    block.push(note);
    // The evidence of failures is wanted at once.
    if block.len() >= BLOCK || note.has_failed || note.was_reset {
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
