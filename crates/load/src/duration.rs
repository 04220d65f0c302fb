//! Durations: the npm module `ms`, and the two ways in which Artillery reads it (artillery.md §1.2, §2.2).
//!
//! Unlike Artillery, weir reads a fraction without a unit as seconds (`think: 0.5`), and reports to the caller that
//! it did.

use std::time::Duration;

use crate::value::Value;

/// The longest text `ms` reads.
const TEXT_MAX: usize = 100;
/// The longest time, 1000 years; longer times have the same effect.
const SECONDS_MAX: f64 = 1000.0 * 365.25 * 86_400.0;

/// A parsed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// The duration; a negative time becomes zero.
    pub time: Duration,
    /// True for a fraction without a unit: seconds in weir, a different time in Artillery.
    pub is_bare_fraction: bool,
}

/// `ms(text)`: milliseconds, may be negative; `None` if `ms` returns nothing.
pub fn ms(text: &str) -> Option<f64> {
    if text.is_empty() || text.len() > TEXT_MAX {
        return None;
    }
    let end = text.find(|char: char| !(char.is_ascii_digit() || "-.".contains(char))).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number = decimal(number)?;
    let factor = match unit.trim_start_matches(' ').to_ascii_lowercase().as_str() {
        // `ms` allows spaces before a unit, and accepts them after a bare number too.
        "" | "milliseconds" | "millisecond" | "msecs" | "msec" | "ms" => 1.0,
        "seconds" | "second" | "secs" | "sec" | "s" => 1000.0,
        "minutes" | "minute" | "mins" | "min" | "m" => 60_000.0,
        "hours" | "hour" | "hrs" | "hr" | "h" => 3_600_000.0,
        "days" | "day" | "d" => 86_400_000.0,
        "weeks" | "week" | "w" => 7.0 * 86_400_000.0,
        "years" | "year" | "yrs" | "yr" | "y" => 365.25 * 86_400_000.0,
        _ => return None,
    };
    Some(number * factor)
}

/// `think`, and a `jitter` given as a time: a whole number is seconds, other values are for [`ms`].
pub fn think(value: &Value) -> Option<Time> {
    match value {
        Value::Number(number) => from_number(*number),
        // JavaScript converts these to the number 0: `Number.isInteger(Number(null))`.
        Value::Null | Value::Bool(_) => from_number(value.to_number()),
        Value::Text(text) => from_text(text),
        _ => None,
    }
}

/// `duration` and `pause` of a phase: as [`think`], but an absent value is not a time.
pub fn phase(value: &Value) -> Option<Time> {
    think(value).filter(|time| !time.time.is_zero())
}

fn from_text(text: &str) -> Option<Time> {
    if text.is_empty() {
        return None;
    }
    let number = crate::value::text_to_number(text);
    if number.is_finite() {
        return from_number(number);
    }
    ms(text).map(|ms| Time { time: duration(ms / 1000.0), is_bare_fraction: false })
}

fn from_number(number: f64) -> Option<Time> {
    number.is_finite().then(|| Time { time: duration(number), is_bare_fraction: number.fract() != 0.0 })
}

fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX))
}

/// `-?(\d+)?\.?\d+`
fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or(("", digits));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(whole) && is_digits(part) && !part.is_empty()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_of_ms() {
        for (text, millis) in [
            ("100", 100.0),
            ("1m", 60_000.0),
            ("1h", 3_600_000.0),
            ("2d", 172_800_000.0),
            ("3w", 1_814_400_000.0),
            ("1s", 1000.0),
            ("100ms", 100.0),
            ("1y", 31_557_600_000.0),
            ("1.5h", 5_400_000.0),
            ("1   s", 1000.0),
            ("1.5H", 5_400_000.0),
            (".5ms", 0.5),
            ("-100ms", -100.0),
            ("-.5h", -1_800_000.0),
            ("90 seconds", 90_000.0),
            ("10min", 600_000.0),
            ("0.5 min", 30_000.0),
        ] {
            assert_eq!(ms(text), Some(millis), "{text}");
        }
        for text in ["", "☃", "10-.5", "ms", "5 m 30 s", "1.", "1x", "--1s", "s1", "1 . 5s", &"1".repeat(101)] {
            assert_eq!(ms(text), None, "{text}");
        }
    }

    #[test]
    fn thinks() {
        for (value, seconds, is_bare_fraction) in [
            (Value::Number(60.0), 60.0, false),
            ("60".into(), 60.0, false),
            ("1e1".into(), 10.0, false),
            (Value::Number(0.5), 0.5, true),
            ("1.5".into(), 1.5, true),
            ("1.5s".into(), 1.5, false),
            ("500ms".into(), 0.5, false),
            ("5m".into(), 300.0, false),
            (Value::Number(-3.0), 0.0, false),
            (Value::Number(0.0), 0.0, false),
            (Value::Number(1e300), SECONDS_MAX, false),
        ] {
            let time = Duration::from_secs_f64(seconds);
            assert_eq!(think(&value), Some(Time { time, is_bare_fraction }), "{value:?}");
        }
        for value in ["", "soon", "1-5", "5 m 30 s"] {
            assert_eq!(think(&value.into()), None, "{value}");
        }
        assert_eq!(think(&Value::Undefined), None);
    }

    #[test]
    fn a_phase_takes_time() {
        for value in [Value::Number(0.0), Value::Number(-1.0), "0s".into(), Value::Null, "".into()] {
            assert_eq!(phase(&value), None, "{value:?}");
        }
        assert_eq!(phase(&"100ms".into()).map(|time| time.time), Some(Duration::from_millis(100)));
    }
}
