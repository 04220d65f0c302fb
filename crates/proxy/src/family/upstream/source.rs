//! The body of an upstream's answer: reads and decodes it, then keeps or closes the connection.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use weir_groups::KnownPeer;
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::hold::board::boards::Boards;
use weir_http::hold::worker::Generation;
use weir_http::receive::h2::reply::Lost;
use weir_net::log;
use weir_net::{Lease, clock};
use weir_peers::group::Outcome;
use weir_peers::selection::Selection;
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::fields::Fields;
use weir_wire::{BodyLength, Version, Violation, fastcgi, memcached};

use super::groups::{Home, groups};
use super::pool::{Link, Pool, UNTOLD};
use super::records::{self, End, Records};
use super::{Local, Upstream};
use crate::family::sticky::Sticky;
use crate::protocol::Protocol;

/// The group of an exchange: from the configuration, or made for this exchange.
#[derive(Clone)]
pub enum GroupRef {
    /// The group, as it was at the start of the exchange, and the worker's record of it; keeps its configuration alive.
    Declared(Rc<Generation>, Rc<Home>, Rc<Local>),
    /// The address that a `proxy_pass` with variables gave.
    Own(Rc<Local>),
}

impl GroupRef {
    /// A group of a configuration, in its current version; `None` if the configuration has no group of this number.
    pub fn declared(generation: Rc<Generation>, number: usize) -> Option<GroupRef> {
        let home = groups(&generation).home(number)?.clone();
        let local = home.current();
        Some(GroupRef::Declared(generation, home, local))
    }

    /// A group of a configuration, in this version; `None` as above.
    pub fn of(generation: Rc<Generation>, number: usize, local: Rc<Local>) -> Option<GroupRef> {
        let home = groups(&generation).home(number)?.clone();
        Some(GroupRef::Declared(generation, home, local))
    }

    /// The group of one exchange.
    pub fn own(upstream: Upstream) -> GroupRef {
        GroupRef::Own(Local::new(Arc::new(upstream)))
    }

    /// The group in its current version, if that is newer than this one.
    pub fn renewed(&self) -> Option<GroupRef> {
        let GroupRef::Declared(generation, home, local) = self else { return None };
        let now = home.current();
        (!Rc::ptr_eq(&now, local)).then(|| GroupRef::Declared(generation.clone(), home.clone(), now))
    }

    /// The worker's record of it, with the connections to its peers.
    pub fn home(&self) -> Option<&Home> {
        match self {
            GroupRef::Declared(_, home, _) => Some(home),
            GroupRef::Own(_) => None,
        }
    }

    /// The connections to its peers that the worker keeps.
    pub fn pool(&self) -> Option<&Pool> {
        self.home().map(|home| &*home.pool)
    }

    /// A peer. No cell of its own counts the tries at a peer that belongs to one exchange.
    pub fn known_peer(&self, boards: &Boards, index: usize) -> KnownPeer {
        match self {
            GroupRef::Declared(.., local) => local.peer(boards, index),
            GroupRef::Own(local) => {
                (local.group.peer(index).map(|peer| peer.address.as_str().into()).unwrap_or_default(), 0)
            }
        }
    }

    /// The group.
    pub fn get(&self) -> &Rc<Local> {
        match self {
            GroupRef::Declared(.., local) | GroupRef::Own(local) => local,
        }
    }
}

/// A chosen peer: dropping this gives the peer back, without a verdict unless there is one.
pub struct Hold {
    /// The group.
    pub group: GroupRef,
    /// The group's record of this exchange's choices.
    pub selection: Selection,
}

impl Hold {
    /// The group's `sticky` and the name it has for the held peer; `upstream` is the group itself.
    #[inline]
    pub fn bond<'u>(&self, upstream: &'u Upstream) -> Option<(&'u Sticky, &'u str)> {
        Some((upstream.own.sticky.as_deref()?, upstream.group.name_of(self.selection.peer()?)))
    }

    /// Gives the peer back; `true` if the peer is disabled from this moment.
    pub fn release(&mut self, outcome: Outcome) -> bool {
        let upstream = self.group.get();
        let is_disabled = upstream.group.release(&upstream.part, &mut self.selection, outcome, clock::unix_ms());
        if let Some(queue) = &upstream.own.queue {
            queue.offer();
        }
        is_disabled
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.selection.holds() {
            self.release(Outcome::Abandoned);
        }
    }
}

/// The part of an answer that is still to be read.
pub enum Left {
    /// This many bytes.
    Exact(u64),
    /// Chunks.
    Chunked(Box<Decoder>),
    /// All bytes until the peer closes.
    UntilClose,
    /// FastCGI's records.
    Records(Box<Records>),
    /// A value of memcached and its trailer.
    Value(Box<memcached::Value>),
    /// Nothing.
    Nothing,
}

/// Why reading an answer's body failed.
#[derive(Debug)]
pub enum Broken {
    /// The connection failed.
    Io(io::Error),
    /// The connection ended before the body did.
    Early,
    /// The framing is wrong.
    Framing(Violation),
    /// Nothing came for `proxy_read_timeout`.
    TimedOut,
    /// FastCGI's records are wrong, or end before the body.
    Records(fastcgi::FastCgiFault),
    /// The stream ended before the body did (HTTP/2).
    Lost(Lost),
}

impl fmt::Display for Broken {
    /// nginx's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Io(error) => write!(f, "recv() failed {}", log::Os(error)),
            Broken::Early => f.write_str("upstream prematurely closed connection"),
            Broken::Framing(violation) => f.write_str(violation.upstream_message()),
            Broken::TimedOut => f.write_str("upstream timed out (110: Connection timed out)"),
            Broken::Records(fault) => fault.fmt(f),
            Broken::Lost(lost) => lost.fmt(f),
        }
    }
}

/// nginx's words for bytes after a body of known length, which may be 0.
const MORE_THAN_LENGTH: &str = "upstream sent more data than specified in \"Content-Length\" header";

/// The same for bytes after a chunked body.
const BEHIND_LAST_CHUNK: &str = "upstream sent data after final chunk";

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Body bytes were appended.
    Some,
    /// The body is complete.
    End,
}

/// The rest of an answer.
pub struct Source {
    link: Option<Box<Link>>,
    hold: Hold,
    left: Left,
    may_be_kept: bool,
    /// Bytes that came with the head and are not read yet: the start of the body, or more than the body may have.
    untaken: u64,
    /// The upstream sent more than it announced: the message in nginx's words.
    excess: Option<&'static str>,
    /// The fields after the body.
    trailers: Fields,
    /// The deadline of the link is that of the current wait.
    waits: bool,
    /// Reading failed.
    is_broken: bool,
}

impl Source {
    /// The body of an answer whose head was read from `link`. Body bytes that came with the head are in
    /// `Origin::bytes` after it and are read first. The connection may carry another exchange only if the request
    /// `is_sent` completely, the answer allows it, and nothing but the body came.
    pub fn new(mut link: Box<Link>, hold: Hold, origin: &Origin, length: BodyLength, is_sent: bool) -> Source {
        link.peer_keeps_s = weir_wire::idle_seconds(&origin.bytes, &origin.head).unwrap_or(UNTOLD);
        let may_be_kept = is_sent
            && origin.head.version <= Version::Http11
            && weir_wire::answer_keeps_alive(&origin.bytes, &origin.head);
        let left = match length {
            BodyLength::None => Left::Nothing,
            BodyLength::Exact(0) => Left::Nothing,
            BodyLength::Exact(length) => Left::Exact(length),
            BodyLength::Chunked => Left::Chunked(Box::new(Decoder::new())),
            BodyLength::UntilClose => Left::UntilClose,
        };
        Source::with(link, hold, origin, left, may_be_kept)
    }

    /// The body of an answer in another protocol than HTTP. The connection may carry another exchange only if it
    /// `may_be_kept` and the protocol's own end of the answer has come.
    pub fn wrapped(link: Box<Link>, hold: Hold, origin: &Origin, left: Left, may_be_kept: bool) -> Source {
        Source::with(link, hold, origin, left, may_be_kept)
    }

    fn with(link: Box<Link>, hold: Hold, origin: &Origin, left: Left, may_be_kept: bool) -> Source {
        let untaken = origin.bytes.len().saturating_sub(origin.head.len) as u64;
        Source {
            link: Some(link),
            hold,
            left,
            may_be_kept,
            untaken,
            excess: None,
            trailers: Fields::default(),
            waits: false,
            is_broken: false,
        }
    }

    /// Takes the fields after the body.
    pub fn take_trailers(&mut self) -> Fields {
        std::mem::take(&mut self.trailers)
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.left, Left::Nothing)
    }

    /// Whether bytes came with the head that `feed` has not decoded yet.
    pub fn has_untaken(&self) -> bool {
        self.untaken > 0
    }

    /// Gives the wait for the next bytes this time, unless it has begun already.
    pub fn begin_wait(&mut self, timeout: Duration) {
        if let (false, Some(link)) = (self.waits, self.link.as_deref()) {
            link.deadline.set(timeout);
            self.waits = true;
        }
    }

    /// Ends the wait for bytes.
    pub fn end_wait(&mut self) {
        self.waits = false;
    }

    /// Notes that reading failed.
    pub fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Whether reading failed.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The exact remaining length, if the framing gives it.
    pub fn exact_left(&self) -> Option<u64> {
        match self.left {
            Left::Exact(left) => Some(left),
            Left::Nothing => Some(0),
            Left::Chunked(_) | Left::UntilClose | Left::Records(_) | Left::Value(_) => None,
        }
    }

    /// The connection; `None` once the body is complete.
    pub fn link(&self) -> Option<&Link> {
        self.link.as_deref()
    }

    /// Decodes bytes that came with the head: appends their body bytes to `out`.
    pub fn feed(&mut self, exchange: &mut Exchange<'_>, input: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let start = out.len();
        out.extend_from_slice(input);
        self.untaken = self.untaken.saturating_sub(input.len() as u64);
        self.decode(exchange, out, start)
    }

    /// Records that the first `count` bytes after the head were used in place.
    #[inline]
    pub fn skip(&mut self, count: u64) {
        self.untaken = self.untaken.saturating_sub(count);
        if let Left::Exact(left) = &mut self.left {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.left = Left::Nothing;
            }
        }
    }

    /// Reads once, at most `max` bytes, and appends the body bytes to `out`.
    pub fn poll_read(
        &mut self,
        exchange: &mut Exchange<'_>,
        out: &mut Lease,
        max: usize,
    ) -> Poll<Result<Read, Broken>> {
        match &self.left {
            Left::Nothing => return Poll::Ready(Ok(Read::End)),
            Left::Records(records) if let Some(fault) = records.fault => {
                return Poll::Ready(Err(Broken::Records(fault)));
            }
            _ => {}
        }
        loop {
            let Some(link) = &self.link else { return Poll::Ready(Err(Broken::Early)) };
            if link.stream.poll_readable().is_pending() {
                return match link.deadline.poll_expired() {
                    Poll::Ready(()) => Poll::Ready(Err(Broken::TimedOut)),
                    Poll::Pending => Poll::Pending,
                };
            }
            let start = out.len();
            match link.stream.try_read_vec(out, max) {
                Ok(0) => {
                    return Poll::Ready(match &self.left {
                        Left::Records(records) if records.may_end() => {
                            self.left = Left::Nothing;
                            self.may_be_kept = false;
                            Ok(Read::End)
                        }
                        Left::UntilClose | Left::Nothing => {
                            self.trailers = link.h2.as_ref().map(|stream| stream.take_trailers()).unwrap_or_default();
                            self.left = Left::Nothing;
                            self.may_be_kept = false;
                            Ok(Read::End)
                        }
                        Left::Exact(_) | Left::Chunked(_) | Left::Records(_) | Left::Value(_) => Err(Broken::Early),
                    });
                }
                Ok(count) => {
                    if let Some(attempt) = exchange.tries.last_mut() {
                        attempt.bytes_received += count as u64;
                    }
                    return Poll::Ready(
                        self.decode(exchange, out, start)
                            .map(|()| if out.len() == start && self.is_done() { Read::End } else { Read::Some }),
                    );
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => {
                    let lost = link.h2.as_ref().map(|stream| Broken::Lost(stream.lost()));
                    return Poll::Ready(Err(lost.unwrap_or(Broken::Io(error))));
                }
            }
        }
    }

    /// Leaves only body bytes after `start`, without gaps.
    fn decode(&mut self, exchange: &mut Exchange<'_>, out: &mut Vec<u8>, start: usize) -> Result<(), Broken> {
        match &mut self.left {
            Left::UntilClose => {}
            Left::Nothing => {
                if out.len() > start {
                    self.excess = Some(MORE_THAN_LENGTH);
                    out.truncate(start);
                }
            }
            Left::Exact(left) => {
                let got = (out.len() - start) as u64;
                if got > *left {
                    self.excess = Some(MORE_THAN_LENGTH);
                    out.truncate(start + *left as usize);
                    *left = 0;
                } else {
                    *left -= got;
                }
                if *left == 0 {
                    self.left = Left::Nothing;
                }
            }
            Left::Chunked(decoder) => {
                let (mut at, mut kept) = (start, start);
                loop {
                    match decoder.next(out, &mut at).map_err(Broken::Framing)? {
                        ChunkEvent::Data { start: from, end } => {
                            out.copy_within(from..end, kept);
                            kept += end - from;
                        }
                        ChunkEvent::NeedMore => break,
                        ChunkEvent::End => {
                            if at < out.len() {
                                self.excess = Some(BEHIND_LAST_CHUNK);
                            }
                            let (text, fields) = decoder.trailers();
                            for field in fields {
                                self.trailers.push_known(field.name.of(text), field.value.of(text), field.known);
                            }
                            self.left = Left::Nothing;
                            break;
                        }
                    }
                }
                out.truncate(kept);
            }
            Left::Records(records) => {
                let end = records.unwrap(exchange, out, start);
                self.end_wrapped(end);
            }
            Left::Value(value) => {
                let end = records::unwrap_value(exchange, value, out, start);
                self.end_wrapped(end);
            }
        }
        Ok(())
    }

    /// Notes the end of an answer in another protocol than HTTP, if it has come.
    fn end_wrapped(&mut self, end: End) {
        match end {
            End::NotYet => return,
            End::Clean => {}
            End::Unclean => self.may_be_kept = false,
            End::TooLong => self.excess = Some(MORE_THAN_LENGTH),
        }
        self.left = Left::Nothing;
    }

    /// Ends an answer whose body is read, before it is written, or is not needed: the connection returns to the pool if it
    /// may, else it is closed, and the peer is given back with a success. Does nothing if that has happened already.
    pub fn finish(&mut self, exchange: &mut Exchange<'_>) {
        if self.release(exchange) {
            self.end(exchange, Outcome::Ok);
        }
    }

    /// Ends an answer that another answer replaces: `sticky learn` does not learn from it.
    pub fn dismiss(mut self, exchange: &mut Exchange<'_>) {
        self.release(exchange);
        self.end_unlearnt(exchange, Outcome::Ok);
    }

    /// The connection, if it may carry another exchange: for a caller that keeps it itself.
    pub fn into_link(mut self) -> Option<Box<Link>> {
        self.is_reusable().then(|| self.link.take()).flatten().filter(|link| link.h2.is_none())
    }

    /// Puts the connection into the worker's pool, or closes it; `false` if that has happened already. Every answer
    /// that ends well returns its connection here.
    fn release(&mut self, exchange: &mut Exchange<'_>) -> bool {
        let Some(link) = self.link.take() else { return false };
        let is_reusable = self.is_reusable();
        if let Some(excess) = self.excess {
            exchange.facts.step = weir_meter::Step::ReadResponse;
            exchange.log(weir_net::log::Level::Warn, format_args!("{excess}"));
        }
        if is_reusable {
            keep(exchange, &self.hold.group, link);
        }
        true
    }

    /// Whether the connection is at the start of the next answer: the body is complete, and no byte follows it. RFC
    /// 9112 §6.3: extra bytes must not be taken for the next answer.
    fn is_reusable(&mut self) -> bool {
        let untaken = std::mem::take(&mut self.untaken);
        match self.left {
            Left::Exact(left) if untaken == left => self.left = Left::Nothing,
            Left::Exact(left) if untaken > left => self.excess = Some(MORE_THAN_LENGTH),
            Left::Nothing if untaken > 0 => self.excess = Some(MORE_THAN_LENGTH),
            Left::Exact(_)
            | Left::Nothing
            | Left::Chunked(_)
            | Left::UntilClose
            | Left::Records(_)
            | Left::Value(_) => {}
        }
        self.is_done() && self.may_be_kept && self.excess.is_none()
    }

    /// Ends a broken body: closes the connection. The peer has answered, so this is no failure of the peer (nginx:
    /// `ngx_http_upstream_finalize_request`).
    pub fn fail(&mut self, exchange: &mut Exchange<'_>) {
        self.link = None;
        self.end_unlearnt(exchange, Outcome::Ok);
    }

    /// Ends a body whose client left: closes the connection without blaming the peer.
    pub fn abandon(&mut self, exchange: &mut Exchange<'_>) {
        self.link = None;
        self.end(exchange, Outcome::Abandoned);
    }

    fn end(&mut self, exchange: &mut Exchange<'_>, outcome: Outcome) {
        let bond = self.hold.bond(self.hold.group.get());
        if let Some((sticky, peer)) = bond.filter(|(sticky, _)| outcome == Outcome::Ok && !sticky.learns_at_head()) {
            sticky.learn(exchange, peer);
        }
        self.end_unlearnt(exchange, outcome);
    }

    fn end_unlearnt(&mut self, exchange: &mut Exchange<'_>, outcome: Outcome) {
        self.hold.release(outcome);
        if let Some(attempt) = exchange.last_try() {
            attempt.end();
        }
    }

    /// The group of the answer's peer.
    pub fn group(&self) -> &GroupRef {
        &self.hold.group
    }
}

/// Whether the origin may have left the body of the request unread. It would take these bytes for the next request, whose answer
/// another client gets. Origins do this with methods whose bodies mean nothing (RFC 9110 §9.3.1), and some with every method. A
/// block with `keepalive` vouches for the latter, as in nginx.
fn may_be_unread(exchange: &Exchange<'_>, upstream: &Upstream) -> bool {
    let proxy = &crate::values(exchange.location).proxy;
    if !matches!(proxy.protocol, Protocol::Http1) {
        return false;
    }
    let has_body = proxy.set_body.is_some()
        || matches!(exchange.request.length, Some(BodyLength::Exact(1..) | BodyLength::Chunked));
    has_body
        && (upstream.is_implicit
            || matches!(exchange.request.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"DELETE" | b"TRACE"))
}

/// Puts a connection back into the worker's pool, if its group is declared. Only `Source::release` may call this.
fn keep(exchange: &Exchange<'_>, group: &GroupRef, link: Box<Link>) {
    if let Some(pool) = group.pool() {
        let upstream = group.get();
        // If variables name a certificate, weir loads it for each connection, as in nginx, or keeps it while its cache
        // allows. A connection with an old certificate would outlive both. A block with `keepalive` accepts that.
        let may_be_stale = upstream.is_implicit && link.party.as_ref().is_some_and(|party| party.shows_its_own());
        let is_reusable = !may_be_stale && !may_be_unread(exchange, upstream) && !exchange.worker.is_draining();
        pool.put(link, &upstream.own.pooling, is_reusable);
    }
}
