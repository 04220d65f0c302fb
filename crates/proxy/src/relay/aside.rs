//! Bodies that do not go straight to a client: bodies that the cache fetches to their end, and parts of a sliced
//! answer.

use std::future::poll_fn;

use weir_http::exchange::Exchange;
use weir_http::hold::conn::Gone;
use weir_net::{Lease, buffer};

use super::{READ_BYTES_FIRST, note};
use crate::family::upstream::source::{Broken, Source};

/// Reads a body to its end for the cache, though no client gets it; the limits of the cache and `proxy_read_timeout`
/// bound it.
pub async fn drain(exchange: &mut Exchange<'_>, source: &mut Source) {
    // Boxed: this is rare, and its size must not increase that of every exchange.
    Box::pin(drain_from(exchange, source, true)).await;
}

async fn drain_from(exchange: &mut Exchange<'_>, source: &mut Source, from_start: bool) {
    let result = drain_to_end(exchange, source, from_start).await;
    match result {
        Ok(true) => source.finish(exchange),
        Ok(false) => source.abandon(exchange),
        Err(broken) => {
            note(exchange, &broken);
            exchange.cache.cut();
            source.fail(exchange);
        }
    }
}

/// Reads a whole body of at most `max` bytes to memory, for the cache too; a body that is longer or breaks off is an
/// error (`Gone::Cut`).
pub async fn collect(exchange: &mut Exchange<'_>, source: &mut Source, max: usize) -> Result<Lease, Gone> {
    let mut all = buffer::lease(source.exact_left().map_or(0, |left| usize::try_from(left).unwrap_or(max).min(max)));
    match collect_to_end(exchange, source, &mut all, max).await {
        Ok(()) if source.is_done() => {
            source.finish(exchange);
            Ok(all)
        }
        Ok(()) => {
            exchange.cache.cut();
            source.fail(exchange);
            Err(Gone::Cut)
        }
        Err(broken) => {
            note(exchange, &broken);
            exchange.cache.cut();
            source.fail(exchange);
            Err(Gone::Cut)
        }
    }
}

async fn collect_to_end(
    exchange: &mut Exchange<'_>,
    source: &mut Source,
    all: &mut Lease,
    max: usize,
) -> Result<(), Broken> {
    let timeout = crate::values(exchange.location).proxy.read_timeout;
    if let Some(piece) = feed_first(exchange, source)? {
        keep(exchange, source, &piece);
        all.extend_from_slice(&piece);
    }
    while !source.is_done() && all.len() <= max {
        if let Some(link) = source.link() {
            link.deadline.set(timeout);
        }
        let mut piece = buffer::lease(READ_BYTES_FIRST);
        poll_fn(|_| source.poll_read(exchange, &mut piece, READ_BYTES_FIRST)).await?;
        keep(exchange, source, &piece);
        all.extend_from_slice(&piece);
    }
    Ok(())
}

/// As `drain`, for a body that was already read in part.
pub(super) async fn drain_rest(exchange: &mut Exchange<'_>, source: &mut Source) {
    Box::pin(drain_from(exchange, source, false)).await;
}

/// `Ok(false)` if the cache does not want the rest.
async fn drain_to_end(exchange: &mut Exchange<'_>, source: &mut Source, from_start: bool) -> Result<bool, Broken> {
    let timeout = crate::values(exchange.location).proxy.read_timeout;
    if from_start && let Some(piece) = feed_first(exchange, source)? {
        keep(exchange, source, &piece);
    }
    while !source.is_done() && exchange.cache.is_filling() {
        if let Some(link) = source.link() {
            link.deadline.set(timeout);
        }
        let mut piece = buffer::lease(READ_BYTES_FIRST);
        poll_fn(|_| source.poll_read(exchange, &mut piece, READ_BYTES_FIRST)).await?;
        keep(exchange, source, &piece);
        exchange.cache.ready().await;
    }
    Ok(source.is_done())
}

/// Counts and keeps body bytes; stores the answer with the last of them.
pub(super) fn keep(exchange: &mut Exchange<'_>, source: &Source, piece: &[u8]) {
    if let Some(attempt) = exchange.last_try() {
        attempt.response_length += piece.len() as u64;
    }
    exchange.cache.keep(piece, source.is_done());
}

/// The body bytes that arrived with the upstream's head; `None` if they were already used.
pub(super) fn feed_first(exchange: &mut Exchange<'_>, source: &mut Source) -> Result<Option<Lease>, Broken> {
    let Some(origin) = exchange.origin.take() else { return Ok(None) };
    let rest = origin.bytes.get(origin.head.len..).unwrap_or_default();
    let mut piece = buffer::lease(rest.len().max(1));
    let fed = source.feed(exchange, rest, &mut piece);
    exchange.origin = Some(origin);
    fed.map(|()| Some(piece))
}
