//! Random numbers: one small generator per worker thread, and the template functions that need nothing else.
//!
//! Not for secrets.

use std::sync::Arc;

use crate::template::TemplateFunctions;
use crate::value::Value;

/// The longest `$randomString(n)`, in characters.
pub const STRING_MAX: usize = 16 << 20;
/// The characters of `$randomString`.
const ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// The length of `$randomString()`.
const STRING_DEFAULT: usize = 10;

/// Seeds this thread's generator; without it, every thread starts at a different point.
pub fn seed(seed: u64) {
    fastrand::seed(seed);
}

/// A random number from 0 (inclusive) to 1 (exclusive).
pub fn unit() -> f64 {
    fastrand::f64()
}

/// A random number from 0 (inclusive) to `end` (exclusive); 0 if the range is empty.
pub fn below(end: usize) -> usize {
    if end == 0 { 0 } else { fastrand::usize(..end) }
}

/// One of these, with equal probability.
pub fn one_of<T>(list: &[T]) -> Option<&T> {
    list.get(below(list.len()))
}

/// A whole number between two, both included, in any order (lodash's `random`).
pub fn between(one: f64, two: f64) -> f64 {
    let (min, max) = if one > two { (two, one) } else { (one, two) };
    (min + (unit() * (max - min + 1.0)).floor()).min(max.max(min))
}

/// A text of `len` letters and digits.
pub fn string(len: usize) -> String {
    let letter = |_| char::from(ALPHABET.get(below(ALPHABET.len())).copied().unwrap_or(b'a'));
    (0..len.min(STRING_MAX)).map(letter).collect()
}

/// A random (version 4) UUID.
pub fn uuid() -> String {
    uuid_text().to_string()
}

/// The same, shared. Each request that hooks see has one, so it needs only one allocation and no `format!`.
pub fn uuid_text() -> Arc<str> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    /// Positions of the digits of each byte.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let bits = fastrand::u128(..);
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble & 15)).copied().unwrap_or(b'0');
    let mut text = *b"00000000-0000-0000-0000-000000000000";
    for (byte, at) in bits.to_be_bytes().into_iter().zip(PLACES) {
        if let Some([high, low]) = text.get_mut(at..at + 2) {
            (*high, *low) = (digit(byte >> 4), digit(byte));
        }
    }
    std::str::from_utf8(&text).unwrap_or_default().into()
}

/// Appends random hexadecimal digits up to length `len`.
pub fn push_hex(out: &mut String, len: usize) {
    while out.len() < len {
        out.push(char::from_digit(below(16) as u32, 16).unwrap_or('0'));
    }
}

/// The functions that every template has: `$randomNumber(min, max)` and `$randomString(n)` (artillery.md §1.9).
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtins;

impl TemplateFunctions for Builtins {
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        let number = |at: usize| match arguments.get(at) {
            None | Some(Value::Undefined) => None,
            Some(value) => Some(value.to_number()).filter(|number| number.is_finite()),
        };
        match name {
            "$randomNumber" => {
                let (one, two) = match (number(0), number(1)) {
                    (None, None) => (0.0, 1.0),
                    (Some(one), None) => (0.0, one),
                    (one, Some(two)) => (one.unwrap_or(0.0), two),
                };
                Some(Value::Number(between(one, two)))
            }
            // `as` saturates: a negative length becomes 0.
            "$randomString" => Some(Value::from(string(number(0).map_or(STRING_DEFAULT, |len| len.ceil() as usize)))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn call(name: &str, arguments: &[f64]) -> Value {
        let arguments: Vec<Value> = arguments.iter().map(|&number| Value::Number(number)).collect();
        Builtins.call(name, &arguments).unwrap()
    }

    #[test]
    fn the_same_seed_is_the_same_chance() {
        let draw = || (below(1000), string(5), uuid(), between(1.0, 9.0));
        seed(7);
        let one = draw();
        seed(7);
        assert_eq!(one, draw());
    }

    #[test]
    fn numbers_reach_both_ends() {
        seed(1);
        for (arguments, min, max) in
            [(&[1.0, 3.0] as &[f64], 1.0, 3.0), (&[3.0, 1.0], 1.0, 3.0), (&[2.0], 0.0, 2.0), (&[], 0.0, 1.0)]
        {
            let drawn: Vec<f64> = (0..200).map(|_| call("$randomNumber", arguments).to_number()).collect();
            assert!(drawn.contains(&min) && drawn.contains(&max), "{arguments:?}");
            assert!(drawn.iter().all(|number| (min..=max).contains(number) && number.fract() == 0.0));
        }
    }

    #[test]
    fn strings_are_as_long_as_asked() {
        for (arguments, len) in [(&[] as &[f64], 10), (&[3.0], 3), (&[0.0], 0), (&[-1.0], 0)] {
            assert_eq!(call("$randomString", arguments).as_str().unwrap().len(), len);
        }
        assert_eq!(Builtins.call("$nosuch", &[]), None);
    }

    #[test]
    fn uuids_say_their_version() {
        for _ in 0..100 {
            let uuid = uuid();
            let bytes = uuid.as_bytes();
            assert_eq!(uuid.len(), 36);
            assert_eq!(bytes.get(14), Some(&b'4'));
            assert!(b"89ab".contains(bytes.get(19).unwrap()), "{uuid}");
        }
    }
}
