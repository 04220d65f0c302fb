//! Connections to peers that carry many exchanges at once: HTTP/2.
//!
//! ```text
//!  exchange ─ Lines::begin ─► Line ─ a stream each ─► Session ─ frames ─► driver ─► socket
//! ```
//!
//! A worker's line to a peer carries as many streams as the peer allows. If all lines are full, the worker opens
//! another; exchanges that come meanwhile wait for it. An idle line is kept like an idle connection. nginx has one
//! stream per connection at a time. The driver is a task of its own and ends with the line.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use weir_http::hold::table_place::TablePlace;
use weir_http::hold::worker::Worker;
use weir_http::receive::h2;
use weir_http::receive::h2::input::{Input, Over};
use weir_http::receive::h2::reply::Lost;
use weir_http::receive::h2::session::{Carrier, OUT_MAX, Session};
use weir_http::receive::h2::stream::Stream;
use weir_net::reply::Promise;
use weir_net::worker::Task;
use weir_net::{Deadline, Instant, Local, Transport, clock};
use weir_peers::pool_policy::PoolPolicy;
use weir_wire::h2::ErrorCode;
use weir_wire::h2::connection::{Connection, H2Event, Limits};

use super::pool::{Carries, Held, Link, Loan, Shelf, Terms, UNTOLD, is_same};
use crate::family::proxy_ssl::Party;

/// The most streams of one line, whatever its peer allows: the code searches them one by one.
const STREAMS_MAX: usize = 256;
/// How much a peer may send on a stream before an exchange reads it. A slow client holds back this much and does not
/// block other streams: the connection's window has the largest size.
const WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// The most bytes of an answer's head or trailers; `proxy_buffer_size` limits them further.
const SECTION_MAX: usize = 128 << 10;
/// Bytes of a body in one frame.
const CHUNK: usize = 16 << 10;

/// A connection that carries streams.
pub struct Line {
    session: Rc<Session>,
    /// The peer's index in its group.
    peer: usize,
    bound: Option<Local>,
    party: Option<Arc<Party>>,
    opened: Instant,
    /// The number of streams it has carried.
    carried: Cell<u32>,
    /// The line accepts no more streams, and ends after the last one.
    is_going: Cell<bool>,
    idle_since: Cell<Option<Instant>>,
    /// The peer reads even while the line is idle: it has shown this, or the configuration states it.
    is_proven: Cell<bool>,
    place: Cell<Option<TablePlace>>,
    /// Others wait until the peer has announced how many streams it allows.
    opening: Cell<Option<Rc<Opening>>>,
    /// Tells other workers that they may borrow this line; `None` if they may not.
    offer: Option<Offer>,
    /// Another worker asks for the line.
    asked: Cell<Option<Promise<Option<Loan>>>>,
}

/// The parts of a new line.
pub struct Opened {
    /// The connection.
    pub stream: Transport,
    /// Its place in the worker's connection table.
    pub place: TablePlace,
    /// The time when connecting began.
    pub at: Instant,
    /// Wakes the exchanges that wait for the line.
    pub opening: Option<Rc<Opening>>,
    /// The state in which another worker left the connection; `None` for a new connection.
    pub past: Option<Past>,
}

/// The state of a connection that a worker lends.
pub struct Past {
    /// Its tables and windows.
    pub wire: Box<Connection>,
    /// The number of streams it has carried.
    pub carried: u32,
}

/// The place where a line is kept for others.
pub struct Kept<'g> {
    /// The lines of its group.
    pub lines: &'g Rc<Lines>,
    /// The limits for keeping it.
    pub policy: PoolPolicy,
}

impl Line {
    /// Makes a line of a connection and starts its driver. A line that is not kept for others ends with its first
    /// stream.
    pub fn new(opened: Opened, peer: usize, terms: Terms<'_>, worker: &Rc<Worker>, kept: Option<Kept<'_>>) -> Rc<Line> {
        let limits = Limits {
            streams: 0,
            section: SECTION_MAX,
            window: WINDOW,
            connection_window: CONNECTION_WINDOW,
            is_connect_extended: false,
        };
        let is_lendable = terms.is_plain() && matches!(opened.stream, Transport::Plain(_));
        let offer = kept.as_ref().filter(|_| is_lendable).map(|kept| Offer {
            shelf: kept.lines.shelf.clone(),
            peer,
            is_made: Cell::new(false),
        });
        let carrier = Carrier::Origin(opened.stream);
        let is_known = opened.past.is_some() || kept.as_ref().is_some_and(|kept| kept.policy.is_written);
        let (session, carried) = match opened.past {
            Some(Past { wire, carried }) => (Session::resume(carrier, *wire, WINDOW, CHUNK), carried),
            None => (Session::new(carrier, limits, CHUNK), 0),
        };
        let line = Rc::new(Line {
            session,
            peer,
            bound: terms.bound.copied(),
            party: terms.party.cloned(),
            opened: opened.at,
            carried: Cell::new(carried),
            is_going: Cell::new(kept.is_none()),
            idle_since: Cell::new(None),
            is_proven: Cell::new(is_known),
            place: Cell::new(Some(opened.place)),
            opening: Cell::new(opened.opening),
            offer,
            asked: Cell::new(None),
        });
        let home = kept.map(|kept| {
            kept.lines.all.borrow_mut().push(line.clone());
            Home { lines: Rc::downgrade(kept.lines), policy: kept.policy }
        });
        let driver = Driver {
            line: line.clone(),
            worker: worker.clone(),
            home,
            input: Input::of_origin(),
            deadline: Deadline::new(),
        };
        weir_net::worker::spawn(live(driver));
        line
    }

    /// Opens a stream for an exchange; also returns whether the line carried others before.
    pub fn begin(self: &Rc<Self>) -> Option<(Box<Link>, bool)> {
        let stream = Stream::open(&self.session)?;
        self.idle_since.set(None);
        self.offer();
        let before = self.carried.get();
        self.carried.set(before.saturating_add(1));
        let link = Link {
            stream: Transport::Carried(stream.clone()),
            deadline: Deadline::new(),
            peer: self.peer,
            bound: self.bound,
            party: self.party.clone(),
            opened: self.opened,
            carried: before,
            peer_keeps_s: UNTOLD,
            place: None,
            h2: Some(Held::new(stream, Rc::downgrade(self) as Weak<dyn Carries>)),
        };
        Some((Box::new(link), before > 0))
    }

    /// Gives the connection of an idle line to another worker.
    fn lend(self, promise: Promise<Option<Loan>>) {
        let Line { session, opened, carried, .. } = self;
        // Nobody has a stream of an idle line.
        let Ok(session) = Rc::try_unwrap(session) else { return };
        let (carrier, wire) = session.into_parts();
        if let Carrier::Origin(Transport::Plain(stream)) = carrier {
            let (wire, carried) = (Some(Box::new(wire)), carried.get());
            promise.give(|| Some(Loan { fd: stream.into_fd(), opened, carried, wire }));
        }
    }

    fn fits(&self, peer: usize, terms: Terms<'_>) -> bool {
        self.peer == peer && self.bound.as_ref() == terms.bound && is_same(self.party.as_ref(), terms.party)
    }

    fn has_room(&self) -> bool {
        let session = &self.session;
        !self.is_going.get()
            && !session.is_dead()
            && !session.is_doubted()
            && session.tasks() < STREAMS_MAX
            && session.wire.borrow().room() > 0
    }

    /// Tells other workers whether they may borrow the line: if it has no stream, and the peer reads while it has none.
    fn offer(&self) {
        if let Some(offer) = &self.offer {
            let is_free = self.session.tasks() == 0 && self.is_proven.get();
            offer.set(is_free && !self.is_going.get() && !self.session.is_dead());
        }
    }

    /// Takes no more streams; the line ends after the last one.
    fn retire(&self) {
        self.is_going.set(true);
        self.offer();
        self.session.tell_driver();
    }

    /// Ends an idle line, and frees its place at once.
    fn end_idle(&self) {
        self.place.take();
        self.retire();
    }
}

impl Carries for Line {
    fn left(&self) {
        self.offer();
    }
}

/// Whether other workers may borrow a line, in the counter that shows them how many there are. Dropping this ends the offer.
struct Offer {
    shelf: Shelf,
    peer: usize,
    is_made: Cell<bool>,
}

impl Offer {
    fn set(&self, is_made: bool) {
        if self.is_made.replace(is_made) != is_made {
            self.shelf.offer(self.peer, if is_made { 1 } else { -1 });
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// A line that is being opened; dropping this wakes all waiters.
#[derive(Default)]
pub struct Opening {
    waiting: RefCell<Vec<Task>>,
    /// The line was opened.
    is_open: Rc<Cell<bool>>,
}

/// The place of a waiter for a line.
pub struct Awaited {
    opening: Weak<Opening>,
    is_open: Rc<Cell<bool>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        for task in self.waiting.take() {
            task.wake();
        }
    }
}

/// The most exchanges that wait for one line while the peer's limit of streams is unknown.
const WAITING_MAX: usize = 100;

struct Begun {
    peer: usize,
    bound: Option<Local>,
    party: Option<Arc<Party>>,
    opening: Weak<Opening>,
}

/// The lines of one worker to the peers of a group.
pub struct Lines {
    shelf: Shelf,
    all: RefCell<Vec<Rc<Line>>>,
    opening: RefCell<Vec<Begun>>,
}

impl Drop for Lines {
    /// The configuration was replaced: no exchange uses these lines any more.
    fn drop(&mut self) {
        self.all.take().iter().for_each(|line| line.retire());
    }
}

impl Lines {
    /// No lines yet.
    pub fn new(shelf: Shelf) -> Lines {
        Lines { shelf, all: RefCell::default(), opening: RefCell::default() }
    }

    /// The configuration and the number of the group by which other workers find it.
    pub fn place(&self) -> (u32, usize) {
        self.shelf.place()
    }

    fn remove(&self, line: &Rc<Line>) {
        self.all.borrow_mut().retain(|known| !Rc::ptr_eq(known, line));
    }

    /// Opens a stream to a peer on a line with these terms; also returns whether the line carried others before.
    pub fn begin(&self, peer: usize, terms: Terms<'_>) -> Option<(Box<Link>, bool)> {
        self.all.borrow().iter().find(|line| line.fits(peer, terms) && line.has_room())?.begin()
    }

    /// A line with these terms that is being opened and may be waited for.
    pub fn opening(&self, peer: usize, terms: Terms<'_>) -> Option<Awaited> {
        let lines = self.all.borrow();
        let told =
            lines.iter().filter(|line| line.fits(peer, terms)).find_map(|line| line.session.wire.borrow().allowed());
        let most = told.unwrap_or(WAITING_MAX).min(WAITING_MAX);
        let mut begun = self.opening.borrow_mut();
        begun.retain(|begun| begun.opening.strong_count() > 0);
        let fits = |begun: &&Begun| {
            (begun.peer, begun.bound.as_ref()) == (peer, terms.bound)
                && is_same(begun.party.as_ref(), terms.party)
                && begun.opening.upgrade().is_some_and(|opening| opening.waiting.borrow().len() + 1 < most)
        };
        let opening = begun.iter().find(fits)?.opening.clone();
        let is_open = opening.upgrade()?.is_open.clone();
        Some(Awaited { opening, is_open })
    }

    /// Announces that such a line is being opened, until the result is dropped.
    pub fn announce(&self, peer: usize, terms: Terms<'_>) -> Rc<Opening> {
        let opening = Rc::new(Opening::default());
        self.opening.borrow_mut().push(Begun {
            peer,
            bound: terms.bound.copied(),
            party: terms.party.cloned(),
            opening: Rc::downgrade(&opening),
        });
        opening
    }

    /// If the group has too many idle lines, the one idle for longest ends.
    fn lay_idle(&self, most: usize) {
        let lines = self.all.borrow();
        let idle = || lines.iter().filter(|line| line.idle_since.get().is_some() && !line.is_going.get());
        if idle().count() > most
            && let Some(oldest) = idle().min_by_key(|line| line.idle_since.get())
        {
            oldest.retire();
        }
    }

    /// Another worker asks for an idle line to a peer. The line's driver answers.
    pub(super) fn ask(&self, peer: usize, promise: Promise<Option<Loan>>) {
        let lines = self.all.borrow();
        let is_offered = |line: &&Rc<Line>| line.offer.as_ref().is_some_and(|offer| offer.is_made.get());
        // Without a line, nobody keeps the promise.
        if let Some(line) = lines.iter().filter(|line| line.peer == peer).find(is_offered) {
            line.asked.set(Some(promise));
            line.session.tell_driver();
        }
    }

    /// The moment since which the line has been idle that is idle for longest; `None` if none is idle.
    pub fn oldest(&self) -> Option<Instant> {
        let lines = self.all.borrow();
        lines.iter().filter(|line| !line.is_going.get()).filter_map(|line| line.idle_since.get()).min()
    }

    /// Ends the line that was idle for longest; `false` if there is none.
    pub fn close_oldest(&self) -> bool {
        let Some(since) = self.oldest() else { return false };
        let lines = self.all.borrow();
        let oldest = lines.iter().find(|line| line.idle_since.get() == Some(since) && !line.is_going.get());
        oldest.inspect(|line| line.end_idle()).is_some()
    }
}

impl Awaited {
    /// Ready when the line is open, or (`false`) cannot be opened.
    pub fn poll(&self) -> Poll<bool> {
        let Some(opening) = self.opening.upgrade() else { return Poll::Ready(self.is_open.get()) };
        let (mut waiting, task) = (opening.waiting.borrow_mut(), Task::current());
        if !waiting.contains(&task) {
            waiting.push(task);
        }
        Poll::Pending
    }
}

/// The place where others find a line.
struct Home {
    lines: Weak<Lines>,
    policy: PoolPolicy,
}

struct Driver {
    line: Rc<Line>,
    worker: Rc<Worker>,
    home: Option<Home>,
    input: Input,
    /// How long the line may stay idle.
    deadline: Deadline,
}

/// How a line ends.
enum End {
    /// No streams are left, and none will come.
    Done,
    /// The peer closed, or the network failed.
    Broken,
    /// Another worker goes on with the connection.
    Lent(Promise<Option<Loan>>),
}

async fn live(mut driver: Driver) {
    let end = poll_fn(|_| driver.poll()).await;
    let mut line = driver.line;
    line.is_going.set(true);
    line.offer();
    if let Some(home) = &driver.home
        && let Some(lines) = home.lines.upgrade()
    {
        lines.remove(&line);
    }
    if let End::Lent(promise) = end {
        line = match Rc::try_unwrap(line) {
            Ok(line) => return line.lend(promise),
            Err(line) => line,
        };
    } else if matches!(end, End::Done) {
        line.session.wire.borrow_mut().goaway(ErrorCode::NoError);
        // If weir cannot send this now, the peer learns it from the end of the connection.
        line.session.flush().ok();
        line.session.transport().shutdown_write().ok();
    }
    line.session.kill();
    line.opening.take();
    line.session.transport().shutdown();
    line.place.take();
}

impl Driver {
    fn poll(&mut self) -> Poll<End> {
        let line = self.line.clone();
        let session = &line.session;
        session.driven_here();
        loop {
            if session.flush().is_err() {
                // The peer has closed. The frames that it sent before may say why.
                return Poll::Ready(self.read().err().unwrap_or(End::Broken));
            }
            if session.is_doubted() {
                // The peer has announced nothing: each exchange that waits for the line opens its own.
                line.opening.take();
            }
            let waiting = session.waiting();
            if line.is_going.get() && session.tasks() == 0 && waiting == 0 {
                return Poll::Ready(End::Done);
            }
            if waiting < OUT_MAX {
                match self.read() {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(end) => return Poll::Ready(end),
                }
            }
            if session.waiting() > waiting {
                continue;
            }
            match self.poll_rest() {
                Poll::Ready(None) => continue,
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn read(&mut self) -> Result<bool, End> {
        let Driver { line, worker, input, .. } = self;
        let read = input.read(&line.session, &mut |event| act(line, worker, event));
        if line.session.wire.borrow().allowed().is_some()
            && let Some(opening) = line.opening.take()
        {
            opening.is_open.set(true);
        }
        read.map_err(|over| {
            if let Over::Fault(fault) = over {
                line.session.blame(fault.what);
                line.session.wire.borrow_mut().fail(fault);
                // The peer is at fault, so weir does not make sure that this frame arrives.
                line.session.flush().ok();
            }
            End::Broken
        })
    }

    /// Handles an idle line: `None` if there is new work to do, else how the line ends.
    fn poll_rest(&self) -> Poll<Option<End>> {
        let line = &self.line;
        self.count(line);
        if line.session.tasks() > 0 {
            self.deadline.clear();
            line.asked.take();
            return Poll::Pending;
        }
        let Some(home) = &self.home else { return Poll::Ready(Some(End::Done)) };
        if line.idle_since.get().is_none() {
            line.idle_since.set(Some(clock::now()));
            self.deadline.set(Duration::from_millis(home.policy.idle_timeout_ms));
            match home.lines.upgrade() {
                Some(lines) if home.policy.max_idle > 0 && !self.worker.is_draining() => {
                    lines.lay_idle(home.policy.max_idle);
                }
                Some(_) | None => line.retire(),
            }
            if !line.is_proven.get() {
                line.session.doubt();
            }
            return Poll::Ready(None);
        }
        line.offer();
        let is_at_rest = || !self.input.is_within() && line.session.wire.borrow().is_at_rest();
        if let Some(promise) = line.asked.take().filter(|promise| is_at_rest() && promise.is_awaited()) {
            return Poll::Ready(Some(End::Lent(promise)));
        }
        self.deadline.poll_expired().map(|()| Some(End::Done))
    }

    /// nginx: `keepalive_requests` and `keepalive_time` end a connection.
    fn count(&self, line: &Line) {
        let Some(home) = &self.home else { return };
        let is_spent = u64::from(line.carried.get()) >= home.policy.max_requests;
        let is_old = clock::now().ms_since(line.opened) > home.policy.max_age_ms;
        if is_spent || is_old {
            line.is_going.set(true);
        }
    }
}

/// Acts on a frame.
fn act(line: &Rc<Line>, worker: &Rc<Worker>, event: H2Event<'_>) {
    let session = &line.session;
    match event {
        H2Event::Nothing | H2Event::Malformed { .. } => {}
        H2Event::Head { stream, ends, .. } => {
            if let Some(unused) = h2::reply::head_came(session, worker.lease_origin(), stream, ends) {
                worker.return_origin(unused);
            }
        }
        H2Event::Data { stream, data, counted, ends } => session.data_came(stream, data, counted, ends),
        H2Event::Trailers { stream } => h2::reply::trailers_came(session, stream),
        H2Event::Writable { stream } => session.writable(stream),
        H2Event::Pong => {
            line.is_proven.set(true);
            session.trust();
        }
        H2Event::Reset { stream, code, fault } => {
            let Some(known) = session.stream(stream) else { return };
            known.lose(match fault {
                Some(fault) => Lost::Malformed(fault.what),
                None if code == ErrorCode::RefusedStream as u32 => Lost::Unprocessed(code),
                None => Lost::Rejected(code),
            });
        }
        H2Event::GoAway { last, code } => {
            line.is_going.set(true);
            for stream in session.streams().iter().filter(|stream| stream.id() > last) {
                stream.lose(Lost::Unprocessed(code));
            }
        }
    }
}
