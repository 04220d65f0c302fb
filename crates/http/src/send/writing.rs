//! The ways to send bytes to a client, for all kinds of bodies: pieces at once, pieces at a rate, a file by the kernel.
//!
//! This module counts all sent bytes in `Exchange::bytes_sent`. The caller counts the bytes of the body.

use std::fs::File;
use std::io::{self, IoSlice};

use weir_net::clock;
use weir_net::log::Level;
use weir_wire::encode;

use crate::exchange::Exchange;
use crate::exchange::response_body::Framing;
use crate::hold::conn::{Conn, Gone};
use crate::send::pace::Pace;

/// Bodies up to this size are copied behind the head: this is cheaper than a vector of two pieces.
pub const COPY_MAX: usize = 4 << 10;

/// One `sendfile` call moves at most this many bytes, so that one connection does not block the worker.
const SENDFILE_MAX: usize = 2 << 20;

/// Writes pieces, as many with one call as the kernel takes.
pub async fn pieces(exchange: &mut Exchange<'_>, conn: &mut Conn, pieces: &mut [IoSlice<'_>]) -> Result<(), Gone> {
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    conn.write_all(pieces, exchange.location.values.core.send_timeout).await?;
    exchange.bytes.sent += bytes as u64;
    Ok(())
}

/// Writes bytes, at the allowed rate if there is one.
pub async fn paced(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    bytes: &[u8],
    pace: &mut Option<Pace>,
) -> Result<(), Gone> {
    let Some(pace) = pace else { return pieces(exchange, conn, &mut [IoSlice::new(bytes)]).await };
    let mut rest = bytes;
    while !rest.is_empty() {
        let now = allowed(exchange, conn, pace, rest.len()).await?;
        let (part, after) = rest.split_at(now);
        pieces(exchange, conn, &mut [IoSlice::new(part)]).await?;
        pace.sent(now);
        rest = after;
    }
    Ok(())
}

/// How many of `wanted` bytes may go now. Waits for that, and counts the wait.
async fn allowed(exchange: &mut Exchange<'_>, conn: &mut Conn, pace: &Pace, wanted: usize) -> Result<usize, Gone> {
    let begun = clock::now();
    let count = pace.allowed(conn, wanted).await?.min(wanted);
    let us = clock::now().us_since(begun);
    if us > 0 {
        exchange.rare_mut().paced_us += us;
    }
    Ok(count)
}

/// Lets the kernel copy a part of a file, at the allowed rate; counts it as body too. `what` names the file in the
/// alert that the file has become shorter.
pub async fn file(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    (file, what): (&File, &str),
    (offset, length): (u64, u64),
    pace: &mut Option<Pace>,
) -> Result<(), Gone> {
    let timeout = exchange.location.values.core.send_timeout;
    let (mut at, end) = (offset, offset.saturating_add(length));
    while at < end {
        let mut count = usize::try_from(end - at).unwrap_or(SENDFILE_MAX).min(SENDFILE_MAX);
        if let Some(pace) = pace {
            count = allowed(exchange, conn, pace, count).await?;
        }
        // Only such a connection sends files this way.
        let Some(socket) = conn.stream().bare() else { return Err(Gone::Cut) };
        match socket.try_sendfile(file, &mut at, count) {
            Ok(0) => {
                exchange.log(Level::Alert, format_args!("{what} was truncated while sending response to client"));
                return Err(Gone::Cut);
            }
            Ok(sent) => {
                exchange.bytes.body_sent += sent as u64;
                exchange.bytes.sent += sent as u64;
                if let Some(pace) = pace {
                    pace.sent(sent);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                conn.until_writable(timeout).await?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Gone::Closed(error)),
        }
    }
    Ok(())
}

/// Appends bytes of a body to `out`, as a chunk if the body uses chunks.
pub fn frame(framing: Framing, bytes: &[u8], out: &mut Vec<u8>) {
    if framing != Framing::Chunked {
        out.extend_from_slice(bytes);
    } else if !bytes.is_empty() {
        let mut space = [0; encode::CHUNK_HEAD_BYTES];
        out.extend_from_slice(encode::chunk_head(bytes.len() as u64, &mut space));
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
    }
}
