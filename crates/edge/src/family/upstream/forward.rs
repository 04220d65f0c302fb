//! From try to try until a peer answers: choose, connect or reuse, send, judge, perhaps ask the next.
//!
//! nginx's `proxy_next_upstream` decides what is tried again; beyond nginx, a retry budget bounds it, and a
//! pooled connection that turns out dead is replaced without counting against anybody.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::{Address, Deadline, clock};
use weir_wire::{BodyLength, ConnectionTokens, Version};

use super::Upstream;
use super::attempt::{self, Failure, HeadFault, Progressed};
use super::balance::Affinity;
use super::group::Outcome as Verdict;
use super::pool::Link;
use super::pool_policy::BrokenAttempt;
use super::retry::{self, Attempt, RetryPolicy};
use super::source::{GroupRef, Hold, Source, keep};
use crate::body::{self, Failed, RequestBody};
use crate::conn::{Conn, Gone};
use crate::exchange::{Exchange, Origin, Try};
use crate::family::proxy::request::{self, BodyFraming, Target};
use crate::family::proxy::{Pass, parse_bind, parse_url, response};
use crate::log::{self, Level};
use crate::phase::Outcome;
use crate::tunnel::Upgraded;

/// What forwarding came to.
pub enum Answer {
    /// The response stands in the exchange; its body comes from the source.
    Response(Source),
    /// The peer switched protocols.
    Tunnel(Upgraded),
    /// Go on with this: an error status, or a place the upstream named.
    Outcome(Outcome),
    /// The client left.
    Gone(Gone),
}

/// Asks the location's upstream.
pub async fn forward(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Answer {
    let location = exchange.location;
    let Some(pass) = &location.values.proxy.pass else { return Answer::Outcome(Outcome::Status(500)) };
    let (group, target) = match choose_group(exchange, pass) {
        Ok(found) => found,
        Err(status) => return Answer::Outcome(Outcome::Status(status)),
    };
    if let Err(answer) = ready_body(exchange, conn).await {
        return answer;
    }
    let mut head = exchange.worker.lease_out();
    let framing = framing(exchange);
    request::compose(exchange, pass, target.as_ref(), framing, &mut head);
    let answer = tries(exchange, conn, pass, group, &head, framing).await;
    exchange.worker.return_out(head);
    answer
}

async fn ready_body(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), Answer> {
    let location = exchange.location;
    let proxy = &location.values.proxy;
    if let Some(template) = &proxy.set_body {
        let text = template.text(exchange);
        body::discard(exchange, conn).await.map_err(Answer::Gone)?;
        exchange.body = RequestBody::Memory(text);
        return Ok(());
    }
    if !matches!(exchange.body, RequestBody::Unread) {
        return Ok(());
    }
    // nginx: a chunked request goes unbuffered to HTTP/1.1 upstreams only.
    let is_chunked = matches!(exchange.request.length, Some(BodyLength::Chunked));
    let read = if proxy.request_buffering || (is_chunked && !proxy.http11) {
        body::read(exchange, conn).await
    } else {
        body::take_arrived(exchange, conn)
    };
    match read {
        Ok(()) => Ok(()),
        Err(Failed::Status(status)) => Err(Answer::Outcome(Outcome::Status(status))),
        Err(Failed::Gone(gone)) => {
            if matches!(gone, Gone::Closed(_)) {
                exchange.log(Level::Info, format_args!("client prematurely closed connection"));
            }
            Err(Answer::Gone(gone))
        }
    }
}

fn framing(exchange: &Exchange<'_>) -> BodyFraming {
    let proxy = &exchange.location.values.proxy;
    if !proxy.pass_body {
        return BodyFraming::None;
    }
    match (&exchange.body, exchange.request.length) {
        (RequestBody::Unread, Some(BodyLength::Chunked)) => BodyFraming::Chunked,
        (RequestBody::Unread, Some(BodyLength::Exact(length))) => BodyFraming::Length(length),
        (RequestBody::Memory(_) | RequestBody::File { .. }, _) => BodyFraming::Length(exchange.body.length()),
        // A length of nothing is still a length, and a chunked body of nothing has one now.
        (_, Some(BodyLength::Exact(_) | BodyLength::Chunked)) => BodyFraming::Length(0),
        (_, None | Some(BodyLength::None | BodyLength::UntilClose)) => BodyFraming::None,
    }
}

/// The group to ask, and what a `proxy_pass` with variables came to.
fn choose_group(exchange: &mut Exchange<'_>, pass: &Pass) -> Result<(GroupRef, Option<Target>), u16> {
    let generation = exchange.generation.clone();
    let Some(template) = &pass.template else {
        let number = pass.group.ok_or(500u16)?;
        return Ok((GroupRef::Declared(generation, number), None));
    };
    let text = String::from_utf8_lossy(&template.text(exchange)).into_owned();
    let parsed = match parse_url(&text) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            exchange.log(Level::Error, format_args!("{} in \"{text}\"", refusal.what));
            return Err(500);
        }
    };
    exchange.proxy_host = Some(parsed.host.clone().into_bytes());
    let target = Target { host: parsed.host.into_bytes(), uri: parsed.uri.map(String::into_bytes) };
    let declared = &generation.conf.declared.upstream;
    if let Some(number) = declared.find(&parsed.url).or_else(|| declared.find_implicit(&parsed.url)) {
        return Ok((GroupRef::Declared(generation.clone(), number), Some(target)));
    }
    match literal_address(&parsed.url) {
        Some(address) => {
            let upstream = Upstream::implicit(&parsed.url, &[address]).map_err(|_| 500u16)?;
            Ok((GroupRef::Own(Rc::new(upstream)), Some(target)))
        }
        None => {
            let host = super::split_host_port(&parsed.url).0.to_owned();
            exchange.log(Level::Error, format_args!("no resolver defined to resolve {host}"));
            Err(502)
        }
    }
}

fn literal_address(authority: &str) -> Option<Address> {
    if let Some(path) = authority.strip_prefix("unix:") {
        return Some(Address::Unix(path.into()));
    }
    let (host, port) = super::split_host_port(authority);
    let port: u16 = port.unwrap_or("80").parse().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(Address::Tcp(std::net::SocketAddr::new(bare.parse().ok()?, port)))
}

/// What one try came to.
#[allow(clippy::large_enum_variant)] // moved twice; a box would be the exchange's only allocation
enum Tried {
    Answered(Origin, Link, Hold),
    Failed(Failure, Progressed, bool),
}

// long: the walk from try to try is one decision after the other; splitting it hides their order.
async fn tries(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    pass: &Pass,
    group: GroupRef,
    head: &[u8],
    framing: BodyFraming,
) -> Answer {
    let location = exchange.location;
    let proxy = &location.values.proxy;
    let policy =
        RetryPolicy { conditions: proxy.next_upstream, tries: proxy.tries, timeout_ms: proxy.tries_timeout.as_millis() as u64 };
    let Some(upstream) = group.get() else { return Answer::Outcome(Outcome::Status(500)) };
    upstream.budget.earn();
    let mut hold = Hold { group: group.clone(), selection: upstream.group.begin(policy.tries), is_fresh: false };
    let first_started = clock::now();
    let mut wants_fresh = None;
    let after_redirect = !exchange.tries.is_empty();
    let mut first = true;
    loop {
        let peer = match wants_fresh.take() {
            Some(peer) => peer,
            None => match pick(exchange, upstream, &mut hold) {
                Some(peer) => {
                    begin_try(exchange, &group, peer, after_redirect && first);
                    peer
                }
                None => {
                    exchange.tries.push(Try { status: 502, after_redirect: after_redirect && first, ..Try::at(upstream.name.as_str().into()) });
                    exchange.step = Step::Connect;
                    exchange.log(Level::Error, format_args!("no live upstreams"));
                    return Answer::Outcome(Outcome::Status(502));
                }
            },
        };
        first = false;
        let reuse = !hold.is_fresh;
        hold.is_fresh = false;
        let (failure, progressed, reused) = match try_once(exchange, conn, upstream, peer, hold, reuse, head, framing).await {
            (Tried::Answered(origin, link, back), _) => {
                match judge(exchange, upstream, &policy, first_started, origin, link, back, pass) {
                    Judged::Answer(answer) => return answer,
                    Judged::Again(back) => {
                        hold = back;
                        continue;
                    }
                }
            }
            (Tried::Failed(failure, progressed, reused), Some(back)) => {
                hold = back;
                (failure, progressed, reused)
            }
            (Tried::Failed(..), None) => return Answer::Outcome(Outcome::Status(500)),
        };
        let idempotent = retry::is_idempotent(exchange.request.method());
        let body_at_hand = !matches!(exchange.body, RequestBody::Unread) && exchange.reader.as_ref().is_none_or(body::Reader::is_done)
            && !was_streamed(exchange, framing);
        let broken = BrokenAttempt {
            reused,
            response_begun: progressed.response_begun,
            request_sent: progressed.request_sent,
            idempotent,
            body_at_hand,
        };
        let is_broken = matches!(failure, Failure::Send(_) | Failure::Receive(_) | Failure::Closed);
        if is_broken && broken.is_stale_connection() {
            // The peer had closed a connection we kept: nobody's failure, a fresh one to the same peer.
            hold.is_fresh = true;
            wants_fresh = Some(peer);
            continue;
        }
        let (status, kind) = match describe(exchange, &failure) {
            Ok(described) => described,
            Err(answer) => {
                hold.release(Verdict::Abandoned);
                end_try(exchange, 0);
                return answer(failure);
            }
        };
        let attempt = Attempt {
            failure: kind,
            request_sent: progressed.request_sent,
            idempotent,
            body_at_hand,
            tries_left: upstream.group.tries_after(&hold.selection),
            elapsed_ms: clock::now().saturating_duration_since(first_started).as_millis() as u64,
        };
        let decision = policy.decide(&attempt, &upstream.budget, clock::unix_seconds());
        end_try(exchange, status);
        if hold.release(kind.outcome(decision)) {
            exchange.log(Level::Warn, format_args!("upstream server temporarily disabled"));
        }
        match decision {
            Ok(()) => {}
            Err(refusal) => {
                if refusal == retry::Refusal::Budget {
                    exchange.log(Level::Warn, format_args!("retry budget of upstream \"{}\" is spent", upstream.name));
                }
                return Answer::Outcome(Outcome::Status(status));
            }
        }
    }
}

fn was_streamed(exchange: &Exchange<'_>, framing: BodyFraming) -> bool {
    framing != BodyFraming::None && framing != BodyFraming::Length(0) && exchange.body.length() == 0
}

fn begin_try(exchange: &mut Exchange<'_>, group: &GroupRef, peer: usize, after_redirect: bool) {
    let name = match group {
        GroupRef::Declared(generation, number) => generation.peer_name(*number, peer),
        GroupRef::Own(upstream) => upstream.group.peer(peer).map(|peer| peer.address.as_str().into()).unwrap_or_default(),
    };
    exchange.tries.push(Try { started: Some(clock::now()), after_redirect, ..Try::at(name) });
}

fn end_try(exchange: &mut Exchange<'_>, status: u16) {
    if let Some(attempt) = exchange.last_try() {
        if attempt.status == 0 {
            attempt.status = status;
        }
        attempt.end();
    }
}

/// Chooses a peer.
fn pick(exchange: &mut Exchange<'_>, upstream: &Upstream, hold: &mut Hold) -> Option<usize> {
    let key = match &upstream.hash_key {
        Some(template) => template.text(exchange),
        None => Vec::new(),
    };
    let client = exchange.remote().tcp().map(|address| address.ip());
    let worker = exchange.worker;
    let mut random = |below: u32| worker.random(below);
    let affinity = Affinity { key: &key, client };
    let picked = upstream.group.pick(&mut hold.selection, &affinity, &mut random, clock::unix_seconds());
    picked.ok().map(|picked| picked.peer)
}

/// One try: a pooled connection or a new one, the request out, the head in.
#[allow(clippy::too_many_arguments)] // long: the parts of one try, all named
async fn try_once(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    upstream: &Upstream,
    peer: usize,
    hold: Hold,
    may_reuse: bool,
    head: &[u8],
    framing: BodyFraming,
) -> (Tried, Option<Hold>) {
    let bind = &exchange.location.values.proxy.bind;
    let bound = bind.as_ref().and_then(|template| parse_bind(&template.text(exchange)));
    let pooled = if may_reuse { take_kept(&hold.group, peer, bound) } else { None };
    let mut progressed = Progressed::default();
    let (link, reused) = match pooled {
        Some(link) => (link, true),
        None => match open(exchange, conn, upstream, peer, &hold.group, bound).await {
            Ok(opened) => opened,
            Err(failure) => return (Tried::Failed(failure, progressed, false), Some(hold)),
        },
    };
    if let Some(attempt) = exchange.last_try() {
        attempt.connect_ms = Some(attempt.elapsed_ms());
    }
    match attempt::exchange_heads(exchange, conn, &link, head, framing, &mut progressed).await {
        Ok(origin) => {
            if let Some(attempt) = exchange.last_try() {
                attempt.header_ms = Some(attempt.elapsed_ms());
                attempt.status = origin.head.status;
            }
            exchange.request_complete = progressed.request_complete;
            (Tried::Answered(origin, link, hold), None)
        }
        Err(failure) => (Tried::Failed(failure, progressed, reused), Some(hold)),
    }
}

/// A kept connection to a peer.
fn take_kept(group: &GroupRef, peer: usize, bound: Option<SocketAddr>) -> Option<Link> {
    match group {
        GroupRef::Declared(generation, number) => generation.pools.take(*number, peer, bound),
        GroupRef::Own(_) => None,
    }
}

/// How long a try without a local port waits for a kept connection before it asks for a port again.
const PORT_PAUSE: Duration = Duration::from_millis(500);

/// A new connection; `true` beside one that was kept meanwhile.
///
/// When all local ports towards the peer are taken (`EADDRNOTAVAIL`; nginx: 502), the connections this worker has
/// are what there is: the try queues for one of them, or for a port, as long as connecting may take.
async fn open(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    upstream: &Upstream,
    peer: usize,
    group: &GroupRef,
    bound: Option<SocketAddr>,
) -> Result<(Link, bool), Failure> {
    let Some(address) = upstream.addresses.get(peer) else { return Err(Failure::Closed) };
    let values = &exchange.location.values.proxy;
    let (give_up, watch) = (clock::now() + values.connect_timeout, !values.ignore_client_abort);
    // Where others wait already there is no port to be had: no need to ask.
    let mut waiting = match group {
        GroupRef::Declared(generation, number) if bound.is_none() && generation.pools.is_awaited(*number, peer) => {
            Some(generation.pools.wait(*number, peer))
        }
        GroupRef::Declared(..) | GroupRef::Own(_) => None,
    };
    let mut may_connect = waiting.is_none();
    loop {
        if may_connect {
            match attempt::connect(exchange, conn, address, peer, bound).await {
                Err(Failure::Connect(error))
                    if error.kind() == io::ErrorKind::AddrNotAvailable && bound.is_none() && clock::now() < give_up =>
                {
                    let GroupRef::Declared(generation, number) = group else { return Err(Failure::Connect(error)) };
                    if waiting.is_none() {
                        exchange.log(Level::Warn, format_args!("connect() failed {}, waiting for a kept connection", log::Os(&error)));
                        waiting = Some(generation.pools.wait(*number, peer));
                    }
                }
                done => return done.map(|link| (link, false)),
            }
        }
        may_connect = true;
        let pause = Deadline::new();
        pause.set(PORT_PAUSE);
        let found = poll_fn(|context| {
            if let Some(Poll::Ready(link)) = waiting.as_ref().map(|waiting| waiting.poll(context)) {
                return Poll::Ready(Ok(Some(link)));
            }
            if watch && let Poll::Ready(error) = conn.poll_gone() {
                return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
            }
            pause.poll_expired().map(|()| Ok(None))
        });
        if let Some(link) = found.await? {
            return Ok((link, true));
        }
    }
}

enum Judged {
    Answer(Answer),
    Again(Hold),
}

/// A head came: is it an answer, or a reason to ask another peer?
#[allow(clippy::too_many_arguments)] // long: the parts of one try, all named
fn judge(
    exchange: &mut Exchange<'_>,
    upstream: &Upstream,
    policy: &RetryPolicy,
    first_started: std::time::Instant,
    origin: Origin,
    link: Link,
    mut hold: Hold,
    pass: &Pass,
) -> Judged {
    let status = origin.head.status;
    let _ = pass;
    if let Some(kind) = retry::Failure::of_status(status) {
        let attempt = Attempt {
            failure: kind,
            request_sent: true,
            idempotent: retry::is_idempotent(exchange.request.method()),
            body_at_hand: exchange.reader.as_ref().is_none_or(|_| exchange.body.length() > 0),
            tries_left: upstream.group.tries_after(&hold.selection),
            elapsed_ms: clock::now().saturating_duration_since(first_started).as_millis() as u64,
        };
        let decision = policy.decide(&attempt, &upstream.budget, clock::unix_seconds());
        if decision.is_ok() {
            end_try(exchange, status);
            if hold.release(kind.outcome(decision)) {
                exchange.log(Level::Warn, format_args!("upstream server temporarily disabled"));
            }
            return Judged::Again(hold);
        }
    }
    Judged::Answer(take_answer(exchange, origin, link, hold))
}

/// The head is the answer's: reads its meaning.
fn take_answer(exchange: &mut Exchange<'_>, origin: Origin, link: Link, mut hold: Hold) -> Answer {
    let status = origin.head.status;
    if status == 101 {
        if !exchange.request.tokens.upgrade {
            exchange.step = Step::AwaitHead;
            exchange.log(Level::Error, format_args!("upstream switched protocols unasked"));
            hold.release(Verdict::Failed);
            end_try(exchange, 502);
            return Answer::Outcome(Outcome::Status(502));
        }
        response::accept(exchange, &origin, BodyLength::None);
        exchange.origin = Some(origin);
        return Answer::Tunnel(Upgraded { link, hold });
    }
    let length = match weir_wire::response_body(&origin.bytes, &origin.head, exchange.request.method()) {
        Ok(length) => length,
        Err(violation) => {
            exchange.step = Step::AwaitHead;
            exchange.log(Level::Error, format_args!("{}", violation.upstream_message()));
            hold.release(Verdict::Failed);
            end_try(exchange, 502);
            return Answer::Outcome(Outcome::Status(502));
        }
    };
    let tokens = ConnectionTokens::of(&origin.bytes, &origin.head.fields);
    let may_be_kept = weir_wire::keeps_alive(origin.head.version, tokens)
        && (origin.head.version == Version::Http11 || tokens.keep_alive)
        && exchange.request_complete
        && !matches!(length, BodyLength::UntilClose);
    let values = &exchange.location.values;
    if values.proxy.intercept_errors && status >= 300 && crate::special::is_intercepted(exchange, status) {
        if status == 401 {
            let known = Some(weir_wire::Known::WwwAuthenticate);
            for field in origin.head.fields.iter().filter(|field| field.known == known) {
                exchange.response.fields.push_known(b"WWW-Authenticate", field.value.of(&origin.bytes), known);
            }
        }
        release_unread(exchange, &origin, link, &mut hold, length, may_be_kept);
        exchange.origin = Some(origin);
        return Answer::Outcome(Outcome::Status(status));
    }
    let source = Source::new(link, hold, length, may_be_kept);
    match response::accept(exchange, &origin, length) {
        Some(elsewhere) => {
            source.finish_unread(exchange);
            // Kept first: what answers there may read `$upstream_http_…`.
            exchange.origin = Some(origin);
            Answer::Outcome(elsewhere.enter(exchange))
        }
        None => {
            exchange.origin = Some(origin);
            Answer::Response(source)
        }
    }
}

/// The answer's body is not wanted; a connection without one outstanding can still be kept.
fn release_unread(exchange: &mut Exchange<'_>, origin: &Origin, link: Link, hold: &mut Hold, length: BodyLength, may_be_kept: bool) {
    let is_whole = match length {
        BodyLength::None => true,
        BodyLength::Exact(length) => origin.bytes.len() as u64 == origin.head.len as u64 + length,
        BodyLength::Chunked | BodyLength::UntilClose => false,
    };
    if is_whole {
        keep(exchange, &hold.group, link, may_be_kept);
    }
    hold.release(Verdict::Ok);
    end_try(exchange, origin.head.status);
}

/// Logs a failed try: the status it would come to, and the kind `proxy_next_upstream` knows it by.
#[allow(clippy::type_complexity)] // the error is "this failure is not the peer's", turned into an answer by the caller
fn describe(exchange: &mut Exchange<'_>, failure: &Failure) -> Result<(u16, retry::Failure), fn(Failure) -> Answer> {
    let step = exchange.step;
    match failure {
        Failure::Connect(error) => {
            let error = log::Os(error);
            exchange.log(Level::Error, format_args!("connect() failed {error}"));
            Ok((502, retry::Failure::Error))
        }
        Failure::Send(error) => {
            let error = log::Os(error);
            exchange.log(Level::Error, format_args!("writev() failed {error}"));
            Ok((502, retry::Failure::Error))
        }
        Failure::Receive(error) => {
            let error = log::Os(error);
            exchange.log(Level::Error, format_args!("recv() failed {error}"));
            Ok((502, retry::Failure::Error))
        }
        Failure::Closed => {
            exchange.log(Level::Error, format_args!("upstream prematurely closed connection"));
            Ok((502, retry::Failure::Error))
        }
        Failure::TimedOut => {
            exchange.step = step;
            exchange.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
            Ok((504, retry::Failure::Timeout))
        }
        Failure::Head(fault) => {
            match fault {
                HeadFault::TooBig => exchange.log(Level::Error, format_args!("upstream sent too big header")),
                HeadFault::Violation(violation) => exchange.log(Level::Error, format_args!("{}", violation.upstream_message())),
            }
            Ok((502, retry::Failure::InvalidHeader))
        }
        // nginx: an internal error, and no peer's fault.
        Failure::TableFull => Err(|_| Answer::Outcome(Outcome::Status(500))),
        Failure::Body(_) => Err(|failure| match failure {
            Failure::Body(Failed::Status(status)) => Answer::Outcome(Outcome::Status(status)),
            Failure::Body(Failed::Gone(gone)) => Answer::Gone(gone),
            _ => Answer::Outcome(Outcome::Status(500)),
        }),
        Failure::Client(_) => {
            exchange.log(Level::Info, format_args!("client prematurely closed connection, so upstream connection is closed too"));
            Err(|failure| match failure {
                Failure::Client(gone) => Answer::Gone(gone),
                _ => Answer::Gone(Gone::Closed(io::ErrorKind::ConnectionAborted.into())),
            })
        }
    }
}
