//! The cache: objects that are fetched too often, not stored, or waited for.

use crate::metric::digits;
use crate::said::say;
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Tier, of, percent};
use crate::why::signals::Signals;

/// Least number of cache answers that a rule needs.
const ANSWERS_MIN: u64 = 50;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B29",
        says: texts::WHEN_OBJECT_EXPIRES_MANY,
        tier: Tier::Waste,
        check: stampede,
        fires: |s| {
            s.conf.has_cache = true;
            said(s, &[("HIT", 1700), ("EXPIRED", 200), ("MISS", 20)]);
            s.edge.cache.fetches = 220;
        },
        silent: |s| {
            s.conf.has_cache = true;
            s.conf.has_lock = true;
            said(s, &[("HIT", 1990), ("EXPIRED", 9)]);
        },
    },
    Rule {
        id: "B30",
        says: texts::REQUESTS_WAIT_ANOTHER_REQUESTS,
        tier: Tier::Waste,
        check: polling,
        fires: |s| {
            s.conf.has_cache = true;
            s.conf.has_lock = true;
            said(s, &[("HIT", 1900), ("MISS", 10)]);
            s.edge.cache.polled = 150;
            s.load.shape.push((505.0, 150));
        },
        silent: |s| {
            s.conf.has_cache = true;
            s.conf.has_lock = true;
            said(s, &[("HIT", 1900), ("MISS", 10)]);
        },
    },
    Rule {
        id: "B31",
        says: texts::CACHE_BUT_STORES_NOTHING,
        tier: Tier::Waste,
        check: nothing_kept,
        fires: |s| {
            s.conf.has_cache = true;
            said(s, &[("MISS", 2000)]);
            s.edge.cache.fetches = 2000;
        },
        silent: |s| {
            s.conf.has_cache = true;
            said(s, &[("HIT", 1500), ("MISS", 500)]);
        },
    },
    Rule {
        id: "B33",
        says: texts::TIME_OBJECT_EXPIRES_CLIENT,
        tier: Tier::Waste,
        check: foreground,
        fires: |s| {
            s.conf.has_cache = true;
            s.conf.has_stale_updating = true;
            said(s, &[("HIT", 1700), ("EXPIRED", 9), ("UPDATING", 280)]);
            s.edge.cache.fetches = 9;
            s.load.ms = [12.0, 1.0, 2.0, 290.0, 320.0];
        },
        silent: |s| {
            s.conf.has_cache = true;
            s.conf.has_background_update = true;
            said(s, &[("HIT", 1700), ("STALE", 9), ("UPDATING", 280)]);
            s.load.ms = [2.0, 1.0, 2.0, 4.0, 320.0];
        },
    },
];

fn said(s: &mut Signals, words: &[(&str, u64)]) {
    s.edge.cache.said = words.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
}

fn count(s: &Signals, word: &str) -> u64 {
    s.edge.cache.said.get(word).copied().unwrap_or(0)
}

fn answers(s: &Signals) -> u64 {
    s.edge.cache.said.values().sum()
}

/// A stampede also makes a connection pool look too small.
pub(super) fn stampede(s: &Signals) -> Option<FiredRule> {
    let fetched = count(s, "MISS") + count(s, "EXPIRED");
    let served = count(s, "HIT") + count(s, "STALE") + count(s, "UPDATING");
    // With one fetch at a time, fetches could only follow one another. An object with a lifetime of one second
    // expires once a second.
    let wait_s = (s.step_ms_of_wait() / 1000.0).max(0.001);
    let turns = s.seconds / (1.0_f64).max(wait_s) + 2.0;
    // nginx: ngx_http_file_cache_open() locks only objects that are missing. Every request for an expired object
    // still fetches it.
    let is_locked = s.conf.has_lock && (s.conf.is_weir || s.conf.has_stale_updating);
    if !s.conf.has_cache
        || is_locked
        || answers(s) < ANSWERS_MIN
        || served == 0
        || (fetched as f64) < 2.0 * turns
        || fetched * 2 > answers(s)
    {
        return None;
    }
    let found = FiredRule::new(say!(CACHE_WHEN_OBJECT_EXPIRES), (fetched as f64 / answers(s) as f64).max(0.5))
        .with(texts::LABEL_FETCHES, say!(ANSWERS_CAME_ORIGIN_WHERE, fetched, digits(s.seconds), digits(turns)))
        .with(texts::LABEL_CACHE, say!(HITS_MISSES_EXPIRED, served, count(s, "MISS"), count(s, "EXPIRED")))
        .with(texts::LABEL_LATENCY, say!(P50_MS_P99_MS, digits(s.load.ms[1]), digits(s.load.ms[3])))
        .slows(&[Segment::Wait]);
    let knob = if s.conf.has_lock { say!(PROXY_CACHE_USE_STALE) } else { say!(PROXY_CACHE_LOCK_PROXY) };
    Some(found.knob(knob, say!(ONE_FETCH_EXPIRY_NO)))
}

fn polling(s: &Signals) -> Option<FiredRule> {
    let polled = s.edge.cache.polled;
    let share = s.share_between(480.0, 560.0);
    if s.conf.is_weir || !s.conf.has_lock || answers(s) < ANSWERS_MIN || (polled < 5 && share < 0.005) {
        return None;
    }
    let found = FiredRule::new(say!(CACHE_WAITING_LOCK_STEPS), share.max(0.5))
        .with(texts::LABEL_WAITED, say!(ANSWERS_WITHOUT_FETCH_TOOK, polled))
        .with(texts::LABEL_LATENCY, say!(ANSWERS_TOOK_480_560, percent(share), digits(s.load.ms[1])))
        .slows(&[Segment::Edge, Segment::Outside]);
    Some(found.knob(say!(PROXY_CACHE_USE_STALE_UPDATING), say!(NO_REQUEST_WAITS_LONGER)))
}

fn nothing_kept(s: &Signals) -> Option<FiredRule> {
    let (all, hits) =
        (answers(s), count(s, "HIT") + count(s, "STALE") + count(s, "UPDATING") + count(s, "REVALIDATED"));
    if !s.conf.has_cache || all < ANSWERS_MIN || hits as f64 > 0.02 * all as f64 {
        return None;
    }
    let mut reasons: Vec<(&String, &u64)> = s.edge.cache.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let why = match reasons.first() {
        Some((reason, count)) => say!(TIMES_THE_REASON, **count, *reason),
        None => say!(NGINX_DOES_REPORT_REASON),
    };
    let found = FiredRule::new(say!(CACHE_STORES_NOTHING), 0.9)
        .with(
            texts::LABEL_CACHE,
            say!(ANSWERS_HITS_MISSES_BYPASSED, of(hits, all), count(s, "MISS"), count(s, "BYPASS")),
        )
        .with(texts::LABEL_WHY, why)
        .slows(&[Segment::Wait]);
    Some(found.knob(say!(CHANGE_ORIGINS_HEADER_FORBIDS), say!(SHARE_HITS_RISES_EDGE)))
}

fn foreground(s: &Signals) -> Option<FiredRule> {
    let expired = count(s, "EXPIRED");
    let beside = count(s, "UPDATING") + count(s, "HIT") + count(s, "STALE");
    let tail = s.load.ms[4] > 5.0 * s.load.ms[1].max(1.0);
    if s.conf.has_background_update
        || !(s.conf.has_stale_updating || s.conf.has_lock)
        || answers(s) < ANSWERS_MIN
        || expired == 0
        || !tail
    {
        return None;
    }
    if stampede(s).is_some() || polling(s).is_some() || beside == 0 {
        return None;
    }
    let found = FiredRule::new(say!(CACHE_CLIENT_WAITS_DURING), 0.6)
        .with(texts::LABEL_EXPIRED, say!(REQUESTS_WAITED_ORIGIN_ONE, expired))
        .with(texts::LABEL_LATENCY, say!(P50_MS_MAX_MS, digits(s.load.ms[1]), digits(s.load.ms[4])))
        .slows(&[Segment::Wait]);
    Some(found.knob(say!(PROXY_CACHE_BACKGROUND_UPDATE), say!(LONGEST_ANSWER_TAKES_LONG)).for_the_tail())
}

impl Signals {
    /// The mean time until an origin's response head, ms, for each request that went to an origin.
    fn step_ms_of_wait(&self) -> f64 {
        let (count, micros) = self.edge.steps.get("wait").copied().unwrap_or_default();
        micros as f64 / 1000.0 / count.max(1) as f64
    }
}
