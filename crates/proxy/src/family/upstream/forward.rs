//! Gets an answer from a location's upstream: finds the group, composes the request, and asks peers until one answers.
//!
//! nginx's `proxy_next_upstream` decides which failures allow another try. In addition to nginx, a retry budget limits
//! tries, and a pooled connection that turns out dead is replaced without counting against any peer.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use weir_http::exchange::phase::Outcome;
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::{Exchange, Plain};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::receive::body::{self, BodyFailed};
use weir_net::log::Level;
use weir_wire::{BodyLength, Version};

use super::Upstream;
use super::answer::{Answer, Judge};
use super::answered::take_answer;
use super::attempt::{self, Answered};
use super::choose::{self, Chosen, Unresolved};
use super::failure::Progressed;
use super::sending::Outgoing;
use super::source::{GroupRef, Hold, Source};
use super::walk::{FailedTry, Walk};
use super::wrapped;
use crate::family::Values;
use crate::family::proxy::request::{self, BodyFraming};
use crate::family::proxy_ssl::{self, AskedTls, Party};
use crate::protocol::Protocol;

/// Asks the location's upstream; `values` are the settings of the location. Without a judge no cache takes part. The body of
/// the response is put into `source`, which belongs to the caller that sends it: a source is large, and moving it from one
/// future to the next costs time.
pub async fn forward(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    values: &Values,
    judge: Option<Judge>,
    source: &mut Option<Source>,
) -> Answer {
    let Some(pass) = &values.proxy.pass else { return Answer::Outcome(Outcome::Status(500)) };
    exchange.flags.is_forwarded = true;
    if judge.is_none() && exchange.flags.internal {
        leave_before(exchange);
    }
    if values.proxy.pass_reads_body
        && let Err(answer) = read_first(exchange, conn).await
    {
        return answer;
    }
    let (group, target) = match choose::group(exchange, pass) {
        Ok(Chosen::Group(group, target)) => (group, target),
        // Boxed: few exchanges resolve a name, and every one would need the room for it.
        Ok(Chosen::Name(dialled, target)) => match Box::pin(choose::resolve(exchange, conn, &dialled)).await {
            Ok(group) => (group, Some(target)),
            Err(Unresolved::Status(status)) => return Answer::Outcome(Outcome::Status(status)),
            Err(Unresolved::Gone(gone)) => return Answer::Gone(gone),
        },
        Err(status) => return Answer::Outcome(Outcome::Status(status)),
    };
    if matches!(exchange.body, RequestBody::Unread)
        && let Err(answer) = read_body(exchange, conn, values).await
    {
        return answer;
    }
    let text = values.proxy.set_body.as_ref().map(|template| Rc::from(template.text(exchange)));
    let mut head = std::mem::take(exchange.head);
    let mut framing = framing(exchange, values, text.as_ref());
    match &values.proxy.protocol {
        Protocol::Http1 | Protocol::Http2 => {
            request::compose(exchange, (values, pass), target.as_ref(), framing, &mut head);
        }
        other => {
            if let Err(status) = other.compose(exchange, values.proxy.pass_headers, &mut head) {
                head.clear();
                *exchange.head = head;
                return Answer::Outcome(Outcome::Status(status));
            }
            framing = wrapped::framing(exchange, other, framing, &mut head);
        }
    }
    let asked = match &target {
        Some(target) if target.is_tls => proxy_ssl::asked(exchange, &target.host),
        None if pass.is_tls => proxy_ssl::asked(exchange, pass.host.as_bytes()),
        Some(_) | None => AskedTls::Nothing,
    };
    let outgoing = Outgoing { head: &head, framing, text: text.as_ref(), values };
    let answer = ask_peers(exchange, conn, group, asked.party(), outgoing, judge, source).await;
    head.clear();
    *exchange.head = head;
    answer
}

/// Forgets what a location before an internal redirect had from its upstream or its cache.
fn leave_before(exchange: &mut Exchange<'_>) {
    exchange.forget_answer();
    exchange.cache.clear();
    exchange.plain = Plain::No;
}

/// Reads the whole body, unless weir has begun to read it: a text that is made of it comes before the upstream.
pub async fn read_first(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), Answer> {
    // Boxed: few exchanges read their body here, and every one would need the room for it.
    Box::pin(body::read(exchange, conn)).await.map_err(|failed| unread(exchange, failed))
}

async fn read_body(exchange: &mut Exchange<'_>, conn: &mut Conn, values: &Values) -> Result<(), Answer> {
    let proxy = &values.proxy;
    // nginx: a chunked request is passed unbuffered only to HTTP/1.1 upstreams. The text of `proxy_set_body` may have
    // `$request_body`, so it needs the whole body. A body that is not passed cannot be passed unbuffered either.
    let is_chunked = matches!(exchange.request.length, Some(BodyLength::Chunked));
    let is_whole = proxy.request_buffering
        || !proxy.pass_body
        || proxy.set_body.is_some()
        || (is_chunked && proxy.version < Version::Http11);
    let read = if is_whole { body::read(exchange, conn).await } else { body::take_arrived(exchange, conn) };
    read.map_err(|failed| unread(exchange, failed))
}

/// The answer to a request whose body could not be read.
fn unread(exchange: &mut Exchange<'_>, failed: BodyFailed) -> Answer {
    match failed {
        BodyFailed::Status(status) => Answer::Outcome(Outcome::Status(status)),
        BodyFailed::Gone(gone) => {
            if matches!(gone, Gone::Closed(_)) {
                exchange.log(Level::Info, format_args!("client prematurely closed connection"));
            }
            Answer::Gone(gone)
        }
    }
}

/// How the request declares its body: the text of `proxy_set_body`, or the client's body.
fn framing(exchange: &Exchange<'_>, values: &Values, text: Option<&Rc<[u8]>>) -> BodyFraming {
    if let Some(text) = text {
        return BodyFraming::Length(text.len() as u64);
    }
    if !values.proxy.pass_body {
        return BodyFraming::None;
    }
    match (&exchange.body, exchange.request.length) {
        (RequestBody::Unread, Some(BodyLength::Chunked | BodyLength::UntilClose)) => BodyFraming::Chunked,
        (RequestBody::Unread, Some(BodyLength::Exact(length))) => BodyFraming::Length(length),
        (RequestBody::Memory(_) | RequestBody::File(_), _) => BodyFraming::Length(exchange.body.length()),
        // A length of 0 is still a length; an empty chunked body has a length of 0 once it is read.
        (_, Some(BodyLength::Exact(_) | BodyLength::Chunked | BodyLength::UntilClose)) => BodyFraming::Length(0),
        (_, None | Some(BodyLength::None)) => BodyFraming::None,
    }
}

/// Asks one peer after the other, until one gives an answer or none is left.
async fn ask_peers(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    mut group: GroupRef,
    party: Option<&Arc<Party>>,
    outgoing: Outgoing<'_>,
    judge: Option<Judge>,
    source: &mut Option<Source>,
) -> Answer {
    let (values, mut ticket) = (outgoing.values, None);
    loop {
        let local = group.get().clone();
        let upstream = &*local;
        let mut walk = Walk::begin(exchange, group, upstream, party, &outgoing, ticket);
        let renewed = loop {
            let Some(next) = walk.next_peer(exchange) else {
                // Boxed: few exchanges wait for a peer.
                match Box::pin(walk.without_peer(exchange, conn)).await {
                    ControlFlow::Continue(None) => continue,
                    ControlFlow::Continue(Some(renewed)) => break renewed,
                    ControlFlow::Break(answer) => return answer,
                }
            };
            let mut progressed = Progressed::default();
            let bound = values.proxy.bind.as_ref().and_then(|bind| bind.local(exchange));
            let terms = walk.terms(bound.as_ref());
            let opened = match walk.kept(next, terms) {
                Some(link) => Ok((link, true)),
                // Boxed: few exchanges open a connection, and every one would need the room for it.
                None => Box::pin(walk.opened(exchange, conn, next, terms)).await,
            };
            let reused = matches!(opened, Ok((_, true)));
            let tried = match opened {
                Ok((link, _)) => {
                    Walk::note_connection(exchange, reused);
                    if matches!(outgoing.values.proxy.protocol, Protocol::Tunnel) {
                        Ok(Answered { origin: wrapped::accepted(exchange), link, length: BodyLength::None })
                    } else {
                        let head = attempt::exchange_heads(exchange, conn, &link, outgoing, &mut progressed).await;
                        walk.measured(exchange, link, head, &mut progressed)
                    }
                }
                Err(failure) => Err(failure),
            };
            match tried {
                Ok(answered) if walk.passes_over(exchange, answered.origin.head.status) => {}
                Ok(answered) => {
                    walk.note_head();
                    return take(exchange, upstream, answered, walk.hold, outgoing.values, judge, source);
                }
                Err(failure) => {
                    let failed = FailedTry { peer: next.peer, failure, progressed, reused };
                    if let ControlFlow::Break(answer) = walk.after_failure(exchange, failed) {
                        return answer;
                    }
                }
            }
        };
        // The servers of the group changed while the exchange waited for one of them.
        drop(walk);
        (group, ticket) = (renewed.0, Some(renewed.1));
    }
}

/// Uses the answer of a peer; a sticky session begins with it.
#[inline]
fn take(
    exchange: &mut Exchange<'_>,
    upstream: &Upstream,
    answered: Answered,
    hold: Hold,
    values: &Values,
    judge: Option<Judge>,
    source: &mut Option<Source>,
) -> Answer {
    let bond = hold.bond(upstream);
    if let Some((sticky, peer)) = bond {
        sticky.mark(exchange, peer);
    }
    // Do not learn a sticky session from a response that weir rejected.
    let answer = take_answer(exchange, values, answered, hold, judge, source);
    let is_whole = !matches!(answer, Answer::Response);
    if let Some((sticky, peer)) = bond.filter(|(sticky, _)| is_whole || sticky.learns_at_head()) {
        sticky.learn(exchange, peer);
    }
    answer
}
