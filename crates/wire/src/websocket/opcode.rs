//! The content of a frame, and the codes of a close frame.

/// The longest payload of a control frame (RFC 6455 §5.5).
pub const CONTROL_BYTES_MAX: usize = 125;

/// The content of a frame (RFC 6455 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// The next part of a message that has begun.
    Continuation = 0,
    /// Text in UTF-8.
    Text = 1,
    /// Bytes.
    Binary = 2,
    /// The end, with a code and a reason.
    Close = 8,
    /// The receiver answers it with a pong of the same bytes.
    Ping = 9,
    /// The answer to a ping, or an unsolicited pong.
    Pong = 10,
}

impl Opcode {
    /// The opcode of that number; `None` for reserved ones.
    pub fn of(number: u8) -> Option<Opcode> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    /// Whether it is about the connection and not part of a message (RFC 6455 §5.5).
    pub fn is_control(self) -> bool {
        self as u8 & 8 != 0
    }
}

/// Whether a peer may send this close code (RFC 6455 §7.4, and the codes registered since).
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
