//! Random texts that several families draw.

use crate::random;

/// The longest text of hexadecimal digits that one call makes.
const HEX_MAX: usize = 100_000;

/// A random element of the list.
pub(super) fn pick(list: &[&'static str]) -> &'static str {
    random::one_of(list).copied().unwrap_or("")
}

/// Replaces `#` by a digit, `^` by a digit from 1 to 9, `?` by a letter.
pub(super) fn digits(format: &str) -> String {
    let fill = |char: char| match char {
        '#' => char::from(b'0' + random::below(10) as u8),
        '^' => char::from(b'1' + random::below(9) as u8),
        '?' => char::from(b'A' + random::below(26) as u8),
        other => other,
    };
    format.chars().map(fill).collect()
}

/// The text with a capital letter first.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A text of `len` random hexadecimal digits.
pub(super) fn hex(len: usize) -> String {
    let digit = |_| char::from_digit(random::below(16) as u32, 16).unwrap_or('0');
    (0..len.min(HEX_MAX)).map(digit).collect()
}
