//! TLS over a [`Stream`](crate::Stream), with the same shape: try first, wait only after `WouldBlock`.
//!
//! ```text
//!  ClientOptions ─ Client::new ─► Client (one per configuration, shared by threads)
//!  Client + Stream ─ TlsStream::client ─ handshake ─► try_read_vec / try_write / readable / writable
//! ```
//!
//! ```text
//!  ServerOptions ─ Server::new ─► Server (one per `server { }`, shared by threads)
//!  Stream ─ TlsStream::accepted ─ hear ─► ClientHello ─ choose a Server, begin ─ shake ─► the same calls
//! ```
//!
//! ```text
//!  CRYPTO frames ─ open_message ─► ClientHello ─ choose a Server, Server::quic ─► QuicHandshake
//! ```
//!
//! rustls has no buffers of its own here: weir decrypts records in a buffer on loan from the worker, so a waiting
//! connection holds only its keys. If weir is a client in its own right, webpki judges the server; a refusal gets the
//! name of Node (that is, OpenSSL), so that reports look as people know them ([`Failure`]). If weir is a proxy
//! (`origin`), and for certificates of clients, OpenSSL's rules apply (`chain`), as nginx's users expect.

mod accept;
mod agreement;
mod chain;
pub mod ciphers;
mod client;
pub mod commands;
mod der;
mod describe;
mod error;
mod facts;
mod guard;
mod hello;
mod judge;
mod keys;
#[cfg(test)]
mod mutate;
pub mod ocsp;
mod origin;
mod pem;
mod quic;
mod records;
mod server;
mod sessions;
mod signature;
mod stream;
mod tickets;
mod why;
mod x509;

pub use self::der::Flaw;
pub use accept::{Alert, Beginning};
pub use agreement::Agreement;
pub use chain::{Complaint, Purpose, Trust};
pub use client::{Client, ClientCertificate, ClientOptions, OptionError, system_authorities};
pub use describe::{Described, pem as pem_of, section, subject_der};
pub use error::{Failure, HandshakeFault, failure};
pub use facts::CertificateFacts;
pub use hello::{ClientHello, HELLO_BYTES_MAX, HelloOpening, open_message};
pub use keys::{KeyError, KeyPair, Staple, certificates, key_der, revocation_lists};
pub use origin::OriginOptions;
pub use quic::{Fatal, QuicHandshake};
pub use server::{KeyLogFile, Noted, Server, ServerOptions, Unusable, begin_random, signature_name};
pub use sessions::Sessions;
pub use stream::TlsStream;
pub use tickets::{Context, SessionCache, TicketKeys, context_of};
