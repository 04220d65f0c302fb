//! Decoded texts that know where each of their bytes stands in the original.

use std::ops::Range;

/// A part of a text, perhaps decoded.
#[derive(Clone, Copy)]
pub(super) struct View<'t> {
    pub(super) bytes: &'t [u8],
    /// The place of each byte in the original, and the end of the last one. `None`: one behind the other, from `base`.
    places: Option<&'t [u32]>,
    base: usize,
}

/// A decoded text.
pub(super) struct Decoded {
    bytes: Vec<u8>,
    places: Vec<u32>,
}

impl<'t> View<'t> {
    /// A text as it is.
    pub(super) fn new(bytes: &'t [u8]) -> View<'t> {
        View { bytes, places: None, base: 0 }
    }

    /// The place of a byte in the original, or of the end.
    pub(super) fn place(&self, at: usize) -> usize {
        match self.places {
            Some(places) => places.get(at).copied().unwrap_or_default() as usize,
            None => self.base + at,
        }
    }

    /// The text is as it is in the original.
    pub(super) fn is_plain(&self) -> bool {
        self.places.is_none()
    }

    /// A part of this one.
    pub(super) fn part(&self, range: Range<usize>) -> View<'t> {
        let bytes = self.bytes.get(range.clone()).unwrap_or_default();
        let places = self.places.map(|places| places.get(range.start..=range.start + bytes.len()).unwrap_or_default());
        View { bytes, places, base: self.base + range.start }
    }

    /// The parts between the bytes `by`.
    pub(super) fn split(self, by: impl Fn(u8) -> bool) -> impl Iterator<Item = View<'t>> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let view = rest?;
            let end = view.bytes.iter().position(|byte| by(*byte));
            rest = end.map(|end| view.part(end + 1..view.bytes.len()));
            Some(view.part(0..end.unwrap_or(view.bytes.len())))
        })
    }

    /// The parts before and behind the first byte `by`.
    pub(super) fn split_once(self, by: u8) -> Option<(View<'t>, View<'t>)> {
        let at = memchr::memchr(by, self.bytes)?;
        Some((self.part(0..at), self.part(at + 1..self.bytes.len())))
    }

    /// Without white space at its ends.
    pub(super) fn trim(self) -> View<'t> {
        let begin = self.bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let end = self.bytes.len() - self.bytes.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.part(begin..end.max(begin))
    }

    /// Without quotes around it.
    pub(super) fn unquote(self) -> View<'t> {
        match self.bytes {
            [b'"', .., b'"'] | [b'\'', .., b'\''] => self.part(1..self.bytes.len() - 1),
            _ => self,
        }
    }

    /// Percent escapes decoded, and in a form also `+`. `None`: there are none.
    pub(super) fn percent(&self, is_form: bool) -> Option<Decoded> {
        let is_coded = |at: usize| self.escaped(at).is_some() || is_form && self.bytes[at] == b'+';
        let first = memchr::memchr2_iter(b'%', b'+', self.bytes).find(|at| is_coded(*at))?;
        let mut decoded = Decoded::with_capacity(self.bytes.len());
        (0..first).for_each(|at| decoded.add(self.bytes[at], self.place(at)));
        let mut at = first;
        while let Some(byte) = self.bytes.get(at) {
            let (byte, length) = match self.escaped(at) {
                Some(byte) => (byte, 3),
                None if is_form && *byte == b'+' => (b' ', 1),
                None => (*byte, 1),
            };
            decoded.add(byte, self.place(at));
            at += length;
        }
        Some(decoded.ended(self.place(at)))
    }

    /// The byte of the escape at `at`.
    fn escaped(&self, at: usize) -> Option<u8> {
        let [b'%', high, low] = *self.bytes.get(at..at + 3)? else { return None };
        Some((hex(high)? << 4 | hex(low)?) as u8)
    }

    /// The escapes of a JSON string decoded. `None`: there are none.
    pub(super) fn json_string(&self) -> Option<Decoded> {
        memchr::memchr(b'\\', self.bytes)?;
        let mut decoded = Decoded::with_capacity(self.bytes.len());
        let mut at = 0;
        while let Some(byte) = self.bytes.get(at) {
            let place = self.place(at);
            if *byte != b'\\' {
                decoded.add(*byte, place);
                at += 1;
                continue;
            }
            let (char, length) = self.json_escape(at);
            let end = self.place((at + length).min(self.bytes.len()));
            let mut utf8 = [0; 4];
            for (number, byte) in char.encode_utf8(&mut utf8).bytes().enumerate() {
                // All bytes of one character stand for one escape.
                decoded.add(byte, if number == 0 { place } else { end });
            }
            at += length;
        }
        Some(decoded.ended(self.place(self.bytes.len())))
    }

    /// The character of the escape at `at`, and the length of the escape.
    fn json_escape(&self, at: usize) -> (char, usize) {
        let unit = |at: usize| {
            let digits = match self.bytes.get(at..at + 6) {
                Some([b'\\', b'u', digits @ ..]) => digits,
                _ => return None,
            };
            digits.iter().try_fold(0, |value, digit| Some(value << 4 | hex(*digit)?))
        };
        if let Some(first) = unit(at) {
            let pair = unit(at + 6).filter(|second| first >> 10 == 0x36 && second >> 10 == 0x37);
            if let Some(second) = pair {
                let code = 0x1_0000 + ((first & 0x3ff) << 10 | second & 0x3ff);
                return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
            }
            return (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6);
        }
        let char = match self.bytes.get(at + 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(other) if other.is_ascii() => char::from(*other),
            _ => return ('\\', 1),
        };
        (char, 2)
    }
}

impl Decoded {
    fn with_capacity(bytes: usize) -> Decoded {
        Decoded { bytes: Vec::with_capacity(bytes), places: Vec::with_capacity(bytes + 1) }
    }

    fn add(&mut self, byte: u8, place: usize) {
        self.bytes.push(byte);
        self.places.push(place as u32);
    }

    fn ended(mut self, place: usize) -> Decoded {
        self.places.push(place as u32);
        self
    }

    pub(super) fn view(&self) -> View<'_> {
        View { bytes: &self.bytes, places: Some(&self.places), base: 0 }
    }
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(view: View<'_>) -> Vec<usize> {
        (0..=view.bytes.len()).map(|at| view.place(at)).collect()
    }

    #[test]
    fn decoded_bytes_know_their_places() {
        let view = View::new(b"x=a%4 %2540+b");
        assert!(View::new(b"a+b%4").percent(false).is_none());
        let value = view.part(2..view.bytes.len());
        let once = value.percent(true).unwrap();
        assert_eq!(once.view().bytes, b"a%4 %40 b");
        assert_eq!(places(once.view()), [2, 3, 4, 5, 6, 9, 10, 11, 12, 13]);
        let twice = once.view().percent(false).unwrap();
        assert_eq!(twice.view().bytes, b"a%4 @ b");
        assert_eq!(places(twice.view()), [2, 3, 4, 5, 6, 11, 12, 13]);
        assert_eq!(places(twice.view().part(4..6)), [6, 11, 12]);
    }

    #[test]
    fn escapes_of_json_are_characters() {
        let text = br#"a\u00e9\n\ud83d\ude00\ud83d\"\u12"#;
        let decoded = View::new(text).json_string().unwrap();
        assert_eq!(str::from_utf8(decoded.view().bytes).unwrap(), "aé\n😀\u{fffd}\"u12");
        assert_eq!(places(decoded.view()), [0, 1, 7, 7, 9, 21, 21, 21, 21, 27, 27, 27, 29, 31, 32, 33]);
        assert_eq!(View::new(b"\\").json_string().unwrap().view().bytes, b"\\");
    }

    #[test]
    fn parts_are_between_the_bytes() {
        let all: Vec<&[u8]> = View::new(b"a&&b").split(|byte| byte == b'&').map(|view| view.bytes).collect();
        assert_eq!(all, [&b"a"[..], b"", b"b"]);
        assert_eq!(View::new(b" \"a\" ").trim().unquote().bytes, b"a");
        assert_eq!(View::new(b"  ").trim().bytes, b"");
        assert_eq!(View::new(b"\"").unquote().bytes, b"\"");
    }
}
