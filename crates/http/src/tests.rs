//! An edge for the tests of this crate: a configuration's text and a request's bytes become an exchange, which walks
//! through its phases and is sent to a client that the test holds.
//!
//! Beside the families of the engine there is one for each phase. Its handler does what the request asks for: the field
//! `X-Access: 403; allow` lets the handler `access` return these results, one for each time that it is entered. Without a
//! wish it goes on. `Trail` notes who was entered.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, Read};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use weir_net::{Carried, Stream, clock};
use weir_wire::{BodyLength, Known, Progress, target};

use crate::exchange::conf::Conf;
use crate::exchange::phase::{Chore, From, Next, Outcome, Phase};
use crate::exchange::request_body::RequestBody;
use crate::exchange::response_body::{Body, Broken, Framing, Source};
use crate::exchange::{Exchange, Parts};
use crate::exchange::{keepalive, special, walk};
use crate::hold::client::Client;
use crate::hold::conn::{Conn, Gone};
use crate::hold::frames::{Block, Frames};
use crate::hold::own::Owned;
use crate::hold::worker::{Generation, Worker};
use crate::read::families::{ENGINE, Families, Family, Level};
use crate::receive::head;
use crate::send::respond;

/// The handlers that an exchange has entered, in order.
#[derive(Default)]
pub struct Trail(pub Vec<&'static str>);

impl Owned for Trail {}

macro_rules! handlers {
    ($($family:ident $name:literal $phase:ident)*) => {
        $(static $family: Family = Family::new($name, &[]).phase(Phase::$phase, |_| true, |exchange| act(exchange, $name));)*
        static PHASES: Level =
            Level { families: &[$(&$family),*], session_variables: Vec::new, declare: None };
    };
}

// Not in the order of the phases: the phases decide, and in one phase this order.
handlers! {
    CONTENT "content" Content
    PRECONTENT "precontent" Precontent
    ACCESS "access" Access
    SECOND "second" Access
    PREACCESS "preaccess" Preaccess
}

fn act(exchange: &mut Exchange<'_>, name: &'static str) -> Next {
    if exchange.own.get::<Trail>().is_none() {
        exchange.own.add(Trail::default());
    }
    let trail = exchange.own.get_mut::<Trail>().unwrap();
    let times = trail.0.iter().filter(|known| **known == name).count();
    trail.0.push(name);
    let request = &exchange.request;
    let is_wish =
        |field: &&weir_wire::Field| request.text(field.name).eq_ignore_ascii_case(format!("X-{name}").as_bytes());
    let wishes = request.fields().iter().find(is_wish).map(|field| request.text(field.value)).unwrap_or_default();
    let wish = String::from_utf8_lossy(wishes).split(';').nth(times).unwrap_or_default().trim().to_owned();
    match wish.split_once(' ').unwrap_or((&wish, "")) {
        ("" | "go", _) => Next::Continue,
        ("allow", _) => Next::Allow,
        ("forward", _) => Next::Forward,
        ("wait", ms) => Next::Wait(Duration::from_millis(ms.parse().unwrap())),
        ("body", _) => Next::ReadBody,
        ("file", _) => Next::ReadBodyToFile,
        ("ask", _) => Next::Ask,
        ("aside", _) => Next::Aside(Chore::new(Trail::default)),
        ("background", path) => Next::Background(vec![path.into()]),
        ("named", name) => Next::Named(name.to_owned()),
        ("redirect", uri) => Next::Redirect { uri: uri.into(), args: None },
        ("text", text) => {
            exchange.response.status.answer(200);
            exchange.response.body = Body::Bytes(text.into());
            exchange.response.content_length = Some(text.len() as u64);
            Next::Respond
        }
        (status, _) => Next::Status(status.parse().unwrap()),
    }
}

/// The families of the engine, and a handler in each phase.
pub fn families() -> &'static Families {
    static ALL: LazyLock<Families> = LazyLock::new(|| Families::new(&[&ENGINE, &PHASES], &["headers"]));
    &ALL
}

/// A worker with a configuration, and one client of its first socket.
pub struct Site {
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    client: Rc<Client>,
}

impl Site {
    /// A worker with this `http` block, a connection, and the client's end of it.
    pub fn open(http: &str) -> (Site, Conn, UnixStream) {
        let text = format!("error_log stderr emerg; events {{}}\nhttp {{ {http} }}");
        let (conf, problems) = crate::read::compile::of_text(&text, families());
        assert_eq!(problems, [""; 0], "{http}");
        Site::of(conf.unwrap())
    }

    /// The same with a configuration.
    pub fn of(conf: Conf) -> (Site, Conn, UnixStream) {
        let worker = Worker::new(0, Arc::new(conf), Default::default(), Default::default(), Default::default(), 1);
        let generation = worker.main();
        let (conn, other) = Conn::of_the_edge(&worker, 1).unwrap().unwrap();
        (Site { worker, generation, client: conn.client.clone() }, conn, other.into())
    }

    /// A client of this worker, whose requests have this configuration.
    pub fn on(worker: &Rc<Worker>, generation: Rc<Generation>) -> Site {
        let (conn, _) = Conn::of_the_edge(worker, generation.conf.generation).unwrap().unwrap();
        Site { worker: worker.clone(), generation, client: conn.client.clone() }
    }

    /// An exchange of this request, as `drive/open` of `edge` leaves it before its phases.
    pub fn exchange(&self, request: &str) -> Exchange<'_> {
        // Few exchanges of tests: their memory is never given back.
        self.exchange_in(Box::leak(Box::default()), request)
    }

    /// The same in this memory.
    pub fn exchange_in<'s>(&'s self, parts: &'s mut Parts, request: &str) -> Exchange<'s> {
        let conf = &self.generation.conf;
        let server = conf.server(conf.listens[0].hosts.default_server());
        let started = clock::now();
        let read = parts.request();
        // As large as the first piece that `head::read` reads.
        read.bytes.reserve(2 << 10);
        read.bytes.extend_from_slice(request.as_bytes());
        let policy = head::policy(head::default_core(conf, 0));
        let progress = read.parser.request(&read.bytes, &policy, &mut read.head);
        assert_eq!(progress, Ok(Progress::Done), "{request}");
        read.used = read.head.len;
        read.tokens = read.head.tokens(&read.bytes);
        let client = &self.client;
        let mut exchange = Exchange::new(conf, &self.worker, &self.generation, client, server, parts, started, 0);
        understand(&mut exchange);
        exchange
    }
}

fn understand(exchange: &mut Exchange<'_>) {
    let request = &mut exchange.request;
    let host = weir_wire::request_host(&request.bytes, &request.head, &mut request.last_host).unwrap();
    if let Some(host) = host {
        request.host = host.name.of(&request.bytes).to_ascii_lowercase();
    }
    let length = weir_wire::request_body(&request.bytes, &request.head).unwrap();
    request.length = Some(length);
    if length == BodyLength::None {
        exchange.body = RequestBody::Gone;
    }
    let id = exchange.conf.listens[0].hosts.find(&exchange.request.host, exchange.slots).unwrap();
    exchange.server = exchange.conf.server(id);
    exchange.enter(exchange.server.root);
    let raw = exchange.request.text(exchange.request.head.path).to_vec();
    let found = target::normalise(&raw, true, exchange.uri).unwrap();
    *exchange.uri = found.path(&raw, &exchange.uri.clone()).to_vec();
    *exchange.args = found.args(&raw).to_vec();
    exchange.flags.target_is_valid = true;
    exchange.flags.keeps_alive = weir_wire::keeps_alive(exchange.request.version(), exchange.request.tokens);
}

/// Walks through the phases and follows error pages, until something must be done outside.
pub fn finish(exchange: &mut Exchange<'_>) -> Outcome {
    let outcome = walk::walk(exchange, From::Server);
    follow(exchange, outcome)
}

/// Turns statuses into their pages, as `drive/answer` of `edge` does.
pub fn follow(exchange: &mut Exchange<'_>, mut outcome: Outcome) -> Outcome {
    while let Outcome::Status(status) = outcome {
        outcome = special::redirect(exchange, status).unwrap_or_else(|| {
            special::page(exchange, status);
            Outcome::Respond
        });
    }
    outcome
}

/// A body that an origin would send, in pieces.
pub struct Pieces(pub Vec<&'static str>);

impl Source for Pieces {
    async fn send(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        framing: Framing,
        head: &mut Vec<u8>,
    ) -> Result<(), Gone> {
        let count = self.0.len();
        for (at, piece) in std::mem::take(&mut self.0).into_iter().enumerate() {
            let is_last = at + 1 == count;
            let place = crate::send::filtering::PiecePlace { last: is_last, ends: is_last, flush: true };
            crate::send::filtering::send(exchange, conn, framing, head, piece.as_bytes(), place, &mut None).await?;
        }
        Ok(())
    }

    fn poll_next(&mut self, _: &mut Exchange<'_>, _: &Context<'_>, out: &mut Vec<u8>) -> Poll<Result<bool, Broken>> {
        out.extend(self.0.drain(..).flat_map(str::bytes));
        Poll::Ready(Ok(true))
    }

    fn is_urgent(&self, _: &Exchange<'_>) -> bool {
        true
    }

    async fn close(&mut self, _: &mut Exchange<'_>, _: bool) {}

    async fn discard(&mut self, _: &mut Exchange<'_>) {
        self.0.clear();
    }
}

/// Sends the response to the client; the status that a filter answers with instead, if one refuses the response.
pub async fn send(exchange: &mut Exchange<'_>, conn: &mut Conn, source: Option<Pieces>) -> Result<Option<u16>, Gone> {
    let mut source = source;
    respond::send(exchange, conn, &mut source).await
}

/// The bytes that have come to a client, without the fields that differ from second to second and from version to version.
pub fn taken(mut client: &UnixStream) -> String {
    let mut all = Vec::new();
    let _ = client.read_to_end(&mut all);
    let text = String::from_utf8(all).unwrap();
    let lines =
        text.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ") && !line.starts_with("Server: "));
    lines.collect()
}

/// Runs this on a worker's thread.
pub fn on_worker<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    weir_net::worker::block_on(future).unwrap()
}

/// The end of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// The outcome, or the status and the text of the response.
    pub outcome: String,
    /// The location at the end.
    pub location: String,
    /// The handlers that were entered.
    pub trail: String,
    /// Path and arguments at the end.
    pub uri: String,
    /// `Location` of the response.
    pub to: String,
}

/// Walks a request to its end: a method and a target, and lines of fields after a `|`.
pub fn walked(http: &str, request: &str) -> Walked {
    let (http, request) = (http.to_owned(), whole(request));
    on_worker(async move {
        let (site, _conn, _client) = Site::open(&http);
        let mut exchange = site.exchange(&request);
        let outcome = finish(&mut exchange);
        shown(&exchange, &outcome)
    })
}

/// The state of an exchange after its walk, in words.
pub fn shown(exchange: &Exchange<'_>, outcome: &Outcome) -> Walked {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let outcome = match (outcome, &exchange.response.body) {
        (Outcome::Respond, Body::Bytes(body)) if !body.starts_with(b"<html>") => {
            format!("{} {}", exchange.response.status.get(), text(body))
        }
        (Outcome::Respond, _) => exchange.response.status.get().to_string(),
        (other, _) => format!("{other:?}"),
    };
    let args = if exchange.args.is_empty() { String::new() } else { format!("?{}", text(exchange.args)) };
    Walked {
        outcome,
        location: exchange.location.name.clone(),
        trail: exchange.own.get::<Trail>().map(|trail| trail.0.join(" ")).unwrap_or_default(),
        uri: text(exchange.uri) + &args,
        to: text(exchange.response.fields.get(Known::Location).unwrap_or_default()),
    }
}

/// The head of a request: `GET /a|X-Access: 403` becomes its lines, with a host.
pub fn whole(short: &str) -> String {
    let mut parts = short.split('|');
    let line = parts.next().unwrap_or_default();
    let version = if line.matches(' ').count() > 1 { "" } else { " HTTP/1.1" };
    let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
    let host = if fields.contains("Host:") { "" } else { "Host: a.test\r\n" };
    format!("{line}{version}\r\n{host}{fields}\r\n")
}

/// Answers a request; returns the bytes that the client got, and whether the connection goes on.
pub fn answered(http: &str, request: &str) -> (String, bool) {
    let (http, request) = (http.to_owned(), whole(request));
    on_worker(async move {
        let (site, mut conn, client) = Site::open(&http);
        let mut exchange = site.exchange(&request);
        loop {
            let outcome = finish(&mut exchange);
            assert!(matches!(outcome, Outcome::Respond), "{request}: {outcome:?}");
            exchange.flags.keeps_alive &= keepalive::may_go_on(&exchange);
            match send(&mut exchange, &mut conn, None).await.unwrap() {
                None => break,
                Some(status) => {
                    special::page(&mut exchange, status);
                }
            }
        }
        (taken(&client), exchange.flags.keeps_alive)
    })
}

/// A stream that notes what is sent on it.
#[derive(Debug, Default)]
pub struct Noted {
    /// Heads as lines, bodies as their bytes, the end as `END`.
    pub log: RefCell<String>,
    sent: Cell<u64>,
}

impl Carried for Noted {
    fn socket(&self) -> Option<&Stream> {
        None
    }

    fn is_secure(&self) -> bool {
        false
    }

    fn poll_readable(&self) -> Poll<()> {
        Poll::Pending
    }

    fn poll_writable(&self) -> Poll<()> {
        Poll::Ready(())
    }

    fn poll_closed(&self) -> Poll<()> {
        Poll::Pending
    }

    fn try_read_vec(&self, _: &mut Vec<u8>, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.log.borrow_mut().push_str(&format!("[{}]\n", String::from_utf8_lossy(&bytes)));
        self.sent.set(self.sent.get() + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.send_end()
    }

    fn shutdown(&self) {
        self.log.borrow_mut().push_str("RESET\n");
    }
}

impl Frames for Noted {
    fn send_head(&self, ends: bool, length: Option<u64>, write: &mut dyn FnMut(&mut dyn Block)) -> io::Result<usize> {
        let mut lines = Lines(String::new());
        write(&mut lines);
        let length = length.map(|length| format!("body {length}\n")).unwrap_or_default();
        let end = if ends { "END\n" } else { "" };
        self.log.borrow_mut().push_str(&format!("{}{length}{end}", lines.0));
        Ok(lines.0.len())
    }

    fn send_end(&self) -> io::Result<()> {
        self.log.borrow_mut().push_str("END\n");
        Ok(())
    }

    fn open_window(&self) {
        self.log.borrow_mut().push_str("WINDOW\n");
    }

    fn has_ended(&self) -> bool {
        true
    }

    fn is_read(&self) -> bool {
        true
    }

    fn is_malformed(&self) -> bool {
        false
    }

    fn is_shut(&self) -> bool {
        false
    }

    fn blame(&self) {}

    fn close(&self) {}

    fn sent(&self) -> u64 {
        self.sent.get()
    }
}

struct Lines(String);

impl Block for Lines {
    fn status(&mut self, status: u16) {
        self.0.push_str(&format!("{status}\n"));
    }

    fn field(&mut self, name: &[u8], value: &[u8], _: Option<Known>) {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        if name != "date" && name != "server" {
            self.0.push_str(&format!("{name}: {value}\n"));
        }
    }
}
