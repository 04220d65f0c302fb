//! Moves bytes from one socket to another inside the kernel, through a pipe: no copy to memory of the process.
//!
//! It costs two calls instead of two calls and two copies, so it pays off only for many bytes at a time. A worker keeps
//! a few pipes. Invariant: a pipe in the pool is empty.

use crate::core::{self, READ, WRITE};
use crate::counts::{Kind, count};
use crate::stream::Stream;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Poll, ready};

/// Bytes that a pipe holds, at most; the kernel may give less to a user with many pipes.
pub const PIPE_BYTES: usize = 256 << 10;
/// Empty pipes that a worker keeps.
const PIPES_MAX: usize = 16;
/// Pipes that a worker lends at a time. Each takes two descriptors, and holds bytes as long as a receiver is slow.
const PIPES_LENT_MAX: usize = 64;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { kept: Vec::new(), lent: 0 }) };
}

struct Pool {
    kept: Vec<Ends>,
    lent: usize,
}

struct Ends {
    out: OwnedFd,
    into: OwnedFd,
}

/// A pipe on loan.
pub struct Pipe {
    /// Present until the pipe is dropped.
    ends: Option<Ends>,
    held: usize,
}

impl Pipe {
    /// An empty pipe; `None` if too many are lent, or no descriptor is left: then the bytes go through memory.
    pub fn lease() -> Option<Pipe> {
        POOL.with_borrow_mut(|pool| {
            if pool.lent >= PIPES_LENT_MAX {
                return None;
            }
            let ends = pool.kept.pop().or_else(|| Ends::new().ok())?;
            pool.lent += 1;
            Some(Pipe { ends: Some(ends), held: 0 })
        })
    }

    /// Bytes that are in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Moves bytes that have arrived at a socket into the pipe, which is empty, at most `max`. 0 is the end. If nothing has
    /// arrived, the current task is woken when something does.
    pub fn poll_take(&mut self, from: &Stream, max: usize) -> Poll<io::Result<usize>> {
        let Some(ends) = &self.ends else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        let moved = poll_splice(from, READ, || {
            count(Kind::Read);
            splice(from, None, &ends.into, None, max, SpliceFlags::NONBLOCK)
        });
        moved.map_ok(|count| {
            self.held += count;
            count
        })
    }

    /// Moves as many bytes as a socket takes now out of the pipe; `true` if none is left. Otherwise the current task is woken
    /// when there is room.
    pub fn try_give_rest(&mut self, to: &Stream) -> io::Result<bool> {
        let Some(ends) = &self.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        while self.held > 0 {
            let moved = poll_splice(to, WRITE, || {
                count(Kind::Write);
                splice(&ends.out, None, to, None, self.held, SpliceFlags::NONBLOCK)
            });
            let Poll::Ready(count) = moved else { return Ok(false) };
            self.held = self.held.saturating_sub(count?);
        }
        Ok(true)
    }

    /// Takes all its bytes out, and appends them.
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let Some(ends) = &self.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        bytes.reserve(self.held);
        while self.held > 0 {
            count(Kind::Read);
            let taken = rustix::io::read(&ends.out, rustix::buffer::spare_capacity(bytes))?;
            if taken == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.held = self.held.saturating_sub(taken);
        }
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            pool.lent = pool.lent.saturating_sub(1);
            if let (Some(ends), 0) = (self.ends.take(), self.held)
                && pool.kept.len() < PIPES_MAX
            {
                pool.kept.push(ends);
            }
        });
    }
}

impl Ends {
    fn new() -> io::Result<Ends> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Without the larger size, the pipe moves fewer bytes at a time.
        let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(Ends { out, into })
    }
}

/// Calls `splice` until it moves bytes or fails, or the socket is not ready.
fn poll_splice(
    socket: &Stream,
    bits: u8,
    mut splice: impl FnMut() -> rustix::io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        match splice() {
            Err(Errno::WOULDBLOCK) => {
                core::with(|core| core.clear_ready(socket.key(), bits));
                ready!(if bits == READ { socket.poll_readable() } else { socket.poll_writable() });
            }
            Err(Errno::INTR) => {}
            done => return Poll::Ready(done.map_err(io::Error::from)),
        }
    }
}

/// Pipes that this worker lends now.
#[cfg(test)]
pub fn lent() -> usize {
    POOL.with_borrow(|pool| pool.lent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::worker::block_on;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_pass_and_the_pipe_comes_back_empty() {
        let ((mut near, from), (to, mut far)) = (pair(), pair());
        near.write_all(b"many bytes").unwrap();
        drop(near);
        block_on(async move {
            let (from, to) = (Stream::from_fd(from.into()).unwrap(), Stream::from_fd(to.into()).unwrap());
            let mut pipe = Pipe::lease().unwrap();
            let moved = |polled: Poll<io::Result<usize>>, pipe: &Pipe| match polled {
                Poll::Ready(moved) => (moved.unwrap(), pipe.held()),
                Poll::Pending => panic!("the bytes are there"),
            };
            assert_eq!(moved(pipe.poll_take(&from, 5), &pipe), (5, 5));
            assert_eq!((pipe.try_give_rest(&to).unwrap(), pipe.held()), (true, 0));
            assert_eq!(moved(pipe.poll_take(&from, PIPE_BYTES), &pipe), (5, 5));
            let mut bytes = b"in memory:".to_vec();
            pipe.read_into(&mut bytes).unwrap();
            assert_eq!((&bytes[..], pipe.held()), (&b"in memory:bytes"[..], 0));
            assert_eq!(moved(pipe.poll_take(&from, PIPE_BYTES), &pipe), (0, 0));
            drop(pipe);
            assert_eq!(POOL.with_borrow(|pool| (pool.kept.len(), pool.lent)), (1, 0));
        })
        .unwrap();
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "many ");
    }

    #[test]
    fn no_more_pipes_are_lent_than_the_bound_allows() {
        POOL.with_borrow_mut(|pool| pool.lent = PIPES_LENT_MAX - 1);
        let last = Pipe::lease();
        assert!(last.is_some() && Pipe::lease().is_none());
        drop(last);
        assert!(Pipe::lease().is_some());
    }
}
