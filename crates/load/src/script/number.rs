//! JavaScript's ways between text and number.

/// `Number(text)`: NaN for what is no number; the empty text is 0.
pub(crate) fn read(text: &str) -> f64 {
    let text = text.trim();
    if text.is_empty() {
        return 0.0;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let digits = text.get(..2).filter(|lead| lead.eq_ignore_ascii_case(prefix)).and_then(|_| text.get(2..));
        if let Some(digits) = digits {
            return digits_of(digits, radix).unwrap_or(f64::NAN);
        }
    }
    match decimal(text) {
        Some((number, used)) if used == text.len() => number,
        _ => f64::NAN,
    }
}

/// `parseFloat(text)`: the number a text begins with.
pub(crate) fn read_float(text: &str) -> f64 {
    decimal(text.trim_start()).map_or(f64::NAN, |(number, _)| number)
}

/// `parseInt(text, 10)`: the whole number a text begins with.
pub(crate) fn read_int(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits: &str = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    if digits.is_empty() { None } else { digits.parse().ok().map(|number: f64| sign * number) }
}

/// Digits of a radix as a number; `None` when one is none, or there are none.
pub(crate) fn digits_of(digits: &str, radix: u32) -> Option<f64> {
    if digits.is_empty() {
        return None;
    }
    digits.chars().try_fold(0.0, |sum, c| c.to_digit(radix).map(|digit| sum * f64::from(radix) + f64::from(digit)))
}

/// `String(number)`.
pub(crate) fn text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let size = number.abs();
    if (1e-6..1e21).contains(&size) {
        return format!("{number}");
    }
    // Rust writes 1e21 and 1e-7; JavaScript 1e+21 and 1e-7.
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
        _ => text,
    }
}

/// The decimal number a text begins with, and how many bytes it takes.
fn decimal(text: &str) -> Option<(f64, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let mut end = usize::from(matches!(at(0), b'+' | b'-'));
    if text.get(end..).is_some_and(|rest| rest.starts_with("Infinity")) {
        let number = if at(0) == b'-' { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some((number, end + "Infinity".len()));
    }
    let whole = digits(end);
    end += whole;
    if at(end) == b'.' {
        let part = digits(end + 1);
        if whole + part == 0 {
            return None;
        }
        end += 1 + part;
    } else if whole == 0 {
        return None;
    }
    if matches!(at(end), b'e' | b'E') {
        let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
        let power = digits(end + 1 + sign);
        if power > 0 {
            end += 1 + sign + power;
        }
    }
    text.get(..end)?.parse().ok().map(|number| (number, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_javascript_does() {
        let cases = [
            ("", 0.0),
            (" 5 ", 5.0),
            ("0x10", 16.0),
            ("0b11", 3.0),
            ("1e3", 1000.0),
            ("007", 7.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-1.5", -1.5),
            ("+2", 2.0),
            ("Infinity", f64::INFINITY),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in ["5m", "a", ".", "-", "0x", "1e", "1_000", "é"] {
            assert!(read(text).is_nan(), "{text}");
        }
        assert_eq!((read_float("5m"), read_float("1e"), read_float("0x10")), (5.0, 1.0, 0.0));
        assert!(read_float("x5").is_nan());
        assert_eq!((read_int("12.7"), read_int("-3x"), read_int("x")), (Some(12.0), Some(-3.0), None));
    }

    #[test]
    fn numbers_are_written_as_javascript_does() {
        let cases = [
            (1.0, "1"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (123456789012.0, "123456789012"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, expected) in cases {
            assert_eq!(text(number), expected);
        }
    }
}
