//! Records that edges share: the last writer by Redis' time wins, and every edge has a copy of all of them.
//!
//! ```text
//!   a change at this edge ─► its own copy, at once ─► a queue ─► `record.lua`: a hash for each space, and a stream
//!   the stream, ten times a second ─► the copy of each other edge
//! ```
//!
//! An edge that was away reads the hash of each space again, and writes its own changes with the time of each change:
//! a later change of another edge stays. Removed records keep their place for a day, so that an edge that comes back does
//! not bring them back.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_net::log::{self, Level};

/// Changes that wait, at most; one more is not told to the others, and the log says so.
const CHANGES_MAX: usize = 65_536;

/// Bytes of one record, at most; a longer one of another edge is not taken.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Copies of records at this edge.
pub trait SharedSpace: Send + Sync {
    /// Its name, the same at all edges.
    fn name(&self) -> &str;
    /// Takes records over from other edges, by key; `None` for one that was removed there. A value of another program is
    /// ignored.
    fn take(&self, records: &[TakenRecord]);
    /// All records of this edge.
    fn all(&self) -> Vec<(String, Vec<u8>)>;
    /// The form in which the others read a value of this edge.
    fn written(&self, value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }
    /// Notes a change of this edge.
    fn note(&self, _key: &str, _value: Option<&[u8]>) {}
}

/// A key of a space, and its value.
pub type TakenRecord = (String, Option<Vec<u8>>);

/// A change that the others do not know yet.
#[derive(Clone)]
pub(super) struct RecordChange {
    pub space: String,
    pub key: String,
    pub value: Option<Vec<u8>>,
    /// Redis' time of the change; 0 if this edge did not know it.
    pub made_ms: i64,
}

/// The spaces of this edge, and the changes that wait.
#[derive(Default)]
pub(super) struct Records {
    /// The spaces, and how often they were replaced.
    spaces: Mutex<(Vec<Arc<dyn SharedSpace>>, u64)>,
    changes: Mutex<WaitingChanges>,
}

/// The changes that wait, the oldest first.
#[derive(Default)]
struct WaitingChanges {
    queue: VecDeque<RecordChange>,
    /// How many of them are of a record, by space and key.
    counts: HashMap<(String, String), usize>,
}

impl Records {
    /// Shares these spaces in place of the ones before.
    pub fn share(&self, spaces: Vec<Arc<dyn SharedSpace>>) {
        let mut known = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (spaces, known.1 + 1);
    }

    pub fn spaces(&self) -> (Vec<Arc<dyn SharedSpace>>, u64) {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn changes(&self) -> MutexGuard<'_, WaitingChanges> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the others of a change that was made here.
    pub fn publish(&self, space: &str, key: &str, value: Option<Vec<u8>>, made_ms: i64) {
        let known = self.spaces().0.into_iter().find(|known| known.name() == space);
        let value = match &known {
            Some(known) => value.map(|value| known.written(&value)),
            None => value,
        };
        if let Some(known) = known {
            known.note(key, value.as_deref());
        }
        let mut changes = self.changes();
        if changes.queue.len() >= CHANGES_MAX {
            log::global(
                Level::Error,
                format_args!(
                    "{CHANGES_MAX} changes wait for the fleet: a change of \"{key}\" in {space} stays at this edge"
                ),
            );
            return;
        }
        *changes.counts.entry((space.to_owned(), key.to_owned())).or_default() += 1;
        changes.queue.push_back(RecordChange { space: space.to_owned(), key: key.to_owned(), value, made_ms });
    }

    /// The change that waits longest.
    pub fn first(&self) -> Option<RecordChange> {
        self.changes().queue.front().cloned()
    }

    /// Takes that change out.
    pub fn pop(&self) {
        let mut changes = self.changes();
        let Some(RecordChange { space, key, .. }) = changes.queue.pop_front() else { return };
        if let Entry::Occupied(mut count) = changes.counts.entry((space, key)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether a change of this record waits: then a record that others wrote before it does not count.
    pub fn waits(&self, space: &str, key: &str) -> bool {
        self.changes().counts.contains_key(&(space.to_owned(), key.to_owned()))
    }
}

/// `STAMP EDGE +VALUE`, or `STAMP EDGE -` for a removed one.
#[derive(Debug, PartialEq)]
pub(super) struct SharedRecord<'r> {
    pub stamp_ms: i64,
    pub value: Option<&'r [u8]>,
}

impl SharedRecord<'_> {
    pub fn read(bytes: &[u8]) -> Option<SharedRecord<'_>> {
        let mut parts = bytes.splitn(3, |byte| *byte == b' ');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let (stamp, _edge) = (text()?, text()?);
        let (flag, value) = parts.next()?.split_first()?;
        let value = match (flag, value.len()) {
            (b'+', ..=RECORD_BYTES_MAX) => Some(value),
            (b'-', 0) => None,
            _ => return None,
        };
        Some(SharedRecord { stamp_ms: stamp.parse().ok().filter(|stamp| *stamp > 0)?, value })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn records_are_read_and_all_else_is_left_out() {
        let record = |stamp_ms, value| Some(SharedRecord { stamp_ms, value });
        assert_eq!(SharedRecord::read(b"5 a +v w\n"), record(5, Some(&b"v w\n"[..])));
        assert_eq!(SharedRecord::read(b"5 a +"), record(5, Some(&b""[..])));
        assert_eq!(SharedRecord::read(b"5 a -"), record(5, None));
        for strange in
            [&b""[..], b"5", b"5 a", b"5 a ", b"5 a -x", b"5 a v", b"x a +v", b"0 a +v", b"-1 a +v", b"5 \xff +v"]
        {
            assert_eq!(SharedRecord::read(strange), None, "{strange:?}");
        }
        let huge = [b"5 a +".as_slice(), &vec![b'x'; RECORD_BYTES_MAX + 1]].concat();
        assert_eq!(SharedRecord::read(&huge), None);
    }

    #[test]
    fn a_queue_of_changes_has_a_bound() {
        let records = Records::default();
        for number in 0..CHANGES_MAX + 5 {
            records.publish("keyval:one", &number.to_string(), None, 0);
        }
        assert_eq!(records.changes().queue.len(), CHANGES_MAX);
        assert!(records.waits("keyval:one", "0") && !records.waits("keyval:two", "0"));
        records.pop();
        assert!(!records.waits("keyval:one", "0") && records.first().is_some_and(|change| change.key == "1"));
    }
}
