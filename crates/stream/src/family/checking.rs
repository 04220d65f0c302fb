//! The health checks of `stream`: their parameters, the bytes that they send, and the test for the answer.

use std::sync::Arc;

use weir_http::text::regex::Regex;

/// A `match` block.
#[derive(Default)]
pub struct Match {
    /// The bytes to send.
    pub send: Vec<u8>,
    /// The test for the peer's bytes.
    pub expect: Option<Arc<Expect>>,
}

/// `expect`.
pub enum Expect {
    /// The peer's bytes contain this text.
    Text(Vec<u8>),
    /// They match a regular expression.
    Regex(Regex),
}

impl Expect {
    /// Whether these bytes are enough.
    pub fn is_met(&self, bytes: &[u8]) -> bool {
        match self {
            Expect::Text(text) => text.is_empty() || bytes.windows(text.len()).any(|window| window == text),
            Expect::Regex(regex) => regex.is_match(bytes).unwrap_or(false),
        }
    }
}

/// The parameters of a check that only `stream` has.
#[derive(Default)]
pub struct StreamCheck {
    /// Checks by UDP.
    pub is_udp: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http::text::slots::VariableId;

    #[test]
    fn an_answer_meets_a_test_as_soon_as_it_has_the_bytes() {
        let text = |expected: &[u8]| Expect::Text(expected.to_vec());
        let regex = |pattern: &str| Expect::Regex(Regex::new(pattern, false, false, |_| VariableId(0)).unwrap());
        for (expect, bytes, is_met) in [
            (text(b""), &b""[..], true),
            (text(b"ok"), b"", false),
            (text(b"ok"), b"all ok here", true),
            (text(b"ok"), b"o", false),
            (text(b"\0\xff"), b"a\0\xff", true),
            (regex("^2.."), b"200", true),
            (regex("^2.."), b"1200", false),
        ] {
            assert_eq!(expect.is_met(bytes), is_met, "{}", bytes.escape_ascii());
        }
    }
}
