//! Reads one answer; holds a buffer only while it contains bytes.

use weir_meter::Step;
use weir_net::buffer::{self, Lease};
use weir_net::{Deadline, Transport, clock};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Parser, Progress, Violation, answer_keeps_alive, response_body};

use super::answer::{Answer, BodyPlace, Head};
use super::error::{self, Error};
use super::timings::Timings;

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Longest head of an answer.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
/// Most interim answers (1xx) before the final one.
pub const INTERIM_MAX: usize = 16;
/// Longest body that is kept for captures and checks; a longer one fails the exchange.
pub const BODY_BYTES_MAX: usize = 256 << 20;

/// One answer being read.
pub(super) struct IncomingAnswer<'c> {
    pub(super) link: &'c Transport,
    pub(super) deadline: &'c Deadline,
    input: Option<Lease>,
    received: u64,
}

/// The answer, and whether the connection may be used again.
pub(super) struct Read {
    pub(super) answer: Answer,
    pub(super) keeps: bool,
}

impl<'c> IncomingAnswer<'c> {
    pub(super) fn new(link: &'c Transport, deadline: &'c Deadline) -> IncomingAnswer<'c> {
        IncomingAnswer { link, deadline, input: None, received: 0 }
    }

    /// True if no byte has arrived yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.received == 0
    }

    /// Reads the whole answer; `wants` means: keep its body.
    pub(super) async fn answer(&mut self, method: &[u8], wants: bool, mut timings: Timings) -> Result<Read, Error> {
        let head = self.head().await?;
        timings.head = clock::precise();
        timings.end = timings.head;
        let input = self.input();
        let length = response_body(input, &head, method).map_err(|bad| Error::violation(Step::AwaitHead, bad))?;
        let keeps = answer_keeps_alive(input, &head) && length != BodyLength::UntilClose && head.status != 101;
        let fits = matches!(length, BodyLength::Exact(length) if (input.len() - head.len) as u64 == length);
        let (body, body_bytes, is_clean) = if fits {
            let range = head.len..input.len();
            let bytes = range.len() as u64;
            (if wants { BodyPlace::Here(range) } else { BodyPlace::Gone }, bytes, true)
        } else {
            let read = self.body(length, head.len, wants).await.map_err(|error| {
                let answered = Some(Box::new((head.status, timings)));
                Error { answered, ..error }
            })?;
            if read.1 > 0 {
                timings.end = clock::precise();
            }
            read
        };
        let buffer = self.input.take().unwrap_or_else(|| buffer::lease(0));
        let received_bytes = self.received;
        let answer = Answer { head, buffer, body, body_bytes, received_bytes, timings };
        // Bytes after the answer belong to no request: do not reuse the connection.
        Ok(Read { answer, keeps: keeps && is_clean })
    }

    /// Reads the final head, which then begins at the start of the buffer.
    async fn head(&mut self) -> Result<Head, Error> {
        let mut parser = Parser::new();
        self.more(Step::AwaitHead).await?;
        let mut head = Head::lease();
        for _ in 0..INTERIM_MAX {
            loop {
                if !self.input().is_empty() {
                    match parser.response(self.input(), &mut head) {
                        Ok(Progress::Done) => break,
                        Ok(Progress::Partial { .. }) if self.input().len() < HEAD_BYTES_MAX => {}
                        Ok(Progress::Partial { .. }) => {
                            return Err(Error::violation(Step::AwaitHead, Violation::UpstreamHeadTooLarge));
                        }
                        Err(Violation::NoStatusLine) => {
                            return Err(Error::named(Step::AwaitHead, error::status_line(self.input())));
                        }
                        Err(bad) => return Err(Error::violation(Step::AwaitHead, bad)),
                    }
                }
                self.more(Step::AwaitHead).await?;
            }
            if !head.is_interim() {
                return Ok(head);
            }
            let len = head.len;
            if let Some(input) = &mut self.input {
                input.drain(..len);
            }
            parser.reset();
        }
        Err(Error::named(Step::AwaitHead, "HPE_STRICT"))
    }

    /// Reads the body. True if nothing follows it.
    async fn body(&mut self, length: BodyLength, at: usize, wants: bool) -> Result<(BodyPlace, u64, bool), Error> {
        match length {
            BodyLength::None => Ok((BodyPlace::Gone, 0, self.input().len() == at)),
            BodyLength::Exact(length) => self.plain(length, at, wants, false).await,
            BodyLength::UntilClose => self.plain(u64::MAX, at, wants, true).await,
            BodyLength::Chunked => self.chunked(at, wants).await,
        }
    }

    async fn plain(
        &mut self,
        length: u64,
        at: usize,
        wants: bool,
        ends_by_close: bool,
    ) -> Result<(BodyPlace, u64, bool), Error> {
        let mut done = 0;
        loop {
            let have = (self.input().len().saturating_sub(at) as u64).min(length - if wants { 0 } else { done });
            let total = if wants { have } else { done + have };
            if total == length {
                let end = at + have as usize;
                let body = if wants { BodyPlace::Here(at..end) } else { BodyPlace::Gone };
                return Ok((body, total, self.input().len() == end));
            }
            if wants && have as usize >= BODY_BYTES_MAX {
                return Err(Error::named(Step::ReadResponse, "ERR_BODY_TOO_LARGE"));
            }
            if let Some(input) = &mut self.input {
                if wants {
                    // Reserve as much as is announced, but at most as much as has arrived already: the length may be
                    // wrong.
                    let known = (length - have).min(have.max(READ_BYTES as u64)) as usize;
                    input.reserve(known.max(1));
                } else {
                    done = total;
                    input.truncate(at);
                }
            }
            if self.read(Step::ReadResponse).await? == 0 {
                if !ends_by_close {
                    return Err(Error::closed(Step::ReadResponse));
                }
                let body = if wants { BodyPlace::Here(at..at + have as usize) } else { BodyPlace::Gone };
                return Ok((body, total, false));
            }
        }
    }

    async fn chunked(&mut self, at: usize, wants: bool) -> Result<(BodyPlace, u64, bool), Error> {
        let mut decoder = Decoder::new();
        let mut own = if wants { Some(buffer::lease(READ_BYTES)) } else { None };
        let mut bytes = 0;
        loop {
            let mut pos = at;
            while let Some(input) = &self.input {
                match decoder.next(input, &mut pos).map_err(|bad| Error::violation(Step::ReadResponse, bad))? {
                    ChunkEvent::Data { start, end } => {
                        bytes += (end - start) as u64;
                        if let Some(own) = &mut own {
                            own.extend_from_slice(input.get(start..end).unwrap_or_default());
                            if own.len() > BODY_BYTES_MAX {
                                return Err(Error::named(Step::ReadResponse, "ERR_BODY_TOO_LARGE"));
                            }
                        }
                    }
                    ChunkEvent::NeedMore => break,
                    ChunkEvent::End => {
                        let is_clean = pos == input.len();
                        return Ok((own.map_or(BodyPlace::Gone, BodyPlace::Own), bytes, is_clean));
                    }
                }
            }
            if let Some(input) = &mut self.input {
                input.truncate(at);
            }
            self.more(Step::ReadResponse).await?;
        }
    }

    fn input(&self) -> &[u8] {
        self.input.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Waits for more bytes and reads them; the end of the stream is an error.
    async fn more(&mut self, step: Step) -> Result<(), Error> {
        match self.read(step).await? {
            0 => Err(Error::closed(step)),
            _ => Ok(()),
        }
    }

    /// Waits for more bytes and reads them; 0 is the end of the stream.
    async fn read(&mut self, step: Step) -> Result<usize, Error> {
        loop {
            self.link.readable(self.deadline).await.map_err(|_| Error::timed_out(step))?;
            let input = self.input.get_or_insert_with(|| buffer::lease(READ_BYTES));
            match self.link.try_read_vec(input, READ_BYTES) {
                Ok(len) => {
                    self.received += len as u64;
                    return Ok(len);
                }
                Err(error) if is_passing(&error) => {
                    if input.is_empty() {
                        self.input = None;
                    }
                }
                Err(error) => return Err(Error::io(step, &error)),
            }
        }
    }
}

/// True if the call must be repeated later.
pub(super) fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}
