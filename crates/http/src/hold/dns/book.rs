//! The known answers, and the questions on their way. Pure, except for the wakers of waiting tasks.
//!
//! All workers share the answers. A question on its way belongs to one worker, which does not ask it again meanwhile.
//! Invariant: at most `NAMES_MAX` answers and `FLIGHTS_MAX` questions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::Instant;
use weir_net::slots::{SlotKey, Slots};
use weir_wire::dns::{Code, Kind, Name, Reply};

use super::trouble::Trouble;

/// Answers kept for one resolver. Clients may choose the names (`proxy_pass http://$host`).
pub const NAMES_MAX: usize = 4096;

/// Questions of one worker on their way at a time, at most.
pub const FLIGHTS_MAX: usize = 1024;

/// How long weir remembers that a name does not exist, or that it has no address. Long enough that a burst of
/// exchanges asks once; short enough that a new name is found soon (nginx: not at all).
pub const ABSENT: Duration = Duration::from_secs(1);

/// The known answers for all names.
#[derive(Default)]
pub struct Answers(HashMap<(Name, Kind), (Arc<Reply>, Instant)>);

impl Answers {
    /// The known answer for a name at this moment, and until when it is valid.
    pub fn find(&self, key: &(Name, Kind), now: Instant) -> Option<(Arc<Reply>, Instant)> {
        self.0.get(key).filter(|(_, until)| now < *until).cloned()
    }

    /// Keeps an answer for its time, and returns when that ends; errors other than "no such name" are not kept.
    pub fn keep(&mut self, key: (Name, Kind), reply: &Arc<Reply>, valid: Option<Duration>, now: Instant) -> Instant {
        let until = now + holds(reply, valid);
        if now < until && (reply.code == Code::NO_ERROR || reply.code == Code::NAME_ERROR) {
            self.make_room(now);
            self.0.insert(key, (reply.clone(), until));
        }
        until
    }

    /// Extends the validity of an answer until then.
    pub fn hold(&mut self, key: (Name, Kind), reply: &Arc<Reply>, until: Option<Instant>) {
        if let (Some(known), Some(until)) = (self.0.get_mut(&key), until) {
            *known = (reply.clone(), known.1.max(until));
        }
    }

    /// Forgets expired answers; if none has expired, forgets some others.
    fn make_room(&mut self, now: Instant) {
        if self.0.len() < NAMES_MAX {
            return;
        }
        self.0.retain(|_, (_, until)| now < *until);
        if self.0.len() >= NAMES_MAX {
            // The order of the map is random. A quarter is removed at a time, so that not every new answer needs this
            // search.
            let some: Vec<_> = self.0.keys().take(NAMES_MAX / 4).cloned().collect();
            for key in some {
                self.0.remove(&key);
            }
        }
    }
}

/// The questions of a worker.
#[derive(Default)]
pub struct Flights(HashMap<(Name, Kind), Rc<Flight>>);

/// The state of a name.
pub enum FoundAnswer {
    /// The answer, and until when it is valid.
    Known(Arc<Reply>, Instant),
    /// The question is already on its way.
    Flying(Rc<Flight>),
    /// A new question: the receiver asks it.
    New(Rc<Flight>),
    /// No more questions may be sent at the moment.
    Full,
}

impl Flights {
    /// The flight for a name.
    pub fn join(&mut self, key: (Name, Kind)) -> FoundAnswer {
        if let Some(flight) = self.0.get(&key) {
            return FoundAnswer::Flying(flight.clone());
        }
        if self.0.len() >= FLIGHTS_MAX {
            return FoundAnswer::Full;
        }
        let flight = Rc::new(Flight { key: key.clone(), outcome: RefCell::default(), waiting: RefCell::default() });
        self.0.insert(key, flight.clone());
        FoundAnswer::New(flight)
    }

    /// Ends a flight: passes its result to the waiting tasks.
    pub fn land(&mut self, flight: &Flight, landed: Landed) {
        self.0.remove(&flight.key);
        flight.outcome.replace(Some(landed));
        for waker in flight.waiting.borrow().iter() {
            waker.wake_by_ref();
        }
    }
}

/// How long an answer is valid.
fn holds(reply: &Reply, valid: Option<Duration>) -> Duration {
    let is_empty = reply.addresses.is_empty() && reply.services.is_empty() && reply.alias.is_none();
    match valid {
        _ if reply.code != Code::NO_ERROR || is_empty => ABSENT,
        Some(valid) => valid,
        None => Duration::from_secs(u64::from(reply.ttl_s)),
    }
}

/// The result of a flight, and until when it is valid.
pub type Landed = Result<(Arc<Reply>, Instant), Trouble>;

/// A question on its way.
pub struct Flight {
    /// The name, and the kind asked for.
    pub key: (Name, Kind),
    outcome: RefCell<Option<Landed>>,
    waiting: RefCell<Slots<Waker>>,
}

impl Flight {
    /// Whether anything besides the book and the asking task still holds it.
    pub fn is_wanted(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) > 2
    }
}

/// One exchange's wait for a flight.
pub struct Wait {
    flight: Rc<Flight>,
    key: Option<SlotKey>,
}

impl Wait {
    /// A wait before its first poll.
    pub fn new(flight: Rc<Flight>) -> Wait {
        Wait { flight, key: None }
    }

    /// Ready once the flight has landed.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Landed> {
        if let Some(landed) = &*self.flight.outcome.borrow() {
            return Poll::Ready(landed.clone());
        }
        let mut waiting = self.flight.waiting.borrow_mut();
        if let Some(key) = self.key {
            waiting.remove(key);
        }
        self.key = Some(waiting.insert(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.flight.waiting.borrow_mut().remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn key(text: &str) -> (Name, Kind) {
        (Name::of_text(text).unwrap(), Kind::A)
    }

    fn reply(code: Code, ttl_s: u32, addresses: usize) -> Arc<Reply> {
        let addresses = (0..addresses).map(|n| std::net::IpAddr::from([10, 0, 0, n as u8])).collect();
        Arc::new(Reply { code, ttl_s, alias: None, addresses, services: Vec::new() })
    }

    #[test]
    fn a_name_is_asked_once_at_a_time() {
        let mut flights = Flights::default();
        let FoundAnswer::New(flight) = flights.join(key("a.b")) else { panic!("nobody asks yet") };
        assert!(matches!(flights.join(key("A.b")), FoundAnswer::Flying(_)));
        assert!(matches!(flights.join((key("a.b").0, Kind::Aaaa)), FoundAnswer::New(_)));
        flights.land(&flight, Err(Trouble::TimedOut));
        assert!(matches!(flights.join(key("a.b")), FoundAnswer::New(_)));
        for n in 2..FLIGHTS_MAX {
            assert!(matches!(flights.join(key(&format!("n{n}"))), FoundAnswer::New(_)));
        }
        assert!(matches!(flights.join(key("one.more")), FoundAnswer::Full));
    }

    #[test]
    fn answers_hold_as_long_as_they_or_the_resolver_say() {
        let start = weir_net::clock::now();
        for (ttl_s, valid, holds) in [(5, None, 5), (500, Some(2), 2), (0, Some(2), 2), (0, None, 0)] {
            let mut answers = Answers::default();
            let until =
                answers.keep(key("a.b"), &reply(Code::NO_ERROR, ttl_s, 1), valid.map(Duration::from_secs), start);
            assert_eq!(until, start + Duration::from_secs(holds));
            assert_eq!(answers.find(&key("a.b"), start).is_some(), holds > 0);
            assert!(answers.find(&key("a.b"), until).is_none());
        }
    }

    #[test]
    fn absence_is_kept_shortly_and_trouble_not_at_all() {
        let start = weir_net::clock::now();
        for (code, is_kept) in [(Code::NAME_ERROR, true), (Code::NO_ERROR, true), (Code::SERVER_FAILURE, false)] {
            let mut answers = Answers::default();
            let until = answers.keep(key("a.b"), &reply(code, 500, 0), Some(Duration::from_secs(60)), start);
            assert_eq!(until, start + ABSENT);
            assert_eq!(answers.find(&key("a.b"), start).is_some(), is_kept, "{code:?}");
        }
    }

    #[test]
    fn absence_is_held_as_long_as_told() {
        let (mut answers, start) = (Answers::default(), weir_net::clock::now());
        let none = reply(Code::NO_ERROR, 0, 0);
        answers.keep(key("a.b"), &none, None, start);
        answers.hold(key("a.b"), &none, Some(start + Duration::from_secs(9)));
        assert!(answers.find(&key("a.b"), start + Duration::from_secs(8)).is_some());
        answers.hold(key("other"), &none, Some(start + Duration::from_secs(9)));
        assert!(answers.find(&key("other"), start).is_none());
    }

    #[test]
    fn there_are_never_more_answers_than_allowed() {
        let (mut answers, now) = (Answers::default(), weir_net::clock::now());
        for n in 0..2 * NAMES_MAX {
            answers.keep(key(&format!("n{n}")), &reply(Code::NO_ERROR, 60, 1), None, now);
            assert!(answers.0.len() <= NAMES_MAX);
        }
        assert!(answers.find(&key(&format!("n{}", 2 * NAMES_MAX - 1)), now).is_some());
    }
}
