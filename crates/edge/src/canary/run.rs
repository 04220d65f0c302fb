//! A canary that runs: the state that others read, and the orders about it.
//!
//! - `mind`: its thread, with the judge

mod mind;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};

use weir_http::hold::board::lock;
use weir_http::hold::split::{Coin, SplitKey, share_of};
use weir_meter::live::{Canary, CanaryPhase, CanaryReason};
use weir_net::log::{self, Level};
use weir_net::{Instant, clock, random};

use super::clients::Note;
use super::say;
use super::terms::{CanaryOrder, Terms, check_share};

/// Blocks of notes that wait for the judge, at most; further ones are dropped and counted.
const BLOCKS_MAX: usize = 256;

/// Where the state of a canary goes.
pub type Tell = Box<dyn Fn(&Canary) + Send>;

/// A canary.
pub struct CanaryRun {
    /// Its terms.
    pub terms: Terms,
    /// Its coin.
    pub coin: Arc<Coin>,
    /// The coin before it begins: another one, so that the canary does not depend on what was seen then.
    pub coin_before: Arc<Coin>,
    is_before: AtomicBool,
    /// The number of the new configuration.
    pub generation: u32,
    state: Mutex<Canary>,
    send: SyncSender<Vec<Note>>,
    lost: AtomicU64,
    without_key: AtomicU64,
    /// Long requests.
    numbers: AtomicU64,
    /// Workers that have its coin.
    workers: AtomicU64,
    begun: Instant,
    /// When the share changed last, in microseconds since `begun`.
    changed_us: AtomicU64,
    /// An order has set the share: the ramp is over.
    is_led: AtomicBool,
    /// The way to the receiver of decisions.
    news: OnceLock<SyncSender<Canary>>,
}

/// The calls by which the thread of a canary reaches the workers and the keeper.
pub struct Hands {
    /// Gives a share of the clients the new configuration, after the look.
    pub split: Box<dyn Fn() + Send>,
    /// Takes the configuration of this number from all clients.
    pub leave: Box<dyn Fn(u32) + Send>,
    /// Tells the state, once a second and at each change.
    pub tell: Tell,
}

/// The canary of this process, or the last one.
static PRESENT: Mutex<Option<Arc<CanaryRun>>> = Mutex::new(None);

/// The canary of this process, or the last one.
pub fn present() -> Option<Arc<CanaryRun>> {
    lock(&PRESENT).clone()
}

/// The part of a canary that its thread takes.
pub struct Waiting(Receiver<Vec<Note>>);

impl CanaryRun {
    /// A canary that has not begun.
    ///
    /// # Errors
    /// The terms are bad, or another canary runs.
    pub fn new(terms: Terms, generation: u32) -> Result<(Arc<CanaryRun>, Waiting), String> {
        terms.check()?;
        if let Some(other) = present().filter(|other| other.is_on()) {
            return Err(format!("the canary of \"{}\" runs: roll it back or promote it first", other.terms.file));
        }
        let share = terms.shares.first().copied().unwrap_or_default();
        let key = SplitKey::read(&terms.key)?;
        let coin = || {
            let secret = random::bytes().map_err(|error| format!("getrandom() failed {}", log::Os(&error)))?;
            Ok::<_, String>(Arc::new(Coin::new(secret, key.clone(), share)))
        };
        let (coin, coin_before) = (coin()?, coin()?);
        let (send, receive) = sync_channel(BLOCKS_MAX);
        let state = terms.state(generation);
        let run = CanaryRun {
            terms,
            coin,
            coin_before,
            is_before: AtomicBool::new(true),
            generation,
            state: Mutex::new(state),
            send,
            lost: AtomicU64::new(0),
            without_key: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            workers: AtomicU64::new(0),
            begun: clock::precise(),
            changed_us: AtomicU64::new(0),
            is_led: AtomicBool::new(false),
            news: OnceLock::new(),
        };
        Ok((Arc::new(run), Waiting(receive)))
    }

    fn log_share(&self) {
        let (file, percent) = (&self.terms.file, share_of(self.coin.limit()) * 100.0);
        log::global(Level::Notice, format_args!("canary: {percent:.1} % of the clients get {file} from now on"));
    }

    /// Whether it has not ended.
    pub fn is_on(&self) -> bool {
        lock(&self.state).phase.is_on()
    }

    /// Whether all clients have the old configuration still.
    pub fn is_before(&self) -> bool {
        self.is_before.load(Ordering::Relaxed)
    }

    /// Its phase, and the share of the clients with the new configuration.
    pub fn standing(&self) -> (CanaryPhase, f64) {
        let state = lock(&self.state);
        (state.phase, state.share)
    }

    /// The state now.
    pub fn state(&self) -> Canary {
        lock(&self.state).clone()
    }

    /// Takes notes of a worker, or drops them and counts them. Never waits.
    pub fn take(&self, notes: Vec<Note>) {
        let count = notes.len() as u64;
        if self.send.try_send(notes).is_err() {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Whether a request began before the present share: its client had another coin, so it counts for nothing.
    pub fn is_early(&self, started: Instant) -> bool {
        started.us_since(self.begun) <= self.changed_us.load(Ordering::Relaxed)
    }

    fn set_share(&self, share: f64) {
        self.coin.set_share(share);
        self.forget_early();
    }

    /// Requests that have begun until now count for nothing.
    fn forget_early(&self) {
        self.changed_us.store(clock::precise().us_since(self.begun), Ordering::Relaxed);
    }

    /// A number that no other long request has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A worker has its coin from now on.
    pub fn join(&self) {
        self.workers.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request without the key.
    pub fn no_key(&self) {
        self.without_key.fetch_add(1, Ordering::Relaxed);
    }

    /// Carries an order out.
    ///
    /// # Errors
    /// The canary has ended, or the order is bad.
    pub fn obey(&self, order: CanaryOrder) -> Result<(), String> {
        if !self.is_on() {
            return Err("no canary runs".to_owned());
        }
        match order {
            CanaryOrder::Share(share) => {
                check_share(share)?;
                if self.terms.fixed.is_some() {
                    return Err(
                        "the looks of this canary are planned for one share: promote it, or roll it back".to_owned()
                    );
                }
                self.is_led.store(true, Ordering::Relaxed);
                self.set_share(share);
                if !self.is_before() {
                    self.log_share();
                }
            }
            CanaryOrder::RollBack => self.end(CanaryPhase::RolledBack, CanaryReason::Asked),
            CanaryOrder::MakeRoom => self.end(CanaryPhase::RolledBack, CanaryReason::Upgrade),
            CanaryOrder::Refused => self.end(CanaryPhase::RolledBack, CanaryReason::Refused),
            CanaryOrder::Promote => self.go(CanaryPhase::Promoting, CanaryReason::Asked),
        }
        Ok(())
    }

    /// Ends it: from now on, all clients get one configuration. Only the first end counts.
    pub fn end(&self, phase: CanaryPhase, reason: CanaryReason) {
        if phase != CanaryPhase::Promoted {
            self.coin.set_share(0.0);
        }
        self.go(phase, reason);
    }

    fn go(&self, phase: CanaryPhase, reason: CanaryReason) {
        let mut state = lock(&self.state);
        if !state.phase.is_on() || state.phase == phase {
            return;
        }
        // A promotion that is under way has its reason.
        if phase != CanaryPhase::Promoted || state.reason == CanaryReason::None {
            state.reason = reason;
        }
        state.phase = phase;
        let sentence = say::sentence(&state).en().to_owned();
        let level = if state.reason == CanaryReason::Harm { Level::Alert } else { Level::Notice };
        log::global(level, format_args!("canary: {sentence}"));
        state.sentence = sentence;
        if phase != CanaryPhase::Promoting {
            self.tell(&state);
        }
    }

    /// Tells the receiver of decisions, if there is one.
    fn tell(&self, state: &Canary) {
        if let Some(news) = self.news.get() {
            // The thread ends with the canary, and two decisions fit into its queue.
            let _ = news.try_send(state.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    pub fn run(rehearsal: Option<Duration>) -> (Arc<CanaryRun>, Waiting) {
        let look = Duration::ZERO;
        let terms = Terms { shares: vec![0.1, 0.5], pause: Duration::ZERO, look, rehearsal, ..Terms::example() };
        CanaryRun::new(terms, 2).unwrap()
    }

    pub fn is(run: &CanaryRun, phase: CanaryPhase, reason: CanaryReason) -> bool {
        let state = run.state();
        (state.phase, state.reason) == (phase, reason)
    }

    #[test]
    fn only_the_first_end_counts_and_a_promotion_keeps_its_reason() {
        let (one, _waiting) = run(None);
        one.end(CanaryPhase::RolledBack, CanaryReason::Harm);
        one.end(CanaryPhase::Promoted, CanaryReason::Asked);
        assert!(is(&one, CanaryPhase::RolledBack, CanaryReason::Harm) && one.coin.limit() == 0);
        assert!(one.obey(CanaryOrder::Share(0.2)).is_err());
        let (two, _waiting) = run(None);
        two.go(CanaryPhase::Promoting, CanaryReason::Proof);
        assert!(two.is_on() && two.coin.limit() > 0, "the share stays until the keeper has promoted");
        two.end(CanaryPhase::Promoted, CanaryReason::Asked);
        assert!(is(&two, CanaryPhase::Promoted, CanaryReason::Proof) && two.state().sentence.contains("excluded"));
        let (three, _waiting) = run(None);
        three.obey(CanaryOrder::Promote).unwrap();
        three.obey(CanaryOrder::Refused).unwrap();
        assert!(is(&three, CanaryPhase::RolledBack, CanaryReason::Refused));
    }

    #[test]
    fn requests_that_began_before_a_share_count_for_nothing() {
        let (run, _waiting) = run(None);
        let started = clock::precise();
        assert!(!run.is_early(started + Duration::from_secs(1)));
        std::thread::sleep(Duration::from_millis(2));
        run.set_share(0.2);
        assert!(run.is_early(started));
    }
}
