//! All `unsafe` code of weir.
//!
//! The one waker that borrows (so that polling a task allocates nothing), and the few socket options and look-ups that
//! rustix does not wrap. Everything else goes through rustix's safe calls. Invariant: each block says why it is sound.
#![allow(unsafe_code)]

use crate::control::{self, CONTROL_BYTES, Control};
use crate::counts::{Allocator, Kind, count, hold, release};
use rustix::event::Timespec;
use rustix::event::epoll::Event;
use rustix::io::Errno;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::{io, ptr};

// SAFETY: each function passes its arguments on to `System` and returns its answer. Counting neither allocates nor
// fails: the cells are constants in thread-local storage without a destructor.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(Kind::Allocation);
        hold(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(Kind::Allocation);
        release(layout.size());
        hold(new_size);
        // SAFETY: as above; `block` came from `System`, since all our blocks do.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        release(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// A waker on the stack, which a task is polled with.
pub(crate) trait Borrowed: Sync {
    /// A waker that may be kept and sent.
    fn owned(&self) -> Waker;

    /// Wakes the task.
    fn wake(&self);
}

/// Calls `f` with a context whose waker is `wake`, without allocating.
///
/// A clone of that waker owns its data (`Borrowed::owned`), so it may outlive the call and leave the thread.
pub(crate) fn with_waker<W: Borrowed, R>(wake: &W, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
    let table = const { &RawWakerVTable::new(clone::<W>, wake_borrowed::<W>, wake_borrowed::<W>, drop_nothing) };
    let raw = RawWaker::new(ptr::from_ref(wake).cast(), table);
    // SAFETY: the vtable's functions only read the `W` the pointer came from.
    // That value outlives this waker, which is dropped before we return;
    // `drop` is a no-op, so nothing is freed twice, and `clone` returns a waker
    // that owns its data. `W` is `Sync`, so its functions may be called from any
    // thread.
    let waker = unsafe { Waker::from_raw(raw) };
    f(&mut Context::from_waker(&waker))
}

/// # Safety
/// `data` must point to a live `W`.
unsafe fn clone<W: Borrowed>(data: *const ()) -> RawWaker {
    // SAFETY: `data` is the pointer `with_waker` stored, and its referent lives as
    // long as the waker we are called through.
    let local: &W = unsafe { &*data.cast() };
    let owned = std::mem::ManuallyDrop::new(local.owned());
    RawWaker::new(owned.data(), owned.vtable())
}

/// # Safety
/// `data` must point to a live `W`.
unsafe fn wake_borrowed<W: Borrowed>(data: *const ()) {
    // SAFETY: as in `clone`.
    let local: &W = unsafe { &*data.cast() };
    local.wake();
}

/// # Safety
/// None: the waker borrows, there is nothing to drop.
unsafe fn drop_nothing(_: *const ()) {}

/// A copy of the mounts for this process alone.
pub(crate) fn own_mounts() -> io::Result<()> {
    // SAFETY: rustix calls this unsafe for the flags that take descriptors from other threads. This flag takes none.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.map_err(io::Error::from)
}

/// Sets an integer socket option rustix has no call for.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which lives on our
    // stack during the call; the descriptor is open because it is borrowed.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), size_of::<i32>() as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a packet socket pass each frame with the kernel's header about missing checksums, and leave out frames sent
/// from here.
pub(crate) fn keep_frames_whole(fd: &OwnedFd) -> io::Result<()> {
    set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Sets the bytes that may wait to be received, also above the machine's limit. Needs CAP_NET_ADMIN.
pub(crate) fn receive_room(fd: &OwnedFd, bytes: i32) -> io::Result<()> {
    set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
}

/// Binds a packet socket to all protocols of one interface, by its index.
pub(crate) fn bind_frames(fd: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain integers, for which zeroes are valid.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
    // SAFETY: the pointer and the length describe `address`, which lives on our stack during the call; the descriptor
    // is open because it is borrowed.
    let result = unsafe {
        libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Frames that a packet socket has lost since the last call, because its receive buffer was full.
pub(crate) fn dropped_frames(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut counts = MaybeUninit::<libc::tpacket_stats>::zeroed();
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the pointer and `len` describe `counts`; the kernel writes at most `len` bytes, and zeroes are valid for
    // the rest.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            counts.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    // SAFETY: zeroed before the call, and the fields are integers.
    if result == 0 { Ok(unsafe { counts.assume_init() }.tp_drops) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's view of a TCP connection.
pub(crate) fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointer and `len` describe `info`; the kernel writes at most `len` bytes, an older kernel fewer, so
    // `info` is zeroed first.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut len)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `tcp_info` is plain integers, for which any bytes (here zeroes or
    // what the kernel wrote) are valid.
    Ok(unsafe { info.assume_init() })
}

/// The process and the real user that sent a signal. If the kernel wrote neither, both numbers are other data, and have
/// no meaning.
pub(crate) fn sender(info: &libc::siginfo_t) -> (i32, u32) {
    // SAFETY: both read four bytes inside the union that follows `si_code`, which the kernel or the C library
    // initialised as a whole; every value of them is a valid integer.
    unsafe { (info.si_pid(), info.si_uid()) }
}

/// `tcpi_bytes_acked`; libc's `tcp_info` ends before this field (Linux 4.2; <linux/tcp.h> never moves a field).
pub(crate) fn tcp_bytes_acked(fd: BorrowedFd<'_>) -> io::Result<u64> {
    const AT: usize = 15; // the byte 120
    let mut info = [0u64; AT + 1];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the pointer and `len` describe `info`, and the kernel writes at most `len` bytes.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut len)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if (len as usize) < size_of_val(&info) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(info[AT])
}

/// CLOCK_MONOTONIC in nanoseconds.
///
/// It uses libc's call: std's `Instant` does not reveal its number, and rustix's search for the vDSO crashes under
/// valgrind.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to a live timespec of ours, which is all that the call writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) };
    // SAFETY: zeroed first, and two integers.
    let time = unsafe { time.assume_init() };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// The offset of local time from UTC at that moment, in minutes: in the zone of `TZ` or `/etc/localtime`. 0 if the
/// year does not fit.
///
/// It uses libc's call, because std has none and a zone-file crate would be a dependency for one number.
pub(crate) fn utc_offset_minutes(unix_seconds: i64) -> i32 {
    let time = unix_seconds as libc::time_t;
    let mut local = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live values of the types that libc expects; localtime_r writes only `local` and,
    // unlike localtime, keeps no state of ours.
    let result = unsafe { libc::localtime_r(&raw const time, local.as_mut_ptr()) };
    if result.is_null() {
        return 0;
    }
    // SAFETY: zeroed first, and `tm` is integers and a pointer we do not follow.
    let local = unsafe { local.assume_init() };
    (local.tm_gmtoff / 60) as i32
}

/// A time in the form of strftime, in local time or in GMT; `None` if the result is empty, has more than `max` bytes,
/// or the year does not fit.
///
/// It uses libc's calls: files written for nginx expect the formats and the zone names of libc.
pub(crate) fn strftime(format: &CStr, unix_seconds: i64, is_local: bool, max: usize) -> Option<Vec<u8>> {
    let time = unix_seconds as libc::time_t;
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    let broken_down = if is_local { libc::localtime_r } else { libc::gmtime_r };
    // SAFETY: both pointers are to live values of the types that libc expects; the calls write only `parts`.
    if unsafe { broken_down(&raw const time, parts.as_mut_ptr()) }.is_null() {
        return None;
    }
    let mut text = vec![0; max];
    // SAFETY: `text` has room for `max` bytes, `format` ends with a NUL, and libc has filled `parts`. The zone name in
    // `parts` is a string that libc keeps.
    let length = unsafe { libc::strftime(text.as_mut_ptr().cast(), max, format.as_ptr(), parts.as_ptr()) };
    text.truncate(length);
    (length > 0).then_some(text)
}

/// Receives at most `max` bytes into the spare capacity of `buf`, which is not
/// zeroed first. The spare capacity must not be empty unless `max` is 0.
#[inline]
pub(crate) fn recv_spare(
    fd: BorrowedFd<'_>,
    buf: &mut Vec<u8>,
    max: usize,
    flags: rustix::net::RecvFlags,
) -> rustix::io::Result<usize> {
    let spare = buf.spare_capacity_mut();
    let room = spare.len().min(max);
    let (spare, _) = spare.split_at_mut(room);
    let ((received, _), _) = rustix::net::recv(fd, spare, flags)?;
    let len = received.len();
    let filled = buf.len() + len;
    // SAFETY: `recv` initialised the first `len` bytes of the spare capacity,
    // which begins at `buf.len()`, and `len` is at most that capacity.
    unsafe { buf.set_len(filled) };
    Ok(len)
}

/// As [`recv_spare`], from a place of a file.
pub(crate) fn pread_spare(fd: BorrowedFd<'_>, buf: &mut Vec<u8>, max: usize, at: u64) -> rustix::io::Result<usize> {
    let spare = buf.spare_capacity_mut();
    let room = spare.len().min(max);
    let (spare, _) = spare.split_at_mut(room);
    let (read, _) = rustix::io::pread(fd, spare, at)?;
    let len = read.len();
    let filled = buf.len() + len;
    // SAFETY: `pread` initialised the first `len` bytes of the spare capacity, which begins at `buf.len()`, and `len` is at most
    // that capacity.
    unsafe { buf.set_len(filled) };
    Ok(len)
}

/// Makes a UDP socket tell the address that each datagram was sent to.
pub(crate) fn tell_destination(fd: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        set_option(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

/// Gives a group of sockets of one address (`SO_REUSEPORT`) a program that chooses the socket of each datagram.
pub(crate) fn attach_choice(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `program`, which leads to `len` steps; all of it lives during the call,
    // and the kernel only reads it. The kernel refuses a program that would read other memory than the datagram's.
    let result = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF);
        libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(&program).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its length; of all datagrams that the kernel has joined, if it has.
    pub length: usize,
    /// The sender.
    pub from: SocketAddr,
    /// The address that it was sent to, if the socket tells it.
    pub to: Option<IpAddr>,
    /// Its ECN bits (RFC 3168), if the socket tells them.
    pub ecn: u8,
    /// The kernel has joined datagrams of this many bytes; the last one may be shorter.
    pub segment_bytes: Option<usize>,
}

/// Receives up to `N` datagrams by one call, each into its part of `bytes`. A datagram of no known family is left out.
pub(crate) fn receive_many<const N: usize>(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<[Option<Arrived>; N]> {
    // SAFETY: plain integers, for which zeroes are valid.
    let mut names: [libc::sockaddr_storage; N] = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: plain integers and pointers, for which zeroes are valid.
    let mut pieces: [libc::iovec; N] = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: as above.
    let mut heads: [libc::mmsghdr; N] = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut controls = [const { Control::new() }; N];
    let mut count = 0;
    let parts = bytes.chunks_exact_mut((bytes.len() / N.max(1)).max(1));
    let memory = names.iter_mut().zip(&mut pieces).zip(&mut controls).zip(parts);
    for (head, (((name, piece), control), part)) in heads.iter_mut().zip(memory) {
        *piece = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
        head.msg_hdr.msg_name = ptr::from_mut(name).cast();
        head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        head.msg_hdr.msg_iov = piece;
        head.msg_hdr.msg_iovlen = 1;
        head.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
        head.msg_hdr.msg_controllen = CONTROL_BYTES;
        count += 1;
    }
    // SAFETY: all pointers of the first `count` heads are to memory of ours that lives during the call, with the lengths
    // beside them; no two heads share memory, and the kernel writes no more than these lengths.
    let found = unsafe { libc::recvmmsg(fd.as_raw_fd(), heads.as_mut_ptr(), count, 0, ptr::null_mut()) };
    let Ok(found) = usize::try_from(found) else { return Err(io::Error::last_os_error()) };
    let mut arrived = [None; N];
    let messages = heads.iter().zip(&names).zip(&controls).take(found);
    for (into, ((head, name), control)) in arrived.iter_mut().zip(messages) {
        let told = control::told(control.bytes.get(..head.msg_hdr.msg_controllen).unwrap_or_default());
        *into = address_of(name).map(|from| Arrived {
            length: head.msg_len as usize,
            from,
            to: told.to,
            ecn: told.ecn,
            segment_bytes: told.segment_bytes,
        });
    }
    Ok(arrived)
}

fn address_of(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage, which is large enough and aligned for it, holds this type.
            let found: &libc::sockaddr_in = unsafe { &*ptr::from_ref(storage).cast() };
            Some(SocketAddr::new(IpAddr::V4(u32::from_be(found.sin_addr.s_addr).into()), u16::from_be(found.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let found: &libc::sockaddr_in6 = unsafe { &*ptr::from_ref(storage).cast() };
            let (flow, scope) = (found.sin6_flowinfo, found.sin6_scope_id);
            let port = u16::from_be(found.sin6_port);
            Some(SocketAddr::V6(std::net::SocketAddrV6::new(found.sin6_addr.s6_addr.into(), port, flow, scope)))
        }
        _ => None,
    }
}

/// A message to send.
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) to: SocketAddr,
    pub(crate) control: Control,
}

/// Sends the first of the messages, up to `N`, by one call; returns how many it has sent.
///
/// # Errors
/// The kernel did not take the first one. The error of a later one is told when it is the first.
pub(crate) fn send_many<'a, const N: usize>(
    fd: BorrowedFd<'_>,
    messages: impl Iterator<Item = OutgoingMessage<'a>>,
) -> io::Result<usize> {
    // SAFETY: plain integers, for which zeroes are valid.
    let mut names: [libc::sockaddr_storage; N] = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: plain integers and pointers, for which zeroes are valid.
    let mut pieces: [libc::iovec; N] = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: as above.
    let mut heads: [libc::mmsghdr; N] = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut controls = [const { Control::new() }; N];
    let mut count = 0;
    let memory = names.iter_mut().zip(&mut pieces).zip(&mut controls);
    for ((head, ((name, piece), control)), message) in heads.iter_mut().zip(memory).zip(messages) {
        *piece = libc::iovec { iov_base: message.bytes.as_ptr().cast_mut().cast(), iov_len: message.bytes.len() };
        *control = message.control;
        head.msg_hdr.msg_namelen = put_address(name, message.to);
        head.msg_hdr.msg_name = ptr::from_mut(name).cast();
        head.msg_hdr.msg_iov = piece;
        head.msg_hdr.msg_iovlen = 1;
        head.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
        head.msg_hdr.msg_controllen = control.length;
        count += 1;
    }
    // SAFETY: all pointers of the first `count` heads are to memory that lives during the call, with the lengths beside
    // them: ours, and the bytes of the messages, which `'a` outlives. The kernel writes only the lengths in the heads.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), heads.as_mut_ptr(), count, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Writes an address in the kernel's form; returns its length.
fn put_address(storage: &mut libc::sockaddr_storage, address: SocketAddr) -> libc::socklen_t {
    match address {
        SocketAddr::V4(address) => {
            // SAFETY: the storage is large enough and aligned for this type, which is plain integers.
            let v4: &mut libc::sockaddr_in = unsafe { &mut *ptr::from_mut(storage).cast() };
            v4.sin_family = libc::AF_INET as libc::sa_family_t;
            v4.sin_port = address.port().to_be();
            v4.sin_addr.s_addr = u32::from(*address.ip()).to_be();
            size_of::<libc::sockaddr_in>() as libc::socklen_t
        }
        SocketAddr::V6(address) => {
            // SAFETY: as above.
            let v6: &mut libc::sockaddr_in6 = unsafe { &mut *ptr::from_mut(storage).cast() };
            v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            v6.sin6_port = address.port().to_be();
            v6.sin6_addr.s6_addr = address.ip().octets();
            v6.sin6_scope_id = address.scope_id();
            size_of::<libc::sockaddr_in6>() as libc::socklen_t
        }
    }
}

/// `epoll_pwait2`: as `epoll_wait`, with a timeout in nanoseconds. Events go into the spare capacity of `events`.
///
/// rustix calls it only for timeouts that milliseconds cannot hold.
pub(crate) fn epoll_wait_exactly(
    epoll: BorrowedFd<'_>,
    events: &mut Vec<Event>,
    timeout: &Timespec,
) -> rustix::io::Result<()> {
    let spare = events.spare_capacity_mut();
    let room = spare.len().min(i32::MAX as usize);
    // SAFETY: the kernel writes at most `room` events of rustix's type, which is laid out as the kernel's own, into
    // memory that we hold exclusively, and reads a timespec with 64-bit fields, which rustix's is. No signal mask.
    let found = unsafe {
        let (into, time) = (spare.as_mut_ptr(), ptr::from_ref(timeout));
        libc::syscall(libc::SYS_epoll_pwait2, epoll.as_raw_fd(), into, room as i32, time, ptr::null::<u8>(), 0usize)
    };
    let Ok(found) = usize::try_from(found) else {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    };
    let filled = events.len() + found.min(room);
    // SAFETY: the kernel filled that many events after the existing ones.
    unsafe { events.set_len(filled) };
    Ok(())
}

/// Unblocks signals for this thread and for the threads that it starts later.
pub(crate) fn unblock(signals: &[i32]) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the whole set before sigaddset and pthread_sigmask read it. sigaddset refuses a
    // number that is no signal, and the pointer for the old mask may be null.
    let error = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut())
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Takes ownership of a socket of this kind that our parent process left open for us.
///
/// `None`, and nothing is touched, if the number is not an open socket of this kind.
pub(crate) fn adopt_inherited(number: RawFd, is_one: impl FnOnce(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    // SAFETY: F_GETFD takes no pointer and accepts any number; it only checks whether the descriptor is open.
    if number < 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: the descriptor was open a moment ago, and the borrow ends before
    // anything here could close it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    if !is_one(borrowed) {
        return None;
    }
    // SAFETY: open as just seen. Our parent opened it and passed its number to us to own; the caller uses each number
    // once, at start-up, before this process has opened sockets of this kind of its own.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Frames of a stack that are noted, at most.
const FRAMES_MAX: usize = 64;
/// The addresses of the last noted stack.
static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];
static FRAMES_COUNT: AtomicUsize = AtomicUsize::new(0);
static IS_STACK_NOTED: AtomicBool = AtomicBool::new(false);

/// The context of a frame, whose form only the unwinder knows.
#[repr(C)]
struct Frame {
    _private: [u8; 0],
}

// The unwinder with which Rust itself walks the stack of a panic (the Itanium C++ ABI, "Exception Handling", level I).
unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut Frame, *mut libc::c_void) -> libc::c_int,
        data: *mut libc::c_void,
    ) -> libc::c_int;
    fn _Unwind_GetIP(frame: *mut Frame) -> usize;
}

/// Asks a thread of this process to note its stack. The signal is SIGURG, which nobody else uses: without a handler it does
/// nothing.
pub(crate) fn ask_for_stack(thread: i32) -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = note_stack;
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all bytes zero are a valid sigaction: no handler, no flags, an empty mask.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    IS_STACK_NOTED.store(false, Ordering::Release);
    // SAFETY: both pointers are to live values or null. The handler only calls the unwinder, which allocates nothing, and
    // writes to statics. The process number is our own, so no other process gets the signal.
    let sent = unsafe {
        if libc::sigaction(libc::SIGURG, ptr::from_ref(action), ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The stack that the asked thread has noted, the innermost frame first; `None` before it has.
pub(crate) fn noted_stack() -> Option<Vec<usize>> {
    if !IS_STACK_NOTED.load(Ordering::Acquire) {
        return None;
    }
    let count = FRAMES_COUNT.load(Ordering::Relaxed).min(FRAMES_MAX);
    Some(FRAMES.iter().take(count).map(|frame| frame.load(Ordering::Relaxed)).collect())
}

extern "C" fn note_stack(_: libc::c_int) {
    FRAMES_COUNT.store(0, Ordering::Relaxed);
    // SAFETY: the callback keeps no pointer, and the data pointer is not used.
    unsafe { _Unwind_Backtrace(note_frame, ptr::null_mut()) };
    IS_STACK_NOTED.store(true, Ordering::Release);
}

/// Notes a frame; a number other than 0 ends the walk.
extern "C" fn note_frame(frame: *mut Frame, _: *mut libc::c_void) -> libc::c_int {
    let at = FRAMES_COUNT.fetch_add(1, Ordering::Relaxed);
    let Some(place) = FRAMES.get(at) else { return 1 };
    // SAFETY: the unwinder has given us this pointer for the time of this call.
    place.store(unsafe { _Unwind_GetIP(frame) }, Ordering::Relaxed);
    0
}

/// Makes file system calls of this thread those of a user and a group; the user and the group of the thread itself stay.
pub(crate) fn set_file_user(uid: u32, gid: u32) -> bool {
    // SAFETY: the calls take numbers and change this thread alone. They return the number before; asking once more for the same
    // number returns it if it is in force.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
        libc::setfsgid(gid).cast_unsigned() == gid && libc::setfsuid(uid).cast_unsigned() == uid
    }
}

/// Calls `fcntl` with the argument 0.
#[cfg(test)]
pub(crate) fn fcntl_of_test(fd: impl AsFd, command: libc::c_int) -> io::Result<()> {
    // SAFETY: the commands of the test take a number or a pointer, and 0 is a pointer that the kernel refuses to read.
    let result = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), command, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
