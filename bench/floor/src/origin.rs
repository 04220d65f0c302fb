//! The cheapest possible origin: finds the end of a head, sends bytes made at the start.
//!
//! `/1k`, `/64k` and `/1m` answer a body of that size, `/app` one of a KiB with the fields of an application, anything else
//! a 404. A request with an
//! Upgrade field is answered 101 and its WebSocket frames come back (unmasked, as a server's
//! must be). Its own cost runs on the load generator's core and is not measured.

use crate::flags::Flags;
use crate::http;
use crate::sys::{self, Event, LISTENER, Listener, Moved, Poll};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::io;

const SCRATCH: usize = 64 * 1024;
const KIB: usize = 1024;
const SIZES: [(&str, usize); 3] = [("/1k", KIB), ("/64k", 64 * KIB), ("/1m", KIB * KIB)];
/// The accept value belongs to the key our own `wsload` sends (the example of RFC 6455 1.3).
const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
/// Fields as applications and their frameworks send them.
const FIELDS: &str = "X-Powered-By: Express\r\nCache-Control: private, max-age=0, must-revalidate\r\n\
    ETag: W/\"400-Oq9MfjVKVyhV0rBkSj1sUxKX1Xg\"\r\nVary: Accept-Encoding\r\nX-Request-Id: 7b1c5b1e4f0c4a0f\r\n\
    X-Content-Type-Options: nosniff\r\nX-Frame-Options: SAMEORIGIN\r\nReferrer-Policy: no-referrer\r\n\
    Strict-Transport-Security: max-age=15552000\r\nSet-Cookie: sid=s%3Aq1w2e3r4t5y6; Path=/; HttpOnly\r\n";
const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// Answers for ever.
pub fn run(flags: &Flags) -> io::Result<()> {
    let poll = Poll::new()?;
    let listener = Listener::bind(flags.address("listen")?, false, &poll)?;
    let mut origin = Origin { poll, answers: answers(), conns: Vec::new(), free: Vec::new() };
    let mut events = Vec::new();
    let mut scratch = vec![0; SCRATCH];
    loop {
        origin.poll.wait(&mut events, None)?;
        for event in &events {
            if event.token == LISTENER {
                listener.accept().for_each(|fd| origin.insert(fd));
            } else if !origin.event(event, &mut scratch) {
                origin.remove(event.token);
            }
        }
    }
}

/// Whole answers, made once and kept until the process ends.
fn answers() -> HashMap<&'static [u8], &'static [u8]> {
    let whole = |size: usize, fields: &str| -> &'static [u8] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n{fields}\r\n");
        let mut answer = head.into_bytes();
        answer.resize(answer.len() + size, b'x');
        answer.leak()
    };
    let sizes = SIZES.iter().map(|&(path, size)| (path.as_bytes(), whole(size, "")));
    sizes.chain([(b"/app".as_slice(), whole(KIB, FIELDS))]).collect()
}

struct Conn {
    fd: OwnedFd,
    /// A part of a head or of a frame.
    held: Vec<u8>,
    /// The rest of the answer the socket has not taken yet.
    rest: &'static [u8],
    echoes: bool,
    watches_writing: bool,
    /// An edge arrived while `rest` kept us from reading.
    unread: bool,
}

struct Origin {
    poll: Poll,
    answers: HashMap<&'static [u8], &'static [u8]>,
    conns: Vec<Option<Conn>>,
    free: Vec<usize>,
}

impl Origin {
    fn insert(&mut self, fd: OwnedFd) {
        let at = self.free.pop().unwrap_or(self.conns.len());
        if self.poll.add(&fd, at, false).is_err() {
            return self.free.push(at);
        }
        let conn = Conn { fd, held: Vec::new(), rest: &[], echoes: false, watches_writing: false, unread: false };
        match self.conns.get_mut(at) {
            Some(slot) => *slot = Some(conn),
            None => self.conns.push(Some(conn)),
        }
    }

    fn remove(&mut self, at: usize) {
        if self.conns.get_mut(at).and_then(Option::take).is_some() {
            self.free.push(at);
        }
    }

    /// False when the connection is over.
    fn event(&mut self, event: &Event, scratch: &mut [u8]) -> bool {
        let Some(Some(conn)) = self.conns.get_mut(event.token) else {
            return true;
        };
        conn.unread |= event.readable;
        if event.writable && !conn.rest.is_empty() && !conn.send(&[], event.token, &self.poll) {
            return false;
        }
        while conn.unread && conn.rest.is_empty() {
            let n = match sys::read(&conn.fd, scratch) {
                Moved::Bytes(n) => n,
                Moved::Blocked => 0,
                Moved::Ended => return false,
            };
            conn.unread = n == scratch.len() || (event.ended && n > 0);
            let bytes = scratch.get(..n).unwrap_or_default();
            if !conn.take(bytes, &self.answers, event.token, &self.poll) {
                return false;
            }
        }
        true
    }
}

impl Conn {
    fn take(&mut self, bytes: &[u8], answers: &HashMap<&[u8], &'static [u8]>, at: usize, poll: &Poll) -> bool {
        let whole;
        let mut bytes = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            whole = std::mem::take(&mut self.held);
            &whole
        };
        while !self.echoes
            && let Some(len) = http::head_len(bytes)
        {
            let (head, after) = bytes.split_at(len);
            bytes = after;
            self.echoes = http::asks_upgrade(head);
            let answer = if self.echoes {
                SWITCH
            } else {
                // What follows a question mark only makes keys differ.
                head.split(|&b| b == b' ')
                    .nth(1)
                    .and_then(|target| target.split(|&b| b == b'?').next())
                    .and_then(|path| answers.get(path).copied())
                    .unwrap_or(NOT_FOUND)
            };
            if !self.send(answer, at, poll) {
                return false;
            }
        }
        if self.echoes {
            let mut frames = Vec::new();
            let used = unmask(bytes, &mut frames);
            bytes = bytes.get(used..).unwrap_or_default();
            // A ping-pong leaves one small frame in flight: a full socket is a misuse.
            if !frames.is_empty() && !matches!(sys::write(&self.fd, &frames, &[]), Moved::Bytes(n) if n == frames.len())
            {
                return false;
            }
        }
        self.held = bytes.to_vec();
        self.held.len() <= SCRATCH
    }

    /// Sends an answer as far as the socket takes it. Pipelined behind a full socket, answers
    /// would queue without bound, so that is refused.
    fn send(&mut self, answer: &'static [u8], at: usize, poll: &Poll) -> bool {
        if !answer.is_empty() {
            if !self.rest.is_empty() {
                return false;
            }
            self.rest = answer;
        }
        match sys::write(&self.fd, self.rest, &[]) {
            Moved::Bytes(n) => self.rest = self.rest.get(n..).unwrap_or_default(),
            Moved::Blocked => {}
            Moved::Ended => return false,
        }
        if self.rest.is_empty() || self.watches_writing {
            return true;
        }
        self.watches_writing = true;
        poll.watch_writing(&self.fd, at).is_ok()
    }
}

/// Turns whole masked frames below 126 bytes into a server's frames; says how many bytes were
/// used. Anything else is dropped, which a ping-pong notices at once.
fn unmask(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let mut used = 0;
    while let Some(&[op, len, a, b, c, d]) = bytes.get(used..used + 6) {
        let len = len & 0x7f;
        let Some(payload) = bytes.get(used + 6..used + 6 + usize::from(len)) else {
            break;
        };
        out.extend_from_slice(&[op, len]);
        out.extend(payload.iter().zip([a, b, c, d].iter().cycle()).map(|(byte, key)| byte ^ key));
        used += 6 + usize::from(len);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_unmasked_and_partial_ones_wait() {
        let sent = [0x82, 0x83, 1, 2, 3, 4, b'a' ^ 1, b'b' ^ 2, b'c' ^ 3, 0x82, 0x83, 0];
        let mut out = Vec::new();
        assert_eq!(unmask(&sent, &mut out), 9);
        assert_eq!(out, [0x82, 3, b'a', b'b', b'c']);
    }

    #[test]
    fn answers_have_the_size_of_their_path() {
        for (path, size) in SIZES {
            let answer = answers()[path.as_bytes()];
            assert_eq!(http::answer_len(answer), Some((200, answer.len() as u64)));
            assert_eq!(answer.len() - http::head_len(answer).unwrap_or(0), size);
        }
    }
}
