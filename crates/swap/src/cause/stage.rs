//! Trials of configurations: starts a server for each, asks a request, and looks at all that the server shows.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_net::{clock, worker};
use weir_words::Said;

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

/// The words for an address that another program has.
const IN_USE: &str = "in use";
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
    ends: weir_net::Instant,
    left: Cell<usize>,
}

impl<'s> Stage<'s> {
    /// A stage on which trials end after so many, and after this time.
    pub fn new(
        a: &'s Side,
        b: &'s Side,
        rules: JudgeRules,
        stop: &'s AtomicBool,
        trials_max: usize,
        longest: Duration,
    ) -> Option<Stage<'s>> {
        let doors = a.doors().ok()?;
        let (ends, left) = (clock::precise() + longest, Cell::new(trials_max));
        Some(Stage { a, b, doors, rules, stop, ends, left })
    }

    /// The number of trials that are left; 0 after the time.
    pub fn left(&self) -> usize {
        let is_over = clock::precise() >= self.ends || self.stop.load(Ordering::Relaxed);
        if is_over { 0 } else { self.left.get() }
    }

    /// Counts a trial. `None`: there is none left.
    pub fn count(&self) -> Option<()> {
        let left = self.left();
        (left > 0).then(|| self.left.set(left - 1))
    }

    /// Asks a side, freshly started if it is a configuration. `None`: it does not start, or has no such address.
    pub fn side(&self, side: &Side, requests: &[SwapRequest]) -> Option<Shown> {
        match side {
            Side::Conf(conf) => self.conf(conf, requests),
            Side::Running(running) => self.running(running, requests),
        }
    }

    /// Asks a server with this configuration.
    pub fn conf(&self, conf: &SideConf, requests: &[SwapRequest]) -> Option<Shown> {
        let door = self.doors.get(requests.last()?.door)?;
        let index = partner(door, &doors::of(&conf.tree).ok()?, self.has_running())?;
        let wish = ServerWish { is_watched: !self.has_running(), ..ServerWish::default() };
        // Another program may have taken a port in the meantime.
        let is_taken = |why: &Said| why.en().contains(IN_USE);
        let server = match StartedServer::start(conf, &wish) {
            Err(why) if is_taken(&why) => StartedServer::start(conf, &wish),
            started => started,
        };
        let server = server.ok()?;
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
        };
        let compared = compare::compare([&first.0, &again.0, &b.0], &rules, &RouteMasks::default());
        let is_it = |value: &str| searched.b.as_ref().is_none_or(|searched| searched == value);
        let found = compared
            .differences
            .into_iter()
            .find(|one| one.part == searched.part && one.kind == searched.kind && is_it(&one.b))?;
        Some(found.b)
    }

    /// Asks A and B. If they differ in the searched part, A is asked again, because A may differ from itself there.
    pub fn both(&self, searched: &SearchedDifference, a: &Side, b: &Side, requests: &[SwapRequest]) -> Option<Trial> {
        self.count()?;
        let Some(request) = requests.last() else { return Some(Trial::Unresolved) };
        let (Some(first), Some(of_b)) = (self.side(a, requests), self.side(b, requests)) else {
            return Some(Trial::Unresolved);
        };
        if self.difference(searched, request, [&first, &first, &of_b]).is_none() {
            return Some(Trial::Silent);
        }
        let Some(again) = self.side(a, requests) else { return Some(Trial::Unresolved) };
        Some(match self.difference(searched, request, [&first, &again, &of_b]) {
            Some(_) => Trial::Shows,
            None => Trial::Silent,
        })
    }
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
