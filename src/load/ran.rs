//! The results of a run, on this machine or on agents.

use weir_load::output::SelfCheck;
use weir_load::run;
use weir_words::Said;

/// The results of a run, on this machine or on agents.
pub struct Ran {
    /// Everything counted.
    pub outcome: run::RunOutcome,
    /// The self-check of each agent.
    pub checks: Vec<(String, SelfCheck)>,
    /// The missing parts.
    pub incomplete: Vec<Said>,
}

impl Ran {
    /// The results of a run on this machine.
    pub fn here(outcome: run::RunOutcome) -> Ran {
        Ran { outcome, checks: Vec::new(), incomplete: Vec::new() }
    }
}
