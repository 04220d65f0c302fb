//! How many clients a question needs. These are forecasts: the judge itself does not trust them.

use crate::bet::{Larger, MoreOften};

/// The most clients that a forecast names.
pub const CLIENTS_MAX: u64 = 100_000_000;

/// Clients until an interval with this spread of a client is narrower than `margin`, if there is no harm. `None`
/// beyond [`CLIENTS_MAX`].
///
/// `deviation` is the spread of a client's number between 0 and 1, and `share` the coin's probability.
pub fn clients_until_no_harm(deviation: f64, share: f64, margin: f64, alpha: f64) -> Option<u64> {
    let spread = deviation * deviation / (share * (1.0 - share));
    // One more client that meets the rarest thing, as the interval counts it.
    let unseen = (1.0 / share).max(1.0 / (1.0 - share)).powi(2);
    let is_enough = |clients: f64| {
        let width = 2.0 * (spread + unseen / clients) * ((1.0 / alpha).ln() + 0.5 * clients.ln()) / clients;
        width.sqrt() < margin
    };
    first(is_enough)
}

/// Clients until `MoreOften` reaches `wealth`, if clients meet something with the probability `base` in the old
/// configuration, and `ratio` times as often in the new one. The expected course; `None` beyond [`CLIENTS_MAX`].
pub fn clients_until_failures_show(base: f64, ratio: f64, share: f64, wealth: f64) -> Option<u64> {
    let new = (base * ratio).min(1.0);
    let met = share * new + (1.0 - share) * base;
    if met <= 0.0 || !met.is_finite() {
        return None;
    }
    let part = share * new / met;
    let (mut bet, mut owed) = (MoreOften::new(), 0.0);
    for failed in 1..=FAILED_MAX {
        owed += part;
        let is_new = owed >= 1.0;
        owed -= f64::from(u8::from(is_new));
        bet.take(is_new, share);
        if bet.wealth() >= wealth {
            return Some((f64::from(failed) / met).ceil() as u64).filter(|clients| *clients <= CLIENTS_MAX);
        }
    }
    None
}

/// Clients until `Larger` reaches `wealth`, if numbers have this spread and are larger by `shift` in the new
/// configuration. The expected course; `None` beyond 200,000.
pub fn clients_until_slow_shows(deviation: f64, shift: f64, share: f64, wealth: f64) -> Option<u64> {
    let (mut bet, mut owed) = (Larger::new(), 0.0);
    let middle = 0.5;
    let spread = deviation.clamp(0.001, 0.5);
    for client in 0..SLOW_MAX {
        owed += share;
        let is_new = owed >= 1.0;
        owed -= f64::from(u8::from(is_new));
        // Two numbers in turn have the mean and the spread.
        let turn = if client / 2 % 2 == 0 { spread } else { -spread };
        bet.take((middle + turn + if is_new { shift } else { 0.0 }).clamp(0.0, 1.0), is_new, share);
        if bet.wealth() >= wealth {
            return Some(client + 1);
        }
    }
    None
}

/// Clients that fail, at most, in a forecast.
const FAILED_MAX: u32 = 100_000;
/// Clients, at most, in a forecast of slow requests.
const SLOW_MAX: u64 = 200_000;

/// The smallest number for which it is enough, by doubling and halving.
fn first(is_enough: impl Fn(f64) -> bool) -> Option<u64> {
    let mut high = 2u64;
    while !is_enough(high as f64) {
        high = high.saturating_mul(2);
        if high > CLIENTS_MAX {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if is_enough(middle as f64) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_margin_needs_more_clients() {
        let needed = |margin| clients_until_no_harm(0.2, 0.5, margin, 0.05);
        assert!(needed(0.02) > needed(0.05));
        assert!((1_000..20_000).contains(&needed(0.02).unwrap_or_default()), "{:?}", needed(0.02));
        assert_eq!(clients_until_no_harm(0.5, 0.001, 0.000_01, 0.05), None);
    }

    #[test]
    fn failures_and_slow_requests_have_a_forecast() {
        let failures = |ratio| clients_until_failures_show(0.01, ratio, 0.1, 40.0).unwrap_or(CLIENTS_MAX);
        assert!(failures(10.0) < failures(3.0) && failures(3.0) < failures(1.5));
        assert!(failures(10.0) < 600, "{}", failures(10.0));
        assert_eq!(clients_until_failures_show(0.0, 10.0, 0.1, 40.0), None);
        let slow = |shift| clients_until_slow_shows(0.2, shift, 0.5, 40.0).unwrap_or(CLIENTS_MAX);
        assert!(slow(0.1) < slow(0.03), "{} {}", slow(0.1), slow(0.03));
    }
}
