//! Upgraded connections, as a worker counts them.

use weir_meter::live::CLOSE_AGES_S;
use weir_meter::live::histogram::{Count, Histogram};

/// The side that ended a tunnel.
#[derive(Clone, Copy, Debug)]
pub enum Closer {
    /// The client.
    Client,
    /// The upstream.
    Upstream,
    /// `proxy_read_timeout`.
    Timeout,
    /// weir: a reload, a stop, a full table.
    Edge,
    /// A connection failed.
    Error,
}

impl Closer {
    /// The words in the order of their numbers.
    pub const WORDS: [&str; 5] = ["client", "upstream", "timeout", "edge", "error"];
}

/// The sender of something in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The client.
    Client,
    /// The upstream.
    Upstream,
    /// Nobody.
    Nobody,
}

impl Sender {
    /// All of them, in the order of their numbers.
    pub const ALL: [Sender; 3] = [Sender::Client, Sender::Upstream, Sender::Nobody];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Sender::Client => "client",
            Sender::Upstream => "upstream",
            Sender::Nobody => "nobody",
        }
    }
}

/// Close codes by number and sender, in the order of their first occurrence.
#[derive(Debug)]
pub struct CloseCodes {
    /// The code and how often each sender sent it; places are filled from the first one. The last place is for all
    /// codes that found no other.
    places: [(Count, [Count; Sender::ALL.len()]); CLOSE_CODES_MAX + 1],
}

/// Close codes that a worker counts one by one: the codes of RFC 6455, and as many codes of applications as one is
/// likely to use.
const CLOSE_CODES_MAX: usize = 48;

impl Default for CloseCodes {
    fn default() -> CloseCodes {
        CloseCodes {
            places: [const { (Count::new(), [const { Count::new() }; Sender::ALL.len()]) }; CLOSE_CODES_MAX + 1],
        }
    }
}

impl CloseCodes {
    /// Counts one.
    pub fn count(&self, code: u16, sender: Sender) {
        let code = u64::from(code);
        // A place with code 0 is free, so weir counts a peer's code 0 with the others.
        let mut own = self.places.iter().take(if code == 0 { 0 } else { CLOSE_CODES_MAX });
        let own = own.find(|(known, _)| known.get() == code || known.get() == 0);
        if let Some((known, _)) = own {
            known.set(code);
        }
        if let Some(count) = own.or(self.places.last()).and_then(|(_, counts)| counts.get(sender as usize)) {
            count.one();
        }
    }

    /// All that were counted.
    pub fn all(&self) -> impl Iterator<Item = (u16, Sender, u64)> {
        self.places.iter().flat_map(|(code, counts)| {
            let each = Sender::ALL.into_iter().zip(counts);
            each.map(|(sender, count)| (code.get() as u16, sender, count.get())).filter(|(.., count)| *count > 0)
        })
    }
}

/// Tunnels of one worker.
#[derive(Debug, Default)]
pub struct TunnelCell {
    /// Opened.
    pub opened: Count,
    /// Of those, WebSockets: weir reads the frame boundaries as the bytes pass.
    pub watched: Count,
    /// Closed, by [`Closer`].
    pub closed: [Count; Closer::WORDS.len()],
    /// Bytes from clients.
    pub received: Count,
    /// Bytes to clients.
    pub sent: Count,
    /// Messages from clients.
    pub messages_received: Count,
    /// Messages to clients.
    pub messages_sent: Count,
    /// Directions in which weir found bytes that are not a frame.
    pub lost: Count,
    /// How WebSockets were closed.
    pub codes: CloseCodes,
    /// The age of tunnels when they closed, in milliseconds: a histogram of microseconds ends after an hour.
    pub age_ms: Histogram,
    /// The same in the exact classes of [`CLOSE_AGES_S`].
    pub ages: [Count; CLOSE_AGES_S.len() + 1],
    /// The time from a ping to its pong: for pings of clients, for pings of upstreams.
    pub round_trips: [Histogram; 2],
}

impl TunnelCell {
    /// Counts the age of a tunnel that closed.
    pub fn lived(&self, ms: u64) {
        self.age_ms.record(ms);
        let bucket = CLOSE_AGES_S.iter().position(|end| ms <= end * 1000).unwrap_or(CLOSE_AGES_S.len());
        if let Some(count) = self.ages.get(bucket) {
            count.one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_places_until_there_are_none() {
        let codes = CloseCodes::default();
        for code in 3000..3000 + CLOSE_CODES_MAX as u16 + 5 {
            codes.count(code, Sender::Client);
        }
        codes.count(3001, Sender::Upstream);
        let all: Vec<_> = codes.all().collect();
        assert_eq!(all.len(), CLOSE_CODES_MAX + 2);
        assert!(all.contains(&(3001, Sender::Client, 1)) && all.contains(&(3001, Sender::Upstream, 1)));
        assert_eq!(all.last(), Some(&(0, Sender::Client, 5)));
    }
}
