//! Sends bodies from the cache: whole bodies in one write with their head, others while they grow or are read.
//!
//! Usually nothing is copied: weir writes the pieces that all workers share. A body with filters, chunks or a rate
//! goes through a buffer, piece by piece.

use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::Arc;
use std::task::Poll;

use weir_cache::store::{FileBody, Object, Piece, Reader};
use weir_net::log::Level;
use weir_net::opening;

use crate::exchange::Exchange;
use crate::exchange::response_body::{Framing, Kept, Part};
use crate::hold::conn::{Conn, Gone};
use crate::send::filtering::{self, PiecePlace};
use crate::send::pace::Pace;
use crate::send::writing;

/// Pieces of a body written with one call.
const PIECES_MAX: usize = 16;

/// A part of a file is read in pieces of this size if the kernel cannot copy it.
const READ_BYTES: usize = 32 << 10;

/// Sends `head` and then the body.
pub async fn send(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    head: &mut Vec<u8>,
    kept: Kept,
) -> Result<(), Gone> {
    let is_plain = framing == Framing::Length && exchange.response.body_filters.is_empty();
    if is_plain && Pace::of(exchange, head.len()).is_none() {
        return send_plain(exchange, conn, head, kept).await;
    }
    let mut pace = Pace::of(exchange, head.len());
    send_in_pieces(exchange, conn, framing, head, kept, WHOLE, &mut pace).await
}

/// Sends several parts, each after its own head. Without filters the total length is known, so the parts need no
/// framing.
pub async fn send_parts(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    head: &mut Vec<u8>,
    object: &Arc<Object>,
    parts: &[Part],
    end: &[u8],
) -> Result<(), Gone> {
    let mut pace = Pace::of(exchange, head.len());
    for part in parts {
        filtering::send(exchange, conn, framing, head, &part.head, INSIDE, &mut pace).await?;
        let kept = Kept { object: object.clone(), offset: part.offset, length: Some(part.length) };
        send_in_pieces(exchange, conn, framing, head, kept, INSIDE, &mut pace).await?;
    }
    filtering::send(exchange, conn, framing, head, end, WHOLE, &mut pace).await
}

/// The place of the last piece of a response.
const WHOLE: PiecePlace = PiecePlace { last: true, ends: true, flush: false };

/// The place of a piece that others follow.
const INSIDE: PiecePlace = PiecePlace { last: false, ends: false, flush: false };

/// Sends it unchanged: a body in memory with one call, others piece by piece without copying.
async fn send_plain(exchange: &mut Exchange<'_>, conn: &mut Conn, head: &mut Vec<u8>, kept: Kept) -> Result<(), Gone> {
    if let Some(body) = small(&kept) {
        head.extend_from_slice(body);
        writing::pieces(exchange, conn, &mut [IoSlice::new(head)]).await?;
        exchange.bytes.body_sent += body.len() as u64;
        return Ok(());
    }
    let head = head.as_slice();
    if kept.object.body.is_in_memory() {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        if let Some((count, length)) = gather(&kept, head, &mut slices) {
            writing::pieces(exchange, conn, slices.get_mut(..count).unwrap_or_default()).await?;
            exchange.bytes.body_sent += length;
            return Ok(());
        }
    }
    writing::pieces(exchange, conn, &mut [IoSlice::new(head)]).await?;
    let mut left = kept.length;
    let mut reader = Reader::new(kept.object, kept.offset);
    while left != Some(0) {
        let Some(piece) = next_piece(conn, &reader).await? else { break };
        let count = piece.len().min(left.unwrap_or(u64::MAX));
        match &piece {
            Piece::Memory(..) => {
                let bytes = piece.bytes().and_then(|bytes| bytes.get(..count as usize)).unwrap_or_default();
                writing::pieces(exchange, conn, &mut [IoSlice::new(bytes)]).await?;
                exchange.bytes.body_sent += count;
            }
            Piece::File(file) => send_file(exchange, conn, file, count).await?,
        }
        reader.advance(count);
        left = left.map(|left| left - count);
    }
    if left.is_some_and(|left| left > 0) { Err(Gone::Cut) } else { Ok(()) }
}

/// A body that is cheaper to copy behind the head than to give to the kernel as a second piece.
fn small(kept: &Kept) -> Option<&[u8]> {
    let [only] = kept.object.body.chunks() else { return None };
    let (start, length) = (usize::try_from(kept.offset).ok()?, usize::try_from(kept.length?).ok()?);
    only.get(start..start.checked_add(length)?).filter(|bytes| bytes.len() <= writing::COPY_MAX)
}

/// Head and body as one vector; `None` when the body has too many pieces. Returns the number of pieces, and the
/// body's bytes among them.
fn gather<'k>(kept: &'k Kept, head: &'k [u8], slices: &mut [IoSlice<'k>; PIECES_MAX]) -> Option<(usize, u64)> {
    let mut skip = usize::try_from(kept.offset).ok()?;
    let length = usize::try_from(kept.length?).ok()?;
    let mut left = length;
    let mut slots = slices.iter_mut();
    *slots.next()? = IoSlice::new(head);
    let mut count = 1;
    for chunk in kept.object.body.chunks() {
        if left == 0 {
            break;
        }
        let Some(bytes) = chunk.get(skip..) else {
            skip -= chunk.len();
            continue;
        };
        skip = 0;
        let bytes = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        left -= bytes.len();
        *slots.next()? = IoSlice::new(bytes);
        count += 1;
    }
    (left == 0).then_some((count, length as u64))
}

/// The next piece of a body; waits while the body grows, and watches the client meanwhile.
pub async fn next_piece(conn: &Conn, reader: &Reader) -> Result<Option<Piece>, Gone> {
    poll_fn(|context| match reader.poll_piece(context) {
        Poll::Ready(None) => Poll::Ready(Ok(None)),
        Poll::Ready(Some(Ok(piece))) => Poll::Ready(Ok(Some(piece))),
        // The exchange that fetches the body lost the origin.
        Poll::Ready(Some(Err(_))) => Poll::Ready(Err(Gone::Cut)),
        Poll::Pending => conn.poll_gone().map(|error| Err(Gone::Closed(error))),
    })
    .await
}

/// By the kernel, if the bytes need no encryption or frames.
async fn send_file(exchange: &mut Exchange<'_>, conn: &mut Conn, body: &FileBody, count: u64) -> Result<(), Gone> {
    if conn.stream().bare().is_some() {
        return writing::file(exchange, conn, (&body.file, "cache file"), (body.offset, count), &mut None).await;
    }
    let (mut at, end) = (body.offset, body.offset.saturating_add(count));
    let mut buffer = weir_net::buffer::lease(READ_BYTES);
    while at < end {
        let count = usize::try_from(end - at).unwrap_or(READ_BYTES).min(READ_BYTES);
        read(exchange, body, (at, count), &mut buffer)?;
        writing::pieces(exchange, conn, &mut [IoSlice::new(&buffer)]).await?;
        exchange.bytes.body_sent += buffer.len() as u64;
        at += buffer.len() as u64;
    }
    Ok(())
}

/// Through the filters, framed, at the allowed rate. `end` is the place of the last piece.
async fn send_in_pieces(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    kept: Kept,
    end: PiecePlace,
    pace: &mut Option<Pace>,
) -> Result<(), Gone> {
    let mut left = kept.length;
    let mut reader = Reader::new(kept.object, kept.offset);
    let mut buffer = weir_net::buffer::lease(READ_BYTES);
    loop {
        buffer.clear();
        let piece = if left == Some(0) { None } else { next_piece(conn, &reader).await? };
        if let Some(piece) = &piece {
            take(exchange, piece, left, &mut buffer)?;
        }
        reader.advance(buffer.len() as u64);
        left = left.map(|left| left - buffer.len() as u64);
        let last = piece.is_none() || left == Some(0);
        if last && left.is_some_and(|left| left > 0) {
            return Err(Gone::Cut);
        }
        let place = if last { end } else { INSIDE };
        filtering::send(exchange, conn, framing, out, &buffer, place, pace).await?;
        if last {
            return Ok(());
        }
    }
}

/// Copies a piece, or the first part of it that fits.
fn take(exchange: &mut Exchange<'_>, piece: &Piece, left: Option<u64>, buffer: &mut Vec<u8>) -> Result<(), Gone> {
    let count = piece.len().min(left.unwrap_or(u64::MAX)).min(READ_BYTES as u64) as usize;
    match piece {
        Piece::Memory(..) => {
            buffer.extend_from_slice(piece.bytes().and_then(|bytes| bytes.get(..count)).unwrap_or_default());
            Ok(())
        }
        Piece::File(body) => read(exchange, body, (body.offset, count), buffer),
    }
}

fn read(
    exchange: &mut Exchange<'_>,
    body: &FileBody,
    (at, count): (u64, usize),
    out: &mut Vec<u8>,
) -> Result<(), Gone> {
    opening::read_at(&body.file, at, count, out).map_err(|error| {
        exchange.log(Level::Crit, format_args!("pread() of a cache file failed: {error}"));
        Gone::Cut
    })
}
