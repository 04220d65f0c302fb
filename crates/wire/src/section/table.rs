//! The dynamic table (RFC 7541 §2.3.2, RFC 9204 §3.2).

use std::collections::VecDeque;

use crate::known::Known;

/// The size of an entry in addition to its bytes (RFC 7541 §4.1, RFC 9204 §3.2.1).
pub const ENTRY_OVERHEAD: usize = 32;

/// A view of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    pub known: Option<Known>,
}

/// The place of an entry of the dynamic table.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Counted from the first byte that the table ever had.
    start: u64,
    name: u32,
    value: u32,
    known: Option<Known>,
}

impl Place {
    fn size(self) -> usize {
        self.name as usize + self.value as usize + ENTRY_OVERHEAD
    }
}

/// The dynamic table: entries in one buffer, the newest first.
///
/// Holds at most twice its maximum size in bytes: the memory of evicted entries is freed when it is as large as that
/// of the kept ones.
#[derive(Debug)]
pub struct Dynamic {
    places: VecDeque<Place>,
    bytes: Vec<u8>,
    /// The position of the first byte of `bytes`, counted as `Place::start`.
    base: u64,
    size: usize,
    max: usize,
}

impl Dynamic {
    pub fn new(max: usize) -> Dynamic {
        Dynamic { places: VecDeque::new(), bytes: Vec::new(), base: 0, size: 0, max }
    }

    /// Changes its maximum size; evicts entries that do not fit any more.
    pub fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(0);
    }

    pub fn max(&self) -> usize {
        self.max
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The entry of that number, 0 being the newest.
    pub fn get(&self, index: usize) -> Option<TableEntry<'_>> {
        let place = self.places.get(index)?;
        let start = usize::try_from(place.start - self.base).ok()?;
        let value = start + place.name as usize;
        Some(TableEntry {
            name: self.bytes.get(start..value)?,
            value: self.bytes.get(value..value + place.value as usize)?,
            known: place.known,
        })
    }

    /// Adds an entry; an entry larger than the table empties the table (RFC 7541 §4.4).
    pub fn add(&mut self, name: &[u8], value: &[u8], known: Option<Known>) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict(size);
        if size > self.max {
            return;
        }
        self.compact();
        let start = self.base + self.bytes.len() as u64;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        // Both are below `max`, which fits a u32: SETTINGS values have 32 bits.
        let place = Place { start, name: name.len() as u32, value: value.len() as u32, known };
        self.places.push_front(place);
        self.size += size;
    }

    /// The place of an entry with this name and value, or else with this name.
    pub fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
        let mut named = None;
        for index in 0..self.places.len() {
            let Some(entry) = self.get(index) else { continue };
            if entry.name == name {
                if entry.value == value {
                    return Some((index, true));
                }
                named.get_or_insert(index);
            }
        }
        named.map(|index| (index, false))
    }

    /// Makes room for this many bytes, or as much room as possible.
    fn evict(&mut self, room: usize) {
        while self.size + room > self.max {
            let Some(place) = self.places.pop_back() else { return };
            self.size -= place.size();
        }
    }

    /// Frees the memory of evicted entries once it is half of all.
    fn compact(&mut self) {
        let oldest = self.places.back().map_or(self.base + self.bytes.len() as u64, |place| place.start);
        let dead = usize::try_from(oldest - self.base).unwrap_or(0);
        if dead * 2 > self.bytes.len() {
            self.bytes.drain(..dead);
            self.base = oldest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let mut table = Dynamic::new(100);
        table.add(b"a", b"1", None);
        table.add(b"b", b"2", None);
        assert_eq!(
            (table.len(), table.find(b"a", b"1"), table.find(b"b", b"x")),
            (2, Some((1, true)), Some((0, false)))
        );
        table.add(b"c", b"3", None);
        assert_eq!((table.len(), table.find(b"a", b"1")), (2, None));
        table.add(b"too large", &[b'x'; 100], None);
        assert_eq!(table.len(), 0);
        table.add(b"d", b"4", Some(Known::Age));
        table.resize(0);
        assert_eq!((table.len(), table.max()), (0, 0));
    }

    #[test]
    fn memory_is_bounded_by_its_size() {
        let mut table = Dynamic::new(4096);
        for number in 0..10_000u32 {
            table.add(b"name", number.to_string().as_bytes(), None);
            assert!(table.bytes.len() <= 2 * 4096);
            assert_eq!(table.get(0).map(|entry| entry.value.to_vec()), Some(number.to_string().into_bytes()));
        }
    }
}
