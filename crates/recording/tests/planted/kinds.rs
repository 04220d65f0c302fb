//! Secrets of all kinds, at random from a seed.

/// A planted secret.
pub enum Planted {
    /// A secret by the name of its place.
    Name(String),
    /// A secret by its form, in any place.
    Form(String),
    /// The address of a client.
    Address(String),
}

impl Planted {
    pub fn value(&self) -> &str {
        match self {
            Planted::Name(value) | Planted::Form(value) | Planted::Address(value) => value,
        }
    }
}

type Kind = fn(&mut Draw) -> Planted;

const KINDS: &[Kind] = &[
    // By name: session ids, passwords with signs, in Korean, short ones, numbers.
    |draw| Planted::Name(draw.text(HEX, 32)),
    |draw| Planted::Name(draw.text(WORD, 24)),
    |draw| Planted::Name(format!("{}!@#$%^&*()/+ {}", draw.text(WORD, 6), draw.text(DIGITS, 3))),
    |draw| Planted::Name(format!("비밀번호{}é🦀", draw.text(DIGITS, 5))),
    |draw| Planted::Name(draw.text(DIGITS, 6)),
    |draw| Planted::Name(draw.text(LOWER, 4)),
    |draw| Planted::Name(format!("s:{}.{}", draw.text(WORD, 20), draw.text(WORD, 30))),
    |draw| Planted::Name(format!("{}=={}", draw.text(WORD, 9), draw.text(WORD, 7))),
    |draw| Planted::Name(format!("a\"b\\c<{}>'", draw.text(LOWER, 8))),
    // By form.
    |draw| {
        Planted::Form(format!("{}.{}@{}.example.com", draw.text(LOWER, 5), draw.text(DIGITS, 3), draw.text(LOWER, 6)))
    },
    |draw| Planted::Form(format!("010-{}-{}", draw.text(DIGITS, 4), draw.text(DIGITS, 4))),
    |draw| Planted::Form(format!("010{}", draw.text(DIGITS, 8))),
    |draw| Planted::Form(format!("02-{}-{}", draw.text(DIGITS, 4), draw.text(DIGITS, 4))),
    |draw| Planted::Form(format!("{}-{}", draw.birth(), draw.person())),
    |draw| Planted::Form(format!("{}{}", draw.birth(), draw.person())),
    |draw| Planted::Form(format!("{}-{}{}", draw.birth(), 5 + draw.below(4), draw.text(DIGITS, 6))),
    |draw| Planted::Form(format!("{}-{}-{}", 100 + draw.below(500), 10 + draw.below(89), 1_000 + draw.below(8_999))),
    |draw| Planted::Form(draw.card("4", 16)),
    |draw| Planted::Form(draw.card("37", 15)),
    |draw| {
        let card = draw.card("5", 16);
        Planted::Form(format!("{}-{}-{}-{}", &card[..4], &card[4..8], &card[8..12], &card[12..]))
    },
    |draw| Planted::Form(draw.iban()),
    |draw| Planted::Form(format!("eyJ{}.eyJ{}.{}", draw.text(WORD, 20), draw.text(WORD, 40), draw.text(WORD, 43))),
    |draw| Planted::Form(format!("AKIA{}", draw.text(UPPER, 16))),
    |draw| Planted::Form(format!("ghp_{}", draw.text(WORD, 36))),
    |draw| Planted::Form(format!("xoxb-{}-{}", draw.text(DIGITS, 12), draw.text(WORD, 24))),
    |draw| Planted::Form(format!("AIza{}", draw.text(WORD, 35))),
    |draw| Planted::Form(format!("sk_live_{}", draw.text(WORD, 24))),
    |draw| Planted::Form(format!("glpat-{}", draw.text(WORD, 20))),
    // Addresses: without a zero at the end, which stays.
    |draw| {
        Planted::Address(format!(
            "{}.{}.{}.{}",
            11 + draw.below(200),
            draw.below(256),
            draw.below(256),
            1 + draw.below(9)
        ))
    },
    |draw| Planted::Address(format!("2001:db8:{}::{}", draw.text(&HEX[1..], 4), draw.text(&HEX[1..], 3))),
];

const DIGITS: &[u8] = b"0123456789";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &[u8] = b"0123456789abcdef";
const WORD: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// So many secrets, all kinds in turn.
pub fn planted(count: usize) -> Vec<Planted> {
    let mut draw = Draw(500);
    (0..count).map(|number| KINDS[number % KINDS.len()](&mut draw)).collect()
}

/// Random numbers: splitmix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }

    fn text(&mut self, letters: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(letters[self.below(letters.len())])).collect()
    }

    fn birth(&mut self) -> String {
        format!("{:02}{:02}{:02}", self.below(100), 1 + self.below(12), 1 + self.below(28))
    }

    fn person(&mut self) -> String {
        format!("{}{}", 1 + self.below(4), self.text(DIGITS, 6))
    }

    fn card(&mut self, prefix: &str, length: usize) -> String {
        let head = format!("{prefix}{}", self.text(DIGITS, length - prefix.len() - 1));
        let sum: u32 = head.bytes().rev().enumerate().map(|(at, digit)| doubled(at, u32::from(digit - b'0'))).sum();
        format!("{head}{}", (10 - sum % 10) % 10)
    }

    fn iban(&mut self) -> String {
        let account = self.text(DIGITS, 18);
        let rest = format!("{account}131400").bytes().fold(0, |rest, digit| (rest * 10 + u32::from(digit - b'0')) % 97);
        format!("DE{:02}{account}", 98 - rest)
    }
}

/// A digit in Luhn's sum, where the check digit is still missing.
fn doubled(at: usize, digit: u32) -> u32 {
    match (at % 2, digit) {
        (1, digit) => digit,
        (_, 5..) => digit * 2 - 9,
        (_, digit) => digit * 2,
    }
}
