//! Replacements of the same shape: keyed hashes whose characters are of the kinds of the value's.

use super::sip::{Sip, SipKey};

/// Replacements that equal the value are drawn again, so often at most: short values have few others.
const DRAWS_MAX: u32 = 8;

/// Appends the replacement of `value`: a digit for a digit, a letter for a letter of the same case, a Korean syllable for a
/// syllable. Other characters and the length stay. The first digit of a value is never 0, because a number in JSON does
/// not begin with it. In a value without letters and digits, the signs become other signs.
pub(super) fn replace(key: SipKey, value: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    let first = Random::new(key, value);
    let is_signs_only = !value.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    for draw in 0..DRAWS_MAX {
        out.truncate(begin);
        let mut random = first.draw(draw);
        if is_signs_only {
            out.extend(value.iter().map(|byte| if byte.is_ascii_graphic() { *random.of(b"-._~") } else { *byte }));
        } else {
            characters(&mut random, value, out);
        }
        if out[begin..] != *value {
            break;
        }
    }
}

fn characters(random: &mut Random, value: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    let mut rest = value;
    while !rest.is_empty() {
        let ascii = rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
        let (plain, behind) = rest.split_at(ascii);
        out.extend(plain.iter().map(|byte| random.within(KINDS[usize::from(*byte)])));
        let (other, behind) = behind.split_at(if behind.is_empty() { 0 } else { length_of_character(behind) });
        match other.len() {
            0 => {}
            1 => out.push(random.within((0x80, 0x40))),
            // Two bytes: à to ö. Four: animals.
            2 => out.extend([0xc3, random.within((0xa0, 23))]),
            3 => {
                let char = str::from_utf8(other).ok().and_then(|text| text.chars().next());
                let (first, count) = match char {
                    Some('가'..='힣') => ('가', 11_172),
                    _ => ('一', 20_000),
                };
                let char = char::from_u32(first as u32 + random.below(count)).unwrap_or(first);
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => out.extend([0xf0, 0x9f, 0x90, random.within((0x80, 0x40))]),
        }
        rest = behind;
    }
    if let Some(first) = out.iter_mut().skip(begin).find(|byte| byte.is_ascii_digit()) {
        *first = random.within((b'1', 9));
    }
}

/// For each byte of ASCII the first one of its kind, and how many there are. A table and no branches: nobody can foresee the kinds in a random text.
const KINDS: [(u8, u8); 128] = {
    let mut kinds = [(0, 1); 128];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'0'..=b'9' => (b'0', 10),
            b'a'..=b'z' => (b'a', 26),
            b'A'..=b'Z' => (b'A', 26),
            other => (other, 1),
        };
        byte += 1;
    }
    kinds
};

/// The bytes of the first character; 1 for a byte that begins none.
pub(super) fn length_of_character(bytes: &[u8]) -> usize {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return 1,
    };
    if bytes.get(..length).is_some_and(|bytes| str::from_utf8(bytes).is_ok()) { length } else { 1 }
}

/// Random numbers that depend on a key and a value. Only the keyed hash must hide the value: whoever finds the hash from these numbers
/// knows nothing more.
pub(super) struct Random {
    hash: u64,
    numbers: fastrand::Rng,
    /// Random bits, and how often sixteen of them are left.
    bits: u64,
    left: u32,
}

impl Random {
    pub(super) fn new(key: SipKey, value: &[u8]) -> Random {
        let mut hash = Sip::new(key);
        hash.update(value);
        let hash = hash.finish() as u64;
        Random::of_hash(hash)
    }

    /// Other numbers for each draw.
    fn draw(&self, draw: u32) -> Random {
        Random::of_hash(self.hash.wrapping_add(u64::from(draw)))
    }

    fn of_hash(hash: u64) -> Random {
        Random { hash, numbers: fastrand::Rng::with_seed(hash), bits: 0, left: 0 }
    }

    /// One of `count` bytes from `first`.
    fn within(&mut self, (first, count): (u8, u8)) -> u8 {
        if self.left == 0 {
            (self.bits, self.left) = (self.numbers.u64(..), 4);
        }
        let sixteen = self.bits as u16;
        (self.bits, self.left) = (self.bits >> 16, self.left - 1);
        first + ((u32::from(sixteen) * u32::from(count)) >> 16) as u8
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.numbers.u32(..bound)
    }

    fn of<'l>(&mut self, list: &'l [u8]) -> &'l u8 {
        &list[self.below(list.len() as u32) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(value: &str) -> String {
        let mut out = Vec::new();
        replace(SipKey::new([7; 16]), value.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_replacement_has_the_shape_of_its_value() {
        let kind = |c: char| match c {
            '0'..='9' => 'd',
            'a'..='z' => 'l',
            'A'..='Z' => 'u',
            '가'..='힣' => 'h',
            '一'..='龥' => 'c',
            'à'..='ö' => 'e',
            '🐀'..='🐿' => 'a',
            other => other,
        };
        for value in
            ["0", "a", "Zz9-_.@x", "비밀번호 1", "漢字", "é", "🦀", "eyJh.eyJz.c2ln", "0101-22", &"aB1".repeat(500)]
        {
            let new = replaced(value);
            assert_ne!(new, value);
            assert_eq!(new, replaced(value), "always the same");
            assert_eq!(new.len(), value.len());
            let shape = |text: &str| text.chars().map(kind).collect::<String>();
            assert_eq!(shape(&new).replace('🦀', "a"), shape(value).replace('🦀', "a").replace('é', "e"));
            assert!(!new.starts_with('0'));
        }
        assert_eq!(replaced(""), "");
        assert_eq!(replaced("!!!!").len(), 4);
        assert_ne!(replaced("!!!!"), "!!!!");
        assert_ne!(replaced("secret1"), replaced("secret2"));
    }

    #[test]
    fn another_key_gives_another_replacement_and_bytes_of_no_text_have_one() {
        let mut out = Vec::new();
        replace(SipKey::new([8; 16]), b"secret-value", &mut out);
        assert_ne!(out, replaced("secret-value").into_bytes());
        out.clear();
        replace(SipKey::new([8; 16]), b"\xff\xc3\xe0\x80", &mut out);
        assert!(out.len() == 4 && out.iter().all(|byte| !byte.is_ascii()), "{out:?}");
    }
}
