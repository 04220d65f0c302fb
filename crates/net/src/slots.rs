//! A slab whose keys carry a generation, so a key to a reused slot finds nothing.
//!
//! Tasks, socket registrations and timer entries live here and refer to each
//! other by [`Key`]: plain numbers, no reference counts, no pointers to dangle.
//! Invariant: a key finds the value it was made for, or none.

/// Names one value in one [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    generation: u32,
}

impl Key {
    /// A key that finds nothing anywhere.
    pub(crate) const NONE: Key = Key { index: u32::MAX, generation: u32::MAX };

    /// As one number, for `epoll_event.data`.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The reverse of [`Key::pack`].
    pub(crate) fn unpack(word: u64) -> Key {
        Key { index: word as u32, generation: (word >> 32) as u32 }
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// The values and the list of free places, the last freed reused first.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Slots { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes that one value costs here.
    #[cfg(test)]
    pub(crate) const fn slot_bytes() -> usize {
        size_of::<Slot<T>>()
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        match self.free.pop() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                slot.value = Some(value);
                Key { index, generation: slot.generation }
            }
            None => {
                let index = self.slots.len() as u32;
                assert!(index < u32::MAX, "more slots than a u32 can name");
                self.slots.push(Slot { generation: 0, value: Some(value) });
                Key { index, generation: 0 }
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.index as usize) {
            Some(slot) if slot.generation == key.generation => slot.value.as_ref(),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slots.get_mut(key.index as usize) {
            Some(slot) if slot.generation == key.generation => slot.value.as_mut(),
            _ => None,
        }
    }

    /// Whatever lives at an index now, with its present key.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let slot = self.slots.get_mut(index as usize)?;
        let key = Key { index, generation: slot.generation };
        slot.value.as_mut().map(|value| (key, value))
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
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
        let index = self.slots.iter().position(|slot| slot.value.is_some())?;
        let generation = self.slots.get(index)?.generation;
        self.remove(Key { index: index as u32, generation })
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
    fn keys_survive_packing() {
        let mut slots = Slots::new();
        let key = slots.insert(());
        slots.remove(key);
        let key = slots.insert(());
        assert_eq!(Key::unpack(key.pack()), key);
        assert_eq!(slots.get(Key::NONE), None);
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
