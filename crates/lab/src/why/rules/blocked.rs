//! Workers of the edge that do not run although they have work.

use crate::metric::digits;
use crate::said::say;
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Tier, percent};
use crate::why::signals::Signals;

/// A worker that waits in at least this share of the samples is held up.
const UNREAD: f64 = 0.1;

/// The rules.
pub const RULES: &[Rule] = &[Rule {
    id: "B66",
    says: texts::WORKER_WAITS_FOR_A_READER,
    tier: Tier::Full,
    check: unread,
    fires: |s| s.processes[0].unread = 0.7,
    silent: |s| s.processes[0].unread = 0.02,
}];

/// A worker writes its log into a pipe or a terminal that is full: it stands in the call, and all its connections wait. In the times of
/// requests, that looks as if the application were slow.
fn unread(s: &Signals) -> Option<FiredRule> {
    let edge = s.edge_process().filter(|edge| edge.unread >= UNREAD)?;
    let found = FiredRule::new(say!(EDGE_LOG_READER), edge.unread.max(0.5))
        .with(texts::LABEL_WAITED, say!(READINGS_WORKER_WAITED_FOR_READER, percent(edge.unread)))
        .with(texts::LABEL_EDGE, say!(ITS_CPUS_USED, digits(edge.cpu)))
        .slows(&Segment::ALL);
    // A larger buffer for the log holds no more than the pipe, which is full already: the reader takes as few bytes a second.
    Some(found.knob(say!(LOG_READER_KEEPS_UP), say!(NO_WORKER_WAITS_FOR_A_READER)))
}
