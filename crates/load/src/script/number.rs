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
    fn the_number_a_text_begins_with() {
        assert_eq!(
            (read_float("5m"), read_float("1e"), read_float("0x10"), read_float(" -1.5e2x")),
            (5.0, 1.0, 0.0, -150.0)
        );
        assert!(read_float("x5").is_nan() && read_float(".").is_nan());
        assert_eq!((read_int("12.7"), read_int("-3x"), read_int("x")), (Some(12.0), Some(-3.0), None));
    }
}
