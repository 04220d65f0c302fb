//! What a rule is: a row, a pure function of [`Signals`], a case in which it speaks and one like it in which it is silent.

use super::signals::Signals;
use crate::metric::digits;

/// How sure a finding is of itself, before anything is squeezed. Errors come first: what fails is explained before what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The configuration refuses or delays requests on purpose, and they were counted.
    Policy,
    /// Requests failed or waited at a limit, which somebody named: a log line, an error code, a counter of the kernel.
    Limit,
    /// Something is used in a way that wastes it, and a count says so.
    Waste,
    /// A resource is full.
    Full,
    /// Something is at its end and nothing that can be seen is: where to look. Silent while there is room.
    Rest,
}

impl Tier {
    /// What a finding of this kind weighs.
    pub const fn weight(self) -> f64 {
        match self {
            Tier::Policy | Tier::Limit => 4.0,
            Tier::Waste => 2.0,
            Tier::Full => 1.0,
            Tier::Rest => 0.5,
        }
    }
}

/// A part of the way of a request in which time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Between the client and the edge's reading, and what the edge computes itself.
    Outside,
    /// In the edge: held back, its cache, its pool.
    Edge,
    /// Until a connection to an upstream is there.
    Connect,
    /// Until the head of its answer.
    Wait,
    /// Its body, and writing it to the client.
    Body,
}

impl Segment {
    /// All, in the order of a request's way.
    pub const ALL: [Segment; 5] = [Segment::Outside, Segment::Edge, Segment::Connect, Segment::Wait, Segment::Body];

    /// As it is said.
    pub const fn name(self) -> &'static str {
        match self {
            Segment::Outside => "before and in the edge's own work",
            Segment::Edge => "held by the edge",
            Segment::Connect => "connecting to the upstream",
            Segment::Wait => "waiting for the upstream's answer",
            Segment::Body => "bodies",
        }
    }
}

/// What a counter-experiment makes smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Squeeze {
    /// CPUs of a process, by its name.
    Cpu(String),
    /// CPUs that are left to a process, by taking them from its neighbour: the one that waits, and whose work it waits for.
    Neighbour(String, String),
    /// Local ports of a host.
    Ports(String),
    /// Descriptors of a process.
    Files(String),
    /// `worker_connections`.
    Slots,
    /// What a host's link carries.
    Link(String),
    /// A pool of a process, and the environment variable that says its size.
    Pool(String, String),
    /// A server of the upstream, which is taken down.
    Servers(String),
}

/// What a rule found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What limits: `edge → 10.0.0.2:3000 local ports`.
    pub subject: String,
    /// Lines with numbers, at most six: a label, and what was seen.
    pub evidence: Vec<(&'static str, String)>,
    /// How full, or how large a share: 0 to 1.
    pub degree: f64,
    /// Which parts of a request's way it makes longer; none if it makes requests fail.
    pub explains: Vec<Segment>,
    /// How it could be proved.
    pub squeeze: Option<Squeeze>,
    /// One knob.
    pub knob: String,
    /// What is to be expected of it.
    pub expect: String,
}

impl Found {
    /// Of a subject, so full.
    pub fn new(subject: impl Into<String>, degree: f64) -> Found {
        Found { subject: subject.into(), degree: degree.clamp(0.0, 1.0), ..Found::default() }
    }

    /// A line of evidence more; nothing is none.
    #[must_use]
    pub fn with(mut self, label: &'static str, text: impl Into<String>) -> Found {
        let text = text.into();
        if !text.is_empty() {
            self.evidence.push((label, text));
        }
        self
    }

    /// What it makes longer.
    #[must_use]
    pub fn slows(mut self, segments: &[Segment]) -> Found {
        self.explains = segments.to_vec();
        self
    }

    /// How it could be proved.
    #[must_use]
    pub fn squeezed(mut self, squeeze: Squeeze) -> Found {
        self.squeeze = Some(squeeze);
        self
    }

    /// What to do, and what comes of it.
    #[must_use]
    pub fn knob(mut self, knob: impl Into<String>, expect: impl Into<String>) -> Found {
        self.knob = knob.into();
        self.expect = expect.into();
        self
    }
}

/// A row.
pub struct Rule {
    /// Its name in `docs/guide/why.md`.
    pub id: &'static str,
    /// What is so, in a few words.
    pub says: &'static str,
    /// How sure.
    pub tier: Tier,
    /// Looks.
    pub check: fn(&Signals) -> Option<Found>,
    /// Makes a quiet block into one in which it speaks.
    pub fires: fn(&mut Signals),
    /// And into one like it in which it is silent.
    pub silent: fn(&mut Signals),
}

/// `12 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{} %", digits(percent)) }
}

/// `3 of 200 (1.5 %)`.
pub fn of(part: u64, all: u64) -> String {
    format!("{part} of {all} ({})", percent(part as f64 / all.max(1) as f64))
}
