//! The beginning of an encoded field section (RFC 9204 §4.5.1).

use crate::section::ENTRY_OVERHEAD;
use crate::section::integer::{self, QPACK_BITS};

/// The part of the dynamic table that a section refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionPrefix {
    /// Required Insert Count: the section needs the first entries up to this number; 0 if it needs none.
    pub required: u64,
    /// Base: indexes count down from it, post-base indexes up.
    pub base: u64,
}

impl SectionPrefix {
    /// Reads it; returns the bytes after it too. `inserted` is the number of entries that the table ever had, `allowed` the
    /// largest size of the table in bytes.
    pub fn read(bytes: &[u8], inserted: u64, allowed: usize) -> Result<(SectionPrefix, &[u8]), &'static str> {
        let (encoded, rest) =
            integer::decode(bytes, 8, QPACK_BITS).map_err(|_| "a Required Insert Count that is none")?;
        let required = required(encoded, inserted, (allowed / ENTRY_OVERHEAD) as u64)?;
        let is_below = rest.first().is_some_and(|first| first & 0x80 != 0);
        let (delta, rest) = integer::decode(rest, 7, QPACK_BITS).map_err(|_| "a Base that is none")?;
        let base = if is_below { required.checked_sub(delta + 1) } else { required.checked_add(delta) };
        Ok((SectionPrefix { required, base: base.ok_or("a Base below 0")? }, rest))
    }
}

/// Undoes the wrap of a Required Insert Count (RFC 9204 §4.5.1.1).
fn required(encoded: u64, inserted: u64, entries_max: u64) -> Result<u64, &'static str> {
    const WRONG: &str = "a Required Insert Count that no encoder makes";
    if encoded == 0 {
        return Ok(0);
    }
    let full = 2 * entries_max;
    if encoded > full {
        return Err(WRONG);
    }
    let most = inserted + entries_max;
    let required = most / full * full + encoded - 1;
    let required = if required <= most { required } else { required.checked_sub(full).ok_or(WRONG)? };
    if required == 0 { Err(WRONG) } else { Ok(required) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_unwrapped_and_no_other_is_taken() {
        // RFC 9204 §4.5.1.1: a table of 100 bytes has 3 entries, so counts wrap at 6.
        assert_eq!(required(4, 10, 3), Ok(9));
        for entries_max in 1..6 {
            for inserted in 0..40u64 {
                let least = inserted.saturating_sub(entries_max) + 1;
                // All counts that an encoder may mean, and each of them is found.
                for wanted in least..=inserted + entries_max {
                    assert_eq!(required(wanted % (2 * entries_max) + 1, inserted, entries_max), Ok(wanted));
                }
                assert_eq!(required(2 * entries_max + 1, inserted, entries_max).ok(), None);
            }
        }
        assert_eq!((required(0, 0, 0), required(1, 0, 0).ok()), (Ok(0), None));
        // Entry 0 alone wraps to 0, and would need none.
        assert_eq!(required(1, 0, 3).ok(), None);
    }

    #[test]
    fn a_base_stands_above_or_below() {
        let read = |bytes: &[u8]| SectionPrefix::read(bytes, 9, 128).map(|(prefix, _)| (prefix.required, prefix.base));
        assert_eq!(read(&[10 % 8, 0]), Ok((9, 9)));
        assert_eq!(read(&[10 % 8, 2]), Ok((9, 11)));
        assert_eq!(read(&[10 % 8, 0x80]), Ok((9, 8)));
        assert_eq!(read(&[10 % 8, 0x88]), Ok((9, 0)));
        assert!(read(&[10 % 8, 0x89]).is_err() && read(&[0, 0x80]).is_err() && read(&[0]).is_err());
        assert_eq!(read(&[0, 3]), Ok((0, 3)));
    }
}
