//! One connection: reads heads, serves exchanges in order, and keeps or closes the connection.

use std::io;
use std::time::Duration;

use weir_net::buffer::{self, Lease};
use weir_net::{Deadline, Stream, timer};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{
    BodyLength, HeadPolicy, Known, Parser, Progress, RequestHead, Version, Violation, keeps_alive, request_body,
};

use crate::ask::Ask;
use crate::offer::Offer;
use crate::{Tally, add};

/// The longest head, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The longest body that is read, bytes.
const BODY_BYTES_MAX: u64 = 16 << 30;
/// The longest body that `/echo` returns, bytes.
const ECHO_BYTES_MAX: u64 = 1 << 20;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// Longest idle time between requests. It is longer than proxies keep idle connections (nginx: 60 s).
const IDLE: Duration = Duration::from_secs(300);
/// Longest pause within a request, and longest time in which a client reads nothing of an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long, and for how many bytes, a closed connection is still read. Then the client sees the answer, not a reset
/// (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// A connection and its unread bytes.
pub(super) struct Connection<'a> {
    pub(super) stream: Stream,
    pub(super) deadline: Deadline,
    pub(super) tally: &'a Tally,
    /// Leased only while it holds bytes.
    input: Option<Lease>,
    from: usize,
}

/// The parts of a request that an exchange needs after the head's bytes are gone.
pub(super) struct Request {
    pub(super) ask: Ask,
    pub(super) version: Version,
    /// HEAD: the answer has no body.
    pub(super) head_only: bool,
    /// Whether both client and wish keep the connection open.
    pub(super) keeps: bool,
    /// The body of an `/echo` answer.
    pub(super) echo: Vec<u8>,
    body: BodyLength,
    expects: bool,
    websocket: Option<Offer>,
}

/// The step after an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// The next request.
    Keep,
    /// Send FIN, then read and discard the client's remaining bytes.
    Close,
    /// Drop the socket without further steps.
    Drop,
}

/// The reason for an answer of the origin's own: status and text.
struct Refusal(u16, String);

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Refusal {
        // 494 is nginx's own status and is sent as 400.
        let status = if violation.status() == 494 { 400 } else { violation.status() };
        Refusal(status, format!("{} ({})", violation.detail(), violation.rfc()))
    }
}

/// Serves one connection to its end.
pub(super) async fn serve(stream: Stream, tally: &Tally) {
    let mut connection = Connection { stream, deadline: Deadline::new(), tally, input: None, from: 0 };
    // An error means that the client is gone or too slow: nothing more can be sent.
    let _ = connection.run().await;
}

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        let mut head = RequestHead::new();
        let mut next = NextStep::Keep;
        while next == NextStep::Keep {
            next = match self.read_head(&mut head).await? {
                None => NextStep::Drop,
                Some(Err(refusal)) => self.refuse(refusal).await?,
                Some(Ok(())) => self.exchange(&head).await?,
            };
        }
        match next {
            NextStep::Close => self.linger().await,
            NextStep::Keep | NextStep::Drop => Ok(()),
        }
    }

    /// `None`: the connection ended between two requests.
    async fn read_head(&mut self, head: &mut RequestHead) -> io::Result<Option<Result<(), Refusal>>> {
        let mut parser = Parser::new();
        self.deadline.set(IDLE);
        loop {
            if !self.unread().is_empty() {
                match parser.request(self.unread(), &HeadPolicy::default(), head) {
                    Ok(Progress::Done) => return Ok(Some(Ok(()))),
                    Ok(Progress::Partial { .. }) if self.unread().len() >= HEAD_BYTES_MAX => {
                        return Ok(Some(Err(Refusal(431, format!("a head is at most {HEAD_BYTES_MAX} bytes")))));
                    }
                    Ok(Progress::Partial { .. }) => self.deadline.set(PATIENCE),
                    Err(violation) => return Ok(Some(Err(violation.into()))),
                }
            }
            if self.read_more().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn exchange(&mut self, head: &RequestHead) -> io::Result<NextStep> {
        add(&self.tally.requests, 1);
        let understood = understand(self.unread(), head);
        self.consume(head.len);
        let mut request = match understood {
            Ok(request) => request,
            Err(refusal) => return self.refuse(refusal).await,
        };
        if request.body != BodyLength::None
            && let Err(refusal) = self.read_body(&mut request).await?
        {
            return self.refuse(refusal).await;
        }
        if !request.ask.delay.is_zero() {
            timer::sleep(request.ask.delay).await;
        }
        if let Some(failure) = request.ask.fail {
            add(&self.tally.failures, 1);
            return self.fail(&request, failure).await;
        }
        if let Some(offer) = request.websocket.take() {
            return self.websocket(&offer).await;
        }
        self.answer(&request).await
    }

    async fn refuse(&mut self, Refusal(status, text): Refusal) -> io::Result<NextStep> {
        add(&self.tally.refused, 1);
        self.answer(&Request {
            ask: Ask { status, ..Ask::default() },
            version: Version::Http11,
            head_only: false,
            keeps: false,
            echo: format!("{text}\n").into_bytes(),
            body: BodyLength::None,
            expects: false,
            websocket: None,
        })
        .await
    }

    /// Reads and discards the request's body, or keeps it for the echo.
    async fn read_body(&mut self, request: &mut Request) -> io::Result<Result<(), Refusal>> {
        let limit = if request.ask.echo { ECHO_BYTES_MAX } else { BODY_BYTES_MAX };
        let too_large = || Refusal(413, format!("a body is at most {limit} bytes here"));
        if matches!(request.body, BodyLength::Exact(length) if length > limit) {
            return Ok(Err(too_large()));
        }
        if request.expects && self.unread().is_empty() {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n", 0, b"").await?;
        }
        let mut decoder = Decoder::new();
        let mut length = 0;
        self.deadline.set(PATIENCE);
        loop {
            let piece = next_piece(self.unread(), request.body, length, &mut decoder);
            let (used, payload, is_last) = match piece {
                Ok(piece) => piece,
                Err(violation) => return Ok(Err(violation.into())),
            };
            length += payload.len() as u64;
            if length > limit {
                return Ok(Err(too_large()));
            }
            if request.ask.echo {
                request.echo.extend_from_slice(payload);
            }
            self.consume(used);
            if is_last {
                return Ok(Ok(()));
            }
            if self.unread().is_empty() && self.read_more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.deadline.set(PATIENCE);
        }
    }

    // Reading.

    pub(super) fn unread(&self) -> &[u8] {
        self.input.as_ref().and_then(|input| input.get(self.from..)).unwrap_or_default()
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.from += len;
        if self.unread().is_empty() {
            self.input = None;
            self.from = 0;
        }
    }

    /// Waits until the deadline for more bytes. 0 is the end.
    pub(super) async fn read_more(&mut self) -> io::Result<usize> {
        loop {
            self.stream.readable(&self.deadline).await?;
            let input = self.input.get_or_insert_with(|| buffer::lease(READ_BYTES));
            input.drain(..self.from);
            self.from = 0;
            let read = self.stream.try_read_vec(input, READ_BYTES);
            if input.is_empty() {
                self.input = None;
            }
            match read {
                Err(error) if is_passing(&error) => {}
                read => return read,
            }
        }
    }

    async fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown_write()?;
        self.deadline.set(LINGER);
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            let read = self.read_more().await?;
            self.consume(self.unread().len());
            left = if read == 0 { 0 } else { left.saturating_sub(read) };
        }
        Ok(())
    }
}

/// The operation can be repeated after waiting.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The bytes of `input` that are used up, the payload in them, and whether the body ends there.
fn next_piece<'i>(
    input: &'i [u8],
    body: BodyLength,
    before: u64,
    decoder: &mut Decoder,
) -> Result<(usize, &'i [u8], bool), Violation> {
    if let BodyLength::Exact(length) = body {
        let left = usize::try_from(length.saturating_sub(before)).unwrap_or(usize::MAX);
        let payload = input.get(..left.min(input.len())).unwrap_or_default();
        return Ok((payload.len(), payload, payload.len() == left));
    }
    let mut used = 0;
    match decoder.next(input, &mut used)? {
        ChunkEvent::Data { start, end } => Ok((used, input.get(start..end).unwrap_or_default(), false)),
        ChunkEvent::NeedMore => Ok((used, &[], false)),
        ChunkEvent::End => Ok((used, &[], true)),
    }
}

fn understand(buf: &[u8], head: &RequestHead) -> Result<Request, Refusal> {
    let body = request_body(buf, head)?;
    let tokens = head.tokens(buf);
    let ask = Ask::of(head.path.of(buf)).map_err(|text| Refusal(400, text))?;
    let mut websocket = None;
    if tokens.upgrade && ask.status == 200 {
        websocket = Offer::of(buf, head).map_err(|text| Refusal(426, text.to_owned()))?;
    }
    Ok(Request {
        version: head.version,
        head_only: head.method.of(buf) == b"HEAD",
        keeps: keeps_alive(head.version, tokens) && !ask.close,
        echo: if ask.echo { echo_of(buf, head) } else { Vec::new() },
        expects: head.version == Version::Http11
            && head.value(buf, Known::Expect).is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue")),
        body,
        ask,
        websocket,
    })
}

/// The request line and the fields as received, line by line, and an empty line.
fn echo_of(buf: &[u8], head: &RequestHead) -> Vec<u8> {
    let mut text = head.line.of(buf).to_vec();
    text.push(b'\n');
    for field in &head.fields {
        text.extend_from_slice(field.name.of(buf));
        text.extend_from_slice(b": ");
        text.extend_from_slice(field.value.of(buf));
        text.push(b'\n');
    }
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::net::UnixStream;

    use weir_net::counts::{self, Counts};
    use weir_net::worker;

    use super::*;

    const EXCHANGES: u64 = 100;

    /// Repeats the same request from a task beside the origin's.
    async fn exchanges(request: &'static [u8], answer_ends: &'static [u8]) -> (Counts, crate::Totals) {
        let (near, far) = UnixStream::pair().unwrap();
        let tally = std::rc::Rc::new(Tally::default());
        let served = tally.clone();
        let far = Stream::from_fd(far.into()).unwrap();
        worker::spawn(async move { serve(far, &served).await });
        let near = Stream::from_fd(near.into()).unwrap();
        let (deadline, before) = (Deadline::new(), counts::snapshot());
        for _ in 0..EXCHANGES {
            near.try_write(request).unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(answer_ends) {
                near.readable(&deadline).await.unwrap();
                match near.try_read_vec(&mut answer, READ_BYTES) {
                    Err(error) if is_passing(&error) => {}
                    read => assert_ne!(read.unwrap(), 0),
                }
            }
        }
        (counts::snapshot().since(&before), tally.totals())
    }

    #[test]
    fn one_read_and_one_write_per_exchange() {
        let run = exchanges(b"GET /1k HTTP/1.1\r\nHost: a\r\n\r\n", b"failure. \n");
        let (counts, totals) = worker::block_on(run).unwrap();
        assert_eq!(totals.requests, EXCHANGES);
        assert_eq!((counts.write, counts.writev), (EXCHANGES, EXCHANGES), "ours, the origin's");
        // Each side reads once. Each may have one more read that finds nothing, after its first wake-up.
        assert!(counts.read <= 2 * EXCHANGES + 4, "{counts:?}");
        assert_eq!(counts.epoll_ctl, 0);
    }
}
