//! A canary that runs: the thread with its judge, and the state that others read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_http::hold::board::lock;
use weir_http::hold::split::{Coin, SplitKey, share_of};
use weir_judge::judge::{CanaryJudge, CanaryQuestion, Judgement};
use weir_judge::outcome::Aspect;
use weir_judge::plan;
use weir_meter::live::{Canary, CanaryAspect, CanaryLane, CanaryPhase, CanaryReason};
use weir_net::log::{self, Level};
use weir_net::{Instant, clock, random, worker};

use super::clients::{Clients, Note};
use super::say;
use super::terms::{CanaryOrder, Terms, check_share};

/// Blocks of notes that wait for the judge, at most; further ones are dropped and counted.
const BLOCKS_MAX: usize = 256;
/// How often windows are closed and the state is made.
const EVERY: Duration = Duration::from_millis(200);
/// How often the state is told.
const TELL_EVERY_MS: u64 = 1_000;
/// Clients of each configuration before a forecast.
const FEW_CLIENTS: u64 = 30;
/// Evidence beyond this is shown as this: JSON has no infinity.
const EVIDENCE_MAX: f64 = 1e12;

/// Where the state of a canary goes.
pub type Tell = Box<dyn Fn(&Canary) + Send>;

/// A canary.
pub struct CanaryRun {
    /// Its terms.
    pub terms: Terms,
    /// Its coin.
    pub coin: Arc<Coin>,
    /// The coin of its rehearsal: another one, so that the canary does not depend on what was seen there.
    pub rehearsal: Arc<Coin>,
    is_rehearsal: AtomicBool,
    /// The number of the new configuration.
    pub generation: u32,
    state: Mutex<Canary>,
    send: SyncSender<Vec<Note>>,
    lost: AtomicU64,
    without_key: AtomicU64,
    /// Workers that have its coin.
    workers: AtomicU64,
    begun: Instant,
    /// When the share changed last, in microseconds since `begun`.
    changed_us: AtomicU64,
    /// An order has set the share: the ramp is over.
    is_led: AtomicBool,
}

/// The calls by which the thread of a canary reaches the workers and the keeper.
pub struct Hands {
    /// Gives a share of the clients the new configuration, after the rehearsal.
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
        let (coin, rehearsal) = (coin()?, coin()?);
        let is_rehearsal = terms.rehearsal.is_some();
        let (send, receive) = sync_channel(BLOCKS_MAX);
        let state = terms.state(generation);
        let run = CanaryRun {
            terms,
            coin,
            rehearsal,
            is_rehearsal: AtomicBool::new(is_rehearsal),
            generation,
            state: Mutex::new(state),
            send,
            lost: AtomicU64::new(0),
            without_key: AtomicU64::new(0),
            workers: AtomicU64::new(0),
            begun: clock::precise(),
            changed_us: AtomicU64::new(0),
            is_led: AtomicBool::new(false),
        };
        Ok((Arc::new(run), Waiting(receive)))
    }

    /// Starts its thread: workers give notes from now on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn begin(self: &Arc<CanaryRun>, waiting: Waiting, hands: Hands) -> std::io::Result<()> {
        let run = self.clone();
        let mut mind = Mind {
            run: run.clone(),
            judge: CanaryJudge::new(CanaryQuestion::default()),
            clients: Clients::default(),
            begun_ms: now_ms(),
            stepped_ms: now_ms(),
            step: 0,
            share: self.terms.shares.first().copied().unwrap_or_default(),
        };
        worker::block_aside("canary", move || mind.live(&waiting.0, &hands))?;
        match self.is_rehearsal() {
            true => log::global(Level::Notice, format_args!("canary: the rehearsal of {} begins", self.terms.file)),
            false => self.log_share(),
        }
        *lock(&PRESENT) = Some(run);
        Ok(())
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
    pub fn is_rehearsal(&self) -> bool {
        self.is_rehearsal.load(Ordering::Relaxed)
    }

    /// The coin that clients have now.
    pub fn coin(&self) -> &Coin {
        if self.is_rehearsal() { &self.rehearsal } else { &self.coin }
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
                self.is_led.store(true, Ordering::Relaxed);
                self.set_share(share);
                self.log_share();
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
    }
}

/// The thread of a canary.
struct Mind {
    run: Arc<CanaryRun>,
    judge: CanaryJudge,
    clients: Clients,
    begun_ms: u64,
    /// When the present share began.
    stepped_ms: u64,
    step: usize,
    share: f64,
}

fn now_ms() -> u64 {
    clock::unix_ms()
}

impl Mind {
    fn live(&mut self, notes: &Receiver<Vec<Note>>, hands: &Hands) {
        let (mut told_ms, mut told) = (0, None);
        loop {
            match notes.recv_timeout(EVERY) {
                Ok(block) => self.take(block),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // All blocks that wait are one look.
            notes.try_iter().take(BLOCKS_MAX).for_each(|block| self.take(block));
            let now = now_ms();
            for outcome in self.clients.close(now) {
                self.judge.take(&outcome);
            }
            self.show(now);
            self.decide(now, hands);
            let state = self.run.state();
            if told != Some((state.phase, state.share)) || now.saturating_sub(told_ms) >= TELL_EVERY_MS {
                (hands.tell)(&state);
                (told, told_ms) = (Some((state.phase, state.share)), now);
            }
            if !self.run.is_on() {
                // A promotion has put another configuration in force already.
                return (hands.leave)(self.run.generation);
            }
        }
    }

    fn take(&mut self, block: Vec<Note>) {
        let now = now_ms();
        for note in block {
            if let Some(outcome) = self.clients.take(note, now) {
                self.judge.take(&outcome);
            }
        }
    }

    fn decide(&mut self, now: u64, hands: &Hands) {
        let Mind { run, judge, .. } = self;
        let judgement = judge.judgement();
        match run.state().phase {
            CanaryPhase::Running => {}
            CanaryPhase::Rehearsing => return self.rehearse(judgement, now, hands),
            _ => return,
        }
        if let Judgement::Harm(_) = judgement {
            return run.end(CanaryPhase::RolledBack, CanaryReason::Harm);
        }
        let is_led = run.is_led.load(Ordering::Relaxed);
        let next = run.terms.shares.get(self.step + 1).copied().filter(|_| !is_led);
        if judgement == Judgement::NoHarm && run.terms.promotes && next.is_none() {
            return run.go(CanaryPhase::Promoting, CanaryReason::Proof);
        }
        if run.terms.lasts.is_some_and(|lasts| now.saturating_sub(self.begun_ms) >= lasts.as_millis() as u64) {
            return run.end(CanaryPhase::Undecided, CanaryReason::Time);
        }
        if let Some(share) = next
            && now.saturating_sub(self.stepped_ms) >= run.terms.pause.as_millis() as u64
        {
            run.set_share(share);
            (self.step, self.stepped_ms) = (self.step + 1, now);
            run.log_share();
        }
        let share = share_of(run.coin.limit());
        if share != self.share {
            self.share = share;
            self.clients.forget();
        }
    }

    /// Ends the rehearsal when its time is over: the judge forgets what it has seen, and a share of the clients gets the new
    /// configuration.
    fn rehearse(&mut self, judgement: Judgement, now: u64, hands: &Hands) {
        if let Judgement::Harm(_) = judgement {
            return self.run.end(CanaryPhase::RolledBack, CanaryReason::Noise);
        }
        let lasts = self.run.terms.rehearsal.unwrap_or_default();
        if now.saturating_sub(self.begun_ms) < lasts.as_millis() as u64 {
            return;
        }
        (self.judge, self.clients) = (CanaryJudge::new(CanaryQuestion::default()), Clients::default());
        (self.begun_ms, self.stepped_ms) = (now, now);
        lock(&self.run.state).phase = CanaryPhase::Running;
        self.run.is_rehearsal.store(false, Ordering::Relaxed);
        self.run.forget_early();
        // They get another coin.
        self.run.workers.store(0, Ordering::Relaxed);
        (hands.split)();
        self.run.log_share();
    }

    /// Makes the state.
    fn show(&self, now: u64) {
        let Mind { run, judge, clients, .. } = self;
        let mut state = lock(&run.state);
        if !state.phase.is_on() {
            return;
        }
        let [old, new] = judge.tallies();
        let lane = |clients, requests| CanaryLane { clients, requests };
        (state.old, state.new) = (lane(old.clients, old.requests), lane(new.clients, new.requests));
        state.seconds = now.saturating_sub(self.begun_ms) / 1000;
        state.share = share_of(run.coin.limit());
        let is_led = run.is_led.load(Ordering::Relaxed);
        state.next_shares =
            run.terms.shares.iter().skip(if is_led { usize::MAX } else { self.step + 1 }).copied().collect();
        state.evidence = judge.wealth().min(EVIDENCE_MAX);
        let question = CanaryQuestion::default();
        let mean = |sum: f64, clients: u64| if clients == 0 { 0.0 } else { sum / clients as f64 };
        let all = Aspect::ALL.into_iter().zip(question.margins).enumerate();
        state.aspects = all
            .map(|(at, (aspect, margin))| CanaryAspect {
                name: name(aspect).to_owned(),
                old: mean(old.harm.get(at).copied().unwrap_or_default(), old.clients),
                new: mean(new.harm.get(at).copied().unwrap_or_default(), new.clients),
                upper: Some(judge.difference(aspect).1).filter(|upper| upper.is_finite()),
                margin,
                evidence: judge.wealth_of(aspect).min(EVIDENCE_MAX),
            })
            .collect();
        state.clients_needed =
            (old.clients.min(new.clients) >= FEW_CLIENTS).then(|| forecast(judge, state.share)).flatten();
        if let Judgement::Harm(harm) = judge.judgement() {
            state.harm = Some(name(harm.aspect).to_owned());
            state.evidence = harm.wealth.min(EVIDENCE_MAX);
        }
        state.largest_client = clients.largest();
        state.clients_skipped = clients.skipped;
        state.requests_lost = run.lost.load(Ordering::Relaxed);
        state.workers = run.workers.load(Ordering::Relaxed);
        state.requests_without_key = run.without_key.load(Ordering::Relaxed);
        state.sentence = say::sentence(&state).en().to_owned();
    }
}

/// Clients that a proof of no harm needs, by the spread so far.
fn forecast(judge: &CanaryJudge, share: f64) -> Option<u64> {
    let question = CanaryQuestion::default();
    let each = Aspect::ALL.into_iter().zip(question.margins);
    let needed = each
        .map(|(aspect, margin)| plan::clients_until_no_harm(judge.spread(aspect, share), share, margin, question.beta));
    needed.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The name of an aspect, as the API has it.
fn name(aspect: Aspect) -> &'static str {
    match aspect {
        Aspect::Errors => "errors",
        Aspect::Refused => "refused",
        Aspect::Slower => "slower",
        Aspect::Slow(0) => "p50",
        Aspect::Slow(1) => "p95",
        Aspect::Slow(_) => "p99",
        Aspect::Resets => "resets",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(rehearsal: Option<Duration>) -> (Arc<CanaryRun>, Waiting) {
        let terms = Terms {
            file: "/new.conf".to_owned(),
            key: "address".to_owned(),
            shares: vec![0.1, 0.5],
            pause: Duration::ZERO,
            rehearsal,
            lasts: None,
            promotes: true,
        };
        CanaryRun::new(terms, 2).unwrap()
    }

    /// The thread's part, without a thread.
    fn mind(run: &Arc<CanaryRun>) -> Mind {
        Mind {
            run: run.clone(),
            judge: CanaryJudge::new(CanaryQuestion::default()),
            clients: Clients::default(),
            begun_ms: 0,
            stepped_ms: 0,
            step: 0,
            share: 0.1,
        }
    }

    /// Hands that note that they split.
    fn hands(splits: &Arc<AtomicU64>) -> Hands {
        let splits = splits.clone();
        let split = move || {
            splits.fetch_add(1, Ordering::Relaxed);
        };
        Hands { split: Box::new(split), leave: Box::new(|_| ()), tell: Box::new(|_| ()) }
    }

    fn is(run: &CanaryRun, phase: CanaryPhase, reason: CanaryReason) -> bool {
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
    fn a_ramp_goes_on_until_an_order_leads_it() {
        let (run, _waiting) = run(None);
        let (mut mind, splits) = (mind(&run), Arc::default());
        mind.decide(1, &hands(&splits));
        assert_eq!((share_of(run.coin.limit()), mind.step), (0.5, 1));
        run.obey(CanaryOrder::Share(0.25)).unwrap();
        mind.decide(2, &hands(&splits));
        mind.show(3);
        assert_eq!((run.state().share, run.state().next_shares), (0.25, vec![]));
        assert!(run.obey(CanaryOrder::Share(1.0)).is_err_and(|why| why.contains("from 0.1% to 99%")));
    }

    #[test]
    fn a_rehearsal_ends_in_time_or_with_harm_and_has_a_coin_of_its_own() {
        let (one, _waiting) = run(Some(Duration::from_millis(10)));
        let (mut of, splits) = (mind(&one), Arc::default());
        of.decide(9, &hands(&splits));
        assert!(is(&one, CanaryPhase::Rehearsing, CanaryReason::None) && splits.load(Ordering::Relaxed) == 0);
        assert!(std::ptr::eq(one.coin(), &*one.rehearsal));
        of.decide(10, &hands(&splits));
        assert!(is(&one, CanaryPhase::Running, CanaryReason::None) && splits.load(Ordering::Relaxed) == 1);
        assert!(std::ptr::eq(one.coin(), &*one.coin));
        let (two, _waiting) = run(Some(Duration::from_millis(10)));
        let mut of = mind(&two);
        let failed = |client| Note {
            client,
            limit: u64::MAX / 10,
            is_new: true,
            took_us: Some(1),
            has_failed: true,
            was_refused: false,
            was_reset: false,
        };
        of.take((0..9).map(failed).collect());
        of.decide(9, &hands(&splits));
        assert!(is(&two, CanaryPhase::RolledBack, CanaryReason::Noise) && splits.load(Ordering::Relaxed) == 1);
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
