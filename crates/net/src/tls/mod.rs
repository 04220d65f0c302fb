//! TLS over a [`Stream`](crate::Stream), with the same shape: try first, wait only after `WouldBlock`.
//!
//! ```text
//!  ClientOptions ─ Client::new ─► Client (one per configuration, shared by threads)
//!  Client + Stream ─ TlsStream::client ─ handshake ─► try_read_vec / try_write / readable / writable
//! ```
//!
//! rustls without buffers of its own: records are decrypted in a lease of the worker's, so a connection that
//! waits holds only its keys. Who the server is, is judged by webpki; a refusal gets the name that Node (that is,
//! OpenSSL) gives it, so that reports and people's habits agree ([`Failure`]).

pub mod ciphers;
mod client;
mod der;
mod error;
mod judge;
mod records;
mod sessions;
mod stream;
mod why;

pub use client::{Client, ClientOptions, Identity, OptionError};
pub use error::{Failure, failure};
pub use sessions::Sessions;
pub use stream::TlsStream;
