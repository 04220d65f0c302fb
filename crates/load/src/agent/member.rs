//! An agent as its controller sees it.

use std::time::Duration;

use weir_net::Instant;
use weir_words::{Said, say};

use super::letter::Letter;
use super::limits::LOST;
use super::stream::Inbox;
use crate::output::SelfCheck;
use crate::texts::{TABLES, agents as texts};

/// An agent that is ready, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mate {
    /// Name of the agent.
    pub name: String,
    /// CPUs that the agent may use.
    pub cpus: u64,
    /// Threads that the agent runs.
    pub workers: u64,
    /// How far the agent's clock is behind the controller's, µs.
    pub behind_us: i64,
    /// The largest possible error of `behind_us`, µs.
    pub error_us: i64,
}

/// Why the controller gives an agent up.
pub(super) enum Loss {
    /// It was silent for too long.
    Silent,
    /// It did not end in time.
    Unending,
    /// It could not go on.
    Failed(Said),
}

/// An agent of a run.
#[derive(Debug)]
pub(super) struct RunAgent {
    pub id: String,
    pub name: String,
    cpus: u64,
    workers: u64,
    behind_us: i64,
    error_us: i64,
    heard: Instant,
    /// The agent has accepted its share.
    pub has_answered: bool,
    pub is_ready: bool,
    pub refused: Option<Said>,
    pub inbox: Inbox,
    pub active: u64,
    /// The agent's self-check, once it is done.
    pub check: Option<SelfCheck>,
    /// The controller no longer waits for this agent.
    is_lost: bool,
    pub is_cut: bool,
    pub lines_lost: u64,
    /// The missing parts of the agent's share.
    pub notes: Vec<Said>,
}

impl RunAgent {
    pub fn new(id: String, name: String, cpus: u64, now: Instant) -> RunAgent {
        RunAgent {
            id,
            name,
            cpus,
            workers: 0,
            behind_us: 0,
            error_us: 0,
            heard: now,
            has_answered: false,
            is_ready: false,
            refused: None,
            inbox: Inbox::default(),
            active: 0,
            check: None,
            is_lost: false,
            is_cut: false,
            lines_lost: 0,
            notes: Vec::new(),
        }
    }

    pub fn mate(&self) -> Mate {
        let RunAgent { cpus, workers, behind_us, error_us, .. } = *self;
        Mate { name: self.name.clone(), cpus, workers, behind_us, error_us }
    }

    /// Records that a message of the agent arrived.
    pub fn is_heard(&mut self, now: Instant) {
        if self.is_lost && self.is_silent(now) && self.refused.is_none() {
            let silent = now.saturating_duration_since(self.heard).as_secs();
            self.notes.push(say!(texts::CAME_BACK, &self.name, silent));
        }
        self.heard = now;
        self.has_answered = true;
    }

    /// Takes the state in the agent's beat.
    pub fn beat(&mut self, letter: &Letter) {
        match letter.text("state") {
            "ready" => self.is_ready = true,
            "refused" => {
                // An older agent sends English alone.
                let said = Said::read(letter.value("why_said"), TABLES).filter(|said| !said.is_empty());
                self.refused = Some(said.unwrap_or_else(|| letter.text("why").into()));
            }
            _ => {}
        }
        self.workers = letter.number("workers").unwrap_or(0);
        self.behind_us = letter.signed("ahead_us").unwrap_or(0);
        self.error_us = letter.signed("error_us").unwrap_or(0);
    }

    /// True if the agent has been silent for too long.
    pub fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) >= LOST
    }

    /// True if the controller no longer waits for this agent.
    pub fn is_over(&self) -> bool {
        self.is_lost || self.check.is_some()
    }

    /// Gives the agent up; only the first call counts.
    pub fn lose(&mut self, share: usize, shares: usize, began: Instant, how: &Loss) {
        if self.is_over() {
            return;
        }
        self.is_lost = true;
        let at = self.heard.saturating_duration_since(began);
        let when = match at {
            Duration::ZERO => say!(texts::BEFORE_START),
            at => say!(texts::AFTER_START, format!("{:.1}", at.as_secs_f64())),
        };
        let (name, share) = (&self.name, share + 1);
        self.notes.push(match how {
            Loss::Silent => say!(texts::AGENT_LOST, name, share, shares, when),
            Loss::Unending => say!(texts::AGENT_NOT_ENDED, name, share, shares, when),
            Loss::Failed(why) => say!(texts::AGENT_FAILED, name, share, shares, why, when),
        });
    }
}
