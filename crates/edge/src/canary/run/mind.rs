//! The thread of a canary: the windows of its clients, its judge, and its decisions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use weir_http::hold::board::lock;
use weir_http::hold::split::share_of;
use weir_judge::judge::{CanaryJudge, CanaryQuestion, Judgement};
use weir_judge::outcome::Aspect;
use weir_judge::plan;
use weir_meter::live::{CanaryAspect, CanaryLane, CanaryPhase, CanaryReason};
use weir_net::clock;

use super::{BLOCKS_MAX, CanaryRun, Hands};
use crate::canary::clients::{Clients, Note};
use crate::canary::say;

/// How often windows are closed and the state is made.
const EVERY: Duration = Duration::from_millis(200);
/// How often the state is told.
const TELL_EVERY_MS: u64 = 1_000;
/// Clients of each configuration before a forecast.
const FEW_CLIENTS: u64 = 30;
/// Evidence beyond this is shown as this: JSON has no infinity.
const EVIDENCE_MAX: f64 = 1e12;

/// The thread of a canary.
pub struct Mind {
    run: Arc<CanaryRun>,
    judge: CanaryJudge,
    clients: Clients,
    begun_ms: u64,
    /// When the present share began.
    stepped_ms: u64,
    step: usize,
    share: f64,
}

impl Mind {
    /// The thread's part, before it begins.
    pub fn new(run: Arc<CanaryRun>, now_ms: u64) -> Mind {
        Mind {
            judge: CanaryJudge::new(CanaryQuestion::default()),
            clients: Clients::default(),
            begun_ms: now_ms,
            stepped_ms: now_ms,
            step: 0,
            share: run.terms.shares.first().copied().unwrap_or_default(),
            run,
        }
    }

    /// Takes the notes of workers until the canary has ended.
    pub fn live(&mut self, notes: &Receiver<Vec<Note>>, hands: &Hands) {
        let (mut told_ms, mut told) = (0, None);
        loop {
            match notes.recv_timeout(EVERY) {
                Ok(block) => self.take(block),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // All blocks that wait are one look.
            notes.try_iter().take(BLOCKS_MAX).for_each(|block| self.take(block));
            let now = clock::unix_ms();
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
        let now = clock::unix_ms();
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
    use std::sync::atomic::AtomicU64;

    use super::super::tests::{is, run};
    use super::*;
    use crate::canary::terms::CanaryOrder;

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
        let (mut of, splits) = (Mind::new(one.clone(), 0), Arc::default());
        of.decide(9, &hands(&splits));
        assert!(is(&one, CanaryPhase::Rehearsing, CanaryReason::None) && splits.load(Ordering::Relaxed) == 0);
        assert!(std::ptr::eq(one.coin(), &*one.rehearsal));
        of.decide(10, &hands(&splits));
        assert!(is(&one, CanaryPhase::Running, CanaryReason::None) && splits.load(Ordering::Relaxed) == 1);
        assert!(std::ptr::eq(one.coin(), &*one.coin));
        let (two, _waiting) = run(Some(Duration::from_millis(10)));
        let mut of = Mind::new(two.clone(), 0);
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
}
