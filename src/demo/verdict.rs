//! The result of the load, in a few lines.

use std::time::Duration;

use weir_host as host;
use weir_load::Report;
use weir_words::{Language, Said, left, say};

use crate::texts;

/// CPU time of the edge's workers and of the origin's workers, found by the names of their threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cpu {
    edge: Duration,
    origin: Duration,
}

impl Cpu {
    /// CPU time used so far.
    pub(super) fn now() -> Cpu {
        let threads = host::threads();
        let sum = |prefix: &str| {
            threads.iter().filter(|thread| thread.name.starts_with(prefix)).map(|thread| thread.cpu).sum()
        };
        Cpu { edge: sum("worker "), origin: sum("origin ") }
    }

    /// CPU time used between `before` and `self`.
    pub(super) fn since(self, before: Cpu) -> Cpu {
        Cpu { edge: self.edge.saturating_sub(before.edge), origin: self.origin.saturating_sub(before.origin) }
    }
}

/// The load's own report, and the CPU time that the edge and the origin used for it.
pub(super) struct DemoVerdict {
    pub(super) cpu: Cpu,
    pub(super) report: Report,
}

/// The kernel counts CPU in steps of 10 ms: below this the error is over 5 %.
const CPU_MIN: Duration = Duration::from_millis(200);
/// Above this share of busy time, the load generator itself limits the figures.
const SATURATION_MAX: f64 = 0.95;

impl DemoVerdict {
    /// True if at least one request was answered and none failed.
    pub(super) fn is_clean(&self) -> bool {
        self.report.errors() == 0 && self.report.requests > 0
    }

    fn cpu_line(&self, cpu: Duration) -> Said {
        if cpu < CPU_MIN || self.report.requests == 0 {
            return say!(texts::DEMO_FEW);
        }
        let each = time(cpu.as_secs_f64() / self.report.requests as f64);
        let share = 100.0 * cpu.as_secs_f64() / self.report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        say!(texts::DEMO_SHARE, format!("{each:>12}"), format!("{share:.0}"))
    }

    /// The lines of the result.
    pub(super) fn text(&self, language: Language) -> String {
        let Report { requests, failures, response, .. } = &self.report;
        let number = |text: String| format!("{text:>12}");
        let rate = say!(texts::DEMO_RATE, grouped(self.report.rate().round() as u64));
        let names: Vec<String> = failures.iter().map(|(name, count)| format!("{name}: {}", grouped(*count))).collect();
        let at = |quantile| time(response.quantile(quantile).as_secs_f64());
        let (p50, p90, p99, max) = (at(0.5), at(0.9), at(0.99), time(response.max().as_secs_f64()));
        let latency = format!("{}   p90 {p90}   p99 {p99}   max {max}", number(format!("p50 {p50}")));
        let rows = [
            (texts::REQUESTS, Said::list(&[number(grouped(*requests)).into(), rate], "   ")),
            (texts::DEMO_ERRORS, format!("{}   {}", number(grouped(self.report.errors())), names.join(", ")).into()),
            (texts::DEMO_LATENCY, latency.into()),
            (texts::DEMO_EDGE_CPU, self.cpu_line(self.cpu.edge)),
            (texts::DEMO_ORIGIN_CPU, self.cpu_line(self.cpu.origin)),
            (texts::DEMO_LOAD_CPU, self.cpu_line(self.report.cpu)),
        ];
        let mut lines = String::from("\n");
        for (label, line) in rows {
            let line = format!("  {}{}", left(label.say(language), 12), line.say(language));
            lines.push_str(line.trim_end());
            lines.push('\n');
        }
        if self.report.saturation() > SATURATION_MAX {
            lines.push_str(&format!("  {}\n", texts::DEMO_SATURATED.say(language)));
        }
        lines
    }
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits and a unit: `18.2 µs`, `1.24 ms`, `2.00 s`.
fn time(seconds: f64) -> String {
    let (number, unit) = match seconds {
        short if short < 0.000_999_5 => (short * 1e6, "µs"),
        medium if medium < 0.999_5 => (medium * 1e3, "ms"),
        long => (long, "s"),
    };
    let decimals = match number {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_load::quick::{self, QuickRun};

    #[test]
    fn a_load_that_nobody_answered_is_no_success() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        let quick =
            QuickRun { url: format!("http://{nobody}/"), connections: 1, requests_max: Some(3), ..QuickRun::default() };
        let verdict = DemoVerdict { cpu: Cpu::default(), report: quick::run(&quick).unwrap() };
        assert!(!verdict.is_clean());
        let text = verdict.text(Language::English);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(lines.contains(&vec!["requests", "0", "0", "per", "second"]), "{text}");
        assert!(lines.contains(&vec!["errors", "3", "connect:", "3"]), "{text}");
        assert!(text.contains("edge CPU    not measured"), "{text}");
        let korean = verdict.text(Language::Korean);
        assert!(korean.contains("  요청                   0   초당 0건\n"), "{korean}");
        assert!(korean.contains("  엣지 CPU    측정하지 않음: 부하가 너무 적습니다\n"), "{korean}");
    }

    #[test]
    fn figures() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (seconds, text) in [
            (0.0, "0.00 µs"),
            (18.24e-6, "18.2 µs"),
            (0.000_999_9, "1.00 ms"),
            (0.001_24, "1.24 ms"),
            (0.250, "250 ms"),
            (0.9999, "1.00 s"),
            (61.0, "61.0 s"),
        ] {
            assert_eq!(time(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn cpu_is_a_difference() {
        let ms = Duration::from_millis;
        let before = Cpu { edge: ms(10), origin: ms(20) };
        let after = Cpu { edge: ms(50), origin: ms(10) };
        assert_eq!(after.since(before), Cpu { edge: ms(40), origin: ms(0) });
    }
}
