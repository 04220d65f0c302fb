//! Numbers and texts of letters.

use super::draw::hex;
use super::options::Make;
use crate::random;
use crate::value::Value;

pub(super) const FUNCTIONS: &[(&str, Make)] = &[
    ("numberInt", |options| {
        let step = options.number("multipleOf").unwrap_or(1.0).max(1.0);
        let (min, max) = (options.number("min").unwrap_or(0.0), options.number("max").unwrap_or(SAFE_MAX));
        Value::Number(random::between((min / step).ceil(), (max / step).floor()) * step)
    }),
    ("numberFloat", |options| {
        let number = float(options.number("min").unwrap_or(0.0), options.number("max").unwrap_or(1.0));
        let factor = 10_f64.powi(options.number("fractionDigits").unwrap_or(15.0).clamp(0.0, 15.0) as i32);
        Value::Number((number * factor).round() / factor)
    }),
    ("numberBinary", |options| radix(options.number("max").unwrap_or(1.0), 2).into()),
    ("numberOctal", |options| radix(options.number("max").unwrap_or(7.0), 8).into()),
    ("numberHex", |options| radix(options.number("max").unwrap_or(15.0), 16).into()),
    ("numberBigInt", |_| Value::from(random::between(0.0, 999_999_999_999_999.0).to_string())),
    ("numberRomanNumeral", |_| roman(1 + random::below(3999)).into()),
    ("datatypeBoolean", |options| Value::Bool(random::unit() < options.number("probability").unwrap_or(0.5))),
    ("stringUuid", |_| random::uuid().into()),
    ("stringUlid", |_| of_letters(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26)),
    ("stringNanoid", |options| of_letters(NANOID, options.length("length", 21))),
    ("stringAlpha", |options| of_letters(LETTERS, options.length("length", 1))),
    ("stringAlphanumeric", |options| of_letters(ALPHANUMERIC, options.length("length", 1))),
    ("stringNumeric", |options| of_letters(b"0123456789", options.length("length", 1))),
    ("stringBinary", |options| format!("0b{}", of_letters(b"01", options.length("length", 1))).into()),
    ("stringOctal", |options| format!("0o{}", of_letters(b"01234567", options.length("length", 1))).into()),
    ("stringHexadecimal", |options| format!("0x{}", hex(options.length("length", 1))).into()),
    ("stringSample", |options| of_letters(PRINTABLE, options.length("length", 10))),
    ("stringSymbol", |options| of_letters(SYMBOLS, options.length("length", 1))),
];

/// The greatest whole number that JavaScript represents exactly.
const SAFE_MAX: f64 = 9_007_199_254_740_991.0;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const ALPHANUMERIC: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const NANOID: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
const SYMBOLS: &[u8] = b"!\"#$%&'()*+,-./:;<=>?@[]^_`|~";
const PRINTABLE: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&()*+,-./:;<=>?@[]^_|~";

/// A text of `len` random letters from this set.
pub(super) fn of_letters(letters: &[u8], len: usize) -> Value {
    let letter = |_| random::one_of(letters).copied().map_or('a', char::from);
    Value::from((0..len).map(letter).collect::<String>())
}

pub(super) fn float(min: f64, max: f64) -> f64 {
    min + random::unit() * (max - min)
}

fn radix(max: f64, radix: u32) -> String {
    let mut rest = random::between(0.0, max.clamp(0.0, SAFE_MAX)) as u64;
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((rest % u64::from(radix)) as u32, radix).unwrap_or('0'));
        rest /= u64::from(radix);
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

fn roman(mut number: usize) -> String {
    const SIGNS: [(usize, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut text = String::new();
    for (value, sign) in SIGNS {
        text.push_str(&sign.repeat(number / value));
        number %= value;
    }
    text
}
