//! The task that writes the records of this edge, and reads those of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weir_net::{clock, timer};
use weir_redis::{Commands, NoReply, Value, pairs};

use crate::fleet::records::{SharedRecord, SharedSpace};
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

/// Writes and reads again and again, as long as the thread runs.
pub(super) async fn follow(shared: Arc<FleetShared>) {
    let mut follower = RecordFollower { shared: &shared, script: Script::new(RECORD), after: None, known: 0 };
    loop {
        if !follower.shared.records.spaces().0.is_empty() && follower.round().await.is_err() {
            // Reports say that Redis is away. What was missed is read again.
            follower.after = None;
        }
        timer::sleep(EVERY).await;
    }
}

struct RecordFollower<'s> {
    shared: &'s FleetShared,
    script: Script,
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
        let mut theirs = BTreeMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let reply = self.ask(&["HSCAN", &key, &cursor, "COUNT", "500"]).await?;
            let [next, found] = reply.list() else { return Err(NoReply::Unexpected) };
            for (name, record) in pairs(found.list()) {
                if let (Ok(name), Some(record)) = (String::from_utf8(name.to_vec()), SharedRecord::read(record)) {
                    theirs.insert(name, (record.stamp_ms, record.value.map(<[u8]>::to_vec)));
                }
            }
            cursor = next.text().ok_or(NoReply::Unexpected)?.to_owned();
            if cursor == "0" {
                break;
            }
        }
        let now = self.redis_ms();
        for (name, (stamp, value)) in &theirs {
            if !self.shared.records.waits(space.name(), name) {
                space.take(name, value.as_deref());
            }
            if value.is_none() && now.is_some_and(|now| now - stamp > REMOVED_MS) {
                self.ask(&["HDEL", &key, name]).await?;
            }
        }
        for (name, value) in space.all() {
            if !theirs.contains_key(&name) && !self.shared.records.waits(space.name(), &name) {
                // Older than every change that somebody made.
                self.shared.records.publish(space.name(), &name, Some(value), 1);
            }
        }
        Ok(())
    }

    /// Writes the changes of this edge; each leaves the queue when Redis has it.
    async fn write(&mut self, spaces: &[Arc<dyn SharedSpace>]) -> Result<(), NoReply> {
        loop {
            let (words, space, key) = {
                let changes = self.shared.records.changes();
                let Some(change) = changes.front() else { return Ok(()) };
                let flag = if change.value.is_some() { "+" } else { "-" };
                let value = String::from_utf8_lossy(change.value.as_deref().unwrap_or_default()).into_owned();
                let (made, most) = (change.made_ms.to_string(), STREAM_MAX.to_string());
                let edge = self.shared.settings.edge.clone();
                let words =
                    [String::new(), change.space.clone(), change.key.clone(), made, edge, flag.to_owned(), value, most];
                (words, change.space.clone(), change.key.clone())
            };
            let keys = [self.shared.keys.records(&space), self.shared.keys.changes().to_owned()];
            let keys = keys.each_ref().map(String::as_str);
            let reply = self.script.run(&self.shared.settings.server, &keys, &words, PATIENCE).await?;
            self.shared.records.changes().pop_front();
            let other = reply.list().get(1).map(Value::bytes).and_then(SharedRecord::read);
            let space = spaces.iter().find(|known| known.name() == space);
            if let (Some(other), Some(space)) = (other, space)
                && !self.shared.records.waits(space.name(), &key)
            {
                space.take(&key, other.value);
            }
        }
    }

    /// Takes over the records that others wrote.
    async fn read(&mut self, spaces: &[Arc<dyn SharedSpace>]) -> Result<(), NoReply> {
        while let Some(after) = self.after.clone() {
            let from = if after == "0-0" { "-" } else { after.as_str() };
            let count = READ_MAX.to_string();
            let reply = self.ask(&["XRANGE", self.shared.keys.changes(), from, "+", "COUNT", &count]).await?;
            let entries = reply.list();
            let (id_of, mut last) = (|entry: &Value| entry.list().first()?.text().map(str::to_owned), after.clone());
            // The last one must still be there: else changes may be missing.
            if from != "-" && entries.first().and_then(id_of) != Some(after.clone()) {
                self.after = None;
                return Ok(());
            }
            for entry in entries.iter().skip(usize::from(from != "-")) {
                let Some(id) = id_of(entry) else { return Err(NoReply::Unexpected) };
                last = id;
                self.take(spaces, entry);
            }
            self.after = Some(last);
            if entries.len() < READ_MAX {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take(&self, spaces: &[Arc<dyn SharedSpace>], entry: &Value) {
        let fields = entry.list().get(1).map(Value::list).unwrap_or_default();
        let field = |name: &[u8]| pairs(fields).find(|(known, _)| *known == name).map(|(_, value)| value);
        let (Some(space), Some(key), Some(record)) = (field(b"s"), field(b"k"), field(b"r")) else { return };
        let space = spaces.iter().find(|known| known.name().as_bytes() == space);
        let (Some(space), Ok(key), Some(record)) = (space, std::str::from_utf8(key), SharedRecord::read(record)) else {
            return;
        };
        // Its own changes come back too.
        if record.edge != self.shared.settings.edge && !self.shared.records.waits(space.name(), key) {
            space.take(key, record.value);
        }
    }

    fn redis_ms(&self) -> Option<i64> {
        self.shared.view().presence.redis_ms(self.shared.now_ms(clock::precise()))
    }

    async fn ask(&self, words: &[&str]) -> Result<Value, NoReply> {
        let replies = self.shared.settings.server.ask(Commands::one(words), PATIENCE).await?;
        replies.into_iter().next().ok_or(NoReply::Unexpected)
    }
}
