//! A model of the flights: loom runs their code in every order of the threads' steps, with few interruptions.
//!
//! The files are those of the crate itself. loom's types are behind them; the zone and the leader have only the parts
//! that a flight uses.

#![allow(clippy::unwrap_used, dead_code)]

#[path = "../src/store/flight.rs"]
mod flight;
#[path = "../src/store/flights.rs"]
mod flights;
#[path = "../src/store/label.rs"]
mod label;
#[path = "../src/store/waiter.rs"]
mod waiter;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    use std::task::Poll;
    use std::time::Duration;
    use weir_net::Instant;

    /// A time limit that never passes.
    pub(crate) struct Deadline;

    impl Deadline {
        pub(crate) fn new() -> Deadline {
            Deadline
        }

        pub(crate) fn set(&self, _: Duration) {}

        pub(crate) fn set_at(&self, _: Instant) {}

        pub(crate) fn poll_expired(&self) -> Poll<()> {
            Poll::Pending
        }
    }
}

mod object {
    /// A response.
    pub struct Object;
}

mod zone {
    use super::flights::Flights;

    pub struct Zone {
        pub flights: Flights,
    }

    impl Zone {
        pub fn purges(&self) -> u32 {
            0
        }
    }
}

mod leader {
    use super::flight::Flight;
    use super::object::Object;
    use super::zone::Zone;
    use std::sync::Arc;

    pub struct Leader {
        zone: Arc<Zone>,
        flight: Arc<Flight>,
        turn: u32,
        is_done: bool,
    }

    impl Leader {
        pub fn new(zone: Arc<Zone>, flight: Arc<Flight>, turn: u32, _: u32) -> Leader {
            Leader { zone, flight, turn, is_done: false }
        }

        pub fn store(mut self) {
            self.flight.stored(self.turn, &Arc::new(Object));
            self.zone.flights.land(&self.flight, self.turn);
            self.is_done = true;
        }
    }

    impl Drop for Leader {
        fn drop(&mut self) {
            if !self.is_done {
                self.zone.flights.give_up(&self.flight, self.turn);
            }
        }
    }
}

use flights::{Boarded, Flights};
use label::{Place, Variant};
use leader::Leader;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use waiter::{Waited, Waiter};
use weir_net::clock;
use zone::Zone;

const PLACE: Place = Place { hash: 1, variant: Variant::NONE };
const LONG: Duration = Duration::from_secs(3600);

/// Tries every order in which no thread is interrupted more than three times against its will: more take minutes.
fn model(steps: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(steps);
}

fn zone() -> Arc<Zone> {
    Arc::new(Zone { flights: Flights::new(1) })
}

/// The role of a request.
enum Role {
    Leads(Leader),
    Waits(Waiter),
}

fn board(zone: &Arc<Zone>) -> Role {
    match zone.flights.board(b"/a", PLACE, (clock::now(), 0), || None::<()>) {
        Boarded::Leads(flight, turn) => Role::Leads(Leader::new(zone.clone(), flight, turn, 0)),
        Boarded::Waits(flight) => Role::Waits(Waiter::new(zone.clone(), flight)),
        Boarded::Has(()) | Boarded::Passes => unreachable!("nothing is stored, and there is room"),
    }
}

fn leader(zone: &Arc<Zone>) -> Leader {
    match board(zone) {
        Role::Leads(leader) => leader,
        Role::Waits(_) => unreachable!("nobody else leads"),
    }
}

/// A thread that sleeps until it is woken.
#[derive(Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    wait: Condvar,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.wait.notify_one();
    }
}

impl Sleeper {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.wait.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

fn poll(wait: Pin<&mut impl Future<Output = Waited>>, sleeper: &Arc<Sleeper>) -> Poll<Waited> {
    wait.poll(&mut Context::from_waker(&Waker::from(sleeper.clone())))
}

/// Waits until the end. If a wake-up is lost, loom reports a thread that waits without end.
fn wait(waiter: Waiter) -> Waited {
    let sleeper = Arc::new(Sleeper::default());
    let mut wait = pin!(waiter.wait(LONG, LONG));
    loop {
        if let Poll::Ready(waited) = poll(wait.as_mut(), &sleeper) {
            return waited;
        }
        sleeper.sleep();
    }
}

/// Leads for a moment, alone, and gives up.
fn lead(leader: Leader, leaders: &AtomicUsize) {
    assert_eq!(leaders.fetch_add(1, Ordering::Relaxed), 0, "two fetch at once");
    leaders.fetch_sub(1, Ordering::Relaxed);
    drop(leader);
}

/// The leader gives up while others join: each of them leads in its turn, and no flight is left.
#[test]
fn each_waiter_leads_if_all_give_up() {
    model(|| {
        let (zone, leaders) = (zone(), Arc::new(AtomicUsize::new(0)));
        let first = leader(&zone);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (zone, leaders) = (zone.clone(), leaders.clone());
                thread::spawn(move || match board(&zone) {
                    Role::Leads(leader) => lead(leader, &leaders),
                    Role::Waits(waiter) => match wait(waiter) {
                        Waited::Lead(leader) => lead(leader, &leaders),
                        _ => unreachable!("nothing is stored"),
                    },
                })
            })
            .collect();
        lead(first, &leaders);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(zone.flights.count(), 0);
    });
}

/// The leader stores its response while others join: each gets it, or comes so late that it leads.
#[test]
fn a_response_reaches_all_waiters() {
    model(|| {
        let zone = zone();
        let first = leader(&zone);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let zone = zone.clone();
                thread::spawn(move || match board(&zone) {
                    Role::Leads(leader) => leader.store(),
                    Role::Waits(waiter) => assert!(matches!(wait(waiter), Waited::Stored(_))),
                })
            })
            .collect();
        first.store();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(zone.flights.count(), 0);
    });
}

/// A waiter leaves, woken or not, while the leader gives up: the other waiter is woken.
#[test]
fn a_waiter_that_leaves_lets_the_next_one_lead() {
    model(|| {
        let zone = zone();
        let first = leader(&zone);
        let (Role::Waits(leaving), Role::Waits(staying)) = (board(&zone), board(&zone)) else {
            unreachable!("the first one leads")
        };
        let leaving = thread::spawn(move || {
            let mut wait = Box::pin(leaving.wait(LONG, LONG));
            // It may be woken after this look, and never looks again.
            drop(poll(wait.as_mut(), &Arc::new(Sleeper::default())));
        });
        let staying = thread::spawn(move || assert!(matches!(wait(staying), Waited::Lead(_))));
        drop(first);
        leaving.join().unwrap();
        staying.join().unwrap();
        assert_eq!(zone.flights.count(), 0);
    });
}
