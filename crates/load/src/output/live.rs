//! What is seen while the load runs: a few lines that change in place on a terminal, one line now and then elsewhere.
//!
//! The caller writes the text to stderr, so that stdout stays Artillery's.

use super::console::{Console, GRAY, RED};
use super::number::{grouped, ms};
use crate::record::{Merger, Point};

/// Cells of the bar.
const BAR: usize = 28;
/// Elsewhere than on a terminal, a line each so many ms.
const PLAIN_EVERY_MS: u64 = 5_000;
/// Kinds of errors named.
const ERRORS_SHOWN: usize = 3;

/// The view; it remembers how many lines it drew.
#[derive(Clone, Debug, Default)]
pub struct Live {
    is_terminal: bool,
    drawn: usize,
    said_ms: u64,
}

/// Where the run is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Since the first phase began.
    pub elapsed_ms: u64,
    /// Of all phases together; 0 if nobody knows.
    pub planned_ms: u64,
    /// The phase it is in.
    pub phase: String,
}

impl Live {
    /// A view for a terminal, or for what is none.
    pub fn new(is_terminal: bool) -> Live {
        Live { is_terminal, ..Live::default() }
    }

    /// What to write now; empty if it is not yet time.
    pub fn refresh(&mut self, merger: &Merger, progress: &Progress, console: &Console, now_ms: u64) -> String {
        if console.is_quiet {
            return String::new();
        }
        let point = merger.last_point(now_ms).unwrap_or_default();
        if !self.is_terminal {
            if now_ms.saturating_sub(self.said_ms) < PLAIN_EVERY_MS {
                return String::new();
            }
            self.said_ms = now_ms;
            return format!("{}\n", plain(merger, progress, &point));
        }
        let lines = drawing(merger, progress, &point, console);
        let text = self.clear() + &lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        self.drawn = lines.len();
        text
    }

    /// What takes the lines away, before anything else is written.
    pub fn clear(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            // Up to the first line drawn, then erase to the end of the screen.
            drawn => format!("\x1b[{drawn}A\r\x1b[J"),
        }
    }
}

fn plain(merger: &Merger, progress: &Progress, point: &Point) -> String {
    let latency =
        point.response.map_or_else(String::new, |[p50, _, p99, _]| format!(", p50 {} ms, p99 {} ms", ms(p50), ms(p99)));
    let (active, errors) = (active(merger), errors(merger).iter().map(|(_, count)| count).sum());
    format!(
        "{} {}: {} active, {}/s{latency}, {} errors",
        clock(progress),
        progress.phase,
        grouped(active),
        grouped(rate(merger, point)),
        grouped(errors)
    )
}

fn drawing(merger: &Merger, progress: &Progress, point: &Point, console: &Console) -> Vec<String> {
    let part = progress.elapsed_ms as f64 / progress.planned_ms.max(1) as f64;
    let full = if progress.planned_ms == 0 { 0 } else { (part.clamp(0.0, 1.0) * BAR as f64) as usize };
    let bar = format!("{}{}", "█".repeat(full), console.paint(GRAY, &"░".repeat(BAR - full)));
    let columns = console.columns.unwrap_or(80);
    let phase: String = progress.phase.chars().take(columns.saturating_sub(BAR + 18)).collect();
    let mut lines = vec![format!("{bar}  {}  {phase}", clock(progress))];
    let key = |key: &str| console.paint(GRAY, &format!("{key:<10}"));
    lines.push(format!(
        "{}{} active, {} created",
        key("vusers"),
        grouped(active(merger)),
        grouped(merger.counted("vusers.created"))
    ));
    lines.push(format!("{}{}/s", key("load"), grouped(rate(merger, point))));
    let quantiles = |four: Option<[f64; 4]>| {
        four.map_or_else(
            || "–".to_owned(),
            |[p50, p90, p99, max]| format!("p50 {}  p90 {}  p99 {}  max {} ms", ms(p50), ms(p90), ms(p99), ms(max)),
        )
    };
    lines.push(format!("{}{}", key("response"), quantiles(point.response)));
    lines.push(format!("{}{}", key("service"), quantiles(point.service)));
    let errors = errors(merger);
    let named: Vec<String> =
        errors.iter().take(ERRORS_SHOWN).map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    let named = if named.is_empty() { "none".to_owned() } else { console.paint(RED, &named.join("  ")) };
    lines.push(format!("{}{named}", key("errors")));
    lines
}

fn clock(progress: &Progress) -> String {
    let time = |ms: u64| format!("{}:{:02}", ms / 60_000, ms / 1000 % 60);
    match progress.planned_ms {
        0 => time(progress.elapsed_ms),
        planned => format!("{}/{}", time(progress.elapsed_ms), time(planned)),
    }
}

fn active(merger: &Merger) -> u64 {
    let ended = merger.counted("vusers.completed") + merger.counted("vusers.failed");
    merger.counted("vusers.created").saturating_sub(ended)
}

/// What was sent in the last whole second.
fn rate(merger: &Merger, point: &Point) -> u64 {
    let sent = ["http.requests", "websocket.messages_sent", "socketio.emit"];
    let counts = point.counts.iter().filter(|(name, _)| sent.contains(&&**name));
    counts.map(|(_, count)| count).sum::<u64>() * 1000 / merger.point_ms().max(1)
}

/// Errors so far by name, the most frequent first.
fn errors(merger: &Merger) -> Vec<(String, u64)> {
    let mut errors = merger.counted_after("errors.");
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorder;
    use std::time::Duration;

    const T: u64 = 1_795_186_840_000;

    fn merger() -> Merger {
        let recorder = Recorder::at(T);
        recorder.count(recorder.metric("vusers.created"), 12);
        recorder.count(recorder.metric("vusers.completed"), 4);
        recorder.count(recorder.metric("http.requests"), 1500);
        recorder.latency(Duration::from_millis(20), Duration::from_millis(10));
        recorder.count(recorder.metric("errors.ECONNREFUSED"), 1);
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger
    }

    fn progress() -> Progress {
        Progress { elapsed_ms: 45_000, planned_ms: 90_000, phase: "ramp".to_owned() }
    }

    #[test]
    fn a_terminal_is_redrawn_in_place() {
        let (merger, console) = (merger(), Console::default());
        let mut live = Live::new(true);
        let first = live.refresh(&merger, &progress(), &console, T + 1_500);
        assert!(first.starts_with(&format!("{}{}  0:45/1:30  ramp\n", "█".repeat(14), "░".repeat(14))), "{first}");
        for line in ["vusers    8 active, 12 created", "load      1 500/s", "errors    ECONNREFUSED 1"] {
            assert!(first.lines().any(|seen| seen == line), "{line}\n{first}");
        }
        let lines = first.lines().count();
        assert!(live.refresh(&merger, &progress(), &console, T + 1_600).starts_with(&format!("\x1b[{lines}A\r\x1b[J")));
        assert_eq!((live.clear(), live.clear()), (format!("\x1b[{lines}A\r\x1b[J"), String::new()));
    }

    #[test]
    fn elsewhere_it_is_a_line_now_and_then() {
        let (merger, console) = (merger(), Console::default());
        let mut live = Live::new(false);
        let line = live.refresh(&merger, &progress(), &console, T + 1_500);
        assert!(
            line.starts_with("0:45/1:30 ramp: 8 active, 1 500/s, p50 ") && line.ends_with(" ms, 1 errors\n"),
            "{line}"
        );
        assert_eq!(live.refresh(&merger, &progress(), &console, T + 3_000), "");
        assert_ne!(live.refresh(&merger, &progress(), &console, T + 6_500), "");
        assert!(!line.contains('\x1b') && live.clear().is_empty());
        let quiet = Console { is_quiet: true, ..console };
        assert_eq!(Live::new(true).refresh(&merger, &progress(), &quiet, T), "");
    }
}
