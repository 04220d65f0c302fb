//! A fleet: the view of an edge on itself and on the other edges.

use serde::{Deserialize, Serialize};

/// The place of this edge in a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetView {
    /// The Redis server, without its secrets.
    pub server: String,
    /// The fleet's name.
    pub name: String,
    /// The name of this edge.
    pub edge: String,
    /// Whether this edge goes on alone, because it does not reach Redis.
    pub is_alone: bool,
    /// Why Redis did not answer last; `None` while it answers.
    pub lost: Option<String>,
    /// The share of each rate that this edge has when it is alone, from 0 to 1.
    pub share: f64,
    /// The edges of the fleet, also those that are away.
    pub edges: u64,
    /// Accounts whose debts wait to be paid.
    pub debts: u64,
    /// Debts that were not told to the ledger, because too many waited.
    pub dropped: u64,
    /// All edges that have told their figures, by name.
    pub members: Vec<FleetMember>,
}

/// The figures of one edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMember {
    /// Its name.
    pub edge: String,
    /// Its version of weir.
    pub version: String,
    /// How often it has loaded its configuration.
    pub generation: u64,
    /// Milliseconds since it told its figures, by Redis' clock.
    pub heard_ms_ago: u64,
    /// Requests a second, over its last second.
    pub rate: f64,
    /// Failed requests so far.
    pub failed: u64,
    /// Requests that a policy refused so far.
    pub refused: u64,
    /// The longest 99th percentile of its servers in the last seconds, in microseconds; 0 without requests.
    pub p99_us: u64,
    /// Open connections of clients.
    pub connections: u64,
    /// The CPUs that its workers use: 1 is one CPU.
    pub cpu: f64,
}

/// The time without news after which an edge counts as silent.
pub const SILENT_MS: u64 = 5000;

/// How much longer than the median of the others a percentile is that stands out.
const STANDS_OUT: f64 = 2.0;

/// The difference of an edge from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OddOne {
    /// It has told nothing for [`SILENT_MS`].
    Silent,
    /// Most others have another version.
    Version,
    /// Its 99th percentile is twice the median of the others.
    Slower,
}

impl FleetView {
    /// The first thing in which a member differs from the others.
    pub fn odd(&self, member: &FleetMember) -> Option<OddOne> {
        if member.heard_ms_ago > SILENT_MS {
            return Some(OddOne::Silent);
        }
        let others =
            || self.members.iter().filter(|other| other.edge != member.edge && other.heard_ms_ago <= SILENT_MS);
        let same = others().filter(|other| other.version == member.version).count();
        if same * 2 < others().count() {
            return Some(OddOne::Version);
        }
        let mut times: Vec<u64> = others().map(|other| other.p99_us).filter(|time| *time > 0).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied()?;
        (times.len() >= 2 && member.p99_us as f64 >= median as f64 * STANDS_OUT).then_some(OddOne::Slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_differs_is_found() {
        let member = |edge: &str, version: &str, p99_us, heard_ms_ago| FleetMember {
            edge: edge.to_owned(),
            version: version.to_owned(),
            p99_us,
            heard_ms_ago,
            ..FleetMember::default()
        };
        let odd = |members: &[FleetMember]| {
            let view = FleetView { members: members.to_vec(), ..FleetView::default() };
            view.members.iter().map(|member| view.odd(member)).collect::<Vec<_>>()
        };
        let (a, b) = (member("a", "1", 1000, 0), member("b", "1", 1100, 0));
        assert_eq!(odd(&[a.clone(), b.clone(), member("c", "1", 1900, 0)]), [None, None, None]);
        assert_eq!(odd(&[a.clone(), b.clone(), member("c", "1", 2300, 0)]), [None, None, Some(OddOne::Slower)]);
        assert_eq!(odd(&[a.clone(), b.clone(), member("c", "2", 1000, 0)]), [None, None, Some(OddOne::Version)]);
        assert_eq!(odd(&[a.clone(), b, member("c", "2", 9000, 6000)]), [None, None, Some(OddOne::Silent)]);
        // Two edges: nobody can say which one is odd.
        assert_eq!(odd(&[a, member("b", "1", 9000, 0)]), [None, None]);
        assert_eq!(odd(&[]), []);
    }
}
