//! A canary: a second configuration beside the one in force, and the judgement about it.

use serde::{Deserialize, Serialize};

use super::timestamp::Timestamp;

/// Where a canary stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryPhase {
    /// Both configurations are in force.
    #[default]
    Running,
    /// The old configuration is the only one, and its clients are judged as if a share of them had another one.
    Rehearsing,
    /// The new configuration is about to take the place of the old one.
    Promoting,
    /// The new configuration is the only one.
    Promoted,
    /// The old configuration is the only one.
    RolledBack,
    /// Its time ended without a decision: the old configuration is the only one.
    Undecided,
}

impl CanaryPhase {
    /// Whether the canary has not ended.
    pub fn is_on(self) -> bool {
        matches!(self, CanaryPhase::Running | CanaryPhase::Rehearsing | CanaryPhase::Promoting)
    }
}

/// The reason of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryReason {
    /// There is none yet.
    #[default]
    None,
    /// The new configuration harms clients.
    Harm,
    /// The rehearsal has found harm where there is none.
    Noise,
    /// Harm beyond the margins is excluded.
    Proof,
    /// Somebody asked for it.
    Asked,
    /// The time of the canary is over.
    Time,
    /// The configuration was reloaded.
    Reload,
    /// A new binary serves too.
    Upgrade,
    /// The server ended.
    Died,
    /// The new configuration could not be put in force for all clients.
    Refused,
}

/// The clients of one configuration whose windows have closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryLane {
    /// Clients.
    pub clients: u64,
    /// Their requests.
    pub requests: u64,
}

/// One kind of harm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryAspect {
    /// `errors`, `refused`, `slower`, `p50`, `p95`, `p99` or `resets`.
    pub name: String,
    /// The mean of the clients of the old configuration: the part of clients with errors or resets, the part of
    /// refused or slow requests, or the mean rank of the requests.
    pub old: f64,
    /// The same of the new configuration.
    pub new: f64,
    /// The upper end of the interval for the difference; `None` while there is none.
    pub upper: Option<f64>,
    /// The difference that must be excluded before a promotion.
    pub margin: f64,
    /// The evidence of harm: 1 is none.
    pub evidence: f64,
}

/// A canary and the judgement about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Canary {
    /// Where it stands.
    pub phase: CanaryPhase,
    /// Why.
    pub reason: CanaryReason,
    /// The sentence that says so, in English.
    pub sentence: String,
    /// The file of the new configuration.
    pub file: String,
    /// The number of the new configuration.
    pub generation: u32,
    /// The key of a client.
    pub key: String,
    /// The share of the clients that get the new configuration, from 0 to 1.
    pub share: f64,
    /// The shares that follow.
    pub next_shares: Vec<f64>,
    /// When it began.
    pub since: Timestamp,
    /// Seconds since then, until its end.
    pub seconds: u64,
    /// The old configuration.
    pub old: CanaryLane,
    /// The new configuration.
    pub new: CanaryLane,
    /// The evidence of harm, all kinds together: 1 is none.
    pub evidence: f64,
    /// The evidence at which the canary is rolled back.
    pub evidence_limit: f64,
    /// The kind of harm with the most evidence, once the limit is reached.
    pub harm: Option<String>,
    /// Each kind of harm.
    pub aspects: Vec<CanaryAspect>,
    /// Clients, old and new, that a proof of no harm needs in all; `None` while too few were seen, or if no number is enough.
    pub clients_needed: Option<u64>,
    /// The part of all requests that the client with the most requests sent.
    pub largest_client: f64,
    /// Clients that were not counted, because too many were there at once or their configuration changed meanwhile.
    pub clients_skipped: u64,
    /// Requests that were not counted, because the judge was behind.
    pub requests_lost: u64,
    /// Workers that throw its coin: the others give all clients the old configuration.
    pub workers: u64,
    /// Requests without the key: they get the old configuration.
    pub requests_without_key: u64,
}
