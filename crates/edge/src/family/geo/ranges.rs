//! Maps ranges of IPv4 addresses to values, in pieces of 65536 addresses.
//!
//! A new range may split a range that contains it, and may repeat a range exactly; any other overlap is refused. nginx
//! decides this piece by piece, and so does this code.

use std::collections::HashMap;

/// A range inside one piece, both ends included, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u16,
    end: u16,
    value: u32,
}

/// The pieces by the upper half of the address; each piece is sorted.
#[derive(Default)]
pub struct Ranges {
    pieces: HashMap<u16, Vec<Range>>,
}

/// The result of adding a range.
#[derive(Debug, PartialEq, Eq)]
pub enum Added {
    /// The range is new.
    New,
    /// The same range existed with this value.
    Replaced(u32),
}

impl Ranges {
    /// The value of an address.
    pub fn find(&self, address: u32) -> Option<u32> {
        let low = address as u16;
        let ranges = self.pieces.get(&((address >> 16) as u16))?;
        let after = ranges.partition_point(|range| range.start <= low);
        let range = ranges.get(after.checked_sub(1)?)?;
        (low <= range.end).then_some(range.value)
    }

    /// Adds a range; the error is the overlapping range, as nginx prints it.
    pub fn add(&mut self, start: u32, end: u32, value: u32) -> Result<Added, String> {
        let mut added = Added::New;
        for (high, start, end) in pieces(start, end) {
            let ranges = self.pieces.entry(high).or_default();
            if let Some(old) = insert(ranges, Range { start, end, value }).map_err(|range| shown(high, range))? {
                added = Added::Replaced(old);
            }
        }
        Ok(added)
    }

    /// Removes a range; `false` if some piece of it did not exist in exactly this form.
    pub fn remove(&mut self, start: u32, end: u32) -> bool {
        let mut all = true;
        for (high, start, end) in pieces(start, end) {
            let ranges = self.pieces.entry(high).or_default();
            let before = ranges.len();
            ranges.retain(|range| (range.start, range.end) != (start, end));
            all &= ranges.len() < before;
        }
        all
    }
}

/// The pieces of a range: upper half, first and last lower half.
fn pieces(start: u32, end: u32) -> impl Iterator<Item = (u16, u16, u16)> {
    let (first, last) = ((start >> 16) as u16, (end >> 16) as u16);
    (first..=last).map(move |high| {
        let low = if high == first { start as u16 } else { 0 };
        let top = if high == last { end as u16 } else { u16::MAX };
        (high, low, top)
    })
}

/// Puts a range among sorted ones; returns the old value of a repeated range, or the range it overlaps.
fn insert(ranges: &mut Vec<Range>, new: Range) -> Result<Option<u32>, Range> {
    let at = ranges.partition_point(|range| range.end < new.start);
    let Some(old) = ranges.get(at).copied().filter(|range| range.start <= new.end) else {
        ranges.insert(at, new);
        return Ok(None);
    };
    if (old.start, old.end) == (new.start, new.end) {
        if let Some(range) = ranges.get_mut(at) {
            range.value = new.value;
        }
        return Ok(Some(old.value));
    }
    if old.start > new.start || old.end < new.end {
        return Err(old);
    }
    let before = (old.start < new.start).then(|| Range { end: new.start - 1, ..old });
    let after = (old.end > new.end).then(|| Range { start: new.end + 1, ..old });
    ranges.splice(at..=at, before.into_iter().chain([new]).chain(after));
    Ok(None)
}

fn shown(high: u16, range: Range) -> String {
    let address = |low: u16| std::net::Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    format!("{}-{}", address(range.start), address(range.end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_range_splits_the_one_it_lies_in() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(0x0a00_0000, 0x0a01_ffff, 1), Ok(Added::New));
        assert_eq!(ranges.add(0x0a00_0010, 0x0a00_001f, 2), Ok(Added::New));
        assert_eq!(ranges.add(0x0a01_0000, 0x0a01_000f, 3), Ok(Added::New));
        for (address, value) in [
            (0x0a00_0000, Some(1)),
            (0x0a00_000f, Some(1)),
            (0x0a00_0010, Some(2)),
            (0x0a00_001f, Some(2)),
            (0x0a00_0020, Some(1)),
            (0x0a01_000f, Some(3)),
            (0x0a01_0010, Some(1)),
            (0x0a02_0000, None),
            (0x09ff_ffff, None),
        ] {
            assert_eq!(ranges.find(address), value, "{address:x}");
        }
    }

    #[test]
    fn other_overlaps_are_refused_and_repeats_replace() {
        let mut ranges = Ranges::default();
        ranges.add(0x0a00_0000, 0x0a00_00ff, 1).unwrap();
        assert_eq!(ranges.add(0x0a00_0080, 0x0a00_01ff, 2), Err("10.0.0.0-10.0.0.255".to_owned()));
        assert_eq!(ranges.add(0x0a00_0000, 0x0a00_00ff, 2), Ok(Added::Replaced(1)));
        assert!(!ranges.remove(0x0a00_0000, 0x0a00_0001));
        assert!(ranges.remove(0x0a00_0000, 0x0a00_00ff));
        assert_eq!(ranges.find(0x0a00_0000), None);
    }

    #[test]
    fn the_last_addresses_end_the_walk() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(0xffff_0000, u32::MAX, 7), Ok(Added::New));
        assert_eq!(ranges.find(u32::MAX), Some(7));
    }
}
