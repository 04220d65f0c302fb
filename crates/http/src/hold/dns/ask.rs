//! Asks one question until a server answers: one server after the other, over UDP, and over TCP if the answer is
//! truncated.
//!
//! Each datagram has its own number and its own port, both chosen at random, and the kernel checks the peer. A
//! datagram that does not answer this question is ignored: weir goes on listening.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use weir_net::log::{self, Level};
use weir_net::{Address, ConnectOptions, Datagram, Deadline, Stream, Transport, clock, random};
use weir_wire::dns::{self, Code, Message, Reply};

use super::Resolver;
use super::book::Flight;
use super::trouble::Trouble;

/// How long the first server has before weir asks the next; the other servers have longer (nginx: 5 s each).
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(5);

/// How long weir waits if it could not even send the question.
const UNSENT_PAUSE: Duration = Duration::from_secs(1);

/// How long a whole exchange over TCP may take (nginx: 5 s).
const TCP_TIMEOUT: Duration = Duration::from_secs(5);

/// Times a question is sent, at most. If nobody waits for the answer any more, it is not sent again.
const TRIES_MAX: usize = 60;

/// Earlier datagrams that may still be answered.
const LISTENED_MAX: usize = 4;

/// The most datagrams that weir reads and logs for one question between two sends, although they do not answer it.
const FOREIGN_MAX: usize = 64;

/// Room for a datagram (nginx: 4096); longer answers are truncated, and weir asks again over TCP.
const DATAGRAM_BYTES: usize = 4096;

/// Asks the question, keeps the answer, and counts both.
pub async fn fly(client: Rc<Resolver>, flight: Rc<Flight>, turn: usize) {
    let mut landing = Landing { client, flight, outcome: Err(Trouble::TimedOut) };
    landing.client.servers.zone.counters().asked(landing.flight.key.1);
    landing.outcome = ask(&landing.client, &landing.flight, turn).await.map(Arc::new);
}

/// Ends a flight, also if its task panics or is dropped.
struct Landing {
    client: Rc<Resolver>,
    flight: Rc<Flight>,
    outcome: Result<Arc<Reply>, Trouble>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let Resolver { servers, flights, .. } = &*self.client;
        servers.zone.counters().answered(self.outcome.as_ref().map(|reply| reply.code).map_err(|trouble| *trouble));
        let landed = self.outcome.clone().map(|reply| {
            let key = self.flight.key.clone();
            let until = servers.answers().keep(key, &reply, servers.valid, clock::now());
            (reply, until)
        });
        flights.borrow_mut().land(&self.flight, landed);
    }
}

/// A question that was sent, and may be answered.
struct Sent {
    server: SocketAddr,
    id: u16,
    socket: Datagram,
}

/// The result of listening.
enum Heard {
    Reply(Reply, SocketAddr),
    Truncated(SocketAddr),
    /// No question is on its way.
    Deaf,
    Silence,
}

async fn ask(client: &Resolver, flight: &Rc<Flight>, turn: usize) -> Result<Reply, Trouble> {
    let servers = &client.servers.servers;
    let mut sent: Vec<Sent> = Vec::new();
    let mut buf = vec![0; DATAGRAM_BYTES];
    let pause = Deadline::new();
    for number in 0..TRIES_MAX {
        if number > 0 && !flight.is_wanted() {
            break;
        }
        let Some(server) = servers.get(turn.wrapping_add(number) % servers.len().max(1)) else { break };
        let is_last_of_round = (number + 1) % servers.len() == 0;
        pause.set(if number == 0 { FIRST_PAUSE } else { PAUSE });
        match send(flight, *server) {
            Ok(one) => sent.push(one),
            Err(error) => complain("send", &error, *server),
        }
        if sent.len() > LISTENED_MAX {
            sent.remove(0);
        }
        match listen(flight, &mut sent, &mut buf, &pause).await {
            Heard::Reply(reply, server) if reply.code == Code::FORMAT_ERROR => {
                let name = &flight.key.0;
                log::global(
                    Level::Error,
                    format_args!("DNS error (1: Format error), name:\"{name}\" while resolving, resolver: {server}"),
                );
                if is_last_of_round {
                    pause.expired().await;
                }
            }
            Heard::Reply(reply, _) => return Ok(reply),
            Heard::Truncated(server) => match ask_over_tcp(flight, server).await {
                Ok(reply) => return Ok(reply),
                Err(error) => complain("recv", &error, server),
            },
            Heard::Deaf if is_last_of_round => weir_net::timer::sleep(UNSENT_PAUSE).await,
            Heard::Deaf | Heard::Silence => {}
        }
    }
    Err(Trouble::TimedOut)
}

fn complain(call: &str, error: &io::Error, server: SocketAddr) {
    let error = log::Os(error);
    log::global(Level::Error, format_args!("{call}() failed {error} while resolving, resolver: {server}"));
}

fn send(flight: &Flight, server: SocketAddr) -> io::Result<Sent> {
    let id = random::word()?;
    let socket = Datagram::connect(server)?;
    socket.try_send(&dns::query(id, &flight.key.0, flight.key.1))?;
    Ok(Sent { server, id, socket })
}

/// Listens for answers to all sent questions, for as long as `pause` allows.
async fn listen(flight: &Flight, sent: &mut Vec<Sent>, buf: &mut [u8], pause: &Deadline) -> Heard {
    let mut foreign = 0;
    poll_fn(|_| {
        let mut number = 0;
        while let Some(one) = sent.get(number) {
            if one.socket.poll_readable().is_pending() {
                number += 1;
                continue;
            }
            foreign += 1;
            if foreign > FOREIGN_MAX {
                return pause.poll_expired().map(|()| Heard::Silence);
            }
            match one.socket.try_receive(buf) {
                Ok(length) => {
                    match dns::read(buf.get(..length).unwrap_or_default(), one.id, &flight.key.0, flight.key.1) {
                        Message::Reply(reply) => return Poll::Ready(Heard::Reply(reply, one.server)),
                        Message::Truncated => return Poll::Ready(Heard::Truncated(one.server)),
                        Message::Foreign => unexpected("unexpected DNS response", flight, one.server),
                        Message::Malformed => unexpected("invalid DNS response", flight, one.server),
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    foreign -= 1
                }
                Err(error) => {
                    complain("recv", &error, one.server);
                    sent.remove(number);
                }
            }
        }
        if sent.is_empty() {
            return Poll::Ready(Heard::Deaf);
        }
        pause.poll_expired().map(|()| Heard::Silence)
    })
    .await
}

fn unexpected(what: &str, flight: &Flight, server: SocketAddr) {
    let name = &flight.key.0;
    log::global(Level::Error, format_args!("{what} for {name} while resolving, resolver: {server}"));
}

/// The same question over a connection; anything but its answer is an error.
async fn ask_over_tcp(flight: &Flight, server: SocketAddr) -> io::Result<Reply> {
    let deadline = Deadline::new();
    deadline.set(TCP_TIMEOUT);
    let stream = Stream::connect_by(&Address::Tcp(server), &ConnectOptions::default(), &deadline).await?;
    let stream = Transport::from(stream);
    let id = random::word()?;
    let query = dns::query(id, &flight.key.0, flight.key.1);
    let mut out = (query.len() as u16).to_be_bytes().to_vec();
    out.extend_from_slice(&query);
    stream.write_all(&out, &deadline).await?;
    let length = read_exact(&stream, 2, &deadline).await?;
    let length = length.try_into().map_or(0, u16::from_be_bytes);
    let answer = read_exact(&stream, usize::from(length), &deadline).await?;
    match dns::read(&answer, id, &flight.key.0, flight.key.1) {
        Message::Reply(reply) => Ok(reply),
        Message::Truncated | Message::Foreign | Message::Malformed => Err(io::Error::other("invalid TCP DNS response")),
    }
}

async fn read_exact(stream: &Transport, length: usize, deadline: &Deadline) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let left @ 1.. = length - bytes.len() {
        if stream.read_more(&mut bytes, left, deadline).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes)
}
