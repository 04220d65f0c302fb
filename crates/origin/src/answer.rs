//! Answers: a head made for the request, and a body that already exists.
//!
//! Every body is a part of the same 64-byte line repeated. So byte N of a body is byte N modulo 64 of [`LINE`]. A
//! body of up to 1 MiB is sent with its head in one `writev`.

use std::io::{self, IoSlice};
use std::sync::LazyLock;

use weir_net::{buffer, clock};
use weir_wire::encode::{CHUNK_HEAD_BYTES, CRLF, LAST_CHUNK, chunk_head, push_decimal, push_field, push_field_decimal};
use weir_wire::{Version, status};

use crate::add;
use crate::connection::{Connection, NextStep, PATIENCE, Request, is_passing};

/// The repeated content of bodies.
const LINE: &[u8; 64] = b"weir origin: the request says size, delay, status, or failure. \n";

const FILLER_BYTES: usize = 64 << 10;
/// Made at its first use: the binary does not contain it.
static FILLER: LazyLock<Vec<u8>> = LazyLock::new(|| LINE.repeat(FILLER_BYTES / LINE.len()));

/// A head, 1 MiB of filler and a tail.
const PIECES_MAX: usize = (1 << 20) / FILLER_BYTES + 2;
/// Payload of one chunk.
const CHUNK_BYTES: u64 = 16 << 10;
/// Room for a usual head.
const HEAD_BYTES: usize = 1024;

/// How a client finds the end of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// No body: 204, 304.
    Bodiless,
    /// Content-Length.
    Length(u64),
    Chunked,
    /// The end of the connection: a chunked answer to HTTP/1.0.
    Close,
}

impl Request {
    /// Bytes of the body, if it were sent.
    pub(super) fn body_bytes(&self) -> u64 {
        if self.echo.is_empty() { self.ask.size } else { self.echo.len() as u64 }
    }

    pub(super) fn framing(&self) -> Framing {
        match self.ask.status {
            204 | 304 => Framing::Bodiless,
            _ if !self.ask.chunked || !self.echo.is_empty() => Framing::Length(self.body_bytes()),
            _ if self.version == Version::Http11 => Framing::Chunked,
            _ => Framing::Close,
        }
    }

    /// Whether the connection stays open after the answer.
    fn next(&self, framing: Framing) -> NextStep {
        let keeps = self.keeps && framing != Framing::Close;
        if keeps { NextStep::Keep } else { NextStep::Close }
    }
}

/// Appends the head of an answer.
pub(super) fn push_head(out: &mut Vec<u8>, request: &Request, framing: Framing) {
    if request.version == Version::Http09 {
        return;
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(out, u64::from(request.ask.status));
    out.push(b' ');
    out.extend_from_slice(status::reason(request.ask.status).unwrap_or_default().as_bytes());
    out.extend_from_slice(CRLF);
    let asked = |name: &[u8]| request.ask.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let date = clock::http_date();
    let usual: [(&[u8], &[u8]); 3] = [(b"Server", b"weir-origin"), (b"Date", &date), (b"Content-Type", b"text/plain")];
    for (name, value) in usual {
        if !asked(name) {
            push_field(out, name, value);
        }
    }
    match framing {
        Framing::Length(length) => push_field_decimal(out, b"Content-Length", length),
        Framing::Chunked => push_field(out, b"Transfer-Encoding", b"chunked"),
        Framing::Bodiless | Framing::Close => {}
    }
    if framing == Framing::Chunked && request.ask.trailers {
        push_field(out, b"Trailer", b"X-Origin-Bytes");
    }
    match (request.next(framing), request.version) {
        (NextStep::Keep, Version::Http10) => push_field(out, b"Connection", b"keep-alive"),
        (NextStep::Keep, _) => {}
        (_, _) => push_field(out, b"Connection", b"close"),
    }
    for (name, value) in &request.ask.fields {
        push_field(out, name, value);
    }
    out.extend_from_slice(CRLF);
}

impl Connection<'_> {
    /// Sends the answer that the request asks for.
    pub(super) async fn answer(&mut self, request: &Request) -> io::Result<NextStep> {
        let framing = request.framing();
        let mut head = buffer::lease(HEAD_BYTES);
        push_head(&mut head, request, framing);
        if request.head_only || framing == Framing::Bodiless {
            self.send(&head, 0, b"").await?;
        } else if !request.echo.is_empty() {
            self.send(&head, 0, &request.echo).await?;
        } else if framing == Framing::Chunked {
            self.send_chunked(&mut head, request).await?;
        } else {
            self.send(&head, request.ask.size, b"").await?;
        }
        Ok(request.next(framing))
    }

    async fn send_chunked(&mut self, lead: &mut Vec<u8>, request: &Request) -> io::Result<()> {
        let end = last_chunk(request);
        let mut left = request.ask.size;
        while left > 0 {
            let chunk = left.min(CHUNK_BYTES);
            left -= chunk;
            lead.extend_from_slice(chunk_head(chunk, &mut [0; CHUNK_HEAD_BYTES]));
            self.send(lead, chunk, CRLF).await?;
            lead.clear();
        }
        lead.extend_from_slice(&end);
        self.send(lead, 0, b"").await
    }

    /// Sends a head, `filler` bytes of filler, and a tail.
    pub(super) async fn send(&mut self, head: &[u8], filler: u64, tail: &[u8]) -> io::Result<()> {
        let total = (head.len() as u64).saturating_add(filler).saturating_add(tail.len() as u64);
        let mut sent = 0;
        while sent < total {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let count = lay_out(&mut pieces, head, filler, tail, sent);
            match self.stream.try_write_vectored(pieces.get(..count).unwrap_or_default()) {
                Ok(len) => {
                    sent += len as u64;
                    add(&self.tally.sent_bytes, len as u64);
                }
                Err(error) if is_passing(&error) => {
                    self.deadline.set(PATIENCE);
                    self.stream.writable(&self.deadline).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The end of a chunked body. Its trailer has the number of bytes in the body.
fn last_chunk(request: &Request) -> Vec<u8> {
    if !request.ask.trailers {
        return LAST_CHUNK.to_vec();
    }
    let mut end = b"0\r\n".to_vec();
    push_field_decimal(&mut end, b"X-Origin-Bytes", request.ask.size);
    end.extend_from_slice(CRLF);
    end
}

/// Fills `pieces` with the rest after `sent` bytes. Returns how many pieces are filled.
fn lay_out<'b>(
    pieces: &mut [IoSlice<'b>; PIECES_MAX],
    head: &'b [u8],
    filler: u64,
    tail: &'b [u8],
    sent: u64,
) -> usize {
    let after_head = sent.saturating_sub(head.len() as u64);
    let head = head.get(usize::try_from(sent).unwrap_or(usize::MAX)..).unwrap_or_default();
    let tail_from = usize::try_from(after_head.saturating_sub(filler)).unwrap_or(usize::MAX);
    let tail = tail.get(tail_from..).unwrap_or_default();
    let mut body_at = after_head.min(filler);
    let mut count = 0;
    for place in pieces {
        let piece = if count == 0 && !head.is_empty() {
            head
        } else if body_at < filler {
            let from = (body_at % FILLER_BYTES as u64) as usize;
            let len = (filler - body_at).min((FILLER_BYTES - from) as u64);
            body_at += len;
            FILLER.get(from..from + len as usize).unwrap_or_default()
        } else {
            *place = IoSlice::new(tail);
            return count + usize::from(!tail.is_empty());
        };
        *place = IoSlice::new(piece);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that are sent if every write takes `step` bytes.
    fn sent_in_steps(head: &[u8], filler: u64, tail: &[u8], step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let total = head.len() + filler as usize + tail.len();
        while out.len() < total {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let count = lay_out(&mut pieces, head, filler, tail, out.len() as u64);
            let bytes = pieces.iter().take(count).flat_map(|piece| piece.iter().copied());
            let before = out.len();
            out.extend(bytes.take(step));
            assert_ne!(out.len(), before, "no progress at {before}");
        }
        out
    }

    #[test]
    fn any_split_of_the_writes_gives_the_same_bytes() {
        let size = 3 * FILLER_BYTES + 100;
        let mut expect = b"head".to_vec();
        expect.extend(LINE.iter().copied().cycle().take(size));
        expect.extend_from_slice(b"tail");
        for step in [1000, 4096, FILLER_BYTES, 1 << 20] {
            assert_eq!(sent_in_steps(b"head", size as u64, b"tail", step), expect);
        }
        assert_eq!(sent_in_steps(b"h", 2, b"t", 1), b"hwet");
        assert_eq!(sent_in_steps(b"", 0, b"tail", 3), b"tail");
    }

    #[test]
    fn a_mebibyte_and_its_head_are_one_write() {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let count = lay_out(&mut pieces, b"head", 1 << 20, b"", 0);
        let bytes: usize = pieces.iter().take(count).map(|piece| piece.len()).sum();
        assert_eq!(bytes, 4 + (1 << 20));
    }
}
