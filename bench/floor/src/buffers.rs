//! A ring of buffers that the kernel fills: it takes one when bytes arrive, so a connection that waits holds none.

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

/// The only group of buffers of a ring.
pub const GROUP: u16 = 0;
/// Room of one buffer: a head and a small body, or a piece of a large one.
const SIZE: usize = 16 * 1024;
const PAGE: usize = 4096;

/// Memory of the process for as long as it lives: a ring that ends late can write to no other memory.
pub struct Buffers {
    entries: *mut BufRingEntry,
    memory: *mut u8,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Registers `count` buffers, a power of two.
    #[expect(unsafe_code, reason = "the kernel is told addresses")]
    pub fn register(ring: &IoUring, count: u16) -> io::Result<Self> {
        if !count.is_power_of_two() {
            return Err(io::Error::other("the number of buffers is no power of two"));
        }
        let entries = allocate(usize::from(count) * size_of::<BufRingEntry>())?.cast();
        let mut buffers = Buffers { entries, memory: allocate(usize::from(count) * SIZE)?, count, tail: 0 };
        // SAFETY: the memory has this size, begins on a page and is never freed.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, count, GROUP, 0)? };
        (0..count).for_each(|number| buffers.give(number));
        Ok(buffers)
    }

    /// The first bytes of a buffer that the kernel has filled and not been given back.
    #[expect(unsafe_code, reason = "memory that the kernel has filled")]
    pub fn filled(&self, number: u16, len: usize) -> &[u8] {
        if number >= self.count {
            return &[];
        }
        // SAFETY: the buffer lies within the allocation, and the kernel writes to it only after `give`, which borrows
        // `self` anew.
        unsafe { std::slice::from_raw_parts(self.memory.add(usize::from(number) * SIZE), len.min(SIZE)) }
    }

    /// Lets the kernel fill a buffer.
    #[expect(unsafe_code, reason = "memory that the kernel reads")]
    pub fn give(&mut self, number: u16) {
        let at = usize::from(self.tail & (self.count - 1));
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `at` is below `count`, so the entry lies within the allocation. The tail lies in its first entry, and
        // the kernel reads it as an atomic number.
        unsafe {
            let entry = &mut *self.entries.add(at);
            entry.set_addr(self.memory.add(usize::from(number) * SIZE) as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(number);
            let tail = BufRingEntry::tail(self.entries).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Zeroed memory that begins on a page.
#[expect(unsafe_code, reason = "the allocator's own interface")]
fn allocate(len: usize) -> io::Result<*mut u8> {
    let layout = Layout::from_size_align(len, PAGE).map_err(io::Error::other)?;
    // SAFETY: no caller asks for no bytes.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    Ok(memory)
}
