//! One exchange: takes a kept connection or opens a new one, sends the request, reads the answer.

use std::rc::Rc;
use std::time::Duration;

use weir_net::Instant;

use weir_meter::Step;
use weir_net::tls::Sessions;
use weir_net::{Deadline, clock};

use super::answer::Answer;
use super::error::Error;
use super::incoming::{Incoming, Read, is_passing};
use super::link::Link;
use super::open;
use super::origin::Origin;
use super::resolve::Resolver;
use super::timings::Timings;

/// A connection kept for the next request.
#[derive(Debug)]
pub struct Kept {
    /// The origin of the connection.
    pub origin: Rc<Origin>,
    /// The connection.
    pub link: Link,
    /// The time limit of the current exchange.
    deadline: Deadline,
    /// Times to resolve the address, to connect and to do the TLS handshake.
    opening: (Duration, Duration, Option<Duration>),
}

impl Kept {
    fn timings(&self, started: Instant, sent: Instant, is_fresh: bool) -> Timings {
        let (dns, tcp, tls) = self.opening;
        Timings { started, dns, tcp, tls, is_fresh, sent, head: started, end: started }
    }
}

/// A request, ready to be sent.
pub struct Call<'r> {
    /// The origin.
    pub origin: &'r Rc<Origin>,
    /// The method.
    pub method: &'r [u8],
    /// Request line and fields, with the empty line.
    pub head: &'r [u8],
    /// The body.
    pub body: &'r [u8],
    /// True: keep the body of the answer.
    pub wants_body: bool,
    /// TLS sessions that a new connection may resume.
    pub sessions: Option<&'r Sessions>,
    /// Time limit of the whole exchange, from resolving to the last byte.
    pub timeout: Duration,
    /// Start time of the exchange; `None` reads the clock.
    pub started: Option<Instant>,
}

/// Carries out one exchange, over the connection in `kept` if there is one. Keeps the connection there if another
/// request may follow.
///
/// If a kept connection turns out to be closed before any byte of an answer, it is replaced once by a new connection,
/// if the method may be sent twice (RFC 9110 §9.2.2).
pub async fn exchange(kept: &mut Option<Kept>, call: &Call<'_>, resolver: &Resolver) -> Result<Answer, Error> {
    let started = call.started.unwrap_or_else(clock::precise);
    if let Some(reused) = kept.take()
        && Rc::ptr_eq(&reused.origin, call.origin)
        && !reused.link.is_stale()
    {
        reused.deadline.set(call.timeout);
        let timings = reused.timings(started, started, false);
        let mut untouched = true;
        match over(&reused.link, call, &reused.deadline, timings, &mut untouched).await {
            Ok(read) => return Ok(settle(kept, reused, read)),
            Err(error) if untouched && may_repeat(call.method) && error.name != "ETIMEDOUT" => {}
            Err(error) => return Err(error),
        }
    }
    let deadline = Deadline::new();
    deadline.set(call.timeout);
    let opened = open::open(call.origin, resolver, false, call.sessions, &deadline).await?;
    let dns = opened.resolved.saturating_duration_since(started);
    let tls = opened.secured.map(|secured| secured - opened.connected);
    let opening = (dns, opened.connected - opened.resolved, tls);
    let ready = opened.secured.unwrap_or(opened.connected);
    let fresh = Kept { origin: call.origin.clone(), link: opened.link, deadline, opening };
    let timings = fresh.timings(started, ready, true);
    let read = over(&fresh.link, call, &fresh.deadline, timings, &mut true).await?;
    Ok(settle(kept, fresh, read))
}

fn settle(kept: &mut Option<Kept>, used: Kept, read: Read) -> Answer {
    let Read { mut answer, keeps } = read;
    if keeps {
        // A connection that is not in use needs no deadline.
        used.deadline.clear();
        *kept = Some(used);
    } else if answer.status() == 101 {
        answer.upgraded = Some(used.link);
    }
    answer
}

/// Safe and idempotent methods (RFC 9110 §9.2).
pub(super) fn may_repeat(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE" | b"TRACE")
}

async fn over(
    link: &Link,
    call: &Call<'_>,
    deadline: &Deadline,
    mut timings: Timings,
    untouched: &mut bool,
) -> Result<Read, Error> {
    let sent = send(link, call.head, call.body, deadline).await;
    match sent {
        Ok(at_once) => {
            if !at_once {
                timings.sent = clock::precise();
            }
        }
        Err(ref error) if error.name == "ETIMEDOUT" => return Err(error.clone()),
        // The origin may have answered, and closed, before it had read the whole request.
        Err(_) => {}
    }
    let mut incoming = Incoming::new(link, deadline);
    let read = incoming.answer(call.method, call.wants_body, timings).await;
    *untouched = incoming.is_untouched();
    match (read, sent) {
        (Ok(mut read), Err(_)) => {
            read.keeps = false;
            Ok(read)
        }
        (Err(_), Err(error)) if *untouched => Err(error),
        (read, _) => read,
    }
}

/// Sends everything; true if the kernel took it in one call.
async fn send(link: &Link, head: &[u8], body: &[u8], deadline: &Deadline) -> Result<bool, Error> {
    let (mut head, mut body) = (head, body);
    let mut calls = 0;
    while !head.is_empty() || !body.is_empty() {
        let result = match (head, body) {
            (_, []) => link.try_write(head),
            ([], _) => link.try_write(body),
            _ => link.try_write_both(head, body),
        };
        calls += 1;
        match result {
            Ok(len) => {
                let of_head = len.min(head.len());
                head = head.get(of_head..).unwrap_or_default();
                body = body.get(len - of_head..).unwrap_or_default();
            }
            Err(error) if is_passing(&error) => {
                link.writable(deadline).await.map_err(|_| Error::timed_out(Step::SendRequest))?;
            }
            Err(error) => return Err(Error::io(Step::SendRequest, &error)),
        }
    }
    Ok(calls <= 1)
}
