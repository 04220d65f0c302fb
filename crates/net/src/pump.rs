//! A pump moves the bytes of one connection to another, unchanged and in order, until the sender ends. A tunnel or a
//! session has two, one for each direction.
//!
//! It knows no protocol and no timeout. The caller has the connections, calls [`Pump::turn`] for both directions, and waits
//! with [`poll_timeout`]; its [`Terms`] say how many bytes may be read now, and see the bytes that somebody must see.
//!
//! Bytes go through memory at first, because most messages are small: a splice copies no byte, but needs two calls, and
//! one more that finds nothing. A pump begins to splice when reads in a row that filled their buffers took
//! [`SPLICE_BYTES_MIN`], and ends it after a splice of fewer bytes (docs/why/010-stream.md has the figures).
//!
//! Invariants: while it waits for its sender, it holds no buffer and no pipe. While it waits for its receiver, it reads
//! nothing, and holds one buffer or one pipe.

use crate::splice::{PIPE_BYTES, Pipe};
use crate::timer::Deadline;
use crate::transport::Transport;
use crate::worker::Task;
use crate::{Lease, buffer};
use std::io;
use std::task::{Poll, ready};
use std::time::Duration;

/// Bytes at a time from which on a splice costs less than a copy.
const SPLICE_BYTES_MIN: usize = 32 << 10;
/// Reads in one turn before other tasks have their turn.
const READS_MAX: usize = 16;

/// One direction of a tunnel or a session. It is small, because ten thousand of them may be idle.
#[derive(Default)]
pub struct Pump {
    /// Bytes that were read and that the receiver did not take yet.
    held: Option<Box<Held>>,
    written: u64,
    /// Bytes of the last reads, each of which filled its buffer.
    full_bytes: u32,
    has_ended: bool,
    has_passed_end: bool,
}

/// Bytes under way.
enum Held {
    /// How many of them are written.
    Memory(Lease, usize),
    Kernel(Pipe),
}

/// What the caller says about the bytes of one direction.
pub trait Terms {
    /// The most bytes of the next read through memory; `None` if nothing may be read now. Then the caller has the task
    /// woken.
    fn room(&mut self) -> Option<usize>;
    /// How many of the next bytes nobody must see: they may go inside the kernel.
    fn unseen(&self) -> u64;
    /// So many bytes have come; `None` instead of the bytes if they went unseen.
    fn came(&mut self, count: usize, bytes: Option<&[u8]>);
    /// Whether the receiver is told that the sender has ended.
    fn passes_end(&self) -> bool;
}

/// The result of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing: it waits for a side, or has ended.
    Idle,
    /// It moved bytes or ended, and waits for a side now.
    Moved,
    /// It moved bytes, and more may be there.
    More,
}

/// The call that failed.
#[derive(Debug)]
pub enum PumpFault {
    /// The sender's bytes cannot be read: the direction has ended. Bytes that came before are written.
    Read(io::Error),
    /// The receiver takes nothing more.
    Write(io::Error),
}

impl Pump {
    /// A pump that begins with these bytes. They count as written, but [`Terms`] does not see them.
    pub fn after(first: &[u8]) -> Pump {
        let mut pump = Pump::default();
        if !first.is_empty() {
            let mut bytes = buffer::lease(first.len());
            bytes.extend_from_slice(first);
            pump.held = Some(Box::new(Held::Memory(bytes, 0)));
        }
        pump
    }

    /// Bytes that the receiver has taken.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether the sender has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the sender has ended, and the receiver has all bytes.
    pub fn is_done(&self) -> bool {
        self.has_ended && self.held.is_none()
    }

    /// Moves the bytes that can be moved now. If it does not return [`Turn::More`], the current task is woken when there is
    /// more to do.
    pub fn turn(&mut self, from: &Transport, to: &Transport, terms: &mut impl Terms) -> Result<Turn, PumpFault> {
        let mut turn = Turn::Idle;
        for _ in 0..READS_MAX {
            if let Some(held) = &mut self.held {
                let before = self.written;
                let is_empty = held.give(to, &mut self.written).map_err(PumpFault::Write)?;
                if self.written > before {
                    turn = Turn::Moved;
                }
                if !is_empty {
                    return Ok(turn);
                }
                self.held = None;
            }
            if self.has_ended {
                return Ok(if self.pass_end(to, terms) { Turn::Moved } else { turn });
            }
            let Some(room) = terms.room() else { return Ok(turn) };
            let Poll::Ready(taken) = self.poll_take(from, to, room, terms) else { return Ok(turn) };
            turn = Turn::Moved;
            match taken {
                Ok(Some(mut held)) => {
                    if !held.give(to, &mut self.written).map_err(PumpFault::Write)? {
                        self.held = Some(Box::new(held));
                        return Ok(turn);
                    }
                }
                Ok(None) => {
                    self.has_ended = true;
                    self.pass_end(to, terms);
                    return Ok(turn);
                }
                Err(error) => {
                    self.has_ended = true;
                    return Err(PumpFault::Read(error));
                }
            }
        }
        Ok(Turn::More)
    }

    /// Tells the receiver, which has all bytes, that the sender has ended; `false` if it need not.
    fn pass_end(&mut self, to: &Transport, terms: &impl Terms) -> bool {
        let passes = terms.passes_end() && !std::mem::replace(&mut self.has_passed_end, true);
        if passes {
            // The receiver may still answer. If it is gone, that direction ends.
            let _ = to.shutdown_write();
        }
        passes
    }

    /// Takes bytes from the sender; `None` is its end.
    fn poll_take(
        &mut self,
        from: &Transport,
        to: &Transport,
        room: usize,
        terms: &mut impl Terms,
    ) -> Poll<io::Result<Option<Held>>> {
        ready!(from.poll_readable());
        let unseen = usize::try_from(terms.unseen()).unwrap_or(usize::MAX);
        if self.full_bytes as usize >= SPLICE_BYTES_MIN
            && unseen >= SPLICE_BYTES_MIN
            && let (Some(from), Some(_)) = (from.bare(), to.bare())
            && let Some(mut pipe) = Pipe::lease()
        {
            let count = ready!(pipe.poll_take(from, unseen.min(PIPE_BYTES)))?;
            if count < SPLICE_BYTES_MIN {
                self.full_bytes = 0;
            }
            terms.came(count, None);
            return Poll::Ready(Ok((count > 0).then_some(Held::Kernel(pipe))));
        }
        let mut bytes = buffer::lease(room);
        loop {
            match from.try_read_vec(&mut bytes, room) {
                Ok(0) => return Poll::Ready(Ok(None)),
                Ok(count) => {
                    self.full_bytes = if count == room { self.full_bytes.saturating_add(count as u32) } else { 0 };
                    terms.came(count, Some(&bytes));
                    return Poll::Ready(Ok(Some(Held::Memory(bytes, 0))));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(from.poll_readable()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Held {
    /// Writes as many bytes as the receiver takes now, and counts them; `true` if none is left.
    fn give(&mut self, to: &Transport, written: &mut u64) -> io::Result<bool> {
        let before = self.left();
        let is_empty = match (&mut *self, to.bare()) {
            (Held::Memory(bytes, start), _) => to.try_write_rest(bytes, start),
            (Held::Kernel(pipe), Some(to)) => pipe.try_give_rest(to),
            (Held::Kernel(_), None) => Err(io::ErrorKind::BrokenPipe.into()),
        };
        *written += (before - self.left()) as u64;
        is_empty
    }

    fn left(&self) -> usize {
        match self {
            Held::Memory(bytes, start) => bytes.len() - start,
            Held::Kernel(pipe) => pipe.held(),
        }
    }
}

/// After a turn of both pumps: moves the deadline if bytes moved, and sees that there is a next turn. Ready if nothing has
/// moved for `timeout`; without one, nothing is waited for that long.
pub fn poll_timeout(turns: [Turn; 2], deadline: &Deadline, timeout: Option<Duration>) -> Poll<()> {
    match timeout {
        None => deadline.clear(),
        Some(timeout) if turns != [Turn::Idle; 2] || !deadline.is_set() => deadline.set(timeout),
        Some(_) => {}
    }
    if turns.contains(&Turn::More) {
        // Other tasks have their turn first.
        Task::current().wake();
        return Poll::Pending;
    }
    deadline.poll_expired()
}

#[cfg(test)]
mod tests;
