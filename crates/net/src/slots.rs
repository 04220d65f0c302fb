//! A slab whose keys contain a generation: after a slot is reused, an old key finds nothing.
//!
//! Tasks, socket registrations and timer entries live here and refer to each other by [`SlotKey`]: plain numbers, no
//! reference counts, no pointers to dangle. It grows by chunks: doubling would copy the entries of ten thousand
//! connections, and leave the old memory to the allocator. Invariant: a key finds the value that it was made for, or no
//! value.

/// Slots in one chunk of memory: some kilobytes.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 7;

/// Names one value in one [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotKey {
    pub(crate) index: u32,
    generation: u32,
}

impl SlotKey {
    /// A key that finds nothing anywhere.
    pub(crate) const NONE: SlotKey = SlotKey { index: u32::MAX, generation: u32::MAX };

    /// The key as one number, for `epoll_event.data`.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The reverse of [`SlotKey::pack`].
    pub(crate) fn unpack(word: u64) -> SlotKey {
        SlotKey { index: word as u32, generation: (word >> 32) as u32 }
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// The values and the list of free places, the last freed reused first.
pub struct Slots<T> {
    /// All full but the last.
    chunks: Vec<Vec<Slot<T>>>,
    len: u32,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots::new()
    }
}

impl<T> Slots<T> {
    /// No value.
    pub const fn new() -> Self {
        Slots { chunks: Vec::new(), len: 0, free: Vec::new() }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len as usize - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().filter_map(|slot| slot.value.as_ref())
    }

    /// Bytes that one value takes here.
    #[cfg(test)]
    pub(crate) const fn slot_bytes() -> usize {
        size_of::<Slot<T>>()
    }

    /// Puts a value in the place freed last, or in a new one.
    pub fn insert(&mut self, value: T) -> SlotKey {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slot_mut(index)
        {
            slot.value = Some(value);
            return SlotKey { index, generation: slot.generation };
        }
        let index = self.len;
        assert!(index < u32::MAX, "more slots than a u32 can number");
        let slot = Slot { generation: 0, value: Some(value) };
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(slot),
            Some(_) | None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(slot);
                self.chunks.push(chunk);
            }
        }
        self.len += 1;
        SlotKey { index, generation: 0 }
    }

    #[inline]
    pub(crate) fn get(&self, key: SlotKey) -> Option<&T> {
        match self.chunks.get((key.index >> CHUNK_BITS) as usize)?.get(key.index as usize % CHUNK) {
            Some(slot) if slot.generation == key.generation => slot.value.as_ref(),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: SlotKey) -> Option<&mut T> {
        match self.slot_mut(key.index) {
            Some(slot) if slot.generation == key.generation => slot.value.as_mut(),
            _ => None,
        }
    }

    /// The value at an index, with its current key.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<(SlotKey, &mut T)> {
        let slot = self.slot_mut(index)?;
        let key = SlotKey { index, generation: slot.generation };
        slot.value.as_mut().map(|value| (key, value))
    }

    /// Takes a value out; `None` when the key finds none.
    pub fn remove(&mut self, key: SlotKey) -> Option<T> {
        let slot = self.slot_mut(key.index)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    /// Takes any one value out; for emptying without holding a borrow.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let slots = self.chunks.iter().flatten();
        let (index, slot) = (0..).zip(slots).find(|(_, slot)| slot.value.is_some())?;
        let generation = slot.generation;
        self.remove(SlotKey { index, generation })
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        self.chunks.get_mut((index >> CHUNK_BITS) as usize)?.get_mut(index as usize % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_to_a_reused_slot_finds_nothing() {
        let mut slots = Slots::new();
        let old = slots.insert('a');
        assert_eq!(slots.remove(old), Some('a'));
        let new = slots.insert('b');
        assert_eq!(new.index, old.index);
        assert_eq!(slots.get(old), None);
        assert_eq!(slots.get_mut(old), None);
        assert_eq!(slots.remove(old), None);
        assert_eq!(slots.get(new), Some(&'b'));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn many_values_fill_chunk_after_chunk() {
        let mut slots = Slots::new();
        let keys: Vec<SlotKey> = (0..3 * CHUNK + 1).map(|n| slots.insert(n)).collect();
        assert_eq!(slots.chunks.len(), 4);
        assert!(slots.chunks.iter().all(|chunk| chunk.capacity() == CHUNK), "no chunk is moved");
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(slots.get(*key), Some(&n));
        }
        for key in keys.iter().step_by(2) {
            slots.remove(*key);
        }
        assert_eq!(slots.iter().count(), slots.len());
        assert!(slots.iter().all(|n| n % 2 == 1));
        let again = slots.insert(0);
        assert_eq!((again.index as usize, slots.chunks.len()), (3 * CHUNK, 4), "the place freed last");
    }

    #[test]
    fn keys_survive_packing() {
        let mut slots = Slots::new();
        let key = slots.insert(());
        slots.remove(key);
        let key = slots.insert(());
        assert_eq!(SlotKey::unpack(key.pack()), key);
        assert_eq!(slots.get(SlotKey::NONE), None);
    }

    #[test]
    fn pop_empties() {
        let mut slots = Slots::new();
        for n in 0..3 {
            slots.insert(n);
        }
        while slots.pop().is_some() {}
        assert_eq!(slots.len(), 0);
    }
}
