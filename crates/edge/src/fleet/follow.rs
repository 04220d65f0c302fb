//! The task that writes the records of this edge, and reads those of the others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use weir_net::log::{self, Level};
use weir_net::timer;
use weir_redis::{Commands, NoReply, Value, pairs};

use crate::fleet::records::{SharedRecord, SharedSpace, TakenRecord};
use crate::fleet::scripts::Script;
use crate::fleet::shared::{FleetShared, PATIENCE};

/// The script that writes a record. Its arguments stand in its first lines.
const RECORD: &str = include_str!("record.lua");

/// About how many changes the stream keeps: an edge that missed more reads everything again.
const STREAM_MAX: usize = 10_000;

/// Changes of one look at the stream, at most.
const READ_MAX: usize = 200;

/// The time between two looks at the stream.
const EVERY: Duration = Duration::from_millis(100);

/// The time after which a removed record is forgotten, in milliseconds.
const REMOVED_MS: i64 = 24 * 3600 * 1000;

/// Forgets a record, unless another one took its place.
const FORGET: &str =
    "if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end return 1";

/// Records of one space that are read, at most, and the pages in which they come. More are not an edge's.
const RECORDS_MAX: usize = 100_000;
const PAGES_MAX: usize = 10_000;

/// Looks at the stream in one round, at most.
const LOOKS_MAX: usize = 50;

/// Writes and reads again and again, as long as the thread runs.
pub(super) async fn follow(shared: Arc<FleetShared>) {
    let (script, forgets) = (Script::new(RECORD), Script::new(FORGET));
    let mut follower = RecordFollower { shared: &shared, script, forgets, after: None, known: 0 };
    loop {
        if !follower.shared.records.spaces().0.is_empty() {
            // Reports say that Redis is away. The next round goes on after the last change that was read.
            let _ = follower.round().await;
        }
        timer::sleep(EVERY).await;
    }
}

struct RecordFollower<'s> {
    shared: &'s FleetShared,
    script: Script,
    forgets: Script,
    /// The last change that was read; `None` if everything is to be read again.
    after: Option<String>,
    /// The spaces that were read, by how often they were replaced.
    known: u64,
}

impl RecordFollower<'_> {
    async fn round(&mut self) -> Result<(), NoReply> {
        let (spaces, version) = self.shared.records.spaces();
        if self.known != version || self.after.is_none() {
            let newest = self.ask(&["XREVRANGE", self.shared.keys.changes(), "+", "-", "COUNT", "1"]).await?;
            let newest = newest.list().first().and_then(|entry| entry.list().first()?.text());
            let after = newest.unwrap_or("0-0").to_owned();
            for space in &spaces {
                self.join(space.as_ref()).await?;
            }
            (self.after, self.known) = (Some(after), version);
        }
        self.write(&spaces).await?;
        self.read(&spaces).await
    }

    /// Takes over all records of a space, and writes those that only this edge has.
    async fn join(&mut self, space: &dyn SharedSpace) -> Result<(), NoReply> {
        let key = self.shared.keys.records(space.name());
        let (mut theirs, mut cursor) = (HashSet::new(), "0".to_owned());
        for _ in 0..PAGES_MAX {
            let reply = self.ask(&["HSCAN", &key, &cursor, "COUNT", "500"]).await?;
            let [next, found] = reply.list() else { return Err(NoReply::Unexpected) };
            let mut page = Vec::new();
            for (name, bytes) in pairs(found.list()) {
                let (Ok(name), Some(record)) = (std::str::from_utf8(name), SharedRecord::read(bytes)) else { continue };
                theirs.insert(name.to_owned());
                self.forget(&key, name, bytes, &record).await?;
                self.choose(&mut page, space, name, &record);
            }
            space.take(&page);
            next.text().ok_or(NoReply::Unexpected)?.clone_into(&mut cursor);
            if cursor == "0" || theirs.len() > RECORDS_MAX {
                break;
            }
        }
        if cursor != "0" {
            let (name, server) = (space.name(), &self.shared.settings.server);
            log::global(
                Level::Error,
                format_args!("{name} at {server} has more than {RECORDS_MAX} records: weir does not read the others"),
            );
            return Ok(());
        }
        for (name, value) in space.all() {
            if !theirs.contains(&name) && !self.shared.records.waits(space.name(), &name) {
                // Older than every change that somebody made.
                self.shared.records.publish(space.name(), &name, Some(value), 1);
            }
        }
        Ok(())
    }

    /// Forgets a record that was removed long ago.
    async fn forget(&mut self, key: &str, name: &str, bytes: &[u8], record: &SharedRecord<'_>) -> Result<(), NoReply> {
        let is_old = self.shared.redis_ms().is_some_and(|now| now - record.stamp_ms > REMOVED_MS);
        if record.value.is_none() && is_old {
            let words = [name.to_owned(), String::from_utf8_lossy(bytes).into_owned()];
            self.forgets.run(&self.shared.settings.server, &[key], &words, PATIENCE).await?;
        }
        Ok(())
    }

    /// Adds a record to those that are taken over, unless a change of this edge waits.
    fn choose(&self, taken: &mut Vec<TakenRecord>, space: &dyn SharedSpace, name: &str, record: &SharedRecord<'_>) {
        if !self.shared.records.waits(space.name(), name) {
            taken.push((name.to_owned(), record.value.map(<[u8]>::to_vec)));
        }
    }

    /// Writes the changes of this edge; each leaves the queue when Redis has it.
    async fn write(&mut self, spaces: &[Arc<dyn SharedSpace>]) -> Result<(), NoReply> {
        while let Some(change) = self.shared.records.first() {
            let flag = if change.value.is_some() { "+" } else { "-" };
            let value = String::from_utf8_lossy(change.value.as_deref().unwrap_or_default()).into_owned();
            let words = [
                String::new(),
                change.space.clone(),
                change.key.clone(),
                change.made_ms.to_string(),
                self.shared.settings.edge.clone(),
                flag.to_owned(),
                value,
                STREAM_MAX.to_string(),
            ];
            let records = self.shared.keys.records(&change.space);
            let keys = [records.as_str(), self.shared.keys.changes()];
            let reply = self.script.run(&self.shared.settings.server, &keys, &words, PATIENCE).await?;
            self.shared.records.pop();
            // A later change of another edge stays.
            let other = reply.list().get(1).map(Value::bytes).and_then(SharedRecord::read);
            let space = spaces.iter().find(|known| known.name() == change.space);
            if let (Some(other), Some(space)) = (other, space) {
                let mut taken = Vec::new();
                self.choose(&mut taken, space.as_ref(), &change.key, &other);
                space.take(&taken);
            }
        }
        Ok(())
    }

    /// Takes over the changes that stand in the stream.
    async fn read(&mut self, spaces: &[Arc<dyn SharedSpace>]) -> Result<(), NoReply> {
        for _ in 0..LOOKS_MAX {
            let Some(after) = self.after.clone() else { return Ok(()) };
            let from = if after == "0-0" { "-" } else { after.as_str() };
            let count = READ_MAX.to_string();
            let reply = self.ask(&["XRANGE", self.shared.keys.changes(), from, "+", "COUNT", &count]).await?;
            let id_of = |entry: &Value| entry.list().first()?.text().map(str::to_owned);
            let mut entries = reply.list();
            let is_whole = entries.len() < READ_MAX;
            if from != "-" {
                // The last one must still be there: else changes may be missing.
                match entries.split_first() {
                    Some((first, rest)) if id_of(first) == Some(after) => entries = rest,
                    _ => {
                        self.after = None;
                        return Ok(());
                    }
                }
            }
            self.take(spaces, entries);
            if let Some(last) = entries.last() {
                self.after = Some(id_of(last).ok_or(NoReply::Unexpected)?);
            }
            if is_whole {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes the records of entries of the stream over, in their order.
    fn take(&self, spaces: &[Arc<dyn SharedSpace>], entries: &[Value]) {
        for space in spaces {
            let mut taken = Vec::new();
            for entry in entries {
                let fields = entry.list().get(1).map(Value::list).unwrap_or_default();
                let field = |name: &[u8]| pairs(fields).find(|(known, _)| *known == name).map(|(_, value)| value);
                let (Some(of), Some(key), Some(record)) = (field(b"s"), field(b"k"), field(b"r")) else { continue };
                let (Ok(key), Some(record)) = (std::str::from_utf8(key), SharedRecord::read(record)) else { continue };
                // Its own changes too: the last entry of a key is the one that holds.
                if of == space.name().as_bytes() {
                    self.choose(&mut taken, space.as_ref(), key, &record);
                }
            }
            if !taken.is_empty() {
                space.take(&taken);
            }
        }
    }

    async fn ask(&self, words: &[&str]) -> Result<Value, NoReply> {
        let replies = self.shared.settings.server.ask(Commands::one(words), PATIENCE).await?;
        replies.into_iter().next().ok_or(NoReply::Unexpected)
    }
}
