//! The figures of a block in one table. Verdicts, reports and the guide take names, units and directions from it.

use crate::said::Text;
use crate::texts;

/// The direction that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoodDirection {
    /// More is better.
    More,
    /// Less is better.
    Less,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// By their ratio. The threshold is a relative change.
    Ratio,
    /// As shares of the requests, by their odds. The threshold is in percentage points.
    Share,
}

/// One figure of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name on the command line and in stored runs.
    pub key: &'static str,
    /// What it is.
    pub title: Text,
    /// The unit of stored values.
    pub unit: &'static str,
    /// The direction that is good.
    pub good: GoodDirection,
    /// How it is compared.
    pub scale: Scale,
    /// Smaller changes are negligible: a relative change, or percentage points.
    pub threshold: f64,
    /// The words for an improvement and for a degradation.
    pub words: (Text, Text),
    /// Whether a degradation turns an improvement elsewhere into a trade-off.
    pub is_guard: bool,
    /// Least number of requests that a block needs for this figure.
    pub requests_min: u64,
}

const fn latency(key: &'static str, title: Text, threshold: f64, requests_min: u64) -> Metric {
    Metric {
        key,
        title,
        unit: "ms",
        good: GoodDirection::Less,
        scale: Scale::Ratio,
        threshold,
        words: (texts::FASTER, texts::SLOWER),
        is_guard: false,
        requests_min,
    }
}

/// Least number of requests of a block for figures that have no tail. Their intervals come from the pairs of blocks,
/// and are exact however few requests a block has.
const SMALL_MIN: u64 = 20;

/// The latency that is compared if the load is too small for quantiles of its tail.
pub const SMALL: Metric = latency("mean", texts::METRIC_MEAN, 0.05, SMALL_MIN);

/// All metrics, in the order in which they are shown. A quantile q of the tail needs 100/(1-q) requests, so that a
/// hundred are in its tail.
pub const METRICS: &[Metric] = &[
    Metric {
        key: "throughput",
        title: texts::METRIC_THROUGHPUT,
        unit: "/s",
        good: GoodDirection::More,
        scale: Scale::Ratio,
        threshold: 0.03,
        words: (texts::FASTER, texts::SLOWER),
        is_guard: false,
        requests_min: SMALL_MIN,
    },
    SMALL,
    latency("p50", texts::METRIC_P50, 0.05, 2 * SMALL_MIN),
    latency("p95", texts::METRIC_P95, 0.05, 2_000),
    latency("p99", texts::METRIC_P99, 0.05, 10_000),
    Metric {
        key: "errors",
        title: texts::METRIC_ERRORS,
        unit: "%",
        good: GoodDirection::Less,
        scale: Scale::Share,
        threshold: 0.1,
        words: (texts::FEWER_ERRORS, texts::MORE_ERRORS),
        is_guard: true,
        requests_min: SMALL_MIN,
    },
    Metric {
        key: "cpu",
        title: texts::METRIC_CPU,
        unit: "µs",
        good: GoodDirection::Less,
        scale: Scale::Ratio,
        threshold: 0.05,
        words: (texts::CHEAPER, texts::DEARER),
        is_guard: true,
        requests_min: SMALL_MIN,
    },
    Metric {
        key: "app_cpu",
        title: texts::METRIC_APP_CPU,
        unit: "µs",
        good: GoodDirection::Less,
        scale: Scale::Ratio,
        threshold: 0.05,
        words: (texts::CHEAPER, texts::DEARER),
        is_guard: false,
        requests_min: SMALL_MIN,
    },
];

/// The metric with this name.
pub fn of(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

impl Metric {
    /// A value with its unit, with three digits.
    pub fn show(&self, value: f64) -> String {
        let (value, space) = match self.scale {
            Scale::Ratio => (value, if self.unit.starts_with('/') { "" } else { " " }),
            Scale::Share => (value * 100.0, " "),
        };
        format!("{}{space}{}", digits(value), self.unit)
    }
}

/// Three significant digits, two of a very small number: `1234`, `41.2`, `0.012`, `0.000051`, `0`.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    match () {
        () if !value.is_finite() => "?".to_owned(),
        () if size == 0.0 => "0".to_owned(),
        () if size >= 100.0 => format!("{value:.0}"),
        () if size >= 10.0 => format!("{value:.1}"),
        () if size >= 1.0 => format!("{value:.2}"),
        () if size >= 0.001 => format!("{value:.3}"),
        () if size < 1e-9 => "0".to_owned(),
        // No reader of a report wants an exponent: 0.000051.
        () => format!("{value:.places$}", places = (-size.log10()).ceil() as usize + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        for (at, metric) in METRICS.iter().enumerate() {
            assert!(metric.threshold > 0.0 && !metric.unit.is_empty(), "{}", metric.key);
            assert_ne!(metric.words.0, metric.words.1);
            assert_eq!(METRICS.iter().position(|other| other.key == metric.key), Some(at), "{} twice", metric.key);
        }
        assert_eq!((of("p95").map(|m| m.requests_min), of("p98")), (Some(2_000), None));
    }

    #[test]
    fn values_have_units_and_three_digits() {
        let show = |key: &str, value| of(key).map(|metric| metric.show(value)).unwrap_or_default();
        assert_eq!(show("throughput", 1234.5), "1234/s");
        assert_eq!((show("p95", 41.25), show("p50", 0.1234)), ("41.2 ms".to_owned(), "0.123 ms".to_owned()));
        assert_eq!((show("errors", 0.266), show("errors", 0.0)), ("26.6 %".to_owned(), "0 %".to_owned()));
        assert_eq!(
            (show("cpu", 9.876), digits(f64::NAN), digits(0.00001)),
            ("9.88 µs".to_owned(), "?".to_owned(), "0.000010".to_owned())
        );
    }
}
