//! The priority that a client may give a stream (RFC 7540 §5.3, removed from RFC 9113).

/// The priority in a HEADERS or PRIORITY frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The stream it depends on; 0 is the root.
    pub on: u32,
    /// All streams that depended on that stream depend on this one.
    pub is_exclusive: bool,
    /// 1 to 256.
    pub weight: u16,
}

impl Priority {
    /// Reads the five bytes.
    pub fn read(bytes: &[u8; 5]) -> Priority {
        let &[a, b, c, d, weight] = bytes;
        Priority {
            on: u32::from_be_bytes([a & 0x7f, b, c, d]),
            is_exclusive: a & 0x80 != 0,
            weight: u16::from(weight) + 1,
        }
    }
}
