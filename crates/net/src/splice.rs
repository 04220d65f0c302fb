//! Moves bytes from one socket to another inside the kernel, through a pipe: no copy to memory of the process.
//!
//! It costs two calls instead of two calls and two copies, so it pays off only for many bytes at a time. A worker keeps
//! a few pipes. Invariant: a pipe in the pool is empty.

use crate::core::{self, READ, WRITE};
use crate::counts::{Kind, count};
use crate::stream::Stream;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that a pipe holds, at most; the kernel may give less to a user with many pipes.
pub const PIPE_BYTES: usize = 256 << 10;
/// Empty pipes that a worker keeps.
const PIPES_MAX: usize = 16;

thread_local! {
    static POOL: RefCell<Vec<Ends>> = const { RefCell::new(Vec::new()) };
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
    /// An empty pipe.
    pub fn lease() -> io::Result<Pipe> {
        if let Some(ends) = POOL.with_borrow_mut(Vec::pop) {
            return Ok(Pipe { ends: Some(ends), held: 0 });
        }
        let (out, into) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Without the larger size, the pipe moves fewer bytes at a time.
        let _ = rustix::pipe::fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(Pipe { ends: Some(Ends { out, into }), held: 0 })
    }

    /// Bytes that are in it.
    pub fn held(&self) -> usize {
        self.held
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
        if let (Some(ends), 0) = (self.ends.take(), self.held) {
            let _ = POOL.try_with(|pool| {
                let mut pool = pool.borrow_mut();
                if pool.len() < PIPES_MAX {
                    pool.push(ends);
                }
            });
        }
    }
}

impl Stream {
    /// Moves bytes that have arrived into an empty pipe, at most `max`. 0 is the end; `WouldBlock` means wait.
    pub fn try_splice_into(&self, pipe: &mut Pipe, max: usize) -> io::Result<usize> {
        let Some(ends) = &pipe.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        count(Kind::Read);
        match rustix::pipe::splice(self, None, &ends.into, None, max, SpliceFlags::NONBLOCK) {
            Ok(moved) => {
                pipe.held += moved;
                Ok(moved)
            }
            Err(error) => Err(self.blocked(error, READ)),
        }
    }

    /// Moves bytes out of a pipe that is not empty. `WouldBlock` means wait.
    pub fn try_splice_from(&self, pipe: &mut Pipe) -> io::Result<usize> {
        let Some(ends) = &pipe.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        count(Kind::Write);
        match rustix::pipe::splice(&ends.out, None, self, None, pipe.held, SpliceFlags::NONBLOCK) {
            Ok(moved) => {
                pipe.held = pipe.held.saturating_sub(moved);
                Ok(moved)
            }
            Err(error) => Err(self.blocked(error, WRITE)),
        }
    }

    fn blocked(&self, error: Errno, bits: u8) -> io::Error {
        if error == Errno::WOULDBLOCK {
            core::with(|core| core.clear_ready(self.key(), bits));
        }
        error.into()
    }
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
            assert_eq!((from.try_splice_into(&mut pipe, 5).unwrap(), pipe.held()), (5, 5));
            assert_eq!((to.try_splice_from(&mut pipe).unwrap(), pipe.held()), (5, 0));
            assert_eq!(from.try_splice_into(&mut pipe, PIPE_BYTES).unwrap(), 5);
            let mut bytes = b"in memory:".to_vec();
            pipe.read_into(&mut bytes).unwrap();
            assert_eq!((&bytes[..], pipe.held()), (&b"in memory:bytes"[..], 0));
            assert_eq!(from.try_splice_into(&mut pipe, PIPE_BYTES).unwrap(), 0);
            drop(pipe);
            assert_eq!(POOL.with_borrow(Vec::len), 1);
        })
        .unwrap();
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "many ");
    }
}
