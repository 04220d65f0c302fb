//! Sends the answer: head, then body, in as few writes as the body allows.
//!
//! A body of weir's own leaves with its head in one write. An upstream's body goes through `relay`, which reads ahead
//! of a slow client within bounds. A `BodyFilter` changes a body on its way.

use std::fs::File;
use std::io::IoSlice;

use weir_cache::ready::Ready;
use weir_net::clock;
use weir_net::log::Level;
use weir_net::opening;
use weir_wire::{Version, encode};

use crate::exchange::response_body::{Body, Framing, Part, Source, Whole};
use crate::exchange::{Exchange, Plain};
use crate::exchange::{composing, keepalive};
use crate::hold::conn::{Conn, Gone};
use crate::send::filtering::PiecePlace;
use crate::send::pace::Pace;
use crate::send::{composed, filtering, framed, head_out, kept, writing};

/// Files up to this size are read and leave with the head in one write; above it the kernel copies.
const READ_FILE_MAX: u64 = 32 << 10;

/// If bytes are encrypted or framed before they leave, weir reads a file in pieces of this size: three full TLS
/// records.
const READ_WRAPPED: u64 = 48 << 10;

/// The version of nginx whose directives weir reads; programs read it from `$nginx_version` and `nginx -v`.
pub const VERSION: &str = crate::nginx_version!();

/// The build name that `server_tokens build` adds in parentheses and `-V` prints as `--build=`: the nginx version
/// whose directives weir reads.
pub const BUILD: &str = concat!("nginx/", crate::nginx_version!());

/// Sends the response in the exchange. `source` is the source of a `Body::Origin`. If a filter refused the response,
/// sends nothing and returns the status to answer with.
pub async fn send<S: Source>(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Option<S>,
) -> Result<Option<u16>, Gone> {
    if exchange.response.status.is_fixed() {
        exchange.response.status_line.clear();
    }
    if let Plain::Ready(..) = exchange.plain
        && let Plain::Ready(ready, age_s) = std::mem::take(&mut exchange.plain)
    {
        return send_ready(exchange, conn, &ready, age_s).await.map(|()| None);
    }
    let filters = &exchange.location.filters;
    if let Some(status) = refused(exchange, filters) {
        if let Some(mut source) = source.take() {
            source.discard(exchange).await;
        }
        return Ok(Some(status));
    }
    if matches!(exchange.response.body, Body::Empty) && !exchange.response.body_filters.is_empty() {
        // Filters make a body of nothing, too: an empty body in gzip has twenty bytes.
        exchange.response.body = Body::Bytes(Vec::new());
    }
    exchange.flags.keeps_alive = exchange.flags.keeps_alive && keepalive::may_go_on(exchange);
    let framing = framing(exchange, conn);
    let mut out = std::mem::take(exchange.head);
    out.clear();
    let mut result = send_with(exchange, conn, source, framing, &mut out).await;
    // The log phase may read the head (`head_out::sent`).
    *exchange.head = out;
    if let (Ok(()), Some(stream)) = (&result, &conn.carried) {
        result = framed::finish(exchange, stream.as_ref(), framing);
    }
    exchange.flags.complete = result.is_ok();
    exchange.flags.is_cut = matches!(result, Err(Gone::Cut));
    if result.is_err() {
        exchange.flags.keeps_alive = false;
    }
    result.map(|()| None)
}

/// Runs the head filters; the status to answer with if one of them refuses the response.
fn refused<'c>(exchange: &mut Exchange<'c>, filters: &'c [fn(&mut Exchange<'_>)]) -> Option<u16> {
    filters.iter().find_map(|filter| {
        filter(exchange);
        exchange.response.refused.take()
    })
}

/// Sends a stored answer whose head is ready.
async fn send_ready(exchange: &mut Exchange<'_>, conn: &mut Conn, ready: &Ready, age_s: u32) -> Result<(), Gone> {
    exchange.flags.keeps_alive = exchange.flags.keeps_alive && keepalive::may_go_on(exchange);
    let mut out = std::mem::take(exchange.head);
    out.clear();
    ready.write(exchange.flags.keeps_alive, age_s, &clock::http_date(), &mut out);
    exchange.bytes.head_sent = out.len() as u64;
    exchange.facts.step = weir_meter::Step::SendResponse;
    let result = match std::mem::take(&mut exchange.response.body) {
        Body::Kept(kept) => kept::send(exchange, conn, Framing::Length, &mut out, kept).await,
        _ => Err(Gone::Cut),
    };
    *exchange.head = out;
    exchange.flags.complete = result.is_ok();
    exchange.flags.keeps_alive &= result.is_ok();
    result
}

async fn send_with<S: Source>(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Option<S>,
    framing: Framing,
    out: &mut Vec<u8>,
) -> Result<(), Gone> {
    if composing::is_composed(exchange) && framing != Framing::Bodiless {
        // Boxed: few bodies are composed, and otherwise every exchange would be larger.
        return Box::pin(composed::send(exchange, conn, source, framing)).await;
    }
    head_out::begin(exchange, conn, framing, out)?;
    send_body(exchange, conn, source, framing, out).await
}

/// Sends the body of a subrequest's response to its connection, without a head. If a filter refused the response, sends
/// nothing and returns the status to answer with.
pub async fn insert<S: Source>(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Option<S>,
) -> Result<Option<u16>, Gone> {
    let filters = &exchange.location.inner_filters;
    if let Some(status) = refused(exchange, filters) {
        if let Some(mut source) = source.take() {
            source.discard(exchange).await;
        }
        return Ok(Some(status));
    }
    exchange.facts.step = weir_meter::Step::SendResponse;
    // The client sees no status of this response, so 204 and 304 of `error_page` have a body here.
    let result = if exchange.response.header_only {
        send_body(exchange, conn, source, Framing::Bodiless, &mut Vec::new()).await
    } else if composing::is_composed(exchange) {
        Box::pin(composed::send(exchange, conn, source, Framing::Close)).await
    } else {
        send_body(exchange, conn, source, Framing::Close, &mut Vec::new()).await
    };
    exchange.flags.complete = result.is_ok();
    result.map(|()| None)
}

/// Sends `out`, which has the head, and then the body.
async fn send_body<S: Source>(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Option<S>,
    framing: Framing,
    out: &mut Vec<u8>,
) -> Result<(), Gone> {
    if let Some(source) = source
        && framing != Framing::Bodiless
    {
        return source.send(exchange, conn, framing, out).await;
    }
    let body = std::mem::take(&mut exchange.response.body);
    match (body, source.as_mut()) {
        (_, source) if framing == Framing::Bodiless => {
            let sent = writing::pieces(exchange, conn, &mut [IoSlice::new(out)]).await;
            if let Some(source) = source {
                source.discard(exchange).await;
            }
            sent
        }
        (Body::Empty, None) => {
            if framing == Framing::Chunked {
                out.extend_from_slice(b"0\r\n");
                out.extend_from_slice(&filtering::trailer_text(exchange));
                out.extend_from_slice(b"\r\n");
            }
            writing::pieces(exchange, conn, &mut [IoSlice::new(out)]).await
        }
        (Body::Bytes(bytes), None) => send_bytes(exchange, conn, framing, out, bytes).await,
        (Body::File { file, offset, length }, None) => {
            send_file(exchange, conn, framing, out, &file, offset, length).await
        }
        (Body::Parts { whole: Whole::File(file), parts, end }, None) => {
            send_parts(exchange, conn, framing, out, &file, &parts, &end).await
        }
        (Body::Parts { whole: Whole::Kept(object), parts, end }, None) => {
            kept::send_parts(exchange, conn, framing, out, &object, &parts, &end).await
        }
        (Body::Stream(stream), None) => stream.send(exchange, conn, framing, out).await,
        (Body::Kept(kept), None) => kept::send(exchange, conn, framing, out, kept).await,
        // A body with a source was sent above.
        (Body::Origin, _) | (_, Some(_)) => Err(Gone::Cut),
    }
}

/// How the client will find the end of this response's body.
fn framing(exchange: &mut Exchange<'_>, conn: &Conn) -> Framing {
    let response = &mut exchange.response;
    if response.header_only || exchange.request.is_head() || matches!(response.status.get(), 100..=199 | 204 | 304) {
        return Framing::Bodiless;
    }
    let open = match conn.carried {
        Some(_) => Framing::Stream,
        None if exchange.request.version() >= Version::Http11 && exchange.location.values.core.chunked => {
            Framing::Chunked
        }
        None => Framing::Close,
    };
    if response.expects_trailers && open != Framing::Close {
        // Chunks exclude a length (RFC 9112 §6.2). A stream has room for both (RFC 9113 §8.1).
        if open == Framing::Chunked {
            response.content_length = None;
        }
        return open;
    }
    if response.content_length.is_some() {
        return Framing::Length;
    }
    if matches!(response.body, Body::Empty) {
        response.content_length = Some(0);
        return Framing::Length;
    }
    if open == Framing::Close {
        exchange.flags.keeps_alive = false;
    }
    open
}

async fn send_bytes(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    bytes: Vec<u8>,
) -> Result<(), Gone> {
    let mut pace = Pace::of(exchange, out.len());
    if !exchange.response.body_filters.is_empty() || (pace.is_some() && framing == Framing::Chunked) {
        return filtering::send(exchange, conn, framing, out, &bytes, WHOLE, &mut pace).await;
    }
    exchange.bytes.body_sent = bytes.len() as u64;
    if framing == Framing::Chunked {
        let mut space = [0; encode::CHUNK_HEAD_BYTES];
        let trailers = filtering::trailer_text(exchange);
        let chunk = if bytes.is_empty() { &[][..] } else { encode::chunk_head(bytes.len() as u64, &mut space) };
        let end: &[u8] = if bytes.is_empty() { b"0\r\n" } else { b"\r\n0\r\n" };
        let mut pieces = [
            IoSlice::new(out),
            IoSlice::new(chunk),
            IoSlice::new(&bytes),
            IoSlice::new(end),
            IoSlice::new(&trailers),
            IoSlice::new(b"\r\n"),
        ];
        return writing::pieces(exchange, conn, &mut pieces).await;
    }
    if pace.is_none() {
        return writing::pieces(exchange, conn, &mut [IoSlice::new(out), IoSlice::new(&bytes)]).await;
    }
    writing::pieces(exchange, conn, &mut [IoSlice::new(out)]).await?;
    writing::paced(exchange, conn, &bytes, &mut pace).await
}

async fn send_file(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    file: &File,
    offset: u64,
    length: u64,
) -> Result<(), Gone> {
    let plain = exchange.response.body_filters.is_empty() && framing == Framing::Length;
    if plain && length <= READ_FILE_MAX && Pace::of(exchange, out.len()).is_none() {
        let mut buffer = weir_net::buffer::lease(length as usize);
        read(exchange, file, (offset, length as usize), &mut buffer)?;
        exchange.bytes.body_sent = length;
        return writing::pieces(exchange, conn, &mut [IoSlice::new(out), IoSlice::new(&buffer)]).await;
    }
    if plain && exchange.location.values.core.sendfile && conn.stream().bare().is_some() {
        return send_file_by_kernel(exchange, conn, out, file, offset, length).await;
    }
    send_file_in_pieces(exchange, conn, framing, out, file, offset, length).await
}

fn read(exchange: &mut Exchange<'_>, file: &File, (at, count): (u64, usize), out: &mut Vec<u8>) -> Result<(), Gone> {
    opening::read_at(file, at, count, out).map_err(|error| {
        exchange.log(Level::Crit, format_args!("pread() failed or the file was truncated: {error}"));
        Gone::Cut
    })
}

async fn send_file_by_kernel(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    out: &[u8],
    file: &File,
    offset: u64,
    length: u64,
) -> Result<(), Gone> {
    let nopush = exchange.location.values.core.nopush;
    let mut pace = Pace::of(exchange, out.len());
    if nopush {
        let _ = conn.stream().bare().map(|socket| socket.set_nopush(true));
    }
    writing::pieces(exchange, conn, &mut [IoSlice::new(out)]).await?;
    writing::file(exchange, conn, (file, "file"), (offset, length), &mut pace).await?;
    if nopush {
        let _ = conn.stream().bare().map(|socket| socket.set_nopush(false));
    }
    Ok(())
}

/// Sends the parts one after the other, each after its own head. Without filters the total length is known, so the
/// parts need no framing.
async fn send_parts(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    file: &File,
    parts: &[Part],
    end: &[u8],
) -> Result<(), Gone> {
    let is_plain = exchange.response.body_filters.is_empty() && framing == Framing::Length;
    let by_kernel = is_plain && exchange.location.values.core.sendfile && conn.stream().bare().is_some();
    let mut pace = Pace::of(exchange, out.len());
    for part in parts {
        if by_kernel && part.length > READ_FILE_MAX {
            out.extend_from_slice(&part.head);
            exchange.bytes.body_sent += part.head.len() as u64;
            writing::pieces(exchange, conn, &mut [IoSlice::new(out)]).await?;
            writing::file(exchange, conn, (file, "file"), (part.offset, part.length), &mut pace).await?;
            out.clear();
        } else {
            filtering::send(exchange, conn, framing, out, &part.head, INSIDE, &mut pace).await?;
            send_file_range(exchange, conn, framing, out, file, (part.offset, part.length), &mut pace, INSIDE).await?;
        }
    }
    filtering::send(exchange, conn, framing, out, end, WHOLE, &mut pace).await
}

async fn send_file_in_pieces(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    file: &File,
    offset: u64,
    length: u64,
) -> Result<(), Gone> {
    let mut pace = Pace::of(exchange, out.len());
    send_file_range(exchange, conn, framing, out, file, (offset, length), &mut pace, WHOLE).await
}

/// The place of a body that is one piece, and of the last piece of all.
const WHOLE: PiecePlace = PiecePlace { last: true, ends: true, flush: false };

/// The place of a piece that others follow.
const INSIDE: PiecePlace = PiecePlace { last: false, ends: false, flush: false };

/// Sends a range of a file piece by piece. `end` is the place of the last piece.
#[allow(clippy::too_many_arguments)] // long: the range's place in the file, and its place in the response
async fn send_file_range(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    file: &File,
    (offset, length): (u64, u64),
    pace: &mut Option<Pace>,
    end: PiecePlace,
) -> Result<(), Gone> {
    let piece_max = if conn.stream().bare().is_some() { READ_FILE_MAX } else { READ_WRAPPED };
    let mut buffer = weir_net::buffer::lease(piece_max as usize);
    let (mut at, stop) = (offset, offset.saturating_add(length));
    loop {
        let count = (stop - at).min(piece_max) as usize;
        read(exchange, file, (at, count), &mut buffer)?;
        at += count as u64;
        let place = if at >= stop { end } else { INSIDE };
        filtering::send(exchange, conn, framing, out, &buffer, place, pace).await?;
        if at >= stop {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
