//! Numbers and durations as JavaScript prints them.

use weir_words::Said;

/// A number as `String(number)` gives it.
pub fn js(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // In JavaScript zero has no sign. It uses an exponent only from 1e21 up and below 1e-6.
    if number == 0.0 {
        return "0".to_owned();
    }
    let size = number.abs();
    if (1e-6..1e21).contains(&size) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    if size < 1.0 { text } else { text.replace('e', "e+") }
}

/// A number as JSON: whole numbers without a fraction; NaN and infinity as null.
pub fn json(number: f64) -> serde_json::Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT_MAX {
        return (number as i64).into();
    }
    number.into()
}

/// `[D days, ][H hours, ][M minutes, ]S seconds`: a unit appears if a larger one is there.
pub fn duration(ms: u64) -> Said {
    Said::of_both(in_english(ms), in_korean(ms))
}

/// `1시간 5초`: units without a number are left out.
fn in_korean(ms: u64) -> String {
    let seconds = ms / 1000;
    let units =
        [("일", seconds / 86_400), ("시간", seconds / 3600 % 24), ("분", seconds / 60 % 60), ("초", seconds % 60)];
    let parts = units.iter().filter(|(_, count)| *count > 0).map(|(unit, count)| format!("{count}{unit}"));
    let text = parts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "0초".to_owned() } else { text }
}

fn in_english(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [("day", seconds / 86_400), ("hour", seconds / 3600 % 24), ("minute", seconds / 60 % 60)];
    let mut parts: Vec<String> = Vec::new();
    for (unit, count) in units.into_iter().chain([("second", seconds % 60)]) {
        if count > 0 || !parts.is_empty() || unit == "second" {
            parts.push(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }));
        }
    }
    parts.join(", ")
}

/// Groups thousands with a narrow space that a terminal can show: `12 345`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A latency for people: three digits, with no more decimals than were measured.
pub fn ms(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_javascript_prints_them() {
        let table = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (7.562, "7.562"),
            (0.3, "0.3"),
            (-2.5, "-2.5"),
            (1e15, "1000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (1e-6, "0.000001"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, text) in table {
            assert_eq!(js(number), text);
        }
    }

    #[test]
    fn numbers_in_json() {
        let table =
            [(3.0, "3"), (0.1, "0.1"), (-0.0, "0"), (1e20, "1e+20"), (f64::NAN, "null"), (f64::INFINITY, "null")];
        for (number, text) in table {
            assert_eq!(json(number).to_string().replace("e20", "e+20").replace("e++", "e+"), text);
        }
    }

    #[test]
    fn durations() {
        let table = [
            (0, "0 seconds"),
            (1_999, "1 second"),
            (13_000, "13 seconds"),
            (60_000, "1 minute, 0 seconds"),
            (3_661_000, "1 hour, 1 minute, 1 second"),
            (86_400_000, "1 day, 0 hours, 0 minutes, 0 seconds"),
        ];
        for (ms, text) in table {
            assert_eq!(duration(ms).en(), text);
        }
        let korean = |ms| duration(ms).say(weir_words::Language::Korean).to_owned();
        assert_eq!([0, 13_000, 60_000, 3_665_000].map(korean), ["0초", "13초", "1분", "1시간 1분 5초"]);
    }

    #[test]
    fn figures_for_people() {
        assert_eq!([0.1234, 1.2345, 12.345, 123.45].map(ms), ["0.123", "1.23", "12.3", "123"]);
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
    }
}
