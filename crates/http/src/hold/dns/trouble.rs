//! Why a name has no address.

use std::fmt;

use weir_wire::dns::Code;

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A server answered with this code.
    Code(Code),
    /// No server answered in time.
    TimedOut,
    /// Questions for `FLIGHTS_MAX` other names are on their way.
    Busy,
}

impl fmt::Display for Trouble {
    /// nginx's number and words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Code(code) => write!(f, "({}: {})", code.0, code.words()),
            Trouble::TimedOut => f.write_str("(110: Operation timed out)"),
            Trouble::Busy => write!(f, "({}: too many names are being resolved)", Code::SERVER_FAILURE.0),
        }
    }
}
