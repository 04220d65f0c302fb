//! Whether the traffic of a look can answer the question of a canary.

use weir_meter::live::{CanaryLook, CanaryReason};

/// Fewer clients answer no question.
pub const CLIENTS_MIN: u64 = 200;
/// A client with more than this part of the requests is no client among others.
pub const LARGEST_MAX: f64 = 0.05;
/// More requests than this part without the key: those with it are not the traffic.
const WITHOUT_KEY_MAX: f64 = 0.5;

/// Why the traffic cannot answer: the canary does not begin.
pub fn refusal(look: &CanaryLook, largest: f64) -> Option<CanaryReason> {
    let all = look.requests + look.without_key;
    if all > 0 && look.without_key as f64 > WITHOUT_KEY_MAX * all as f64 {
        return Some(CanaryReason::NoKey);
    }
    if largest > LARGEST_MAX {
        return Some(CanaryReason::LargeClient);
    }
    (look.clients_expected < CLIENTS_MIN).then_some(CanaryReason::FewClients)
}
