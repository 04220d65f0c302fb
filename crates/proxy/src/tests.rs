//! An edge whose origin is the other end of a socket pair, for the tests of this crate: the pool of a group has kept that
//! connection, so an exchange finds it there.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::{From, Outcome};
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::walk;
use weir_http::exchange::{Exchange, Parts};
use weir_http::hold::client::Client;
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::receive::head;
use weir_http::send::respond;
use weir_net::{Deadline, Stream, clock};
use weir_wire::{BodyLength, Progress, target};

use crate::family::upstream::answer::Answer;
use crate::family::upstream::forward::forward;
use crate::family::upstream::groups::groups;
use crate::family::upstream::pool::{Link, UNTOLD};
use crate::family::upstream::source::Source;

/// A worker with a configuration, and one client.
pub struct Site {
    worker: Rc<Worker>,
    pub generation: Rc<Generation>,
    client: Rc<Client>,
}

impl Site {
    /// A worker with this `http` block, a connection, and the client's end of it.
    pub fn open(http: &str) -> (Site, Conn, UnixStream) {
        let (conf, problems) = crate::of_text(&format!("error_log stderr emerg; events {{}}\nhttp {{ {http} }}"));
        assert_eq!(problems, [""; 0], "{http}");
        let conf = Arc::new(conf.unwrap());
        let worker = Worker::new(0, conf, Default::default(), Default::default(), Default::default(), 1);
        worker.all_counters.occupy(0);
        let generation = worker.main();
        let (conn, other) = Conn::of_the_edge(&worker, 1).unwrap().unwrap();
        (Site { worker, generation, client: conn.client.clone() }, conn, other.into())
    }

    /// An exchange of this request after its walk: its location asks an upstream.
    pub fn exchange(&self, request: &str) -> Exchange<'_> {
        let conf = &self.generation.conf;
        let server = conf.server(conf.listens[0].hosts.default_server());
        // Few exchanges of tests: their memory is never given back.
        let (started, parts) = (clock::now(), Box::leak(Box::new(Parts::default())));
        let read = parts.request();
        read.bytes.reserve(2 << 10);
        read.bytes.extend_from_slice(request.as_bytes());
        let policy = head::policy(head::default_core(conf, 0));
        assert_eq!(read.parser.request(&read.bytes, &policy, &mut read.head), Ok(Progress::Done), "{request}");
        read.used = read.head.len;
        read.tokens = read.head.tokens(&read.bytes);
        let client = &self.client;
        let mut exchange = Exchange::new(conf, &self.worker, &self.generation, client, server, parts, started, 0);
        understand(&mut exchange);
        let outcome = walk::walk(&mut exchange, From::Server);
        assert!(matches!(outcome, Outcome::Forward), "{request}: {outcome:?}");
        exchange
    }

    /// Puts a connection to a peer of the first group into the pool; returns the peer's end.
    pub fn keep(&self, peer: usize) -> UnixStream {
        let (link, other) = link(peer);
        groups(&self.generation).home(0).unwrap().pool.put(link, &Default::default(), true);
        other
    }
}

fn understand(exchange: &mut Exchange<'_>) {
    let request = &mut exchange.request;
    request.leave_out_named();
    let host = weir_wire::request_host(&request.bytes, &request.head, &mut request.last_host).unwrap();
    if let Some(host) = host {
        request.host = host.name.of(&request.bytes).to_ascii_lowercase();
    }
    let length = weir_wire::request_body(&request.bytes, &request.head).unwrap();
    request.length = Some(length);
    if length == BodyLength::None {
        exchange.body = RequestBody::Gone;
    }
    let raw = exchange.request.text(exchange.request.head.path).to_vec();
    let found = target::normalise(&raw, true, exchange.uri).unwrap();
    *exchange.uri = found.path(&raw, &exchange.uri.clone()).to_vec();
    *exchange.args = found.args(&raw).to_vec();
    exchange.flags.target_is_valid = true;
    exchange.flags.uri_was_quoted = found.quoted;
    exchange.flags.keeps_alive = weir_wire::keeps_alive(exchange.request.version(), exchange.request.tokens);
}

/// A connection to a peer, and the peer's end.
pub fn link(peer: usize) -> (Box<Link>, UnixStream) {
    let (stream, other) = Stream::with_nobody().unwrap();
    let link = Link {
        stream: stream.into(),
        deadline: Deadline::new(),
        peer,
        bound: None,
        party: None,
        opened: clock::now(),
        carried: 0,
        peer_keeps_s: UNTOLD,
        place: None,
        h2: None,
    };
    (Box::new(link), other.into())
}

/// The head of an answer, read.
pub fn origin(text: &str) -> Box<Origin> {
    let mut origin = Box::new(Origin::default());
    origin.bytes = weir_net::buffer::lease(text.len());
    origin.bytes.extend_from_slice(text.as_bytes());
    assert_eq!(origin.parser.response(&origin.bytes, &mut origin.head), Ok(Progress::Done), "{text}");
    origin
}

/// Runs this on a worker's thread.
pub fn on_worker<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    weir_net::worker::block_on(future).unwrap()
}

/// A location that passes requests to a group of one peer.
pub fn proxied(settings: &str) -> String {
    format!(
        "upstream u {{ server 127.0.0.1:81; }} \
         server {{ listen 127.0.0.1:8080; location / {{ proxy_pass http://u; {settings} }} location = /other {{ return 200 other; }} }}"
    )
}

/// The head of a request: `GET /a|X-A: b` becomes its lines, with a host.
pub fn whole(short: &str) -> String {
    let mut parts = short.split('|');
    let line = parts.next().unwrap_or_default();
    let version = if line.matches(' ').count() > 1 { "" } else { " HTTP/1.1" };
    let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
    format!("{line}{version}\r\nHost: a.test\r\n{fields}\r\n")
}

/// The result of a request that an origin answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The bytes that the origin got.
    pub seen: String,
    /// The answer, or the outcome in its place.
    pub outcome: String,
    /// The bytes that the client got, without `Date` and `Server`.
    pub got: String,
    /// The statuses of the tries.
    pub tries: Vec<u16>,
    /// Connections in the pool at the end.
    pub kept: usize,
}

/// Asks the upstream; the origin gives its answer in these parts, `END` for the end of its connection.
pub fn asked(http: &str, request: &str, parts: &'static [&'static str]) -> Asked {
    let (http, request) = (http.to_owned(), request.to_owned());
    on_worker(async move {
        let (site, mut conn, client) = Site::open(&http);
        let peer = site.keep(0);
        let mut exchange = site.exchange(&request);
        let mut asked = Asked::default();
        let mut parts = parts.iter();
        {
            let (exchange, conn, outcome) = (&mut exchange, &mut conn, &mut asked.outcome);
            let mut done = Box::pin(async {
                let values = crate::values(exchange.location);
                let mut source: Option<Source> = None;
                let answer = forward(exchange, conn, values, None, &mut source).await;
                *outcome = match &answer {
                    Answer::Response => "response".to_owned(),
                    Answer::Tunnel(_) => "tunnel".to_owned(),
                    Answer::Outcome(outcome) => format!("{outcome:?}"),
                    Answer::Gone(gone) => format!("{gone:?}"),
                };
                if let Answer::Response = answer
                    && let Err(gone) = respond::send(exchange, conn, &mut source).await
                {
                    *outcome = format!("{gone:?}");
                }
            });
            poll_fn(|context| {
                let polled = done.as_mut().poll(context);
                let mut room = [0; 4096];
                while let Ok(count @ 1..) = (&peer).read(&mut room) {
                    asked.seen.push_str(&String::from_utf8_lossy(&room[..count]));
                }
                if polled.is_pending() {
                    match parts.next() {
                        Some(&"END") => peer.shutdown(Shutdown::Both).unwrap(),
                        Some(part) => (&peer).write_all(part.as_bytes()).unwrap(),
                        None => {}
                    }
                }
                polled
            })
            .await;
        }
        let mut all = Vec::new();
        let _ = (&client).read_to_end(&mut all);
        let text = String::from_utf8(all).unwrap();
        let shown = |line: &&str| !line.starts_with("Date: ") && !line.starts_with("Server: ");
        asked.got = text.split_inclusive("\r\n").filter(shown).collect();
        asked.tries = exchange.tries.iter().map(|attempt| attempt.status).collect();
        asked.kept = groups(&site.generation).all().iter().map(|home| home.pool.len()).sum();
        asked
    })
}
