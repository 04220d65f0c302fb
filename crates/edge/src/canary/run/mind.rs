//! The thread of a canary: the windows of its clients, its judge, and its decisions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use weir_http::hold::board::lock;
use weir_http::hold::split::share_of;
use weir_judge::horizon::{Horizon, LOOKS};
use weir_judge::judge::{CanaryJudge, CanaryQuestion, Harm, Judgement};
use weir_judge::outcome::Aspect;
use weir_meter::live::{Canary, CanaryAspect, CanaryLane, CanaryPhase, CanaryReason};
use weir_net::log::{self, Level};
use weir_net::{clock, worker};

use super::{BLOCKS_MAX, CanaryRun, Hands, PRESENT, Waiting};
use crate::canary::clients::{Clients, ClosedWindow, Note};
use crate::canary::look::TrafficLook;
use crate::canary::refusal::refusal;
use crate::canary::{notify, say};

/// How often windows are closed and the state is made.
const EVERY: Duration = Duration::from_millis(200);
/// How often the state is told.
const TELL_EVERY_MS: u64 = 1_000;
/// Evidence beyond this is shown as this: JSON has no infinity.
const EVIDENCE_MAX: f64 = 1e12;

/// The thread of a canary.
struct Mind {
    run: Arc<CanaryRun>,
    judge: CanaryJudge,
    clients: Clients,
    look: TrafficLook,
    begun_ms: u64,
    /// When the present share began.
    stepped_ms: u64,
    step: usize,
    share: f64,
    horizon: Horizon,
    /// Planned looks that are over.
    looks: u32,
}

impl CanaryRun {
    /// Starts its thread: workers give notes from now on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn begin(self: &Arc<CanaryRun>, waiting: Waiting, hands: Hands) -> std::io::Result<()> {
        if let Some(url) = self.terms.notify.as_deref().and_then(|url| notify::receiver(url).ok()) {
            let _ = self.news.set(notify::start(url)?);
        }
        let run = self.clone();
        let mut mind = Mind::new(self.clone(), clock::unix_ms());
        worker::block_aside("canary", move || mind.live(&waiting.0, &hands))?;
        let what = if self.terms.rehearsal.is_some() { "rehearsal" } else { "look at the traffic" };
        log::global(Level::Notice, format_args!("canary: the {what} before {} begins", self.terms.file));
        *lock(&PRESENT) = Some(run);
        Ok(())
    }
}

impl Mind {
    /// The thread's part, before it begins.
    fn new(run: Arc<CanaryRun>, now_ms: u64) -> Mind {
        Mind {
            judge: CanaryJudge::new(CanaryQuestion::default()),
            clients: Clients::before(),
            look: TrafficLook::new(now_ms, run.terms.before()),
            begun_ms: now_ms,
            stepped_ms: now_ms,
            step: 0,
            share: run.terms.shares.first().copied().unwrap_or_default(),
            horizon: Horizon::new(&CanaryQuestion::default()),
            looks: 0,
            run,
        }
    }

    /// Takes the notes of workers until the canary has ended.
    fn live(&mut self, notes: &Receiver<Vec<Note>>, hands: &Hands) {
        let (mut told_ms, mut told, mut shown_ms) = (0, None, 0);
        loop {
            match notes.recv_timeout(EVERY) {
                Ok(block) => self.take(block),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // All blocks that wait are one look.
            notes.try_iter().take(BLOCKS_MAX).for_each(|block| self.take(block));
            let now = clock::unix_ms();
            // There may be many windows, and many blocks a second.
            if now.abs_diff(shown_ms) >= EVERY.as_millis() as u64 {
                for closed in self.clients.close(now) {
                    self.judge(&closed);
                }
                self.show(now);
                shown_ms = now;
            }
            self.decide(now, hands);
            let standing = self.run.standing();
            if told != Some(standing) || now.saturating_sub(told_ms) >= TELL_EVERY_MS {
                (hands.tell)(&self.run.state());
                (told, told_ms) = (Some(standing), now);
            }
            if !self.run.is_on() {
                // A promotion has put another configuration in force already.
                return (hands.leave)(self.run.generation);
            }
        }
    }

    fn take(&mut self, block: Vec<Note>) {
        let now = clock::unix_ms();
        // Notes of the look may come late: their clients had another coin.
        let is_before = self.run.is_before();
        for note in block.into_iter().filter(|note| note.is_before == is_before) {
            if let Some(closed) = self.clients.take(note, now) {
                self.judge(&closed);
            }
        }
    }

    fn judge(&mut self, closed: &ClosedWindow) {
        self.judge.take(&closed.outcome);
        if self.run.is_before() {
            self.look.take(closed);
        }
    }

    fn decide(&mut self, now: u64, hands: &Hands) {
        match self.run.standing().0 {
            CanaryPhase::Running => {}
            CanaryPhase::Looking | CanaryPhase::Rehearsing => return self.before(now, hands),
            _ => return,
        }
        let judgement = self.judgement(now);
        let run = self.run.clone();
        if let Judgement::Harm(harm) = judgement {
            self.show(now);
            blame(&mut lock(&run.state), &harm);
            return run.end(CanaryPhase::RolledBack, CanaryReason::Harm);
        }
        let is_led = run.is_led.load(Ordering::Relaxed);
        let next = run.terms.shares.get(self.step + 1).copied().filter(|_| !is_led);
        if judgement == Judgement::NoHarm && run.terms.promotes && next.is_none() {
            self.show(now);
            return run.go(CanaryPhase::Promoting, CanaryReason::Proof);
        }
        if run.terms.longest().is_some_and(|lasts| now.saturating_sub(self.begun_ms) >= lasts.as_millis() as u64) {
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
            if is_led {
                self.plan(&[share]);
            }
        }
    }

    /// The judgement now; with planned looks, that of the look that is due.
    fn judgement(&mut self, now: u64) -> Judgement {
        let Some(lasts) = self.run.terms.fixed else { return self.judge.judgement() };
        let due_ms = (lasts * (self.looks + 1) / LOOKS).as_millis() as u64;
        if now.saturating_sub(self.begun_ms) < due_ms {
            return self.judge.gross();
        }
        self.looks += 1;
        let clients = self.judge.tallies().iter().map(|tally| tally.clients).sum();
        self.horizon.next(f64::from(self.looks) / f64::from(LOOKS), clients).judge(&self.judge, self.share)
    }

    /// Ends the look and the rehearsal when their time is over: the judge forgets what it has seen, and a share of the clients
    /// gets the new configuration, if the traffic can answer the question.
    fn before(&mut self, now: u64, hands: &Hands) {
        let run = self.run.clone();
        if run.terms.rehearsal.is_some()
            && let Judgement::Harm(_) = self.judge.judgement()
        {
            return run.end(CanaryPhase::RolledBack, CanaryReason::Noise);
        }
        if !self.look.is_over(now) {
            return;
        }
        self.clients.close_all(now).iter().for_each(|closed| self.look.take(closed));
        let look = self.look.end(&self.clients, run.without_key.load(Ordering::Relaxed), &run.terms);
        let refusal = refusal(&look, self.clients.largest());
        {
            let mut state = lock(&run.state);
            (state.look, state.largest_client) = (Some(look), self.clients.largest());
        }
        self.plan(&run.terms.shares);
        let state = run.state();
        if let Some(said) = say::announcement(&state) {
            log::global(Level::Notice, format_args!("canary: {}", said.en()));
        }
        match refusal {
            Some(reason) if !run.terms.anyway => return run.end(CanaryPhase::Undecided, reason),
            Some(reason) => {
                log::global(Level::Warn, format_args!("canary: {}", say::doubt(&state, reason).en()));
            }
            None => {}
        }
        self.begin(now, hands);
    }

    fn begin(&mut self, now: u64, hands: &Hands) {
        let run = &self.run;
        {
            let mut state = lock(&run.state);
            // An order may have ended it meanwhile.
            if !state.phase.is_before() {
                return;
            }
            state.phase = CanaryPhase::Running;
        }
        (self.judge, self.clients) =
            (CanaryJudge::new(CanaryQuestion::default()), Clients::with(self.clients.known().clone()));
        (self.begun_ms, self.stepped_ms) = (now, now);
        run.is_before.store(false, Ordering::Relaxed);
        run.forget_early();
        run.lost.store(0, Ordering::Relaxed);
        run.without_key.store(0, Ordering::Relaxed);
        // They get another coin.
        run.workers.store(0, Ordering::Relaxed);
        (hands.split)();
        run.log_share();
        let mut state = lock(&run.state);
        state.sentence = say::sentence(&state).en().to_owned();
        run.tell(&state);
    }

    /// Says how many clients each question needs with these shares.
    fn plan(&self, shares: &[f64]) {
        let needs = self.look.needs(shares, &self.run.terms);
        let mut state = lock(&self.run.state);
        state.clients_needed = needs.first().and_then(|need| need.clients);
        if let Some(look) = &mut state.look {
            look.needs = needs;
        }
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
        state.looks = run.terms.fixed.map(|_| self.looks);
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
        // Evidence between planned looks is none.
        let judgement = if run.terms.fixed.is_some() { judge.gross() } else { judge.judgement() };
        if let Judgement::Harm(harm) = judgement {
            blame(&mut state, &harm);
        }
        state.largest_client = clients.largest();
        state.clients_skipped = clients.skipped;
        state.requests_lost = run.lost.load(Ordering::Relaxed);
        state.workers = run.workers.load(Ordering::Relaxed);
        state.requests_without_key = run.without_key.load(Ordering::Relaxed);
        state.sentence = say::sentence(&state).en().to_owned();
    }
}

/// Names the harm.
fn blame(state: &mut Canary, harm: &Harm) {
    state.harm = Some(name(harm.aspect).to_owned());
    state.evidence = harm.wealth.min(EVIDENCE_MAX);
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
    use std::sync::atomic::AtomicU64;

    use super::super::tests::{is, run};
    use super::*;
    use weir_judge::outcome::ClientOutcome;

    use crate::canary::terms::{CanaryOrder, Terms};

    /// Hands that note that they split.
    fn hands(splits: &Arc<AtomicU64>) -> Hands {
        let splits = splits.clone();
        let split = move || {
            splits.fetch_add(1, Ordering::Relaxed);
        };
        Hands { split: Box::new(split), leave: Box::new(|_| ()), tell: Box::new(|_| ()) }
    }

    #[test]
    fn a_ramp_goes_on_until_an_order_leads_it() {
        let (run, _waiting) = run(None);
        let (mut mind, splits) = (Mind::new(run.clone(), 0), Arc::default());
        mind.decide(0, &hands(&splits));
        assert!(is(&run, CanaryPhase::Running, CanaryReason::None) && splits.load(Ordering::Relaxed) == 1);
        mind.decide(1, &hands(&splits));
        assert_eq!((share_of(run.coin.limit()), mind.step), (0.5, 1));
        run.obey(CanaryOrder::Share(0.25)).unwrap();
        mind.decide(2, &hands(&splits));
        mind.show(3);
        assert_eq!((run.state().share, run.state().next_shares), (0.25, vec![]));
        assert!(run.obey(CanaryOrder::Share(1.0)).is_err_and(|why| why.contains("from 0.1% to 99%")));
    }

    #[test]
    fn notes_of_the_look_are_none_of_the_canary() {
        let (run, _waiting) = run(None);
        let (mut mind, splits) = (Mind::new(run.clone(), 0), Arc::default());
        mind.decide(0, &hands(&splits));
        let failed = |is_before| Note { is_before, limit: u64::MAX / 10, has_failed: true, ..Note::default() };
        mind.take(vec![failed(true), Note { client: 1, ..failed(true) }]);
        assert_eq!(mind.judge.tallies().map(|tally| tally.clients), [0, 0]);
        mind.take(vec![Note { is_new: true, ..failed(false) }]);
        assert_eq!(mind.judge.tallies().map(|tally| tally.clients), [0, 1]);
    }

    #[test]
    fn planned_looks_judge_when_they_are_due() {
        let terms = Terms { look: Duration::ZERO, fixed: Some(Duration::from_millis(500)), ..Terms::example() };
        let (run, _waiting) = CanaryRun::new(terms, 2).unwrap();
        let (mut mind, splits) = (Mind::new(run.clone(), 0), Arc::default());
        mind.decide(0, &hands(&splits));
        assert!(run.obey(CanaryOrder::Share(0.5)).is_err_and(|why| why.contains("planned")));
        // Of 400 clients, twice as many of the new configuration as of the old one fail: no gross harm.
        for client in 0..400u32 {
            let is_new = client % 10 == 0;
            let failed = u32::from(client % if is_new { 20 } else { 4 } == 0);
            mind.judge.take(&ClientOutcome { is_new, share: 0.1, requests: 1, failed, ..ClientOutcome::default() });
        }
        for (now, looks) in [(99, 0), (100, 1), (101, 1), (450, 2), (451, 3), (452, 4)] {
            mind.decide(now, &hands(&splits));
            mind.show(now);
            assert_eq!((run.state().looks, run.is_on()), (Some(looks), true), "{now}");
        }
        assert!(run.state().sentence.contains("4 of 5 planned looks"), "{}", run.state().sentence);
        mind.decide(500, &hands(&splits));
        assert!(is(&run, CanaryPhase::Undecided, CanaryReason::Time) && mind.looks == 5);
    }

    #[test]
    fn a_rehearsal_ends_in_time_or_with_harm_and_has_a_coin_of_its_own() {
        let (one, _waiting) = run(Some(Duration::from_millis(10)));
        let (mut of, splits) = (Mind::new(one.clone(), 0), Arc::default());
        of.decide(9, &hands(&splits));
        assert!(is(&one, CanaryPhase::Rehearsing, CanaryReason::None) && splits.load(Ordering::Relaxed) == 0);
        assert!(one.is_before());
        of.decide(10, &hands(&splits));
        assert!(is(&one, CanaryPhase::Running, CanaryReason::None) && splits.load(Ordering::Relaxed) == 1);
        assert!(!one.is_before());
        let (two, _waiting) = run(Some(Duration::from_millis(10)));
        let mut of = Mind::new(two.clone(), 0);
        let failed = |client| Note {
            client,
            limit: u64::MAX / 10,
            is_new: true,
            is_before: true,
            has_failed: true,
            ..Note::default()
        };
        of.take((0..9).map(failed).collect());
        of.decide(9, &hands(&splits));
        assert!(is(&two, CanaryPhase::RolledBack, CanaryReason::Noise) && splits.load(Ordering::Relaxed) == 1);
    }
}
