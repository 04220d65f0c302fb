//! The health checks of `stream`: the bytes that they send, their tests, and their groups.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_conf::At;
use weir_http::exchange::route::ServerId;
use weir_http::text::regex::Regex;

use super::group::StreamParts;
use weir_groups::Live;

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

/// One `health_check`.
pub struct Check {
    /// The time between two checks.
    pub interval: Duration,
    /// The time that may be added to it.
    pub jitter: Duration,
    /// Failures in a row until a peer is unhealthy.
    pub fails: u32,
    /// Successes in a row until it is healthy again.
    pub passes: u32,
    /// The port, if not the server's port.
    pub port: Option<u16>,
    /// Checks by UDP.
    pub is_udp: bool,
    /// The name of its `match`.
    pub match_name: Option<String>,
    /// A peer is unhealthy until its first check has passed.
    pub mandatory: bool,
    /// A reload keeps the result for mandatory checks.
    pub persistent: bool,
    /// The place of the statement.
    pub at: At,
    /// The place of the check, once all servers are read.
    pub placed: OnceLock<Placed>,
    /// A worker makes this check.
    pub is_watched: AtomicBool,
}

/// The place of a check.
pub struct Placed {
    /// The server.
    pub server: ServerId,
    /// The group.
    pub live: Arc<Live<StreamParts>>,
    /// The check's number among the checks of the group.
    pub number: usize,
    /// The bytes to send, and the test.
    pub tests: Option<Arc<Match>>,
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
