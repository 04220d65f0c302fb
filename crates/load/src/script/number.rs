//! Parses the number at the start of a text, as JavaScript does.

/// `parseFloat(text)`: the number at the start of a text.
pub(crate) fn read_float(text: &str) -> f64 {
    decimal(text.trim_start()).map_or(f64::NAN, |(number, _)| number)
}

/// `parseInt(text, 10)`: the whole number at the start of a text.
pub(crate) fn read_int(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits: &str = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    if digits.is_empty() { None } else { digits.parse().ok().map(|number: f64| sign * number) }
}

/// Digits in radix 2, 8, 10 or 16 as the nearest number; `None` if one is not a digit, or if there are none.
pub(crate) fn digits_of(digits: &str, radix: u32) -> Option<f64> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    if radix == 10 {
        return digits.parse().ok();
    }
    // A sum of f64 would be rounded at each digit. This is rounded once: below the bits of the mantissa, it only matters
    // whether any bit is set.
    let bits = radix.ilog2();
    let (mut sum, mut shift) = (0u128, 0i32);
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        if sum >> 120 == 0 {
            sum = (sum << bits) | u128::from(digit);
        } else {
            sum |= u128::from(digit != 0);
            shift = shift.saturating_add(bits as i32);
        }
    }
    Some(sum as f64 * 2f64.powi(shift))
}

/// The decimal number at the start of a text, and its length in bytes.
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
    fn long_numbers_are_the_nearest_ones() {
        let nines = "9".repeat(400);
        for (digits, radix, number) in [
            ("1234567890123456789", 10, 1_234_567_890_123_456_800.0),
            ("99999999999999999", 10, 1e17),
            ("9223372036854775807", 10, 9_223_372_036_854_775_808.0),
            ("9007199254740993", 10, 9_007_199_254_740_992.0),
            (&nines, 10, f64::INFINITY),
            ("20000000000001", 16, 9_007_199_254_740_992.0),
            ("200000000000011", 16, 144_115_188_075_855_904.0),
            ("777", 8, 511.0),
            ("101", 2, 5.0),
        ] {
            assert_eq!(digits_of(digits, radix), Some(number), "{digits}");
        }
        // Exactly between two numbers, and one bit more, far behind.
        let zeros = "0".repeat(30);
        assert_eq!(digits_of(&format!("20000000000001{zeros}"), 16), Some(9_007_199_254_740_992.0 * 16f64.powi(30)));
        assert_eq!(digits_of(&format!("20000000000001{zeros}1"), 16), Some(9_007_199_254_740_994.0 * 16f64.powi(31)));
        assert_eq!((digits_of("", 10), digits_of("12a", 10), digits_of("8", 8)), (None, None, None));
    }

    #[test]
    fn the_number_a_text_begins_with() {
        assert_eq!(
            (read_float("5m"), read_float("1e"), read_float("0x10"), read_float(" -1.5e2x")),
            (5.0, 1.0, 0.0, -150.0)
        );
        assert!(read_float("x5").is_nan() && read_float(".").is_nan());
        assert_eq!((read_int("12.7"), read_int("-3x"), read_int("x")), (Some(12.0), Some(-3.0), None));
    }
}
