//! One connection of the load: a request out, an answer in, again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use weir_net::buffer::{self, Lease};
use weir_net::{Address, ConnectOptions, Deadline, Instant, Stream, clock};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Parser, Progress, ResponseHead, keeps_alive, response_body};

use crate::report::Failure;
use crate::url::Url;

/// What is read at once.
const READ_BYTES: usize = 64 << 10;
/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// Interim answers (1xx) before the final one.
const INTERIM_MAX: usize = 16;

/// Where requests go, and the request.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: Address,
    pub(crate) request: Arc<[u8]>,
    pub(crate) timeout: Duration,
}

/// The bytes of a GET.
pub(crate) fn request(url: &Url) -> Vec<u8> {
    let Url { authority, target, .. } = url;
    let agent = concat!("weir-load/", env!("CARGO_PKG_VERSION"));
    format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n\r\n").into_bytes()
}

/// A complete answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) latency: Duration,
}

/// One connection at a time; opened when needed.
pub(crate) struct Client<'t> {
    target: &'t Target,
    stream: Option<Stream>,
    deadline: Deadline,
    head: ResponseHead,
}

impl<'t> Client<'t> {
    pub(crate) fn new(target: &'t Target) -> Client<'t> {
        Client { target, stream: None, deadline: Deadline::new(), head: ResponseHead::new() }
    }

    /// Sends the request and reads its answer to the end.
    pub(crate) async fn exchange(&mut self) -> Result<Answer, Failure> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect().await?,
        };
        let begin = clock::precise();
        self.deadline.set(self.target.timeout);
        self.send(&stream).await?;
        let mut reader = Reader { stream: &stream, deadline: &self.deadline, input: None, from: 0, bytes: 0 };
        let keeps = reader.answer(&mut self.head).await?;
        let answer = Answer { status: self.head.status, bytes: reader.bytes, latency: since(begin) };
        // What came beyond the answer belongs to no request: it is not read as one.
        if keeps && reader.unread().is_empty() {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    async fn connect(&self) -> Result<Stream, Failure> {
        self.deadline.set(self.target.timeout);
        let stream = Stream::connect(&self.target.address, &ConnectOptions::default()).map_err(|_| Failure::Connect)?;
        match stream.connected(&self.deadline).await {
            Ok(()) => Ok(stream),
            // The kernel's own ETIMEDOUT means the same.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Failure::ConnectTimeout),
            Err(_) => Err(Failure::Connect),
        }
    }

    async fn send(&self, stream: &Stream) -> Result<(), Failure> {
        let mut rest: &[u8] = &self.target.request;
        while !rest.is_empty() {
            match stream.try_write(rest) {
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(error) if is_passing(&error) => {
                    stream.writable(&self.deadline).await.map_err(|_| Failure::Timeout)?;
                }
                Err(_) => return Err(Failure::Reset),
            }
        }
        Ok(())
    }
}

fn since(begin: Instant) -> Duration {
    clock::precise().saturating_duration_since(begin)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Reads one answer; its buffer is on loan only while it holds something.
struct Reader<'c> {
    stream: &'c Stream,
    deadline: &'c Deadline,
    input: Option<Lease>,
    from: usize,
    bytes: u64,
}

impl Reader<'_> {
    /// Reads to the end of the answer; true if another may follow.
    async fn answer(&mut self, head: &mut ResponseHead) -> Result<bool, Failure> {
        for _ in 0..INTERIM_MAX {
            self.read_head(head).await?;
            let is_interim = head.is_interim();
            let body = response_body(self.unread(), head, b"GET").map_err(|_| Failure::Invalid)?;
            let tokens = head.tokens(self.unread());
            self.consume(head.len);
            if is_interim {
                continue;
            }
            self.read_body(body).await?;
            return Ok(keeps_alive(head.version, tokens) && body != BodyLength::UntilClose && head.status != 101);
        }
        Err(Failure::Invalid)
    }

    async fn read_head(&mut self, head: &mut ResponseHead) -> Result<(), Failure> {
        let mut parser = Parser::new();
        loop {
            if !self.unread().is_empty() {
                match parser.response(self.unread(), head) {
                    Ok(Progress::Done) => return Ok(()),
                    Ok(Progress::Partial { .. }) if self.unread().len() < HEAD_BYTES_MAX => {}
                    Ok(Progress::Partial { .. }) | Err(_) => return Err(Failure::Invalid),
                }
            }
            if self.read_more().await? == 0 {
                return Err(Failure::Closed);
            }
        }
    }

    async fn read_body(&mut self, body: BodyLength) -> Result<(), Failure> {
        let mut left = match body {
            BodyLength::None => 0,
            BodyLength::Exact(length) => length,
            BodyLength::Chunked => return self.read_chunked().await,
            BodyLength::UntilClose => u64::MAX,
        };
        while left > 0 {
            let have = (self.unread().len() as u64).min(left);
            self.consume(have as usize);
            left -= have;
            if left > 0 && self.read_more().await? == 0 {
                return if body == BodyLength::UntilClose { Ok(()) } else { Err(Failure::Closed) };
            }
        }
        Ok(())
    }

    async fn read_chunked(&mut self) -> Result<(), Failure> {
        let mut decoder = Decoder::new();
        loop {
            let mut used = 0;
            let event = decoder.next(self.unread(), &mut used).map_err(|_| Failure::Invalid)?;
            self.consume(used);
            match event {
                ChunkEvent::End => return Ok(()),
                ChunkEvent::Data { .. } => {}
                ChunkEvent::NeedMore => {
                    if self.read_more().await? == 0 {
                        return Err(Failure::Closed);
                    }
                }
            }
        }
    }

    fn unread(&self) -> &[u8] {
        self.input.as_ref().and_then(|input| input.get(self.from..)).unwrap_or_default()
    }

    fn consume(&mut self, len: usize) {
        self.from += len;
        if self.unread().is_empty() {
            self.input = None;
            self.from = 0;
        }
    }

    /// Waits until the deadline for something to read; 0 is the end.
    async fn read_more(&mut self) -> Result<usize, Failure> {
        loop {
            self.stream.readable(self.deadline).await.map_err(|_| Failure::Timeout)?;
            let input = self.input.get_or_insert_with(|| buffer::lease(READ_BYTES));
            input.drain(..self.from);
            self.from = 0;
            match self.stream.try_read_vec(input, READ_BYTES) {
                Ok(len) => {
                    self.bytes += len as u64;
                    return Ok(len);
                }
                Err(error) if is_passing(&error) => {
                    if input.is_empty() {
                        self.input = None;
                    }
                }
                Err(_) => return Err(Failure::Reset),
            }
        }
    }
}
