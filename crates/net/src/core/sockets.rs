//! Sockets: each is registered once, edge-triggered. Keeps the known readiness, and the tasks that wait for more.

use super::registration::{ENDING, FAILED, HUNG_UP, OPENING, OpenedBy, PEER_CLOSED, READ, Registration, WRITE};
use super::{Core, not_a_worker};
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Poll;

impl Core {
    /// Registers a descriptor, edge-triggered, once for its life.
    pub(crate) fn register(
        &self,
        fd: BorrowedFd<'_>,
        side: OpenedBy,
        ready: u8,
        flags: epoll::EventFlags,
    ) -> io::Result<SlotKey> {
        let epoll = self.epoll.borrow().clone().ok_or_else(not_a_worker)?;
        let key = self.sockets.borrow_mut().insert(Registration {
            ready,
            side,
            reader: SlotKey::NONE,
            writer: SlotKey::NONE,
        });
        count(Kind::EpollCtl);
        let data = epoll::EventData::new_u64(key.pack());
        if let Err(error) = epoll::add(&epoll, fd, data, flags | epoll::EventFlags::ET) {
            self.sockets.borrow_mut().remove(key);
            return Err(error.into());
        }
        Ok(key)
    }

    /// Asks for other events of a registered descriptor; what is so already is an event at once.
    pub(crate) fn watch(&self, key: SlotKey, fd: BorrowedFd<'_>, flags: epoll::EventFlags) {
        if let Some(epoll) = self.epoll.borrow().as_ref() {
            count(Kind::EpollCtl);
            // It fails only for a descriptor that is not registered.
            let _ =
                epoll::modify(epoll.as_fd(), fd, epoll::EventData::new_u64(key.pack()), flags | epoll::EventFlags::ET);
        }
    }

    /// Forgets a descriptor that is about to be closed: closing the last copy of a
    /// descriptor takes it out of the epoll set without a syscall of ours.
    pub(crate) fn forget(&self, key: SlotKey) {
        let forgotten = self.sockets.borrow_mut().remove(key);
        if forgotten.is_some_and(|socket| socket.ready & OPENING != 0) {
            self.coalescing.opened();
        }
    }

    /// Forgets a descriptor that lives on elsewhere, so it must be removed from epoll.
    pub(crate) fn unregister(&self, key: SlotKey, fd: BorrowedFd<'_>) {
        self.forget(key);
        if let Some(epoll) = self.epoll.borrow().as_ref() {
            count(Kind::EpollCtl);
            let _ = epoll::delete(epoll.as_fd(), fd);
        }
    }

    pub(super) fn note(&self, key: SlotKey, flags: epoll::EventFlags) {
        use epoll::EventFlags as E;
        let mut bits = 0;
        if flags.intersects(E::IN | E::RDHUP | E::HUP | E::ERR) {
            bits |= READ;
        }
        if flags.intersects(E::OUT | E::HUP | E::ERR) {
            bits |= WRITE;
        }
        if flags.contains(E::RDHUP) {
            bits |= PEER_CLOSED;
        }
        if flags.contains(E::HUP) {
            bits |= HUNG_UP;
        }
        if flags.contains(E::ERR) {
            bits |= FAILED;
        }
        // An event for a socket that has been closed finds no registration.
        let (mut reader, mut writer) = (SlotKey::NONE, SlotKey::NONE);
        let mut queue = &self.queue;
        if let Some(socket) = self.sockets.borrow_mut().get_mut(key) {
            socket.ready |= bits;
            match socket.side {
                OpenedBy::Ours => queue = &self.answered,
                OpenedBy::Theirs => self.coalescing.client_came(key),
            }
            if bits & READ != 0 {
                reader = std::mem::replace(&mut socket.reader, SlotKey::NONE);
            }
            if bits & WRITE != 0 {
                writer = std::mem::replace(&mut socket.writer, SlotKey::NONE);
                if socket.ready & OPENING != 0 {
                    socket.ready &= !OPENING;
                    self.coalescing.opened();
                }
            }
        }
        if reader != SlotKey::NONE {
            self.wake_in(queue, reader);
        }
        if writer != SlotKey::NONE {
            self.wake_in(queue, writer);
        }
    }

    /// Notes that a write failed: the bytes that came before, or the failure, can be read.
    pub(crate) fn note_failed(&self, key: SlotKey) {
        self.note(key, epoll::EventFlags::ERR);
    }

    /// The known readiness; none for an unknown key.
    #[inline]
    pub(crate) fn ready(&self, key: SlotKey) -> u8 {
        self.sockets.borrow().get(key).map_or(0, |socket| socket.ready)
    }

    #[inline]
    pub(crate) fn clear_ready(&self, key: SlotKey, bits: u8) {
        if let Some(socket) = self.sockets.borrow_mut().get_mut(key) {
            socket.ready &= !bits;
        }
    }

    /// Notes that a socket was read empty. See `Stream::after_read`.
    #[inline]
    pub(crate) fn clear_read_unless_ending(&self, key: SlotKey) {
        if let Some(socket) = self.sockets.borrow_mut().get_mut(key)
            && socket.ready & ENDING == 0
        {
            socket.ready &= !READ;
        }
    }

    /// Ready if any of `bits` is set; otherwise the current task is woken when one is.
    #[inline]
    pub(crate) fn poll_ready(&self, key: SlotKey, bits: u8) -> Poll<()> {
        let mut sockets = self.sockets.borrow_mut();
        let Some(socket) = sockets.get_mut(key) else {
            return Poll::Pending;
        };
        if socket.ready & bits != 0 {
            return Poll::Ready(());
        }
        if bits & (READ | ENDING) != 0 {
            socket.reader = self.current.get();
        }
        if bits & WRITE != 0 {
            socket.writer = self.current.get();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A registration without a descriptor.
    fn register(core: &Core) -> SlotKey {
        let none = Registration { ready: 0, side: OpenedBy::Theirs, reader: SlotKey::NONE, writer: SlotKey::NONE };
        core.sockets.borrow_mut().insert(none)
    }

    #[test]
    fn an_event_for_a_closed_socket_does_not_reach_its_successor() {
        let core = Core::new();
        let old = register(&core);
        core.note(old, epoll::EventFlags::IN);
        assert_eq!(core.ready(old), READ);
        core.forget(old);
        let new = register(&core);
        assert_eq!(new.index, old.index, "the slot is reused");
        core.note(old, epoll::EventFlags::IN | epoll::EventFlags::HUP);
        assert_eq!(core.ready(new), 0);
        assert_eq!(core.ready(old), 0);
        assert!(core.poll_ready(old, READ).is_pending());
    }

    #[test]
    fn events_become_bits() {
        use epoll::EventFlags as E;
        let check = |flags: E, expect: u8| {
            let core = Core::new();
            let key = register(&core);
            core.note(key, flags);
            assert_eq!(core.ready(key), expect, "{flags:?}");
        };
        check(E::IN, READ);
        check(E::OUT, WRITE);
        check(E::IN | E::RDHUP, READ | PEER_CLOSED);
        check(E::HUP, READ | WRITE | HUNG_UP);
        check(E::ERR, READ | WRITE | FAILED);
    }

    #[test]
    fn after_an_announced_end_a_short_read_keeps_readiness() {
        let core = Core::new();
        let key = register(&core);
        core.note(key, epoll::EventFlags::IN);
        core.clear_read_unless_ending(key);
        assert_eq!(core.ready(key), 0);
        core.note(key, epoll::EventFlags::IN | epoll::EventFlags::RDHUP);
        core.clear_read_unless_ending(key);
        assert_eq!(core.ready(key), READ | PEER_CLOSED);
    }
}
