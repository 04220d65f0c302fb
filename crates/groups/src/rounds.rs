//! Rounds of health checks: for each `health_check`, one worker runs one task, and that task starts one more for each
//! check of a peer.
//!
//! Peers may come and go: weir checks a new peer at once, and does not check a peer that is `down`. The result stays
//! with the peer in the group's shared state. Invariant: a `health_check` has at most one check of a peer in progress.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use weir_http::exchange::line;
use weir_http::hold::worker::{Generation, Worker};
use weir_net::log::Level;
use weir_net::{Deadline, clock, timer};
use weir_peers::group::Group;
use weir_peers::health::State;

use crate::checks::{Asked, Asks, Check, Ended, Placed};
use crate::{Local, Locals, Parts};

/// The most peers that one `health_check` asks at a time; the others wait their turn.
const ASKED_AT_ONCE: usize = 64;

/// Starts all checks of a configuration in force that no other worker runs.
pub fn watch<A: Asks>(worker: &Rc<Worker>, generation: &Rc<Generation>) {
    for check in &A::declared(&generation.conf).checks {
        if check.placed.get().is_some() && !check.is_watched.swap(true, Ordering::Relaxed) {
            let (worker, generation, check) = (worker.clone(), Rc::downgrade(generation), check.clone());
            weir_net::worker::spawn(Rc::new(Rounds { worker, generation, check, turns: Turns::default() }).run());
        }
    }
}

/// One running `health_check`.
struct Rounds<A: Asks> {
    worker: Rc<Worker>,
    /// Weak, because the task sleeps: a strong reference would keep the old configuration in memory after a reload.
    generation: Weak<Generation>,
    check: Arc<Check<A>>,
    turns: Turns,
}

/// The state of one peer in a check.
#[derive(Default)]
struct Target<K> {
    is_asked: Cell<bool>,
    /// The peer was `down`; when it is up again, it is checked at once.
    was_down: Cell<bool>,
    kept: K,
}

/// The identity of a peer: a number that never changes, and its address.
type Name = (u32, String);

/// The targets of a check, by name.
type Targets<K> = HashMap<Name, Rc<Target<K>>>;

impl<A: Asks> Rounds<A> {
    async fn run(self: Rc<Self>) {
        let Some(Placed { live, .. }) = self.check.placed.get() else { return };
        let (mut targets, mut due) = (HashMap::new(), clock::now());
        let wake = Deadline::new();
        while let Some(generation) = self.generation() {
            let (seen, now) = (live.version(), clock::now());
            let is_due = now >= due;
            if is_due {
                due = now + self.check.interval;
            }
            targets = self.begin(&generation, targets, is_due);
            drop(generation);
            wake.set_at(due);
            poll_fn(|context| match live.poll_newer(seen, context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => wake.poll_expired(),
            })
            .await;
        }
    }

    /// The configuration, while its work goes on.
    fn generation(&self) -> Option<Rc<Generation>> {
        self.generation.upgrade().filter(|generation| self.worker.goes_on(generation))
    }

    /// Starts a check of all peers if a round is due, else of the new ones; returns the state of all peers.
    fn begin(
        self: &Rc<Self>,
        generation: &Rc<Generation>,
        mut before: Targets<A::Kept>,
        is_due: bool,
    ) -> Targets<A::Kept> {
        let mut targets = HashMap::new();
        let Some(placed) = self.check.placed.get() else { return targets };
        let groups = &A::Parts::declared(&generation.conf).groups;
        let Some(seen) = generation.own.of(Locals::default).get(groups, placed.group) else { return targets };
        for (index, peer) in seen.group.peers().enumerate() {
            let name = (peer.id, peer.address.clone());
            let known = before.remove(&name);
            let is_new = known.as_ref().is_none_or(|target| target.was_down.get());
            let target = known.unwrap_or_default();
            target.was_down.set(peer.down);
            if (is_due || is_new) && !peer.down && !target.is_asked.replace(true) {
                weir_net::worker::spawn(self.clone().ask(seen.clone(), index, target.clone()));
            }
            targets.insert(name, target);
        }
        targets
    }

    /// Checks one peer.
    async fn ask(self: Rc<Self>, seen: Rc<Local<A::Parts>>, peer: usize, target: Rc<Target<A::Kept>>) {
        let jitter = self.check.jitter;
        if !jitter.is_zero() {
            let most = u32::try_from(jitter.as_millis()).unwrap_or(u32::MAX);
            timer::sleep(Duration::from_millis(self.worker.random(most).into())).await;
        }
        let turn = self.turns.take().await;
        // The configuration may have changed during the wait.
        if let (Some(generation), Some(placed)) = (self.generation(), self.check.placed.get())
            && let Some(location) = A::location(&generation, &placed.place)
        {
            let (worker, check, kept) = (&self.worker, &*self.check, &target.kept);
            let asked = Asked { worker, generation: &generation, check, placed, seen: &seen, peer, kept };
            // Boxed: a waiting task would take up its size.
            let ended = Box::pin(A::ask(&asked)).await;
            let say = |level, what: fmt::Arguments<'_>| line::place_line(location, level, what);
            note(&seen.group, peer, (placed.number, check.name()), &ended, &say);
        }
        drop(turn);
        target.is_asked.set(false);
    }
}

/// Records the result of a check with the peer, and says the changes that it makes. `number` is the check's number
/// among those of the group, `check` its name in the log.
fn note(
    group: &Group,
    index: usize,
    (number, check): (usize, &str),
    ended: &Ended,
    say: &dyn Fn(Level, fmt::Arguments<'_>),
) {
    let (Some(peer), Some(health)) = (group.peer(index), group.health(index)) else { return };
    let turned = match ended {
        Ended::Passed => health.note(number, true, clock::unix_ms()),
        Ended::Failed { .. } => health.note(number, false, clock::unix_ms()),
        Ended::NotMade(_) => None,
    };
    let (name, address) = (group.name(), &peer.address);
    let say = |level, what: fmt::Arguments<'_>| {
        say(level, format_args!("{what}, health check \"{check}\" of peer {address} in upstream \"{name}\""));
    };
    match ended {
        Ended::NotMade(why) => say(Level::Error, format_args!("{why} while health checking")),
        // When a peer becomes unhealthy, this is an error; later failures are logged at level `info`.
        Ended::Failed { why, doing } if turned == Some(State::Unhealthy) => {
            say(Level::Error, format_args!("{why} while {doing}"));
            say(Level::Warn, format_args!("peer is unhealthy while {doing}"));
        }
        Ended::Failed { why, doing } => say(Level::Info, format_args!("{why} while {doing}")),
        Ended::Passed if turned == Some(State::Up) => {
            say(Level::Notice, format_args!("peer is healthy while health checking"));
        }
        Ended::Passed => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Counting, Plain, PlainCheck, of_text, peer};
    use std::pin::pin;
    use std::task::Context;
    use weir_peers::balance::Policy;
    use weir_peers::health::CheckRule;

    #[test]
    fn a_bounded_number_of_checks_runs_at_a_time_in_the_order_of_asking() {
        let turns = Turns::default();
        let (counting, waker) = Counting::new();
        let (later_counting, later_waker) = Counting::new();
        let (mut context, mut later) = (Context::from_waker(&waker), Context::from_waker(&later_waker));
        let mut held: Vec<Turn<'_>> = Vec::new();
        for _ in 0..ASKED_AT_ONCE {
            match pin!(turns.take()).poll(&mut context) {
                Poll::Ready(turn) => held.push(turn),
                Poll::Pending => panic!("turn {} is not free", held.len()),
            }
        }
        let (mut first, mut second) = (pin!(turns.take()), pin!(turns.take()));
        assert!(first.as_mut().poll(&mut context).is_pending() && second.as_mut().poll(&mut later).is_pending());
        drop(held.pop());
        assert_eq!((counting.times(), later_counting.times()), (1, 0));
        let turn = first.as_mut().poll(&mut context);
        assert!(turn.is_ready() && second.as_mut().poll(&mut later).is_pending());
        drop(turn);
        assert_eq!(later_counting.times(), 1);
        assert!(second.as_mut().poll(&mut later).is_ready());
    }

    #[test]
    fn one_worker_runs_a_check_and_all_see_the_result() {
        weir_net::worker::block_on(async {
            let text = "error_log stderr emerg; upstream u { zone z; server 127.0.0.1:1; server 127.0.0.1:2 down; }
                        server { listen 80; location / { health_check group=1 mandatory interval=1h; } }";
            let conf = Arc::new(of_text(text).0.unwrap());
            for _ in 0..2 {
                let worker =
                    Worker::new(0, conf.clone(), Default::default(), Default::default(), Default::default(), 1);
                watch::<PlainCheck>(&worker, &worker.main());
            }
            let serves = || Plain::declared(&conf).groups[0].now().group.health(0).unwrap().lets_serve();
            assert!(!serves(), "a mandatory check must pass first");
            while !serves() {
                timer::sleep(Duration::from_millis(1)).await;
            }
            let asked = PlainCheck::declared(&conf).checks[0].own.asked.load(Ordering::Relaxed);
            assert_eq!(asked, 1, "no second worker asks, and nobody asks a peer that is down");
        })
        .unwrap();
    }

    #[test]
    fn checks_end_with_their_configuration_and_touch_no_other() {
        weir_net::worker::block_on(async {
            let text = "error_log stderr emerg; upstream u { zone z; server 127.0.0.1:1; }
                        server { listen 80; location / { health_check group=1 interval=1ms; } }";
            let confs: Vec<_> = (0..2).map(|_| Arc::new(of_text(text).0.unwrap())).collect();
            let asked = |at: usize| PlainCheck::declared(&confs[at]).checks[0].own.asked.load(Ordering::Relaxed);
            let until = async |at: usize, more: usize| {
                let before = asked(at);
                while asked(at) < before + more {
                    timer::sleep(Duration::from_millis(1)).await;
                }
            };
            let worker =
                Worker::new(0, confs[0].clone(), Default::default(), Default::default(), Default::default(), 1);
            watch::<PlainCheck>(&worker, &worker.main());
            until(0, 3).await;
            let next = worker.adopt(confs[1].clone());
            watch::<PlainCheck>(&worker, &next);
            let last = asked(0);
            until(1, 3).await;
            assert_eq!((asked(0), confs[0].holders.load(Ordering::Relaxed)), (last, 0), "no task holds the old one");
        })
        .unwrap();
    }

    #[test]
    fn a_change_of_health_is_told_once_and_only_the_peers_faults_count() {
        let mut group = Group::of_now("u", vec![peer("127.0.0.1:1")], Policy::RoundRobin).unwrap();
        let rule = CheckRule { asks: "/".into(), fails: 2, passes: 2, mandatory: false, persistent: false };
        group.guard(&vec![rule].into());
        let failed = || Ended::Failed { why: "status 500".to_owned(), doing: "checking" };
        let not_made = || Ended::NotMade("no socket".to_owned());
        let end = ", health check \"/c\" of peer 127.0.0.1:1 in upstream \"u\"";
        // The result; the lines of the log without their end; the failures counted so far; whether the peer serves.
        for (at, (ended, lines, fails, serves)) in [
            (Ended::Passed, vec![], 0, true),
            (failed(), vec![(Level::Info, "status 500 while checking")], 1, true),
            (not_made(), vec![(Level::Error, "no socket while health checking")], 1, true),
            (
                failed(),
                vec![(Level::Error, "status 500 while checking"), (Level::Warn, "peer is unhealthy while checking")],
                2,
                false,
            ),
            (failed(), vec![(Level::Info, "status 500 while checking")], 3, false),
            (Ended::Passed, vec![], 3, false),
            (not_made(), vec![(Level::Error, "no socket while health checking")], 3, false),
            (Ended::Passed, vec![(Level::Notice, "peer is healthy while health checking")], 3, true),
            (Ended::Passed, vec![], 3, true),
        ]
        .into_iter()
        .enumerate()
        {
            let said = RefCell::new(Vec::new());
            note(&group, 0, (0, "/c"), &ended, &|level, what| said.borrow_mut().push((level, what.to_string())));
            let lines: Vec<_> = lines.into_iter().map(|(level, text)| (level, format!("{text}{end}"))).collect();
            let health = group.health(0).unwrap();
            assert_eq!((said.into_inner(), health.shown().fails, health.lets_serve()), (lines, fails, serves), "{at}");
        }
        note(&group, 1, (0, "/c"), &failed(), &|_, what| panic!("there is no second peer: {what}"));
    }
}
