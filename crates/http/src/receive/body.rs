//! The request's body: read before the request goes to the upstream, passed on as it arrives, or thrown away.
//!
//! One reader decodes it in all three cases. It takes first the bytes that arrived behind the head, then bytes from
//! the socket.

use std::fs::{File, OpenOptions};
use std::future::poll_fn;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use weir_net::clock;
use weir_net::log::{Level, Os};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Known, Version, Violation};

use crate::exchange::Exchange;
use crate::exchange::body_file::{BodyFile, Unwritten};
use crate::exchange::counting;
use crate::exchange::request_body::{Left, Reader, RequestBody};
use crate::family::core::BodyInFile;
use crate::hold::board::Leg;
use crate::hold::conn::{Conn, Gone};
use crate::hold::patience::BodyWatch;

/// Why a body could not be read.
#[derive(Debug)]
pub enum BodyFailed {
    /// weir refuses the body: the exchange ends with this status, and then the connection ends.
    Status(u16),
    /// The client is gone.
    Gone(Gone),
}

/// Bytes read from a client at a time.
const READ_BYTES: usize = 64 << 10;

/// Whether nothing of the body is left to read.
pub fn is_consumed(exchange: &Exchange<'_>) -> bool {
    match &exchange.reader {
        Some(reader) => reader.is_done(),
        None => Reader::of(exchange.request).is_done(),
    }
}

/// nginx: checked when the location is found, against the length in the head. A body that is too large has no reader
/// but the one that drops it, so the location of the error page does not refuse it again.
pub fn is_too_large(exchange: &mut Exchange<'_>) -> bool {
    let max = exchange.location.values.core.body_max;
    match exchange.request.length {
        Some(BodyLength::Exact(length)) if max > 0 && length > max && exchange.reader.is_none() => {
            exchange.log(Level::Error, format_args!("client intended to send too large body: {length} bytes"));
            exchange.flags.discards_body = true;
            exchange.body = RequestBody::Gone;
            exchange.reader = Some(Reader::of(exchange.request));
            true
        }
        _ => false,
    }
}

/// Appends body bytes to `out`: `Ready(Ok(true))` when the body is complete. `Pending` until the client sends more.
pub fn poll_read(exchange: &mut Exchange<'_>, conn: &Conn, out: &mut Vec<u8>) -> Poll<Result<bool, BodyFailed>> {
    if exchange.reader.is_none() {
        exchange.reader = Some(Reader::of(exchange.request));
    }
    loop {
        match take(exchange, out) {
            Ok(Taken::End) => return Poll::Ready(Ok(true)),
            // For a stream, weir may already know that these were the last bytes.
            Ok(Taken::Some) => return Poll::Ready(Ok(is_at_end(exchange, conn))),
            Ok(Taken::Nothing) => {}
            Err(failed) => return Poll::Ready(Err(failed)),
        }
        // All buffered bytes were taken: the head stays, and new bytes go behind it.
        let request = &mut exchange.request;
        request.bytes.truncate(request.head.len);
        request.used = request.head.len;
        if conn.stream().poll_readable().is_pending() {
            return Poll::Pending;
        }
        match conn.stream().try_read_vec(&mut request.bytes, READ_BYTES) {
            Ok(0) if matches!(exchange.reader, Some(Reader { left: Left::All, .. })) => {
                exchange.reader = Some(Reader { left: Left::Nothing, taken: 0 });
                return Poll::Ready(Ok(true));
            }
            Ok(0) => return Poll::Ready(Err(BodyFailed::Gone(Gone::Closed(io::ErrorKind::UnexpectedEof.into())))),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The frames of a stream whose body does not match its head.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Poll::Ready(Err(refuse(exchange, Violation::MalformedRequest)));
            }
            Err(error) => return Poll::Ready(Err(BodyFailed::Gone(Gone::Closed(error)))),
        }
    }
}

/// Whether the exchange has read a stream's body to its end; if so, notes this.
fn is_at_end(exchange: &mut Exchange<'_>, conn: &Conn) -> bool {
    let Some(reader) = exchange.reader.as_mut().filter(|reader| matches!(reader.left, Left::All)) else { return false };
    let is_read = exchange.request.unread().is_empty() && conn.carried.as_ref().is_some_and(|stream| stream.is_read());
    if is_read {
        reader.left = Left::Nothing;
    }
    is_read
}

enum Taken {
    Nothing,
    Some,
    End,
}

/// Decodes the bytes behind the head.
fn take(exchange: &mut Exchange<'_>, out: &mut Vec<u8>) -> Result<Taken, BodyFailed> {
    let max = exchange.location.values.core.body_max;
    let Some(reader) = &mut exchange.reader else { return Ok(Taken::End) };
    let request = &mut exchange.request;
    let (before, used_before) = (out.len(), request.used);
    match &mut reader.left {
        Left::Nothing => return Ok(Taken::End),
        Left::Exact(left) => {
            let available = request.bytes.len().saturating_sub(request.used);
            let count = usize::try_from(*left).unwrap_or(available).min(available);
            out.extend_from_slice(request.bytes.get(request.used..request.used + count).unwrap_or_default());
            request.used += count;
            *left -= count as u64;
            if *left == 0 {
                reader.left = Left::Nothing;
            }
        }
        Left::All => {
            out.extend_from_slice(request.unread());
            request.used = request.bytes.len();
        }
        Left::Chunked(decoder) => loop {
            match decoder.next(&request.bytes, &mut request.used) {
                Ok(ChunkEvent::Data { start, end }) => {
                    out.extend_from_slice(request.bytes.get(start..end).unwrap_or_default());
                }
                Ok(ChunkEvent::NeedMore) => break,
                Ok(ChunkEvent::End) => {
                    reader.left = Left::Nothing;
                    break;
                }
                Err(violation) => return Err(refuse(exchange, violation)),
            }
        },
    }
    let got = (out.len() - before) as u64;
    reader.taken += got;
    exchange.bytes.request += (request.used - used_before) as u64;
    let taken = reader.taken;
    let is_done = reader.is_done();
    if max > 0
        && taken > max
        && !matches!(exchange.request.length, Some(BodyLength::Exact(_)))
        && !exchange.flags.discards_body
    {
        exchange.log(Level::Error, format_args!("client intended to send too large chunked body: {taken} bytes"));
        exchange.flags.keeps_alive = false;
        return Err(BodyFailed::Status(413));
    }
    Ok(if is_done {
        Taken::End
    } else if got > 0 {
        Taken::Some
    } else {
        Taken::Nothing
    })
}

fn refuse(exchange: &mut Exchange<'_>, violation: Violation) -> BodyFailed {
    exchange.flags.keeps_alive = false;
    exchange.log(Level::Error, format_args!("{}", violation.message()));
    BodyFailed::Status(violation.status())
}

/// Tells a client that weir reads its body now: opens the window of its stream, or sends `100 Continue` once if the client
/// waits for it (RFC 9110 §10.1.1).
pub async fn welcome(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), Gone> {
    if let Some(stream) = &conn.carried {
        stream.open_window();
    }
    if exchange.flags.expectation_met || exchange.request.version() != Version::Http11 {
        return Ok(());
    }
    exchange.flags.expectation_met = true;
    let expects =
        exchange.request.field(Known::Expect).is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
    if !expects || !exchange.request.unread().is_empty() {
        return Ok(());
    }
    let timeout = exchange.location.values.core.send_timeout;
    conn.write(b"HTTP/1.1 100 Continue\r\n\r\n", timeout).await
}

/// Reads the whole body, to memory or to a file as `client_body_buffer_size` and `client_body_in_file_only` say.
pub async fn read(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), BodyFailed> {
    let in_file = exchange.location.values.core.body_in_file;
    read_to(exchange, conn, in_file).await
}

/// Reads the whole body to a file, which is removed at the end of the exchange.
pub async fn read_to_file(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), BodyFailed> {
    read_to(exchange, conn, BodyInFile::Clean).await?;
    to_file(exchange)
}

/// Writes a body in memory to a file.
pub fn to_file(exchange: &mut Exchange<'_>) -> Result<(), BodyFailed> {
    let RequestBody::Memory(bytes) = &mut exchange.body else { return Ok(()) };
    let bytes = std::mem::take(bytes);
    exchange.body = RequestBody::Gone;
    let path = exchange.location.values.core.body_temp_path.clone();
    let Some((file, path)) = temporary(exchange, path.as_deref(), DIRECTORY) else {
        return Err(BodyFailed::Status(500));
    };
    let mut file = BodyFile::new(file, path);
    write(exchange, &mut file, &bytes)?;
    exchange.body = RequestBody::File(file);
    Ok(())
}

/// Writes a part of a body to its file.
fn write(exchange: &mut Exchange<'_>, file: &mut BodyFile, bytes: &[u8]) -> Result<(), BodyFailed> {
    match file.write(bytes) {
        Ok(()) => Ok(()),
        Err(Unwritten::Full) => Err(BodyFailed::Status(503)),
        Err(Unwritten::Disk(error)) => {
            exchange.log(Level::Crit, format_args!("pwrite() \"{}\" failed {}", file.path(), Os(&error)));
            Err(BodyFailed::Status(500))
        }
    }
}

async fn read_to(exchange: &mut Exchange<'_>, conn: &mut Conn, in_file: BodyInFile) -> Result<(), BodyFailed> {
    if !matches!(exchange.body, RequestBody::Unread) {
        return Ok(());
    }
    let begun = clock::now();
    read_all(exchange, conn, in_file).await?;
    counting::held(exchange, Leg::Read, begun);
    Ok(())
}

async fn read_all(exchange: &mut Exchange<'_>, conn: &mut Conn, in_file: BodyInFile) -> Result<(), BodyFailed> {
    exchange.facts.step = weir_meter::Step::ReadBody;
    welcome(exchange, conn).await.map_err(BodyFailed::Gone)?;
    let core = &exchange.location.values.core;
    let memory_max = if is_in_head_buffer(exchange, conn) { u64::MAX } else { core.body_buffer };
    let mut watch = BodyWatch::new(core.body_timeout);
    let mut bytes = Vec::new();
    let mut file: Option<BodyFile> = None;
    loop {
        let before = bytes.len();
        let done = next(exchange, conn, &mut bytes, watch.may_pause()).await?;
        watch.came(bytes.len() - before);
        let overflows = bytes.len() as u64 > memory_max || in_file != BodyInFile::Off;
        if overflows && file.is_none() && (!bytes.is_empty() || done) {
            let path = exchange.location.values.core.body_temp_path.clone();
            let Some((opened, name)) = temporary(exchange, path.as_deref(), DIRECTORY) else {
                return Err(BodyFailed::Status(500));
            };
            if in_file == BodyInFile::Off {
                exchange.log(Level::Warn, format_args!("a client request body is buffered to a temporary file {name}"));
            }
            file = Some(BodyFile::new(opened, name));
        }
        if let Some(file) = &mut file {
            write(exchange, file, &bytes)?;
            bytes.clear();
        }
        if done {
            break;
        }
    }
    exchange.body = match file {
        None => in_memory(exchange, bytes),
        Some(mut file) => {
            file.is_kept = in_file == BodyInFile::On;
            RequestBody::File(file)
        }
    };
    Ok(())
}

/// Whether the whole body came with its head into the first buffer: as in nginx, it needs no other memory then.
fn is_in_head_buffer(exchange: &Exchange<'_>, conn: &Conn) -> bool {
    let request = &exchange.request;
    conn.carried.is_none()
        && request.bytes.len() as u64 <= exchange.location.values.core.header_buffer
        && has_arrived(request.length, request.unread(), u64::MAX)
}

/// A body of these bytes. If the client declares a body without bytes, that is a body: a PUT makes an empty file of it.
fn in_memory(exchange: &Exchange<'_>, bytes: Vec<u8>) -> RequestBody {
    match exchange.request.length {
        None | Some(BodyLength::None) if bytes.is_empty() => RequestBody::Gone,
        _ => RequestBody::Memory(bytes),
    }
}

/// Reads a body of at most `bytes_max` bytes, for a handler of weir's own; a longer one is refused with 413.
pub async fn read_small(exchange: &mut Exchange<'_>, conn: &mut Conn, bytes_max: usize) -> Result<Vec<u8>, BodyFailed> {
    if matches!(exchange.request.length, Some(BodyLength::Exact(length)) if length > bytes_max as u64) {
        return Err(BodyFailed::Status(413));
    }
    exchange.facts.step = weir_meter::Step::ReadBody;
    welcome(exchange, conn).await.map_err(BodyFailed::Gone)?;
    let (mut bytes, mut watch) = (Vec::new(), BodyWatch::new(exchange.location.values.core.body_timeout));
    loop {
        let before = bytes.len();
        let done = next(exchange, conn, &mut bytes, watch.may_pause()).await?;
        watch.came(bytes.len() - before);
        if bytes.len() > bytes_max {
            return Err(BodyFailed::Status(413));
        }
        if done {
            exchange.body = RequestBody::Gone;
            return Ok(bytes);
        }
    }
}

/// Takes a body that has already arrived whole, without waiting. So `$request_body` can show a small body, and weir
/// can try another peer with it, even if requests go upstream unbuffered.
pub fn take_arrived(exchange: &mut Exchange<'_>, conn: &Conn) -> Result<(), BodyFailed> {
    let memory_max = exchange.location.values.core.body_buffer;
    let request = &mut exchange.request;
    while (request.unread().len() as u64) < memory_max {
        // The next read sees the end or the failure of the connection again.
        match conn.stream().try_read_vec(&mut request.bytes, READ_BYTES) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let is_here = match &conn.carried {
        Some(stream) if request.is_open_ended => stream.has_ended() && request.unread().len() as u64 <= memory_max,
        _ => has_arrived(request.length, request.unread(), memory_max),
    };
    if !is_here {
        return Ok(());
    }
    let mut bytes = Vec::new();
    while let Poll::Ready(read) = poll_read(exchange, conn, &mut bytes) {
        if read? {
            exchange.body = in_memory(exchange, bytes);
            break;
        }
    }
    Ok(())
}

/// Whether `bytes` begin with a whole body of at most `max` bytes, framing included.
fn has_arrived(length: Option<BodyLength>, bytes: &[u8], max: u64) -> bool {
    match length {
        None | Some(BodyLength::None | BodyLength::UntilClose) => true,
        Some(BodyLength::Exact(length)) => length <= max && length <= bytes.len() as u64,
        Some(BodyLength::Chunked) => {
            let (mut decoder, mut at) = (Decoder::of_client(), 0);
            loop {
                match decoder.next(bytes, &mut at) {
                    Ok(ChunkEvent::Data { .. }) => {}
                    Ok(ChunkEvent::End) => return at as u64 <= max,
                    Ok(ChunkEvent::NeedMore) | Err(_) => return false,
                }
            }
        }
    }
}

/// Checks the arrived part of a chunked body that nobody reads: returns the status to answer with if its framing is
/// broken or if it is larger than `client_max_body_size`. nginx: `ngx_http_discard_request_body` before it answers itself.
pub fn skim(exchange: &mut Exchange<'_>) -> Option<u16> {
    let is_unread = matches!(exchange.body, RequestBody::Unread) && exchange.reader.is_none();
    if !is_unread || exchange.request.length != Some(BodyLength::Chunked) || exchange.response.status.get() >= 300 {
        return None;
    }
    exchange.body = RequestBody::Gone;
    exchange.reader = Some(Reader::of(exchange.request));
    let taken = take(exchange, &mut Vec::new());
    // An error page does not refuse it again.
    exchange.flags.discards_body = true;
    match taken {
        Err(BodyFailed::Status(status)) => Some(status),
        Err(BodyFailed::Gone(_)) | Ok(_) => None,
    }
}

async fn next(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    out: &mut Vec<u8>,
    timeout: Duration,
) -> Result<bool, BodyFailed> {
    conn.deadline.set(timeout);
    let got = poll_fn(|_| {
        if let Poll::Ready(read) = poll_read(exchange, conn, out) {
            return Poll::Ready(Some(read));
        }
        conn.deadline.poll_expired().map(|()| None)
    })
    .await;
    match got {
        Some(read) => read,
        None => {
            exchange.flags.keeps_alive = false;
            Err(BodyFailed::Gone(Gone::TimedOut))
        }
    }
}

/// Reads and drops the rest of the body, so that the connection can serve another request; the limits of a lingering
/// close apply, and `client_max_body_size`: the client of a larger body needs another connection. nginx takes a chunked
/// body of any size there.
pub async fn discard(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), Gone> {
    if is_consumed(exchange) {
        return Ok(());
    }
    exchange.flags.discards_body = true;
    let core = &exchange.location.values.core;
    let (timeout, until) = (core.lingering_timeout, clock::now() + core.lingering_time);
    let mut sink = Vec::new();
    loop {
        sink.clear();
        match next(exchange, conn, &mut sink, timeout).await {
            Ok(_) if is_beyond_max(exchange) => return Err(Gone::Cut),
            Ok(true) => return Ok(()),
            Ok(false) if clock::now() < until => {}
            Ok(false) => return Err(Gone::TimedOut),
            Err(BodyFailed::Gone(gone)) => return Err(gone),
            Err(BodyFailed::Status(_)) => return Err(Gone::Cut),
        }
    }
}

/// Whether more of the body was read than `client_max_body_size` allows.
fn is_beyond_max(exchange: &Exchange<'_>) -> bool {
    let max = exchange.location.values.core.body_max;
    max > 0 && exchange.reader.as_ref().is_some_and(|reader| reader.taken > max)
}

static NEXT_FILE: AtomicU64 = AtomicU64::new(1);

/// The directory for bodies if `client_body_temp_path` is not set.
pub const DIRECTORY: &str = "client_body_temp";

/// How many names are tried for a temporary file.
const NAMES_MAX: u32 = 10_000;

/// Creates a temporary file in `path`, or in `default` under the prefix; `None` after logging the reason.
pub fn temporary(exchange: &mut Exchange<'_>, path: Option<&str>, default: &str) -> Option<(File, String)> {
    let directory = exchange.conf.paths.temporary(path, default);
    for _ in 0..NAMES_MAX {
        let number = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{directory}/{number:010}");
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&name) {
            Ok(file) => return Some((file, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && std::fs::create_dir_all(&directory).is_ok() => {}
            Err(error) => {
                exchange.log(Level::Crit, format_args!("open() \"{name}\" failed {}", Os(&error)));
                return None;
            }
        }
    }
    exchange.log(Level::Crit, format_args!("no free name for a temporary file in \"{directory}\""));
    None
}

#[cfg(test)]
mod tests;
