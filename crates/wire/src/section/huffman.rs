//! The code of RFC 7541 Appendix B.
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and a longer code
//! comes after all shorter ones. So the lengths are the whole table; the compiler computes everything else from them.

/// Bits of each symbol's code; the last is EOS, which must not occur.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22,
    23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23,
    22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, //
    30,
];

const SYMBOLS: usize = 257;
const EOS: u16 = 256;
/// The longest code.
const LENGTH_MAX: usize = 30;
/// Codes up to this length are found with one lookup; they cover nearly all printable ASCII.
const SHORT: u32 = 8;

/// The code, for both directions.
struct Code {
    /// Each symbol's code, right-aligned.
    codes: [u32; SYMBOLS],
    /// For the next [`SHORT`] bits: symbol and length; length 0 if the code is longer.
    short: [(u8, u8); 1 << SHORT],
    /// Symbols in the order of their codes.
    ordered: [u16; SYMBOLS],
    /// By length: the first code beyond those of this length, aligned to the left of 32 bits.
    end: [u64; LENGTH_MAX + 1],
    /// By length: the number to add to a right-aligned code to get its place in `ordered`.
    shift: [i64; LENGTH_MAX + 1],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut made = Code {
        codes: [0; SYMBOLS],
        short: [(0, 0); 1 << SHORT],
        ordered: [0; SYMBOLS],
        end: [0; LENGTH_MAX + 1],
        shift: [0; LENGTH_MAX + 1],
    };
    let (mut next, mut place, mut length) = (0u32, 0usize, 1usize);
    while length <= LENGTH_MAX {
        next <<= 1;
        made.shift[length] = place as i64 - next as i64;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                made.codes[symbol] = next;
                made.ordered[place] = symbol as u16;
                if length as u32 <= SHORT {
                    let spare = SHORT - length as u32;
                    let mut low = 0;
                    while low < 1 << spare {
                        made.short[((next << spare) | low) as usize] = (symbol as u8, length as u8);
                        low += 1;
                    }
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        made.end[length] = (next as u64) << (32 - length);
        length += 1;
    }
    made
}

/// The bits are not a Huffman string: they contain an unknown code, EOS, or padding that is longer than a byte or not
/// all ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHuffman;

/// Appends the text of `bits` to `out`; at most `8 / 5` times as long.
pub fn decode(bits: &[u8], out: &mut Vec<u8>) -> Result<(), NotHuffman> {
    // The next bits, from the left; `held` of them belong to the string, and ones follow, as at its end.
    let (mut window, mut held) = (u64::MAX, 0u32);
    let mut rest = bits;
    loop {
        (window, held, rest) = refill(window, held, rest);
        // The padding is a part of EOS, which is all ones; a code may still come before it. RFC 7541 §5.2 allows at
        // most seven bits of padding. weir accepts a whole byte, because nginx accepts it and some encoders write it.
        if rest.is_empty() && (held == 0 || held <= 8 && window == u64::MAX) {
            return Ok(());
        }
        let (symbol, length) = next(window)?;
        if length > held {
            return Err(NotHuffman);
        }
        out.push(symbol);
        window = window << length | ((1 << length) - 1);
        held -= length;
    }
}

/// Adds whole bytes while there is room.
#[inline]
fn refill(window: u64, held: u32, rest: &[u8]) -> (u64, u32, &[u8]) {
    if held > 32 {
        return (window, held, rest);
    }
    if let Some((word, rest)) = rest.split_first_chunk::<4>() {
        let word = u64::from(u32::from_be_bytes(*word)) << (32 - held);
        let kept = window & !((u64::from(u32::MAX)) << (32 - held));
        return (kept | word, held + 32, rest);
    }
    let (mut window, mut held, mut rest) = (window, held, rest);
    while let Some((&byte, after)) = rest.split_first() {
        let at = 56 - held;
        window = window & !(0xff << at) | u64::from(byte) << at;
        held += 8;
        rest = after;
    }
    (window, held, rest)
}

/// The symbol of the next code, and the length of the code.
#[inline]
fn next(window: u64) -> Result<(u8, u32), NotHuffman> {
    let (symbol, length) = *CODE.short.get((window >> (64 - SHORT)) as usize).ok_or(NotHuffman)?;
    if length > 0 {
        return Ok((symbol, u32::from(length)));
    }
    let aligned = window >> 32;
    for length in SHORT as usize + 1..=LENGTH_MAX {
        if CODE.end.get(length).is_some_and(|&end| aligned < end) {
            let shift = CODE.shift.get(length).copied().unwrap_or_default();
            let place = usize::try_from((aligned >> (32 - length)) as i64 + shift).map_err(|_| NotHuffman)?;
            return match CODE.ordered.get(place) {
                Some(&symbol) if symbol != EOS => Ok((symbol as u8, length as u32)),
                _ => Err(NotHuffman),
            };
        }
    }
    Err(NotHuffman)
}

/// The length of a text in this code, in bytes.
pub fn length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS.get(byte as usize).copied().unwrap_or(0))).sum();
    bits.div_ceil(8)
}

/// Appends a text in this code, padded with ones.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut held) = (0u64, 0u32);
    for &byte in text {
        let (Some(&code), Some(&length)) = (CODE.codes.get(byte as usize), LENGTHS.get(byte as usize)) else { return };
        window = window << length | u64::from(code);
        held += u32::from(length);
        while held >= 8 {
            held -= 8;
            out.push((window >> held) as u8);
        }
    }
    if held > 0 {
        let spare = 8 - held;
        out.push((window << spare) as u8 | ((1u8 << spare) - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bits: &[u8]) -> Result<Vec<u8>, NotHuffman> {
        let mut out = Vec::new();
        decode(bits, &mut out).map(|()| out)
    }

    #[test]
    fn the_rfcs_examples() {
        // RFC 7541 C.4.1, C.4.2, C.4.3, C.6.1.
        let cases: [(&str, &[u8]); 5] = [
            ("www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ];
        for (text, bits) in cases {
            assert_eq!(decoded(bits).as_deref(), Ok(text.as_bytes()), "{text}");
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!((out.as_slice(), length(text.as_bytes())), (bits, bits.len()), "{text}");
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        for size in 0..all.len() {
            let text = all.get(size / 2..size).unwrap_or_default();
            let mut bits = Vec::new();
            encode(text, &mut bits);
            assert_eq!(decoded(&bits).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_no_code_is_refused() {
        // EOS; padding of zeros; padding of eleven ones, and of sixteen; a code cut off.
        let cases: [&[u8]; 5] =
            [&[0xff, 0xff, 0xff, 0xfc], &[0x18], &[0x1f, 0xff], &[0xff, 0xff], &[0xff, 0xff, 0xff, 0xff, 0xff]];
        for bits in cases {
            assert_eq!(decoded(bits), Err(NotHuffman), "{bits:x?}");
        }
        assert_eq!(decoded(&[]).as_deref(), Ok(&b""[..]));
    }

    proptest::proptest! {
        #[test]
        fn any_bits_end_well(bits in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            if let Ok(text) = decoded(&bits) {
                let mut again = Vec::new();
                encode(&text, &mut again);
                assert_eq!(again, bits.strip_suffix(&[0xff]).filter(|_| again.len() < bits.len()).unwrap_or(&bits));
            }
        }
    }
}
