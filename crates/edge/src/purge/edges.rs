//! The reports of each edge: the last entry it has applied, and the time of the report. The current time is an
//! argument.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::purge::entry::Id;

/// Edges in one table, at most; weir does not wait for more.
pub const EDGES_MAX: usize = 1024;

/// weir does not wait for an edge that has reported nothing for this time, but still names it.
pub const SILENT_AFTER: Duration = Duration::from_secs(10);

/// weir forgets an edge that has reported nothing for this time: when it comes back, it replays the log, or purges
/// all it has.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The report of one edge, as it is in the hash of all edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The last entry it has applied.
    pub applied: Id,
    /// The time of the report: Redis' clock, in milliseconds.
    pub at_ms: u64,
    /// The id of that edge's start.
    pub run: String,
}

impl Beat {
    /// The text for the hash.
    pub fn to_text(&self) -> String {
        json!({"applied": self.applied.to_string(), "at": self.at_ms, "run": self.run}).to_string()
    }

    /// Reads the text back.
    pub fn parse(text: &[u8]) -> Option<Beat> {
        let value: Value = serde_json::from_slice(text).ok()?;
        Some(Beat {
            applied: Id::parse(value.get("applied")?.as_str()?.as_bytes())?,
            at_ms: value.get("at")?.as_u64()?,
            run: value.get("run")?.as_str()?.to_owned(),
        })
    }
}

/// All known edges.
#[derive(Debug, Default)]
pub struct Edges {
    all: BTreeMap<String, Beat>,
    now_ms: u64,
}

impl Edges {
    /// Takes over the table from Redis, with the time of Redis' clock; returns the names of the edges to forget.
    pub fn take(&mut self, all: impl Iterator<Item = (String, Beat)>, now_ms: u64) -> Vec<String> {
        self.now_ms = now_ms;
        let before = std::mem::take(&mut self.all);
        let mut forgotten = Vec::new();
        for (name, mut beat) in all {
            if now_ms.saturating_sub(beat.at_ms) > millis(FORGOTTEN_AFTER) {
                forgotten.push(name);
            } else if self.all.len() < EDGES_MAX {
                // The edge's own report may be newer than the table.
                if let Some(known) = before.get(&name).filter(|known| known.run == beat.run) {
                    beat.applied = beat.applied.max(known.applied);
                }
                self.all.insert(name, beat);
            }
        }
        forgotten
    }

    /// Notes an edge's report of the last entry it has applied.
    pub fn hear(&mut self, name: &str, applied: Id) {
        if let Some(beat) = self.all.get_mut(name) {
            beat.applied = beat.applied.max(applied);
            beat.at_ms = beat.at_ms.max(self.now_ms);
        }
    }

    /// How many edges there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The start of the edge of that name that reported last.
    pub fn run_of(&self, name: &str) -> Option<&str> {
        self.all.get(name).map(|beat| beat.run.as_str())
    }

    /// The edges that have not applied an entry. `but` is the edge that has applied it and need not report it.
    pub fn behind(&self, id: Id, but: &str) -> Vec<String> {
        let behind = self.all.iter().filter(|(name, beat)| *name != but && beat.applied < id);
        behind.map(|(name, _)| name.clone()).collect()
    }

    /// The edges that have applied an entry, including `own`.
    pub fn applied(&self, id: Id, own: &str) -> Vec<String> {
        let mut applied: Vec<String> = self
            .all
            .iter()
            .filter(|(name, beat)| *name == own || beat.applied >= id)
            .map(|(name, _)| name.clone())
            .collect();
        if !applied.iter().any(|name| name == own) {
            applied.push(own.to_owned());
        }
        applied
    }

    /// Whether a late edge may still report soon.
    pub fn is_worth_waiting(&self, id: Id, but: &str) -> bool {
        self.all.iter().any(|(name, beat)| *name != but && beat.applied < id && !self.is_silent(beat))
    }

    /// For people: for each edge, how far it is behind and how old its last report is; `newest` is the newest known
    /// entry.
    pub fn to_json(&self, newest: Id) -> Value {
        let one = |(name, beat): (&String, &Beat)| {
            json!({
                "edge": name,
                "applied": beat.applied.to_string(),
                "behind_ms": newest.ms.saturating_sub(beat.applied.ms),
                "heard_ms_ago": self.now_ms.saturating_sub(beat.at_ms),
                "silent": self.is_silent(beat),
            })
        };
        self.all.iter().map(one).collect()
    }

    fn is_silent(&self, beat: &Beat) -> bool {
        self.now_ms.saturating_sub(beat.at_ms) > millis(SILENT_AFTER)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn id(ms: u64) -> Id {
        Id { ms, number: 0 }
    }

    fn table(edges: &mut Edges, all: &[(&str, u64, u64)], now: u64) -> Vec<String> {
        let beat = |(name, applied, at): &(&str, u64, u64)| {
            ((*name).to_owned(), Beat { applied: id(*applied), at_ms: *at, run: "r".to_owned() })
        };
        edges.take(all.iter().map(beat), now)
    }

    #[test]
    fn who_is_behind_is_named_and_the_silent_are_not_waited_for() {
        let mut edges = Edges::default();
        let now = 1_000_000;
        assert!(table(&mut edges, &[("a", 5, now), ("b", 3, now), ("c", 3, now - 11_000)], now).is_empty());
        assert_eq!(edges.behind(id(5), ""), ["b", "c"]);
        assert!(edges.is_worth_waiting(id(5), ""));
        edges.hear("b", id(5));
        assert_eq!(edges.behind(id(5), ""), ["c"]);
        assert!(!edges.is_worth_waiting(id(5), ""), "c has said nothing for eleven seconds");
        assert_eq!(edges.behind(id(6), "a"), ["b", "c"]);
        // An edge's own report is not lost to an older table.
        table(&mut edges, &[("a", 5, now), ("b", 3, now)], now + 1);
        assert!(edges.behind(id(5), "").is_empty());
        assert_eq!(edges.to_json(id(7))[0]["behind_ms"], 2);
    }

    #[test]
    fn the_long_silent_are_forgotten_and_come_back() {
        let mut edges = Edges::default();
        let now = 10_000_000;
        assert_eq!(table(&mut edges, &[("a", 5, now), ("old", 3, now - 3_600_001)], now), ["old"]);
        assert_eq!(edges.len(), 1);
        table(&mut edges, &[("a", 5, now), ("old", 3, now)], now);
        assert_eq!(edges.len(), 2);
        edges.hear("nobody", id(9));
        assert_eq!(edges.len(), 2, "only the table names edges");
    }

    #[test]
    fn beats_are_read_back() {
        let beat = Beat { applied: id(9), at_ms: 12, run: "ff".to_owned() };
        assert_eq!(Beat::parse(beat.to_text().as_bytes()), Some(beat));
        for damaged in ["", "{}", r#"{"applied":"9","at":1,"run":""}"#, r#"{"applied":"9-0","at":-1,"run":""}"#] {
            assert_eq!(Beat::parse(damaged.as_bytes()), None, "{damaged}");
        }
    }
}
