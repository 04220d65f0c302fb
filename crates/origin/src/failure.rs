//! Failures on demand, which a proxy has to survive.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_wire::encode::{CHUNK_HEAD_BYTES, chunk_head};

use crate::answer::{Framing, push_head};
use crate::ask::AskedFailure;
use crate::connection::{Connection, NextStep, Request};

/// Bytes that are sent beyond Content-Length.
const LIE_BYTES: u64 = 32;
/// The size at which an endless head ends.
const ENDLESS_HEAD_BYTES_MAX: usize = 64 << 20;
/// How long a stalled answer holds its connection when the client does not close.
const STALL_MAX: Duration = Duration::from_secs(600);
/// The smallest body that can be cut in two.
const CUT_BYTES_MIN: u64 = 2;

const GARBAGE: &[u8] = b"\x16\x03\x01\x02 this is not HTTP \xff\xfe\r\n\r\n";

impl Connection<'_> {
    /// Carries out the failure in `fail=`.
    pub(super) async fn fail(&mut self, request: &Request, failure: AskedFailure) -> io::Result<NextStep> {
        match failure {
            AskedFailure::Reset => {
                self.stream.set_linger_zero()?;
                Ok(NextStep::Drop)
            }
            AskedFailure::Close => Ok(NextStep::Close),
            AskedFailure::Garbage => {
                self.send(GARBAGE, 0, b"").await?;
                Ok(NextStep::Close)
            }
            AskedFailure::Half => {
                let mut head = Vec::new();
                push_head(&mut head, request, request.framing());
                head.truncate(head.len() / 2);
                self.send(&head, 0, b"").await?;
                Ok(NextStep::Close)
            }
            AskedFailure::Truncate => {
                self.send_half(request).await?;
                Ok(NextStep::Close)
            }
            AskedFailure::Stall => {
                self.send_half(request).await?;
                self.deadline.set(STALL_MAX);
                poll_fn(|_| match self.stream.poll_closed() {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => self.deadline.poll_expired(),
                })
                .await;
                Ok(NextStep::Drop)
            }
            AskedFailure::EndlessHead => self.send_endless_head().await,
            AskedFailure::LyingLength => {
                let size = request.ask.size;
                let mut head = Vec::new();
                push_head(&mut head, request, Framing::Length(size));
                self.send(&head, size.saturating_add(LIE_BYTES), b"").await?;
                Ok(if request.keeps { NextStep::Keep } else { NextStep::Close })
            }
        }
    }

    /// Sends a whole head and half of the announced body.
    async fn send_half(&mut self, request: &Request) -> io::Result<()> {
        let size = request.ask.size.max(CUT_BYTES_MIN);
        let framing = match request.framing() {
            Framing::Bodiless | Framing::Length(_) => Framing::Length(size),
            other => other,
        };
        let mut head = Vec::new();
        push_head(&mut head, request, framing);
        if framing == Framing::Chunked {
            head.extend_from_slice(chunk_head(size, &mut [0; CHUNK_HEAD_BYTES]));
        }
        self.send(&head, size / 2, b"").await
    }

    async fn send_endless_head(&mut self) -> io::Result<NextStep> {
        self.send(b"HTTP/1.1 200 OK\r\n", 0, b"").await?;
        let fields = b"X-Endless: 0123456789abcdef0123456789abcdef0123456789abcdef\r\n".repeat(64);
        let mut left = ENDLESS_HEAD_BYTES_MAX;
        while left > 0 {
            self.send(&fields, 0, b"").await?;
            left = left.saturating_sub(fields.len());
        }
        Ok(NextStep::Close)
    }
}
