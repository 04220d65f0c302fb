//! Converts bodies between character sets, piece by piece.

use std::sync::Arc;

use weir_http::exchange::response_body::BodyFilter;

/// How to convert.
#[derive(Clone)]
pub enum Recoding {
    /// Each byte becomes another one.
    Bytes(Arc<[u8; 256]>),
    /// Each byte becomes a character.
    ToUtf8(Arc<[Wide; 256]>),
    /// Each character becomes a byte, or an HTML entity.
    FromUtf8(Arc<Pages>),
}

impl Recoding {
    /// Whether the body keeps its length.
    pub fn keeps_length(&self) -> bool {
        matches!(self, Recoding::Bytes(_))
    }
}

/// The filter for one body.
pub fn filter(recoding: Recoding) -> Box<dyn BodyFilter> {
    match recoding {
        Recoding::Bytes(table) => Box::new(Bytes(table)),
        Recoding::ToUtf8(table) => Box::new(ToUtf8(table)),
        Recoding::FromUtf8(pages) => Box::new(FromUtf8 { pages, saved: Vec::new() }),
    }
}

/// A character of one to three bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wide {
    length: u8,
    bytes: [u8; 3],
}

impl Wide {
    /// The first three bytes of `text`.
    pub fn new(text: &[u8]) -> Wide {
        let mut wide = Wide::default();
        for (byte, from) in wide.bytes.iter_mut().zip(text) {
            *byte = *from;
            wide.length += 1;
        }
        wide
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }
}

/// The bytes of characters below U+10000, in pages of 256.
#[derive(Default)]
pub struct Pages(Vec<(u8, Box<[u8; 256]>)>);

impl Pages {
    /// Gives a character a byte.
    pub fn set(&mut self, code: u16, byte: u8) {
        let [page, place] = code.to_be_bytes();
        let at = self.0.iter().position(|(number, _)| *number == page).unwrap_or_else(|| {
            self.0.push((page, Box::new([0; 256])));
            self.0.len() - 1
        });
        if let Some((_, bytes)) = self.0.get_mut(at) {
            bytes[usize::from(place)] = byte;
        }
    }

    fn get(&self, code: u32) -> Option<u8> {
        let [page, place] = u16::try_from(code).ok()?.to_be_bytes();
        let (_, bytes) = self.0.iter().find(|(number, _)| *number == page)?;
        Some(bytes[usize::from(place)]).filter(|byte| *byte != 0)
    }
}

/// The result of reading a character of more than one byte; the numbers of bytes are those that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Char {
    /// This character.
    Is(u32, usize),
    /// No character.
    Invalid(usize),
    /// The rest is missing.
    Cut,
}

/// Reads a character, as lenient as nginx's `ngx_utf8_decode`.
pub fn decode(text: &[u8]) -> Char {
    let Some((first, rest)) = text.split_first() else { return Char::Cut };
    let (mut code, least, count) = match first {
        0xc2..=0xdf => (u32::from(first & 0x1f), 0x80, 1),
        0xe0..=0xef => (u32::from(first & 0x0f), 0x800, 2),
        0xf0..=0xf7 => (u32::from(first & 0x07), 0x1_0000, 3),
        _ => return Char::Invalid(1),
    };
    let Some(rest) = rest.get(..count) else { return Char::Cut };
    for (at, byte) in rest.iter().enumerate() {
        if *byte < 0x80 {
            return Char::Invalid(at + 2);
        }
        code = code << 6 | u32::from(byte & 0x3f);
    }
    if (least..=0x10_ffff).contains(&code) { Char::Is(code, count + 1) } else { Char::Invalid(count + 1) }
}

struct Bytes(Arc<[u8; 256]>);

impl BodyFilter for Bytes {
    fn write(&mut self, input: &[u8], _flush: bool, _last: bool, out: &mut Vec<u8>) {
        out.extend(input.iter().map(|byte| self.0[usize::from(*byte)]));
    }
}

struct ToUtf8(Arc<[Wide; 256]>);

impl BodyFilter for ToUtf8 {
    fn write(&mut self, input: &[u8], _flush: bool, _last: bool, out: &mut Vec<u8>) {
        // Most bytes of most texts stay as they are.
        let stays = |byte: &u8| self.0[usize::from(*byte)] == Wide { length: 1, bytes: [*byte, 0, 0] };
        let mut rest = input;
        while !rest.is_empty() {
            let plain = rest.iter().position(|byte| !stays(byte)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(plain);
            out.extend_from_slice(run);
            rest = after;
            while let Some((byte, after)) = rest.split_first().filter(|(byte, _)| !stays(byte)) {
                out.extend_from_slice(self.0[usize::from(*byte)].bytes());
                rest = after;
            }
        }
    }
}

struct FromUtf8 {
    pages: Arc<Pages>,
    /// The start of a character whose end is in the next piece: at most three bytes.
    saved: Vec<u8>,
}

/// The longest character in bytes.
const CHAR_BYTES_MAX: usize = 4;

impl FromUtf8 {
    fn put(&self, code: u32, out: &mut Vec<u8>) {
        match self.pages.get(code) {
            Some(byte) => out.push(byte),
            None => {
                out.extend_from_slice(b"&#");
                weir_wire::encode::push_decimal(out, u64::from(code));
                out.push(b';');
            }
        }
    }

    /// Reads the bytes that the last piece left, with the beginning of this one; returns the rest of the piece.
    ///
    /// The first of these bytes may turn out to be no character. Then the others are read again: each of them may be one, or
    /// begin one.
    fn complete<'i>(&mut self, input: &'i [u8], out: &mut Vec<u8>) -> &'i [u8] {
        let known = self.saved.len();
        let more = input.len().min(CHAR_BYTES_MAX);
        self.saved.extend_from_slice(input.get(..more).unwrap_or_default());
        let mut at = 0;
        while at < known {
            let rest = self.saved.get(at..).unwrap_or_default();
            at += match (rest.first(), decode(rest)) {
                (Some(plain @ ..0x80), _) => {
                    out.push(*plain);
                    1
                }
                // All of the piece is in `saved`: a whole character would fit.
                (_, Char::Cut) => {
                    self.saved.drain(..at);
                    return &[];
                }
                (_, Char::Is(code, read)) => {
                    self.put(code, out);
                    read
                }
                (_, Char::Invalid(read)) => {
                    out.push(b'?');
                    read
                }
            };
        }
        self.saved.clear();
        input.get(at - known..).unwrap_or_default()
    }
}

impl BodyFilter for FromUtf8 {
    fn write(&mut self, input: &[u8], _flush: bool, _last: bool, out: &mut Vec<u8>) {
        let mut rest = if self.saved.is_empty() { input } else { self.complete(input, out) };
        while !rest.is_empty() {
            let plain = rest.iter().position(|byte| *byte >= 0x80).unwrap_or(rest.len());
            out.extend_from_slice(rest.get(..plain).unwrap_or_default());
            rest = rest.get(plain..).unwrap_or_default();
            if rest.is_empty() {
                return;
            }
            let read = match decode(rest) {
                // nginx: a character that the last piece cuts off is lost.
                Char::Cut => {
                    self.saved.extend_from_slice(rest);
                    return;
                }
                Char::Is(code, read) => {
                    self.put(code, out);
                    read
                }
                Char::Invalid(read) => {
                    out.push(b'?');
                    read
                }
            };
            rest = rest.get(read..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn through(recoding: &Recoding, pieces: &[&[u8]]) -> Vec<u8> {
        let mut filter = filter(recoding.clone());
        let mut out = Vec::new();
        for piece in pieces {
            filter.write(piece, false, false, &mut out);
        }
        filter.write(b"", false, true, &mut out);
        out
    }

    fn from_utf8() -> Recoding {
        let mut pages = Pages::default();
        pages.set(0x430, 0xc1); // а
        pages.set(0x20ac, 0x80); // €
        Recoding::FromUtf8(Arc::new(pages))
    }

    #[test]
    fn characters_become_bytes_or_entities_however_the_body_is_cut() {
        for (text, expected) in [
            ("x\u{430}y\u{20ac}".as_bytes(), b"x\xc1y\x80".as_slice()),
            ("\u{431}\u{1f600}".as_bytes(), b"&#1073;&#128512;"),
            (b"a\xffb\xc0c", b"a?b?c"),
            (b"\xd0x\xe2\x82x", b"??"),
            (b"\xf4\x90\x80\x80z", b"?z"),
            (b"a\xd0", b"a"),
            (b"\xf0 \x98y\xe2\x82\xac", b"??y\x80"),
            (b"\xf0a", b""),
        ] {
            assert_eq!(through(&from_utf8(), &[text]), expected, "{}", text.escape_ascii());
            let single: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(through(&from_utf8(), &single), expected, "{}, byte by byte", text.escape_ascii());
        }
        let text = "x\u{430}\u{431}\u{20ac}\u{1f600}y".as_bytes();
        let whole = through(&from_utf8(), &[text]);
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(through(&from_utf8(), &pieces), whole, "cut at {first} and {second}");
            }
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(through(&from_utf8(), &single), whole);
    }

    #[test]
    fn bytes_become_characters() {
        let mut table = std::array::from_fn(|byte| Wide::new(&[byte as u8]));
        table[0xc1] = Wide::new("а".as_bytes());
        let recoding = Recoding::ToUtf8(Arc::new(table));
        assert_eq!(through(&recoding, &[b"x\xc1", b"\xc1y"]), "xааy".as_bytes());
        assert!(!recoding.keeps_length());
    }

    #[test]
    fn bytes_become_bytes() {
        let mut table: [u8; 256] = std::array::from_fn(|byte| byte as u8);
        table[usize::from(b'X')] = b'Y';
        let recoding = Recoding::Bytes(Arc::new(table));
        assert_eq!(through(&recoding, &[b"aXb", b"X"]), b"aYbY");
        assert!(recoding.keeps_length());
    }

    mod mutate {
        use super::*;
        use weir_mutate::{mutate, splits};

        /// Characters become the same however the body is cut; a character becomes at most `&#1114111;`.
        #[test]
        fn bodies() {
            let words: [&[u8]; 6] = [b"\xd0", b"\xe2\x82", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xff", b"\xd0\xb0"];
            mutate(&["x\u{430}\u{431}\u{20ac}\u{1f600}y", "plain"], &words, |text| {
                let whole = through(&from_utf8(), &[text]);
                assert!(whole.len() <= 10 * text.len());
                for split in splits(text.len()) {
                    let (head, tail) = text.split_at(split);
                    assert_eq!(through(&from_utf8(), &[head, tail]), whole, "split at {split}");
                }
                assert_eq!(through(&from_utf8(), &text.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
            });
        }
    }
}
