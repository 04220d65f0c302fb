//! The ledger's scripts in Rust, for clocks that are not real. `tests/fleet.rs` of the binary compares both.

use std::collections::BTreeMap;

use weir_fleet::{Beat, BeatReply, DebitReply, FORGET_MS, LimitTerms, SILENT_MS};

struct Seen {
    beat: i64,
    share: f64,
}

#[derive(Default)]
struct State {
    v: f64,
    t: i64,
    speed: f64,
    till: i64,
    reserved: f64,
    began: i64,
}

/// A ledger with one bucket.
#[derive(Default)]
pub struct Ledger {
    /// The difference between Redis' clock and the world's.
    offset: i64,
    state: Option<State>,
    edges: BTreeMap<usize, Seen>,
    bucket: Option<(i64, f64)>,
}

impl Ledger {
    pub fn new(offset: i64) -> Ledger {
        Ledger { offset, ..Ledger::default() }
    }

    /// Redis starts again without its memory.
    pub fn forget(&mut self) {
        (self.state, self.bucket) = (None, None);
        self.edges.clear();
    }

    pub fn beat(&mut self, world_ms: i64, name: usize, beat: &Beat) -> BeatReply {
        let now = world_ms + self.offset;
        if now > beat.not_after_ms {
            return BeatReply::Late { redis_ms: now };
        }
        if self.state.is_none() {
            self.edges.clear();
        }
        let state = self.state.get_or_insert_with(|| State {
            t: now,
            till: now,
            reserved: 1.0,
            began: now,
            ..State::default()
        });
        state.v += state.speed * (now.min(state.till) - state.t).max(0) as f64;
        state.t = state.t.max(now);
        self.edges.retain(|other, seen| *other == name || now - seen.beat <= FORGET_MS);
        let others = || self.edges.iter().filter(|(other, _)| **other != name).map(|(_, seen)| seen);
        if !self.edges.contains_key(&name) {
            state.reserved = (state.reserved - beat.part).max(0.0);
        }
        if now - state.began > FORGET_MS {
            state.reserved = 0.0;
        }
        let (count, booked) = (1 + others().count(), others().map(|seen| seen.share).sum::<f64>());
        let share = (1.0 / count as f64).min(1.0 - booked - state.reserved).max(0.0);
        let (mut away, mut till) = (state.reserved, now + SILENT_MS);
        for seen in others() {
            match now - seen.beat >= SILENT_MS {
                true => away += seen.share,
                false => till = till.min(seen.beat + SILENT_MS),
            }
        }
        (state.speed, state.till) = ((1.0 - away).max(0.0), till);
        self.edges.insert(name, Seen { beat: now, share: share.max(beat.held) });
        BeatReply::Counted { redis_ms: now, share, edges: count as i64 }
    }

    pub fn debit(&mut self, world_ms: i64, terms: &LimitTerms, debt: i64) -> Option<DebitReply> {
        let state = self.state.as_ref()?;
        let now = world_ms + self.offset;
        let v = state.v + state.speed * (now.min(state.till) - state.t).max(0) as f64;
        let known = self.bucket.filter(|(_, seen)| *seen <= v + 1.0);
        let (mut level, mut seen) = known.unwrap_or((terms.capacity, 0.0));
        let leaked = (terms.rate as f64 * (v - seen).max(0.0) / 1000.0).floor() as i64;
        if leaked >= level {
            (level, seen) = (0, v);
        } else if leaked > 0 {
            (level, seen) = (level - leaked, seen + leaked as f64 * 1000.0 / terms.rate as f64);
        }
        let taken = debt.min(terms.capacity - level).max(0);
        level += taken;
        if level > 0 {
            self.bucket = Some((level, seen));
        }
        Some(DebitReply { taken, level })
    }
}
