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
    /// The old configuration is the only one, and its traffic is looked at before a share of the clients gets another one.
    Looking,
    /// The old configuration is the only one, and its clients are judged as if a share of them had another one.
    Rehearsing,
    /// The new configuration is about to take the place of the old one.
    Promoting,
    /// The new configuration is the only one.
    Promoted,
    /// The old configuration is the only one.
    RolledBack,
    /// There was no decision: the old configuration is the only one.
    Undecided,
}

impl CanaryPhase {
    /// Whether the canary has not ended.
    pub fn is_on(self) -> bool {
        self.is_before() || matches!(self, CanaryPhase::Running | CanaryPhase::Promoting)
    }

    /// Whether nobody has the new configuration yet.
    pub fn is_before(self) -> bool {
        matches!(self, CanaryPhase::Looking | CanaryPhase::Rehearsing)
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
    /// It did not begin: too few clients are expected.
    FewClients,
    /// It did not begin: one client sends too many of the requests.
    LargeClient,
    /// It did not begin: most requests have no key.
    NoKey,
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

/// The look at the traffic before a canary begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryLook {
    /// How long it took.
    pub seconds: u64,
    /// Clients that were seen.
    pub clients: u64,
    /// Their requests.
    pub requests: u64,
    /// Requests without the key.
    pub without_key: u64,
    /// New clients a minute from then on: those of the second half of the look.
    pub clients_per_minute: f64,
    /// The part of the clients that met an error.
    pub failing: f64,
    /// The clients that are expected within `expected_seconds`: the time of the canary, or 31 days.
    pub clients_expected: u64,
    /// See `clients_expected`.
    pub expected_seconds: u64,
    /// How many clients each question needs. Empty if too few clients were seen.
    pub needs: Vec<CanaryNeed>,
}

/// The number of clients within which eight of ten canaries are decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryNeed {
    /// `no_harm`, `failures`, `10_percent_slower` or `30_percent_slower`.
    pub question: String,
    /// For `failures`: the part of the clients of the new configuration that fail.
    pub failing: Option<f64>,
    /// Clients, old and new; `None` if `clients_max` are not enough.
    pub clients: Option<u64>,
    /// The largest number that was tried.
    pub clients_max: u64,
    /// About the time until then, if so many clients come.
    pub seconds: Option<u64>,
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
    /// Planned looks that are over; `None` if it is judged at every moment.
    pub looks: Option<u32>,
    /// The look at the traffic before it began.
    pub look: Option<CanaryLook>,
    /// Clients, old and new, within which a proof of no harm is expected; `None` if that is not known.
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
