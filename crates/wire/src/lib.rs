//! Turns bytes into HTTP messages, WebSocket frames, DNS messages and the messages of FastCGI, uwsgi, SCGI and
//! memcached, and back: no socket, no clock, no thread.
//!
//! ```text
//!  bytes ─ Parser ─► RequestHead / ResponseHead ─ framing ─► BodyLength ─ chunked::Decoder ─► ranges
//!                     (ranges into the buffer)   target, host, connection, date
//! ```
//!
//! Heads are ranges into the caller's buffer; field order and case are kept. weir accepts the messages that nginx
//! accepts, except messages with two possible readings: it refuses these with a named [`Violation`].
//!
//! Invariant: one function per direction decides the length of a body ([`request_body`], [`response_body`]), and
//! nothing else does.
#![forbid(unsafe_code)]

pub mod chunked;
pub mod client_hello;
pub mod connection;
pub mod date;
pub mod dns;
pub mod encode;
pub mod escape;
pub mod fastcgi;
mod field;
pub mod fields;
pub mod framing;
pub mod grpc;
pub mod h2;
pub mod head;
pub mod host;
pub mod known;
pub mod memcached;
pub mod parse;
pub mod protobuf;
pub mod proxy_protocol;
pub mod scgi;
pub mod span;
pub mod status;
pub mod target;
pub mod uwsgi;
pub mod violation;
pub mod websocket;
mod word;

pub use connection::{ConnectionTokens, answer_keeps_alive, idle_seconds, keeps_alive};
pub use framing::{BodyLength, request_body, request_method, response_body};
pub use head::{HeadPolicy, InvalidFields, RequestHead, ResponseHead, Version};
pub use host::{Host, LastHost, request_host};
pub use known::{Known, KnownSet};
pub use parse::{Parser, Progress};
pub use span::{Field, Span};
pub use violation::Violation;
