//! Where a request's body is, and how much of it is left to read.

use std::io;

use weir_wire::BodyLength;
use weir_wire::chunked::Decoder;

use crate::exchange::body_file::BodyFile;
use crate::exchange::message::Request;

/// Where the request's body is.
#[derive(Default)]
pub enum RequestBody {
    /// Not read yet; some of it may already be behind the head.
    #[default]
    Unread,
    /// There is none, or it was read and thrown away or passed on.
    Gone,
    /// In memory.
    Memory(Vec<u8>),
    /// All of it in a file.
    File(BodyFile),
}

impl RequestBody {
    /// Its length in bytes, as far as it has been read.
    pub fn length(&self) -> u64 {
        match self {
            RequestBody::Unread | RequestBody::Gone => 0,
            RequestBody::Memory(bytes) => bytes.len() as u64,
            RequestBody::File(file) => file.length(),
        }
    }

    /// Whether variables show all of it: it is in memory, or there is none. `reader` has read it.
    pub fn is_known(&self, reader: Option<&Reader>) -> bool {
        match self {
            RequestBody::Unread | RequestBody::File(_) => false,
            RequestBody::Gone => reader.is_none_or(|reader| reader.taken == 0),
            RequestBody::Memory(_) => true,
        }
    }

    /// The same body for another exchange, none if it was not read. The first exchange removes the file of a body; the
    /// second one reads it through a descriptor of its own.
    pub fn copy(&self) -> io::Result<RequestBody> {
        Ok(match self {
            RequestBody::Unread | RequestBody::Gone => RequestBody::Gone,
            RequestBody::Memory(bytes) => RequestBody::Memory(bytes.clone()),
            RequestBody::File(file) => RequestBody::File(file.copy()?),
        })
    }
}

/// Reads one request's body. Created when its first byte is needed.
pub struct Reader {
    pub(crate) left: Left,
    pub(crate) taken: u64,
}

/// The part of a body that weir has not read yet.
pub enum Left {
    /// Nothing.
    Nothing,
    /// That many bytes.
    Exact(u64),
    /// Chunks.
    Chunked(Box<Decoder>),
    /// All bytes to the end of the stream.
    All,
}

impl Reader {
    /// The reader of a body that weir has not begun to read.
    pub fn of(request: &Request) -> Reader {
        let left = match request.length {
            // A stream's request may declare a length, but only the end of the stream ends the body.
            _ if request.is_open_ended => Left::All,
            None | Some(BodyLength::None | BodyLength::UntilClose | BodyLength::Exact(0)) => Left::Nothing,
            Some(BodyLength::Exact(length)) => Left::Exact(length),
            Some(BodyLength::Chunked) => Left::Chunked(Box::new(Decoder::of_client())),
        };
        Reader { left, taken: 0 }
    }

    /// The reader of a body of that many bytes that was read before.
    pub fn at_end(taken: u64) -> Reader {
        Reader { left: Left::Nothing, taken }
    }

    /// Bytes of the body that it has read.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the body was read to its end.
    pub fn is_done(&self) -> bool {
        matches!(self.left, Left::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_was_not_read_is_not_copied() {
        assert!(matches!(RequestBody::Unread.copy(), Ok(RequestBody::Gone)));
        assert!(
            matches!(RequestBody::Memory(b"abc".to_vec()).copy(), Ok(RequestBody::Memory(bytes)) if bytes == b"abc")
        );
    }
}
