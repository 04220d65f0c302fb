//! The settings of one run.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::good::GoodStatuses;
use super::signals::Pool;
use crate::ask::{Ask, Side};
use crate::capacity::Objective;
use crate::experiment::{Places, Variant};
use crate::said::{Said, say};
use crate::watch::inside::Way;
use crate::watch::probe::WantedProbe;

/// Least and most pairs of blocks. Fewer than 6 pairs have no exact interval at 95 %. More than 8 pairs take longer
/// than the answer is worth.
const PAIRS: (usize, usize) = (6, 8);
/// The time of a block beyond its load: the processes start and stop.
const START: Duration = Duration::from_millis(1500);

/// The settings of one run.
#[derive(Clone, Debug)]
pub struct Why {
    /// The configuration.
    pub side: Side,
    /// The settings that all blocks share.
    pub ask: Ask,
    /// The length of the first block, if it is to be a long one.
    pub long: Option<Duration>,
    /// A further condition beside that every request is answered.
    pub objective: Option<Objective>,
    /// The statuses that count as good.
    pub good: GoodStatuses,
    /// Squeeze the suspects.
    pub is_proving: bool,
    /// Whether the remedy is tried.
    pub trying: Trying,
    /// The directory of the runs. The copy with the remedy is written there too.
    pub store: PathBuf,
    /// The user chose the CPUs: choose no others.
    pub has_own_cpus: bool,
    /// Rounds of squeezing.
    pub rounds: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Parts of a block's spec that a test adds: hosts, processes, actions.
    pub inject: Value,
    /// Programs to probe, beside those that the lab finds itself.
    pub probes: Vec<WantedProbe>,
    /// Whether and how the lab observes the waits of threads.
    pub inside: Way,
    /// Pools of applications, by the environment variables that set their sizes.
    pub pools: Vec<Pool>,
    /// The stack of an experiment, instead of a stack made for the configuration.
    pub lab: Option<NamedVariant>,
}

/// A variant of an experiment; its stack is loaded and watched.
#[derive(Clone, Debug)]
pub struct NamedVariant {
    /// The experiment's name.
    pub name: String,
    /// The paths of the experiment.
    pub places: Places,
    /// The variant. The load of this run replaces the variant's load.
    pub variant: Variant,
}

/// Whether the lab tries a remedy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trying {
    /// The longest time that the try may take. Zero: no try.
    pub budget: Duration,
    /// The user asked for the try: the budget does not count.
    pub is_asked: bool,
}

impl Trying {
    /// The number of pairs of blocks that fit into the budget. The error says why there is no try.
    pub(super) fn pairs(self, ask: &Ask) -> Result<usize, Said> {
        let one = 2 * (ask.length() + ask.warm_up + START);
        let fit = (self.budget.as_secs_f64() / one.as_secs_f64().max(1e-3)) as usize;
        if fit >= PAIRS.0 || self.is_asked {
            return Ok(fit.clamp(PAIRS.0, PAIRS.1));
        }
        let (takes, budget) = ((one * PAIRS.0 as u32).as_secs_f64(), self.budget.as_secs_f64());
        Err(say!(PAIRS_BLOCKS_TAKE_BUDGET, PAIRS.0, format!("{takes:.0}"), format!("{budget:.0}")))
    }

    /// The line that announces the try before the first block.
    pub fn outlook(self, ask: &Ask) -> Said {
        match self.pairs(ask) {
            Ok(pairs) => {
                let time = 2 * (ask.length() + ask.warm_up + START) * pairs as u32;
                say!(TRIES_REMEDY, pairs, format!("{:.0}", time.as_secs_f64()))
            }
            Err(_) if self.budget.is_zero() => say!(TRIES_NOTHING),
            Err(why) => say!(TRIES_NOTHING_AS, why),
        }
    }

    /// The most blocks that the try takes.
    pub fn blocks_max(self, ask: &Ask) -> usize {
        self.pairs(ask).map_or(0, |pairs| 2 * pairs)
    }
}

#[cfg(test)]
impl Why {
    /// A run that is never executed.
    pub(super) fn of_tests() -> Why {
        Why {
            side: crate::ask::tests::side(),
            ask: crate::ask::tests::ask(),
            long: None,
            objective: None,
            good: GoodStatuses::default(),
            is_proving: false,
            trying: Trying::default(),
            store: PathBuf::new(),
            has_own_cpus: false,
            rounds: 6,
            seed: 1,
            inject: Value::Null,
            probes: Vec::new(),
            inside: Way::default(),
            pools: Vec::new(),
            lab: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use weir_words::Language;

    use super::*;

    #[test]
    fn the_time_it_takes_is_said_and_kept_to() {
        let ask = |seconds| Ask {
            block: Duration::from_secs(seconds),
            warm_up: Duration::from_secs(1),
            ..crate::ask::tests::ask()
        };
        let trying = Trying { budget: Duration::from_secs(180), is_asked: false };
        assert_eq!((trying.pairs(&ask(8)), trying.blocks_max(&ask(8))), (Ok(8), 16));
        assert!(trying.outlook(&ask(8)).contains("8 pairs of blocks: about 168 s more"), "{}", trying.outlook(&ask(8)));
        let korean = trying.outlook(&ask(30)).say(Language::Korean).to_owned();
        assert!(korean.starts_with("제안하는 변경을 시험하지 않습니다: 블록 쌍 6개에 390초"), "{korean}");
        let why = trying.pairs(&ask(30)).unwrap_err();
        assert_eq!(why, "6 pairs of blocks take 390 s, and the budget is 180 s (--try-budget); --try tries it anyway");
        assert_eq!(Trying { is_asked: true, ..trying }.pairs(&ask(30)), Ok(6));
        assert_eq!(Trying::default().outlook(&ask(8)), "The lab does not try the remedy (--try)");
    }
}
