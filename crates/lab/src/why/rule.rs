//! A rule is a row: a pure function of [`Signals`], one case in which it fires, and a similar case in which it is
//! silent.

use super::signals::Signals;
use crate::metric::digits;
use crate::said::{Said, Text, say};
use crate::texts;

/// How certain a finding is before anything is squeezed. Errors come first: failed requests are explained before slow
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The configuration refuses or delays requests on purpose, and they were counted.
    Policy,
    /// Requests failed or waited at a limit. A log line, an error code or a kernel counter names the limit.
    Limit,
    /// A resource is wasted, and a count shows it.
    Waste,
    /// A resource is full.
    Full,
    /// Something is saturated, but no visible resource is full: the finding says where to look. Silent if nothing is
    /// saturated.
    Rest,
}

impl Tier {
    /// The weight of a finding of this tier.
    pub const fn weight(self) -> f64 {
        match self {
            Tier::Policy | Tier::Limit => 4.0,
            Tier::Waste => 2.0,
            Tier::Full => 1.0,
            Tier::Rest => 0.5,
        }
    }
}

/// Waste of this degree or less costs something, but does not limit.
pub(super) const MINOR: f64 = 0.3;

/// A part of the way of a request in which time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From the client until the edge has read the request, and the edge's own computing.
    Outside,
    /// In the edge: held back, in its cache, or waiting for its pool.
    Edge,
    /// Until a connection to an upstream is open.
    Connect,
    /// Until the head of the upstream's answer.
    Wait,
    /// The answer's body, and writing it to the client.
    Body,
}

impl Segment {
    /// All segments, in the order of a request's way.
    pub const ALL: [Segment; 5] = [Segment::Outside, Segment::Edge, Segment::Connect, Segment::Wait, Segment::Body];

    /// Its name in the report.
    pub const fn name(self) -> Text {
        match self {
            Segment::Outside => texts::BEFORE_EDGES_OWN_WORK,
            Segment::Edge => texts::HELD_EDGE,
            Segment::Connect => texts::CONNECTING_UPSTREAM,
            Segment::Wait => texts::WAITING_UPSTREAMS_ANSWER,
            Segment::Body => texts::BODIES,
        }
    }

    /// The mean time of a request in this part, ms.
    pub fn ms(self, signals: &Signals) -> f64 {
        let sum = |names: &[&str]| names.iter().map(|name| signals.step_ms(name)).sum::<f64>();
        match self {
            Segment::Edge => sum(&["queue", "cache", "pool", "delay"]),
            Segment::Connect => sum(&["connect"]),
            Segment::Wait => sum(&["wait"]),
            Segment::Body => sum(&["body", "write"]),
            // A request that waits for a connection of the load waits for the requests before it: that is no part of its way.
            Segment::Outside => (signals.load.ms[0]
                - signals.load.unsent_ms
                - sum(&["queue", "cache", "pool", "delay", "connect", "wait", "body", "write"]))
            .max(0.0),
        }
    }
}

/// The resource that a counter-experiment makes smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Squeeze {
    /// CPUs of a process, by the process's name.
    Cpu(String),
    /// CPUs that its neighbour leaves to a process. The lab limits the neighbour. First the waiting process, then the
    /// neighbour.
    Neighbour(String, String),
    /// Local ports of a host.
    Ports(String),
    /// Descriptors of a process.
    Files(String),
    /// `worker_connections`.
    Slots,
    /// The bandwidth of a host's link.
    Link(String),
    /// A pool of a process, and the environment variable that sets its size.
    Pool(String, String),
    /// A server of the upstream. The lab marks it down.
    Servers(String),
}

/// The result of a rule that fired.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiredRule {
    /// The limiting resource: `edge → 10.0.0.2:3000 local ports`.
    pub subject: Said,
    /// Lines with figures, at most six: a label, and the observation.
    pub evidence: Vec<(Text, Said)>,
    /// How full, or how large a share: 0 to 1.
    pub degree: f64,
    /// The parts of a request's way that it makes longer. Empty if it makes requests fail.
    pub explains: Vec<Segment>,
    /// The counter-experiment that could prove it.
    pub squeeze: Option<Squeeze>,
    /// The one recommended change.
    pub knob: Said,
    /// The expected effect of that change.
    pub expect: Said,
    /// That change makes the slowest answers faster, and may leave the median as it is.
    pub is_of_tail: bool,
}

impl FiredRule {
    /// A finding about a subject, with its degree.
    pub fn new(subject: impl Into<Said>, degree: f64) -> FiredRule {
        FiredRule { subject: subject.into(), degree: degree.clamp(0.0, 1.0), ..FiredRule::default() }
    }

    /// Adds a line of evidence. An empty text adds nothing.
    #[must_use]
    pub fn with(mut self, label: Text, text: impl Into<Said>) -> FiredRule {
        let text = text.into();
        if !text.is_empty() {
            self.evidence.push((label, text));
        }
        self
    }

    /// Sets the parts of a request's way that it makes longer.
    #[must_use]
    pub fn slows(mut self, segments: &[Segment]) -> FiredRule {
        self.explains = segments.to_vec();
        self
    }

    /// Sets the counter-experiment that could prove it.
    #[must_use]
    pub fn squeezed(mut self, squeeze: Squeeze) -> FiredRule {
        self.squeeze = Some(squeeze);
        self
    }

    /// Sets the recommended change and its expected effect.
    #[must_use]
    pub fn knob(mut self, knob: impl Into<Said>, expect: impl Into<Said>) -> FiredRule {
        self.knob = knob.into();
        self.expect = expect.into();
        self
    }

    /// Notes that the change makes the slowest answers faster.
    #[must_use]
    pub fn for_the_tail(mut self) -> FiredRule {
        self.is_of_tail = true;
        self
    }
}

/// A row of the table of rules.
pub struct Rule {
    /// Its name in `docs/guide/why.md`.
    pub id: &'static str,
    /// The condition that it reports, in a few words.
    pub says: Text,
    /// How certain its findings are.
    pub tier: Tier,
    /// Checks the signals.
    pub check: fn(&Signals) -> Option<FiredRule>,
    /// Changes the signals of a quiet block so that the rule fires.
    pub fires: fn(&mut Signals),
    /// Changes the signals of a quiet block in a similar way, so that the rule stays silent.
    pub silent: fn(&mut Signals),
}

/// `12 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{} %", digits(percent)) }
}

/// `3 of 200 (1.5 %)`.
pub fn of(part: u64, all: u64) -> Said {
    say!(OF, part, all, percent(part as f64 / all.max(1) as f64))
}
