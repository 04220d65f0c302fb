//! Buffers on loan: per-worker pools that give out the last returned buffer first.
//!
//! A connection that waits holds no buffer; it leases one when there is something to read and gives it back when the
//! bytes are handled, so a thousand connections share a few buffers that stay in the cache. Invariant: a pool keeps at
//! most [`POOL_BYTES_MAX`] bytes per size, regardless of the largest number of loans.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The smallest size class.
const CLASS_BYTES_MIN: usize = 1 << CLASS_BITS_MIN;
const CLASS_BITS_MIN: u32 = 10;
/// Classes of 1 KiB, 2 KiB, ... 1 MiB; anything larger is not pooled.
const CLASSES: usize = 11;
/// Bytes that one class keeps for reuse, per worker.
pub const POOL_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static POOLS: RefCell<[Vec<Vec<u8>>; CLASSES]> =
        const { RefCell::new([const { Vec::new() }; CLASSES]) };
}

/// An empty buffer with room for at least `size` bytes.
pub fn lease(size: usize) -> Lease {
    let class = class_holding(size);
    let pooled = POOLS.try_with(|pools| pools.borrow_mut().get_mut(class).and_then(Vec::pop)).ok().flatten();
    let buf = pooled.unwrap_or_else(|| {
        let rounded = if class < CLASSES { CLASS_BYTES_MIN << class } else { size };
        Vec::with_capacity(rounded)
    });
    Lease { buf }
}

/// Buffers this worker keeps for reuse, in bytes.
pub fn pooled_bytes() -> usize {
    POOLS.try_with(|pools| pools.borrow().iter().flatten().map(Vec::capacity).sum()).unwrap_or(0)
}

/// The smallest class whose buffers hold `size` bytes; [`CLASSES`] if none does.
fn class_holding(size: usize) -> usize {
    let size = size.max(CLASS_BYTES_MIN);
    match size.checked_next_power_of_two() {
        Some(rounded) => (rounded.trailing_zeros() - CLASS_BITS_MIN) as usize,
        None => CLASSES,
    }
}

/// A buffer on loan; emptied and given back when dropped. Derefs to `Vec<u8>`.
pub struct Lease {
    buf: Vec<u8>,
}

impl Lease {
    /// An empty buffer: it takes no memory until the first write.
    pub const fn none() -> Lease {
        Lease { buf: Vec::new() }
    }

    /// Takes the bytes out of the loan for good.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(&mut self.buf)
    }
}

impl Deref for Lease {
    type Target = Vec<u8>;

    #[inline]
    fn deref(&self) -> &Vec<u8> {
        &self.buf
    }
}

impl DerefMut for Lease {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        if self.buf.capacity() >= CLASS_BYTES_MIN {
            give_back(std::mem::take(&mut self.buf));
        }
    }
}

/// Keeps a buffer of a class for the next loan, if its pool has room.
fn give_back(mut buf: Vec<u8>) {
    let capacity = buf.capacity();
    buf.clear();
    // The largest class that this buffer fits: its owner may have grown it.
    let class = (capacity.ilog2() - CLASS_BITS_MIN) as usize;
    let _ = POOLS.try_with(|pools| {
        if let Some(pool) = pools.borrow_mut().get_mut(class)
            && (pool.len() + 1) * capacity <= POOL_BYTES_MAX
        {
            pool.push(buf);
        }
    });
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} of {})", self.buf.len(), self.buf.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_returned_is_given_out_first_and_empty() {
        let mut first = lease(16_384);
        first.extend_from_slice(b"secret");
        let place = first.as_ptr();
        let second = lease(16_384);
        drop(second);
        drop(first);
        let again = lease(10_000);
        assert_eq!(again.as_ptr(), place);
        assert!(again.is_empty() && again.capacity() >= 16_384);
    }

    #[test]
    fn classes_round_up() {
        assert_eq!(class_holding(0), 0);
        assert_eq!(class_holding(1024), 0);
        assert_eq!(class_holding(1025), 1);
        assert_eq!(class_holding(1 << 20), CLASSES - 1);
        assert!(class_holding((1 << 20) + 1) >= CLASSES);
        assert!(class_holding(usize::MAX) >= CLASSES);
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_bound() {
        let held: Vec<Lease> = (0..8).map(|_| lease(1 << 20)).collect();
        drop(held);
        assert!(pooled_bytes() <= POOL_BYTES_MAX);
        assert!(pooled_bytes() >= 1 << 20);
        let large = lease(3 << 20);
        assert!(large.capacity() >= 3 << 20);
        let before = pooled_bytes();
        drop(large);
        assert_eq!(pooled_bytes(), before, "too large to keep");
    }

    #[test]
    fn a_grown_buffer_serves_its_new_class() {
        let mut small = lease(1024);
        small.reserve_exact(4096);
        let place = small.as_ptr();
        drop(small);
        assert_eq!(lease(4096).as_ptr(), place);
    }

    #[test]
    fn taken_for_good() {
        let mut taken = lease(1024);
        taken.push(7);
        assert_eq!(taken.into_vec(), [7]);
    }
}
