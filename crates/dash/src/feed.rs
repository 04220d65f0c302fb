//! Events for viewers: first the whole document, then each second the changes.
//!
//! A change is a merge patch (RFC 7396) with one addition: if the document has a list with the same length as before,
//! the patch for it is an object whose members are list indexes. `web/feed.js` applies the patches.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use weir_meter::live::Snapshot;

use crate::point::Point;
use crate::reason;

/// Version of the document's shape.
pub const VERSION: u32 = 1;

/// The events of one second, ready to be sent to any number of viewers.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its number; a viewer that has the frame before can apply `delta`.
    pub seq: u64,
    /// The whole document, with the history, if it was requested.
    pub whole: Option<Arc<[u8]>>,
    /// The changes since the frame before.
    pub delta: Arc<[u8]>,
}

/// The data of an event, without the event's framing.
pub fn data(event: &[u8]) -> &[u8] {
    let start = event.windows(6).position(|six| six == b"data: ").map_or(0, |at| at + 6);
    event.get(start..).unwrap_or(&[]).trim_ascii_end()
}

/// The last document and its number.
#[derive(Default)]
pub struct Feed {
    seq: u64,
    last: Value,
}

impl Feed {
    /// The events of the next second; `past` is for viewers that have no document yet.
    pub fn step(&mut self, mut doc: Value, past: Option<&VecDeque<Point>>) -> Frame {
        self.seq += 1;
        tidy(&mut doc);
        if let Value::Object(members) = &mut doc {
            members.insert("seq".to_owned(), json!(self.seq));
        }
        let changes = delta(&self.last, &doc).unwrap_or_else(|| json!({}));
        let whole = past.map(|past| {
            let mut all = json!(past);
            tidy(&mut all);
            let mut whole = doc.clone();
            if let Value::Object(members) = &mut whole {
                members.insert("past".to_owned(), all);
            }
            event("whole", self.seq, &whole)
        });
        self.last = doc;
        Frame { seq: self.seq, whole, delta: event("delta", self.seq, &changes) }
    }
}

/// One event; its JSON contains no line end.
fn event(name: &str, seq: u64, data: &Value) -> Arc<[u8]> {
    format!("id: {seq}\nevent: {name}\ndata: {data}\n\n").into_bytes().into()
}

/// Members of a peer that no view shows.
const PEER_UNSEEN: [&str; 9] = [
    "response_time_hist",
    "selected",
    "health_checks",
    "header_time",
    "response_time",
    "sent",
    "received",
    "downtime",
    "ssl",
];

/// Sizes of the host's memory in bytes.
const MEMORY: [&str; 6] = [
    "/weir/host/memory_available",
    "/weir/host/rss",
    "/weir/host/vm/swpd",
    "/weir/host/vm/free",
    "/weir/host/vm/buff",
    "/weir/host/vm/cache",
];

/// The part of a snapshot that the page shows.
pub fn view(snapshot: &Snapshot) -> Value {
    let mut value = serde_json::to_value(snapshot).unwrap_or(Value::Null);
    for path in [
        "/slabs",
        "/resolvers",
        "/processes",
        "/ssl",
        "/weir/limits",
        "/nginx/timestamp",
        "/connections",
        "/weir/websockets/age/sum_us",
        "/weir/websockets/rtt_client/sum_us",
        "/weir/websockets/rtt_upstream/sum_us",
    ] {
        remove(&mut value, path);
    }
    for size in MEMORY {
        // Kilobytes change each second, and no view shows them.
        if let Some(size) = value.pointer_mut(size)
            && let Some(bytes) = size.as_u64()
        {
            *size = json!(bytes >> 20 << 20);
        }
    }
    let peers = members(&mut value, "/http/upstreams").filter_map(|group| group.get_mut("peers"));
    for peer in peers.filter_map(Value::as_array_mut).flatten().filter_map(Value::as_object_mut) {
        for name in PEER_UNSEEN {
            peer.remove(name);
        }
        peer.get_mut("responses").into_iter().for_each(codes_only);
    }
    for path in ["/http/server_zones", "/http/location_zones"] {
        members(&mut value, path).filter_map(|zone| zone.get_mut("responses")).for_each(codes_only);
    }
    for cache in members(&mut value, "/http/caches").filter_map(Value::as_object_mut) {
        // The other members are in `weir.caches`.
        cache.retain(|name, _| matches!(name.as_str(), "size" | "max_size" | "cold"));
    }
    // Samples are most of the data in a bad minute, so a viewer requests them separately.
    let errors = value.pointer_mut("/weir/errors").and_then(Value::as_array_mut);
    for (class, error) in errors.into_iter().flatten().filter_map(Value::as_object_mut).zip(&snapshot.weir.errors) {
        class.remove("samples");
        class.insert("reason".to_owned(), json!(reason::of(error)));
        class.insert("title".to_owned(), json!(reason::title(&error.class)));
    }
    let steps = value.pointer_mut("/weir/path").and_then(Value::as_array_mut);
    steps.into_iter().flatten().for_each(recent_only);
    for path in ["/weir/server_zones", "/weir/location_zones"] {
        members(&mut value, path).for_each(|times| {
            recent_only(times);
            quantiles_only(times);
        });
    }
    for peer in members(&mut value, "/weir/upstreams").filter_map(Value::as_array_mut).flatten() {
        for times in ["connect", "header", "response"] {
            let Some(times) = peer.get_mut(times) else { continue };
            recent_only(times);
            quantiles_only(times);
            ["/rate", "/rate_max", "/recent/p50_us", "/recent/p99_us"].iter().for_each(|path| remove(times, path));
        }
        if let Some(Value::String(line)) = peer.get_mut("last_error") {
            *line = gist(line).to_owned();
        }
    }
    value
}

/// The message in a line of the error log, without time, ids and client. Those change with each line, and the samples
/// of the errors contain them.
fn gist(line: &str) -> &str {
    let said = line.split_once(": *").and_then(|(_, rest)| rest.split_once(' ')).map_or(line, |(_, said)| said);
    said.split(", client:").next().unwrap_or(said)
}

fn members<'v>(value: &'v mut Value, path: &str) -> impl Iterator<Item = &'v mut Value> {
    let members = value.pointer_mut(path).and_then(Value::as_object_mut);
    members.into_iter().flat_map(|members| members.values_mut())
}

/// Keeps the codes of responses; the page computes the classes from them.
fn codes_only(responses: &mut Value) {
    ["/1xx", "/2xx", "/3xx", "/4xx", "/5xx", "/total"].iter().for_each(|path| remove(responses, path));
}

/// Keeps the quantiles of the last seconds.
fn recent_only(times: &mut Value) {
    let Some(times) = times.as_object_mut() else { return };
    times.remove("total");
    if let Some(Value::Object(recent)) = times.get_mut("recent") {
        recent.remove("sum_us");
        recent.remove("max_us");
    }
}

/// Removes the number of durations; if it is 0, removes the quantiles too.
fn quantiles_only(times: &mut Value) {
    let Some(Value::Object(recent)) = times.get_mut("recent") else { return };
    if recent.remove("count").is_some_and(|count| count == 0) {
        recent.clear();
    }
}

fn remove(value: &mut Value, path: &str) {
    if let Some((parent, name)) = path.rsplit_once('/')
        && let Some(Value::Object(members)) = value.pointer_mut(parent)
    {
        members.remove(name);
    }
}

/// Rounds numbers to four digits, and removes null members: in a patch, null means removed.
fn tidy(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(rounded).unwrap_or_default();
            *value =
                if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) };
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let digits = (3 - number.abs().log10().floor() as i32).clamp(-300, 300);
    let power = 10f64.powi(digits.abs());
    // Divide by a power of ten; never multiply by a fraction that binary cannot represent.
    if digits < 0 { (number / power).round() * power } else { (number * power).round() / power }
}

/// The patch that turns `old` into `new`; `None` if they are equal.
pub fn delta(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (old, new) if old == new => None,
        (Value::Object(old), Value::Object(new)) => {
            let mut changes = Map::new();
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                changes.insert(name.clone(), Value::Null);
            }
            for (name, member) in new {
                match old.get(name) {
                    Some(before) => changes.extend(delta(before, member).map(|change| (name.clone(), change))),
                    None => changes.extend([(name.clone(), member.clone())]),
                }
            }
            Some(Value::Object(changes))
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let changed = old.iter().zip(new).enumerate();
            let changes = changed.filter_map(|(place, (old, new))| Some((place.to_string(), delta(old, new)?)));
            Some(Value::Object(changes.collect()))
        }
        (_, new) => Some(new.clone()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Does the same as `web/feed.js`.
    fn merge(doc: &Value, patch: &Value) -> Value {
        let Value::Object(changes) = patch else { return patch.clone() };
        if let Value::Array(list) = doc {
            let mut list = list.clone();
            for (place, change) in changes {
                let at: usize = place.parse().unwrap();
                list[at] = merge(&list[at], change);
            }
            return Value::Array(list);
        }
        let mut members = doc.as_object().cloned().unwrap_or_default();
        for (name, change) in changes {
            match change {
                Value::Null => drop(members.remove(name)),
                change => {
                    let merged = merge(members.get(name).unwrap_or(&Value::Null), change);
                    members.insert(name.clone(), merged);
                }
            }
        }
        Value::Object(members)
    }

    #[test]
    fn the_gist_of_a_line_stays_the_same() {
        let line = "2026/11/22 20:09:17 [error] 20#3: *51 connect() failed (111: Connection refused) while connecting to \
                    upstream, client: 127.0.0.1, server: shop.example";
        assert_eq!(gist(line), "connect() failed (111: Connection refused) while connecting to upstream");
        assert_eq!((gist("no such form"), gist("")), ("no such form", ""));
    }

    #[test]
    fn a_delta_makes_the_new_of_the_old() {
        let old = json!({"a": 1, "b": {"c": [1, {"d": 2, "e": 3}], "f": "x"}, "gone": 7, "same": [1, 2]});
        let new = json!({"a": 2, "b": {"c": [1, {"d": 2, "e": 4}], "f": "x"}, "came": {"h": []}, "same": [1, 2]});
        let change = delta(&old, &new).unwrap();
        assert_eq!(change, json!({"gone": null, "a": 2, "b": {"c": {"1": {"e": 4}}}, "came": {"h": []}}));
        assert_eq!(merge(&old, &change), new);
        assert_eq!(delta(&new, &new), None);
        let longer = json!([1, 2, 3]);
        assert_eq!(merge(&json!([1]), &delta(&json!([1]), &longer).unwrap()), longer);
    }

    #[test]
    fn a_feed_can_be_followed() {
        let mut feed = Feed::default();
        let past = VecDeque::from([Point::default()]);
        let first = feed.step(json!({"x": 0.123456, "list": [{"n": null, "y": 1}]}), Some(&past));
        let mut doc: Value = serde_json::from_slice(data(&first.whole.unwrap())).unwrap();
        assert_eq!((&doc["x"], &doc["list"][0]), (&json!(0.1235), &json!({"y": 1})));
        doc.as_object_mut().unwrap().remove("past");
        let second = feed.step(json!({"x": 2.0, "list": [{"n": 5, "y": 1}]}), None);
        assert!(second.whole.is_none());
        let text = std::str::from_utf8(&second.delta).unwrap();
        let data = text.strip_prefix("id: 2\nevent: delta\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let doc = merge(&doc, &serde_json::from_str(data).unwrap());
        assert_eq!(doc, json!({"seq": 2, "x": 2, "list": [{"y": 1, "n": 5}]}));
    }

    #[test]
    fn a_busy_second_stays_small() {
        let mut dashboard = crate::Dashboard::default();
        let mut snapshot = Snapshot::example();
        dashboard.observe(Arc::new(snapshot.clone()));
        dashboard.frame(true);
        let mut largest = 0;
        for second in 1..30u64 {
            snapshot.nginx.timestamp.0 += 1000;
            snapshot.weir.uptime_ms += 1000;
            snapshot.http.requests.total += 412;
            for zone in snapshot.http.server_zones.values_mut() {
                zone.requests += 412;
                zone.responses.add(200, 400 + second);
                zone.responses.add(502, second);
                zone.sent += 1_234_567;
                zone.received += 54_321;
            }
            let accounts = snapshot.weir.server_zones.values_mut().chain(snapshot.weir.location_zones.values_mut());
            for zone in accounts.map(|account| &mut account.times) {
                zone.rate += 7.3;
                (zone.recent.count, zone.total.count) = (zone.recent.count + 9, zone.total.count + 412);
                (zone.recent.p50_us, zone.recent.p95_us, zone.recent.p99_us) = (second * 9, second * 31, second * 77);
            }
            for step in &mut snapshot.weir.path {
                (step.recent.count, step.recent.p95_us, step.total.count) = (second * 400, second * 3, second * 512);
            }
            for limit in &mut snapshot.weir.limits {
                limit.used = (limit.used + 1.0).min(limit.limit);
            }
            dashboard.observe(Arc::new(snapshot.clone()));
            largest = largest.max(dashboard.frame(false).unwrap().delta.len());
        }
        assert!(largest < 5 * 1024, "{largest} bytes");
    }

    #[test]
    fn numbers_keep_four_digits() {
        for (number, wanted) in
            [(1234.567, 1235.0), (0.000123456, 0.0001235), (-98.76543, -98.77), (0.0, 0.0), (f64::MAX, f64::MAX)]
        {
            let got = rounded(number);
            assert!((got - wanted).abs() <= wanted.abs() * 1e-3, "{number}: {got}");
        }
        assert_eq!(rounded(f64::NAN), 0.0);
    }
}
