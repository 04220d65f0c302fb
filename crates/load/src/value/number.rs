//! Formats and parses numbers as JavaScript does.

/// Whole numbers up to this are written as plain digits.
const PLAIN_MAX: f64 = 1e15;

/// Appends `String(number)`.
pub fn write_number(number: f64, out: &mut Vec<u8>) {
    if number.fract() == 0.0 && number.abs() < PLAIN_MAX {
        return write_integer(number as i64, out);
    }
    out.extend_from_slice(ryu_js::Buffer::new().format(number).as_bytes());
}

fn write_integer(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    let mut rest = number.unsigned_abs();
    let begin = out.len();
    loop {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(begin..) {
        digits.reverse();
    }
}

/// `Number(text)`.
pub fn text_to_number(text: &str) -> f64 {
    let text = trim(text);
    let radix = match text.get(..2) {
        _ if text.is_empty() => return 0.0,
        Some("0x" | "0X") => Some(16),
        Some("0o" | "0O") => Some(8),
        Some("0b" | "0B") => Some(2),
        _ => None,
    };
    if let Some(radix) = radix {
        return text.get(2..).and_then(|digits| digits_of(digits, radix)).unwrap_or(f64::NAN);
    }
    match text {
        "Infinity" | "+Infinity" => return f64::INFINITY,
        "-Infinity" => return f64::NEG_INFINITY,
        _ => {}
    }
    // Rust would also accept `inf` and `nan`.
    if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return text.parse().unwrap_or(f64::NAN);
    }
    f64::NAN
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

/// `text.trim()`.
fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// True for a character that JavaScript's `trim` removes.
pub(crate) fn is_space(char: char) -> bool {
    char.is_whitespace() && char != '\u{85}' || char == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (42.0, "42"),
            (-7.0, "-7"),
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123456789012345680.0, "123456789012345680"),
            (1e-7, "1e-7"),
            (0.000001, "0.000001"),
            (-1.5e-9, "-1.5e-9"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (5e-324, "5e-324"),
        ] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn read() {
        for (text, number) in [
            ("", 0.0),
            (" \n12\u{feff} ", 12.0),
            ("0x1F", 31.0),
            ("0b101", 5.0),
            ("0x200000000000011", 144_115_188_075_855_904.0),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1", 1.0),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(text_to_number(text), number, "{text:?}");
        }
        for text in ["inf", "nan", "1_000", "12px", "0x", "--1", "1 2", "infinity", "-0x1"] {
            assert!(text_to_number(text).is_nan(), "{text:?}");
        }
    }

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
}
