//! `socketio_origin ADDR`: acknowledges Socket.IO events with their arguments, over WebSocket only.
//!
//! For `bench/load.py`: Node serves some 30,000 messages a second, which keeps a load generator half idle, and an
//! idle generator pays a wake-up for each message. This server is far cheaper than its clients, so the clients become
//! the limit. It has a thread for each of a few connections and accepts short frames only; it is not for real use.

#![allow(clippy::disallowed_methods, reason = "workers are what is measured, not what it is measured with")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use weir_wire::websocket::{HandshakeKey, accept};

/// Most bytes of an incomplete head or frame that a connection may have sent.
const HELD_BYTES_MAX: usize = 64 << 10;
/// Most connections at the same time.
const CONNECTIONS_MAX: usize = 1000;
const OPEN: &[u8] = br#"0{"sid":"bench","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}"#;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: socketio_origin ADDRESS:PORT"))?;
    for stream in TcpListener::bind(address)?.incoming().take(CONNECTIONS_MAX) {
        let stream = stream?;
        // A connection that fails has ended; others are not affected.
        std::thread::spawn(move || serve(stream));
    }
    Ok(())
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut held = Vec::new();
    let end = loop {
        if let Some(at) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(&mut stream, &mut held)?;
    };
    let head = String::from_utf8_lossy(held.get(..end).unwrap_or_default()).into_owned();
    let field = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
    let key = field.and_then(|(_, key)| HandshakeKey::of(key.trim().as_bytes())).ok_or(io::ErrorKind::InvalidData)?;
    let mut out = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".to_vec();
    out.extend_from_slice(b"Sec-WebSocket-Accept: ");
    out.extend_from_slice(&accept(&key));
    out.extend_from_slice(b"\r\n\r\n");
    push(&mut out, OPEN);
    held.drain(..end);
    loop {
        let mut used = 0;
        while let Some((text, len)) = frame(held.get(used..).unwrap_or_default()) {
            used += len;
            answer(&text, &mut out);
        }
        held.drain(..used);
        stream.write_all(&out)?;
        out.clear();
        more(&mut stream, &mut held)?;
    }
}

fn more(stream: &mut TcpStream, held: &mut Vec<u8>) -> io::Result<()> {
    let mut buf = [0; 4096];
    let len = stream.read(&mut buf)?;
    if len == 0 || held.len() > HELD_BYTES_MAX {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    held.extend_from_slice(buf.get(..len).unwrap_or_default());
    Ok(())
}

/// A masked frame of less than 126 bytes, unmasked, and its length.
fn frame(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let &[_, len, a, b, c, d] = bytes.get(..6)?.as_array()?;
    let len = usize::from(len & 0x7f);
    let payload = bytes.get(6..6 + len)?;
    Some((payload.iter().zip([a, b, c, d].iter().cycle()).map(|(byte, key)| byte ^ key).collect(), 6 + len))
}

/// `40` connects a namespace, `42ID["event",…]` is acknowledged by `43ID[…]`; other messages are ignored.
fn answer(text: &[u8], out: &mut Vec<u8>) {
    if text.starts_with(b"40") {
        return push(out, br#"40{"sid":"bench"}"#);
    }
    let Some(event) = text.strip_prefix(b"42") else { return };
    let digits = event.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, event) = event.split_at(digits);
    let arguments = event.iter().position(|&byte| byte == b',').and_then(|at| event.get(at + 1..)).unwrap_or(b"]");
    push(out, &[b"43", id, b"[", arguments].concat());
}

/// An unmasked text frame.
fn push(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&[0x81, text.len() as u8]);
    out.extend_from_slice(text);
}
