//! OCSP queries of a worker that are in progress: exchanges with the same question wait for the same answer.
//!
//! One query is in progress at a time for each certificate and server; if the asker leaves, the next waiter asks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use weir_net::tls::ocsp::Status;
use weir_net::worker::Task;

/// The result of a query: a status, or why there is none.
pub type Heard = Result<Status, String>;

/// The server that asks, as an address that is unique while a task waits there, and the certificate.
type Key = (usize, Vec<u8>);

/// The queries in progress: at most one for each handshake in progress.
#[derive(Default)]
pub struct Flights(RefCell<HashMap<Key, Rc<Flight>>>);

#[derive(Default)]
struct Flight {
    heard: RefCell<Option<Heard>>,
    is_over: Cell<bool>,
    waiting: RefCell<Vec<Task>>,
}

impl Flights {
    /// The answer to a question: from a query in progress, or from `ask`.
    pub async fn hear<A: Future<Output = Heard>>(&self, key: Key, ask: impl FnOnce() -> A) -> Heard {
        loop {
            let Some(flight) = self.0.borrow().get(&key).cloned() else {
                let own = Own::of(self, key);
                let heard = ask().await;
                own.flight.heard.replace(Some(heard.clone()));
                return heard;
            };
            flight.over().await;
            if let Some(heard) = flight.heard.borrow().clone() {
                return heard;
            }
        }
    }
}

impl Flight {
    async fn over(&self) {
        poll_fn(|_| {
            if self.is_over.get() {
                return Poll::Ready(());
            }
            let task = Task::current();
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.contains(&task) {
                waiting.push(task);
            }
            Poll::Pending
        })
        .await;
    }
}

/// The place of the asker; when it is dropped, the waiters continue, with an answer or without.
struct Own<'f> {
    flights: &'f Flights,
    key: Key,
    flight: Rc<Flight>,
}

impl<'f> Own<'f> {
    fn of(flights: &'f Flights, key: Key) -> Own<'f> {
        let flight = Rc::<Flight>::default();
        flights.0.borrow_mut().insert(key.clone(), flight.clone());
        Own { flights, key, flight }
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        self.flights.0.borrow_mut().remove(&self.key);
        self.flight.is_over.set(true);
        self.flight.waiting.take().into_iter().for_each(Task::wake);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_net::worker;

    /// Five tasks ask for one certificate and one for another; the first leaves before its answer if `leaves`.
    fn asked(leaves: bool) -> (usize, usize) {
        worker::block_on(async move {
            let (flights, asked, heard) = (Rc::<Flights>::default(), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            for number in 0..6u8 {
                let (flights, asked, heard) = (flights.clone(), asked.clone(), heard.clone());
                worker::spawn(async move {
                    let mut left = (leaves && number == 0).then_some(3);
                    let ask = || async {
                        asked.set(asked.get() + 1);
                        for _ in 0..10 {
                            worker::yield_now().await;
                        }
                        Ok(Status::Good)
                    };
                    let mut hearing = Box::pin(flights.hear((1, vec![number / 5]), ask));
                    let outcome = poll_fn(|context| match hearing.as_mut().poll(context) {
                        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                        Poll::Pending => match &mut left {
                            Some(0) => Poll::Ready(None),
                            Some(turns) => {
                                *turns -= 1;
                                Poll::Pending
                            }
                            None => Poll::Pending,
                        },
                    })
                    .await;
                    heard.set(heard.get() + usize::from(outcome == Some(Ok(Status::Good))));
                });
            }
            for _ in 0..60 {
                worker::yield_now().await;
            }
            assert!(flights.0.borrow().is_empty());
            (asked.get(), heard.get())
        })
        .unwrap()
    }

    #[test]
    fn one_asks_for_all_who_want_to_know_the_same() {
        assert_eq!(asked(false), (2, 6));
    }

    #[test]
    fn when_it_leaves_the_next_asks() {
        assert_eq!(asked(true), (3, 5));
    }
}
