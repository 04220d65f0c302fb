//! The value of an unquoted word in YAML 1.1: null, a boolean, a number, a date, or the word itself.
//!
//! Follows js-yaml 3, which Artillery uses: `yes` and `on` are words, `010` is 8, `1:30` is 90, `0o10` is a word.

use super::node::NodeValue;
use super::number;
use crate::value::{digits_of, text_to_number};

/// The value of an unquoted scalar.
pub(crate) fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        _ => {}
    }
    if let Some(number) = int(text).or_else(|| float(text)) {
        return NodeValue::Number(number);
    }
    NodeValue::Text(date(text).map_or_else(|| text.into(), Into::into))
}

/// `!!int`.
pub(crate) fn int(text: &str) -> Option<f64> {
    let (sign, rest) = signed(text);
    if rest == "0" {
        return Some(0.0);
    }
    let number = if let Some(rest) = rest.strip_prefix('0') {
        if let Some(digits) = rest.strip_prefix('b') {
            spaced(digits, 2)?
        } else if let Some(digits) = rest.strip_prefix('x') {
            spaced(digits, 16)?
        } else {
            spaced(rest, 8)?
        }
    } else {
        let (head, parts) = rest.split_once(':').map_or((rest, None), |(head, parts)| (head, Some(parts)));
        if head.starts_with('_') {
            return None;
        }
        parts.into_iter().flat_map(|parts| parts.split(':')).try_fold(spaced(head, 10)?, sixty)?
    };
    Some(sign * number)
}

/// `!!float`.
pub(crate) fn float(text: &str) -> Option<f64> {
    if text.ends_with('_') {
        return None;
    }
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let (sign, rest) = signed(text);
    if rest.contains(':') {
        return sixties(rest).map(|number| sign * number);
    }
    let (digits, power) = match rest.find(['e', 'E']).and_then(|at| rest.split_at_checked(at)) {
        Some((digits, power)) => (digits, Some(power)),
        None => (rest, None),
    };
    if let Some(power) = power {
        let power = signed(power.get(1..).unwrap_or_default()).1;
        if power.is_empty() || !power.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    let (whole, part) = digits.split_once('.').map_or((digits, None), |(whole, part)| (whole, Some(part)));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let fits = match whole {
        // `.5` may have no sign, and needs a digit.
        "" => sign > 0.0 && rest.len() == text.len() && part.is_some_and(|part| !part.is_empty()),
        "0" => true,
        _ => !whole.starts_with(['0', '_']) && is_digits(whole),
    };
    if !fits || !part.is_none_or(is_digits) {
        return None;
    }
    let number = number::read_float(&rest.replace('_', ""));
    (!number.is_nan()).then_some(sign * number)
}

/// `20:30.5`: base sixty with a fraction.
fn sixties(text: &str) -> Option<f64> {
    let (whole, part) = text.split_once('.')?;
    let (head, rest) = whole.split_once(':')?;
    if !head.starts_with(|c: char| c.is_ascii_digit())
        || !part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    {
        return None;
    }
    let number = rest.split(':').try_fold(spaced(head, 10)?, sixty)?;
    let part = text_to_number(&format!("0.{}", part.replace('_', "")));
    Some(number + if part.is_nan() { 0.0 } else { part })
}

/// Adds one more digit of base sixty.
fn sixty(sum: f64, digits: &str) -> Option<f64> {
    let is_good = matches!(digits.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    if is_good { digits.parse().ok().map(|digit: f64| sum * 60.0 + digit) } else { None }
}

/// Digits with `_` between them, but not at the end.
fn spaced(digits: &str, radix: u32) -> Option<f64> {
    if digits.ends_with('_') { None } else { digits_of(&digits.replace('_', ""), radix) }
}

fn signed(text: &str) -> (f64, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// A date as JavaScript writes it in JSON: `2001-12-14` is midnight UTC. A date with a time stays as written, because
/// no script schedules load by it.
fn date(text: &str) -> Option<String> {
    let digits = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    let bytes = text.as_bytes();
    let is_shaped = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    if !is_shaped || !(1..=12).contains(&digits(5..7)?) || !(1..=31).contains(&digits(8..10)?) {
        return None;
    }
    Some(format!("{text}T00:00:00.000Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_js_yaml_3_reads() {
        let numbers = [
            ("0", 0.0),
            ("-0", 0.0),
            ("12", 12.0),
            ("+12", 12.0),
            ("-3", -3.0),
            ("010", 8.0),
            ("0x1F", 31.0),
            ("0b101", 5.0),
            ("1_000", 1000.0),
            ("1:30", 90.0),
            ("12:30:45", 45045.0),
            ("0.5", 0.5),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("2.5e-1", 0.25),
            ("1.", 1.0),
            ("-1.5", -1.5),
            (".inf", f64::INFINITY),
            ("20:30.5", 1230.5),
            ("1_0.2_5", 10.25),
        ];
        for (text, number) in numbers {
            assert_eq!(plain(text), NodeValue::Number(number), "{text}");
        }
        let words = [
            "08", "yes", "No", "on", "0o10", "1.2.3", "10%", "5m", "_1", "1_", "-.5", "1:60", "a", "e3", "+", "1e", ".",
        ];
        for text in words {
            assert_eq!(plain(text), NodeValue::Text(text.into()), "{text}");
        }
        for text in ["", "~", "null", "Null"] {
            assert_eq!(plain(text), NodeValue::Null, "{text}");
        }
        assert_eq!((plain("true"), plain("FALSE")), (NodeValue::Bool(true), NodeValue::Bool(false)));
        assert_eq!(plain("2001-12-14"), NodeValue::Text("2001-12-14T00:00:00.000Z".into()));
        assert_eq!(plain("2001-13-14"), NodeValue::Text("2001-13-14".into()));
        assert!(matches!(plain(".nan"), NodeValue::Number(number) if number.is_nan()));
    }
}
