//! Shared zones: tables in which all workers count. A reload keeps them, and the zone's size bounds their memory.
//!
//! A table is split into shards by the key's hash, each behind its own lock held for one lookup. Invariant: the keys
//! of a shard and `ENTRY_BYTES` for each never exceed its share of the zone, except for a single key that is larger
//! than the share.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_conf::{At, Statement};
use weir_net::log::Level;
use weir_net::{Instant, Lease, buffer, clock};

use crate::exchange::subject::Subject;
use crate::read::build::Build;
use crate::text::refusal::Refusal;
use crate::text::template::Template;
use crate::text::value;

/// The assumed size of an entry besides its key; nginx's nodes have about the same size.
const ENTRY_BYTES: usize = 96;

/// A zone has at most this many shards.
const SHARDS_MAX: usize = 16;

/// No shard is smaller than this.
const SHARD_BYTES_MIN: usize = 64 << 10;

/// nginx refuses zones of less than eight pages.
const ZONE_BYTES_MIN: u64 = 32 << 10;

/// A zone as a file declares it, and its table, which reloads do not change.
pub struct Zone<T, P = ()> {
    /// Its name.
    pub name: String,
    /// The key as written.
    pub key_text: String,
    /// Further parameters of its family.
    pub parameters: P,
    /// The counts.
    pub table: Arc<Table<T>>,
    /// Bytes.
    size: u64,
    /// The text that requests are counted by.
    key: Template,
    /// The number of the cell that counts its verdicts.
    pub cell: u32,
}

/// The zones that one family's directive declares, in the order of the file.
pub struct Zones<T, P = ()>(Vec<Zone<T, P>>);

impl<T, P> Default for Zones<T, P> {
    fn default() -> Zones<T, P> {
        Zones(Vec::new())
    }
}

/// Reads `zone=NAME:SIZE`; `None` when the word is something else.
pub fn parameter(word: &str) -> Option<Result<(String, u64), Refusal>> {
    let rest = word.strip_prefix("zone=")?;
    let read = || {
        let (name, size) = rest.split_once(':').ok_or("invalid zone size")?;
        let size = value::size_of(size).ok_or("invalid zone size")?;
        Ok::<_, &str>((name.to_owned(), size))
    };
    Some(match read() {
        Err(words) => Err(Refusal::whole(format!("{words} \"{word}\""))),
        Ok((_, size)) if size < ZONE_BYTES_MIN => Err(Refusal::whole(format!("zone \"{word}\" is too small"))),
        Ok(zone) => Ok(zone),
    })
}

/// Refuses a use of a zone that no directive declares, in nginx's words.
pub fn refuse_undeclared(b: &mut Build<'_>, (directive, at): (&str, At), name: &str) {
    let declares = format!("{directive}_zone");
    let refusal = Refusal::whole(format!("zero size shared memory zone \"{name}\""))
        .todo(format!("declare it with {declares} in http"))
        .needs(&declares, name);
    b.refuse_at(directive, refusal, at);
}

impl<T, P> Zones<T, P> {
    /// Adds the zone that `statement` declares; its first argument is the key. `place` is the result of `parameter`.
    pub fn declare(
        &mut self,
        statement: &Statement,
        key: Template,
        place: Option<(String, u64)>,
        parameters: P,
    ) -> Result<(), Refusal> {
        let directive = &statement.name.text;
        let Some((name, size)) = place.filter(|(name, _)| !name.is_empty()) else {
            return Err(Refusal::whole(format!("\"{directive}\" must have \"zone\" parameter")));
        };
        if let Some(known) = self.0.iter().find(|known| known.name == name) {
            let bound = &known.key_text;
            return Err(Refusal::whole(format!("{directive} \"{name}\" is already bound to key \"{bound}\"")));
        }
        let key_text = statement.text(0).to_owned();
        self.0.push(Zone { name, key_text, parameters, table: Arc::new(Table::new(size)), size, key, cell: 0 });
        Ok(())
    }

    /// Gives each zone the cell that `number` returns for its name.
    pub fn number_cells(&mut self, number: impl Fn(&str) -> u32) {
        for zone in &mut self.0 {
            zone.cell = number(&zone.name);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Zone<T, P>> {
        self.0.iter()
    }

    /// All of them, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Zone<T, P>> {
        self.0.iter_mut()
    }

    /// The number of the zone of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|zone| zone.name == name)
    }

    /// The zone of that number.
    pub fn get(&self, number: usize) -> Option<&Zone<T, P>> {
        self.0.get(number)
    }

    /// Takes over the tables of the same zones in an older configuration. If a zone's key changed, returns an error
    /// that begins with `who`.
    pub fn adopt(&mut self, old: &Zones<T, P>, who: &str) -> Result<(), String> {
        for new in &mut self.0 {
            for old in &old.0 {
                if new.continues(old, who)? {
                    new.table = old.table.clone();
                }
            }
        }
        Ok(())
    }
}

impl<T, P> Zone<T, P> {
    /// Bytes it may use.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The text that requests are counted by.
    pub fn key(&self) -> &Template {
        &self.key
    }

    /// The key of this exchange; `None` if it is empty, or if it is too long, which weir logs.
    pub fn key_of<'c>(&self, subject: &mut impl Subject<'c>, bytes_max: usize) -> Option<Lease> {
        let mut key = buffer::lease(0);
        self.key.eval(subject, &mut key);
        if key.is_empty() {
            return None;
        }
        if key.len() > bytes_max {
            subject.note(
                Level::Error,
                format_args!(
                    "the value of the \"{}\" key is more than {bytes_max} bytes: \"{}\"",
                    self.key_text,
                    String::from_utf8_lossy(&key)
                ),
            );
            return None;
        }
        Some(key)
    }

    /// Whether this zone continues the zone of an older configuration; an error if the keys differ.
    fn continues(&self, old: &Zone<T, P>, who: &str) -> Result<bool, String> {
        if self.name != old.name || self.size != old.size {
            return Ok(false);
        }
        if self.key_text != old.key_text {
            return Err(format!(
                "{who} \"{}\" uses the \"{}\" key while previously it used the \"{}\" key",
                self.name, self.key_text, old.key_text
            ));
        }
        Ok(true)
    }
}

/// A sharded table of keys to values.
pub struct Table<T> {
    shards: Box<[Mutex<Shard<T>>]>,
    hasher: std::hash::RandomState,
    /// The start of its time.
    epoch: Instant,
}

impl<T> Table<T> {
    /// A table of this many bytes.
    pub fn new(bytes: u64) -> Table<T> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let count = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shards = (0..count).map(|_| Mutex::new(Shard::new(bytes / count))).collect();
        Table { shards, hasher: std::hash::RandomState::new(), epoch: clock::now() }
    }

    /// Bytes that its entries use; locks one shard after the other.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).bytes as u64).sum()
    }

    /// Milliseconds since the table was made.
    pub fn age_ms(&self) -> i64 {
        i64::try_from(clock::now().saturating_duration_since(self.epoch).as_millis()).unwrap_or(i64::MAX)
    }

    /// The shard of a key, locked.
    pub fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard<T>> {
        let index = self.hasher.hash_one(key) as usize % self.shards.len();
        // A worker that panicked left at most one wrong count.
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One shard: a map, and a list of its entries from the last used to the first.
pub struct Shard<T> {
    index: HashMap<Box<[u8]>, u32>,
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    bytes: usize,
    bytes_max: usize,
}

struct Node<T> {
    key: Box<[u8]>,
    value: Option<T>,
    newer: u32,
    older: u32,
}

const NOBODY: u32 = u32::MAX;

impl<T> Shard<T> {
    fn new(bytes_max: usize) -> Shard<T> {
        Shard {
            index: HashMap::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            newest: NOBODY,
            oldest: NOBODY,
            bytes: 0,
            bytes_max,
        }
    }

    /// The value of a key; marks the key as last used.
    pub fn get(&mut self, key: &[u8]) -> Option<&mut T> {
        let at = *self.index.get(key)?;
        self.unlink(at);
        self.link(at);
        self.nodes.get_mut(at as usize)?.value.as_mut()
    }

    /// Adds a key that the shard does not have; removes the longest unused entries to make room.
    pub fn insert(&mut self, key: &[u8], value: T) {
        let cost = key.len() + ENTRY_BYTES;
        while self.bytes + cost > self.bytes_max && self.oldest != NOBODY {
            self.remove_at(self.oldest);
        }
        self.add(key, value);
    }

    /// Adds a key that the shard does not have, if there is room.
    pub fn insert_if_room(&mut self, key: &[u8], value: T) -> bool {
        let has_room = self.bytes + key.len() + ENTRY_BYTES <= self.bytes_max || self.index.is_empty();
        if has_room {
            self.add(key, value);
        }
        has_room
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &[u8]) {
        if let Some(at) = self.index.get(key) {
            self.remove_at(*at);
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    fn add(&mut self, key: &[u8], value: T) {
        let node = Node { key: key.into(), value: Some(value), newer: NOBODY, older: NOBODY };
        let at = match self.free.pop() {
            Some(at) => at,
            None => self.nodes.len() as u32,
        };
        match self.nodes.get_mut(at as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.index.insert(key.into(), at);
        self.bytes += key.len() + ENTRY_BYTES;
        self.link(at);
    }

    fn remove_at(&mut self, at: u32) {
        self.unlink(at);
        let Some(node) = self.nodes.get_mut(at as usize) else { return };
        node.value = None;
        let key = std::mem::take(&mut node.key);
        self.index.remove(&key);
        self.bytes -= key.len() + ENTRY_BYTES;
        self.free.push(at);
    }

    fn link(&mut self, at: u32) {
        let older = self.newest;
        if let Some(node) = self.nodes.get_mut(at as usize) {
            (node.newer, node.older) = (NOBODY, older);
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Some((newer, older)) = self.nodes.get(at as usize).map(|node| (node.newer, node.older)) else { return };
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_entry_unused_longest_makes_room() {
        let mut shard = Shard::new(3 * (ENTRY_BYTES + 1));
        for key in [b"a", b"b", b"c"] {
            shard.insert(key, 0);
        }
        *shard.get(b"a").unwrap() += 1;
        shard.insert(b"d", 0);
        assert!(shard.get(b"b").is_none());
        assert_eq!(shard.get(b"a").copied(), Some(1));
        assert!(!shard.insert_if_room(b"e", 0));
        shard.remove(b"c");
        assert!(shard.insert_if_room(b"e", 0));
        assert_eq!(shard.len(), 3);
        assert_eq!(shard.bytes, 3 * (ENTRY_BYTES + 1));
    }

    #[test]
    fn a_shard_never_outgrows_its_share() {
        let mut shard = Shard::new(10 * ENTRY_BYTES);
        for number in 0..1000u32 {
            let key = format!("{number}").repeat(number as usize % 7 + 1);
            shard.insert(key.as_bytes(), number);
            assert!(shard.bytes <= shard.bytes_max);
            assert_eq!(shard.get(key.as_bytes()).copied(), Some(number));
        }
        assert!(shard.nodes.len() <= 10);
    }

    #[test]
    fn zone_parameters_are_read_in_nginx_words() {
        let read = |word| parameter(word).map(|result| result.map_err(|refusal| refusal.what));
        for (word, result) in [
            ("zone=one:1m", Some(Ok(("one".to_owned(), 1 << 20)))),
            ("zone=one", Some(Err("invalid zone size \"zone=one\"".to_owned()))),
            ("zone=one:x", Some(Err("invalid zone size \"zone=one:x\"".to_owned()))),
            ("zone=one:1k", Some(Err("zone \"zone=one:1k\" is too small".to_owned()))),
            ("rate=1r/s", None),
        ] {
            assert_eq!(read(word), result, "{word}");
        }
    }
}
