//! Passes the bytes of one connection on, in both directions.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_net::{ConnectOptions, Deadline, Stream};

use super::edits::TappedOrigin;
use super::read::{AnswerReader, RequestReader, TapNames};
use super::seen::SeenRequests;

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// Longest wait for a connection to an origin.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// Serves one connection of a server to its end.
pub(super) async fn pass(server: Stream, names: &TapNames, origin: &TappedOrigin, seen: &SeenRequests) {
    let Some(back) = connect(origin).await else {
        // As near as can be to the refusal of the origin itself.
        let _ = server.set_linger_zero();
        return;
    };
    let answers = RefCell::new(AnswerReader::new(names.clone()));
    let mut requests = RequestReader::new(names.clone(), origin.shown.clone());
    let there = Way { from: &server, to: &back }.pass(|bytes, out| {
        let mut found = Vec::new();
        match bytes {
            Some(bytes) => {
                if requests.read(bytes, out, &mut found) {
                    answers.borrow_mut().expect_head();
                }
            }
            None => requests.end(out, &mut found),
        }
        seen.add(found);
    });
    let back_again = Way { from: &back, to: &server }.pass(|bytes, out| match bytes {
        Some(bytes) => answers.borrow_mut().read(bytes, out),
        None => answers.borrow_mut().end(out),
    });
    both(there, back_again).await;
}

async fn connect(origin: &TappedOrigin) -> Option<Stream> {
    let deadline = Deadline::new();
    for address in &origin.to {
        deadline.set(CONNECT_MAX);
        if let Ok(stream) = Stream::connect_by(address, &ConnectOptions::default(), &deadline).await {
            return Some(stream);
        }
    }
    None
}

/// Waits for both directions; a failure of one ends the other.
async fn both(one: impl Future<Output = io::Result<()>>, other: impl Future<Output = io::Result<()>>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    let (mut one_done, mut other_done) = (false, false);
    poll_fn(|context| {
        for is_first in [true, false] {
            let done = if is_first { &mut one_done } else { &mut other_done };
            if *done {
                continue;
            }
            let polled = if is_first { one.as_mut().poll(context) } else { other.as_mut().poll(context) };
            match polled {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => *done = true,
                Poll::Pending => {}
            }
        }
        if one_done && other_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

struct Way<'s> {
    from: &'s Stream,
    to: &'s Stream,
}

impl Way<'_> {
    /// Passes bytes on until the end, which goes on too. `through` gets the bytes, and then `None`.
    async fn pass(self, mut through: impl FnMut(Option<&[u8]>, &mut Vec<u8>)) -> io::Result<()> {
        let forever = Deadline::new();
        let (mut bytes, mut out) = (Vec::with_capacity(READ_BYTES), Vec::new());
        loop {
            bytes.clear();
            let count = match self.from.try_read_vec(&mut bytes, READ_BYTES) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.from.readable(&forever).await?;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    // A reset goes on as a reset.
                    let _ = self.to.set_linger_zero();
                    return Err(error);
                }
                Ok(count) => count,
            };
            out.clear();
            through((count > 0).then_some(&bytes), &mut out);
            self.write(&out).await?;
            if count == 0 {
                return self.to.shutdown_write();
            }
        }
    }

    async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        let forever = Deadline::new();
        while !bytes.is_empty() {
            match self.to.try_write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.to.writable(&forever).await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
