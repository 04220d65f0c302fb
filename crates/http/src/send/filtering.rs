//! Passes a body through the filters of its response, piece by piece.
//!
//! A filter may make much more of a piece than it got (`gunzip`, `sub_filter`). Then it gives its output in portions,
//! and the next piece waits until the last portion has left. So a body that grows fills no memory.

use std::io::IoSlice;

use weir_net::log::Level;
use weir_net::{Lease, buffer, clock, worker};
use weir_wire::encode;

use crate::exchange::Exchange;
use crate::exchange::response_body::{BodyFilter, FilterState, Framing};
use crate::family::headers;
use crate::hold::conn::{Conn, Gone};
use crate::send::pace::Pace;
use crate::send::writing;

/// After a piece of this length, other tasks of the worker have a turn.
const LONG_BYTES: usize = 32 << 10;

/// The output of the filters for one piece.
pub struct Filtered {
    /// The bytes to send.
    pub bytes: Lease,
    /// A filter has more output for the same piece: call `filtered` again, without input.
    pub has_more: bool,
}

/// Where a piece of a body stands in the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiecePlace {
    /// It is the last piece that the filters get.
    pub last: bool,
    /// Nothing of the response follows it.
    pub ends: bool,
    /// The client should get it at once.
    pub flush: bool,
}

/// Passes bytes through the response's filters, first to last. If a filter fails, the error log says why.
pub fn filtered(exchange: &mut Exchange<'_>, input: &[u8], flush: bool, last: bool) -> Result<Filtered, Gone> {
    match run(&mut exchange.response.body_filters, input, flush, last) {
        Ok(filtered) => Ok(filtered),
        Err(text) => {
            exchange.log(Level::Error, format_args!("{text}"));
            Err(Gone::Cut)
        }
    }
}

fn run(filters: &mut [Box<dyn BodyFilter>], input: &[u8], flush: bool, last: bool) -> Result<Filtered, String> {
    let is_full = |state: FilterState<'_>| state == FilterState::Full;
    // The filters before a full one have done their part of the piece.
    let first = filters.iter().rposition(|filter| is_full(filter.state())).unwrap_or(0);
    let mut has_more = filters.iter().take(first).any(|filter| is_full(filter.state()));
    let mut bytes = Lease::none();
    for (at, filter) in filters.iter_mut().enumerate().skip(first) {
        let input = if at == first { input } else { &bytes };
        let mut out = buffer::lease(input.len());
        filter.write(input, flush, last && !has_more, &mut out);
        match filter.state() {
            FilterState::Done => {}
            FilterState::Full => has_more = true,
            FilterState::Failed(text) => return Err(text.to_owned()),
        }
        bytes = out;
    }
    Ok(Filtered { bytes, has_more })
}

/// Sends `head` and then a piece of a body, filtered and framed, at the allowed rate. Empties `head`.
pub async fn send(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    head: &mut Vec<u8>,
    mut piece: &[u8],
    place: PiecePlace,
    pace: &mut Option<Pace>,
) -> Result<(), Gone> {
    await_room(exchange, conn).await?;
    loop {
        let output = if exchange.response.body_filters.is_empty() {
            Filtered { bytes: Lease::none(), has_more: false }
        } else {
            let output = filtered(exchange, piece, place.flush, place.last)?;
            keep_packed(exchange, &output.bytes, place.last && !output.has_more);
            if piece.len() >= LONG_BYTES {
                // Filters take time, and a fast client never makes this task wait.
                worker::yield_now().await;
            }
            piece = &[];
            output
        };
        let bytes = if piece.is_empty() { output.bytes.as_slice() } else { piece };
        let mut tail = Lease::none();
        if framing == Framing::Chunked && !bytes.is_empty() {
            let mut space = [0; encode::CHUNK_HEAD_BYTES];
            head.extend_from_slice(encode::chunk_head(bytes.len() as u64, &mut space));
            tail.extend_from_slice(b"\r\n");
        }
        if framing == Framing::Chunked && place.ends && !output.has_more {
            tail.extend_from_slice(b"0\r\n");
            tail.extend_from_slice(&trailer_text(exchange));
            tail.extend_from_slice(b"\r\n");
        }
        if pace.is_some() {
            writing::pieces(exchange, conn, &mut [IoSlice::new(head)]).await?;
            writing::paced(exchange, conn, bytes, pace).await?;
            writing::pieces(exchange, conn, &mut [IoSlice::new(&tail)]).await?;
        } else {
            let mut pieces = [IoSlice::new(head), IoSlice::new(bytes), IoSlice::new(&tail)];
            writing::pieces(exchange, conn, &mut pieces).await?;
        }
        head.clear();
        exchange.bytes.body_sent += bytes.len() as u64;
        if !output.has_more {
            return Ok(());
        }
    }
}

/// Before a filter takes much memory, waits until the client's stream has room for output: a client that opens no window would
/// hold that memory for nothing.
pub async fn await_room(exchange: &Exchange<'_>, conn: &Conn) -> Result<(), Gone> {
    let is_costly = exchange.response.body_filters.iter().any(|filter| filter.is_costly());
    if is_costly && conn.carried.is_some() {
        conn.until_writable(exchange.location.values.core.send_timeout).await?;
    }
    Ok(())
}

/// Keeps the filters' output for a part of a stored body; the `last` part completes it.
fn keep_packed(exchange: &mut Exchange<'_>, bytes: &[u8], last: bool) {
    // Another filter would have changed the output.
    if exchange.response.body_filters.len() != 1 {
        exchange.cache.packing = None;
    }
    let Some(packing) = &mut exchange.cache.packing else { return };
    packing.push(bytes);
    if last && let Some(packing) = exchange.cache.packing.take() {
        // If it does not fit, the next request compresses again.
        packing.finish(clock::now());
    }
}

/// The fields after the last chunk.
pub fn trailer_text(exchange: &mut Exchange<'_>) -> Vec<u8> {
    headers::trailers(exchange);
    let mut text = Vec::new();
    for field in exchange.response.trailers.iter() {
        encode::push_field(&mut text, field.name, field.value);
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// Gives each byte twice, at most three bytes a call.
    #[derive(Default)]
    struct Twice {
        waiting: Vec<u8>,
    }

    impl BodyFilter for Twice {
        fn write(&mut self, input: &[u8], _flush: bool, _last: bool, out: &mut Vec<u8>) {
            assert!(input.is_empty() || self.waiting.is_empty(), "a full filter gets no input");
            self.waiting.extend(input.iter().flat_map(|byte| [*byte, *byte]));
            out.extend(self.waiting.drain(..self.waiting.len().min(3)));
        }

        fn state(&self) -> FilterState<'_> {
            if self.waiting.is_empty() { FilterState::Done } else { FilterState::Full }
        }
    }

    /// Marks the end.
    struct End(bool);

    impl BodyFilter for End {
        fn write(&mut self, input: &[u8], _flush: bool, last: bool, out: &mut Vec<u8>) {
            assert!(!self.0, "the end comes once");
            self.0 = last;
            out.extend_from_slice(input);
            if last {
                out.push(b'.');
            }
        }
    }

    /// Refuses `x`.
    struct Picky(bool);

    impl BodyFilter for Picky {
        fn write(&mut self, input: &[u8], _flush: bool, _last: bool, _out: &mut Vec<u8>) {
            self.0 |= input.contains(&b'x');
        }

        fn state(&self) -> FilterState<'_> {
            if self.0 { FilterState::Failed("an x") } else { FilterState::Done }
        }
    }

    #[test]
    fn a_piece_waits_until_full_filters_have_given_all() {
        let mut filters: Vec<Box<dyn BodyFilter>> =
            vec![Box::new(Twice::default()), Box::new(Twice::default()), Box::new(End(false))];
        let mut all = Vec::new();
        for (piece, last) in [(b"abcd".as_slice(), false), (b"ef", true)] {
            let mut input = piece;
            loop {
                let Filtered { bytes, has_more } = run(&mut filters, input, false, last).unwrap();
                all.extend_from_slice(&bytes);
                input = b"";
                if !has_more {
                    break;
                }
            }
        }
        assert_eq!(all, b"aaaabbbbccccddddeeeeffff.");
    }

    #[test]
    fn a_filter_that_fails_says_why() {
        let mut filters: Vec<Box<dyn BodyFilter>> = vec![Box::new(Picky(false)), Box::new(End(false))];
        assert!(run(&mut filters, b"a", false, false).is_ok());
        assert_eq!(run(&mut filters, b"x", false, false).err().as_deref(), Some("an x"));
    }
}
