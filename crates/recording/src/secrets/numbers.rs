//! Numbers of cards, people, phones and accounts.

use super::noticed::{Noticed, is_begin, is_end};
use super::table::SecretKind;

/// Most digits of a number that is looked at.
const DIGITS_MAX: usize = 34;

/// Digits with single signs between them.
struct Digits {
    digits: [u8; DIGITS_MAX],
    count: usize,
    /// The lengths of the groups between the signs.
    groups: [u8; DIGITS_MAX],
    group_count: usize,
    /// The end of each group.
    ends: [usize; DIGITS_MAX],
    end: usize,
}

impl Digits {
    /// The digits from `at`, with at most one of ` `, `-`, `.` between two of them.
    fn new(bytes: &[u8], at: usize) -> Digits {
        let (groups, ends) = ([0; DIGITS_MAX], [at; DIGITS_MAX]);
        let mut all = Digits { digits: [0; DIGITS_MAX], count: 0, groups, group_count: 0, ends, end: at };
        let mut at = at;
        let mut group = 0;
        while let Some(byte) = bytes.get(at) {
            if byte.is_ascii_digit() && all.count < DIGITS_MAX {
                all.digits[all.count] = byte - b'0';
                all.count += 1;
                group += 1;
            } else if group > 0
                && matches!(byte, b' ' | b'-' | b'.')
                && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
            {
                all.close(group, at);
                group = 0;
            } else {
                break;
            }
            at += 1;
        }
        all.close(group, at);
        all
    }

    fn close(&mut self, group: u8, end: usize) {
        if group > 0 && self.group_count < DIGITS_MAX {
            self.groups[self.group_count] = group;
            self.ends[self.group_count] = end;
            self.group_count += 1;
            self.end = end;
        }
    }

    fn groups(&self) -> &[u8] {
        &self.groups[..self.group_count]
    }
}

/// A number that begins at `at`, with a digit or `+`.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<Noticed> {
    if !is_begin(bytes, at) {
        // The rest of a longer word.
        return Some(Noticed::Nothing(run_of_digits(bytes, at)));
    }
    if bytes[at] == b'+' {
        return international(bytes, at);
    }
    let end = run_of_digits(bytes, at);
    if !is_end(bytes, end) {
        // A word that begins with digits.
        return Some(Noticed::Nothing(end));
    }
    let is_fraction = at >= 2 && bytes[at - 1] == b'.' && bytes[at - 2].is_ascii_digit();
    if is_fraction {
        return Some(Noticed::Nothing(end));
    }
    let all = Digits::new(bytes, at);
    // The first groups of the digits that are a number by themselves: a text may go on with other digits.
    for count in (1..=all.group_count.min(5)).rev() {
        let groups = &all.groups()[..count];
        let length = groups.iter().map(|group| usize::from(*group)).sum();
        let end = all.ends[count - 1];
        if is_end(bytes, end)
            && let Some(kind) = kind(&all.digits[..length], groups, bytes.get(at + usize::from(groups[0])).copied())
        {
            return Some(Noticed::Secret(at..end, kind));
        }
    }
    Some(Noticed::Nothing(all.ends[0]))
}

fn run_of_digits(bytes: &[u8], at: usize) -> usize {
    at + 1 + bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn kind(digits: &[u8], groups: &[u8], sign: Option<u8>) -> Option<SecretKind> {
    let kinds = [
        (is_card(digits, groups), SecretKind::Card),
        (is_resident(digits, groups), SecretKind::PersonNumber),
        (is_social_security(digits, groups, sign), SecretKind::PersonNumber),
        (is_phone(digits, groups), SecretKind::Phone),
    ];
    kinds.into_iter().find(|(is, _)| *is).map(|(_, kind)| kind)
}

/// A payment card: 13 to 19 digits of a network, in groups of at least three, with Luhn's check digit.
fn is_card(digits: &[u8], groups: &[u8]) -> bool {
    if !(13..=19).contains(&digits.len()) || !(2..=6).contains(&digits[0]) || groups.iter().any(|group| *group < 3) {
        return false;
    }
    let sum: u32 = digits.iter().rev().enumerate().map(|(at, digit)| luhn(at, *digit)).sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != digits[0])
}

fn luhn(at: usize, digit: u8) -> u32 {
    let digit = u32::from(digit);
    match at % 2 {
        0 => digit,
        _ if digit > 4 => digit * 2 - 9,
        _ => digit * 2,
    }
}

/// The number of a resident of Korea or of a foreigner there: a date of birth, a digit for century and sex, six digits.
/// Since 2020 the last digit checks nothing.
fn is_resident(digits: &[u8], groups: &[u8]) -> bool {
    let is_form = matches!(groups, [6, 7] | [13]);
    if !is_form || digits.len() != 13 {
        return false;
    }
    let (month, day) = (digits[2] * 10 + digits[3], digits[4] * 10 + digits[5]);
    (1..=12).contains(&month) && (1..=31).contains(&day) && (1..=8).contains(&digits[6])
}

/// The number of social security of the USA, with its hyphens.
fn is_social_security(digits: &[u8], groups: &[u8], sign: Option<u8>) -> bool {
    let [a, b, c, d, e, f, g, h, i] = *digits else { return false };
    let area = u32::from(a) * 100 + u32::from(b) * 10 + u32::from(c);
    groups == [3, 2, 4] && sign == Some(b'-') && !matches!(area, 0 | 666 | 900..) && d + e > 0 && f + g + h + i > 0
}

/// A Korean phone number: a mobile one in any form, another one with signs.
fn is_phone(digits: &[u8], groups: &[u8]) -> bool {
    let is_mobile = matches!(digits, [0, 1, 0 | 1 | 6..=9, ..]) && (10..=11).contains(&digits.len());
    match groups {
        [10 | 11] | [3, 7 | 8] | [3, 3 | 4, 4] if is_mobile => true,
        [2, 3 | 4, 4] => digits.starts_with(&[0, 2]),
        [3, 3 | 4, 4] | [4, 3 | 4, 4] => matches!(digits, [0, 3..=8, ..]),
        // 82 10 1234 5678, without a plus.
        [2, 2, 3 | 4, 4] => digits.starts_with(&[8, 2, 1]),
        [12] => digits.starts_with(&[8, 2, 1, 0]),
        _ => false,
    }
}

/// A phone number with the code of a country: `+82 10-1234-5678`, `+82 (0)10 1234 5678`.
fn international(bytes: &[u8], at: usize) -> Option<Noticed> {
    let mut end = at + 1;
    let mut digits = 0;
    while let Some(byte) = bytes.get(end) {
        let goes_on = match byte {
            b'0'..=b'9' => true,
            b' ' | b'-' | b'.' | b'(' | b')' => {
                bytes.get(end + 1).is_some_and(|next| next.is_ascii_digit() || *byte != *next && b"( )".contains(next))
            }
            _ => false,
        };
        if !goes_on || digits == 15 && byte.is_ascii_digit() {
            break;
        }
        digits += usize::from(byte.is_ascii_digit());
        end += 1;
    }
    while end > at + 1 && !bytes[end - 1].is_ascii_digit() {
        end -= 1;
    }
    let is_phone = (10..=15).contains(&digits) && is_end(bytes, end) && bytes.get(at + 1) != Some(&b'0');
    is_phone.then_some(Noticed::Secret(at + 1..end, SecretKind::Phone))
}

/// An account as IBAN at `at`: the country, two check digits, up to 30 letters and digits, perhaps in groups of four.
pub(super) fn iban(bytes: &[u8], at: usize) -> Option<Noticed> {
    let [a, b, c, d, ..] = bytes.get(at..)? else { return None };
    if !(a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit()) {
        return None;
    }
    let mut values = [0; DIGITS_MAX];
    let mut count = 0;
    let mut end = at;
    let mut last = None;
    while let Some(byte) = bytes.get(end) {
        if (byte.is_ascii_uppercase() || byte.is_ascii_digit()) && count < DIGITS_MAX {
            values[count] = char::from(*byte).to_digit(36).unwrap_or_default();
            count += 1;
            if (15..=DIGITS_MAX).contains(&count) && is_end(bytes, end + 1) && is_account(&values[..count]) {
                last = Some(end + 1);
            }
        } else if !(*byte == b' ' && count > 0 && count % 4 == 0) {
            break;
        }
        end += 1;
    }
    last.map(|end| Noticed::Secret(at..end, SecretKind::Iban))
}

/// Whether the check digits are right: the number, with its first four characters at the end, is 1 modulo 97.
fn is_account(values: &[u32]) -> bool {
    let (head, tail) = values.split_at(4);
    let rest = tail.iter().chain(head).fold(0, |rest, value| (rest * if *value > 9 { 100 } else { 10 } + value) % 97);
    rest == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(&str, SecretKind)> {
        let at = text.find(|c: char| c.is_ascii_digit() || c == '+').unwrap();
        match number(text.as_bytes(), at)? {
            Noticed::Secret(range, kind) => Some((&text[range], kind)),
            Noticed::Nothing(_) => None,
        }
    }

    #[test]
    fn numbers_have_their_kinds() {
        for (text, kind) in [
            ("4111111111111111", SecretKind::Card),
            ("5500 0000 0000 0004", SecretKind::Card),
            ("3782-822463-10005", SecretKind::Card),
            ("900101-1234567", SecretKind::PersonNumber),
            ("0212314234567", SecretKind::PersonNumber),
            ("850505-5234567", SecretKind::PersonNumber),
            ("123-45-6789", SecretKind::PersonNumber),
            ("010-1234-5678", SecretKind::Phone),
            ("01012345678", SecretKind::Phone),
            ("010 1234 5678", SecretKind::Phone),
            ("010.1234.5678", SecretKind::Phone),
            ("016-123-4567", SecretKind::Phone),
            ("02-123-4567", SecretKind::Phone),
            ("031-1234-5678", SecretKind::Phone),
            ("070-1234-5678", SecretKind::Phone),
            ("0505-123-4567", SecretKind::Phone),
            ("82-10-1234-5678", SecretKind::Phone),
        ] {
            assert_eq!(found(text), Some((text, kind)));
            let within = format!("x: {text}, 7");
            assert_eq!(found(&within), Some((text, kind)), "{within}");
            assert_eq!(found(&format!("a{text}")), None);
            assert_eq!(found(&format!("{text}a")), None, "{text}a");
        }
        for text in ["+82 10-1234-5678", "+821012345678", "+82 (0)10 1234 5678", "+1 202-555-0143"] {
            assert_eq!(found(text), Some((&text[1..], SecretKind::Phone)));
        }
        for text in [
            "4111111111111112",
            "1730000000000",
            "901301-1234567",
            "900132-1234567",
            "000-12-3456",
            "123.45.6789",
            "2026-11-30",
            "192.168.100.200",
            "0.4111111111111111",
            "12345",
            "1:2",
            "+5",
            "0000000000000000",
            "20261130123456",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found("010-1234-5678 010-8765-4321").unwrap().0, "010-1234-5678");
    }

    #[test]
    fn accounts_have_right_check_digits() {
        let account = |text: &str| match iban(text.as_bytes(), 0) {
            Some(Noticed::Secret(range, _)) => Some(text[range].to_owned()),
            _ => None,
        };
        for text in ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19", "FR1420041010050500013M02606"] {
            assert_eq!(account(text).as_deref(), Some(text));
            assert_eq!(account(&format!("{text}.")).as_deref(), Some(text));
        }
        assert_eq!(account("DE88370400440532013000"), None);
        assert_eq!(account("DE89 is a number"), None);
    }
}
