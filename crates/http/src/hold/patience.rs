//! Decides how long weir waits for a client that sends or accepts few bytes.
//!
//! A time in the file has nginx's meaning: the longest pause between two reads, or between two writes. If the file
//! sets no time, a client that has sent or accepted hardly anything gets less: an attacker opens thousands of
//! connections that each send or accept a byte from time to time. A client that has sent or accepted enough gets
//! nginx's 60 seconds.

use std::time::Duration;

use weir_net::{Instant, clock};

/// nginx's default for all three times.
const LONGEST: Duration = Duration::from_secs(60);
/// weir's time for a client that has sent or accepted nothing yet.
pub const FIRST: Duration = Duration::from_secs(10);
/// weir gives up a body that is slower than this on average, after [`FIRST`]. Bytes per second.
const BODY_RATE_MIN: u64 = 500;
/// weir waits [`LONGEST`] for a client that has accepted this much on its connection. Bytes.
pub const TAKEN_ENOUGH: u64 = 64 << 10;

/// `send_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTimeout {
    /// The time after which weir checks the client for the first time.
    pub first: Duration,
    /// The additional time for a client that passes this check.
    pub rest: Duration,
}

impl SendTimeout {
    /// If the file does not set it.
    pub const UNWRITTEN: SendTimeout = SendTimeout { first: FIRST, rest: LONGEST.saturating_sub(FIRST) };

    /// As written.
    pub fn written(longest: Duration) -> SendTimeout {
        SendTimeout { first: longest, rest: Duration::ZERO }
    }
}

/// `client_body_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyTimeout {
    /// The longest pause between two reads.
    pub longest: Duration,
    has_rate: bool,
}

impl BodyTimeout {
    /// If the file does not set it.
    pub const UNWRITTEN: BodyTimeout = BodyTimeout { longest: LONGEST, has_rate: true };

    /// As written.
    pub fn written(longest: Duration) -> BodyTimeout {
        BodyTimeout { longest, has_rate: false }
    }
}

/// Watches over one body that is being read.
pub struct BodyWatch {
    timeout: BodyTimeout,
    begun: Instant,
    bytes: u64,
}

impl BodyWatch {
    /// Begins to watch.
    pub fn new(timeout: BodyTimeout) -> BodyWatch {
        BodyWatch { timeout, begun: clock::now(), bytes: 0 }
    }

    /// Counts bytes that arrived.
    pub fn came(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// How long the next bytes may take; zero if the body is too slow already.
    pub fn may_pause(&self) -> Duration {
        may_pause(self.timeout, clock::now().saturating_duration_since(self.begun), self.bytes)
    }
}

fn may_pause(timeout: BodyTimeout, elapsed: Duration, bytes: u64) -> Duration {
    if !timeout.has_rate {
        return timeout.longest;
    }
    let allowed = FIRST.saturating_add(Duration::from_secs(bytes / BODY_RATE_MIN));
    timeout.longest.min(allowed.saturating_sub(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_given_up_by_its_average_and_by_its_pause() {
        let seconds = Duration::from_secs;
        let pause = |elapsed, bytes| may_pause(BodyTimeout::UNWRITTEN, seconds(elapsed), bytes);
        assert_eq!(pause(0, 0), seconds(10));
        assert_eq!(pause(8, 4), seconds(2));
        assert_eq!(pause(12, 6), Duration::ZERO);
        // A megabyte has arrived: the pause is nginx's.
        assert_eq!(pause(30, 1 << 20), seconds(60));
        assert_eq!(pause(2100, 1 << 20), seconds(7));
    }

    #[test]
    fn a_written_time_is_nginxs() {
        let written = BodyTimeout::written(Duration::from_secs(20));
        assert_eq!(may_pause(written, Duration::from_secs(3600), 1), Duration::from_secs(20));
        assert_eq!(SendTimeout::written(Duration::from_secs(20)).rest, Duration::ZERO);
        assert_eq!(SendTimeout::UNWRITTEN.first + SendTimeout::UNWRITTEN.rest, LONGEST);
    }
}
