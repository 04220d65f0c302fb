//! Resolves host names outside the workers, because the system's resolver blocks.
//!
//! One helper thread asks the resolver, one question after another. Each name is asked once a run; a failed name is
//! asked again.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use weir_meter::Step;
use weir_net::Deadline;
use weir_net::worker::{self, Remote};

use super::error::Error;

/// Names that one run remembers.
pub const NAMES_MAX: usize = 10_000;

/// The resolved names of one run; its workers share them.
#[derive(Clone, Default)]
pub struct Resolver {
    shared: Arc<Mutex<Shared>>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Resolver").field("names", &lock(&self.shared).known.len()).finish()
    }
}

#[derive(Default)]
struct Shared {
    known: HashMap<(String, u16), Arc<[SocketAddr]>>,
    thread: Option<Thread>,
}

/// The helper thread; it ends with the last resolver handle.
struct Thread(Remote);

impl Drop for Thread {
    fn drop(&mut self) {
        self.0.stop();
    }
}

type Found = Result<Arc<[SocketAddr]>, Error>;

/// A current question: the answer, and the tasks to wake.
#[derive(Default)]
struct Question {
    found: Option<Found>,
    waker: Option<Waker>,
}

impl Resolver {
    /// The addresses of a name, IPv4 first: `localhost` may name ::1 first while the server listens on
    /// 127.0.0.1 only. Never empty.
    pub async fn resolve(&self, host: &str, port: u16, deadline: &Deadline) -> Found {
        let question = Arc::new(Mutex::new(Question::default()));
        {
            let mut shared = lock(&self.shared);
            if let Some(found) = shared.known.get(&(host.to_owned(), port)) {
                return Ok(found.clone());
            }
            if shared.thread.is_none() {
                let thread = worker::start("resolver", None, || {});
                shared.thread = Some(Thread(thread.map_err(|error| Error::io(Step::Resolve, &error))?));
            }
            let (name, tell) = (host.to_owned(), question.clone());
            let asked = shared.thread.as_ref().is_some_and(|thread| {
                thread.0.run(move || {
                    let found = ask(&name, port);
                    let mut question = lock(&tell);
                    question.found = Some(found);
                    if let Some(waker) = question.waker.take() {
                        waker.wake();
                    }
                })
            });
            if !asked {
                return Err(Error::named(Step::Resolve, "EAI_AGAIN"));
            }
        }
        let found = poll_fn(|context| {
            let mut question = lock(&question);
            if let Some(found) = question.found.take() {
                return Poll::Ready(found);
            }
            question.waker = Some(context.waker().clone());
            deadline.poll_expired().map(|()| Err(Error::timed_out(Step::Resolve)))
        })
        .await?;
        let mut shared = lock(&self.shared);
        if shared.known.len() < NAMES_MAX {
            shared.known.insert((host.to_owned(), port), found.clone());
        }
        Ok(found)
    }
}

/// Asks the system; blocks.
fn ask(host: &str, port: u16) -> Found {
    let found = (host, port).to_socket_addrs().map_err(|error| {
        // The standard library hides getaddrinfo's error code and shows only the text.
        let again = error.to_string().contains("Temporary failure");
        Error::named(Step::Resolve, if again { "EAI_AGAIN" } else { "ENOTFOUND" })
    })?;
    let mut all: Vec<SocketAddr> = found.collect();
    all.sort_by_key(SocketAddr::is_ipv6);
    all.dedup();
    if all.is_empty() { Err(Error::named(Step::Resolve, "ENOTFOUND")) } else { Ok(all.into()) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The lock cannot be poisoned by a panic: no code under it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_found_off_the_worker_or_named() {
        let (good, bad) = worker::block_on(async {
            let resolver = Resolver::default();
            let deadline = Deadline::new();
            let good = resolver.resolve("localhost", 81, &deadline).await;
            assert!(resolver.resolve("localhost", 81, &deadline).await.is_ok());
            (good, resolver.resolve("no-such-name.invalid", 81, &deadline).await)
        })
        .unwrap();
        assert!(good.unwrap().iter().all(|address| address.port() == 81 && address.ip().is_loopback()));
        let bad = bad.unwrap_err();
        assert_eq!(bad.step, Step::Resolve);
        assert!(["ENOTFOUND", "EAI_AGAIN"].contains(&&*bad.name), "{}", bad.name);
    }
}
