//! Schedules the checks: for each `health_check`, one worker runs one task, and that task starts one more for each
//! check.
//!
//! Peers may come and go: weir checks a new peer at once, and does not check a peer that is `down`. The result stays
//! with the peer in the group's shared state. Invariant: a `health_check` has at most one check of a peer in progress.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use weir_http::line;
use weir_http::worker::{Generation, Worker};
use weir_net::log::Level;
use weir_net::{Deadline, clock, timer};
use weir_peers::health::State;

use super::ask::{self, Ended};
use super::{Check, Placed};
use crate::family::upstream::pool::Link;
use crate::family::upstream::source::GroupRef;

/// The most peers that one `health_check` asks at a time; the others wait their turn.
const ASKED_AT_ONCE: usize = 64;

/// Starts all checks of the configuration in force that no other worker runs.
pub fn watch(worker: &Rc<Worker>) {
    let generation = worker.generation();
    for check in &crate::declared(&generation.conf).health.checks {
        if check.placed.get().is_none() || check.is_watched.swap(true, Ordering::Relaxed) {
            continue;
        }
        let rounds = Rc::new(Rounds {
            worker: worker.clone(),
            generation: Rc::downgrade(&generation),
            check: check.clone(),
            turns: Turns::default(),
        });
        weir_net::worker::spawn(run(rounds));
    }
}

/// One running `health_check`.
struct Rounds {
    worker: Rc<Worker>,
    /// Weak, because the task sleeps: a strong reference would keep the old configuration in memory after a reload.
    generation: Weak<Generation>,
    check: Arc<Check>,
    turns: Turns,
}

/// The state of one peer in a check.
#[derive(Default)]
pub(super) struct Target {
    is_asked: Cell<bool>,
    /// The peer was `down`; when it is up again, it is checked at once.
    was_down: Cell<bool>,
    /// The connection kept for the next check (`keepalive_time`).
    pub kept: Cell<Option<Box<Link>>>,
}

/// The identity of a peer: a number that never changes, and its address.
type Name = (u32, String);

async fn run(rounds: Rc<Rounds>) {
    let Some(placed) = rounds.check.placed.get() else { return };
    let (mut targets, mut due) = (HashMap::new(), clock::now());
    let wake = Deadline::new();
    while let Some(generation) = rounds.generation() {
        let (seen, now) = (placed.live.version(), clock::now());
        let is_due = now >= due;
        if is_due {
            due = now + rounds.check.interval;
        }
        targets = rounds.begin(placed, &generation, targets, is_due);
        drop(generation);
        wake.set_at(due);
        poll_fn(|context| match placed.live.poll_newer(seen, context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => wake.poll_expired(),
        })
        .await;
    }
}

impl Rounds {
    /// The configuration, while this worker has it in force.
    fn generation(&self) -> Option<Rc<Generation>> {
        let generation = self.generation.upgrade()?;
        let is_in_force = Rc::ptr_eq(&generation, &self.worker.generation()) && !self.worker.is_draining();
        is_in_force.then_some(generation)
    }

    /// Starts a check of all peers if a round is due, else of the new ones; returns the state of all peers.
    fn begin(
        self: &Rc<Self>,
        placed: &Placed,
        generation: &Rc<Generation>,
        mut before: HashMap<Name, Rc<Target>>,
        is_due: bool,
    ) -> HashMap<Name, Rc<Target>> {
        let mut targets = HashMap::new();
        let Some(group) = GroupRef::declared(generation.clone(), placed.group) else { return targets };
        let upstream = group.get();
        for (index, peer) in upstream.group.peers().enumerate() {
            let name = (peer.id, peer.address.clone());
            let known = before.remove(&name);
            let is_new = known.as_ref().is_none_or(|target| target.was_down.get());
            let target = known.unwrap_or_default();
            target.was_down.set(peer.down);
            if (is_due || is_new) && !peer.down && !target.is_asked.replace(true) {
                weir_net::worker::spawn(self.clone().ask(group.clone(), index, target.clone()));
            }
            targets.insert(name, target);
        }
        targets
    }

    /// Checks one peer.
    async fn ask(self: Rc<Self>, group: GroupRef, peer: usize, target: Rc<Target>) {
        if !self.check.jitter.is_zero() {
            let most = u32::try_from(self.check.jitter.as_millis()).unwrap_or(u32::MAX);
            timer::sleep(Duration::from_millis(self.worker.random(most).into())).await;
        }
        let turn = self.turns.take().await;
        // The configuration may have changed during the wait.
        if let (Some(generation), Some(placed)) = (self.generation(), self.check.placed.get()) {
            // Boxed: a waiting task would take up its size.
            let ended = Box::pin(ask::ask(&self.worker, &generation, &self.check, placed, &group, peer, &target)).await;
            self.note(&generation, placed, &group, peer, ended);
        }
        drop(turn);
        target.is_asked.set(false);
    }

    /// Records the result, and logs the changes it makes.
    fn note(&self, generation: &Generation, placed: &Placed, group: &GroupRef, index: usize, ended: Ended) {
        let upstream = group.get();
        let (Some(peer), Some(health)) = (upstream.group.peer(index), upstream.group.health(index)) else { return };
        let location = generation.conf.location(placed.location);
        let turned = match &ended {
            Ended::Passed => health.note(placed.number, true, clock::unix_ms()),
            Ended::Failed { .. } => health.note(placed.number, false, clock::unix_ms()),
            Ended::NotMade(_) => None,
        };
        let (check, name, address) = (self.check.name(), &upstream.name, &peer.address);
        let say = |level, what: std::fmt::Arguments<'_>| {
            let whose = format_args!("health check \"{check}\" of peer {address} in upstream \"{name}\"");
            line::place_line(location, level, format_args!("{what}, {whose}"));
        };
        match &ended {
            Ended::NotMade(why) => say(Level::Error, format_args!("{why} while health checking")),
            // When a peer becomes unhealthy, this is an error; later failures are logged at level `info`.
            Ended::Failed { why, doing } if turned == Some(State::Unhealthy) => {
                say(Level::Error, format_args!("{why} while {doing}"));
                say(Level::Warn, format_args!("peer is unhealthy while {doing}"));
            }
            Ended::Failed { why, doing } => say(Level::Info, format_args!("{why} while {doing}")),
            Ended::Passed if turned == Some(State::Up) => {
                say(Level::Notice, format_args!("peer is healthy while health checking"))
            }
            Ended::Passed => {}
        }
    }
}

/// The turns of checks, in the order in which they asked.
struct Turns {
    free: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
}

/// One turn; dropping it gives the turn back.
struct Turn<'t>(&'t Turns);

impl Default for Turns {
    fn default() -> Turns {
        Turns { free: Cell::new(ASKED_AT_ONCE), waiting: RefCell::default() }
    }
}

impl Turns {
    async fn take(&self) -> Turn<'_> {
        poll_fn(|context| match self.free.get().checked_sub(1) {
            Some(left) => {
                self.free.set(left);
                Poll::Ready(Turn(self))
            }
            None => {
                self.waiting.borrow_mut().push_back(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.free.set(self.0.free.get() + 1);
        if let Some(waker) = self.0.waiting.borrow_mut().pop_front() {
            waker.wake();
        }
    }
}
