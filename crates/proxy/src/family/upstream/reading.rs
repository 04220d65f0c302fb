//! Reads the head of a peer's answer, and interim answers before it.

use std::io;
use std::task::Poll;

use weir_http::exchange::Exchange;
use weir_http::exchange::message::{ANSWER_BYTES, Origin};
use weir_http::receive::h2;
use weir_net::{Lease, buffer};
use weir_wire::{Progress, Version};

use super::failure::{Failure, HeadFault, Progressed};
use super::heads::Head;
use super::pool::Link;
use crate::family::proxy::Values;
use crate::protocol::Protocol;

/// The most interim answers (1xx) before the final one.
const INTERIM_MAX: u32 = 16;

/// A head that has arrived.
pub(super) enum Received {
    /// The answer.
    Final(Box<Origin>),
    /// An interim answer (RFC 9110 §15.2): it is not the answer, and another head follows.
    Interim(Box<Origin>),
}

/// The progress of a head.
enum Parsed {
    Final,
    Interim,
    Partial,
}

/// Reads the head of an answer. It allocates nothing before the first byte arrives: memory that waits for an answer is
/// cold when the answer comes.
#[derive(Default)]
pub(super) struct Reading {
    origin: Option<Box<Origin>>,
    interim: u32,
    /// Bytes after an interim answer came together with it.
    has_more: bool,
    /// The head in another protocol than HTTP.
    wrapped: Option<Box<Head>>,
}

impl Reading {
    /// Reads until a head is complete.
    pub fn poll(
        &mut self,
        exchange: &mut Exchange<'_>,
        link: &Link,
        proxy: &Values,
        progressed: &mut Progressed,
    ) -> Poll<Result<Received, Failure>> {
        match &proxy.protocol {
            Protocol::Http1 => {}
            Protocol::Http2 => {
                if let Some(stream) = &link.h2 {
                    return self.poll_frames(exchange, stream, proxy, progressed);
                }
            }
            other => return self.poll_wrapped(exchange, link, (proxy, other), progressed),
        }
        loop {
            // Checked first: usually the answer has not come yet, and a needless read costs a system call.
            if !self.has_more && link.stream.poll_readable().is_pending() {
                return Poll::Pending;
            }
            let mut origin = self.origin.take().unwrap_or_else(|| exchange.worker.lease_origin());
            if !std::mem::take(&mut self.has_more) {
                match receive(exchange, link, &mut origin.bytes, progressed) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.origin = Some(origin);
                        continue;
                    }
                    Err(failure) => return Poll::Ready(Err(failure)),
                }
            }
            match self.parse(&mut origin, proxy.buffer_size as usize) {
                Ok(Parsed::Final) => return Poll::Ready(Ok(Received::Final(origin))),
                Ok(Parsed::Interim) => return Poll::Ready(Ok(Received::Interim(origin))),
                Ok(Parsed::Partial) => link.deadline.set(proxy.read_timeout),
                Err(fault) => return Poll::Ready(Err(Failure::Head(fault))),
            }
            self.origin = Some(origin);
        }
    }

    /// The same for another protocol than HTTP.
    fn poll_wrapped(
        &mut self,
        exchange: &mut Exchange<'_>,
        link: &Link,
        (proxy, protocol): (&Values, &Protocol),
        progressed: &mut Progressed,
    ) -> Poll<Result<Received, Failure>> {
        loop {
            if link.stream.poll_readable().is_pending() {
                return Poll::Pending;
            }
            let mut head = self.wrapped.take().unwrap_or_else(|| Box::new(Head::new(exchange)));
            match receive(exchange, link, &mut head.raw, progressed) {
                Ok(true) => {}
                Ok(false) => {
                    self.wrapped = Some(head);
                    continue;
                }
                Err(failure) => return Poll::Ready(Err(failure)),
            }
            match head.parse(exchange, protocol, proxy.buffer_size as usize) {
                Ok(true) => return Poll::Ready(Ok(Received::Final(head.into_origin(exchange)))),
                Ok(false) => link.deadline.set(proxy.read_timeout),
                Err(fault) => return Poll::Ready(Err(Failure::Head(fault))),
            }
            self.wrapped = Some(head);
        }
    }

    /// The same for a stream, where heads come complete.
    fn poll_frames(
        &mut self,
        exchange: &mut Exchange<'_>,
        stream: &h2::stream::Stream,
        proxy: &Values,
        progressed: &mut Progressed,
    ) -> Poll<Result<Received, Failure>> {
        let buffer_size = proxy.buffer_size as usize;
        let origin = match stream.poll_head() {
            Poll::Ready(Ok(origin)) => origin,
            Poll::Ready(Err(lost)) => return Poll::Ready(Err(Failure::Lost(lost))),
            Poll::Pending => return Poll::Pending,
        };
        progressed.response_begun = true;
        if let Some(attempt) = exchange.tries.last_mut() {
            attempt.bytes_received += origin.bytes.len() as u64;
        }
        let is_interim = origin.head.is_interim();
        self.interim += u32::from(is_interim);
        if origin.head.len > buffer_size || self.interim > INTERIM_MAX {
            exchange.worker.return_origin(origin);
            return Poll::Ready(Err(Failure::Head(HeadFault::TooBig)));
        }
        Poll::Ready(Ok(if is_interim { Received::Interim(origin) } else { Received::Final(origin) }))
    }

    fn parse(&mut self, origin: &mut Origin, buffer_size: usize) -> Result<Parsed, HeadFault> {
        match origin.parser.response(&origin.bytes, &mut origin.head) {
            Ok(Progress::Done) if origin.head.len > buffer_size => Err(HeadFault::TooBig),
            Ok(Progress::Done) if origin.head.is_interim() => {
                self.interim += 1;
                if self.interim > INTERIM_MAX { Err(HeadFault::TooBig) } else { Ok(Parsed::Interim) }
            }
            Ok(Progress::Done) => Ok(Parsed::Final),
            Ok(Progress::Partial { .. }) if origin.bytes.len() >= buffer_size => Err(HeadFault::TooBig),
            Ok(Progress::Partial { .. }) => Ok(Parsed::Partial),
            Err(violation) => Err(HeadFault::Violation(violation)),
        }
    }

    /// Moves past an interim answer.
    pub fn go_on(&mut self, mut origin: Box<Origin>) {
        if origin.head.version == Version::Http2 {
            return; // each head has its own object
        }
        let len = origin.head.len.min(origin.bytes.len());
        origin.bytes.drain(..len);
        origin.parser.reset();
        self.has_more = !origin.bytes.is_empty();
        self.origin = Some(origin);
    }
}

/// Reads the available bytes of an answer; `false` if there are none.
fn receive(
    exchange: &mut Exchange<'_>,
    link: &Link,
    bytes: &mut Lease,
    progressed: &mut Progressed,
) -> Result<bool, Failure> {
    if bytes.capacity() == 0 {
        *bytes = buffer::lease(ANSWER_BYTES);
    }
    match link.stream.try_read_vec(bytes, ANSWER_BYTES) {
        Ok(0) => Err(Failure::Closed),
        Ok(count) => {
            progressed.response_begun = true;
            if let Some(attempt) = exchange.tries.last_mut() {
                attempt.bytes_received += count as u64;
            }
            Ok(true)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
        Err(error) => Err(Failure::Receive(error)),
    }
}
