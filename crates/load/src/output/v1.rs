//! The console of Artillery 1.7 (`--summary v1`, artillery.md §6.1).
//!
//! Its percentiles were exact, from all samples; weir's come from the same sketch as the rest of the report.

use super::console::Console;
use super::legacy::civil;
use super::number::{duration, js};
use crate::record::{Period, Summary, WINDOW_MS, round};

/// `Started phase 0 (warm), duration: 60s @ 14:27:08(+0900) 2021-06-30`.
pub fn phase_started(console: &Console, name: Option<&str>, index: usize, shown: &str, now_ms: u64) -> String {
    if console.is_quiet {
        return String::new();
    }
    let name = name.map_or_else(String::new, |name| format!(" ({name})"));
    format!("Started phase {index}{name}, duration: {shown} @ {}\n", time(console, now_ms))
}

/// The report of a period.
pub fn period(console: &Console, period: &Period, started_ms: u64) -> String {
    if console.is_quiet {
        return String::new();
    }
    let end_ms = period.start_ms.saturating_add(WINDOW_MS);
    let elapsed = duration(end_ms.saturating_sub(started_ms)).en().to_owned();
    format!("Report @ {}\nElapsed time: {elapsed}\n{}\n", time(console, end_ms), body(period, false))
}

/// The report at the end.
pub fn summary(console: &Console, whole: &Period, now_ms: u64) -> String {
    if console.is_quiet {
        return String::new();
    }
    format!("All virtual users finished\nSummary report @ {}\n{}\n", time(console, now_ms), body(whole, true))
}

fn time(console: &Console, ms: u64) -> String {
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    let local = seconds.saturating_add(i64::from((console.zone)(seconds)) * 60);
    let (year, month, day) = civil(u64::try_from(local).unwrap_or(0) / 86_400);
    format!("{} {year:04}-{month:02}-{day:02}", console.time(ms))
}

fn body(period: &Period, is_summary: bool) -> String {
    let count = |names: &[&str]| names.iter().map(|name| period.counter(name)).find(|count| *count > 0).unwrap_or(0);
    let requests = count(&["http.requests", "socketio.emit", "websocket.messages_sent"]);
    let done = count(&["http.responses", "socketio.emit", "websocket.messages_sent"]);
    let launched = count(&["vusers.created"]);
    let mut text = format!("  Scenarios launched:  {launched}\n");
    text.push_str(&format!("  Scenarios completed: {}\n", count(&["vusers.completed"])));
    text.push_str(&format!("  Requests completed:  {done}\n"));
    text.push_str(&format!("  Mean response/sec: {}\n", js(mean_rate(period, requests))));
    let times = ["http.response_time", "socketio.response_time"];
    text.push_str("  Response time (msec):\n");
    text.push_str(&figures(times.iter().find_map(|name| period.summaries.get(*name))));
    if is_summary {
        text.push_str("  Scenario counts:\n");
        for (name, count) in after(period, "vusers.created_by_name.") {
            let part = round(count as f64 / launched as f64 * 100_000.0) / 1000.0;
            text.push_str(&format!("    {name}: {count} ({}%)\n", js(part)));
        }
    }
    for (title, prefix) in [("Codes", "http.codes."), ("Errors", "errors.")] {
        let counts: Vec<_> = after(period, prefix).collect();
        if !counts.is_empty() {
            let lines: String = counts.into_iter().map(|(name, count)| format!("    {name}: {count}\n")).collect();
            text.push_str(&format!("  {title}:\n{lines}"));
        }
    }
    text + &custom(period)
}

/// Requests per second, two decimals.
fn mean_rate(period: &Period, requests: u64) -> f64 {
    let (Some(first), Some(last)) = (period.stamps.first(), period.stamps.last()) else { return f64::NAN };
    round(requests as f64 / (last.saturating_sub(first).max(1000) as f64 / 1000.0) * 100.0) / 100.0
}

fn figures(summary: Option<&Summary>) -> String {
    let nan = f64::NAN;
    let [min, max, median, p95, p99] =
        summary.map_or([nan; 5], |summary| [summary.min, summary.max, summary.median, summary.p95, summary.p99]);
    let lines = [("min", min), ("max", max), ("median", median), ("p95", p95), ("p99", p99)];
    lines.iter().map(|(name, value)| format!("    {name}: {}\n", js(*value))).collect()
}

fn after<'a>(period: &'a Period, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    period.counters.iter().filter_map(move |(name, count)| Some((name.strip_prefix(prefix)?, *count)))
}

/// The user's own metrics: those that no engine and no plugin counts.
fn custom(period: &Period) -> String {
    const KNOWN: &[&str] =
        &["http.", "vusers.", "errors.", "socketio.", "websocket.", "plugins.", "apdex.", "metrics."];
    let is_custom = |name: &str| !KNOWN.iter().any(|prefix| name.starts_with(prefix));
    let histograms = period.summaries.iter().filter(|(name, _)| is_custom(name));
    let histograms: String =
        histograms.map(|(name, summary)| format!("  {name}:\n{}", figures(Some(summary)))).collect();
    let counters = period.counters.iter().filter(|(name, _)| is_custom(name));
    histograms + &counters.map(|(name, count)| format!("  {name}: {count}\n")).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};

    const T: u64 = 1_795_186_840_000;

    fn whole() -> Period {
        let recorder = Recorder::at(T);
        let counts = [
            ("vusers.created", 99),
            ("vusers.created_by_name.browse", 66),
            ("vusers.created_by_name.0", 33),
            ("vusers.completed", 98),
            ("http.requests", 99),
            ("http.responses", 98),
            ("http.codes.200", 98),
            ("errors.ECONNREFUSED", 1),
            ("my.counter", 4),
        ];
        counts.iter().for_each(|(name, count)| recorder.count(recorder.metric(name), *count));
        recorder.sample(recorder.metric("http.response_time"), 5.0);
        recorder.sample(recorder.metric("my.histogram"), 10.0);
        recorder.set_ms(T + 9_930);
        recorder.count(recorder.metric("vusers.failed"), 0);
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        merger.outcome().whole
    }

    #[test]
    fn the_form_of_2021() {
        let console = Console { zone: |_| 540, ..Console::default() };
        assert_eq!(
            phase_started(&console, Some("warm"), 0, "60s", T),
            "Started phase 0 (warm), duration: 60s @ 00:00:40(+0900) 2026-11-21\n"
        );
        let expected = "All virtual users finished
Summary report @ 00:00:50(+0900) 2026-11-21
  Scenarios launched:  99
  Scenarios completed: 98
  Requests completed:  98
  Mean response/sec: 9.97
  Response time (msec):
    min: 5
    max: 5
    median: 5
    p95: 5
    p99: 5
  Scenario counts:
    browse: 66 (66.667%)
    0: 33 (33.333%)
  Codes:
    200: 98
  Errors:
    ECONNREFUSED: 1
  my.histogram:
    min: 10
    max: 10
    median: 10.1
    p95: 10.1
    p99: 10.1
  my.counter: 4

";
        assert_eq!(summary(&console, &whole(), T + 10_000), expected);
    }

    #[test]
    fn a_period_says_how_long_it_has_been() {
        let text =
            period(&Console { zone: |_| 0, ..Console::default() }, &Period { start_ms: T, ..Period::default() }, T);
        assert!(
            text.starts_with(
                "Report @ 15:00:50(+0000) 2026-11-20\nElapsed time: 10 seconds\n  Scenarios launched:  0\n"
            )
        );
        assert!(text.contains("    min: NaN\n"), "{text}");
    }
}
