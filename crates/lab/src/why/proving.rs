//! The blocks of a proof. Blocks with a squeezed resource alternate with unchanged blocks. Then the lab gives more of
//! each resource that the answers shrank with.

use super::arm::{Arm, Elasticity, MORE};
use super::blocks::{AGAIN_MAX, Ended, Lab, gate, write_overlays};
use super::prove::{self, Proof};
use super::say::EndFacts;
use super::{widen, written};
use crate::ask::{Load, allowed_cpus};
use crate::said::{Said, say};
use crate::stack::Spec;
use crate::watch::tap;

/// Good answers a second for each round of each arm: unchanged, and with the arm.
type Rounds = Vec<Vec<(f64, f64)>>;

/// The most blocks of a proof. A round has one unchanged block and one for each arm. A second round has one unchanged
/// block and one for each suspect.
pub fn blocks_max(rounds: usize) -> usize {
    rounds * (2 + 2 * prove::ARMS_MAX)
}

impl Lab<'_> {
    /// Squeezes the suspects, gives more of those that the answers shrink with, and judges both results.
    pub(super) fn prove(&mut self, facts: &mut EndFacts, load: &Load, spec: &Spec) -> Result<(), Ended> {
        let arms = prove::arms(&facts.findings, &facts.full, spec);
        if arms.is_empty() {
            facts.unproved = Some(say!(LAB_CAN_SQUEEZE_NONE));
            return Ok(());
        }
        let Some(rounds) = self.rounds(facts, load, &arms, "squeezing")? else { return Ok(()) };
        let found = |(arm, rounds): (&Arm, &Vec<(f64, f64)>)| prove::elasticity(arm, rounds);
        facts.elasticities = arms.iter().zip(&rounds).filter_map(found).collect();
        let refused = self.give_more(facts, load, &arms)?;
        let proof = prove::judge(&facts.elasticities, &refused);
        // If blocks were spoiled, `facts.unproved` already says why.
        if let (Proof::Unclear(why), None) = (&proof, &facts.unproved) {
            facts.unproved = Some(why.clone());
        }
        facts.proof = Some(proof);
        Ok(())
    }

    /// Gives more of each suspect that the answers shrink with. Returns the suspects that cannot be given more, with
    /// the reasons.
    fn give_more(&mut self, facts: &mut EndFacts, load: &Load, arms: &[Arm]) -> Result<Vec<(usize, Said)>, Ended> {
        let allowed = allowed_cpus();
        let (mut larger, mut refused) = (Vec::new(), Vec::new());
        for arm in prove::shrinking(arms, &facts.elasticities).iter().filter(|arm| arm.to < arm.from) {
            match (widen::more(arm, &facts.full, &allowed), arm.finding) {
                (Ok(arm), _) => larger.push(arm),
                (Err(why), Some(finding)) => refused.push((finding, why)),
                (Err(_), None) => {}
            }
        }
        if larger.is_empty() {
            return Ok(refused);
        }
        let beyond = beyond(facts, load);
        let offered = match &beyond {
            Load::Path { rate, .. } => *rate,
            Load::Script { .. } => None,
        };
        let Some(rounds) = self.rounds(facts, &beyond, &larger, "giving more")? else { return Ok(refused) };
        for (arm, rounds) in larger.iter().zip(&rounds) {
            let needed = widen::needed(rounds, offered);
            facts.elasticities.extend(prove::elasticity(arm, rounds).map(|found| Elasticity { needed, ..found }));
        }
        Ok(refused)
    }

    /// The rounds of some arms. `None` if blocks were spoiled; `facts.unproved` then says so.
    fn rounds(&mut self, facts: &mut EndFacts, load: &Load, arms: &[Arm], what: &str) -> Result<Option<Rounds>, Ended> {
        let mut rounds: Rounds = vec![Vec::new(); arms.len()];
        for round in 0..self.it.rounds {
            // Every second round runs in reverse order, so that a drift within a round cancels out.
            let mut order: Vec<Option<usize>> = std::iter::once(None).chain((0..arms.len()).map(Some)).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            let mut good: Vec<(Option<usize>, f64)> = Vec::new();
            for which in order {
                let arm = which.and_then(|at| arms.get(at));
                let name = arm.map_or("as it is", |arm| arm.name.en());
                let (done, all) = (round * (arms.len() + 1) + good.len(), self.it.rounds * (arms.len() + 1));
                self.tell.progress(done, all, &format!("{what}: {name}"));
                match self.answers(load, arm)? {
                    Some(answers) => good.push((which, answers)),
                    None => {
                        facts.unproved = Some(say!(BLOCKS_PROOF_UNUSABLE_BECAUSE));
                        return Ok(None);
                    }
                }
            }
            let base = good.iter().find(|(which, _)| which.is_none()).map_or(0.0, |(_, answers)| *answers);
            for (which, answers) in good {
                if let Some(list) = which.and_then(|at| rounds.get_mut(at)) {
                    list.push((base, answers));
                }
            }
        }
        Ok(Some(rounds))
    }

    /// Good answers a second, unchanged or with an arm. `None` if three blocks in a row were spoiled.
    fn answers(&mut self, load: &Load, arm: Option<&Arm>) -> Result<Option<f64>, Ended> {
        for _ in 0..=AGAIN_MAX {
            let (mut spec, dir) = self.spec(load)?;
            // A warm-up would leave ports in TIME_WAIT, which the block then lacks.
            spec.warm = None;
            let has_file_limit = written::conf(&self.it.side.tree, false).worker_rlimit_nofile.is_some();
            let changes = arm.map(|arm| prove::squeeze(arm, &mut spec, has_file_limit)).unwrap_or_default();
            if let Some(arm) = arm {
                widen::files_for(arm, &mut spec, has_file_limit);
            }
            if !changes.is_empty() {
                let files = tap::changed(&self.it.side.tree, &changes).map_err(Ended::Broken)?;
                spec.overlays = write_overlays(&dir, &files).map_err(Ended::Broken)?;
            }
            let signals = self.block(&spec, load)?;
            if gate(&signals).is_none() {
                return Ok(Some(signals.goodput()));
            }
        }
        Ok(None)
    }
}

/// A load at which a gain can be seen. The suspects are squeezed at the knee, where every request is answered
/// already.
fn beyond(facts: &EndFacts, load: &Load) -> Load {
    match (load, facts.knee) {
        (Load::Path { path, connections, rate: Some(_) }, Some(knee)) => Load::Path {
            path: path.clone(),
            connections: *connections,
            rate: Some((knee * MORE * 10.0).round() / 10.0),
        },
        _ => load.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_given_where_more_is_asked_for() {
        let load = |rate| Load::Path { path: "/".to_owned(), connections: 8, rate };
        let at = |knee| EndFacts { knee, ..EndFacts::default() };
        assert_eq!(beyond(&at(Some(200.0)), &load(Some(190.0))), load(Some(300.0)));
        // Without a knee the load is already the one that was asked for. A closed loop already asks for all there is.
        assert_eq!(beyond(&at(None), &load(Some(190.0))), load(Some(190.0)));
        assert_eq!(beyond(&at(Some(200.0)), &load(None)), load(None));
        assert_eq!(blocks_max(6), 48);
    }
}
