//! The place of one edge in the fleet: whether the ledger counts it as present, its share, and its time alone.

use crate::ledger::{BeatReply, GRACE_MS, SILENT_MS};

/// The standing of an edge at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The ledger counts the edge as away, so it goes on with its share.
    pub is_alone: bool,
    /// How much of the fleet's time the edge had for itself, in microseconds: its time alone, times its share.
    pub alone_us: i64,
    /// Its share of the rate, from 0 to 1.
    pub share: f64,
}

impl Standing {
    /// An amount of the edge's share as the same part of the whole.
    pub(crate) fn whole(self, amount: i64) -> i64 {
        if self.share > 0.0 { (amount as f64 / self.share) as i64 } else { amount }
    }
}

/// One report of an edge to the ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beat {
    /// Redis ignores the report after this time of its own clock. 0 if the edge does not know that clock: then the answer
    /// only tells it.
    pub not_after_ms: i64,
    /// The share that a ledger told the edge last; 0 if none did.
    pub held: f64,
    /// The part of a ledger's reserve that is the edge's: its share, also if no ledger told one.
    pub part: f64,
}

/// The place of an edge, as far as the edge knows it. At most one report is under way.
#[derive(Clone, Copy, Debug)]
pub struct Presence {
    share: f64,
    /// A ledger told the share.
    is_told: bool,
    /// Redis' clock, and this edge's, when the last report was answered.
    clock: Option<(i64, i64)>,
    /// No report was lost since then: the same server answers, as far as the edge knows.
    is_clock_sure: bool,
    /// When the report under way was sent, and whether it may be counted.
    under_way: Option<(i64, bool)>,
    /// When the last report was sent that the ledger may have counted, by this start or by the one before it.
    counted_ms: i64,
    alone_us: f64,
    /// The time until which `alone_us` is computed.
    until_ms: i64,
}

impl Presence {
    /// An edge that has not reported yet. `share` is its share until Redis tells it one: a ledger that begins reserves it.
    pub fn new(now_ms: i64, share: f64) -> Presence {
        Presence {
            share,
            is_told: false,
            clock: None,
            is_clock_sure: false,
            under_way: None,
            counted_ms: now_ms,
            alone_us: 0.0,
            until_ms: now_ms,
        }
    }

    /// A report to send now; `None` while another one is under way.
    pub fn beat(&mut self, now_ms: i64) -> Option<Beat> {
        if self.under_way.is_some() {
            return None;
        }
        self.pass_time(now_ms);
        // Redis' clock shows at least the time of the last answer and the time since then.
        let not_after_ms = self.redis_ms(now_ms).filter(|_| self.is_clock_sure).map_or(0, |ms| ms + GRACE_MS);
        self.under_way = Some((now_ms, not_after_ms > 0));
        Some(Beat { not_after_ms, held: if self.is_told { self.share } else { 0.0 }, part: self.share })
    }

    /// Notes the answer to the report under way.
    pub fn hear(&mut self, now_ms: i64, reply: &BeatReply) {
        self.pass_time(now_ms);
        let Some((sent_ms, _)) = self.under_way.take() else { return };
        // Over a slow connection, the next report would come too late: it asks for the clock again.
        self.is_clock_sure = now_ms - sent_ms <= GRACE_MS;
        let (BeatReply::Late { redis_ms } | BeatReply::Counted { redis_ms, .. }) = *reply;
        self.clock = Some((redis_ms, now_ms));
        if let BeatReply::Counted { share, .. } = *reply {
            (self.share, self.is_told, self.counted_ms) = (share, true, sent_ms);
        }
    }

    /// Notes that the report under way has no answer. Unless Redis refused it, nobody knows whether it was counted. The next
    /// one only asks for Redis' clock, so that an edge does not count as present again and again.
    pub fn lose(&mut self, now_ms: i64, is_refused: bool) {
        self.pass_time(now_ms);
        self.is_clock_sure = false;
        if let Some((sent_ms, true)) = self.under_way.take().filter(|_| !is_refused) {
            self.counted_ms = sent_ms;
        }
    }

    /// Redis' clock now, as far as it is known: an edge that does not reach Redis goes on with its own.
    pub fn redis_ms(&self, now_ms: i64) -> Option<i64> {
        self.clock.map(|(redis_ms, own_ms)| redis_ms + (now_ms - own_ms))
    }

    /// The standing now.
    pub fn standing(&self, now_ms: i64) -> Standing {
        Standing { is_alone: now_ms >= self.alone_from(), alone_us: self.alone_us_at(now_ms) as i64, share: self.share }
    }

    /// The time from which on the ledger cannot count the edge as present.
    fn alone_from(&self) -> i64 {
        self.counted_ms + SILENT_MS + GRACE_MS
    }

    fn alone_us_at(&self, now_ms: i64) -> f64 {
        let from = self.alone_from().max(self.until_ms);
        self.alone_us + (self.countable(now_ms) - from).max(0) as f64 * 1000.0 * self.share
    }

    /// A report under way may be counted, so the time alone ends at its sending.
    fn countable(&self, now_ms: i64) -> i64 {
        match self.under_way {
            Some((sent_ms, true)) => sent_ms.min(now_ms),
            Some((_, false)) | None => now_ms,
        }
    }

    /// The time during which a report was under way is lost: debts that leaked later for it would leak too fast.
    fn pass_time(&mut self, now_ms: i64) {
        self.alone_us = self.alone_us_at(now_ms);
        self.until_ms = self.until_ms.max(now_ms);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// How long an edge waits until it counts as alone.
    const WAITS: i64 = GRACE_MS + SILENT_MS;

    fn counted(redis_ms: i64, share: f64) -> BeatReply {
        BeatReply::Counted { redis_ms, share, edges: 2 }
    }

    #[test]
    fn an_edge_is_alone_when_the_ledger_cannot_count_it_any_more() {
        let mut presence = Presence::new(0, 0.25);
        // The start before this one may have been counted until now.
        assert!(!presence.standing(WAITS - 1).is_alone && presence.standing(WAITS).is_alone);
        assert_eq!(presence.standing(WAITS + 8).alone_us, 2000);
        let now = WAITS + 8;
        assert_eq!(presence.beat(now), Some(Beat { not_after_ms: 0, held: 0.0, part: 0.25 }));
        assert_eq!(presence.beat(now), None);
        presence.hear(now, &BeatReply::Late { redis_ms: 4999 });
        assert_eq!(presence.beat(now), Some(Beat { not_after_ms: 4999 + GRACE_MS, held: 0.0, part: 0.25 }));
        presence.hear(now + 1, &counted(5000, 0.5));
        assert!(!presence.standing(now + 1).is_alone);
        let sent = now + 101;
        assert_eq!(presence.beat(sent), Some(Beat { not_after_ms: 5100 + GRACE_MS, held: 0.5, part: 0.5 }));
        // No answer: it may have been counted, until Redis refuses it.
        presence.lose(sent, false);
        let begins = sent + WAITS;
        assert!(!presence.standing(begins - 1).is_alone && presence.standing(begins).is_alone);
        assert_eq!(presence.standing(begins + 10).alone_us, 2000 + 5000);
        assert_eq!(presence.beat(begins + 10).map(|beat| beat.not_after_ms), Some(0), "another server may answer");
        presence.lose(begins + 20, false);
        assert_eq!(presence.standing(begins + 20).alone_us, 2000 + 10_000, "it was no report that counts");
        presence.beat(begins + 20);
        presence.hear(begins + 20, &BeatReply::Late { redis_ms: 9000 });
        assert!(presence.beat(begins + 20).is_some_and(|beat| beat.not_after_ms > 0));
        presence.lose(begins + 20, true);
        assert_eq!(presence.standing(begins + 30).alone_us, 2000 + 15_000, "Redis refused it");
    }

    #[test]
    fn the_time_of_a_report_under_way_is_lost() {
        let mut presence = Presence::new(-WAITS, 1.0);
        presence.beat(50).unwrap();
        presence.hear(100, &BeatReply::Late { redis_ms: 9 });
        presence.beat(100).unwrap();
        assert_eq!(presence.standing(300).alone_us, 100_000);
        presence.hear(400, &BeatReply::Late { redis_ms: 309 });
        assert_eq!(presence.standing(400).alone_us, 100_000);
        assert_eq!(presence.beat(400).map(|beat| beat.not_after_ms), Some(0), "the connection is slow");
        assert_eq!(presence.standing(500).alone_us, 200_000);
        presence.hear(500, &BeatReply::Late { redis_ms: 409 });
        presence.beat(500).unwrap();
        presence.hear(510, &counted(419, 0.5));
        assert_eq!(presence.standing(510).alone_us, 200_000);
    }
}
