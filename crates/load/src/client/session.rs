//! One exchange: takes a kept connection or opens a new one, sends the request, reads the answer.

use std::io::IoSlice;
use std::rc::Rc;
use std::time::Duration;

use weir_net::Instant;

use weir_meter::Step;
use weir_net::tls::Sessions;
use weir_net::{Deadline, Transport, clock};
use weir_wire::Known;

use super::answer::Answer;
use super::error::Error;
use super::incoming::{IncomingAnswer, Read, is_passing};
use super::open;
use super::origin::Origin;
use super::resolve::Resolver;
use super::timings::Timings;
use crate::tls::Offer;

/// Time after which a virtual user closes an idle connection, as Artillery's agent does (`freeSocketTimeout`). A server
/// that closes idle connections after 5 s, as Node does, would otherwise reset a request now and then.
pub const IDLE_MAX: Duration = Duration::from_secs(4);
/// weir uses a connection for this much less than the time that the server announces: a request needs time to arrive.
/// If the server announces less than twice this, weir subtracts half of the announced time.
const KEPT_MARGIN: Duration = Duration::from_secs(1);

/// A connection kept for the next request.
#[derive(Debug)]
pub struct KeptConnection {
    /// The origin of the connection.
    pub origin: Rc<Origin>,
    /// The connection.
    pub(super) link: Transport,
    /// End of the last answer.
    pub idle_since: Instant,
    /// Longest time after that in which a request may begin, from the server's `Keep-Alive: timeout=`.
    idle_max: Option<Duration>,
    /// The time limit of the current exchange.
    deadline: Deadline,
    /// Times to resolve the address, to connect and to do the TLS handshake.
    opening: (Duration, Duration, Option<Duration>),
}

impl KeptConnection {
    fn timings(&self, started: Instant, sent: Instant, is_fresh: bool) -> Timings {
        let (dns, tcp, tls) = self.opening;
        Timings { started, dns, tcp, tls, is_fresh, sent, head: started, end: started }
    }

    /// True if the server has closed the connection, or announced to close it by now.
    fn is_stale(&self, now: Instant) -> bool {
        self.idle_max.is_some_and(|most| now.saturating_duration_since(self.idle_since) >= most)
            || self.link.peek_closed()
    }
}

/// A request, ready to be sent.
pub struct ReadyRequest<'r> {
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

impl<'r> ReadyRequest<'r> {
    /// A request outside of a run, with its body. It keeps the body of the answer.
    pub fn alone(origin: &'r Rc<Origin>, method: &'r str, head: &'r [u8], body: &'r [u8], timeout: Duration) -> Self {
        let method = method.as_bytes();
        ReadyRequest { origin, method, head, body, wants_body: true, sessions: None, timeout, started: None }
    }
}

/// Carries out one exchange, over the connection in `kept` if there is one. Keeps the connection there if another
/// request may follow.
///
/// A kept connection that is closed already is replaced before anything is sent. A connection that fails later fails the
/// exchange: the origin may have acted on the request. It is never sent twice, which RFC 9110 §9.2.2 would allow.
pub async fn exchange(
    kept: &mut Option<KeptConnection>,
    call: &ReadyRequest<'_>,
    resolver: &Resolver,
) -> Result<Answer, Error> {
    let started = call.started.unwrap_or_else(clock::precise);
    let reused = kept.take().filter(|kept| Rc::ptr_eq(&kept.origin, call.origin) && !kept.is_stale(started));
    let (used, timings) = match reused {
        Some(reused) => {
            reused.deadline.set(call.timeout);
            let timings = reused.timings(started, started, false);
            (reused, timings)
        }
        None => open(call, resolver, started).await?,
    };
    let read = over(&used.link, call, &used.deadline, timings).await?;
    Ok(settle(kept, used, read))
}

/// Opens a connection for the call.
async fn open(
    call: &ReadyRequest<'_>,
    resolver: &Resolver,
    started: Instant,
) -> Result<(KeptConnection, Timings), Error> {
    let deadline = Deadline::new();
    deadline.set(call.timeout);
    let opened = open::open(call.origin, resolver, Offer::Nothing, call.sessions, &deadline).await?;
    let dns = opened.resolved.saturating_duration_since(started);
    let tls = opened.secured.map(|secured| secured - opened.connected);
    let opening = (dns, opened.connected - opened.resolved, tls);
    let ready = opened.secured.unwrap_or(opened.connected);
    let (origin, link) = (call.origin.clone(), opened.link);
    let fresh = KeptConnection { origin, link, idle_since: started, idle_max: None, deadline, opening };
    let timings = fresh.timings(started, ready, true);
    Ok((fresh, timings))
}

fn settle(kept: &mut Option<KeptConnection>, mut used: KeptConnection, read: Read) -> Answer {
    let Read { answer, keeps } = read;
    if keeps {
        // A connection that is not in use needs no deadline.
        used.deadline.clear();
        used.idle_since = answer.timings.end;
        used.idle_max = answer.value(Known::KeepAlive).and_then(idle_max);
        *kept = Some(used);
    }
    answer
}

/// The time of `Keep-Alive: timeout=SECONDS` (RFC 2068 §19.7.1.1), less a margin.
pub(crate) fn idle_max(field: &[u8]) -> Option<Duration> {
    let parameters = std::str::from_utf8(field).ok()?.split(',').filter_map(|parameter| parameter.split_once('='));
    let (_, seconds) = parameters.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))?;
    let announced = Duration::from_secs(u64::from(seconds.trim().parse::<u32>().ok()?));
    Some(announced - KEPT_MARGIN.min(announced / 2))
}

async fn over(
    link: &Transport,
    call: &ReadyRequest<'_>,
    deadline: &Deadline,
    mut timings: Timings,
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
    let mut incoming = IncomingAnswer::new(link, deadline);
    let read = incoming.answer(call.method, call.wants_body, timings).await;
    match (read, sent) {
        (Ok(mut read), Err(_)) => {
            read.keeps = false;
            Ok(read)
        }
        (Err(_), Err(error)) if incoming.is_untouched() => Err(error),
        (read, _) => read,
    }
}

/// Sends everything; true if the kernel took it in one call.
async fn send(link: &Transport, head: &[u8], body: &[u8], deadline: &Deadline) -> Result<bool, Error> {
    let (mut head, mut body) = (head, body);
    let mut calls = 0;
    while !head.is_empty() || !body.is_empty() {
        let result = match (head, body) {
            (_, []) => link.try_write(head),
            ([], _) => link.try_write(body),
            _ => link.try_write_vectored(&[IoSlice::new(head), IoSlice::new(body)]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_announces_how_long_it_keeps_a_connection() {
        let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
        for (field, most) in [
            (&b"timeout=5"[..], seconds(4.0)),
            (b"max=100, Timeout = 65", seconds(64.0)),
            (b"timeout=1, max=5", seconds(0.5)),
            (b"timeout=0", seconds(0.0)),
            (b"timeout=soon", None),
            (b"max=100", None),
            (b"\xff", None),
        ] {
            assert_eq!(idle_max(field), most, "{}", String::from_utf8_lossy(field));
        }
    }
}
