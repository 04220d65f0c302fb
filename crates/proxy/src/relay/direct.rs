//! Passes bytes of a large body from the upstream's socket to the client's inside the kernel, as long as the client takes
//! them at once. When it does not, the bytes under way go to memory, and the relay goes on as usual.

use std::task::Poll;

use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::Framing;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::patience::SendTimeout;
use weir_net::splice::{PIPE_BYTES, Pipe};
use weir_net::{Stream, buffer};

use super::{End, Relay};
use crate::family::upstream::sending::Upload;
use crate::family::upstream::source::{Broken, Source};

/// A body that has at least so many bytes to come passes directly.
pub(super) const LARGE_BYTES: u64 = 128 << 10;
/// The end of a body that is read as usual: bytes behind it show then, and the connection is not used again.
const REST_BYTES: u64 = 16 << 10;

impl Relay {
    /// Whether the next bytes of the body may pass directly: none wait before them, and nothing keeps, changes or delays
    /// them.
    pub(super) fn passes(&self, exchange: &Exchange<'_>, conn: &Conn, source: &Source) -> bool {
        self.is_large
            && source.exact_left().is_some_and(|left| left > REST_BYTES)
            && !source.has_untaken()
            && self.framing == Framing::Length
            && self.queue.is_empty()
            && self.spill.is_none()
            && !self.is_cut
            && !self.is_blocked
            && self.pace.is_none()
            && self.read_pace.is_none()
            && exchange.response.body_filters.is_empty()
            && !exchange.cache.is_filling()
            && exchange.cache.saving.is_none()
            && exchange.own.get::<Upload>().is_none()
            && conn.stream().bare().is_some()
            && source.link().is_some_and(|link| link.stream.bare().is_some())
    }

    /// Passes bytes until none have come, the client takes no more, or only the rest is left. `Ready(Ok(true))` if some
    /// passed.
    pub(super) fn poll_pass(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        source: &mut Source,
        timeouts: (SendTimeout, std::time::Duration),
    ) -> Poll<Result<bool, End>> {
        let (send_timeout, read_timeout) = timeouts;
        let mut has_passed = false;
        loop {
            let left = source.exact_left().unwrap_or(0).saturating_sub(REST_BYTES);
            let (Some(to), Some(link)) = (conn.stream().bare(), source.link()) else {
                return Poll::Ready(Ok(has_passed));
            };
            let Some(from) = link.stream.bare().filter(|_| left > 0) else { return Poll::Ready(Ok(has_passed)) };
            let Some(mut pipe) = Pipe::lease() else { return Poll::Ready(Ok(has_passed)) };
            let max = usize::try_from(left).unwrap_or(PIPE_BYTES).min(PIPE_BYTES);
            match pipe.poll_take(from, max) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(End::Origin(Broken::Early))),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(End::Origin(Broken::Io(error)))),
                Poll::Pending => {
                    return match link.deadline.poll_expired() {
                        Poll::Ready(()) => Poll::Ready(Err(End::Origin(Broken::TimedOut))),
                        Poll::Pending if has_passed => Poll::Ready(Ok(true)),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
            let came = pipe.held() as u64;
            link.deadline.set(read_timeout);
            source.skip(came);
            if let Some(attempt) = exchange.last_try() {
                attempt.bytes_received += came;
                attempt.response_length += came;
            }
            has_passed = true;
            if !self.give(exchange, to, &mut pipe).map_err(End::Client)? {
                return Poll::Ready(Ok(true));
            }
            conn.await_taking(send_timeout);
        }
    }

    /// Lets the client take the bytes in a pipe; `false` if it does not take all of them: the others wait in memory.
    fn give(&mut self, exchange: &mut Exchange<'_>, to: &Stream, pipe: &mut Pipe) -> Result<bool, Gone> {
        let came = pipe.held();
        let is_whole = pipe.try_give_rest(to);
        let count = (came - pipe.held()) as u64;
        exchange.bytes.sent += count;
        exchange.bytes.body_sent += count;
        if is_whole.map_err(Gone::Closed)? {
            return Ok(true);
        }
        let mut bytes = buffer::lease(pipe.held());
        let body = pipe.held() as u64;
        pipe.read_into(&mut bytes).map_err(Gone::Closed)?;
        self.push(bytes, body);
        self.is_blocked = true;
        Ok(false)
    }
}
