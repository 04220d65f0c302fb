//! The cache: objects that are fetched too often, not stored, or waited for.

use crate::metric::digits;
use crate::why::rule::{Found, Rule, Segment, Tier, of, percent};
use crate::why::signals::Signals;

/// Least number of cache answers that a rule needs.
const ANSWERS_MIN: u64 = 50;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B29",
        says: "when an object expires, many requests fetch it at once",
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
        says: "requests that wait for another request's fetch check every 500 ms",
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
        says: "the cache is on, but stores nothing",
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
        says: "each time an object expires, a client waits for the origin",
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
pub(super) fn stampede(s: &Signals) -> Option<Found> {
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
    let found = Found::new(
        "cache: when an object expires, every request fetches it",
        (fetched as f64 / answers(s) as f64).max(0.5),
    )
    .with(
        "fetches",
        format!(
            "{fetched} answers came from the origin in {} s, where about {} were needed",
            digits(s.seconds),
            digits(turns)
        ),
    )
    .with("cache", format!("{served} hits, {} misses, {} expired", count(s, "MISS"), count(s, "EXPIRED")))
    .with(
        "latency",
        format!(
            "p50 {} ms, p99 {} ms: every request at that moment waits for the origin",
            digits(s.load.ms[1]),
            digits(s.load.ms[3])
        ),
    )
    .slows(&[Segment::Wait]);
    let knob = if s.conf.has_lock {
        "proxy_cache_use_stale updating; proxy_cache_background_update on;   (the lock serves only objects that the cache does not have yet)"
    } else {
        "proxy_cache_lock on; proxy_cache_use_stale updating; proxy_cache_background_update on;"
    };
    Some(found.knob(knob, "one fetch at each expiry, and no request waits for it"))
}

fn polling(s: &Signals) -> Option<Found> {
    let polled = s.edge.cache.polled;
    let share = s.share_between(480.0, 560.0);
    if s.conf.is_weir || !s.conf.has_lock || answers(s) < ANSWERS_MIN || (polled < 5 && share < 0.005) {
        return None;
    }
    let found = Found::new("cache: waiting for the lock, in steps of 500 ms", share.max(0.5))
        .with("waited", format!("{polled} answers without a fetch took about a multiple of 500 ms"))
        .with("latency", format!("{} of answers took 480 to 560 ms; p50 {} ms", percent(share), digits(s.load.ms[1])))
        .slows(&[Segment::Edge, Segment::Outside]);
    Some(found.knob(
        "proxy_cache_use_stale updating; proxy_cache_background_update on;   (weir wakes waiting requests at once)",
        "no request waits longer than the origin takes",
    ))
}

fn nothing_kept(s: &Signals) -> Option<Found> {
    let (all, hits) =
        (answers(s), count(s, "HIT") + count(s, "STALE") + count(s, "UPDATING") + count(s, "REVALIDATED"));
    if !s.conf.has_cache || all < ANSWERS_MIN || hits as f64 > 0.02 * all as f64 {
        return None;
    }
    let mut reasons: Vec<(&String, &u64)> = s.edge.cache.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let why = match reasons.first() {
        Some((reason, count)) => format!("{count} times: {reason}"),
        None => "nginx does not report the reason: Set-Cookie, Cache-Control, Vary: * or a missing proxy_cache_valid"
            .to_owned(),
    };
    let found = Found::new("cache: it stores nothing", 0.9)
        .with(
            "cache",
            format!(
                "{} answers were hits; {} misses, {} bypassed",
                of(hits, all),
                count(s, "MISS"),
                count(s, "BYPASS")
            ),
        )
        .with("why", why)
        .slows(&[Segment::Wait]);
    Some(found.knob(
        "change the origin's header that forbids storing (or, if the answer is the same for everybody, write proxy_ignore_headers for this header only)",
        "the share of hits rises; the edge asks the origin once per lifetime",
    ))
}

fn foreground(s: &Signals) -> Option<Found> {
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
    let found = Found::new("cache: a client waits during the refresh", 0.6)
        .with("expired", format!("{expired} requests waited for the origin, one each time the object expired"))
        .with("latency", format!("p50 {} ms, max {} ms: the origin's time", digits(s.load.ms[1]), digits(s.load.ms[4])))
        .slows(&[Segment::Wait]);
    Some(found.knob("proxy_cache_background_update on;", "the longest answer takes as long as a hit"))
}

impl Signals {
    /// The mean time until an origin's response head, ms, for each request that went to an origin.
    fn step_ms_of_wait(&self) -> f64 {
        let (count, micros) = self.edge.steps.get("wait").copied().unwrap_or_default();
        micros as f64 / 1000.0 / count.max(1) as f64
    }
}
