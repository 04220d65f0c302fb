//! Artillery's console, line for line (artillery.md §3.5).

use std::cmp::Ordering;

use weir_words::{Language, Said, Text, say, width as columns};

use super::number::{duration, js};
use crate::record::{Period, Summary, WINDOW_MS};
use crate::texts;

/// Columns of a metric line for the name and the dots.
const WIDTH: usize = 79;
/// The same on a narrow terminal, at least.
const WIDTH_MIN: usize = 50;
/// Columns for a value, so that the line does not wrap: 79 columns and a value are wider than the usual 80.
const VALUE: usize = 13;
/// Least width at which weir breaks lines; a narrower terminal wraps them itself.
const WRAP_MIN: usize = 20;

/// The style of printing. Every function returns whole lines, or nothing if the console is quiet.
#[derive(Clone, Debug)]
pub struct Console {
    /// Columns of the terminal; `None` if it is not a terminal.
    pub columns: Option<usize>,
    /// True if the terminal shows colours.
    pub is_colour: bool,
    /// `--quiet`.
    pub is_quiet: bool,
    /// Metrics whose name contains one of these texts are not shown: `plugins.NAME` of plugins with `suppressOutput`.
    pub suppressed: Vec<String>,
    /// The language of the words. Names of metrics are the same in every language.
    pub language: Language,
    /// Minutes by which local time is ahead of UTC, at a time in seconds since 1970.
    pub zone: fn(i64) -> i32,
}

impl Default for Console {
    fn default() -> Console {
        Console {
            columns: None,
            is_colour: false,
            is_quiet: false,
            suppressed: Vec::new(),
            language: Language::English,
            zone: weir_net::clock::utc_offset_minutes,
        }
    }
}

impl Console {
    /// `Test run id: …`; shown even when quiet.
    pub fn test_run_id(&self, id: &str) -> String {
        self.told(&say!(texts::TEST_RUN_ID, id)) + "\n"
    }

    /// `Phase started: …` and a blank line.
    pub fn phase_started(&self, name: &str, index: usize, shown: &str, now_ms: u64) -> String {
        self.phase(texts::PHASE_STARTED, name, index, shown, now_ms)
    }

    /// `Phase completed: …` and a blank line.
    pub fn phase_completed(&self, name: &str, index: usize, shown: &str, now_ms: u64) -> String {
        self.phase(texts::PHASE_COMPLETED, name, index, shown, now_ms)
    }

    /// A period's block, with the two blank lines after it.
    pub fn period(&self, period: &Period) -> String {
        if self.is_quiet {
            return String::new();
        }
        let title = say!(texts::PERIOD_TO, self.time(period.start_ms.saturating_add(WINDOW_MS)));
        let title = self.told(&title);
        let width = match (period.stamps.first(), period.stamps.last()) {
            (Some(first), Some(last)) => last.saturating_sub(first) as f64 / 1000.0,
            _ => f64::NAN,
        };
        let width = self.paint(GRAY, &self.told(&say!(texts::PERIOD_WIDTH, js(width))));
        let rule = "-".repeat(columns(&title));
        format!("{rule}\n{title} {width}\n{rule}\n\n{}\n\n\n", self.metrics(period))
    }

    /// The end of a run: `All VUs finished`, the summary's title, and the metrics of the whole run.
    pub fn summary(&self, whole: &Period, started_ms: Option<u64>, now_ms: u64) -> String {
        if self.is_quiet {
            return String::new();
        }
        let title = self.told(&say!(texts::SUMMARY_AT, self.time(now_ms)));
        let rule = "-".repeat(columns(&title));
        let finished = started_ms.map_or_else(String::new, |started_ms| {
            self.told(&say!(texts::FINISHED, duration(now_ms.saturating_sub(started_ms)))) + "\n\n"
        });
        format!("{finished}{rule}\n{title}\n{rule}\n\n{}\n", self.metrics(whole))
    }

    /// `Log file: …`.
    pub fn log_file(&self, path: &str) -> String {
        if self.is_quiet { String::new() } else { self.told(&say!(texts::LOG_FILE, path)) + "\n" }
    }

    /// `HH:mm:ss(+ZZZZ)` in local time.
    pub fn time(&self, ms: u64) -> String {
        let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
        let offset = (self.zone)(seconds);
        let local = seconds.saturating_add(i64::from(offset) * 60).rem_euclid(86_400);
        let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
        let (hour, minute, second) = (local / 3600, local / 60 % 60, local % 60);
        format!("{hour:02}:{minute:02}:{second:02}({sign}{:02}{:02})", offset / 60, offset % 60)
    }

    /// Colours a text, if the terminal shows colours.
    pub fn paint(&self, colour: u8, text: &str) -> String {
        paint(self.is_colour, colour, text)
    }

    /// Breaks a text at spaces into lines that fit the terminal, and indents the later lines. Without a terminal, the
    /// text stays unchanged.
    pub fn wrap(&self, text: &str) -> String {
        let Some(columns) = self.columns.map(|columns| columns.max(WRAP_MIN)) else { return text.to_owned() };
        let mut out = String::new();
        let mut used = 0;
        for (index, word) in text.split(' ').enumerate() {
            let length = visible(word);
            if index > 0 && used + 1 + length > columns {
                out.push_str("\n  ");
                used = 2;
            } else if index > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
        }
        out
    }

    fn told(&self, said: &Said) -> String {
        said.say(self.language).to_owned()
    }

    fn phase(&self, text: Text, name: &str, index: usize, shown: &str, now_ms: u64) -> String {
        if self.is_quiet {
            return String::new();
        }
        let (name, time) = (self.paint(GREEN, name), self.time(now_ms));
        self.told(&text.with(&[name.into(), index.into(), shown.into(), time.into()])) + "\n\n"
    }

    fn metrics(&self, period: &Period) -> String {
        let mut names: Vec<&str> = Vec::new();
        names.extend(period.summaries.keys().map(|name| &**name));
        names.extend(period.counters.keys().map(|name| &**name));
        names.extend(period.rates.keys().map(|name| &**name));
        if names.is_empty() {
            return texts::NO_MEASUREMENTS.say(self.language).to_owned();
        }
        names.sort_by(|a, b| code_units(a, b));
        let mut lines = Vec::new();
        // A name of two kinds is in the list twice, and both kinds are printed each time, as in Artillery.
        for name in names.into_iter().filter(|name| !self.suppressed.iter().any(|part| name.contains(&**part))) {
            if let Some(count) = period.counters.get(name) {
                lines.push(self.line(&format!("{name}:"), &count.to_string()));
            }
            if let Some(summary) = period.summaries.get(name) {
                self.histogram(name, summary, &mut lines);
            }
            if let Some(rate) = period.rates.get(name) {
                lines.push(self.line(&format!("{name}:"), &format!("{}/sec", js(*rate))));
            }
        }
        lines.join("\n")
    }

    fn histogram(&self, name: &str, summary: &Summary, lines: &mut Vec<String>) {
        lines.push(format!("{name}:"));
        for (figure, value) in summary.figures() {
            if ["min", "max", "mean", "median", "p95", "p99"].contains(&figure) {
                lines.push(self.line(&format!("  {figure}:"), &js(value)));
            }
        }
    }

    /// A name, dots, and a value. Lengths are in UTF-16 units, as in JavaScript.
    fn line(&self, name: &str, value: &str) -> String {
        let room = self.columns.map_or(WIDTH, |columns| columns.saturating_sub(VALUE));
        let width = room.clamp(WIDTH_MIN, WIDTH);
        let length = name.encode_utf16().count();
        if length > width {
            let units: Vec<u16> = name.encode_utf16().take(width - 3).collect();
            return format!("{}... {} {value}", String::from_utf16_lossy(&units), self.paint(GRAY, ""));
        }
        format!("{name} {} {value}", self.paint(GRAY, &".".repeat(width - length)))
    }
}

/// SGR numbers of the colours used.
pub const GREEN: u8 = 32;
/// For failures.
pub const RED: u8 = 31;
/// For warnings.
pub const YELLOW: u8 = 33;
/// For less important text.
pub const GRAY: u8 = 90;

/// Colours a text if `is_colour`.
pub fn paint(is_colour: bool, colour: u8, text: &str) -> String {
    if is_colour && !text.is_empty() { format!("\x1b[{colour}m{text}\x1b[39m") } else { text.to_owned() }
}

/// Columns of a text, without its colour sequences.
fn visible(text: &str) -> usize {
    let mut in_colour = false;
    let shown: String = text
        .chars()
        .filter(|c| {
            let was = in_colour;
            in_colour = if in_colour { *c != 'm' } else { *c == '\x1b' };
            !was && *c != '\x1b'
        })
        .collect();
    columns(&shown)
}

/// JavaScript's order of strings.
fn code_units(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};

    const T: u64 = 1_795_186_840_000;

    fn console() -> Console {
        Console { zone: |_| 0, ..Console::default() }
    }

    fn run(events: impl Fn(&Recorder)) -> Period {
        let recorder = Recorder::at(T + 2_000);
        events(&recorder);
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        merger.outcome().periods.remove(0)
    }

    #[test]
    fn a_period() {
        let period = run(|recorder| {
            recorder.count(recorder.metric("http.codes.200"), 64);
            recorder.rate(recorder.metric("http.request_rate"));
            for ms in [0.0, 0.0, 1.0, 2.0] {
                recorder.sample(recorder.metric("http.response_time"), ms);
            }
            recorder.set_ms(T + 9_562);
            recorder.count(recorder.metric("vusers.created_by_name.main flow"), 29);
        });
        let dots = |count| ".".repeat(count);
        let expected = format!(
            "--------------------------------------\n\
             Metrics for period to: 15:00:50(+0000) (width: 7.562s)\n\
             --------------------------------------\n\n\
             http.codes.200: {} 64\n\
             http.request_rate: {} 1/sec\n\
             http.response_time:\n  min: {} 0\n  max: {} 2\n  mean: {} 0.8\n  median: {} 0\n  p95: {} 1\n  p99: {} 1\n\
             vusers.created_by_name.main flow: {} 29\n\n\n",
            dots(64),
            dots(61),
            dots(73),
            dots(73),
            dots(72),
            dots(70),
            dots(73),
            dots(73),
            dots(46),
        );
        assert_eq!(console().period(&period), expected);
    }

    #[test]
    fn a_summary() {
        let whole = run(|recorder| recorder.count(recorder.metric("vusers.created"), 1));
        let text = console().summary(&whole, Some(T), T + 61_200);
        let head = "All VUs finished. Total time: 1 minute, 1 second\n\n\
                    --------------------------------\nSummary report @ 15:01:41(+0000)\n--------------------------------\n\n\
                    vusers.created: ";
        assert!(text.starts_with(head), "{text}");
        assert!(
            console().summary(&Period::default(), None, T).ends_with("No measurements recorded during this period\n")
        );
    }

    #[test]
    fn names_are_sorted_cut_and_hidden() {
        let long = "x".repeat(100);
        let period = run(|recorder| {
            for name in ["b", "a.b", "a", "B", "_", "plugins.metrics-by-endpoint./.codes.200", &long] {
                recorder.count(recorder.metric(name), 1);
            }
        });
        let console = Console { suppressed: vec!["plugins.metrics-by-endpoint".to_owned()], ..console() };
        let text = console.metrics(&period);
        let first: Vec<&str> = text.lines().map(|line| line.split([':', '.']).next().unwrap()).collect();
        assert_eq!(first, ["B", "_", "a", "a", "b", &"x".repeat(76)]);
        assert_eq!(text.lines().last(), Some(&*format!("{}...  1", "x".repeat(76))));
    }

    #[test]
    fn terminals_have_widths_and_colours() {
        let line = |columns, is_colour| Console { columns, is_colour, ..console() }.line("n:", "1");
        assert_eq!(line(Some(20), false), format!("n: {} 1", ".".repeat(48)));
        assert_eq!(line(Some(200), false), format!("n: {} 1", ".".repeat(77)));
        assert_eq!(line(Some(73), true), format!("n: \x1b[90m{}\x1b[39m 1", ".".repeat(58)));
        assert_eq!(line(Some(80), false), format!("n: {} 1", ".".repeat(65)));
        assert_eq!(line(None, false), format!("n: {} 1", ".".repeat(77)));
    }

    #[test]
    fn long_lines_break_at_spaces() {
        let console = Console { columns: Some(24), is_colour: true, ..console() };
        let red = console.paint(RED, "failed");
        assert_eq!(
            console.wrap(&format!("Generator: {red} (busiest of 2)")),
            format!("Generator: {red}\n  (busiest of 2)")
        );
        assert_eq!(console.wrap("  set in"), "  set in");
        assert_eq!(Console::default().wrap(&"x y ".repeat(90)), "x y ".repeat(90));
    }

    #[test]
    fn time_is_local() {
        for (minutes, text) in [(0, "15:00:40(+0000)"), (540, "00:00:40(+0900)"), (-210, "11:30:40(-0330)")] {
            let zone: fn(i64) -> i32 = match minutes {
                0 => |_| 0,
                540 => |_| 540,
                _ => |_| -210,
            };
            assert_eq!(Console { zone, ..console() }.time(T), text);
        }
    }

    #[test]
    fn phases_and_quiet() {
        assert_eq!(
            console().phase_started("warm", 0, "6s", T),
            "Phase started: warm (index: 0, duration: 6s) 15:00:40(+0000)\n\n"
        );
        let quiet = Console { is_quiet: true, ..console() };
        let period = Period::default();
        assert_eq!(
            quiet.phase_completed("warm", 0, "6s", T) + &quiet.period(&period) + &quiet.summary(&period, None, T),
            ""
        );
        assert_eq!(quiet.log_file("x") + &quiet.test_run_id("t1"), "Test run id: t1\n");
    }
}
