//! From try to try until a peer answers: choose, connect or reuse, send, judge, perhaps ask the next.
//!
//! nginx's `proxy_next_upstream` decides what is tried again; beyond nginx, a retry budget bounds it, and a
//! pooled connection that turns out dead is replaced without counting against anybody.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_meter::live::cells::Why;
use weir_net::{Deadline, Instant, clock};
use weir_wire::{BodyLength, Version};

use super::Upstream;
use super::attempt::{self, Failure, Outgoing, Progressed};
use super::balance::Affinity;
use super::blame::{blame, why};
use super::choose::{self, Chosen, Unresolved};
use super::group::Outcome as Verdict;
use super::lend;
use super::line::{Awaited, Kept, Line, Opened};
use super::pool::{Handover, Link, Terms};
use super::pool_policy::BrokenAttempt;
use super::retry::{self, Attempt, RetryPolicy};
use super::source::{GroupRef, Hold, Source, keep};
use crate::body::{self, Failed, RequestBody};
use crate::cache::serving::Trouble;
use crate::conn::{Conn, Gone};
use crate::exchange::{Exchange, Origin, Try};
use crate::family::cache::keep;
use crate::family::live;
use crate::family::store;
use crate::family::proxy::request::{self, BodyFraming};
use crate::family::proxy::{parse_bind, response};
use crate::family::proxy_ssl::{self, Asked, Party};
use crate::h2::Lost;
use crate::log::{self, Level};
use crate::phase::Outcome;
use crate::tunnel::Upgraded;
use crate::worker::Worker;

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
    let (group, target) = match choose::group(exchange, pass) {
        Ok(Chosen::Group(group, target)) => (group, target),
        // Boxed: few exchanges resolve a name, and every one would hold the room for it.
        Ok(Chosen::Name(dialled, target)) => match Box::pin(choose::resolve(exchange, conn, &dialled)).await {
            Ok(group) => (group, Some(target)),
            Err(Unresolved::Status(status)) => return Answer::Outcome(Outcome::Status(status)),
            Err(Unresolved::Gone(gone)) => return Answer::Gone(gone),
        },
        Err(status) => return Answer::Outcome(Outcome::Status(status)),
    };
    if let Err(answer) = ready_body(exchange, conn).await {
        return answer;
    }
    let mut head = exchange.worker.lease_out();
    let framing = framing(exchange);
    request::compose(exchange, pass, target.as_ref(), framing, &mut head);
    let asked = match &target {
        Some(target) if target.is_tls => proxy_ssl::asked(exchange, &target.host),
        None if pass.is_tls => proxy_ssl::asked(exchange, pass.host.as_bytes()),
        Some(_) | None => Asked::Nothing,
    };
    let answer = ask_peers(exchange, conn, &group, asked.party(), Outgoing { head: &head, framing }).await;
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
    let read = if proxy.request_buffering || (is_chunked && proxy.version < Version::Http11) {
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
        (RequestBody::Unread, Some(BodyLength::Chunked | BodyLength::UntilClose)) => BodyFraming::Chunked,
        (RequestBody::Unread, Some(BodyLength::Exact(length))) => BodyFraming::Length(length),
        (RequestBody::Memory(_) | RequestBody::File { .. }, _) => BodyFraming::Length(exchange.body.length()),
        // A length of nothing is still a length, and a chunked body of nothing has one now.
        (_, Some(BodyLength::Exact(_) | BodyLength::Chunked | BodyLength::UntilClose)) => BodyFraming::Length(0),
        (_, None | Some(BodyLength::None)) => BodyFraming::None,
    }
}

/// Asks peer after peer, until one's answer stands or nobody is left to ask.
async fn ask_peers(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    group: &GroupRef,
    party: Option<&Arc<Party>>,
    outgoing: Outgoing<'_>,
) -> Answer {
    let Some(upstream) = group.get() else { return Answer::Outcome(Outcome::Status(500)) };
    let mut walk = Walk::begin(exchange, group, upstream, party, outgoing);
    loop {
        let Some(next) = walk.next_peer(exchange) else {
            exchange.cache.trouble = Some(Trouble::Error);
            return Answer::Outcome(Outcome::Status(502));
        };
        match walk.ask(exchange, conn, next).await {
            Ok((origin, link)) => {
                if !walk.passes_over(exchange, origin.head.status) {
                    return take_answer(exchange, origin, link, walk.hold);
                }
            }
            Err(failed) => {
                if let ControlFlow::Break(answer) = walk.after_failure(exchange, failed) {
                    return answer;
                }
            }
        }
    }
}

/// One exchange's way from peer to peer.
struct Walk<'g> {
    upstream: &'g Upstream,
    outgoing: Outgoing<'g>,
    /// Whom TLS is made with.
    party: Option<&'g Arc<Party>>,
    hold: Hold,
    policy: RetryPolicy,
    first_started: Instant,
    /// The peer whose kept connection turned out dead: asked next, on a fresh one.
    stale: Option<usize>,
    /// An internal redirect lies before the next try.
    after_redirect: bool,
}

/// Whom to ask next, and whether a kept connection will do.
struct Next {
    peer: usize,
    may_reuse: bool,
}

/// A try that came to no head.
struct FailedTry {
    peer: usize,
    failure: Failure,
    progressed: Progressed,
    /// It was made on a kept connection.
    reused: bool,
}

impl<'g> Walk<'g> {
    fn begin(
        exchange: &Exchange<'_>,
        group: &GroupRef,
        upstream: &'g Upstream,
        party: Option<&'g Arc<Party>>,
        outgoing: Outgoing<'g>,
    ) -> Walk<'g> {
        let proxy = &exchange.location.values.proxy;
        let timeout_ms = proxy.tries_timeout.as_millis() as u64;
        let policy = RetryPolicy { conditions: proxy.next_upstream, tries: proxy.tries, timeout_ms };
        upstream.budget.earn();
        Walk {
            upstream,
            outgoing,
            party,
            hold: Hold { group: group.clone(), selection: upstream.group.begin(policy.tries) },
            policy,
            first_started: clock::now(),
            stale: None,
            after_redirect: !exchange.tries.is_empty(),
        }
    }

    /// The next peer, its try begun; `None`, and logged, when the group has none.
    fn next_peer(&mut self, exchange: &mut Exchange<'_>) -> Option<Next> {
        if let Some(peer) = self.stale.take() {
            return Some(Next { peer, may_reuse: false });
        }
        let picked = self.pick(exchange);
        let after_redirect = std::mem::take(&mut self.after_redirect);
        let Some(peer) = picked else {
            let group = Try::at(self.upstream.name.as_str().into());
            let why = Some(Why::NoPeer);
            exchange.tries.push(Try { status: 502, is_tls: self.party.is_some(), after_redirect, why, ..group });
            exchange.step = Step::Connect;
            exchange.log(Level::Error, format_args!("no live upstreams"));
            return None;
        };
        let (name, cell) = self.hold.group.known_peer(&exchange.worker.live, peer);
        let is_tls = self.party.is_some();
        exchange.tries.push(Try { started: Some(clock::now()), is_tls, after_redirect, cell, ..Try::at(name) });
        Some(Next { peer, may_reuse: true })
    }

    fn pick(&mut self, exchange: &mut Exchange<'_>) -> Option<usize> {
        let key = match &self.upstream.hash_key {
            Some(template) => template.text(exchange),
            None => Vec::new(),
        };
        let is_single = self.upstream.group.is_single();
        let client = if is_single { None } else { exchange.remote().tcp().map(|address| address.ip()) };
        let worker = exchange.worker;
        let mut random = |below: u32| worker.random(below);
        let affinity = Affinity { key: &key, client };
        let picked =
            self.upstream.group.pick(&mut self.hold.selection, &affinity, &mut random, clock::unix_seconds());
        picked.ok().map(|picked| picked.peer)
    }

    /// One try: a kept connection or a new one, the request out, the head in.
    async fn ask(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        Next { peer, may_reuse }: Next,
    ) -> Result<(Box<Origin>, Box<Link>), FailedTry> {
        let bind = &exchange.location.values.proxy.bind;
        let bound = bind.as_ref().and_then(|template| parse_bind(&template.text(exchange)));
        let terms = Terms { bound, party: self.party };
        let is_h2 = exchange.location.values.proxy.version == Version::Http2;
        let id = self.upstream.pool_id(peer);
        let kept = if may_reuse && !is_h2 { take_kept(exchange.worker, &self.hold.group, id, terms).await } else { None };
        let mut progressed = Progressed::default();
        let opened = match kept {
            Some(link) => Ok((link, true)),
            // Boxed: every exchange would hold the room for it.
            None if is_h2 => Box::pin(self.begin_stream(exchange, conn, Next { peer, may_reuse }, terms)).await,
            None => self.open(exchange, conn, peer, terms).await,
        };
        let (link, reused) = match opened {
            Ok(opened) => opened,
            Err(failure) => return Err(FailedTry { peer, failure, progressed, reused: false }),
        };
        if let Some(attempt) = exchange.last_try() {
            attempt.connect_us = Some(u32::try_from(attempt.elapsed_us()).unwrap_or(u32::MAX));
            attempt.reused = reused;
        }
        match attempt::exchange_heads(exchange, conn, &link, self.outgoing, &mut progressed).await {
            Ok(origin) => {
                if let Some(attempt) = exchange.last_try() {
                    attempt.header_us = Some(attempt.elapsed_us());
                    attempt.status = origin.head.status;
                }
                exchange.request_complete = progressed.request_complete;
                Ok((origin, link))
            }
            Err(failure) => {
                // What the peer has not begun with counts as not sent, if it can be sent again.
                let is_untouched = matches!(failure, Failure::Lost(Lost::Unprocessed(_)));
                progressed.request_sent &= !(is_untouched && self.body_at_hand(exchange));
                Err(FailedTry { peer, failure, progressed, reused })
            }
        }
    }

    /// A stream of a connection that others use too, or else of a new one; whether it carried others before.
    async fn begin_stream(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        Next { peer, may_reuse }: Next,
        terms: Terms<'_>,
    ) -> Result<(Box<Link>, bool), Failure> {
        let Some(address) = self.upstream.addresses.get(peer) else { return Err(Failure::Closed) };
        let (home, id) = (self.hold.group.home(), self.upstream.pool_id(peer));
        if let (Some((generation, number)), true) = (home, may_reuse) {
            let give_up = Deadline::new();
            give_up.set(exchange.location.values.proxy.connect_timeout);
            let mut may_wait = true;
            loop {
                if let Some(begun) = generation.lines.begin(number, id, terms) {
                    return Ok(begun);
                }
                // Where one that others open came to nothing, each is on its own.
                let opening = generation.lines.opening(number, id, terms).filter(|_| may_wait);
                let Some(opening) = opening else { break };
                exchange.step = Step::Connect;
                may_wait = opened_by_others(exchange, conn, &opening, &give_up).await?;
            }
        }
        let opening = home.map(|(generation, number)| generation.lines.announce(number, id, terms));
        let (opened, _) = attempt::dial(exchange, conn, address, terms).await?;
        let opened = Opened { opening, ..opened };
        let kept = home.map(|(generation, group)| Kept {
            generation,
            group,
            policy: self.upstream.pooling,
        });
        let line = Line::new(opened, id, terms, exchange.worker, kept);
        line.begin().ok_or(Failure::Closed)
    }

    /// A new connection; `true` beside one that was kept meanwhile.
    ///
    /// When all local ports towards the peer are taken (`EADDRNOTAVAIL`; nginx: 502), the connections this worker
    /// has are what there is: the try queues for one of them, or for a port, as long as connecting may take.
    async fn open(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        peer: usize,
        terms: Terms<'_>,
    ) -> Result<(Box<Link>, bool), Failure> {
        let Terms { bound, party } = terms;
        let Some(address) = self.upstream.addresses.get(peer) else { return Err(Failure::Closed) };
        let values = &exchange.location.values.proxy;
        let (give_up, watch) = (clock::now() + values.connect_timeout, exchange.is_for_its_client_alone());
        // Where others wait already there is no port to be had: no need to ask.
        let id = self.upstream.pool_id(peer);
        let mut waiting = match self.hold.group.home() {
            Some((home, number)) if bound.is_none() && home.pools.is_awaited(number, id) => {
                Some(home.pools.wait(number, id, party))
            }
            Some(_) | None => None,
        };
        let mut may_connect = waiting.is_none();
        loop {
            if may_connect {
                match attempt::connect(exchange, conn, address, id, terms).await {
                    Err(Failure::Connect(error))
                        if error.kind() == io::ErrorKind::AddrNotAvailable
                            && bound.is_none()
                            && clock::now() < give_up =>
                    {
                        let Some((home, number)) = self.hold.group.home() else {
                            return Err(Failure::Connect(error));
                        };
                        if waiting.is_none() {
                            let error = log::Os(&error);
                            exchange.log(
                                Level::Warn,
                                format_args!("connect() failed {error}, waiting for a kept connection"),
                            );
                            waiting = Some(home.pools.wait(number, id, party));
                        }
                    }
                    done => return done.map(|link| (link, false)),
                }
            }
            may_connect = true;
            if let Some(link) = handed_over(conn, waiting.as_deref(), watch).await? {
                return Ok((link, true));
            }
        }
    }

    /// Whether a whole answer is left for another peer's, as its status is one to try again on.
    fn passes_over(&mut self, exchange: &mut Exchange<'_>, status: u16) -> bool {
        let Some(kind) = retry::Failure::of_status(status) else { return false };
        // Stricter than after a failure: a body that was read and found empty does not count as kept.
        let body_at_hand = exchange.reader.as_ref().is_none_or(|_| exchange.body.length() > 0);
        let decision = self.decide(exchange, kind, true, body_at_hand);
        if decision.is_ok() {
            self.give_back(exchange, kind, decision);
        }
        decision.is_ok()
    }

    /// Judges a failed try: what the client gets if no other may follow.
    fn after_failure(&mut self, exchange: &mut Exchange<'_>, failed: FailedTry) -> ControlFlow<Answer> {
        if self.is_stale(exchange, &failed) {
            // The peer had closed a connection we kept: nobody's failure, a fresh one to the same peer.
            self.stale = Some(failed.peer);
            return ControlFlow::Continue(());
        }
        let why = why(&failed.failure);
        let kind = match blame(exchange, failed.failure) {
            ControlFlow::Continue(kind) => kind,
            ControlFlow::Break(answer) => {
                self.hold.release(Verdict::Abandoned);
                end_try(exchange, 0);
                return ControlFlow::Break(answer);
            }
        };
        live::blame(exchange, why);
        let decision = self.decide(exchange, kind, failed.progressed.request_sent, self.body_at_hand(exchange));
        self.give_back(exchange, kind, decision);
        let Err(refusal) = decision else { return ControlFlow::Continue(()) };
        if refusal == retry::Refusal::Budget {
            let name = &self.upstream.name;
            exchange.log(Level::Warn, format_args!("retry budget of upstream \"{name}\" is spent"));
        }
        exchange.cache.trouble = Some(kind.trouble());
        ControlFlow::Break(Answer::Outcome(Outcome::Status(kind.status())))
    }

    fn is_stale(&self, exchange: &Exchange<'_>, failed: &FailedTry) -> bool {
        let is_broken = matches!(
            failed.failure,
            Failure::Send(_)
                | Failure::Receive(_)
                | Failure::Closed
                | Failure::Lost(Lost::Unprocessed(_) | Lost::Closed)
        );
        let broken = BrokenAttempt {
            reused: failed.reused,
            response_begun: failed.progressed.response_begun,
            request_sent: failed.progressed.request_sent,
            idempotent: retry::is_idempotent(exchange.request.method()),
            body_at_hand: self.body_at_hand(exchange),
        };
        is_broken && broken.is_stale_connection()
    }

    fn decide(
        &self,
        exchange: &Exchange<'_>,
        failure: retry::Failure,
        request_sent: bool,
        body_at_hand: bool,
    ) -> Result<(), retry::Refusal> {
        let attempt = Attempt {
            failure,
            request_sent,
            idempotent: retry::is_idempotent(exchange.request.method()),
            body_at_hand,
            tries_left: self.upstream.group.tries_after(&self.hold.selection),
            elapsed_ms: clock::now().ms_since(self.first_started),
        };
        self.policy.decide(&attempt, &self.upstream.budget, clock::unix_seconds())
    }

    /// Whether the request's body could be sent once more: it was kept, or there is none.
    fn body_at_hand(&self, exchange: &Exchange<'_>) -> bool {
        let has_body = !matches!(self.outgoing.framing, BodyFraming::None | BodyFraming::Length(0));
        let was_streamed = has_body && exchange.body.length() == 0;
        !matches!(exchange.body, RequestBody::Unread)
            && exchange.reader.as_ref().is_none_or(body::Reader::is_done)
            && !was_streamed
    }

    /// Ends a failed try, with its verdict on the peer.
    fn give_back(
        &mut self,
        exchange: &mut Exchange<'_>,
        kind: retry::Failure,
        decision: Result<(), retry::Refusal>,
    ) {
        end_try(exchange, kind.status());
        if self.hold.release(kind.outcome(decision)) {
            let cell = exchange.tries.last().map_or(0, |attempt| attempt.cell);
            exchange.worker.board.peer(cell).unavail.one();
            exchange.log(Level::Warn, format_args!("upstream server temporarily disabled"));
        }
    }
}

/// Notes the end of the last try; the status, where no head brought one.
fn end_try(exchange: &mut Exchange<'_>, status: u16) {
    if let Some(attempt) = exchange.last_try() {
        if attempt.status == 0 {
            attempt.status = status;
        }
        attempt.end();
    }
}

/// A kept connection to a peer, by what its connections go by: this worker's, or another's.
async fn take_kept(worker: &Worker, group: &GroupRef, peer: usize, terms: Terms<'_>) -> Option<Box<Link>> {
    let (generation, number) = group.home()?;
    match generation.pools.take(number, peer, terms) {
        Some(link) => Some(link),
        None => lend::ask(worker, generation, number, peer, terms)?.answer(worker).await,
    }
}

/// How long a try without a local port waits for a kept connection before it asks for a port again.
const PORT_PAUSE: Duration = Duration::from_millis(500);

/// A connection another exchange has done with; `None` when there was none for `PORT_PAUSE`.
async fn handed_over(conn: &Conn, waiting: Option<&Handover>, watch: bool) -> Result<Option<Box<Link>>, Failure> {
    let pause = Deadline::new();
    pause.set(PORT_PAUSE);
    poll_fn(|context| {
        if let Some(Poll::Ready(link)) = waiting.map(|waiting| waiting.poll(context)) {
            return Poll::Ready(Ok(Some(link)));
        }
        if watch && let Poll::Ready(error) = conn.poll_gone() {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        pause.poll_expired().map(|()| Ok(None))
    })
    .await
}

/// Waits until a connection that another exchange opens stands, or (`false`) will not.
async fn opened_by_others(
    exchange: &Exchange<'_>,
    conn: &Conn,
    opening: &Awaited,
    give_up: &Deadline,
) -> Result<bool, Failure> {
    let watch = exchange.is_for_its_client_alone();
    poll_fn(|_| {
        if let Poll::Ready(is_open) = opening.poll() {
            return Poll::Ready(Ok(is_open));
        }
        if watch && let Poll::Ready(error) = conn.poll_gone() {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        give_up.poll_expired().map(|()| Err(Failure::TimedOut))
    })
    .await
}

/// The head is the answer's: reads its meaning.
fn take_answer(exchange: &mut Exchange<'_>, origin: Box<Origin>, link: Box<Link>, mut hold: Hold) -> Answer {
    let status = origin.head.status;
    if status == 101 {
        if !exchange.request.wants_upgrade() {
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
    let length = match weir_wire::response_body(&origin.bytes, &origin.head, exchange.upstream_method()) {
        // nginx: an answer that ends with its head has a body of nothing.
        Ok(BodyLength::UntilClose) if ends_with_head(&origin, &link) => BodyLength::Exact(0),
        Ok(length) => length,
        Err(violation) => {
            exchange.step = Step::AwaitHead;
            exchange.log(Level::Error, format_args!("{}", violation.upstream_message()));
            hold.release(Verdict::Failed);
            end_try(exchange, 502);
            return Answer::Outcome(Outcome::Status(502));
        }
    };
    let tokens = origin.head.tokens(&origin.bytes);
    let may_be_kept = weir_wire::keeps_alive(origin.head.version, tokens)
        && (origin.head.version == Version::Http11 || tokens.keep_alive)
        && exchange.request_complete
        && !matches!(length, BodyLength::UntilClose);
    if exchange.cache.is_concerned()
        && let keep::Verdict::Replaced(answer) = keep::judge(exchange, &origin, length)
    {
        release_unread(exchange, &origin, link, &mut hold, length, may_be_kept);
        exchange.worker.return_origin(origin);
        return answer;
    }
    let values = &exchange.location.values;
    if values.proxy.intercept_errors && status >= 300 && crate::special::is_intercepted(exchange, status) {
        keep::pass_authentication(exchange, &origin);
        // Of such an answer the cache keeps the status.
        exchange.cache.keep(b"", true);
        release_unread(exchange, &origin, link, &mut hold, length, may_be_kept);
        exchange.origin = Some(origin);
        return Answer::Outcome(Outcome::Status(status));
    }
    let trails = may_trail(exchange, &link);
    exchange.response.expects_trailers |= trails;
    // The frames tell where the body ends, and its length is checked with them.
    let to_read = if trails && length != BodyLength::None { BodyLength::UntilClose } else { length };
    let source = Source::new(link, hold, to_read, may_be_kept);
    match response::accept(exchange, &origin, length) {
        Some(elsewhere) => {
            exchange.cache.cut();
            source.finish_unread(exchange);
            // Kept first: what answers there may read `$upstream_http_…`.
            exchange.origin = Some(origin);
            Answer::Outcome(elsewhere.enter(exchange))
        }
        None => {
            exchange.cache.saving = store::begin(exchange, &origin);
            exchange.origin = Some(origin);
            Answer::Response(source)
        }
    }
}

/// Whether trailers may follow that a client over HTTP/2 is to have: its stream ends with them, and not with the length.
fn may_trail(exchange: &Exchange<'_>, link: &Link) -> bool {
    exchange.location.values.proxy.pass_trailers
        && exchange.request.version() == Version::Http2
        && link.h2.as_ref().is_some_and(|stream| stream.has_trailers() || !stream.is_read())
}

/// Whether a stream has brought nothing but a head, and is over (HTTP/2).
fn ends_with_head(origin: &Origin, link: &Link) -> bool {
    link.h2.as_ref().is_some_and(|stream| stream.is_read() && !stream.has_trailers())
        && origin.bytes.len() == origin.head.len
}

/// The answer's body is not wanted; a connection without one outstanding can still be kept.
fn release_unread(exchange: &mut Exchange<'_>, origin: &Origin, link: Box<Link>, hold: &mut Hold, length: BodyLength, may_be_kept: bool) {
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
