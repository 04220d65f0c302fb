//! Trials of configurations: starts a server for each, asks a request, and looks at all that the server shows.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_net::{Instant, clock, worker};

use super::smallest::Trial;
use crate::ask::Asker;
use crate::compare::{self, Rules};
use crate::difference::{DifferenceKind, Port};
use crate::doors::{self, Door};
use crate::judge::JudgeRules;
use crate::noise::RouteMasks;
use crate::request::{ARMS, Arm, Observed, SwapRequest};
use crate::side::{RunningDoor, ServerWish, Side, SideConf, StartedServer, partner};
use crate::watch::ServerWatch;

/// Most answers that are remembered.
const KNOWN_MAX: usize = 64;
/// Requests a second of one trial.
const RATE: f64 = 1000.0;

/// The difference that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedDifference {
    /// Its part.
    pub part: String,
    /// Its kind.
    pub kind: DifferenceKind,
    /// B's value. `None`: it is not the same each time.
    pub b: Option<String>,
}

/// All that a server showed for the last request, and the port at which it was asked.
pub type Shown = (Observed, Port);

/// The sides, and the bound of all trials.
pub struct Stage<'s> {
    /// A.
    pub a: &'s Side,
    /// B.
    pub b: &'s Side,
    doors: Vec<Door>,
    rules: JudgeRules,
    stop: &'s AtomicBool,
    ends: Instant,
    /// Servers that may still be started.
    left: Cell<usize>,
    /// The answers of servers until now: most differences have a request or a configuration in common.
    known: RefCell<Vec<KnownAnswer>>,
}

/// The name of the asked server, the requests, and what it showed.
type KnownAnswer = (String, Vec<SwapRequest>, Shown);

impl<'s> Stage<'s> {
    /// A stage on which trials end after so many servers, and after this time.
    pub fn new(
        a: &'s Side,
        b: &'s Side,
        rules: JudgeRules,
        stop: &'s AtomicBool,
        servers_max: usize,
        longest: Duration,
    ) -> Option<Stage<'s>> {
        let doors = a.doors().ok()?;
        let (ends, left) = (clock::precise() + longest, Cell::new(servers_max));
        Some(Stage { a, b, doors, rules, stop, ends, left, known: RefCell::default() })
    }

    /// The number of servers that may still be started; 0 after the time.
    pub fn left(&self) -> usize {
        let is_over = clock::precise() >= self.ends || self.stop.load(Ordering::Relaxed);
        if is_over { 0 } else { self.left.get() }
    }

    /// Asks a side, freshly started if it is a configuration. `None`: it does not start, or has no such address. A
    /// server of that name is not asked again for the same requests.
    pub fn side(&self, name: &str, side: &Side, requests: &[SwapRequest]) -> Option<Shown> {
        self.known(name, requests, || match side {
            Side::Conf(conf) => self.conf(conf, requests),
            Side::Running(running) => self.running(running, requests),
        })
    }

    /// Asks B's program with another text, as [`Stage::side`] does.
    pub fn mixture(&self, text: &str, requests: &[SwapRequest]) -> Option<Shown> {
        self.known(text, requests, || self.conf(&self.b.conf()?.with_text(text).ok()?, requests))
    }

    fn known(&self, name: &str, requests: &[SwapRequest], ask: impl FnOnce() -> Option<Shown>) -> Option<Shown> {
        let is_it = |(other, of, _): &&KnownAnswer| other == name && of == requests;
        if let Some((_, _, shown)) = self.known.borrow().iter().find(is_it) {
            return Some(shown.clone());
        }
        let shown = ask()?;
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN_MAX {
            known.remove(0);
        }
        known.push((name.to_owned(), requests.to_vec(), shown.clone()));
        Some(shown)
    }

    /// Asks a new server with this configuration.
    fn conf(&self, conf: &SideConf, requests: &[SwapRequest]) -> Option<Shown> {
        let door = self.doors.get(requests.last()?.door)?;
        let index = partner(door, &doors::of(&conf.tree).ok()?, self.has_running())?;
        self.left.set(self.left().checked_sub(1)?);
        let wish = ServerWish { is_watched: !self.has_running(), ..ServerWish::default() };
        let server = StartedServer::start(conf, &wish).ok()?;
        let at = *server.ports().get(index)?;
        let seen = ask(Door { at: [Some(at); ARMS], ..door.clone() }, requests, Some(server.watch()))?;
        Some((seen, Port { own: at.port(), of: door.port(), is_default: door.is_default() }))
    }

    fn running(&self, running: &[RunningDoor], requests: &[SwapRequest]) -> Option<Shown> {
        let door = self.doors.get(requests.last()?.door)?;
        let of = |one: &RunningDoor| Door { address: one.address.clone(), tls: one.tls, ..door.clone() };
        let index = partner(door, &running.iter().map(of).collect::<Vec<_>>(), true)?;
        let at = running.get(index)?.at;
        let seen = ask(Door { at: [Some(at); ARMS], ..door.clone() }, requests, None)?;
        Some((seen, Port { own: at.port(), of: door.port(), is_default: door.is_default() }))
    }

    fn has_running(&self) -> bool {
        [self.a, self.b].iter().any(|side| side.conf().is_none())
    }

    /// The difference between two answers of A and one of B, if it is the one that is searched: with B's value.
    pub fn difference(
        &self,
        searched: &SearchedDifference,
        request: &SwapRequest,
        [first, again, b]: [&Shown; ARMS],
    ) -> Option<String> {
        let rules = Rules {
            ports: [first.1, again.1, b.1],
            is_same_program: self.rules.is_same_program,
            is_nginx_and_weir: self.rules.is_nginx_and_weir,
            is_head: request.method == "HEAD",
            was_guarded: false,
        };
        let compared = compare::compare([&first.0, &again.0, &b.0], &rules, &RouteMasks::default());
        let is_it = |value: &str| searched.b.as_ref().is_none_or(|searched| searched == value);
        let found = compared
            .differences
            .into_iter()
            .find(|one| one.part == searched.part && one.kind == searched.kind && is_it(&one.b))?;
        Some(found.b)
    }

    /// Asks two sides. If they differ in the searched part, the first is asked again, because it may differ from itself
    /// there. `None`: nothing may be asked any more.
    pub fn both(
        &self,
        searched: &SearchedDifference,
        [(name_a, a), (name_b, b)]: [(&str, &Side); 2],
        requests: &[SwapRequest],
    ) -> Option<Trial> {
        let request = requests.last().filter(|_| self.left() > 0)?;
        let (Some(first), Some(of_b)) = (self.side(name_a, a, requests), self.side(name_b, b, requests)) else {
            return Some(Trial::Unresolved);
        };
        if self.difference(searched, request, [&first, &first, &of_b]).is_none() {
            return Some(Trial::Silent);
        }
        let again = self.side(&again(name_a), a, requests);
        let Some(again) = again else { return Some(Trial::Unresolved) };
        Some(match self.difference(searched, request, [&first, &again, &of_b]) {
            Some(_) => Trial::Shows,
            None => Trial::Silent,
        })
    }
}

/// The name of a second server with the configuration of this one.
pub fn again(name: &str) -> String {
    format!("{name} again")
}

/// Asks the requests in their order, and keeps what the last one showed. `None`: the door cannot be asked.
fn ask(door: Door, requests: &[SwapRequest], watch: Option<ServerWatch>) -> Option<Observed> {
    let requests: Vec<SwapRequest> = requests.iter().map(|one| SwapRequest { door: 0, ..one.clone() }).collect();
    let asked = worker::block_on(async move {
        let mut asker = Asker::new(vec![door], RATE, 0).watching([watch, None, None]);
        let mut last = None;
        for request in &requests {
            last = Some(asker.one(request, Arm::First).await?);
        }
        last
    });
    asked.ok().flatten()
}
