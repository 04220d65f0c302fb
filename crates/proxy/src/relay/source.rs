//! An upstream's body as a source: sent as it is, dropped, or read piece by piece for a body that is composed of several.
//!
//! A composed body goes at the client's pace: unlike `relay`, weir reads ahead only one piece, and it writes no temporary
//! file.

use std::task::{Context, Poll};

use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::{self, Broken, Framing};
use weir_http::hold::conn::{Conn, Gone};
use weir_net::buffer;

use super::aside::{drain, drain_rest, feed_first, keep};
use super::{READ_BYTES_FIRST, note, run};
use crate::family::proxy::response;
use crate::family::upstream::source::Source;

impl response_body::Source for Source {
    async fn send(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        framing: Framing,
        head: &mut Vec<u8>,
    ) -> Result<(), Gone> {
        run(exchange, conn, self, framing, head).await
    }

    fn poll_next(
        &mut self,
        exchange: &mut Exchange<'_>,
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<bool, Broken>> {
        poll_next(self, exchange, context, out)
    }

    fn is_urgent(&self, exchange: &Exchange<'_>) -> bool {
        !response::is_buffered(exchange)
    }

    async fn close(&mut self, exchange: &mut Exchange<'_>, is_sent: bool) {
        close(self, exchange, is_sent).await;
    }

    async fn discard(&mut self, exchange: &mut Exchange<'_>) {
        match exchange.cache.is_filling() {
            true => drain(exchange, self).await,
            false => self.finish(exchange),
        }
    }
}

/// Reads the next bytes; `true` after the last ones.
fn poll_next(
    source: &mut Source,
    exchange: &mut Exchange<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Poll<Result<bool, Broken>> {
    if exchange.cache.poll_ready(context).is_pending() {
        return Poll::Pending;
    }
    let mut piece = buffer::lease(READ_BYTES_FIRST);
    let read = if source.has_untaken() {
        feed_first(exchange, source).map(|first| first.into_iter().for_each(|first| piece = first))
    } else {
        // Before the first wait for these bytes, a deadline of an earlier wait may have passed.
        source.begin_wait(crate::values(exchange.location).proxy.read_timeout);
        match source.poll_read(exchange, &mut piece, READ_BYTES_FIRST) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(read) => read.map(drop),
        }
    };
    source.end_wait();
    if let Err(broken) = read {
        note(exchange, &broken);
        source.break_off();
        return Poll::Ready(Err(Broken));
    }
    let is_last = source.is_done();
    if is_last {
        response::take_trailers(exchange, source.take_trailers());
    }
    keep(exchange, source, &piece);
    if is_last {
        source.finish(exchange);
    }
    out.extend_from_slice(&piece);
    Poll::Ready(Ok(is_last))
}

/// Ends the body: completely read, broken, or left by the client. The cache may still want the rest for later clients.
async fn close(source: &mut Source, exchange: &mut Exchange<'_>, is_sent: bool) {
    if source.is_done() || is_sent {
        return source.finish(exchange);
    }
    exchange.cache.saving = None;
    if source.is_broken() {
        exchange.cache.cut();
        source.fail(exchange);
    } else if exchange.cache.is_filling() {
        drain_rest(exchange, source).await;
    } else {
        source.abandon(exchange);
    }
}
