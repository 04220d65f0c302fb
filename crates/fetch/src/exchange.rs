//! One exchange on a connection that the caller made.

use std::io;

use weir_net::{Deadline, Transport};

use crate::answer::{self, Answer, whole};

/// Bytes to read at a time.
const READ_BYTES: usize = 16 << 10;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failed {
    /// The request could not be sent.
    Send(io::Error),
    /// The answer could not be received.
    Receive(io::Error),
    /// The server closed the connection before the end of its answer.
    Closed,
    /// The answer is larger than the caller wants; its status, or 0.
    Large(u16),
    /// The answer is not HTTP: the violation.
    Invalid(String),
}

/// Sends a request, and reads the answer of at most `bytes_max` bytes with its head. `input` has the bytes that arrived and
/// were not read yet; it belongs to the connection.
///
/// # Errors
/// The connection is of no use then.
pub async fn exchange(
    transport: &Transport,
    input: &mut Vec<u8>,
    request: &[u8],
    bytes_max: usize,
    deadline: &Deadline,
) -> Result<Answer, Failed> {
    send(transport, request, deadline).await.map_err(Failed::Send)?;
    let mut is_closed = false;
    loop {
        if let Some((answer, length)) = whole(input, is_closed).map_err(Failed::Invalid)? {
            input.drain(..length);
            return Ok(answer);
        }
        if is_closed {
            return Err(Failed::Closed);
        }
        if input.len() >= bytes_max {
            return Err(Failed::Large(answer::status(input)));
        }
        is_closed = receive(transport, input, deadline).await.map_err(Failed::Receive)?;
    }
}

/// Sends bytes.
///
/// # Errors
/// Those of the connection, or the deadline has passed.
pub async fn send(transport: &Transport, mut rest: &[u8], deadline: &Deadline) -> io::Result<()> {
    while !rest.is_empty() {
        match transport.try_write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => transport.writable(deadline).await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for more bytes; true if the other side has closed the connection.
///
/// # Errors
/// As [`send`].
pub async fn receive(transport: &Transport, input: &mut Vec<u8>, deadline: &Deadline) -> io::Result<bool> {
    loop {
        match transport.try_read_vec(input, READ_BYTES) {
            Ok(count) => return Ok(count == 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => transport.readable(deadline).await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
