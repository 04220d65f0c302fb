//! One health check of one peer: a connection, the bytes of `match`, and the peer's answer.
//!
//! The check connects as a session of its server does: the same local address, PROXY header, TLS. It counts as no
//! session and writes nothing to an access log.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::task::Poll;

use weir_groups::checks::{self, Asked, Ended};
use weir_meter::Step;
use weir_net::log::Os;
use weir_net::{Address, ConnectOptions, Datagram, Deadline, Stream, Transport, buffer};

use super::connect::{header, host_of, local_address, options};
use crate::conf;
use crate::family::checking::{Match, StreamCheck};
use crate::session::{Around, Session};

/// The bytes of an answer that the test sees, at most.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// The datagram of a check without `match` (NGINX Plus sends the same).
const DATAGRAM: &[u8] = b"nginx health check";

/// Checks one peer.
pub async fn ask(asked: &Asked<'_, StreamCheck>) -> Ended {
    let Asked { worker, generation, check, placed, .. } = *asked;
    let stream = conf::of(&generation.conf);
    let listen = stream.streams.listens.first().or(stream.datagrams.listens.first());
    let (Some(listen), Some(server), Some(address)) = (listen, stream.server(placed.place), asked.address()) else {
        return Ended::NotMade("no server to ask".to_owned());
    };
    let Some(_place) = worker.take_place() else {
        return Ended::NotMade("worker_connections are not enough".to_owned());
    };
    let around = Around { worker, generation, stream, listen, server };
    let mut session = Session::of_check(around, Address::Unix(PathBuf::new()), None);
    let settings = &crate::values(&server.place).proxy;
    let local = local_address(&mut session, &settings.bind);
    let options = options(&session, &address, local);
    let tests = placed.tests.as_deref();
    let deadline = Deadline::new();
    if check.own.is_udp {
        deadline.set(crate::values(&server.place).health.timeout);
        return by_datagrams(&address, &options, tests, &deadline).await;
    }
    deadline.set(settings.connect_timeout);
    let link = match connect(&mut session, &address, &options, &host_of(asked.seen), &deadline).await {
        Ok(link) => link,
        Err(ended) => return ended,
    };
    deadline.set(crate::values(&server.place).health.timeout);
    match talk(&link, tests, &deadline).await {
        Ok(()) => Ended::Passed,
        Err(why) => failed(why, None),
    }
}

fn failed(why: String, step: Option<Step>) -> Ended {
    Ended::Failed { why, doing: step.map_or("health checking", Step::doing) }
}

fn told(call: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "upstream timed out (110: Connection timed out)".to_owned(),
        _ => format!("{call} failed {}", Os(error)),
    }
}

/// Why there is no connection. A lack of weir's own is not the peer's fault.
fn unconnected(error: &io::Error) -> Ended {
    let why = told("connect()", error);
    if checks::is_ours(error) { Ended::NotMade(why) } else { failed(why, Some(Step::Connect)) }
}

/// Connects as a session does.
async fn connect(
    session: &mut Session<'_>,
    address: &Address,
    options: &ConnectOptions,
    host: &str,
    deadline: &Deadline,
) -> Result<Transport, Ended> {
    let unmade = |error| unconnected(&error);
    let stream = Stream::connect_by(address, options, deadline).await.map_err(unmade)?;
    let protocol = crate::values(&session.server.place).proxy.protocol;
    let header = header(session, protocol);
    if !header.is_empty() {
        stream.try_write(&header).map_err(|error| failed(told("send()", &error), None))?;
    }
    let server = session.server;
    let wraps = session.stream.parts.iter().filter_map(|part| part.wrap.as_ref());
    let Some((_, wrap)) = wraps.into_iter().find(|(wants, _)| wants(&server.place)) else {
        return Ok(Transport::from(stream));
    };
    session.step = Some(Step::TlsOrigin);
    // The reason is in the log.
    wrap(session, stream, address, host)
        .await
        .map_err(|_| failed("SSL handshake failed".to_owned(), Some(Step::TlsOrigin)))
}

/// Sends the bytes, and waits for those that the test wants.
async fn talk(link: &Transport, tests: Option<&Match>, deadline: &Deadline) -> Result<(), String> {
    let Some(Match { send, expect }) = tests else { return Ok(()) };
    link.write_all(send, deadline).await.map_err(|error| told("send()", &error))?;
    let Some(expect) = expect else { return Ok(()) };
    let mut answer = buffer::lease(ANSWER_BYTES_MAX);
    while !expect.is_met(&answer) {
        let room = ANSWER_BYTES_MAX - answer.len();
        let read = async { link.read_more(&mut answer, room, deadline).await };
        if room == 0 || read.await.map_err(|error| told("recv()", &error))? == 0 {
            return Err("the answer does not match".to_owned());
        }
    }
    Ok(())
}

/// Sends a datagram. Without a test, silence passes: only the peer's host says that no process listens.
async fn by_datagrams(
    address: &Address,
    options: &ConnectOptions,
    tests: Option<&Match>,
    deadline: &Deadline,
) -> Ended {
    let Address::Tcp(peer) = address else { return Ended::NotMade("no UDP to unix sockets".to_owned()) };
    let link = match Datagram::connect_with(*peer, options) {
        Ok(link) => link,
        Err(error) => return unconnected(&error),
    };
    let (send, expect) = tests.map_or((DATAGRAM, None), |tests| (tests.send.as_slice(), tests.expect.as_deref()));
    if let Err(error) = link.try_send(send) {
        return failed(told("send()", &error), None);
    }
    let mut room = vec![0; ANSWER_BYTES_MAX];
    loop {
        let came = poll_fn(|_| match link.poll_readable() {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => deadline.poll_expired().map(|()| false),
        })
        .await;
        if !came {
            return match expect {
                None => Ended::Passed,
                Some(_) => failed("upstream timed out (110: Connection timed out)".to_owned(), None),
            };
        }
        match (link.try_receive(&mut room), expect) {
            (Ok(_), None) => return Ended::Passed,
            (Ok(count), Some(expect)) if expect.is_met(room.get(..count).unwrap_or_default()) => return Ended::Passed,
            (Ok(_), Some(_)) => return failed("the answer does not match".to_owned(), None),
            (Err(error), _) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            (Err(error), _) => return failed(told("recv()", &error), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Edge, on_worker, pair};
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::sync::Arc;

    /// The `match` block with this content.
    fn tests_of(edge: &Edge) -> Arc<Match> {
        let check = &crate::declared(&edge.generation.conf).health.checks[0];
        check.placed.get().unwrap().tests.clone().unwrap()
    }

    #[test]
    fn a_peer_passes_once_its_bytes_are_enough() {
        let mismatch = Err("the answer does not match".to_owned());
        // The test; the parts of the peer's answer, and `.` for its end; the verdict, or its first words.
        for (block, answer, expected) in [
            ("send ping;", "", Ok(())),
            ("send ping; expect pong;", "pong", Ok(())),
            ("send ping; expect pong;", "so po|ng", Ok(())),
            ("send ping; expect pong;", "pang|.", mismatch.clone()),
            ("send ping; expect pong;", ".", mismatch.clone()),
            ("send ping; expect ~ ^2[0-9]+;", "1|2|.", mismatch.clone()),
            ("send ping; expect ~ ^2[0-9]+;", "2|0", Ok(())),
            ("send ping; expect \"\";", "", Ok(())),
            ("send ping; expect pong;", "FULL", mismatch.clone()),
        ] {
            let shown = format!("{block} {answer}");
            on_worker(async move {
                let edge = Edge::new(&format!(
                    "upstream u {{ zone u 64k; server 127.0.0.1:1; }} match m {{ {block} }} \
                     server {{ listen 127.0.0.1:2; proxy_pass u; health_check match=m; }}"
                ));
                let tests = tests_of(&edge);
                let (link, mut peer) = pair();
                let deadline = Deadline::new();
                let mut talked = std::pin::pin!(talk(&link, Some(&tests), &deadline));
                let mut parts = answer.split('|').filter(|part| !part.is_empty());
                let verdict = poll_fn(|context| {
                    let polled = talked.as_mut().poll(context);
                    match parts.next() {
                        None => {}
                        Some(".") => peer.shutdown(Shutdown::Write).unwrap(),
                        Some("FULL") => peer.write_all(&[b'x'; ANSWER_BYTES_MAX]).unwrap(),
                        Some(part) => peer.write_all(part.as_bytes()).unwrap(),
                    }
                    polled
                })
                .await;
                assert_eq!(verdict, expected, "{shown}");
                let mut got = [0; 8];
                let count = peer.read(&mut got).unwrap();
                assert_eq!(&got[..count], b"ping", "{shown}");
            });
        }
        on_worker(async move {
            let (link, peer) = pair();
            let tests = Match { send: b"ping".to_vec(), expect: None };
            drop(peer);
            let told = talk(&link, Some(&tests), &Deadline::new()).await.unwrap_err();
            assert!(told.starts_with("send() failed (32: "), "{told}");
        });
    }

    #[test]
    fn a_lack_of_weirs_own_is_not_the_peers_fault() {
        let ended = |error: io::Error| match unconnected(&error) {
            Ended::Passed => "passed".to_owned(),
            Ended::Failed { why, doing } => format!("{why} while {doing}"),
            Ended::NotMade(why) => format!("not made: {why}"),
        };
        for (error, expected) in [
            (
                io::Error::from_raw_os_error(111),
                "connect() failed (111: Connection refused) while connecting to upstream",
            ),
            (
                io::ErrorKind::TimedOut.into(),
                "upstream timed out (110: Connection timed out) while connecting to upstream",
            ),
            (io::Error::from_raw_os_error(24), "not made: connect() failed (24: Too many open files)"),
            (io::Error::from_raw_os_error(99), "not made: connect() failed (99: Cannot assign requested address)"),
        ] {
            assert_eq!(ended(error), expected);
        }
    }

    #[test]
    fn a_check_without_a_server_to_ask_is_not_made() {
        on_worker(async {
            let edge = Edge::new(
                "upstream u { zone u 64k; server 127.0.0.1:1; } \
                 server { listen 127.0.0.1:2; proxy_pass u; health_check; }",
            );
            let Edge { worker, generation } = &edge;
            let check = &*crate::declared(&generation.conf).health.checks[0];
            let (placed, seen) = (check.placed.get().unwrap(), &edge.group("u"));
            let ended = ask(&Asked { worker, generation, check, placed, seen, peer: 7, kept: &() }).await;
            assert!(matches!(ended, Ended::NotMade(why) if why == "no server to ask"));
        });
    }
}
