//! A stream that carries one exchange of a connection with many: heads and the end are frames, bytes are its body.
//!
//! HTTP/2's stream is one. An exchange asks no more of it than is here, so another version of HTTP may bring its own.

use std::io;

use weir_net::Carried;
use weir_wire::Known;

/// See the module.
pub trait Frames: Carried {
    /// Sends a head or trailers with the fields that `write` pushes; returns the length on the wire. `length` is the length
    /// of the body, if known; nothing follows if `ends`.
    fn send_head(&self, ends: bool, length: Option<u64>, write: &mut dyn FnMut(&mut dyn Block)) -> io::Result<usize>;

    /// Ends the answer, unless its length has ended it already.
    fn send_end(&self) -> io::Result<()>;

    /// Lets the client send the body of its request.
    fn open_window(&self);

    /// Whether all of the client's message has arrived; never if it is malformed.
    fn has_ended(&self) -> bool;

    /// Whether all of the body has been read, or none will come.
    fn is_read(&self) -> bool;

    /// Whether the message breaks the rules behind its head.
    fn is_malformed(&self) -> bool;

    /// Whether the client takes no more bytes of this stream at the moment.
    fn is_shut(&self) -> bool;

    /// Notes that the head is malformed; it may still be answered.
    fn blame(&self);

    /// Nobody serves the stream any more. As in nginx: an incomplete answer is an error of ours. A complete answer with an
    /// incomplete request means that weir does not want the rest of the request (RFC 9113 §8.1, RFC 9114 §4.1).
    fn close(&self);

    /// Bytes of a body that were sent on it.
    fn sent(&self) -> u64;
}

/// A block of fields being written.
pub trait Block {
    /// The status of an answer, which comes first.
    fn status(&mut self, status: u16);

    /// A field; its name is in lower case.
    fn field(&mut self, name: &[u8], value: &[u8], known: Option<Known>);
}
