//! How long: the numbers and texts of `duration`, `pause`, `think` and timeouts (artillery.md §1.2, §2.2).

use std::time::Duration;

use super::number;
use crate::value::Value;

/// The longest time a script can ask for: 100 years.
const SECONDS_MAX: f64 = 100.0 * 365.25 * 86_400.0;

/// The longest text that is looked at.
const TEXT_MAX: usize = 100;

/// A time as a script gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// How long; what is negative is no time at all.
    pub duration: Duration,
    /// A fraction without a unit: Artillery waits that many milliseconds at most, weir that many seconds.
    pub is_fraction: bool,
}

/// Reads a time: a number is seconds, a text a number of seconds or a number with a unit (`500ms`, `1.5 minutes`).
///
/// `None` is no time. A fraction without a unit is seconds too, which is what its writer meant.
pub fn time(value: &Value) -> Option<Time> {
    match value {
        Value::Number(number) => bare(*number),
        Value::Text(text) if text.len() > TEXT_MAX || text.trim().is_empty() => None,
        Value::Text(text) => {
            let number = number::read(text);
            if number.is_nan() { with_unit(text) } else { bare(number) }
        }
        _ => None,
    }
}

fn bare(seconds: f64) -> Option<Time> {
    Some(Time { duration: duration(seconds)?, is_fraction: seconds.fract() != 0.0 })
}

fn duration(seconds: f64) -> Option<Duration> {
    if seconds.is_nan() || seconds > SECONDS_MAX {
        return None;
    }
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

/// A number and a unit, as the npm module `ms` reads them.
fn with_unit(text: &str) -> Option<Time> {
    let start = text.strip_prefix('-').unwrap_or(text);
    let end = start.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(start.len());
    let (digits, unit) = start.split_at_checked(end)?;
    // At most one point, and a digit at the end: `.5` but not `5.`.
    if digits.ends_with('.') || digits.is_empty() || digits.matches('.').count() > 1 {
        return None;
    }
    let number: f64 = digits.parse().ok()?;
    let seconds = match unit.trim_start_matches(' ').to_ascii_lowercase().as_str() {
        "milliseconds" | "millisecond" | "msecs" | "msec" | "ms" => 0.001,
        "seconds" | "second" | "secs" | "sec" | "s" => 1.0,
        "minutes" | "minute" | "mins" | "min" | "m" => 60.0,
        "hours" | "hour" | "hrs" | "hr" | "h" => 3_600.0,
        "days" | "day" | "d" => 86_400.0,
        "weeks" | "week" | "w" => 604_800.0,
        "years" | "year" | "yrs" | "yr" | "y" => 31_557_600.0,
        _ => return None,
    };
    let sign = if start.len() < text.len() { -1.0 } else { 1.0 };
    Some(Time { duration: duration(sign * number * seconds)?, is_fraction: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: Value) -> Option<(u128, bool)> {
        time(&value).map(|time| (time.duration.as_millis(), time.is_fraction))
    }

    #[test]
    fn times_of_scripts() {
        let texts = [
            ("60", 60_000),
            ("5m", 300_000),
            ("10min", 600_000),
            ("90 seconds", 90_000),
            ("0.5 min", 30_000),
            ("100ms", 100),
            ("1d", 86_400_000),
            ("2w", 1_209_600_000),
            ("1.5s", 1500),
            (".5S", 500),
            ("-5s", 0),
            ("1H", 3_600_000),
            (" 7 ", 7000),
            ("1y", 31_557_600_000),
        ];
        for (text, expected) in texts {
            assert_eq!(ms(text.into()), Some((expected, false)), "{text}");
        }
        for text in ["5 m 30 s", "", " ", "x", "5x", "1.2.3s", "5.s", "1-5", "s", "9e99", "NaN"] {
            assert_eq!(ms(text.into()), None, "{text}");
        }
        assert_eq!(ms(2.0.into()), Some((2000, false)));
        assert_eq!(ms(0.5.into()), Some((500, true)));
        assert_eq!(ms("1.5".into()), Some((1500, true)));
        assert_eq!(ms((-2.0).into()), Some((0, false)));
        for value in [f64::NAN.into(), f64::INFINITY.into(), Value::Null, Value::Undefined, Value::from(true)] {
            assert_eq!(ms(value), None);
        }
    }
}
