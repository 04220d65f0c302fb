//! Searches bytes eight at a time, for texts where a call of `memchr` would cost more than the search.
//!
//! Heads are short pieces: names, hosts, paths. Each function returns the first match in the beginning of a text, or that
//! this beginning has none; the caller searches the rest of the text.

const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

/// The first `byte` among the first `max` bytes, which are a multiple of a word. `None` for every text shorter than a word.
#[inline]
pub(crate) fn find(text: &[u8], byte: u8, max: usize) -> Option<usize> {
    let wanted = LOW * u64::from(byte);
    find_by(text, max, |word| zeros(word ^ wanted))
}

/// The first control byte or DEL among the first `max` bytes: see [`find`].
#[inline]
pub(crate) fn find_control(text: &[u8], max: usize) -> Option<usize> {
    find_by(text, max, controls)
}

/// Whether all bytes are of `[0-9A-Za-z-]`; `is_plain` says it of one byte, for the texts that are shorter than a word.
#[inline]
pub(crate) fn has_only_plain(text: &[u8], is_plain: impl Fn(u8) -> bool) -> bool {
    let Some(last) = text.last_chunk() else { return text.iter().all(|&byte| is_plain(byte)) };
    let others =
        text.chunks_exact(8).filter_map(|chunk| chunk.first_chunk()).fold(0, |all, chunk| all | odd(word(chunk)));
    others | odd(word(last)) == 0
}

/// Marks each byte outside of `[0-9A-Za-z-]` with its highest bit.
#[inline]
fn odd(word: u64) -> u64 {
    // No sum leaves its byte: the addends are below 128.
    let low = word & !HIGH;
    let from = |word: u64, first: u8| word + LOW * u64::from(128 - first);
    let lower = low | (LOW * 0x20);
    let letter = from(lower, b'a') & !from(lower, b'z' + 1);
    let digit = from(low, b'0') & !from(low, b'9' + 1);
    let hyphen = !((low ^ (LOW * u64::from(b'-'))) + LOW * 0x7f);
    (word | !(letter | digit | hyphen)) & HIGH
}

/// Marks the first control byte or DEL; marks in higher bytes may be wrong.
#[inline]
fn controls(word: u64) -> u64 {
    (word.wrapping_sub(LOW * u64::from(b' ')) & !word & HIGH) | zeros(word ^ (LOW * 0x7f))
}

/// How many bytes at the start are in words without a space, a control byte or DEL. All these bytes are plain in a
/// target.
#[inline]
pub(crate) fn visible(text: &[u8]) -> usize {
    let (blank, del) = (LOW * (u64::from(b' ') + 1), LOW * 0x7f);
    let marks = |word: u64| (word.wrapping_sub(blank) & !word & HIGH) | zeros(word ^ del);
    text.chunks_exact(8).take_while(|chunk| chunk.first_chunk().is_some_and(|chunk| marks(word(chunk)) == 0)).count()
        * 8
}

/// Whether no byte is below `limit`, which is at most 128. False for every text shorter than four bytes: the caller looks again.
#[inline]
pub(crate) fn none_below(text: &[u8], limit: u8) -> bool {
    let limit = LOW * u64::from(limit);
    none_by(text, |word| word.wrapping_sub(limit) & !word & HIGH)
}

/// Whether no byte is a control byte or DEL. False for every text shorter than four bytes: the caller looks again.
#[inline]
pub(crate) fn none_is_control(text: &[u8]) -> bool {
    none_by(text, controls)
}

/// Whether `marks` marks no byte. The last word may overlap the one before it. False for a text shorter than four bytes.
#[inline]
fn none_by(text: &[u8], marks: impl Fn(u64) -> u64) -> bool {
    let Some(last) = text.last_chunk() else { return none_of_half(text, marks) };
    let marked =
        text.chunks_exact(8).filter_map(|chunk| chunk.first_chunk()).fold(0, |all, chunk| all | marks(word(chunk)));
    marked | marks(word(last)) == 0
}

/// As `none_by`, for a text shorter than a word.
#[inline]
fn none_of_half(text: &[u8], marks: impl Fn(u64) -> u64) -> bool {
    let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) else { return false };
    marks(u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))) == 0
}

/// Marks the first zero byte with its highest bit; marks in higher bytes may be wrong.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// The first byte that `marks` marks. `None` for every text shorter than a word.
#[inline(always)] // a call would cost as much as the search
fn find_by(text: &[u8], max: usize, marks: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = 0;
    while at < max {
        let (start, chunk) = match text.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) => (at, chunk),
            // The last word overlaps the one before it, which has no mark.
            None => (text.len().checked_sub(8)?, text.last_chunk()?),
        };
        let marked = marks(word(chunk));
        if marked != 0 {
            return Some(start + (marked.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    None
}

#[inline]
fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same result as the functions, computed byte by byte.
    fn first(text: &[u8], max: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        text.iter().take(max.div_ceil(8) * 8).position(|&byte| wanted(byte))
    }

    #[test]
    fn every_byte_at_every_place() {
        for around in [0x00, 0x09, b' ', b'!', b'9', b';', b'a', 0x7e, 0x80, 0xff] {
            for byte in 0..=255u8 {
                for at in 0..20 {
                    let mut text = [around; 20];
                    text[at] = byte;
                    for max in [8, 16, 64] {
                        assert_eq!(find(&text, b':', max), first(&text, max, |b| b == b':'));
                        assert_eq!(find_control(&text, max), first(&text, max, |b| b < b' ' || b == 0x7f));
                    }
                    let hidden = first(&text, 64, |b| b <= b' ' || b == 0x7f);
                    assert_eq!(visible(&text), hidden.map_or(16, |at| at / 8 * 8).min(16));
                }
            }
        }
    }

    #[test]
    fn no_byte_is_overlooked() {
        for length in 4..30 {
            for byte in 0..=255u8 {
                for at in 0..length {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    assert_eq!(none_below(&text, 14), byte >= 14, "{text:?}");
                    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                    assert_eq!(has_only_plain(&text, is_plain), is_plain(byte), "{text:?}");
                    assert_eq!(none_is_control(&text), byte >= b' ' && byte != 0x7f, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn short_texts_have_no_word() {
        assert_eq!(find(b"a:", b':', 64), None);
        assert_eq!(find_control(b"", 64), None);
        assert_eq!(visible(b"abc"), 0);
        assert!(!none_below(b"abc", 14) && !none_is_control(b""));
    }
}
