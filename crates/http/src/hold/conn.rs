//! A client connection: its socket, its waits, and the facts that exchanges may read.
//!
//! An idle connection holds no buffer and no future of an exchange: these belong to the worker's seats.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_net::{Address, Deadline, Stream, Transport};

use crate::hold::client::Client;
use crate::hold::frames::Frames;
use crate::hold::patience::{self, SendTimeout};

mod nobody;
pub mod shared;

pub use shared::{Rest, Shared};

/// A subrequest looks this often whether its answer goes on; usually the reader wakes it.
const PIPED_WAIT: Duration = Duration::from_secs(3600);

/// A client connection. Boxed, because each request moves it twice.
pub struct Conn {
    /// The socket, and the state that other parts of the worker may read.
    pub shared: Rc<Shared>,
    /// Bounds each wait for the client.
    pub deadline: Deadline,
    /// The facts about the client that exchanges may read.
    pub client: Rc<Client>,
    /// The address of the socket it was accepted on: used to find its servers again after a reload.
    pub socket: Rc<Address>,
    /// The stream, if this is one of many on its connection.
    pub carried: Option<Rc<dyn Frames>>,
    /// The part of the idle time that remains after the deadline, in milliseconds.
    left_ms: Cell<u32>,
    served: u64,
}

/// Why nothing more can be sent to the client.
#[derive(Debug)]
pub enum Gone {
    /// The client accepted no data for `send_timeout`, or sent none within its timeout.
    TimedOut,
    /// The client closed, or the network failed.
    Closed(io::Error),
    /// The answer cannot be completed: its source failed after the head was sent.
    Cut,
}

impl Conn {
    /// A connection that was just accepted on `socket`.
    pub fn new(shared: Rc<Shared>, client: Rc<Client>, socket: Rc<Address>) -> Conn {
        Conn { shared, deadline: Deadline::new(), client, socket, carried: None, left_ms: Cell::new(0), served: 0 }
    }

    /// One stream of this connection, as a connection of its own. Counts its request.
    pub fn of_stream(&mut self, stream: Rc<dyn Frames>) -> Conn {
        let transport = Transport::Carried(stream.clone());
        let shared = Rc::new(Shared::new(transport, None, self.shared.generation.get()));
        shared.rest.set(Rest::Busy);
        let client = self.client.over(shared.clone());
        let (before, socket) = (self.served, self.socket.clone());
        self.served += 1;
        let (deadline, left_ms) = (Deadline::new(), Cell::new(0));
        Conn { shared, deadline, client, socket, carried: Some(stream), left_ms, served: before }
    }

    /// Follows a client that has moved to another address (RFC 9000 §9): later exchanges see that address.
    pub fn follow(&mut self, remote: SocketAddr) {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        if self.client.remote.tcp() != Some(remote) {
            self.client = self.client.moved(remote.into());
        }
    }

    /// Gives the client `timeout` for its next request; looks after the time `first` whether it has accepted its answer.
    #[inline]
    pub fn await_request(&self, timeout: Duration, first: Duration) {
        self.deadline.set(timeout.min(first));
        self.left_ms.set(millis(timeout.saturating_sub(first)));
    }

    /// Counts a request; returns how many there were with it.
    pub fn count_request(&mut self) -> u64 {
        self.served += 1;
        self.served
    }

    /// Requests served on it.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// The transport of its bytes.
    pub fn stream(&self) -> &Transport {
        &self.shared.stream
    }

    /// Waits for the client's next bytes until the deadline, then for the remaining idle time; `false` when none came.
    /// Resets the connection of a client that does not accept its answer; otherwise the answer would stay in the
    /// kernel.
    pub fn poll_wakes(&self) -> Poll<bool> {
        if self.stream().poll_readable().is_ready() {
            return Poll::Ready(true);
        }
        while self.deadline.poll_expired().is_ready() {
            let left = Duration::from_millis(self.left_ms.take().into());
            if self.is_silent() || left.is_zero() && self.is_stuck() {
                self.stream().reset();
                return Poll::Ready(false);
            }
            if left.is_zero() {
                return Poll::Ready(false);
            }
            self.deadline.set(left);
        }
        Poll::Pending
    }

    /// Gives the client `timeout` to accept some data.
    pub fn await_taking(&self, timeout: SendTimeout) {
        self.deadline.set(timeout.first);
        self.left_ms.set(millis(timeout.rest));
    }

    /// Ready when the client has accepted no data within its timeout.
    pub fn poll_took_nothing(&self) -> Poll<()> {
        while self.deadline.poll_expired().is_ready() {
            let left = Duration::from_millis(self.left_ms.take().into());
            if self.is_piped() {
                // The client's own exchange has the timeout, and other parts may go first.
                self.deadline.set(PIPED_WAIT);
                continue;
            }
            if left.is_zero() || self.is_silent() {
                return Poll::Ready(());
            }
            self.deadline.set(left);
        }
        Poll::Pending
    }

    /// Waits until the client accepts more data.
    pub async fn until_writable(&self, timeout: SendTimeout) -> Result<(), Gone> {
        self.await_taking(timeout);
        poll_fn(|_| match self.stream().poll_writable() {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => self.poll_took_nothing().map(|()| Err(Gone::TimedOut)),
        })
        .await
    }

    /// Whether it is a subrequest's, whose answer becomes a part of another answer.
    fn is_piped(&self) -> bool {
        self.carried.is_none() && matches!(self.stream(), Transport::Carried(_))
    }

    /// Whether the client accepts no data at the moment and has accepted hardly any before.
    fn is_silent(&self) -> bool {
        match &self.carried {
            Some(stream) => stream.is_shut() && stream.sent() < patience::TAKEN_ENOUGH,
            None => {
                let taken = || self.stream().socket().and_then(Stream::taken_bytes);
                self.is_stuck() && taken().is_some_and(|taken| taken < patience::TAKEN_ENOUGH)
            }
        }
    }

    /// Whether the kernel waits longer and longer for the client to accept data.
    fn is_stuck(&self) -> bool {
        self.stream().socket().is_some_and(Stream::is_stuck)
    }

    /// Waits while watching the client; `Some` when it went away meanwhile.
    pub async fn pause(&mut self, pause: Duration) -> Option<Gone> {
        self.deadline.set(pause);
        poll_fn(|_| {
            if self.deadline.poll_expired().is_ready() {
                return Poll::Ready(None);
            }
            match self.poll_gone() {
                Poll::Ready(error) => Poll::Ready(Some(Gone::Closed(error))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Ready when the client has closed its side or the connection broke.
    #[inline]
    pub fn poll_gone(&self) -> Poll<io::Error> {
        let is_malformed = self.carried.as_ref().is_some_and(|stream| stream.is_malformed());
        match self.stream().poll_closed() {
            Poll::Ready(()) if is_malformed => Poll::Ready(io::ErrorKind::InvalidData.into()),
            Poll::Ready(()) => Poll::Ready(io::Error::from(io::ErrorKind::ConnectionAborted)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes all bytes; waits at most `timeout` between two writes.
    pub async fn write(&mut self, mut bytes: &[u8], timeout: SendTimeout) -> Result<(), Gone> {
        while !bytes.is_empty() {
            match self.stream().try_write(bytes) {
                Ok(0) => return Err(Gone::Closed(io::ErrorKind::WriteZero.into())),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) => self.after_failed_write(error, timeout).await?,
            }
        }
        Ok(())
    }

    /// Waits until the client accepts more data, if that is why it accepted none.
    async fn after_failed_write(&mut self, error: io::Error, timeout: SendTimeout) -> Result<(), Gone> {
        match error.kind() {
            io::ErrorKind::WouldBlock => self.until_writable(timeout).await,
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(Gone::Closed(error)),
        }
    }

    /// Writes all pieces, as many in one call as the kernel takes; waits at most `timeout` between two writes.
    pub async fn write_all(&mut self, mut pieces: &mut [IoSlice<'_>], timeout: SendTimeout) -> Result<(), Gone> {
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let written = match &*pieces {
                [only] => self.stream().try_write(only),
                several => self.stream().try_write_vectored(several),
            };
            match written {
                Ok(0) => return Err(Gone::Closed(io::ErrorKind::WriteZero.into())),
                Ok(written) => IoSlice::advance_slices(&mut pieces, written),
                Err(error) => self.after_failed_write(error, timeout).await?,
            }
        }
        Ok(())
    }
}

/// Milliseconds of a timeout; longer than 49 days is 49 days.
fn millis(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX)
}
