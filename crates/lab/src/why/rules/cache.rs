//! The cache: objects that are fetched too often, not stored, or waited for.

use crate::metric::digits;
use crate::said::{Said, say};
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
        .slows(&[Segment::Cache, Segment::Outside]);
    Some(found.knob(say!(PROXY_CACHE_USE_STALE_UPDATING), say!(NO_REQUEST_WAITS_LONGER)))
}

fn nothing_kept(s: &Signals) -> Option<FiredRule> {
    let (all, hits) =
        (answers(s), count(s, "HIT") + count(s, "STALE") + count(s, "UPDATING") + count(s, "REVALIDATED"));
    if !s.conf.has_cache || all < ANSWERS_MIN || hits as f64 > 0.02 * all as f64 {
        return None;
    }
    let (why, knob) = why_not_kept(s, all);
    let found = FiredRule::new(say!(CACHE_STORES_NOTHING), 0.9)
        .with(
            texts::LABEL_CACHE,
            say!(ANSWERS_HITS_MISSES_BYPASSED, of(hits, all), count(s, "MISS"), count(s, "BYPASS")),
        )
        .with(texts::LABEL_WHY, why)
        .slows(&[Segment::Wait]);
    Some(found.knob(knob, say!(SHARE_HITS_RISES_EDGE)))
}

/// Variables of which every request has another value.
const UNIQUE: [&str; 9] = [
    "request_id",
    "connection_requests",
    "connection",
    "msec",
    "time_iso8601",
    "time_local",
    "remote_port",
    "request_time",
    "otel_trace_id",
];

/// The variable in the key that differs for every request, as it is written there.
fn unique_in(key: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = key.split('$').skip(1).map(|rest| match rest.strip_prefix('{') {
        Some(inner) => (inner.split('}').next().unwrap_or_default(), true),
        None => (rest.split(|c| !is_word(c)).next().unwrap_or_default(), false),
    });
    let written = |(name, in_braces): (&str, bool)| if in_braces { format!("${{{name}}}") } else { format!("${name}") };
    names.into_iter().find(|(name, _)| UNIQUE.contains(name)).map(written)
}

/// The reason that was counted most often, and the remedy for it: the key, the disk, the configuration, or a field of
/// the answer.
fn why_not_kept(s: &Signals, all: u64) -> (Said, Said) {
    let conf = &s.conf.cache;
    if let Some((key, unique)) = conf.key.as_ref().and_then(|key| Some((key, unique_in(key)?))) {
        let rest = key.replace(&unique, "");
        let rest = if rest.contains('$') { rest } else { "$scheme$proxy_host$request_uri".to_owned() };
        return (say!(KEY_NEVER_REPEATS, &unique, key), say!(PROXY_CACHE_KEY, rest, unique));
    }
    let full = s.said("no_room");
    if full > 0 {
        return (say!(CACHE_WRITES_FAILED, full), say!(FREE_CACHE_DISK));
    }
    let is_ignored = |reason: &str| {
        !s.conf.is_weir && fields_of(reason).iter().all(|field| conf.ignored.iter().any(|own| own == field))
    };
    let counted = s.edge.cache.reasons.iter().filter(|(reason, _)| !is_ignored(reason));
    let known = counted.filter_map(|(reason, count)| Some((reason, *count, remedy_of(reason)?)));
    if let Some((reason, count, knob)) =
        known.max_by_key(|(_, count, _)| *count).filter(|(_, count, _)| *count * 2 >= all)
    {
        return (say!(TIMES_THE_REASON, count, reason), knob);
    }
    let bypassed = count(s, "BYPASS") * 2 >= all;
    match (&conf.excluded, conf.min_uses) {
        (Some(statement), _) if bypassed || s.edge.cache.reasons.is_empty() => {
            let place = [Said::from(&statement.text), Said::from(&statement.at)];
            (texts::STATEMENT_EXCLUDES.with(&place), say!(CHANGE_CONDITION, &statement.directive))
        }
        (_, 2..) => (say!(MIN_USES_IS, conf.min_uses), say!(PROXY_CACHE_MIN_USES)),
        _ if !conf.has_valid && !s.conf.is_weir => (say!(NO_LIFETIME_COUNTED), say!(PROXY_CACHE_VALID)),
        _ => match s.edge.cache.reasons.iter().max_by_key(|(_, count)| **count) {
            Some((reason, count)) => (say!(TIMES_THE_REASON, *count, reason), say!(CHANGE_ORIGINS_HEADER_FORBIDS)),
            None => (say!(NGINX_DOES_REPORT_REASON), say!(CHANGE_ORIGINS_HEADER_FORBIDS)),
        },
    }
}

/// The fields of an answer that a reason is about. An answer with another field of these may still be stored.
fn fields_of(reason: &str) -> &'static [&'static str] {
    match reason {
        "set-cookie" => &["set-cookie"],
        "no-store" | "no-cache" | "private" => &["cache-control"],
        "lifetime-zero" => &["cache-control", "expires"],
        "vary-star" => &["vary"],
        "x-accel-expires-0" => &["x-accel-expires"],
        // No field: it cannot be ignored.
        _ => &[""],
    }
}

/// The remedy for a reason not to store, by the names that weir's cache has for them.
fn remedy_of(reason: &str) -> Option<Said> {
    Some(match reason {
        "set-cookie" | "sets-session-cookie" => say!(NO_COOKIE_FOR_EVERYBODY),
        "no-store" | "no-cache" | "private" | "lifetime-zero" | "lifetime-invalid" | "x-accel-expires-0" => {
            say!(STATE_A_LIFETIME, reason)
        }
        "no-lifetime" => say!(PROXY_CACHE_VALID),
        "vary-star" | "vary-long" => say!(NAME_FIELDS_OF_VARY),
        "no-room" | "too-large" => say!(FREE_CACHE_DISK),
        "min-uses" => say!(PROXY_CACHE_MIN_USES),
        "unbuffered" => say!(PROXY_BUFFERING_ON),
        "proxy-no-cache" => say!(CHANGE_CONDITION, "proxy_no_cache"),
        "bypass" => say!(CHANGE_CONDITION, "proxy_cache_bypass"),
        "authorization" | "session-cookie" | "bypass-authorization" | "bypass-session-cookie" | "request-no-store" => {
            say!(SAY_PUBLIC, reason)
        }
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::policies::Policy;

    fn missed(change: impl Fn(&mut Signals)) -> (Said, Said) {
        let mut s = Signals::quiet();
        s.conf.has_cache = true;
        s.conf.cache.has_valid = true;
        said(&mut s, &[("MISS", 2000)]);
        s.edge.cache.fetches = 2000;
        change(&mut s);
        let found = nothing_kept(&s).unwrap();
        let why = found.evidence.iter().find(|(label, _)| *label == texts::LABEL_WHY).unwrap().1.clone();
        (why, found.knob)
    }

    #[test]
    fn the_remedy_is_for_the_reason_that_was_counted() {
        let (why, knob) = missed(|s| s.conf.cache.key = Some("$host${request_id}$uri".into()));
        assert!(why.contains("${request_id}"), "{why}");
        assert!(knob.starts_with("proxy_cache_key \"$host$uri\";"), "{knob}");
        let (why, knob) = missed(|s| _ = s.said.insert("no_room".into(), 70));
        assert!(why.contains("70") && knob.contains("proxy_cache_path"), "{why}: {knob}");
        let reasons = [("absent".to_owned(), 2000), ("set-cookie".to_owned(), 1990)];
        let (why, knob) = missed(|s| s.edge.cache.reasons = reasons.clone().into());
        assert!(why.contains("1990 times: set-cookie") && knob.contains("Set-Cookie"), "{why}: {knob}");
        // The header is ignored already.
        let (_, knob) = missed(|s| {
            s.edge.cache.reasons = reasons.clone().into();
            s.conf.cache.ignored = vec!["set-cookie".into()];
        });
        assert!(!knob.contains("Set-Cookie"), "{knob}");
        let (why, knob) = missed(|s| s.edge.cache.reasons = [("no-store".to_owned(), 2000)].into());
        assert!(why.contains("no-store") && knob.contains("max-age"), "{why}: {knob}");
        assert!(missed(|s| s.conf.cache.has_valid = false).1.starts_with("proxy_cache_valid 200 1s;"));
        assert!(missed(|s| s.conf.cache.min_uses = 5).1.starts_with("proxy_cache_min_uses 1;"));
        let (why, knob) = missed(|s| {
            said(s, &[("BYPASS", 2000)]);
            let (text, at) = ("proxy_cache_bypass 1".to_owned(), "nginx.conf:9".to_owned());
            s.conf.cache.excluded =
                Some(Policy { directive: "proxy_cache_bypass".into(), text, at, ..Policy::default() });
        });
        assert!(why.contains("nginx.conf:9") && knob.contains("proxy_cache_bypass"), "{why}: {knob}");
    }

    #[test]
    fn only_a_whole_name_is_a_variable_that_differs() {
        assert_eq!(unique_in("$scheme$proxy_host$request_uri"), None);
        assert_eq!(unique_in("$connections_x$uri"), None);
        assert_eq!(unique_in("$uri-$msec").as_deref(), Some("$msec"));
    }
}
