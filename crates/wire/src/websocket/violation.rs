//! Every way to break RFC 6455, by name.

use std::fmt;

macro_rules! violations {
    ($($(#[$doc:meta])* $name:ident: $code:literal, $message:literal, $rfc:literal;)+) => {
        /// Why weir refused a peer's bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Violation {
            $($(#[$doc])* #[doc = concat!(" (", $rfc, ")")] $name,)+
        }

        impl Violation {
            /// Every variant, for tests and for the table in the documentation.
            pub const ALL: &'static [Violation] = &[$(Violation::$name,)+];

            /// Its close code (RFC 6455 §7.4.1).
            pub fn close_code(self) -> u16 {
                match self { $(Violation::$name => $code,)+ }
            }

            /// The error.
            pub fn message(self) -> &'static str {
                match self { $(Violation::$name => $message,)+ }
            }

            /// The section that demands the refusal.
            pub fn rfc(self) -> &'static str {
                match self { $(Violation::$name => $rfc,)+ }
            }
        }
    };
}

violations! {
    /// A bit to which no agreed extension gives a meaning.
    ReservedBit: 1002, "a reserved bit is set", "RFC 6455 §5.2";
    /// An opcode without a meaning.
    ReservedOpcode: 1002, "the opcode is reserved", "RFC 6455 §5.2";
    /// A client's frame without a mask.
    NotMasked: 1002, "a client's frame is not masked", "RFC 6455 §5.1";
    /// A server's frame with a mask.
    Masked: 1002, "a server's frame is masked", "RFC 6455 §5.1";
    /// A length of 2^63 or more.
    LengthTooLarge: 1002, "the length does not fit 63 bits", "RFC 6455 §5.2";
    /// A length in more bytes than it needs.
    LengthNotMinimal: 1002, "the length is not written in the fewest bytes", "RFC 6455 §5.2";
    /// A ping, pong or close in pieces.
    FragmentedControl: 1002, "a control frame is fragmented", "RFC 6455 §5.5";
    /// A ping, pong or close of more than 125 bytes.
    LongControl: 1002, "a control frame is longer than 125 bytes", "RFC 6455 §5.5";
    /// A compressed ping, pong, close or continuation.
    CompressedControl: 1002, "only the first frame of a message may be marked compressed", "RFC 7692 §6.1";
    /// A continuation without a message to continue.
    NothingToContinue: 1002, "a continuation frame begins a message", "RFC 6455 §5.4";
    /// A new message inside another.
    MessageInMessage: 1002, "a message begins before the last has ended", "RFC 6455 §5.4";
    /// A close of one byte.
    ShortClose: 1002, "a close frame holds half a code", "RFC 6455 §5.5.1";
    /// A close code that must not be sent.
    CloseCode: 1002, "the close code must not be sent", "RFC 6455 §7.4";
    /// Text that is not UTF-8.
    NotUtf8: 1007, "text is not UTF-8", "RFC 6455 §8.1";
    /// A message longer than the limit.
    MessageTooLarge: 1009, "the message is too large", "RFC 6455 §10.4";
    /// Anything after a close.
    AfterClose: 1002, "data after a close frame", "RFC 6455 §5.5.1";
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_has_a_code_words_and_a_section() {
        for violation in Violation::ALL {
            assert!(matches!(violation.close_code(), 1002 | 1007 | 1009), "{violation:?}");
            assert!(violation.rfc().starts_with("RFC "), "{violation:?}");
            assert!(!violation.message().is_empty(), "{violation:?}");
        }
    }
}
