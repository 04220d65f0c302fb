//! The report of 1.x, as 2.x writes it (artillery.md §6.2).

use serde_json::{Map, Value, json};

use super::facts::RunFacts;
use super::json::{array_index, summary, text};
use super::{number, own};
use crate::record::{Period, RunResults};

/// The report in the format of 1.x, for `ARTILLERY_USE_LEGACY_REPORT_FORMAT`. `phases` as the script wrote them.
pub fn write(outcome: &RunResults, facts: &RunFacts, phases: &Value) -> String {
    let mut document = document(outcome, phases);
    if let Value::Object(keys) = &mut document {
        keys.insert("weir".to_owned(), own::section(outcome, facts));
    }
    text(&document)
}

/// `{aggregate, intermediate}`; the phases are those of the script, unchanged.
fn document(outcome: &RunResults, phases: &Value) -> Value {
    let mut aggregate = period(&outcome.whole, false);
    aggregate.insert("phases".to_owned(), phases.clone());
    let intermediate: Vec<Value> = outcome.periods.iter().map(|at| Value::Object(period(at, true))).collect();
    json!({"aggregate": aggregate, "intermediate": intermediate})
}

fn period(period: &Period, is_intermediate: bool) -> Map<String, Value> {
    let count = |name: &str| period.counter(name);
    let first = |names: &[&str]| names.iter().map(|name| count(name)).find(|count| *count > 0).unwrap_or(0);
    let figures =
        |names: &[&str]| names.iter().find_map(|name| period.summaries.get(*name)).map_or_else(|| json!({}), summary);
    let rate = ["http.response_rate", "socketio.emit_rate"].iter().find_map(|name| period.rates.get(*name).copied());
    // In 2.x the start of a period is a text here, which JavaScript's Date cannot parse.
    let timestamp = if is_intermediate { Value::Null } else { iso(period.start_ms).into() };
    let members = [
        ("customStats", json!({})),
        ("counters", json!({})),
        ("scenariosAvoided", count("vusers.skipped").into()),
        ("timestamp", timestamp),
        ("scenariosCreated", count("vusers.created").into()),
        ("scenariosCompleted", count("vusers.completed").into()),
        ("requestsCompleted", first(&["http.responses", "socketio.emit", "websocket.messages_sent"]).into()),
        ("latency", figures(&["http.response_time", "socketio.response_time"])),
        (
            "rps",
            json!({"mean": number::json(rate.unwrap_or(0.0)), "count": first(&["http.responses", "socketio.emit"])}),
        ),
        ("scenarioDuration", figures(&["vusers.session_length"])),
        ("scenarioCounts", after(period, "vusers.created_by_name.")),
        ("errors", after(period, "errors.")),
        ("codes", codes(period)),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Counters with this prefix, by the rest of their names.
fn after(period: &Period, prefix: &str) -> Value {
    let counts = period.counters.iter().filter_map(|(name, count)| Some((name.strip_prefix(prefix)?, count)));
    let (mut indices, rest): (Vec<_>, Vec<_>) = counts.partition(|(name, _)| array_index(name).is_some());
    indices.sort_by_key(|(name, _)| array_index(name));
    let members = indices.into_iter().chain(rest);
    members.map(|(name, count)| (name.to_owned(), (*count).into())).collect::<Map<_, _>>().into()
}

fn codes(period: &Period) -> Value {
    match after(period, "http.codes.") {
        Value::Object(codes) if codes.is_empty() => after(period, "socketio.codes."),
        codes => codes,
    }
}

/// `2026-11-20T15:00:50.000Z`.
pub(super) fn iso(ms: u64) -> String {
    let seconds = ms / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// Days since 1970 as year, month and day, proleptic Gregorian.
pub(super) fn civil(days: u64) -> (u64, u64, u64) {
    // Count in eras of 400 years from 1 March of year 0, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let (era, in_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};

    #[test]
    fn the_keys_of_1_x() {
        let recorder = Recorder::at(1_795_186_850_123);
        let counts = [
            ("vusers.created_by_name.b", 2),
            ("vusers.created_by_name.0", 1),
            ("vusers.created", 3),
            ("http.responses", 5),
            ("http.codes.404", 1),
            ("http.codes.200", 4),
            ("errors.ETIMEDOUT", 2),
            ("vusers.skipped", 7),
        ];
        for (name, count) in counts {
            recorder.count(recorder.metric(name), count);
        }
        recorder.sample(recorder.metric("http.response_time"), 2.0);
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let document = document(&merger.outcome(), &json!([{"duration": 1}]));
        let whole = &document["aggregate"];
        let keys: Vec<&String> = whole.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "customStats",
                "counters",
                "scenariosAvoided",
                "timestamp",
                "scenariosCreated",
                "scenariosCompleted",
                "requestsCompleted",
                "latency",
                "rps",
                "scenarioDuration",
                "scenarioCounts",
                "errors",
                "codes",
                "phases",
            ]
        );
        assert_eq!(whole["timestamp"], "2026-11-20T15:00:50.000Z");
        assert_eq!(whole["scenarioCounts"].to_string(), r#"{"0":1,"b":2}"#);
        assert_eq!(whole["codes"].to_string(), r#"{"200":4,"404":1}"#);
        assert_eq!(
            (&whole["errors"]["ETIMEDOUT"], &whole["rps"]["count"], &whole["rps"]["mean"]),
            (&json!(2), &json!(5), &json!(0))
        );
        assert_eq!((&whole["latency"]["p99"], &whole["scenarioDuration"]), (&json!(2), &json!({})));
        assert_eq!(document["intermediate"][0]["timestamp"], Value::Null);
    }

    #[test]
    fn dates() {
        assert_eq!(
            (iso(0), iso(951_782_400_007)),
            ("1970-01-01T00:00:00.000Z".to_owned(), "2000-02-29T00:00:00.007Z".to_owned())
        );
    }
}
