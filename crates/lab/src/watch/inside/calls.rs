//! System calls in which a thread may wait, by number, and how to read their arguments.
//!
//! Numbers: Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.

/// How to read the first arguments. The numbers of the variants up to `Sleep` are those of `waits.bpf.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The arguments are not read.
    Other = 0,
    /// The first argument is a descriptor.
    Descriptor = 1,
    /// A futex: its address, the operation, the value.
    Futex = 2,
    /// A list of descriptors to wait for, and its length.
    Poll = 3,
    /// A wait for the first of many events.
    Events = 4,
    /// A wait for a time or a signal.
    Sleep = 5,
    /// A wait for a child process to end.
    Child = 6,
    /// A lock on a file.
    FileLock = 7,
    /// A file on a disk, by its name, or all files.
    File = 8,
    /// A wait until a descriptor's data is on disk.
    Sync = 9,
}

/// FUTEX_WAIT for the value 2 is a lock of glibc or musl that another thread holds. FUTEX_LOCK_PI is always a lock.
pub fn is_mutex(operation: u32, is_two: bool) -> bool {
    operation == 6 || (operation == 0 && is_two)
}

impl Call {
    /// The variant as the kernel side knows it. The kernel side reads nothing for the others.
    pub fn in_kernel(self) -> u32 {
        match self {
            Call::FileLock | Call::Sync | Call::Descriptor => Call::Descriptor as u32,
            Call::Futex | Call::Poll | Call::Events => self as u32,
            Call::Other | Call::Sleep | Call::Child | Call::File => Call::Other as u32,
        }
    }
}

/// All numbers are below this.
pub const NUMBERS: u32 = 512;

/// The call with a number. `Other` if the number is unknown, or the CPU is neither of the two known architectures.
pub fn call(number: i32) -> Call {
    let found = TABLE.iter().find(|(_, numbers)| numbers.contains(&number));
    found.map_or(Call::Other, |(call, _)| *call)
}

#[cfg(target_arch = "x86_64")]
const TABLE: &[(Call, &[i32])] = &[
    // read, write, ioctl, pread64, pwrite64, readv, writev, sendfile, connect, accept, sendto, recvfrom, sendmsg,
    // recvmsg, splice, accept4, preadv, pwritev, recvmmsg, sendmmsg, preadv2, pwritev2, close
    (
        Call::Descriptor,
        &[0, 1, 16, 17, 18, 19, 20, 40, 42, 43, 44, 45, 46, 47, 275, 288, 295, 296, 299, 307, 327, 328, 3],
    ),
    (Call::Futex, &[202]),
    // poll, ppoll
    (Call::Poll, &[7, 271]),
    // epoll_wait, epoll_pwait, epoll_pwait2, select, pselect6, io_getevents, io_pgetevents, io_uring_enter
    (Call::Events, &[232, 281, 441, 23, 270, 208, 333, 426]),
    // nanosleep, clock_nanosleep, pause, rt_sigtimedwait, rt_sigsuspend
    (Call::Sleep, &[35, 230, 34, 128, 130]),
    // wait4, waitid
    (Call::Child, &[61, 247]),
    // fcntl, flock
    (Call::FileLock, &[72, 73]),
    // open, openat, openat2, stat, lstat, newfstatat, rename, renameat2, unlink, unlinkat, getdents64, sync
    (Call::File, &[2, 257, 437, 4, 6, 262, 82, 316, 87, 263, 217, 162]),
    // fsync, fdatasync, ftruncate, fallocate, sync_file_range, syncfs
    (Call::Sync, &[74, 75, 77, 285, 277, 306]),
];

#[cfg(target_arch = "aarch64")]
const TABLE: &[(Call, &[i32])] = &[
    (
        Call::Descriptor,
        &[63, 64, 29, 67, 68, 65, 66, 71, 203, 202, 206, 207, 211, 212, 76, 242, 69, 70, 243, 269, 286, 287, 57],
    ),
    (Call::Futex, &[98]),
    (Call::Poll, &[73]),
    (Call::Events, &[22, 441, 72, 4, 292, 426]),
    (Call::Sleep, &[101, 115, 137, 133]),
    (Call::Child, &[260, 95]),
    (Call::FileLock, &[25, 32]),
    (Call::File, &[56, 437, 79, 276, 35, 61, 81]),
    (Call::Sync, &[82, 83, 46, 47, 84, 267]),
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const TABLE: &[(Call, &[i32])] = &[];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_number_is_one_call() {
        let all: Vec<i32> = TABLE.iter().flat_map(|(_, numbers)| numbers.iter().copied()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|number| (0..NUMBERS as i32).contains(number)));
        assert_eq!((call(-1), call(100_000)), (Call::Other, Call::Other));
        assert!(
            !cfg!(target_arch = "x86_64") || (call(202), call(7), call(75)) == (Call::Futex, Call::Poll, Call::Sync)
        );
    }

    #[test]
    fn the_kernels_side_has_the_same_numbers() {
        let source = include_str!("../../../bpf/waits.bpf.c");
        assert!(source.contains("enum { CALL_OTHER, CALL_FD, CALL_FUTEX, CALL_POLL, CALL_EVENTS };"));
        let numbers = [Call::Other, Call::Descriptor, Call::Futex, Call::Poll, Call::Events].map(Call::in_kernel);
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert_eq!((Call::Sync.in_kernel(), Call::Sleep.in_kernel()), (1, 0));
    }
}
