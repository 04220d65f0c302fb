//! The requests that the client sent and the answers that it saw, from its report.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_load::record::Hdr;

use super::known::KnownBlock;
use super::signals::{LoadSignals, Messages, UserCounts};
use crate::block::Block;
use crate::series::Series;
use crate::texts;

/// Buckets of latencies: lower bound in ms, ratio, number. Each is 5 % wide, from 0.1 ms to 10 minutes.
const BOUNDS: (f64, f64, usize) = (0.1, 1.05, 320);
/// The latencies that are read from a report.
pub(super) const QUANTILES: [&str; 5] = ["mean", "p50", "p95", "p99", "max"];
/// Most windows of a block that are checked for growth.
const WINDOWS_MAX: f64 = 100_000.0;

/// The load of a block, from the client's report and the block's counters.
pub(super) fn load(
    answer: &Value,
    counters: &BTreeMap<String, u64>,
    hdr: &Hdr,
    block: &Block,
    known: &KnownBlock<'_>,
) -> LoadSignals {
    let weir = &answer["load"]["weir"];
    let statuses: BTreeMap<u16, u64> = counters
        .iter()
        .filter_map(|(name, count)| Some((name.strip_prefix("http.codes.")?.parse().ok()?, *count)))
        .collect();
    let of = |name: &str| counters.get(name).copied().unwrap_or(0);
    let well: u64 = statuses.iter().filter(|(status, _)| known.good.has(**status)).map(|(_, count)| count).sum();
    // A refused request failed. An error status that the user declared good did not.
    let is_good = |name: &str| name.parse().is_ok_and(|status| known.good.has(status));
    let mut errors: BTreeMap<String, u64> =
        block.errors.iter().filter(|(name, _)| !is_good(name)).map(|(name, count)| (name.clone(), *count)).collect();
    let refused = statuses.iter().filter(|(status, count)| **count > 0 && !known.good.has(**status));
    errors.extend(refused.map(|(status, count)| (status.to_string(), *count)));
    let messages = messages(weir, counters);
    // The status of an answer that was cut off came before its end. A request is good or failed, not both.
    let sent = block.requests.max(block.errors.values().sum());
    let well = well.min(sent.saturating_sub(errors.values().sum()));
    let mean = |name: &str| weir[name]["mean"].as_f64();
    let series = Series::of(&answer["load"]);
    let windows = windows(&answer["load"], known.length_s);
    LoadSignals {
        offered: known.offered,
        length_s: known.length_s,
        accepts_gzip: accepts_gzip(&known.spec.client.argv),
        is_get: is_path(&known.spec.client.argv).then_some(true),
        is_outside: false,
        is_closed: known.is_closed,
        connections: known.connections,
        // Requests that failed before they were sent count as wanted.
        sent,
        answered: statuses.values().sum::<u64>() + messages.good,
        well: well + messages.good,
        good: known.good.clone(),
        errors,
        statuses,
        ms: QUANTILES.map(|key| weir["response"][key].as_f64().unwrap_or(0.0)),
        unsent_ms: mean("response").zip(mean("service")).map_or(0.0, |(due, sent)| (due - sent).max(0.0)),
        shape: shape(hdr),
        first_error_s: first_error(&answer["load"]),
        strip: series.map(|series| series.throughput).unwrap_or_default(),
        sent_strip: windows.sent,
        flight: windows.flight,
        medians: windows.medians,
        bytes: of("http.downloaded_bytes"),
        incomplete: weir["incomplete"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        // If every request fails, there are no figures to compare. The failures still need an explanation.
        spoiled: block.why_spoiled().into_iter().filter(|why| !why.is(texts::TOO_FEW_TO_SAY)).collect(),
        cautions: block.said_cautions(),
        upgrades: (of("http.codes.101"), of("vusers.created")),
        messages,
        planned: known.planned,
        users: UserCounts {
            created: of("vusers.created"),
            completed: of("vusers.completed"),
            failed: of("vusers.failed"),
            skipped: of("vusers.skipped"),
        },
        sessions: sessions(&answer["load"]["aggregate"]["summaries"]["vusers.session_length"]),
    }
}

/// Failures of messages that came, and were not what the script expects.
const UNEXPECTED: [&str; 4] = [
    "errors.Failed capture or match",
    "errors.Failed match",
    "errors.data is not valid",
    "errors.Empty response from WS server",
];

/// The messages of a script. A message whose awaited answer did not come, or came on a connection that ended, is a failure of the phase
/// `socket`.
fn messages(weir: &Value, counters: &BTreeMap<String, u64>) -> Messages {
    let of = |name: &str| counters.get(name).copied().unwrap_or(0);
    let sent = of("websocket.messages_sent").saturating_add(of("socketio.emit"));
    let failures = weir["failures"].as_array().into_iter().flatten().filter(|failure| failure["phase"] == "socket");
    let unanswered = failures.filter_map(|failure| failure["count"].as_u64()).fold(0, u64::saturating_add);
    // In a script with requests of HTTP as well, these may be theirs.
    let is_alone = of("http.requests") == 0;
    let unexpected = UNEXPECTED.iter().filter(|_| is_alone).map(|name| of(name)).fold(0, u64::saturating_add);
    let good = sent.saturating_sub(unanswered.saturating_add(unexpected));
    Messages { sent, good, received: of("websocket.messages_received") }
}

/// The quantiles of the lengths of sessions, from the shortest on.
fn sessions(summary: &Value) -> Vec<(f64, f64)> {
    const QUANTILES: [(&str, f64); 7] =
        [("min", 0.0), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];
    QUANTILES.iter().filter_map(|(name, part)| Some((*part, summary[*name].as_f64()?))).collect()
}

/// The latencies as bars: the middle of each in ms, and its count.
pub(super) fn shape(hdr: &Hdr) -> Vec<(f64, u64)> {
    let (low, step, count) = BOUNDS;
    let bounds: Vec<u64> = (0..=count).map(|n| (low * step.powi(i32::try_from(n).unwrap_or(0)) * 1e6) as u64).collect();
    let bars = hdr.bars(&bounds).into_iter().zip(&bounds).filter(|(count, _)| *count > 0);
    bars.map(|(count, bound)| (*bound as f64 / 1e6 * 1.025, count)).collect()
}

/// Whether the load asks for one URL, with GET. Otherwise it is a script.
fn is_path(argv: &[String]) -> bool {
    argv.iter().any(|word| word.starts_with("http://") || word.starts_with("https://"))
        && !argv.iter().any(|word| word == "-t")
}

/// Whether the requests of a load accept compressed answers. `None`: unknown, for a script, since its steps set that.
fn accepts_gzip(argv: &[String]) -> Option<bool> {
    let fields = argv.windows(2).filter(|pair| pair.first().is_some_and(|flag| flag == "-H"));
    let is_asked = |field: &String| {
        let field = field.to_ascii_lowercase();
        field.split_once(':').is_some_and(|(name, value)| name.trim() == "accept-encoding" && value.contains("gzip"))
    };
    is_path(argv).then(|| fields.filter_map(|pair| pair.get(1)).any(is_asked))
}

/// The windows of a block, as long as there were requests to send.
#[derive(Default)]
struct Windows {
    sent: Vec<f64>,
    flight: Vec<f64>,
    medians: Vec<f64>,
}

/// For each window within the sending time: requests sent, requests neither answered nor given up, and the median
/// latency.
fn windows(report: &Value, length_s: f64) -> Windows {
    let series = &report["weir"]["series"];
    let interval = series["interval_ms"].as_f64().unwrap_or(0.0) / 1000.0;
    let Some(counts) = series["counts"].as_object().filter(|_| interval > 0.0) else { return Windows::default() };
    let count = (length_s / interval).floor().clamp(0.0, WINDOWS_MAX) as usize;
    let column = |wanted: &dyn Fn(&str) -> bool| {
        let mut sums = vec![0.0; count];
        for (_, column) in counts.iter().filter(|(name, _)| wanted(name)) {
            let values = column.as_array().into_iter().flatten();
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.as_f64().unwrap_or(0.0));
        }
        sums
    };
    let sent = column(&|name| name == "http.requests");
    let done = column(&|name| name.starts_with("http.codes.") || name.starts_with("errors."));
    let mut open = 0.0f64;
    let mut flight = Vec::with_capacity(count);
    for (sent, done) in sent.iter().zip(done) {
        // A response can be counted as an error too, if it did not meet an expectation of the script.
        open = (open + sent - done).max(0.0);
        flight.push(open);
    }
    let medians = series["response"]["p50"].as_array().into_iter().flatten().take(count).filter_map(Value::as_f64);
    Windows { medians: medians.collect(), sent, flight }
}

/// The start of the first window with a failure, s.
fn first_error(report: &Value) -> Option<f64> {
    let series = &report["weir"]["series"];
    let interval = series["interval_ms"].as_f64()? / 1000.0;
    let failing = series["counts"].as_object()?.iter().filter(|(name, _)| {
        name.starts_with("errors.") || name.strip_prefix("http.codes.").is_some_and(|code| code.starts_with('5'))
    });
    let first = failing.filter_map(|(_, counts)| {
        counts.as_array()?.iter().position(|count| count.as_f64().is_some_and(|count| count > 0.0))
    });
    first.min().map(|window| window as f64 * interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_in_flight_is_told_window_by_window() {
        let counts = json!({"http.requests": [75, 75, 75, 75, 40], "http.codes.200": [40, 45, 45, 40, 90], "http.codes.503": [5, 0, 0, 0, 0], "errors.ETIMEDOUT": [0, 0, 0, 5, 0]});
        let series =
            json!({"interval_ms": 500, "length": 5, "counts": counts, "response": {"p50": [1.0, null, 3.0, 4.0, 9.0]}});
        let found = windows(&json!({"weir": {"series": series}}), 2.0);
        // Windows after the sending time only drain the last requests.
        assert_eq!((found.sent, found.flight), (vec![75.0; 4], vec![30.0, 60.0, 90.0, 120.0]));
        assert_eq!(found.medians, [1.0, 3.0, 4.0]);
        assert!(windows(&json!({"weir": {"series": null}}), 2.0).flight.is_empty());
    }

    #[test]
    fn a_message_without_its_answer_is_not_good() {
        let of = |list: &[(&str, u64)]| list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let failed = json!({"failures": [{"phase": "socket", "name": "response timeout", "count": 6}, {"phase": "connect", "count": 3}]});
        let emits = of(&[("socketio.emit", 80), ("errors.response timeout", 6)]);
        assert_eq!(messages(&failed, &emits), Messages { sent: 80, good: 74, received: 0 });
        // Messages that a server sends by itself are no answers of this load.
        let pushed = of(&[("websocket.messages_sent", 10), ("websocket.messages_received", 900)]);
        assert_eq!(messages(&json!({}), &pushed), Messages { sent: 10, good: 10, received: 900 });
        let wrong = of(&[("websocket.messages_sent", 10), ("errors.Failed capture or match", 4)]);
        assert_eq!(messages(&json!({}), &wrong).good, 6);
    }

    #[test]
    fn a_load_says_whether_it_takes_what_is_compressed() {
        let of = |text: &str| accepts_gzip(&text.split('|').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("weir|load|http://127.0.0.1/|-H|Accept-Encoding: br, gzip"), Some(true));
        assert_eq!(of("weir|load|http://127.0.0.1/|-H|X: gzip"), Some(false));
        assert_eq!(of("weir|load|a.yml|-t|http://127.0.0.1"), None);
        let is_path = |text: &str| is_path(&text.split('|').map(str::to_owned).collect::<Vec<_>>());
        assert!(is_path("weir|load|http://127.0.0.1/") && !is_path("weir|load|a.yml|-t|http://127.0.0.1"));
    }
}
