//! Leads one exchange from peer to peer: chooses the peer and the connection, and decides after a failure.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use weir_cache::serving::Trouble;
use weir_http::exchange::Exchange;
use weir_http::exchange::counting;
use weir_http::exchange::message::{Origin, Try};
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::request_body::{Reader, RequestBody};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::receive::h2::reply::Lost;
use weir_meter::Step;
use weir_meter::live::cells::Why;
use weir_net::log::{self, Level};
use weir_net::{Deadline, Instant, Local, clock};
use weir_peers::balance::Affinity;
use weir_peers::group::Outcome as Verdict;
use weir_peers::pool_policy::BrokenAttempt;
use weir_peers::retry::{self, Attempt, RetryPolicy};

use super::Upstream;
use super::answer::Answer;
use super::answered;
use super::attempt::{self, Answered};
use super::blame::{blame, why};
use super::failure::{Failure, Progressed};
use super::lend;
use super::line::{Awaited, Kept, Line, Opened};
use super::pool::{Handover, Link, News, Terms};
use super::queue::{self, Ticket};
use super::sending::Outgoing;
use super::source::{GroupRef, Hold};
use crate::family::proxy;
use crate::family::proxy::request::BodyFraming;
use crate::family::proxy_ssl::Party;
use crate::protocol::Protocol;

/// The state of one exchange between its tries.
pub(super) struct Walk<'g> {
    upstream: &'g Upstream,
    outgoing: &'g Outgoing<'g>,
    /// The TLS party.
    party: Option<&'g Arc<Party>>,
    /// The hold on the last peer, with the record of all peers asked.
    pub hold: Hold,
    first_started: Instant,
    /// The peer whose kept connection turned out dead: asked again, on a new connection.
    stale: Option<usize>,
    /// An internal redirect happened before the next try.
    after_redirect: bool,
    /// Its place in the group's queue; it waited there for the next peer.
    ticket: Option<Ticket>,
}

/// The next peer, and whether a kept connection may be used.
#[derive(Clone, Copy)]
pub(super) struct Next {
    pub peer: usize,
    may_reuse: bool,
}

/// A try without a head.
pub(super) struct FailedTry {
    pub peer: usize,
    pub failure: Failure,
    pub progressed: Progressed,
    /// It used a kept connection.
    pub reused: bool,
}

impl<'g> Walk<'g> {
    /// Before the first try. A `ticket` is the place in the group's queue that the exchange has already.
    pub fn begin(
        exchange: &Exchange<'_>,
        group: GroupRef,
        upstream: &'g Upstream,
        party: Option<&'g Arc<Party>>,
        outgoing: &'g Outgoing<'g>,
        ticket: Option<Ticket>,
    ) -> Walk<'g> {
        upstream.own.budget.earn();
        Walk {
            upstream,
            outgoing,
            party,
            hold: Hold { group, selection: upstream.group.begin(outgoing.values.proxy.tries) },
            first_started: clock::now(),
            stale: None,
            after_redirect: !exchange.tries.is_empty(),
            ticket,
        }
    }

    /// Chooses the next peer and begins its try; `None` if no peer is free.
    pub fn next_peer(&mut self, exchange: &mut Exchange<'_>) -> Option<Next> {
        if let Some(peer) = self.stale.take() {
            return Some(Next { peer, may_reuse: false });
        }
        let peer = if self.is_behind_others() { None } else { self.pick(exchange) }?;
        let after_redirect = std::mem::take(&mut self.after_redirect);
        let (name, cell) = self.hold.group.known_peer(&exchange.worker.boards, peer);
        let is_tls = self.party.is_some();
        exchange.tries.push(Try { started: Some(clock::now()), is_tls, after_redirect, cell, ..Try::at(name) });
        if let Some(ticket) = self.ticket.take()
            && let Some(attempt) = exchange.tries.last_mut()
        {
            attempt.queue_us = queue::leave(exchange.worker, ticket);
        }
        Some(Next { peer, may_reuse: true })
    }

    /// Others wait in the group's queue, so this exchange waits behind them.
    fn is_behind_others(&self) -> bool {
        match &self.upstream.own.queue {
            Some(queue) => self.ticket.is_none() && self.hold.selection.picks() == 0 && !queue.is_empty(),
            None => false,
        }
    }

    /// No peer is free: waits in the group's queue if it has one. Returns the answer if that gives no peer, and the
    /// group if its servers have changed meanwhile.
    pub async fn without_peer(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
    ) -> ControlFlow<Answer, Option<(GroupRef, Ticket)>> {
        let upstream = self.upstream;
        let Some(queue) = upstream.own.queue.as_ref().filter(|_| upstream.group.may_wait(&self.hold.selection)) else {
            return ControlFlow::Break(self.unserved(exchange));
        };
        let watched = proxy::is_for_its_client_alone(exchange).then_some(conn);
        match queue::wait(exchange, watched, &upstream.name, queue, self.ticket.take()).await {
            Ok(ticket) if self.hold.selection.picks() > 0 => self.ticket = Some(ticket),
            Ok(ticket) => match self.hold.group.renewed() {
                Some(group) => return ControlFlow::Continue(Some((group, ticket))),
                None => {
                    self.hold.selection = upstream.group.begin(self.outgoing.values.proxy.tries);
                    self.ticket = Some(ticket);
                }
            },
            Err(queue::Refused::Gone(gone)) => return ControlFlow::Break(Answer::Gone(gone)),
            Err(queue::Refused::Unserved) => {
                exchange.cache.trouble = Some(Trouble::Error);
                return ControlFlow::Break(Answer::Outcome(Outcome::Status(502)));
            }
        }
        ControlFlow::Continue(None)
    }

    /// The answer if the group has no peer for the exchange.
    fn unserved(&mut self, exchange: &mut Exchange<'_>) -> Answer {
        let group = Try::at(self.upstream.name.as_str().into());
        let (is_tls, why) = (self.party.is_some(), Some(Why::NoPeer));
        let after_redirect = std::mem::take(&mut self.after_redirect);
        exchange.tries.push(Try { status: 502, is_tls, after_redirect, why, ..group });
        exchange.facts.step = Step::Connect;
        exchange.log(Level::Error, format_args!("no live upstreams"));
        exchange.cache.trouble = Some(Trouble::Error);
        Answer::Outcome(Outcome::Status(502))
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
        let bound = self.upstream.own.sticky.as_ref().and_then(|sticky| sticky.bound(exchange));
        let affinity = Affinity { key: &key, client, bound: bound.as_deref() };
        let Hold { group, selection } = &mut self.hold;
        let picked = self.upstream.group.pick(&group.get().part, selection, &affinity, &mut random, clock::unix_ms());
        picked.ok().map(|picked| picked.peer)
    }

    /// A kept connection of this worker to the peer, if the try may use one.
    pub fn kept(&self, next: Next, terms: Terms<'_>) -> Option<Box<Link>> {
        if !next.may_reuse || matches!(self.outgoing.values.proxy.protocol, Protocol::Http2 | Protocol::Tunnel) {
            return None;
        }
        self.hold.group.pool()?.take(self.upstream.id(next.peer), terms)
    }

    /// The terms that a connection from this local address (`proxy_bind`) must meet for the exchange.
    #[inline]
    pub fn terms<'t>(&self, bound: Option<&'t Local>) -> Terms<'t>
    where
        'g: 't,
    {
        Terms { bound, party: self.party, sessions: self.upstream.own.sessions.as_deref() }
    }

    /// Opens a connection or a stream, or takes a kept connection of another worker; returns whether others have used it.
    pub async fn opened(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        next: Next,
        terms: Terms<'_>,
    ) -> Result<(Box<Link>, bool), Failure> {
        match self.outgoing.values.proxy.protocol {
            Protocol::Http2 => return self.begin_stream(exchange, conn, next, terms).await,
            Protocol::Tunnel => return self.open_tunnel(exchange, conn, next.peer, terms).await,
            _ => {}
        }
        if next.may_reuse
            && let Some(home) = self.hold.group.home()
        {
            let (worker, id) = (exchange.worker, self.upstream.id(next.peer));
            let asked = lend::ask(worker, home.pool.place(), id, terms, lend::Kind::Link);
            if let Some(asked) = asked
                && let Some(link) = asked.link(worker, id).await
            {
                return Ok((link, true));
            }
        }
        self.open(exchange, conn, next.peer, terms).await
    }

    /// Notes that the try has its connection.
    pub fn note_connection(exchange: &mut Exchange<'_>, reused: bool) {
        if let Some(attempt) = exchange.last_try() {
            attempt.connect_us = Some(u32::try_from(attempt.elapsed_us()).unwrap_or(u32::MAX));
            attempt.reused = reused;
        }
    }

    /// The answer of a try whose head has come; a fault of the head is a failure.
    pub fn measured(
        &self,
        exchange: &mut Exchange<'_>,
        link: Box<Link>,
        head: Result<Box<Origin>, Failure>,
        progressed: &mut Progressed,
    ) -> Result<Answered, Failure> {
        let measured = head.and_then(|origin| {
            let measured = answered::measure(exchange, self.outgoing.values, &origin, &link);
            measured.map(|length| (origin, length)).map_err(Failure::Head)
        });
        match measured {
            Ok((origin, length)) => {
                if let Some(attempt) = exchange.last_try() {
                    attempt.header_us = Some(attempt.elapsed_us());
                    attempt.status = origin.head.status;
                }
                exchange.flags.request_complete = progressed.request_complete;
                Ok(Answered { origin, link, length })
            }
            Err(failure) => {
                // A request that the peer has not begun to process counts as not sent, if weir can send it again.
                let is_untouched = matches!(failure, Failure::Lost(Lost::Unprocessed(_)));
                progressed.request_sent &= !(is_untouched && self.body_at_hand(exchange));
                Err(failure)
            }
        }
    }

    /// Opens a connection that no other request has used or will use.
    async fn open_tunnel(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        peer: usize,
        terms: Terms<'_>,
    ) -> Result<(Box<Link>, bool), Failure> {
        let Some(address) = self.upstream.addresses.get(peer) else { return Err(Failure::Closed) };
        let link = attempt::connect(exchange, conn, address, self.upstream.id(peer), terms).await?;
        Ok((link, false))
    }

    /// Opens a stream on a shared connection, on one that another worker lends, or on a new one; returns whether the connection
    /// carried others before.
    async fn begin_stream(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        Next { peer, may_reuse }: Next,
        terms: Terms<'_>,
    ) -> Result<(Box<Link>, bool), Failure> {
        let Some(address) = self.upstream.addresses.get(peer) else { return Err(Failure::Closed) };
        let (lines, id) = (self.hold.group.home().map(|home| &home.lines), self.upstream.id(peer));
        if let (Some(lines), true) = (lines, may_reuse) {
            let give_up = Deadline::new();
            give_up.set(self.outgoing.values.proxy.connect_timeout);
            let mut may_wait = true;
            loop {
                if let Some(begun) = lines.begin(id, terms) {
                    return Ok(begun);
                }
                // Another exchange failed to open the connection, so each waiting exchange opens its own.
                let opening = lines.opening(id, terms).filter(|_| may_wait);
                let Some(opening) = opening else { break };
                exchange.facts.step = Step::Connect;
                may_wait = opened_by_others(exchange, conn, &opening, &give_up).await?;
            }
        }
        let opening = lines.map(|lines| lines.announce(id, terms));
        let shared = lines.filter(|_| may_reuse);
        let asked = shared.and_then(|lines| lend::ask(exchange.worker, lines.place(), id, terms, lend::Kind::Line));
        let lent = match asked {
            Some(asked) => asked.line(exchange.worker).await,
            None => None,
        };
        let opened = match lent {
            Some(lent) => lent,
            None => attempt::dial(exchange, conn, address, terms).await?.0,
        };
        let opened = Opened { opening, ..opened };
        let kept = lines.map(|lines| Kept { lines, policy: self.upstream.own.pooling });
        let line = Line::new(opened, id, terms, exchange.worker, kept);
        line.begin().ok_or(Failure::Closed)
    }

    /// Opens a connection; returns `true` with a connection that became free meanwhile.
    ///
    /// If all local ports to the peer are taken (`EADDRNOTAVAIL`; nginx: 502), only the worker's existing connections
    /// remain: the try waits for one of them, or for a port, up to the connect timeout.
    async fn open(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        peer: usize,
        terms: Terms<'_>,
    ) -> Result<(Box<Link>, bool), Failure> {
        let Terms { bound, party, .. } = terms;
        let Some(address) = self.upstream.addresses.get(peer) else { return Err(Failure::Closed) };
        let proxy = &self.outgoing.values.proxy;
        let (give_up, watch) = (clock::now() + proxy.connect_timeout, proxy.follows_client(exchange));
        // Other tries already wait, so no port is free: weir does not try to connect.
        let id = self.upstream.id(peer);
        let pool = self.hold.group.pool();
        let mut waiting = match pool {
            Some(pool) if bound.is_none() && pool.is_awaited(id) => Some(pool.wait(id, party)),
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
                        let Some(pool) = pool else { return Err(Failure::Connect(error)) };
                        if waiting.is_none() {
                            let error = log::Os(&error);
                            exchange.log(
                                Level::Warn,
                                format_args!("connect() failed {error}, waiting for an existing connection"),
                            );
                            waiting = Some(pool.wait(id, party));
                        }
                    }
                    done => {
                        if let (Some(waited), Some(pool)) = (waiting.take(), pool) {
                            drop(waited);
                            pool.tell_of_port(id);
                        }
                        return done.map(|link| (link, false));
                    }
                }
            }
            may_connect = true;
            let is_longest = match (&waiting, pool) {
                (Some(waiting), Some(pool)) => pool.is_longest(id, waiting),
                _ => true,
            };
            let pause = if is_longest { PORT_PAUSE } else { TURN_PAUSE };
            if let Some(link) = handed_over(conn, waiting.as_deref(), watch, pause).await? {
                return Ok((link, true));
            }
        }
    }

    /// Records that the answer of the held peer is used, for a policy that compares times.
    pub fn note_head(&mut self) {
        let group = &self.upstream.group;
        if group.policy().measures() {
            group.note_head(&mut self.hold.selection, clock::unix_ms());
        }
    }

    /// Whether weir drops this answer and asks another peer, because its status allows another try.
    pub fn passes_over(&mut self, exchange: &mut Exchange<'_>, status: u16) -> bool {
        let Some(kind) = retry::Failure::of_status(status) else { return false };
        // Stricter than after a failure: a body that was read and is empty does not count as kept.
        let has_text = self.outgoing.text.is_some();
        let body_at_hand = has_text || exchange.reader.as_ref().is_none_or(|_| exchange.body.length() > 0);
        let decision = self.decide(exchange, kind, true, body_at_hand);
        if decision.is_ok() {
            self.give_back(exchange, kind, decision);
        }
        decision.is_ok()
    }

    /// Handles a failed try; breaks with the client's answer if no other try may follow.
    pub fn after_failure(&mut self, exchange: &mut Exchange<'_>, failed: FailedTry) -> ControlFlow<Answer> {
        if self.is_stale(exchange, &failed) {
            // The peer had closed the kept connection. This is not a failure: retry on a new connection to the same
            // peer.
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
        counting::blame(exchange, why);
        let decision = self.decide(exchange, kind, failed.progressed.request_sent, self.body_at_hand(exchange));
        self.give_back(exchange, kind, decision);
        let Err(refusal) = decision else { return ControlFlow::Continue(()) };
        if refusal == retry::Refusal::Budget {
            let name = &self.upstream.name;
            exchange.log(Level::Warn, format_args!("the retry budget of upstream \"{name}\" is used up"));
        }
        exchange.cache.trouble = Some(trouble(kind));
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
        let proxy = &self.outgoing.values.proxy;
        let timeout_ms = proxy.tries_timeout.as_millis() as u64;
        let policy = RetryPolicy { conditions: proxy.next_upstream, tries: proxy.tries, timeout_ms };
        policy.decide(&attempt, &self.upstream.own.budget, clock::unix_seconds())
    }

    /// Whether the request's body can be sent again: it was kept, or there is none.
    fn body_at_hand(&self, exchange: &Exchange<'_>) -> bool {
        if self.outgoing.text.is_some() {
            return true;
        }
        let has_body = !matches!(self.outgoing.framing, BodyFraming::None | BodyFraming::Length(0));
        let was_streamed = has_body && exchange.body.length() == 0;
        !matches!(exchange.body, RequestBody::Unread)
            && exchange.reader.as_ref().is_none_or(Reader::is_done)
            && !was_streamed
    }

    /// Ends a failed try with a verdict on the peer.
    fn give_back(&mut self, exchange: &mut Exchange<'_>, kind: retry::Failure, decision: Result<(), retry::Refusal>) {
        end_try(exchange, kind.status());
        if self.hold.release(kind.outcome(decision)) {
            let cell = exchange.tries.last().map_or(0, |attempt| attempt.cell);
            exchange.worker.board.peer(cell).unavail.one();
            exchange.log(Level::Warn, format_args!("upstream server temporarily disabled"));
        }
    }
}

/// Records the end of the last try, and the status if no head brought one.
pub(super) fn end_try(exchange: &mut Exchange<'_>, status: u16) {
    if let Some(attempt) = exchange.last_try() {
        if attempt.status == 0 {
            attempt.status = status;
        }
        attempt.end();
    }
}

/// How long the longest waiter waits for a kept connection before it asks for a local port again. The kernel looks through the
/// whole range of ports for it.
const PORT_PAUSE: Duration = Duration::from_millis(50);

/// The same for the others. Usually they ask earlier: when the waiter before them has got a port.
const TURN_PAUSE: Duration = Duration::from_millis(500);

/// A connection that another exchange has finished with; `None` if it is time to ask for a local port.
async fn handed_over(
    conn: &Conn,
    waiting: Option<&Handover>,
    watch: bool,
    after: Duration,
) -> Result<Option<Box<Link>>, Failure> {
    let pause = Deadline::new();
    pause.set(after);
    poll_fn(|context| {
        match waiting.map(|waiting| waiting.poll(context)) {
            Some(Poll::Ready(News::Link(link))) => return Poll::Ready(Ok(Some(link))),
            Some(Poll::Ready(News::Port)) => return Poll::Ready(Ok(None)),
            Some(Poll::Pending) | None => {}
        }
        if watch && let Poll::Ready(error) = conn.poll_gone() {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        pause.poll_expired().map(|()| Ok(None))
    })
    .await
}

/// Waits until a connection that another exchange opens is ready; `false` if it fails.
async fn opened_by_others(
    exchange: &Exchange<'_>,
    conn: &Conn,
    opening: &Awaited,
    give_up: &Deadline,
) -> Result<bool, Failure> {
    let watch = proxy::is_for_its_client_alone(exchange);
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

/// The cache's name of a failure.
fn trouble(failure: retry::Failure) -> Trouble {
    match failure {
        retry::Failure::Timeout => Trouble::Timeout,
        retry::Failure::InvalidHeader => Trouble::InvalidHeader,
        retry::Failure::Error | retry::Failure::Denied | retry::Failure::Status(_) => Trouble::Error,
    }
}

#[cfg(test)]
mod tests;
