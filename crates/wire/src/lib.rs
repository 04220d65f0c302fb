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
//!
//! - `parse/`, `head`, `field`, `fields`, `span`, `known`: heads as ranges of the caller's buffer; `parse/cgi` reads
//!   the head of a CGI answer
//! - `framing/`, `chunked/`, `connection/`, `host`, `target/`: the length of a body, its coding, the Connection field,
//!   host and path of a request
//! - `violation`: each refusal with its name, its status and nginx's words
//! - `encode`, `escape`, `date`, `status`: what is written
//! - `section/`: the common parts of HTTP/2 and HTTP/3: decoded field sections, the messages that they make, Huffman's
//!   code; `calm`: limits the cost of a peer that does no useful work; `role`: server or client
//! - `h2/`: HTTP/2: frames, HPACK, a connection's streams, windows and priorities
//! - `h3/`: HTTP/3 over QUIC, which is elsewhere: frames, QPACK, a connection's streams
//! - `websocket/`: handshake, frames, messages
//! - `fastcgi`, `scgi`, `uwsgi`, `memcached`, `grpc`, `protobuf`: other protocols of origins; OpenTelemetry's messages
//! - `dns/`: questions and answers of a stub resolver, a server of TXT records (`serve`), signed updates (`update`)
//! - `client_hello`, `proxy_protocol/`: a client's first TLS message; the header of load balancers
#![forbid(unsafe_code)]

mod calm;
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
pub mod h3;
pub mod head;
pub mod host;
pub mod known;
pub mod memcached;
pub mod parse;
pub mod protobuf;
pub mod proxy_protocol;
mod role;
pub mod scgi;
pub mod section;
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
