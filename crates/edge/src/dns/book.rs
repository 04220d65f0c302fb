//! What a worker knows of names, and what it is asking: pure but for the wakers of those who wait.
//!
//! Invariant: at most `NAMES_MAX` answers and `FLIGHTS_MAX` questions; a question that is on its way is not asked again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::Instant;
use weir_net::slots::{Key, Slots};
use weir_wire::dns::{Code, Kind, Name, Reply};

use super::Trouble;

/// Answers kept by one worker for one resolver. Clients may choose the names (`proxy_pass http://$host`).
pub const NAMES_MAX: usize = 4096;

/// Questions on their way at a time.
pub const FLIGHTS_MAX: usize = 1024;

/// How long it is remembered that there is no such name, or that it has no address: long enough for a burst of
/// exchanges to ask once, too short to hide a name that appears (nginx: not at all).
pub const ABSENT: Duration = Duration::from_secs(1);

/// What is known of all names.
#[derive(Default)]
pub struct Book {
    entries: HashMap<(Name, Kind), Entry>,
    flights: usize,
}

enum Entry {
    Known(Rc<Reply>, Instant),
    Flying(Rc<Flight>),
}

/// What the book has to say.
pub enum Found {
    /// The answer, and how long it holds.
    Known(Rc<Reply>, Instant),
    /// Somebody asks already.
    Flying(Rc<Flight>),
    /// Whoever is given this asks.
    New(Rc<Flight>),
    /// No more can be asked now.
    Full,
}

impl Book {
    /// What is known of a name at this moment.
    pub fn find(&mut self, name: &Name, kind: Kind, now: Instant) -> Found {
        let key = (name.clone(), kind);
        match self.entries.get(&key) {
            Some(Entry::Known(reply, until)) if now < *until => return Found::Known(reply.clone(), *until),
            Some(Entry::Flying(flight)) => return Found::Flying(flight.clone()),
            Some(Entry::Known(..)) | None => {}
        }
        if self.flights >= FLIGHTS_MAX {
            return Found::Full;
        }
        self.make_room(now);
        let flight =
            Rc::new(Flight { name: name.clone(), kind, outcome: RefCell::default(), waiting: RefCell::default() });
        self.flights += 1;
        self.entries.insert(key, Entry::Flying(flight.clone()));
        Found::New(flight)
    }

    /// Notes what a flight came to, and tells those who wait.
    pub fn land(
        &mut self,
        flight: &Flight,
        outcome: Result<Rc<Reply>, Trouble>,
        valid: Option<Duration>,
        now: Instant,
    ) {
        let key = (flight.name.clone(), flight.kind);
        self.flights = self.flights.saturating_sub(1);
        self.entries.remove(&key);
        let landed = outcome.map(|reply| {
            let until = now + holds(&reply, valid);
            if now < until && (reply.code == Code::NO_ERROR || reply.code == Code::NAME_ERROR) {
                self.entries.insert(key, Entry::Known(reply.clone(), until));
            }
            (reply, until)
        });
        flight.outcome.replace(Some(landed));
        for waker in flight.waiting.borrow().iter() {
            waker.wake_by_ref();
        }
    }

    /// Forgets what is over, and if that is nothing, some answer.
    fn make_room(&mut self, now: Instant) {
        if self.entries.len() < NAMES_MAX + FLIGHTS_MAX {
            return;
        }
        self.entries.retain(|_, entry| match entry {
            Entry::Known(_, until) => now < *until,
            Entry::Flying(_) => true,
        });
        if self.entries.len() >= NAMES_MAX + FLIGHTS_MAX {
            // The map's order is nobody's choice. A quarter at a time, so that the search is not made for each.
            let known = |(key, entry): (&(Name, Kind), &Entry)| matches!(entry, Entry::Known(..)).then(|| key.clone());
            let some: Vec<_> = self.entries.iter().filter_map(known).take(NAMES_MAX / 4).collect();
            for key in some {
                self.entries.remove(&key);
            }
        }
    }
}

/// How long an answer holds.
fn holds(reply: &Reply, valid: Option<Duration>) -> Duration {
    let is_empty = reply.addresses.is_empty() && reply.services.is_empty() && reply.alias.is_none();
    match valid {
        _ if reply.code != Code::NO_ERROR || is_empty => ABSENT,
        Some(valid) => valid,
        None => Duration::from_secs(u64::from(reply.ttl_s)),
    }
}

/// What a flight came to, and how long that holds.
type Landed = Result<(Rc<Reply>, Instant), Trouble>;

/// A question on its way.
pub struct Flight {
    /// The name.
    pub name: Name,
    /// What is asked.
    pub kind: Kind,
    outcome: RefCell<Option<Landed>>,
    waiting: RefCell<Slots<Waker>>,
}

impl Flight {
    /// Whether anybody but the book and the task that asks still holds it.
    pub fn is_wanted(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) > 2
    }
}

/// One exchange's wait for a flight.
pub struct Wait {
    flight: Rc<Flight>,
    key: Option<Key>,
}

impl Wait {
    /// Before it is polled.
    pub fn new(flight: Rc<Flight>) -> Wait {
        Wait { flight, key: None }
    }

    /// Ready once it has landed.
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

    fn name(text: &str) -> Name {
        Name::of_text(text).unwrap()
    }

    fn reply(code: Code, ttl_s: u32, addresses: usize) -> Rc<Reply> {
        let addresses = (0..addresses).map(|n| std::net::IpAddr::from([10, 0, 0, n as u8])).collect();
        Rc::new(Reply { code, ttl_s, alias: None, addresses, services: Vec::new() })
    }

    fn ask(book: &mut Book, text: &str, now: Instant) -> Rc<Flight> {
        match book.find(&name(text), Kind::A, now) {
            Found::New(flight) => flight,
            _ => panic!("{text} is known or on its way"),
        }
    }

    fn knows(book: &mut Book, text: &str, now: Instant) -> bool {
        matches!(book.find(&name(text), Kind::A, now), Found::Known(..))
    }

    #[test]
    fn a_name_is_asked_once_and_kept_for_its_time() {
        let (mut book, start) = (Book::default(), weir_net::clock::now());
        let flight = ask(&mut book, "a.b", start);
        assert!(matches!(book.find(&name("A.b"), Kind::A, start), Found::Flying(_)));
        assert!(matches!(book.find(&name("a.b"), Kind::Aaaa, start), Found::New(_)));
        book.land(&flight, Ok(reply(Code::NO_ERROR, 5, 1)), None, start);
        assert!(knows(&mut book, "a.b", start + Duration::from_millis(4999)));
        ask(&mut book, "a.b", start + Duration::from_secs(5));
    }

    #[test]
    fn valid_overrides_what_the_answer_says() {
        let (mut book, start) = (Book::default(), weir_net::clock::now());
        let flight = ask(&mut book, "a.b", start);
        book.land(&flight, Ok(reply(Code::NO_ERROR, 500, 1)), Some(Duration::from_secs(2)), start);
        assert!(knows(&mut book, "a.b", start + Duration::from_secs(1)));
        ask(&mut book, "a.b", start + Duration::from_secs(2));
    }

    #[test]
    fn absence_is_kept_shortly_and_trouble_not_at_all() {
        let (mut book, start) = (Book::default(), weir_net::clock::now());
        for (code, is_kept) in [(Code::NAME_ERROR, true), (Code::NO_ERROR, true), (Code::SERVER_FAILURE, false)] {
            let flight = ask(&mut book, "a.b", start);
            book.land(&flight, Ok(reply(code, 500, 0)), Some(Duration::from_secs(60)), start);
            let known = matches!(book.entries.get(&(name("a.b"), Kind::A)), Some(Entry::Known(..)));
            assert_eq!(known, is_kept, "{code:?}");
            let later = ask(&mut book, "a.b", start + ABSENT);
            book.land(&later, Err(Trouble::TimedOut), None, start + ABSENT);
            assert!(book.entries.is_empty());
        }
        assert_eq!(book.flights, 0);
    }

    #[test]
    fn both_bounds_hold() {
        let (mut book, now) = (Book::default(), weir_net::clock::now());
        let flights: Vec<_> = (0..FLIGHTS_MAX).map(|n| ask(&mut book, &format!("n{n}"), now)).collect();
        assert!(matches!(book.find(&name("one.more"), Kind::A, now), Found::Full));
        for flight in &flights {
            book.land(flight, Ok(reply(Code::NO_ERROR, 60, 1)), None, now);
        }
        for n in 0..2 * NAMES_MAX {
            let flight = ask(&mut book, &format!("m{n}"), now);
            book.land(&flight, Ok(reply(Code::NO_ERROR, 60, 1)), None, now);
            assert!(book.entries.len() <= NAMES_MAX + FLIGHTS_MAX);
        }
    }
}
