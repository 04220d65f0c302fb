//! One fetch for many requests, on real worker threads.

use weir_net::worker::{self, Remote};

use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

const WORKERS: usize = 4;
const LONG: Duration = Duration::from_secs(3600);

struct Crew {
    zone: Arc<Zone>,
    workers: Vec<Remote>,
    tell: Sender<Told>,
    told: Receiver<Told>,
    /// Outcomes from before all requests had joined.
    early: RefCell<VecDeque<Told>>,
}

/// The outcome of one request.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Joined,
    Led,
    Read(Vec<u8>),
    Cut,
    Passed,
    TimedOut,
}

impl Crew {
    fn new() -> Crew {
        let settings = Settings { name: "z".to_owned(), keys_bytes: MIB, memory_bytes: 4 * MIB, directory: None };
        let workers = (0..WORKERS).map(|_| worker::start("crew", None, || {}).unwrap()).collect();
        let (tell, told) = channel();
        Crew { zone: Zone::new(settings), workers, tell, told, early: RefCell::default() }
    }

    /// Lets `count` requests wait for `key`, spread over the workers; a request that leads calls `lead`.
    fn wait(&self, count: usize, timeout: Duration, age: Duration, lead: fn(Leader) -> Told) {
        for number in 0..count {
            let (zone, tell) = (self.zone.clone(), self.tell.clone());
            let sent = self.workers[number % WORKERS].run(move || {
                worker::spawn(async move {
                    let key = zone.key(b"/a");
                    let joined = zone.join(&key, key.place, None, clock::now());
                    tell.send(Told::Joined).unwrap();
                    let outcome = match joined {
                        Joined::Wait(waiter) => match waiter.wait(timeout, age).await {
                            Waited::Filling(object) | Waited::Stored(object) => read(object).await,
                            Waited::Pass => Told::Passed,
                            Waited::TimedOut => Told::TimedOut,
                            Waited::Lead(leader) => lead(leader),
                        },
                        Joined::Lead(leader) => lead(leader),
                        Joined::Stored(object) => read(object).await,
                        Joined::Pass => Told::Passed,
                    };
                    tell.send(outcome).unwrap();
                });
            });
            assert!(sent);
        }
        // The first request may have an outcome before the last one has joined.
        let mut joined = 0;
        while joined < count {
            match self.told() {
                Told::Joined => joined += 1,
                outcome => self.early.borrow_mut().push_back(outcome),
            }
        }
    }

    fn leader(&self) -> Leader {
        let key = self.zone.key(b"/a");
        match self.zone.join(&key, key.place, None, clock::now()) {
            Joined::Lead(leader) => leader,
            _ => panic!("another leads"),
        }
    }

    fn next(&self) -> Told {
        let early = self.early.borrow_mut().pop_front();
        early.unwrap_or_else(|| self.told())
    }

    fn told(&self) -> Told {
        self.told.recv_timeout(Duration::from_secs(60)).expect("somebody was never woken")
    }

    fn expect(&self, expected: Told, count: usize) {
        for _ in 0..count {
            assert_eq!(self.next(), expected);
        }
    }

    /// Checks that every outcome was received, and that no flight is left.
    fn end(self) {
        for worker in &self.workers {
            worker.stop();
        }
        assert!(self.early.borrow().is_empty() && self.told.try_recv().is_err());
        assert_eq!(self.zone.figures().flights, 0);
    }
}

async fn read(object: Arc<Object>) -> Told {
    let (mut body, mut reader) = (Vec::new(), Reader::new(object, 0));
    while let Some(piece) = reader.piece().await {
        let Ok(piece) = piece else { return Told::Cut };
        body.extend_from_slice(piece.bytes().unwrap());
        reader.advance(piece.len());
    }
    Told::Read(body)
}

fn never(_: Leader) -> Told {
    Told::Led
}

fn fill_at_once(leader: Leader) -> Told {
    let mut fill = leader.fill(draft(), clock::now()).unwrap();
    fill.push(b"second try", clock::now()).unwrap();
    fill.finish(clock::now()).unwrap();
    Told::Led
}

#[test]
fn a_thousand_wait_for_one_fetch_and_read_along() {
    let crew = Crew::new();
    let leader = crew.leader();
    crew.wait(1000, LONG, LONG, never);
    let mut fill = leader.fill(draft(), clock::now()).unwrap();
    for _ in 0..10 {
        fill.push(b"0123456789", clock::now()).unwrap();
    }
    fill.finish(clock::now()).unwrap();
    crew.expect(Told::Read(b"0123456789".repeat(10)), 1000);
    crew.end();
}

#[test]
fn who_comes_while_it_is_filled_reads_along_too() {
    let crew = Crew::new();
    let mut fill = crew.leader().fill(draft(), clock::now()).unwrap();
    fill.push(b"first ", clock::now()).unwrap();
    crew.wait(10, LONG, LONG, never);
    fill.push(b"last", clock::now()).unwrap();
    fill.finish(clock::now()).unwrap();
    crew.expect(Told::Read(b"first last".to_vec()), 10);
    crew.end();
}

#[test]
fn when_the_leader_gives_up_exactly_one_leads() {
    let crew = Crew::new();
    let leader = crew.leader();
    crew.wait(100, LONG, LONG, fill_at_once);
    drop(leader);
    let mut led = 0;
    for _ in 0..100 {
        match crew.next() {
            Told::Led => led += 1,
            other => assert_eq!(other, Told::Read(b"second try".to_vec())),
        }
    }
    assert_eq!(led, 1);
    crew.end();
}

#[test]
fn leaders_that_all_give_up_let_everybody_have_a_turn() {
    let crew = Crew::new();
    let leader = crew.leader();
    crew.wait(100, LONG, LONG, never);
    drop(leader);
    crew.expect(Told::Led, 100);
    crew.end();
}

#[test]
fn a_response_that_is_not_shared_lets_all_go_at_once() {
    let crew = Crew::new();
    let leader = crew.leader();
    crew.wait(100, LONG, LONG, never);
    leader.pass();
    crew.expect(Told::Passed, 100);
    crew.end();
}

#[test]
fn a_cut_body_is_cut_for_who_reads_along_and_fetched_anew_by_the_next() {
    let crew = Crew::new();
    let mut fill = crew.leader().fill(draft(), clock::now()).unwrap();
    fill.push(b"half", clock::now()).unwrap();
    crew.wait(10, LONG, LONG, never);
    // They have begun to read once a worker answers a later message.
    let (tell, told) = channel();
    for worker in &crew.workers {
        let tell = tell.clone();
        assert!(worker.run(move || worker::spawn(async move {
            worker::yield_now().await;
            tell.send(()).unwrap();
        })));
    }
    told.iter().take(WORKERS).for_each(drop);
    drop(fill);
    crew.expect(Told::Cut, 10);
    drop(crew.leader());
    crew.end();
}

#[test]
fn who_waits_too_long_goes_on_alone() {
    let crew = Crew::new();
    let leader = crew.leader();
    crew.wait(10, Duration::from_millis(1), LONG, never);
    crew.expect(Told::TimedOut, 10);
    leader.pass();
    crew.end();
}

#[test]
fn a_leader_that_takes_too_long_is_overtaken_and_what_comes_last_is_kept() {
    let crew = Crew::new();
    let mut slow = crew.leader().fill(draft(), clock::now());
    // Only a leader without a response is replaced.
    crew.wait(3, LONG, Duration::from_millis(1), fill_at_once);
    let fill = slow.as_mut().unwrap();
    fill.push(b"slow", clock::now()).unwrap();
    slow.unwrap().finish(clock::now()).unwrap();
    crew.expect(Told::Read(b"slow".to_vec()), 3);
    assert!(crew.zone.purge(Purge::of_key(b"/a"), Force::Hard));

    let slow = crew.leader();
    crew.wait(10, LONG, Duration::from_millis(1), fill_at_once);
    let mut led = 0;
    for _ in 0..10 {
        match crew.next() {
            Told::Led => led += 1,
            other => assert_eq!(other, Told::Read(b"second try".to_vec())),
        }
    }
    assert!(led >= 1);
    let mut fill = slow.fill(draft(), clock::now()).unwrap();
    fill.push(b"too late", clock::now()).unwrap();
    // nginx's test suite requires this: proxy_cache_lock_age.t.
    assert!(fill.finish(clock::now()).is_ok());
    let key = crew.zone.key(b"/a");
    let (_, Found::Object(object)) = crew.zone.find(&key, clock::now(), |_| None) else { panic!("nothing") };
    assert_eq!(body_of(&object), b"too late");
    crew.end();
}

#[test]
fn what_landed_between_looking_and_joining_is_found() {
    let crew = Crew::new();
    let key = crew.zone.key(b"/a");
    let (place, _) = crew.zone.find(&key, clock::now(), |_| None);
    assert_eq!(fill_at_once(crew.leader()), Told::Led);
    let Joined::Stored(object) = crew.zone.join(&key, place, None, clock::now()) else { panic!("fetched twice") };
    // But a request that has seen it and finds it stale fetches.
    assert!(matches!(crew.zone.join(&key, place, Some(object.serial), clock::now()), Joined::Lead(_)));
    crew.end();
}

#[test]
fn workers_that_store_find_and_purge_at_once_agree() {
    let crew = Crew::new();
    let (tell, told) = channel();
    for worker in 0..WORKERS {
        let (zone, tell) = (crew.zone.clone(), tell.clone());
        crew.workers[worker].run(move || {
            for round in 0..2000u32 {
                let text = format!("/{}", (round * 7 + worker as u32) % 50);
                let key = zone.key(text.as_bytes());
                let now = clock::now();
                match zone.find(&key, now, |_| None) {
                    (_, Found::Object(object)) => assert_eq!(body_of(&object), text.as_bytes()),
                    (place, _) => {
                        if let Joined::Lead(leader) = zone.join(&key, place, None, now) {
                            let mut fill = leader.fill(draft(), now).unwrap();
                            fill.push(text.as_bytes(), now).unwrap();
                            let _ = fill.finish(now);
                        }
                    }
                }
                if round % 50 == 0 {
                    zone.purge(Purge::of_key(b"/1*"), Force::Hard);
                    let (_, found) = zone.find(&zone.key(b"/never"), now, |_| None);
                    assert!(matches!(found, Found::Nothing));
                }
            }
            tell.send(()).unwrap();
        });
    }
    drop(tell);
    assert_eq!(told.iter().count(), WORKERS);
    crew.end();
}
