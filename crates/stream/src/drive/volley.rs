//! Relays a session of UDP: datagrams of the client to the peer, and those of the peer back.
//!
//! The session ends when the peer has sent `proxy_responses` datagrams for each one of the client, or when nothing
//! moves for `proxy_timeout`.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_http::hold::counters;
use weir_http::hold::table_place::TablePlace;
use weir_meter::Step;
use weir_net::datagrams::DATAGRAM_BYTES_MAX;
use weir_net::log::{Level, Os};
use weir_net::worker::Task;
use weir_net::{Datagram, Deadline};
use weir_peers::group::Outcome;

use super::connect::{self, Joined, Link};
use super::hold::Hold;
use super::relay::Pace;
use super::status::{BAD_GATEWAY, INTERNAL, OK};
use super::talk::Client;
use crate::conf::ProxyTarget;
use crate::session::Session;

/// Datagrams of one direction before other tasks have their turn.
const DATAGRAMS_MAX: usize = 16;

thread_local! {
    /// Where a worker receives datagrams of peers.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A session with its peer.
struct Volley {
    hold: Hold,
    link: Datagram,
    _place: TablePlace,
    deadline: Deadline,
    timeout: Duration,
    upload: Option<Pace>,
    download: Option<Pace>,
    /// `proxy_requests`; 0 for no limit.
    requests_max: u64,
    /// `proxy_responses`.
    responses_per: Option<u64>,
    requests: u64,
    responses: u64,
    /// The peer refuses datagrams.
    is_refused: bool,
}

enum End {
    /// All answers came.
    Done,
    TimedOut,
    Stopped,
}

/// Passes the session to a peer.
pub async fn proxy(session: &mut Session<'_>, target: &ProxyTarget, client: &Client) -> u16 {
    let _writing = counters::raise(&session.worker.counters().writing);
    let (hold, link, place, mut first) = match Box::pin(connect::join(session, target)).await {
        Ok(Joined { hold, link: Link::Datagrams(link), place, header }) => (hold, link, place, header),
        Ok(Joined { link: Link::Stream(_), .. }) => return INTERNAL,
        Err(status) => return status,
    };
    let mut volley = Volley::new(session, hold, link, place);
    first.append(&mut session.early);
    volley.send(session, &first);
    let ended = poll_fn(|_| volley.poll(session, client)).await;
    volley.close(session, ended)
}

impl Volley {
    fn new(session: &mut Session<'_>, hold: Hold, link: Datagram, place: TablePlace) -> Volley {
        let [upload, download] = connect::rates(session).map(Pace::new);
        let settings = &crate::values(&session.server.place).proxy;
        let deadline = Deadline::new();
        deadline.set(settings.timeout);
        session.step = Some(Step::Session);
        Volley {
            hold,
            link,
            _place: place,
            deadline,
            timeout: settings.timeout,
            upload,
            download,
            requests_max: settings.requests,
            responses_per: settings.responses,
            requests: 1,
            responses: 0,
            is_refused: false,
        }
    }

    fn poll(&mut self, session: &mut Session<'_>, client: &Client) -> Poll<End> {
        client.keep(Task::current());
        if client.has_ended() {
            return Poll::Ready(End::Stopped);
        }
        for _ in 0..DATAGRAMS_MAX {
            if self.is_done() {
                return Poll::Ready(End::Done);
            }
            let went = self.up(session, client);
            let came = self.down(session, client);
            if !went && !came {
                let waits = |pace: &Option<Pace>| pace.as_ref().is_some_and(|pace| pace.waits);
                if waits(&self.upload) || waits(&self.download) {
                    self.deadline.clear();
                    return Poll::Pending;
                }
                if !self.deadline.is_set() {
                    self.deadline.set(self.timeout);
                }
                return self.deadline.poll_expired().map(|()| End::TimedOut);
            }
            self.deadline.set(self.timeout);
        }
        Task::current().wake();
        Poll::Pending
    }

    /// nginx's rule (`ngx_stream_proxy_test_finalize`).
    fn is_done(&self) -> bool {
        if self.requests < self.requests_max {
            return false;
        }
        self.responses_per.is_some_and(|per| self.responses >= per.saturating_mul(self.requests))
    }

    /// Passes one datagram of the client on.
    fn up(&mut self, session: &mut Session<'_>, client: &Client) -> bool {
        if self.upload.as_mut().is_some_and(|pace| pace.left(session.received).is_none()) {
            return false;
        }
        let Some(bytes) = client.next() else { return false };
        self.requests += 1;
        session.received += bytes.len() as u64;
        if let Some(pace) = &mut self.upload {
            pace.took(bytes.len());
        }
        self.send(session, &bytes);
        true
    }

    fn send(&mut self, session: &mut Session<'_>, bytes: &[u8]) {
        match self.link.try_send(bytes) {
            Ok(()) => {
                if let Some(attempt) = session.last_try() {
                    attempt.sent += bytes.len() as u64;
                }
            }
            Err(error) => {
                self.is_refused = true;
                session.step = Some(Step::ToOrigin);
                session.log(Level::Error, format_args!("send() failed {}", Os(&error)));
                session.step = Some(Step::Session);
            }
        }
    }

    /// Passes one datagram of the peer back.
    fn down(&mut self, session: &mut Session<'_>, client: &Client) -> bool {
        let received = session.tries.last().map_or(0, |attempt| attempt.received);
        if self.download.as_mut().is_some_and(|pace| pace.left(received).is_none()) {
            return false;
        }
        if self.link.poll_readable().is_pending() {
            return false;
        }
        ROOM.with_borrow_mut(|room| {
            room.resize(DATAGRAM_BYTES_MAX, 0);
            let count = match self.link.try_receive(room) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
                Err(error) => {
                    self.is_refused = true;
                    session.step = Some(Step::FromOrigin);
                    session.log(Level::Error, format_args!("recv() failed {}", Os(&error)));
                    session.step = Some(Step::Session);
                    0
                }
            };
            self.responses += 1;
            if let Some(attempt) = session.last_try() {
                attempt.received += count as u64;
                if attempt.first_byte.is_none() {
                    attempt.first_byte = Some(attempt.age());
                    self.hold.answered();
                    session.answered();
                }
            }
            if let Some(pace) = &mut self.download {
                pace.took(count);
            }
            if count > 0 || !self.is_refused {
                match client.send(room.get(..count).unwrap_or_default()) {
                    Ok(()) => session.sent += count as u64,
                    Err(error) => {
                        session.step = Some(Step::ToClient);
                        session.log(Level::Info, format_args!("sendmsg() failed {}", Os(&error)));
                        session.step = Some(Step::Session);
                    }
                }
            }
            true
        })
    }

    fn close(mut self, session: &mut Session<'_>, ended: End) -> u16 {
        if let Some(attempt) = session.last_try() {
            attempt.session = Some(attempt.age());
            self.hold.ended(attempt);
        }
        let status = match ended {
            End::Done => self.tell(session, "udp done"),
            End::Stopped => {
                session.tell(Level::Info, format_args!("disconnected on shutdown"));
                OK
            }
            End::TimedOut
                if self.responses_per.is_none_or(|per| self.responses >= per.saturating_mul(self.requests)) =>
            {
                self.tell(session, "udp timed out")
            }
            End::TimedOut => {
                session.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
                self.is_refused = true;
                BAD_GATEWAY
            }
        };
        self.hold.release(if self.is_refused { Outcome::Failed } else { Outcome::Ok });
        status
    }

    fn tell(&self, session: &Session<'_>, what: &str) -> u16 {
        let (received, sent) = session.tries.last().map_or((0, 0), |attempt| (attempt.received, attempt.sent));
        session.tell(
            Level::Info,
            format_args!(
                "{what}, packets from/to client:{}/{}, bytes from/to client:{}/{}, bytes from/to upstream:{received}/{sent}",
                self.requests, self.responses, session.received, session.sent
            ),
        );
        OK
    }
}
