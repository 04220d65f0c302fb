//! The experiment: the load as asked, half of that load, the knee between them, and the squeezed suspects.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::asked::Why;
use super::assign;
use super::blocks::{AGAIN_MAX, Ended, Lab, gate, write_overlays};
use super::proving;
use super::quiet;
use super::rule::{Segment, Tier};
use super::rules::{self, Finding};
use super::say;
use super::signals::Signals;
use crate::ab::{Tell, environment_of, side_json};
use crate::ask::{EdgeProgram, Load, allowed_cpus};
use crate::metric::digits;
use crate::said::{Said, say};
use crate::stack::{self, LabDirectory, Spec};
use crate::store;
use crate::texts;
use crate::watch::probe::node;
use crate::watch::{WatchPlan, tap};

/// Half of the load fails as often as all of it if its share of good answers is at most this many times as large.
const ALIKE: f64 = 1.15;
/// If fewer of the offered requests than this part get a good answer, the rate was not reached.
const REACHED_MIN: f64 = 0.99;
/// A load that did not hold is nearly answered from this part on.
const NEARLY: f64 = 0.9;
/// If more requests than this part fail, something is saturated.
const FAILED_MAX: f64 = 0.001;
/// Half of the connections give at least this part of half of the answers: blocks of undisturbed stacks differ by less
/// than a fifth.
const HALF_LEAST: f64 = 0.8;
/// For a closed loop: if half the connections give less than this part of the answers, the loop is not saturated.
const SCALES: f64 = 0.62;
/// Most steps of the search for the knee.
const STEPS_MAX: usize = 6;
/// The search ends when the ratio of its two ends is at most this.
const BRACKET: f64 = 1.05;
/// The part of the knee at which suspects are squeezed.
const AT_KNEE: f64 = 0.95;
/// Lines to print before the first block: whether a block has enough requests, and how long this many blocks may
/// take. The error says that the blocks cannot answer the question.
fn outlook(it: &Why, most: usize) -> Result<Vec<Said>, Said> {
    let quantile = it.objective.map(|objective| objective.quantile);
    let known = crate::outlook::of_why(&it.ask, quantile, it.is_proving);
    let mut lines = known?;
    lines.extend(it.long.map(crate::outlook::long_block));
    lines.push(crate::outlook::duration(&it.ask, (2, most)));
    lines.push(say!(RUN_AGAIN, AGAIN_MAX, it.trying.outlook(&it.ask)));
    Ok(lines)
}

/// Runs the experiment and returns the run as it is stored. The error is for the user.
pub fn run(it: &Why, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Value, Said> {
    stack::sweep().iter().for_each(|line| tell.tell(line));
    if !it.ask.is_isolated {
        tell.tell(&say!(NO_ROOT));
    }
    let proving = if it.is_proving { proving::blocks_max(it.rounds) } else { 0 };
    let most = 2 + STEPS_MAX + proving + it.trying.blocks_max(&it.ask);
    outlook(it, most)?.iter().for_each(|line| tell.tell(line));
    let stack = if it.lab.is_none() { Some(it.ask.stack(&it.side)?) } else { None };
    let (id, started_ms) = (store::new_id(), say::now_ms());
    let mut lab =
        Lab { it, stack, place: LabDirectory::new()?, blocks: 0, stop, tell, id: id.clone(), length: None, cpus: None };
    let outcome = match lab.experiment() {
        Ok(outcome) => outcome,
        Err(Ended::Broken(error)) => return Err(error),
        Err(Ended::Stopped) => {
            json!({"verdict": say::verdict("no verdict", &say!(NO_VERDICT, say!(STOPPED)), None)})
        }
    };
    let mut run = json!({
        "version": 1,
        "id": id,
        "kind": "why",
        "started_ms": started_ms,
        "ended_ms": say::now_ms(),
        "seed": it.seed,
        "asked": it.ask.to_json(),
        "long_s": it.long.map(|long| long.as_secs_f64()),
        "load": it.ask.load_in_words(),
        "load_said": it.ask.load_said(),
        "stack": it.lab.as_ref().map(|lab| json!({"lab": lab.name, "variant": lab.variant.name})),
        "before": side_json(&it.side),
        "objective": it.objective.map(|objective| objective.in_words()),
        "objective_said": it.objective.map(|objective| objective.said()),
        "environment": environment_of(&it.side, &it.side),
        "is_interrupted": stop.load(Ordering::Relaxed),
    });
    if let (Some(run), Value::Object(outcome)) = (run.as_object_mut(), outcome) {
        run.extend(outcome);
    }
    Ok(run)
}

impl Lab<'_> {
    fn experiment(&mut self) -> Result<Value, Ended> {
        let load = self.it.ask.load.clone();
        self.length = self.it.long;
        let (mut full, mut spec) = self.step("the load as asked", &load)?;
        self.length = None;
        let mut facts = say::EndFacts::default();
        // A long block is not repeated for other CPUs.
        if self.it.long.is_none()
            && let Some(again) = self.reassigned(&mut facts, &full, &load)?
        {
            (full, spec) = again;
        }
        facts.full = full.clone();
        if let Some(why) = gate(&full) {
            return Ok(say::no_verdict(&facts, &why));
        }
        facts.findings = rules::find(&full, None);
        if rules::is_policy(&facts.findings) {
            // Requests that a policy refused never reached any other resource that may be full.
            facts.is_saturated = true;
            return Ok(say::outcome(&facts, Some(self.it)));
        }
        let is_enough = self.it.long.is_some() && !full.load.is_closed && !self.is_saturated(&full, None);
        let half = match halved(&load).filter(|_| !is_enough) {
            Some(half) => Some(self.half_of(&full, &half)?),
            None => None,
        };
        facts.is_saturated = self.is_saturated(&full, half.as_ref());
        let grew = half.as_ref().map(|half| growth(half, &full));
        facts.findings = rules::find(&full, grew.as_deref());
        // A closed loop sends as fast as it is answered. If a resource is full then, the answers wait for it, even if
        // the noise hides it in their number.
        let is_full = |finding: &Finding| !matches!(finding.rule.tier, Tier::Waste | Tier::Rest);
        facts.is_saturated |= full.load.is_closed && facts.findings.iter().any(is_full);
        if !facts.is_saturated {
            facts.findings.retain(|finding| finding.rule.tier != Tier::Rest);
        }
        facts.grew = grew;
        facts.half = half;
        let mut proving = load.clone();
        if facts.is_saturated && !is_answered(&facts.findings) {
            self.knee(&mut facts, &mut proving)?;
        }
        if let Some(why) = &facts.contradiction {
            return Ok(say::no_verdict(&facts, why));
        }
        if self.it.is_proving && facts.is_saturated && self.it.ask.is_isolated {
            self.prove(&mut facts, &proving, &spec)?;
        }
        if let Some(lead) = say::lead(&facts) {
            self.attempt(&mut facts, lead)?;
        }
        Ok(say::outcome(&facts, Some(self.it)))
    }

    /// Measures half of the load, and measures it again if other work disturbed it.
    fn half_of(&mut self, full: &Signals, load: &Load) -> Result<Signals, Ended> {
        let half = self.step("half of it", load)?.0;
        if !was_disturbed(full, &half) {
            return Ok(half);
        }
        let again = self.step("half of the load, once more", load)?.0;
        Ok(if gate(&again).is_none() && again.goodput() > half.goodput() { again } else { half })
    }

    /// Runs the block again with other CPUs, if two parts of the stack were in each other's way and another
    /// assignment has room. `facts.cpus` describes the sharing in any case.
    fn reassigned(
        &mut self,
        facts: &mut say::EndFacts,
        full: &Signals,
        load: &Load,
    ) -> Result<Option<(Signals, Spec)>, Ended> {
        let now = self.it.ask.cpus.clone();
        // An experiment sets its own CPUs. Its processes may not be bound to CPUs.
        if self.it.lab.is_some() {
            return Ok(None);
        }
        facts.cpus = assign::in_words(&now, full);
        let other = match assign::better(&now, &allowed_cpus(), full) {
            Ok(None) => return Ok(None),
            Ok(Some(other)) if !self.it.has_own_cpus => other,
            Ok(Some(_)) => {
                facts.cpus = facts.cpus.take().map(|said| say!(THEY_COMPETE, said));
                return Ok(None);
            }
            Err(why) => {
                facts.cpus = Some(why);
                return Ok(None);
            }
        };
        self.cpus = Some(other.clone());
        self.tell.line("two programs on one CPU competed: the lab repeats the load with other CPUs");
        let again = self.step("the given load, with other CPUs", load)?;
        if gate(&again.0).is_some() && gate(full).is_none() {
            self.cpus = None;
            return Ok(None);
        }
        facts.cpus = assign::in_words(&other, &again.0).map(|said| say!(LAB_CHOSE_BECAUSE_FIRST, said));
        facts.chosen_cpus = Some(other);
        Ok(Some(again))
    }

    /// Whether something is saturated.
    fn is_saturated(&self, full: &Signals, half: Option<&Signals>) -> bool {
        let failed = full.failed_share() > FAILED_MAX;
        let late = full.reached() < REACHED_MIN;
        let slow = self.it.objective.is_some_and(|objective| {
            let at = ["mean", "p50", "p95", "p99", "max"].iter().position(|name| *name == objective.quantile);
            at.and_then(|at| full.load.ms.get(at)).is_some_and(|ms| *ms > objective.limit_ms)
        });
        // A closed loop asks for all there is. It is saturated if more connections give no more answers.
        let flat = full.load.is_closed && half.is_none_or(|half| half.goodput() > full.goodput() * SCALES);
        failed || late || slow || flat || !full.load.incomplete.is_empty() || !quiet::unrest(full).is_empty()
    }

    /// The knee: the largest rate that is answered, between half of the rate that was asked for and all of it. If
    /// there is a knee, the suspects are judged and squeezed there.
    fn knee(&mut self, facts: &mut say::EndFacts, proving: &mut Load) -> Result<(), Ended> {
        let Load::Path { path, connections, rate: Some(asked) } = proving.clone() else {
            facts.knee = facts.full.load.is_closed.then(|| facts.full.goodput());
            return Ok(());
        };
        let holds = |lab: &Lab<'_>, signals: &Signals| !lab.is_saturated(signals, None);
        let mut half_holds = facts.half.as_ref().is_some_and(|half| holds(self, half));
        if !half_holds && facts.half.as_ref().is_some_and(|half| self.is_nearly(half)) {
            // Almost all of it was answered. That may have been a slow moment, so measure it again before looking for
            // a knee below it.
            let load = Load::Path { path: path.clone(), connections, rate: Some(asked / 2.0) };
            let (again, _) = self.step("half of the load, once more", &load)?;
            if gate(&again).is_none() {
                half_holds = holds(self, &again);
                facts.half = Some(again);
            }
        }
        if !half_holds && facts.half.as_ref().is_some_and(|half| fails_alike(&facts.full, half)) {
            return Ok(());
        }
        let (mut low, mut high) = if half_holds { (asked / 2.0, asked) } else { (asked / 16.0, asked / 2.0) };
        let (mut at_knee, mut is_measured) = (None, half_holds);
        for _ in 0..STEPS_MAX {
            if high / low <= BRACKET {
                break;
            }
            let rate = ((low * high).sqrt() * 10.0).round() / 10.0;
            let step = Load::Path { path: path.clone(), connections, rate: Some(rate) };
            let (signals, _) = self.step(&format!("{}/s", digits(rate)), &step)?;
            if gate(&signals).is_some() {
                // A spoiled step does not move the ends.
                break;
            }
            let passed = holds(self, &signals);
            facts.steps.push((rate, passed));
            is_measured |= passed;
            if passed { low = rate } else { (high, at_knee) = (rate, Some(signals)) }
        }
        facts.knee = knee_of(low, is_measured);
        // If no rate held, the smallest rate that failed is all that is known.
        facts.no_knee_above = facts.knee.is_none().then_some(high);
        let half = facts.half.as_ref().filter(|half| self.is_nearly(half)).map_or(0.0, Signals::goodput);
        facts.contradiction = contradiction(facts.knee.unwrap_or(high), half);
        // A resource that is full at the smallest failing rate was full first. A resource that fills up only beyond
        // that rate is a consequence.
        if let Some(at_knee) = at_knee {
            let grew = facts.half.as_ref().filter(|_| half_holds).map(|half| growth(half, &at_knee));
            let there = rules::find(&at_knee, grew.as_deref());
            if !there.is_empty() {
                facts.findings = with_asked_evidence(there, &facts.full, high);
            }
        }
        let low = facts.knee.unwrap_or(high);
        *proving = Load::Path { path, connections, rate: Some((low * AT_KNEE * 10.0).round() / 10.0) };
        Ok(())
    }

    /// Nothing failed and nearly all of it was answered: it missed the mark only by little. With an objective, the
    /// block may still be too slow, so this is false.
    fn is_nearly(&self, half: &Signals) -> bool {
        self.it.objective.is_none() && half.failed_share() <= FAILED_MAX && half.reached() >= NEARLY
    }

    /// Runs a watched block and returns its signals. Runs it again while it is spoiled.
    fn step(&mut self, what: &str, load: &Load) -> Result<(Signals, Spec), Ended> {
        let mut attempt = 0;
        loop {
            self.tell.progress(self.blocks, 2 + STEPS_MAX, what);
            let (mut spec, dir) = self.spec(load)?;
            if self.it.ask.is_isolated {
                let is_weir = self.it.side.edge == EdgeProgram::Weir;
                let log = dir.join("edge.log");
                let files = tap::tapped(&self.it.side.tree, is_weir, &log, &[]).map_err(Ended::Broken)?;
                spec.overlays = write_overlays(&dir, &files).map_err(Ended::Broken)?;
                spec.watch = Some(WatchPlan { is_weir, at: tap::ACCOUNT.into(), log, ..WatchPlan::default() });
            } else {
                spec.watch = Some(WatchPlan::default());
            }
            if let Some(plan) = &mut spec.watch {
                plan.dir = dir.clone();
                plan.probes = self.it.probes.clone();
                plan.inside = self.it.inside;
            }
            if self.it.probes.iter().any(|probe| probe.kind == "node") {
                let env = node::prepare(&dir).map_err(|why| Ended::Broken(why.into()))?;
                let others = spec.processes.iter_mut().filter(|process| process.name != spec.edge);
                others.for_each(|process| process.env.extend(env.clone()));
            }
            let signals = self.block(&spec, load)?;
            self.tell.line(&format!(
                "{what}: {}/s answered, {} failed, p95 {} ms",
                digits(signals.goodput()),
                signals.failed(),
                digits(signals.load.ms[2])
            ));
            let spoiled = gate(&signals);
            if spoiled.is_none() || attempt >= AGAIN_MAX {
                return Ok((signals, spec));
            }
            self.tell.line(&format!("{what}: again: {}", spoiled.unwrap_or_default()));
            attempt += 1;
        }
    }
}

/// Whether half of the connections of a closed loop gave much less than half of the answers, although each answer has
/// more of every resource.
fn was_disturbed(full: &Signals, half: &Signals) -> bool {
    full.load.is_closed && half.goodput() < HALF_LEAST * full.goodput() / 2.0
}

/// Whether half of the load fails as often as all of it. Then the rate is not the cause, and no rate is a knee. Without any
/// good answer this cannot be known: half of the load may be too much as well.
fn fails_alike(full: &Signals, half: &Signals) -> bool {
    let good = |s: &Signals| s.load.well as f64 / s.load.sent.max(1) as f64;
    let both_fail = full.failed_share() > FAILED_MAX && half.failed_share() > FAILED_MAX;
    both_fail && full.load.well > 0 && good(half) <= good(full) * ALIKE
}

/// Whether errors have named the limit, so that no search for a knee tells more: a policy, a limit that was met, or a
/// rule that explains failures and no latency.
fn is_answered(findings: &[Finding]) -> bool {
    findings.first().is_some_and(|finding| {
        let is_of_errors = finding.rule.tier == Tier::Rest && finding.found.explains.is_empty();
        matches!(finding.rule.tier, Tier::Policy | Tier::Limit) || is_of_errors
    })
}

/// The suspects of the smallest rate that failed, with the evidence of the load that was asked for. A suspect that only
/// the smaller rate shows keeps its evidence, and that rate is named.
fn with_asked_evidence(there: Vec<Finding>, full: &Signals, rate: f64) -> Vec<Finding> {
    let asked = |finding: Finding| {
        let found = match (finding.rule.check)(full) {
            Some(found) if found.subject == finding.found.subject => found,
            _ => {
                let mut found = finding.found;
                found.evidence.insert(0, (texts::LABEL_MEASURED, say!(AT_SMALLEST_RATE, digits(rate))));
                found
            }
        };
        Finding { found, ..finding }
    };
    there.into_iter().map(asked).collect()
}

/// The largest rate that held, if a block held at any rate. Until then, the lower end of the search is a guess.
fn knee_of(low: f64, is_measured: bool) -> Option<f64> {
    is_measured.then_some(low)
}

/// A contradiction: the knee gives fewer answers than a block that did not hold, by more than a tenth.
fn contradiction(knee: f64, half: f64) -> Option<Said> {
    (knee < half * NEARLY).then(|| say!(MEASUREMENTS_CONTRADICT_OTHER_NO, digits(knee), digits(half)))
}

/// Half of a load. A script cannot be halved.
fn halved(load: &Load) -> Option<Load> {
    match load {
        Load::Path { path, connections, rate: Some(rate) } => {
            Some(Load::Path { path: path.clone(), connections: *connections, rate: Some(rate / 2.0) })
        }
        Load::Path { path, connections, rate: None } if *connections >= 2 => {
            Some(Load::Path { path: path.clone(), connections: connections / 2, rate: None })
        }
        Load::Path { .. } | Load::Script { .. } => None,
    }
}

/// The growth of each part of a request's way, as shares of all growth. It uses means, because only means add up.
pub(super) fn growth(half: &Signals, full: &Signals) -> Vec<(Segment, f64)> {
    let grown: Vec<(Segment, f64)> =
        Segment::ALL.iter().map(|segment| (*segment, (segment.ms(full) - segment.ms(half)).max(0.0))).collect();
    let all: f64 = grown.iter().map(|(_, ms)| ms).sum::<f64>().max(1e-9);
    grown.into_iter().map(|(segment, ms)| (segment, ms / all)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ask::Ask;
    use weir_words::Language;

    #[test]
    fn what_is_known_beforehand_is_in_the_language_of_the_run() {
        let it = Why::of_tests();
        let lines = outlook(&it, 8).unwrap();
        let is_korean = |text: &str| text.chars().any(|c| ('가'..='힣').contains(&c));
        for line in &lines {
            assert!(is_korean(line.say(Language::Korean)) && !is_korean(line.en()), "{line:?}");
        }
        assert!(lines.iter().any(|line| line.say(Language::Korean).starts_with("예상 소요 시간: 약 ")), "{lines:?}");
        let few = Load::Path { path: "/".to_owned(), connections: 8, rate: Some(1.0) };
        let it = Why { ask: Ask { load: few, ..it.ask }, is_proving: true, ..Why::of_tests() };
        assert!(outlook(&it, 8).is_err_and(|why| why.say(Language::Korean).contains("1건이 1 %를 넘습니다")));
        assert!(outlook(&it, 8).is_err_and(|why| why.contains("more than 1 %")));
    }

    #[test]
    fn failures_that_no_rate_causes_are_told_from_an_overload() {
        let of = |sent: u64, well: u64| {
            let mut s = Signals::quiet();
            (s.load.sent, s.load.well) = (sent, well);
            s.load.errors.insert("503".into(), sent - well);
            s
        };
        // An application that fails one request of six, at any rate.
        assert!(fails_alike(&of(300, 250), &of(150, 127)));
        // No answer is good: half of the load may be an overload too.
        assert!(!fails_alike(&of(300, 0), &of(150, 0)));
        // An overload: 60 answers a second, whatever is asked for.
        assert!(!fails_alike(&of(600, 60), &of(300, 60)));
        // Half of the load is answered.
        assert!(!fails_alike(&of(300, 250), &of(150, 150)));
    }

    /// 16 connections gave 151 a second and 8 of them 58, in a moment in which other programs used both CPUs.
    #[test]
    fn half_of_a_closed_loop_gives_about_half() {
        let of = |is_closed, good: u64| {
            let mut s = Signals::quiet();
            s.load.is_closed = is_closed;
            s.load.well = good * s.seconds as u64;
            s
        };
        assert!(was_disturbed(&of(true, 151), &of(true, 58)));
        assert!(!was_disturbed(&of(true, 151), &of(true, 74)) && !was_disturbed(&of(true, 151), &of(true, 150)));
        assert!(!was_disturbed(&of(false, 151), &of(false, 10)));
    }

    /// Half the load gave 280 answers a second, and the knee is 36 a second: one of the two is wrong.
    #[test]
    fn a_knee_below_what_half_the_load_gave_is_no_knee() {
        assert!(
            contradiction(36.0, 280.0)
                .is_some_and(|why| why.contains("no block above 36.0/s held") && why.contains("280/s"))
        );
        assert_eq!(contradiction(270.0, 280.0), None);
        // A half load that failed gives nothing to compare with.
        assert_eq!(contradiction(36.0, 0.0), None);
    }

    fn full_application(cpu: f64) -> Signals {
        let mut s = Signals::quiet();
        (s.processes[1].cpus, s.processes[1].cpu) = (2.0, cpu);
        s.processes[1].threads = vec![(0.6, 0.0), (0.5, 0.0), (0.4, 0.0), (0.4, 0.0)];
        s
    }

    /// The search ends at a rate that nobody asked for: its figures are not those of the load.
    #[test]
    fn evidence_is_of_the_load_that_was_asked_for() {
        let (asked, at_knee) = (full_application(1.96), full_application(1.82));
        let there = rules::find(&at_knee, None);
        assert_eq!((there[0].rule.id, there[0].found.evidence[0].1.contains("1.82")), ("B20", true));
        let found = with_asked_evidence(there.clone(), &asked, 120.0);
        assert!(found[0].found.evidence[0].1.contains("1.96 CPUs used"), "{:?}", found[0].found);
        // The asked load does not show it.
        let found = with_asked_evidence(there, &Signals::quiet(), 120.0);
        assert!(found[0].found.evidence[0].1.starts_with("at 120/s"), "{:?}", found[0].found);
        assert!(found[0].found.evidence[1].1.contains("1.82 CPUs used"));
    }

    #[test]
    fn what_errors_have_named_needs_no_search() {
        let of = |id: &str| {
            let mut s = Signals::quiet();
            let rule = rules::all().find(|rule| rule.id == id).unwrap();
            (rule.fires)(&mut s);
            is_answered(&rules::find(&s, None))
        };
        assert!(of("B42") && of("P02") && of("P08"), "{} {} {}", of("B42"), of("P02"), of("P08"));
        assert!(!of("B20") && !of("B62") && !is_answered(&[]));
    }

    #[test]
    fn what_grew_is_told_in_shares() {
        let half = Signals::quiet();
        let mut full = Signals::quiet();
        full.edge.steps.insert("wait".into(), (2000, 24_000_000));
        full.load.ms[0] = 13.0;
        let grew = growth(&half, &full);
        let of = |segment: Segment| grew.iter().find(|(known, _)| *known == segment).map_or(0.0, |(_, share)| *share);
        assert!((of(Segment::Wait) - 1.0).abs() < 1e-6, "{grew:?}");
        assert!((Segment::Wait.ms(&full) - 12.0).abs() < 1e-9);
    }
}
