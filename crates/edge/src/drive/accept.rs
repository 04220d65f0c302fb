//! Accepts connections on a socket until it is stopped.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use weir_http::hold::counters;
use weir_http::hold::worker::{ROOMS_MAX, Worker};
use weir_net::log::{self, Level};
use weir_net::{Address, Listener, Listening, Stream, TlsStream, Transport, timer};

use super::serve;

/// How long accepting pauses when the process is out of files (nginx: 500 ms).
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Connections that a dismissed worker still accepts, at most: the default length of a listen queue.
const REST_MAX: usize = weir_net::listener::BACKLOG_DEFAULT as usize;

/// Ends an accepting task from outside.
#[derive(Default)]
pub struct Stop {
    is_set: Cell<bool>,
    others_accept: Cell<bool>,
    waiting: Cell<Option<Waker>>,
}

impl Stop {
    /// Ends the task. If other workers go on accepting from the same socket, the task first takes the waiting
    /// connections: the kernel may have woken only this worker for them.
    pub fn set(&self, others_accept: bool) {
        self.is_set.set(true);
        self.others_accept.set(others_accept);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// The next connection; `None` after the stop.
    async fn or(&self, listener: &Listener) -> Option<io::Result<(Stream, Address)>> {
        poll_fn(|context| {
            if self.is_set.get() {
                return Poll::Ready(None);
            }
            self.waiting.set(Some(context.waker().clone()));
            loop {
                match listener.try_accept() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if listener.poll_acceptable().is_pending() {
                            return Poll::Pending;
                        }
                    }
                    accepted => return Poll::Ready(Some(accepted)),
                }
            }
        })
        .await
    }
}

/// Accepts on one socket until it is stopped.
pub async fn accept(worker: Rc<Worker>, listening: Listening, socket: Rc<Address>, stop: Rc<Stop>) {
    let listener = match Listener::new(&listening) {
        Ok(listener) => listener,
        Err(error) => {
            log::global(Level::Emerg, format_args!("listening socket could not be registered {}", log::Os(&error)));
            return;
        }
    };
    // Other workers of this socket wait through this copy; it closes when the last of them drops it.
    drop(listening);
    let mut rooms_made = 0;
    loop {
        match stop.or(&listener).await {
            None if stop.others_accept.get() => return accept_rest(&worker, &listener, &socket),
            None => return,
            Some(Ok((stream, remote))) => {
                rooms_made = 0;
                accepted(&worker, stream, remote, &socket);
            }
            Some(Err(error)) if weir_net::is_out_of_files(&error) && rooms_made < ROOMS_MAX => {
                rooms_made += 1;
                worker.make_descriptors().await;
            }
            Some(Err(error)) => {
                worker.board.accept_failed.one();
                log::global(Level::Crit, format_args!("accept4() failed {}", log::Os(&error)));
                timer::sleep(ACCEPT_PAUSE).await;
                rooms_made = 0;
            }
        }
    }
}

/// Accepts the connections that already wait in a queue; other workers serve the queue afterwards.
fn accept_rest(worker: &Rc<Worker>, listener: &Listener, socket: &Rc<Address>) {
    listener.leave();
    for _ in 0..REST_MAX {
        let Ok((stream, remote)) = listener.try_accept() else { return };
        accepted(worker, stream, remote, socket);
    }
}

fn accepted(worker: &Rc<Worker>, stream: Stream, remote: Address, socket: &Rc<Address>) {
    counters::add(&worker.counters().accepted, 1);
    let Some(place) = worker.take_place_of_client() else { return };
    let generation = worker.lane(|| remote.tcp().map(|address| address.ip()));
    let Some(listen) = generation.listen_of(socket, Some(&stream)) else {
        return weir_stream::drive::accepted(worker, stream, remote, socket, place, generation, serve::passed);
    };
    let is_secure = generation.conf.listens.get(listen).is_some_and(|listen| listen.ssl);
    let stream = if is_secure { TlsStream::accepted(stream).into() } else { Transport::from(stream) };
    let entry = worker.enlist(stream, place, &generation);
    serve::serve(entry, generation, remote, socket.clone(), listen);
}
