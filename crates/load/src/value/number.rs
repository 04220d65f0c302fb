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
    let radix = |digits: &str, radix: u32| {
        let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        let add = |sum: f64, digit: char| sum * f64::from(radix) + f64::from(digit.to_digit(radix).unwrap_or(0));
        if is_number { digits.chars().fold(0.0, add) } else { f64::NAN }
    };
    match text.get(..2) {
        _ if text.is_empty() => return 0.0,
        Some("0x" | "0X") => return radix(text.get(2..).unwrap_or(""), 16),
        Some("0o" | "0O") => return radix(text.get(2..).unwrap_or(""), 8),
        Some("0b" | "0B") => return radix(text.get(2..).unwrap_or(""), 2),
        _ => {}
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

/// `text.trim()`.
fn trim(text: &str) -> &str {
    text.trim_matches(|char: char| (char.is_whitespace() && char != '\u{85}') || char == '\u{feff}')
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
}
