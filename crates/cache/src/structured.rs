//! Structured fields: strict parsing of a dictionary (RFC 9651 §4.2.2), for `CDN-Cache-Control`.
//!
//! A syntax error anywhere makes the whole field invalid; this differs from `Cache-Control`. Parameters, inner lists
//! and items of every type are checked and skipped; nothing is copied.

/// The most members; a field with more counts as invalid (RFC 9651 §3.2 requires at least 1024).
pub const MEMBERS_MAX: usize = 1024;
/// The most items or parameters in one member; more make the field invalid too.
const PARTS_MAX: usize = 1024;

/// The value of a member, in the types needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// `?1`, `?0`, or a key without a value, which is true.
    Boolean(bool),
    /// Up to fifteen digits.
    Integer(i64),
    /// The text between the quotes, with escapes as written.
    String(&'a [u8]),
    /// A decimal, token, date, byte sequence, display string or inner list.
    Other,
}

/// The syntax is invalid: ignore the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Reads a dictionary from the values of all lines, and passes each member to `member` in order.
///
/// A key may occur twice; the last one counts, and `member` must handle that. Lines are joined by a comma, as in the
/// RFC, so a line may be empty only if it is the only one.
pub fn dictionary<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    mut member: impl FnMut(&'a [u8], Item<'a>),
) -> Result<usize, Broken> {
    let mut count = 0;
    for line in lines {
        let mut reader = Reader { text: line.trim_ascii() };
        if reader.text.is_empty() {
            continue;
        }
        loop {
            if count == MEMBERS_MAX {
                return Err(Broken);
            }
            let (key, item) = reader.member()?;
            count += 1;
            member(key, item);
            reader.white_space();
            if reader.text.is_empty() {
                break;
            }
            reader.expect(b',')?;
            reader.white_space();
            if reader.text.is_empty() {
                return Err(Broken);
            }
        }
    }
    Ok(count)
}

struct Reader<'a> {
    text: &'a [u8],
}

impl<'a> Reader<'a> {
    fn member(&mut self) -> Result<(&'a [u8], Item<'a>), Broken> {
        let key = self.key()?;
        let item = if self.accept(b'=') {
            if self.text.first() == Some(&b'(') { self.inner_list()? } else { self.bare_item()? }
        } else {
            Item::Boolean(true)
        };
        self.parameters()?;
        Ok((key, item))
    }

    fn key(&mut self) -> Result<&'a [u8], Broken> {
        match self.text.first() {
            Some(b'a'..=b'z' | b'*') => {}
            _ => return Err(Broken),
        }
        Ok(self.take_while(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')))
    }

    fn parameters(&mut self) -> Result<(), Broken> {
        for _ in 0..PARTS_MAX {
            if !self.accept(b';') {
                return Ok(());
            }
            self.take_while(|b| b == b' ');
            self.key()?;
            if self.accept(b'=') {
                self.bare_item()?;
            }
        }
        Err(Broken)
    }

    fn inner_list(&mut self) -> Result<Item<'a>, Broken> {
        self.expect(b'(')?;
        for _ in 0..PARTS_MAX {
            self.take_while(|b| b == b' ');
            if self.accept(b')') {
                return Ok(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.text.first(), Some(b' ' | b')')) {
                return Err(Broken);
            }
        }
        Err(Broken)
    }

    fn bare_item(&mut self) -> Result<Item<'a>, Broken> {
        match self.text.first() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'"') => self.string(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'*') => {
                self.take_while(is_token_byte);
                Ok(Item::Other)
            }
            Some(b':') => self.bytes(),
            Some(b'?') => self.boolean(),
            Some(b'@') => {
                self.expect(b'@')?;
                if matches!(self.number()?, Item::Integer(_)) { Ok(Item::Other) } else { Err(Broken) }
            }
            Some(b'%') => self.display_string(),
            _ => Err(Broken),
        }
    }

    /// A number of at most 15 digits, or 12 digits and up to three after the dot (§4.2.4).
    fn number(&mut self) -> Result<Item<'a>, Broken> {
        let is_negative = self.accept(b'-');
        let whole = self.take_while(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 15 {
            return Err(Broken);
        }
        if self.accept(b'.') {
            let fraction = self.take_while(|b| b.is_ascii_digit());
            let is_decimal = whole.len() <= 12 && (1..=3).contains(&fraction.len());
            return if is_decimal { Ok(Item::Other) } else { Err(Broken) };
        }
        let number = whole.iter().fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        Ok(Item::Integer(if is_negative { -number } else { number }))
    }

    fn string(&mut self) -> Result<Item<'a>, Broken> {
        self.expect(b'"')?;
        let mut bytes = self.text.iter().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => match bytes.next() {
                    Some((_, b'"' | b'\\')) => {}
                    _ => return Err(Broken),
                },
                b'"' => {
                    let (string, rest) = self.text.split_at_checked(at).ok_or(Broken)?;
                    self.text = rest.get(1..).unwrap_or_default();
                    return Ok(Item::String(string));
                }
                b' '..=b'~' => {}
                _ => return Err(Broken),
            }
        }
        Err(Broken)
    }

    fn bytes(&mut self) -> Result<Item<'a>, Broken> {
        self.expect(b':')?;
        self.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
        self.expect(b':')?;
        Ok(Item::Other)
    }

    fn boolean(&mut self) -> Result<Item<'a>, Broken> {
        self.expect(b'?')?;
        if self.accept(b'1') {
            return Ok(Item::Boolean(true));
        }
        self.expect(b'0')?;
        Ok(Item::Boolean(false))
    }

    /// `%"…"` with lower-case escapes (§4.2.10).
    fn display_string(&mut self) -> Result<Item<'a>, Broken> {
        self.expect(b'%')?;
        self.expect(b'"')?;
        loop {
            self.take_while(|b| matches!(b, b' '..=b'~') && b != b'%' && b != b'"');
            if self.accept(b'"') {
                return Ok(Item::Other);
            }
            self.expect(b'%')?;
            for _ in 0..2 {
                let (digit, rest) = self.text.split_first().ok_or(Broken)?;
                if !matches!(digit, b'0'..=b'9' | b'a'..=b'f') {
                    return Err(Broken);
                }
                self.text = rest;
            }
        }
    }

    fn white_space(&mut self) {
        self.take_while(|b| matches!(b, b' ' | b'\t'));
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.text.iter().take_while(|b| wanted(**b)).count();
        let (taken, rest) = self.text.split_at_checked(length).unwrap_or_default();
        self.text = rest;
        taken
    }

    fn accept(&mut self, byte: u8) -> bool {
        let rest = self.text.split_first().filter(|(first, _)| **first == byte).map(|(_, rest)| rest);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        if self.accept(byte) { Ok(()) } else { Err(Broken) }
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read<'a>(lines: &[&'a str]) -> Result<Vec<(&'a str, Item<'a>)>, Broken> {
        let mut members = Vec::new();
        dictionary(lines.iter().map(|line| line.as_bytes()), |key, item| {
            members.push((std::str::from_utf8(key).unwrap(), item));
        })?;
        Ok(members)
    }

    #[test]
    fn members_of_every_type_are_told_apart() {
        use Item::{Boolean, Integer, Other, String};
        for (lines, expected) in [
            (&["max-age=3600"][..], vec![("max-age", Integer(3600))]),
            (&["a=1;x;y=\"z\" , b"], vec![("a", Integer(1)), ("b", Boolean(true))]),
            (&["a=?0", "b=\"q, \\\" r\""], vec![("a", Boolean(false)), ("b", String(b"q, \\\" r"))]),
            (&["a=(1 \"b\" c);d, e=-1.5"], vec![("a", Other), ("e", Other)]),
            (
                &["a=tok/en:x, b=:aGk=:, c=@-12, d=%\"f%c3%bc\""],
                vec![("a", Other), ("b", Other), ("c", Other), ("d", Other)],
            ),
            (&["a=-7,a=8"], vec![("a", Integer(-7)), ("a", Integer(8))]),
            (&["", "a"], vec![("a", Boolean(true))]),
            (&[""], vec![]),
        ] {
            assert_eq!(read(lines), Ok(expected), "{lines:?}");
        }
    }

    #[test]
    fn one_break_is_a_break_of_all() {
        for line in [
            "max-age=10000, &&&&&",
            "Max-Age=1",
            "max-age =1",
            "max-age= 1",
            "a,",
            "a,,b",
            "a b",
            "a=",
            "a=\"b",
            "a=\"\\x\"",
            "a=1234567890123456",
            "a=1.",
            "a=1.2345",
            "a=(1",
            "a=(1\"b\")",
            "a=?2",
            "a=:x",
            "a=@1.5",
            "a=%\"%C3\"",
            "a;B",
            "=1",
        ] {
            assert_eq!(read(&[line]), Err(Broken), "{line}");
        }
        let many = vec!["a"; MEMBERS_MAX + 1].join(",");
        assert_eq!(read(&[&many]), Err(Broken));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(lines: Vec<Vec<u8>>) {
            let mut count = 0;
            let result = dictionary(lines.iter().map(Vec::as_slice), |_, _| count += 1);
            prop_assert!(result.is_err() || result == Ok(count));
        }

        #[test]
        fn near_misses_are_read(line in "[a-b=?0-9;,()\"%:@. -]{0,24}") {
            let _ = read(&[&line]);
        }
    }
}
