//! Counts of this thread's syscalls by kind.
//!
//! For tests and benchmarks ("one read and one write per request and side") and
//! for the live view. A count is a plain number in thread-local storage: cheap
//! enough to stay on. Invariant: every syscall of the data path counts once.

use std::cell::Cell;

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident $kind:ident,)*) => {
        /// The kind of a counted call.
        #[derive(Clone, Copy)]
        pub(crate) enum Kind { $($kind),* }

        /// How often each was called on this thread since it started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $field: u64),* }

        impl Counts {
            /// The counts between `before` and `self`.
            pub fn since(&self, before: &Counts) -> Counts {
                Counts { $($field: self.$field.wrapping_sub(before.$field)),* }
            }

            /// Each count with its name, in a fixed order.
            pub fn named(&self) -> [(&'static str, u64); KINDS] {
                [$((stringify!($field), self.$field)),*]
            }
        }

        const KINDS: usize = [$(Kind::$kind),*].len();

        /// This thread's counts at this moment.
        pub fn snapshot() -> Counts {
            CELLS.with(|cells| Counts {
                $($field: cells.get(Kind::$kind as usize).map_or(0, Cell::get)),*
            })
        }
    };
}

counts! {
    /// `read`/`recv` of payload.
    read Read,
    /// `recv` that only peeks.
    peek Peek,
    /// `send` of one buffer.
    write Write,
    /// `writev` of several.
    writev Writev,
    /// `sendfile`.
    sendfile Sendfile,
    /// `accept4`, successful or not.
    accept Accept,
    /// `connect`.
    connect Connect,
    /// `close` of a socket.
    close Close,
    /// `shutdown`.
    shutdown Shutdown,
    /// `getsockopt` and `setsockopt`.
    sockopt Sockopt,
    /// `epoll_wait`: one per loop turn.
    epoll_wait EpollWait,
    /// `nanosleep` before `epoll_wait` (coalescing).
    sleep Sleep,
    /// `epoll_ctl`: one per socket and life, none on the steady path.
    epoll_ctl EpollCtl,
    /// `write` to another worker's eventfd.
    notify Notify,
    /// `mkdirat`, successful or not, for the directories above a file.
    mkdir Mkdir,
    /// Allocations, if the binary's allocator is [`Allocator`]; otherwise 0.
    allocations Allocation,
    /// Polls of a task (not a syscall, but the same kind of figure).
    polls Poll,
    /// Tasks that ended with a panic.
    panics Panic,
}

thread_local! {
    static CELLS: [Cell<u64>; KINDS] = const { [const { Cell::new(0) }; KINDS] };
}

#[inline]
pub(crate) fn count(kind: Kind) {
    CELLS.with(|cells| {
        if let Some(cell) = cells.get(kind as usize) {
            cell.set(cell.get().wrapping_add(1));
        }
    });
}

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed, if the binary's allocator is [`Allocator`]. Memory that one
/// thread allocates and another frees raises the count of the first and lowers that of the second.
pub fn held_bytes() -> i64 {
    HELD_BYTES.with(Cell::get)
}

#[inline]
pub(crate) fn hold(bytes: usize) {
    HELD_BYTES.with(|held| held.set(held.get().wrapping_add_unsigned(bytes as u64)));
}

#[inline]
pub(crate) fn release(bytes: usize) {
    HELD_BYTES.with(|held| held.set(held.get().wrapping_sub_unsigned(bytes as u64)));
}

/// The system's allocator, which counts the allocations of each thread: a `#[global_allocator]` for tests.
pub struct Allocator;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_kind_and_difference() {
        let before = snapshot();
        count(Kind::Read);
        count(Kind::Read);
        count(Kind::Panic);
        let delta = snapshot().since(&before);
        assert_eq!((delta.read, delta.panics, delta.writev), (2, 1, 0));
        let named = delta.named();
        assert!(named.contains(&("read", 2)) && named.contains(&("epoll_ctl", 0)));
    }
}
