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
    /// From the client until the edge has the request's first byte, and the edge's own computing.
    Outside,
    /// The edge reads the body of the request.
    Read,
    /// The check of `auth_request`.
    Auth,
    /// Held back by the edge, or waiting for its pool.
    Edge,
    /// In the edge's cache: for another request's fetch, or for a disk.
    Cache,
    /// In the edge before the head of the answer; its account does not say for what.
    Undivided,
    /// Until a connection to an upstream is open.
    Connect,
    /// Until the head of the upstream's answer.
    Wait,
    /// Tries at an upstream that ended without the head of an answer.
    Failed,
    /// The answer's body, and writing it to the client.
    Body,
    /// The answer's body, held back by a rate.
    Rate,
    /// The connection is not free for its next request until the upstream of `mirror` has answered.
    Mirror,
}

impl Segment {
    /// All segments, in the order of a request's way.
    pub const ALL: [Segment; 12] = [
        Segment::Outside,
        Segment::Read,
        Segment::Auth,
        Segment::Edge,
        Segment::Cache,
        Segment::Undivided,
        Segment::Connect,
        Segment::Wait,
        Segment::Failed,
        Segment::Body,
        Segment::Rate,
        Segment::Mirror,
    ];

    /// Its name in the report.
    pub const fn name(self) -> Text {
        match self {
            Segment::Outside => texts::BEFORE_EDGES_OWN_WORK,
            Segment::Read => texts::READING_REQUEST_BODY,
            Segment::Auth => texts::CHECK_OF_AUTH_REQUEST,
            Segment::Edge => texts::HELD_EDGE,
            Segment::Cache => texts::WAITING_IN_CACHE,
            Segment::Undivided => texts::EDGE_NOT_DIVIDED,
            Segment::Connect => texts::CONNECTING_UPSTREAM,
            Segment::Wait => texts::WAITING_UPSTREAMS_ANSWER,
            Segment::Failed => texts::TRIES_THAT_FAILED,
            Segment::Body => texts::BODIES,
            Segment::Rate => texts::HELD_BY_RATE,
            Segment::Mirror => texts::WAITING_FOR_MIRROR,
        }
    }

    /// The steps of the edge's account that belong to it.
    const fn steps(self) -> &'static [&'static str] {
        match self {
            Segment::Outside => &[],
            Segment::Read => &["read"],
            Segment::Auth => &["auth"],
            Segment::Edge => &["queue", "pool", "delay"],
            Segment::Cache => &["cache"],
            Segment::Undivided => &["held"],
            Segment::Connect => &["connect"],
            Segment::Wait => &["wait"],
            Segment::Failed => &["failed"],
            Segment::Body => &["body", "write"],
            Segment::Rate => &["rate"],
            Segment::Mirror => &["mirror"],
        }
    }

    /// The mean time of a request in this part, ms.
    pub fn ms(self, signals: &Signals) -> f64 {
        let sum = |segment: Segment| segment.steps().iter().map(|name| signals.step_ms(name)).sum::<f64>();
        let others = Segment::ALL.into_iter().filter(|segment| *segment != Segment::Mirror).map(sum).sum::<f64>();
        // A client that sends nothing more on a connection does not wait for the mirror.
        let mirror = sum(Segment::Mirror).min((signals.load.ms[0] - others).max(0.0));
        match self {
            // A request that waits for a connection of the load waits for the requests before it: that is no part of its way.
            Segment::Outside => (signals.load.ms[0] - signals.load.unsent_ms - others - mirror).max(0.0),
            Segment::Mirror => mirror,
            segment => sum(segment),
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
