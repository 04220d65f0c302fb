//! The outcome of one client: the failures and the times of its requests.

use crate::latencies::Latencies;

/// The number of aspects.
pub const ASPECTS: usize = 7;

/// Whether a client met something, or how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aspect {
    /// At least one request failed.
    Errors,
    /// At least one connection or stream was reset.
    Resets,
    /// The share of requests that were refused.
    Refused,
    /// The mean rank of the requests among those of the old configuration before the client came: 0 is faster than all of
    /// them, 1 slower than all of them.
    Slower,
    /// The share of requests that were slower than the [`QUANTILES`](crate::latencies::QUANTILES) entry with this index, measured in the old
    /// configuration before the client came.
    Slow(usize),
}

impl Aspect {
    /// Whether it is about latencies.
    pub fn is_of_speed(self) -> bool {
        matches!(self, Aspect::Slower | Aspect::Slow(_))
    }

    /// All of them.
    pub const ALL: [Aspect; ASPECTS] = [
        Aspect::Errors,
        Aspect::Refused,
        Aspect::Slower,
        Aspect::Slow(0),
        Aspect::Slow(1),
        Aspect::Slow(2),
        Aspect::Resets,
    ];
}

/// The outcome of one client, when its window has closed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientOutcome {
    /// The coin gave the client the new configuration.
    pub is_new: bool,
    /// The probability with which the coin gives the new one: more than 0 and less than 1.
    pub share: f64,
    /// Requests of the client in its window.
    pub requests: u32,
    /// Those that failed by a fault of weir or of the origin.
    pub failed: u32,
    /// Those that were refused: the answer says that the client is at fault.
    pub refused: u32,
    /// Connections and streams that were reset, but not by the client.
    pub resets: u32,
    /// Whether its latencies were compared: else `ranks` and `slow` say nothing.
    pub is_ranked: bool,
    /// The sum of the ranks of its requests.
    pub ranks: f64,
    /// Requests that took longer than each of [`QUANTILES`](crate::latencies::QUANTILES).
    pub slow: [u32; 3],
}

impl ClientOutcome {
    /// Compares the latencies with the known ones, unless these are few. `places` are those of all requests, or of the first
    /// ones, which then stand for all.
    pub fn rank(&mut self, known: &Latencies, places: &[u16]) {
        self.is_ranked = !known.are_few();
        if !self.is_ranked || places.is_empty() {
            return;
        }
        let (mut ranks, mut slow) = (0.0, [0; 3]);
        for place in places {
            ranks += known.rank(*place);
            slow.iter_mut().zip(known.is_slow(*place)).for_each(|(sum, is_slow)| *sum += u64::from(is_slow));
        }
        let (all, count) = (u64::from(self.requests), places.len() as u64);
        self.ranks = ranks * all as f64 / count as f64;
        self.slow = slow.map(|slow| ((slow * all + count / 2) / count) as u32);
    }

    /// A number between 0 and 1: more is worse.
    pub fn harm(&self, aspect: Aspect) -> f64 {
        match aspect {
            Aspect::Errors => f64::from(u8::from(self.failed > 0)),
            Aspect::Resets => f64::from(u8::from(self.resets > 0)),
            Aspect::Refused => f64::from(self.refused.min(self.requests)) / f64::from(self.requests.max(1)),
            Aspect::Slower if self.requests == 0 || self.ranks.is_nan() => 0.5,
            Aspect::Slower => (self.ranks / f64::from(self.requests)).clamp(0.0, 1.0),
            Aspect::Slow(quantile) => {
                let slow = self.slow.get(quantile).copied().unwrap_or_default();
                f64::from(slow.min(self.requests)) / f64::from(self.requests.max(1))
            }
        }
    }

    /// The probability of the coin, within bounds that keep all numbers finite.
    pub(crate) fn coin(&self) -> f64 {
        if self.share.is_nan() { 0.5 } else { self.share.clamp(SHARE_MIN, 1.0 - SHARE_MIN) }
    }
}

/// The smallest share that a coin may have.
pub const SHARE_MIN: f64 = 0.001;
