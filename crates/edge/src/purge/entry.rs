//! One entry of the purge log: a purge in the form of the stream, and the ids that order them.

use std::fmt;

use weir_cache::store::{Force, Purge};

use crate::purge::order::{PurgeKind, PurgeOrder};

/// The id of an entry: Redis' clock in milliseconds, and a number within that millisecond
/// (<https://redis.io/docs/latest/develop/data-types/streams/#entry-ids>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Milliseconds since 1970.
    pub ms: u64,
    /// Within the millisecond.
    pub number: u64,
}

impl Id {
    /// Reads `MS-NUMBER`.
    pub fn parse(text: &[u8]) -> Option<Id> {
        let (ms, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
        Some(Id { ms: ms.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Purge this.
    Purge {
        /// The zone; `None` for all.
        zone: Option<String>,
        /// The objects to purge.
        purge: Purge,
        /// How to purge them.
        force: Force,
    },
    /// Nothing: the first entry of a stream, so that a new edge has an id to continue from.
    Begin,
    /// A kind of entry that this weir does not know. It cannot know the objects to purge either.
    Unknown,
}

/// An entry of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: Id,
    /// Its content.
    pub said: Said,
    /// The run id of the edge that wrote it: see [`fields`].
    pub run: Vec<u8>,
}

impl Entry {
    /// Reads an entry's fields, in any order; skips unknown fields.
    pub fn of_fields<'f>(id: Id, fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Entry {
        let (mut kind, mut value, mut zone, mut soft, mut run) = (&b""[..], &b""[..], &b""[..], &b"0"[..], &b""[..]);
        for (name, text) in fields {
            match name {
                b"kind" => kind = text,
                b"value" => value = text,
                b"zone" => zone = text,
                b"soft" => soft = text,
                b"run" => run = text,
                _ => {}
            }
        }
        let said = match (kind, PurgeKind::of(kind), std::str::from_utf8(zone)) {
            (b"begin", ..) => Said::Begin,
            (_, Some(kind), Ok(zone)) => Said::Purge {
                zone: Some(zone.to_owned()).filter(|zone| !zone.is_empty()),
                purge: kind.purge(value),
                force: if soft == b"1" { Force::Soft } else { Force::Hard },
            },
            _ => Said::Unknown,
        };
        Entry { id, said, run: run.to_vec() }
    }
}

/// The fields of the entries for an order, one list for each name. `by` is the edge, `run` the id of its start: an edge
/// that finds its own run in an entry has already applied it. `ts` is the writer's clock, in milliseconds, for people.
pub fn fields(order: &PurgeOrder, by: &str, run: &str, ts: u64) -> Vec<Vec<(&'static str, String)>> {
    let soft = if order.force == Force::Soft { "1" } else { "0" };
    let of_name = |name: &String| {
        vec![
            ("zone", order.zone.clone().unwrap_or_default()),
            ("kind", order.kind.name().to_owned()),
            ("value", name.clone()),
            ("soft", soft.to_owned()),
            ("by", by.to_owned()),
            ("run", run.to_owned()),
            ("ts", ts.to_string()),
        ]
    };
    order.names.iter().map(of_name).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(fields: &[(&str, &str)]) -> Said {
        let fields = fields.iter().map(|(name, text)| (name.as_bytes(), text.as_bytes()));
        Entry::of_fields(Id::default(), fields).said
    }

    #[test]
    fn an_order_comes_back_from_the_log() {
        let order = PurgeOrder::of_json(br#"{"tag": ["a", "b"], "zone": "one", "soft": true}"#).unwrap();
        let written = fields(&order, "edge-1", "ab12", 17);
        let back: Vec<Entry> = written
            .iter()
            .map(|one| {
                Entry::of_fields(Id::default(), one.iter().map(|(name, text)| (name.as_bytes(), text.as_bytes())))
            })
            .collect();
        let purges: Vec<Purge> = order.purges().collect();
        for (entry, purge) in back.iter().zip(&purges) {
            let said = Said::Purge { zone: Some("one".to_owned()), purge: purge.clone(), force: Force::Soft };
            assert_eq!((&entry.said, entry.run.as_slice()), (&said, &b"ab12"[..]));
        }
        assert_eq!(back.len(), 2);
    }

    #[test]
    fn what_is_not_known_is_said_to_be_unknown() {
        assert_eq!(entry(&[("kind", "regex"), ("value", "x")]), Said::Unknown);
        assert_eq!(entry(&[]), Said::Unknown);
        assert_eq!(entry(&[("kind", "begin")]), Said::Begin);
        assert_eq!(
            entry(&[("kind", "all"), ("more", "x")]),
            Said::Purge { zone: None, purge: Purge::All, force: Force::Hard }
        );
    }

    #[test]
    fn ids_are_ordered_by_time_then_number() {
        let id = |text: &str| Id::parse(text.as_bytes());
        assert!(id("9-1") < id("10-0") && id("10-0") < id("10-2"));
        assert_eq!(id("10-2").unwrap().to_string(), "10-2");
        assert_eq!((id("10"), id("a-b"), id("-"), id("1-2-3"), id("")), (None, None, None, None, None));
    }
}
