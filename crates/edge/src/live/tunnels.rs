//! Upgraded connections: the counters of one worker, and the sums of all workers as shown.

use weir_meter::live::histogram::{Count, Histogram, Tally};
use weir_meter::live::{AgeBucket, CLOSE_AGES_S, CloseCode, Times, WebSockets};

use super::Live;
use crate::conf::Conf;

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
    const ALL: [Sender; 3] = [Sender::Client, Sender::Upstream, Sender::Nobody];

    const fn as_str(self) -> &'static str {
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

    fn all(&self) -> impl Iterator<Item = (u16, Sender, u64)> {
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
    /// Directions in which weir found bytes that are no frame.
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

/// All workers' tunnels.
pub(super) fn websockets(live: &Live, conf: &Conf) -> WebSockets {
    let mut all = WebSockets::default();
    let (mut age, mut round_trips) = (Tally::default(), [Tally::default(), Tally::default()]);
    let mut ages = [0; CLOSE_AGES_S.len() + 1];
    let (mut watched, mut received, mut sent) = (0, 0, 0);
    for (_, board) in live.taken_boards() {
        let cell = &board.tunnels;
        for (word, count) in Closer::WORDS.iter().zip(&cell.closed) {
            if count.get() > 0 {
                *all.closes.entry((*word).to_owned()).or_default() += count.get();
            }
        }
        all.opened += cell.opened.get();
        all.received += cell.received.get();
        all.sent += cell.sent.get();
        all.lost += cell.lost.get();
        watched += cell.watched.get();
        received += cell.messages_received.get();
        sent += cell.messages_sent.get();
        cell.codes.all().for_each(|(code, sender, count)| add_code(&mut all.codes, code, sender, count));
        age.add(&cell.age_ms);
        ages.iter_mut().zip(&cell.ages).for_each(|(sum, count)| *sum += count.get());
        round_trips.iter_mut().zip(&cell.round_trips).for_each(|(sum, times)| sum.add(times));
    }
    all.codes.sort_by(|one, other| (one.code, &one.by).cmp(&(other.code, &other.by)));
    all.open = all.opened.saturating_sub(all.closes.values().sum());
    (all.messages_received, all.messages_sent) = ((watched > 0).then_some(received), (watched > 0).then_some(sent));
    all.age = from_ms(age.times());
    let ends = CLOSE_AGES_S.into_iter().map(Some).chain([None]);
    all.ages = ends.zip(ages).map(|(to_s, count)| AgeBucket { to_s, count }).collect();
    [all.rtt_client, all.rtt_upstream] = round_trips.map(|tally| tally.times());
    let proxies = conf.locations.iter().filter(|location| location.values.proxy.pass.is_some());
    let timeouts = proxies.map(|location| location.values.proxy.read_timeout.as_millis() as u64);
    all.timeout_ms = timeouts.min().unwrap_or(0);
    all
}

fn add_code(codes: &mut Vec<CloseCode>, code: u16, sender: Sender, count: u64) {
    match codes.iter_mut().find(|known| known.code == code && known.by == sender.as_str()) {
        Some(known) => known.count += count,
        None => codes.push(CloseCode { code, by: sender.as_str().to_owned(), count }),
    }
}

/// Converts times that were counted in milliseconds.
fn from_ms(times: Times) -> Times {
    let us = |ms: u64| ms.saturating_mul(1000);
    Times {
        count: times.count,
        sum_us: us(times.sum_us),
        p50_us: us(times.p50_us),
        p95_us: us(times.p95_us),
        p99_us: us(times.p99_us),
        max_us: us(times.max_us),
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

    #[test]
    fn ages_are_exact_at_their_ends_and_days_are_told_apart() {
        let cell = TunnelCell::default();
        for ms in [0, 1000, 1001, 60_000, 60_001, 3 * 86_400_000] {
            cell.lived(ms);
        }
        let ages: Vec<u64> = cell.ages.iter().map(Count::get).collect();
        assert_eq!(ages.iter().sum::<u64>(), 6);
        assert_eq!((ages[0], ages.last()), (2, Some(&1)));
        let sixty = CLOSE_AGES_S.iter().position(|end| *end == 60).unwrap_or_default();
        assert_eq!((ages[sixty], ages[sixty + 1]), (1, 1));
        let mut tally = Tally::default();
        tally.add(&cell.age_ms);
        assert_eq!(from_ms(tally.times()).max_us, 3 * 86_400_000_000);
    }
}
