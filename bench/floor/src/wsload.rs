//! WebSocket ping-pong: every connection sends one masked frame of 32 bytes, waits for its
//! echo, sends the next. Prints one JSON line with the round trips completed.

use crate::flags::Flags;
use crate::http;
use crate::sys::{self, Moved, Poll};
use rustix::fd::OwnedFd;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PAYLOAD: usize = 32;
/// What comes back: two bytes of header and the payload, unmasked.
const ECHO: usize = 2 + PAYLOAD;
const SCRATCH: usize = 16 * 1024;

/// The request that opens a WebSocket; the key is the example of RFC 6455 1.3.
pub fn upgrade_request(target: SocketAddr) -> Vec<u8> {
    format!(
        "GET /ws HTTP/1.1\r\nHost: {target}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .into_bytes()
}

/// Runs for `--seconds`.
pub fn run(flags: &Flags) -> io::Result<()> {
    let target = flags.address("target")?;
    let deadline = Instant::now() + Duration::from_secs(flags.need("seconds")?);
    let mut load = Load { poll: Poll::new()?, conns: Vec::new(), frame: frame(), trips: 0 };
    let upgrade = upgrade_request(target);
    for at in 0..flags.need("conns")? {
        let fd = sys::connect(target)?;
        load.poll.add(&fd, at, true)?;
        load.conns.push(Conn { fd, stage: Stage::Connecting, got: Vec::new() });
    }
    let (mut events, mut scratch) = (Vec::new(), vec![0; SCRATCH]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        load.poll.wait(&mut events, Some(left))?;
        for event in &events {
            load.event(event, &upgrade, &mut scratch)?;
        }
    }
    let stuck = load.conns.iter().filter(|conn| conn.stage != Stage::Echo).count();
    println!(r#"{{"requests": {}, "errors": {stuck}}}"#, load.trips);
    Ok(())
}

/// A binary frame with a mask of zeroes: masked by the letter, and cheap.
pub fn frame() -> Vec<u8> {
    let mut frame = vec![0x82, 0x80 | PAYLOAD as u8, 0, 0, 0, 0];
    frame.resize(frame.len() + PAYLOAD, b'w');
    frame
}

#[derive(PartialEq)]
enum Stage {
    Connecting,
    Switching,
    Echo,
}

struct Conn {
    fd: OwnedFd,
    stage: Stage,
    got: Vec<u8>,
}

struct Load {
    poll: Poll,
    conns: Vec<Conn>,
    frame: Vec<u8>,
    trips: u64,
}

impl Load {
    fn event(&mut self, event: &sys::Event, upgrade: &[u8], scratch: &mut [u8]) -> io::Result<()> {
        let Some(conn) = self.conns.get_mut(event.token) else {
            return Ok(());
        };
        if event.writable && conn.stage == Stage::Connecting {
            send(&conn.fd, upgrade)?;
            conn.stage = Stage::Switching;
        }
        if !event.readable {
            return Ok(());
        }
        match sys::read(&conn.fd, scratch) {
            Moved::Bytes(n) => conn.got.extend_from_slice(scratch.get(..n).unwrap_or_default()),
            Moved::Blocked => return Ok(()),
            Moved::Ended => return Err(io::Error::other("the target closed a connection")),
        }
        if conn.stage == Stage::Switching
            && let Some(len) = http::head_len(&conn.got)
        {
            if !conn.got.starts_with(b"HTTP/1.1 101") {
                return Err(io::Error::other("the target did not switch protocols"));
            }
            conn.got.drain(..len);
            conn.stage = Stage::Echo;
            send(&conn.fd, &self.frame)?;
        } else if conn.stage == Stage::Echo && conn.got.len() >= ECHO {
            conn.got.clear();
            self.trips += 1;
            send(&conn.fd, &self.frame)?;
        }
        Ok(())
    }
}

fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    match sys::write(fd, bytes, &[]) {
        Moved::Bytes(n) if n == bytes.len() => Ok(()),
        _ => Err(io::Error::other("the target does not take bytes")),
    }
}
