//! WebSocket (RFC 6455): the handshake, reading and writing frames, joining messages; and the parameters of
//! permessage-deflate (RFC 7692) in a handshake.
//!
//! ```text
//!  input ─ Messages::next ─► Event (message, ping, pong, close)     encode::push_frame ─► output
//! ```
//!
//! A message that is whole and unmasked in the input is a slice of it. Only messages that are masked, in pieces or cut
//! by the end of the input are copied. The caller does the compression: a compressed message is returned compressed.
//!
//! [`Passing`] reports the messages of a relayed connection, for counters.
//!
//! Invariant: every violation of the RFC is refused by name ([`Violation`]), with its section and its close code.

mod deflate;
mod encode;
mod frame;
mod handshake;
mod messages;
mod opcode;
mod passing;
mod violation;

pub use deflate::{Deflate, DeflateOffer};
pub use encode::{close_payload, push_frame, push_masked_frame};
pub use frame::{FRAME_HEAD_BYTES_MAX, FrameHead, FrameSender, Mask};
pub use handshake::{Agreed, HandshakeFault, HandshakeKey, accept, check_answer};
pub use messages::{Messages, WebSocketEvent, check_text};
pub use opcode::{CONTROL_BYTES_MAX, Opcode, is_close_code};
pub use passing::{Mark, Passing, Seen};
pub use violation::Violation;
