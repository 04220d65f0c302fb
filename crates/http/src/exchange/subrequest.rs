//! Subrequests: exchanges for other URIs of this server that weir makes for a client's exchange, because it needs their
//! answers.
//!
//! A subrequest goes through the phases like any other request, except for the checks of access. It has the method GET,
//! and the client's fields. Its answer decides about the client's exchange (`Ask`), or becomes a part of a body
//! (`composed`). <https://nginx.org/en/docs/dev/development_guide.html#http_subrequests>

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use weir_net::log::{self, Level};
use weir_net::{SocketAddress, Transport, clock};
use weir_wire::BodyLength;

use crate::exchange::conf::{Conf, Server};
use crate::exchange::message::Request;
use crate::exchange::pipe::Pipe;
use crate::exchange::request_body::{Reader, RequestBody};
use crate::exchange::route::ServerId;
use crate::exchange::trace::context::Trace;
use crate::exchange::{Exchange, Parts};
use crate::hold::client::Client;
use crate::hold::conn::shared::{Rest, Shared};
use crate::hold::conn::{Conn, Gone};
use crate::hold::own::{Own, Owned};
use crate::hold::worker::{Generation, Worker};
use crate::text::slots::{SlotStore, VariableId};

/// How deep subrequests may nest (nginx: `NGX_HTTP_MAX_SUBREQUESTS`).
pub const DEPTH_MAX: u8 = 50;

/// Subrequests for one request of a client, all together (nginx: the limit of its reference counter).
pub const ALL_MAX: u32 = 65535 - 1000;

/// Subrequests for one request of a client whose answers are not needed yet, at most. The next ones start when their
/// answers are needed.
pub const AHEAD_MAX: u32 = 64;

/// A subrequest's place among the subrequests of one client's request.
struct Lineage {
    /// How many generations of subrequests may follow.
    left: u8,
    /// Its answer is kept in memory as a whole.
    is_whole: bool,
    /// The method of the client's request: after an `error_page`, that of the request for the page.
    method: Rc<[u8]>,
    /// `Content-Type` of the answer to the client, if its head was made before.
    content_type: Option<Rc<[u8]>>,
    /// The same for all subrequests of one client's request.
    kin: Rc<Kin>,
}

struct Kin {
    made: Cell<u32>,
    running: Cell<u32>,
    /// The reasons for refusals that the log has.
    told: RefCell<Vec<&'static str>>,
}

impl Kin {
    /// Whether the log needs a line for this reason: one for each request of a client.
    fn tells(&self, why: &'static str) -> bool {
        let mut told = self.told.borrow_mut();
        let is_new = !told.contains(&why);
        if is_new {
            told.push(why);
        }
        is_new
    }
}

impl Owned for Lineage {}

/// The count of the subrequests of a client's request, which its own exchange keeps.
struct Head(Rc<Kin>);

impl Owned for Head {}

/// The method of the client's request that this subrequest serves; `None` for any other exchange.
pub fn client_method<'e>(exchange: &'e Exchange<'_>) -> Option<&'e [u8]> {
    exchange.own.get::<Lineage>().map(|lineage| &*lineage.method)
}

/// `Content-Type` of the client's answer, of which the answer to this subrequest becomes a part; empty for any other one.
pub fn page_type<'e>(exchange: &'e Exchange<'_>) -> &'e [u8] {
    exchange.own.get::<Lineage>().and_then(|lineage| lineage.content_type.as_deref()).unwrap_or_default()
}

/// A request to a URI of this server whose answer decides how an exchange goes on (nginx: a waited subrequest). A handler
/// puts it into `exchange.own` and returns `Next::Ask`. Nobody reads the body of the answer.
pub struct Ask {
    /// The path.
    pub uri: Vec<u8>,
    /// The query string.
    pub args: Vec<u8>,
    /// Reads the head of the answer, whose exchange comes second. The values of variables are still with the second one;
    /// the first one gets them back afterwards.
    pub take: fn(&mut Exchange<'_>, &mut Exchange<'_>),
}

impl Owned for Ask {}

/// The parts of a subrequest that come from the exchange it is for.
pub struct Subrequest {
    request: Request,
    uri: Vec<u8>,
    args: Vec<u8>,
    own: Own,
    body: RequestBody,
    told_address: Option<SocketAddress>,
    number_on_connection: u64,
    trace: Option<Box<Trace>>,
}

impl Subrequest {
    /// A subrequest of this exchange, without a body. `None`, and a line in the log, if there may be no more.
    pub fn of(exchange: &mut Exchange<'_>, uri: Vec<u8>, args: Vec<u8>) -> Option<Subrequest> {
        Subrequest::new(exchange, uri, args, false)
    }

    fn new(exchange: &mut Exchange<'_>, uri: Vec<u8>, args: Vec<u8>, is_whole: bool) -> Option<Subrequest> {
        let lineage = match descend(exchange, is_whole) {
            Ok(lineage) => lineage,
            Err((level, why, step)) => {
                // A page may ask for a hundred thousand subrequests that cannot be made.
                let kin = match (exchange.own.get::<Lineage>(), exchange.own.get::<Head>()) {
                    (Some(lineage), _) => Some(&lineage.kin),
                    (None, head) => head.map(|head| &head.0),
                };
                if kin.is_some_and(|kin| !kin.tells(why)) {
                    return None;
                }
                let shown = String::from_utf8_lossy(&uri).into_owned();
                exchange.log(level, format_args!("{why}{step} \"{shown}\""));
                return None;
            }
        };
        let mut own = exchange.own.copy();
        own.add(lineage);
        let request = Request { method_override: Some(b"GET"), ..exchange.request.head_alone() };
        Some(Subrequest {
            request,
            uri,
            args,
            own,
            body: RequestBody::Gone,
            told_address: exchange.told_address().cloned(),
            number_on_connection: exchange.facts.number_on_connection,
            trace: exchange.trace().cloned().map(Box::new),
        })
    }

    /// The exchange in this memory, with these values of variables.
    pub fn begin<'c>(
        self,
        conf: &'c Conf,
        (worker, generation): (&'c Rc<Worker>, &'c Rc<Generation>),
        (client, server): (&'c Client, &'c Server),
        slots: SlotStore,
        parts: &'c mut Parts,
    ) -> Exchange<'c> {
        let mut request = self.request;
        let is_bodiless = matches!(self.body, RequestBody::Gone);
        if !is_bodiless {
            request.length = Some(BodyLength::Exact(self.body.length()));
        }
        *parts = Parts::of(request, slots, self.uri, self.args);
        let (now, wall_ms) = (clock::now(), clock::unix_ms());
        let mut exchange = Exchange::new(conf, worker, generation, client, server, parts, now, wall_ms);
        exchange.flags.is_subrequest = true;
        exchange.flags.internal = true;
        // The rate is that of the client's own exchange.
        exchange.facts.limit_rate = Some(0);
        if !is_bodiless {
            exchange.reader = Some(Reader::at_end(self.body.length()));
        }
        exchange.body = self.body;
        exchange.follow(self.told_address, self.trace);
        exchange.facts.number_on_connection = self.number_on_connection;
        exchange.own = self.own;
        exchange
    }
}

/// The place of one more subrequest below this exchange; or the level and nginx's words for the refusal, and for the
/// step that the URI follows.
fn descend(exchange: &mut Exchange<'_>, is_whole: bool) -> Result<Lineage, (Level, &'static str, &'static str)> {
    const STEP: &str = " while processing";
    if exchange.own.get::<Lineage>().is_none() && exchange.own.get::<Head>().is_none() {
        let kin = Kin { made: Cell::new(0), running: Cell::new(0), told: RefCell::default() };
        exchange.own.add(Head(Rc::new(kin)));
    }
    let (kin, (method, content_type), left) = match (exchange.own.get::<Lineage>(), exchange.own.get::<Head>()) {
        (Some(lineage), _) if lineage.is_whole => return Err((Level::Error, "nested in-memory subrequest", "")),
        (Some(lineage), _) => {
            let inherited = (lineage.method.clone(), lineage.content_type.clone());
            (&lineage.kin, inherited, lineage.left.checked_sub(1))
        }
        (None, Some(head)) => {
            let content_type = &exchange.response.content_type;
            // A check of `auth_request` comes before the head, and needs no memory for it.
            let content_type = (!content_type.is_empty()).then(|| content_type.as_slice().into());
            let own = (exchange.request.method().into(), content_type);
            (&head.0, own, Some(DEPTH_MAX))
        }
        (None, None) => return Err((Level::Crit, "no subrequest", STEP)),
    };
    let Some(left) = left else { return Err((Level::Error, "subrequests cycle", STEP)) };
    if kin.made.get() >= ALL_MAX {
        return Err((Level::Crit, "request reference counter overflow", STEP));
    }
    kin.made.set(kin.made.get() + 1);
    Ok(Lineage { left, is_whole, method, content_type, kin: kin.clone() })
}

/// Lends the values of one exchange's variables to another, and later gives them back: nginx keeps them once for a
/// request and its subrequests. Each keeps its own captures.
pub fn swap_variables(one: &mut Exchange<'_>, other: &mut Exchange<'_>) {
    std::mem::swap(&mut *one.slots, &mut *other.slots);
    std::mem::swap(&mut one.slots.captures, &mut other.slots.captures);
}

/// Runs a subrequest whose answer becomes a part of a body. The driver of exchanges provides it.
pub type Start = fn(Child);

#[derive(Default)]
struct Starter(Cell<Option<Start>>);

/// Gives a worker the function that starts subrequests.
pub fn start_with(worker: &Worker, start: Start) {
    worker.own.of(Starter::default).0.set(Some(start));
}

/// The text that takes the place of an empty answer or of an error, and its media type.
pub struct Stub {
    /// The text.
    pub text: Vec<u8>,
    /// The media type of the exchange that has it.
    pub content_type: Vec<u8>,
}

/// A subrequest whose answer becomes a part of a body, and that runs in a task of its own.
pub struct Child {
    subrequest: Subrequest,
    generation: Rc<Generation>,
    worker: Rc<Worker>,
    server: ServerId,
    conn: Conn,
    pipe: Rc<Pipe>,
    slots: SlotStore,
    stub: Option<Stub>,
    is_whole: bool,
    turn: Turn,
}

/// A subrequest's place among those that run; dropping it frees the place, and ends the pipe.
struct Turn(Rc<Kin>, Rc<Pipe>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get().saturating_sub(1));
        self.1.abandon();
    }
}

/// The things that the task of a subrequest uses besides its exchange.
pub struct Way {
    /// The text instead of an empty answer.
    pub stub: Option<Stub>,
    /// The answer is kept in memory as a whole.
    pub is_whole: bool,
    /// Where the answer goes.
    pub pipe: Rc<Pipe>,
}

/// A subrequest that has not started yet.
pub struct Planned {
    subrequest: Subrequest,
    stub: Option<Stub>,
    is_whole: bool,
}

impl Planned {
    /// A subrequest of this exchange with its body, as far as the body was read. `None`, and a line in the log, if
    /// there may be no more.
    pub fn of(
        exchange: &mut Exchange<'_>,
        uri: Vec<u8>,
        args: Vec<u8>,
        stub: Option<Stub>,
        is_whole: bool,
    ) -> Option<Planned> {
        let mut subrequest = Subrequest::new(exchange, uri, args, is_whole)?;
        match exchange.body.copy() {
            Ok(body) => subrequest.body = body,
            Err(error) => {
                let error = log::Os(&error);
                exchange.log(Level::Crit, format_args!("dup() of the request's body failed {error}"));
                return None;
            }
        }
        Some(Planned { subrequest, stub, is_whole })
    }

    /// Whether so few subrequests run that this one may run before its answer is needed.
    pub fn may_run_ahead(&self) -> bool {
        let lineage = self.subrequest.own.get::<Lineage>();
        lineage.is_some_and(|lineage| lineage.kin.running.get() < AHEAD_MAX)
    }

    /// Starts it, for an answer on `conn`; returns the pipe with its answer.
    pub fn start(self, exchange: &Exchange<'_>, conn: &Conn) -> Option<Rc<Pipe>> {
        let start = exchange.worker.own.of(Starter::default).0.get()?;
        let kin = self.subrequest.own.get::<Lineage>()?.kin.clone();
        kin.running.set(kin.running.get() + 1);
        let pipe = Pipe::new(conn.shared.clone());
        start(Child {
            subrequest: self.subrequest,
            generation: exchange.generation.clone(),
            worker: exchange.worker.clone(),
            server: exchange.server.id,
            conn: conn.of_pipe(&pipe),
            pipe: pipe.clone(),
            slots: exchange.slots.without_captures(),
            stub: self.stub,
            is_whole: self.is_whole,
            turn: Turn(kin, pipe.clone()),
        });
        Some(pipe)
    }
}

impl Child {
    /// Makes the exchange and does `work` with it in a task of its own.
    pub fn spawn(self, work: impl AsyncFnOnce(&mut Exchange<'_>, &mut Conn, Way) -> Result<(), Gone> + 'static) {
        weir_net::worker::spawn(self.run(work));
    }

    async fn run(mut self, work: impl AsyncFnOnce(&mut Exchange<'_>, &mut Conn, Way) -> Result<(), Gone>) {
        let (conf, client) = (&*self.generation.conf, self.conn.client.clone());
        let before = self.slots.clone();
        let (place, ends) = ((&self.worker, &self.generation), (&*client, conf.server(self.server)));
        let mut parts = Parts::default();
        let mut exchange = self.subrequest.begin(conf, place, ends, self.slots, &mut parts);
        let way = Way { stub: self.stub, is_whole: self.is_whole, pipe: self.pipe.clone() };
        let result = work(&mut exchange, &mut self.conn, way).await;
        let changes = changes(&before, exchange.slots);
        self.pipe.end(result.is_ok(), exchange.response.status.get(), changes);
        drop(exchange);
        drop(self.turn);
    }
}

/// The values that differ from those before.
fn changes(before: &SlotStore, after: &SlotStore) -> Vec<(VariableId, Vec<u8>)> {
    after.iter().filter(|(id, value)| before.get(*id) != Some(value)).map(|(id, value)| (id, value.to_vec())).collect()
}

impl Conn {
    /// The connection of a subrequest whose answer goes into this pipe, for an answer on this connection.
    fn of_pipe(&self, pipe: &Rc<Pipe>) -> Conn {
        let shared = Rc::new(Shared::new(Transport::Carried(pipe.clone()), None, self.shared.generation.get()));
        shared.rest.set(Rest::Busy);
        Conn::new(shared.clone(), self.client.over(shared), self.socket.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_changed_go_back() {
        let (mut before, mut after) = (SlotStore::default(), SlotStore::default());
        for (id, value) in [(0, b"a"), (1, b"b")] {
            before.set(VariableId(id), value);
        }
        for (id, value) in [(0, b"a"), (1, b"c"), (2, b"d")] {
            after.set(VariableId(id), value);
        }
        assert_eq!(changes(&before, &after), [(VariableId(1), b"c".to_vec()), (VariableId(2), b"d".to_vec())]);
    }
}
