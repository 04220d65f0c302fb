//! `least_time`: the peer that would need the least time for its exchanges in progress and one more, relative to its
//! weight; equal peers take turns by smooth weighted round robin.

use std::cmp::Ordering;

use super::field::Field;
use super::policy::Until;

/// Longer times than this count as equal, in milliseconds; the number is nginx's, as are the two below.
const LONGEST_MS: u64 = 5000;
/// Times in one step of this many milliseconds count as equal.
const STEP_MS: u64 = 20;

pub(super) fn choose(field: &mut Field<'_>, until: Until) -> Option<usize> {
    for index in 0..field.slots.len() {
        let now_ms = field.now_ms;
        if field.usable(index)
            && let Some(state) = field.states.get_mut(index)
        {
            state.times.look(now_ms);
        }
    }
    field.least(|field, a, b| time_order(field, until, a, b))
}

/// Compares the times per unit of weight without dividing.
pub(super) fn time_order(field: &Field<'_>, until: Until, a: usize, b: usize) -> Ordering {
    let cost = |index| u128::from(needs(field, until, index));
    (cost(a) * u128::from(field.weight(b))).cmp(&(cost(b) * u128::from(field.weight(a))))
}

/// The milliseconds that the peer would need.
fn needs(field: &Field<'_>, until: Until, index: usize) -> u64 {
    let (Some(slot), Some(state)) = (field.slots.get(index), field.states.get(index)) else { return u64::MAX };
    let mut each = match until {
        Until::Header => state.times.header,
        Until::LastByte => state.times.response,
    };
    let now_s = field.now_ms / 1000;
    if slot.window_over(now_s) {
        // A slow peer that got nothing for a while gets another chance: its time halves once in fail_timeout.
        let windows = now_s.saturating_sub(slot.record.checked()) / slot.peer.fail_timeout_s.saturating_add(1);
        each = u32::try_from(windows).ok().and_then(|windows| each.checked_shr(windows)).unwrap_or(0);
    }
    if state.times.inflight_count > 0 {
        each = each.max(state.times.inflight);
    }
    let each = if each > LONGEST_MS { LONGEST_MS } else { each + STEP_MS - each % STEP_MS };
    each.saturating_mul(1 + u64::from(slot.conns()))
}
