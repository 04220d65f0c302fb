//! The keys of the purge log in Redis, the commands on them, and the replies.
//!
//! Three keys: `NAME` is the stream of purges, `NAME:applied` is a short stream in which edges report the last entry
//! they have applied, `NAME:edges` a hash of all edges. <https://redis.io/docs/latest/commands/xread/>

use std::time::Duration;

use weir_redis::{Commands, Link, NoReply, RedisServer, Value, pairs};

use crate::purge::edges::Beat;
use crate::purge::entry::{Entry, Id};

/// Entries of one read, at most.
const READ_MAX: usize = 100;

/// About how many reports of edges the stream keeps for waiting edges; the hash of all edges has the rest.
const APPLIED_MAX: usize = 1000;

/// The names of the keys.
#[derive(Debug)]
pub struct Keys {
    stream: String,
    applied: String,
    edges: String,
}

/// The result of a read.
#[derive(Debug, Default)]
pub struct OrderNews {
    /// Entries of the log, in order.
    pub entries: Vec<Entry>,
    /// Edges, and the last entries they report as applied.
    pub applied: Vec<(String, Id)>,
    /// Where to continue reading the reports.
    pub heard: Id,
}

/// The state of the log.
#[derive(Debug)]
pub struct Look {
    /// Redis' clock, in milliseconds.
    pub now_ms: u64,
    /// All edges.
    pub edges: Vec<(String, Beat)>,
    /// Whether the requested entry is there.
    pub is_there: bool,
    /// The newest entry.
    pub newest: Option<Id>,
}

impl Keys {
    /// The keys of a log.
    pub fn of(stream: &str) -> Keys {
        let (applied, edges) = (format!("{stream}:applied"), format!("{stream}:edges"));
        Keys { stream: stream.to_owned(), applied, edges }
    }

    /// Appends entries, all or none, and looks at the log.
    ///
    /// The look is for the edges that wait: weir also waits for an edge that joined since the last one.
    pub fn append(&self, entries: &[Vec<(&'static str, String)>], length_max: u64) -> Commands {
        let length_max = length_max.to_string();
        let mut commands = Commands::one(&["MULTI"]);
        for fields in entries {
            let mut words = vec!["XADD", &self.stream, "MAXLEN", "~", &length_max, "*"];
            words.extend(fields.iter().flat_map(|(name, text)| [*name, text.as_str()]));
            commands.add(&words);
        }
        commands.add(&["EXEC"]);
        self.add_look(&mut commands, Id::default());
        commands
    }

    /// The replies to [`Keys::append`]: the id of the last entry, and the state of the log.
    pub fn appended(replies: &[Value]) -> Result<(Id, Look), NoReply> {
        let (before, look) = replies.split_at(replies.len().saturating_sub(LOOK_REPLIES));
        let id = before.last().and_then(|ids| id_of(ids.list().last()?)).ok_or(NoReply::Unexpected)?;
        Ok((id, look_of(look)?))
    }

    /// Takes edges out of the hash.
    pub fn forget(&self, edges: &[String]) -> Commands {
        let words: Vec<&str> = ["HDEL", &self.edges].into_iter().chain(edges.iter().map(String::as_str)).collect();
        Commands::one(&words)
    }

    fn add_look(&self, commands: &mut Commands, id: Id) {
        let id = id.to_string();
        commands.add(&["TIME"]);
        commands.add(&["HGETALL", &self.edges]);
        commands.add(&["XRANGE", &self.stream, &id, &id]);
        commands.add(&newest(&self.stream));
    }
}

/// The number of replies to a look.
const LOOK_REPLIES: usize = 4;

fn look_of(replies: &[Value]) -> Result<Look, NoReply> {
    let [time, edges, there, newest] = replies else { return Err(NoReply::Unexpected) };
    let edges = pairs(edges.list())
        .filter_map(|(name, beat)| Some((String::from_utf8(name.to_vec()).ok()?, Beat::parse(beat)?)));
    Ok(Look {
        now_ms: time_ms(time).ok_or(NoReply::Unexpected)?,
        edges: edges.collect(),
        is_there: first_id(there).is_some(),
        newest: first_id(newest),
    })
}

/// The connection of the thread that follows the log.
pub struct Follower {
    link: Link,
    keys: Keys,
    timeout: Duration,
}

impl Follower {
    /// Connects; each command may take as long as `timeout`.
    pub async fn open(server: &RedisServer, stream: &str, timeout: Duration) -> Result<Follower, NoReply> {
        Ok(Follower { link: server.link(timeout).await?, keys: Keys::of(stream), timeout })
    }

    /// The newest entry; makes one if there is none, so that every edge has an id to continue from.
    pub async fn newest_or_begin(&mut self) -> Result<Id, NoReply> {
        if let Some(id) = self.look(Id::default()).await?.newest {
            return Ok(id);
        }
        let reply = self.ask(&Commands::one(&["XADD", &self.keys.stream, "*", "kind", "begin"])).await?;
        reply.first().and_then(id_of).ok_or(NoReply::Unexpected)
    }

    /// The id of the newest report.
    pub async fn newest_heard(&mut self) -> Result<Id, NoReply> {
        let reply = self.ask(&Commands::one(&newest(&self.keys.applied))).await?;
        Ok(reply.first().and_then(first_id).unwrap_or_default())
    }

    /// The state of the log, and whether entry `id` is there.
    pub async fn look(&mut self, id: Id) -> Result<Look, NoReply> {
        let mut commands = Commands::default();
        self.keys.add_look(&mut commands, id);
        look_of(&self.ask(&commands).await?)
    }

    /// The entries after `after` and the reports after `heard`; waits at most `block` for new ones.
    pub async fn read(&mut self, after: Id, heard: Id, block: Duration) -> Result<OrderNews, NoReply> {
        let (count, block_ms) = (READ_MAX.to_string(), block.as_millis().max(1).to_string());
        let (stream, applied) = (self.keys.stream.as_str(), self.keys.applied.as_str());
        let (after, from) = (after.to_string(), heard.to_string());
        let words = ["XREAD", "COUNT", &count, "BLOCK", &block_ms, "STREAMS", stream, applied, &after, &from];
        let replies = self.link.ask(&Commands::one(&words), block + self.timeout).await?;
        let mut news = OrderNews { heard, ..OrderNews::default() };
        for of_stream in replies.iter().flat_map(Value::list) {
            let [name, entries] = of_stream.list() else { return Err(NoReply::Unexpected) };
            for entry in entries.list() {
                let [id, fields] = entry.list() else { return Err(NoReply::Unexpected) };
                let (id, fields) = (id_of(id).ok_or(NoReply::Unexpected)?, pairs(fields.list()));
                if name.bytes() == stream.as_bytes() {
                    news.entries.push(Entry::of_fields(id, fields));
                } else {
                    news.heard = id;
                    news.applied.extend(fields.filter_map(|(name, applied)| {
                        Some((String::from_utf8(name.to_vec()).ok()?, Id::parse(applied)?))
                    }));
                }
            }
        }
        Ok(news)
    }

    /// Reports for all edges how far an edge is: in the hash, and if `aloud`, also in the stream that waiting edges
    /// read.
    pub async fn say(&mut self, edge: &str, beat: &Beat, aloud: bool) -> Result<(), NoReply> {
        let mut commands = Commands::one(&["HSET", &self.keys.edges, edge, &beat.to_text()]);
        if aloud {
            let (most, id) = (APPLIED_MAX.to_string(), beat.applied.to_string());
            commands.add(&["XADD", &self.keys.applied, "MAXLEN", "~", &most, "*", edge, &id]);
        }
        self.ask(&commands).await.map(drop)
    }

    /// Takes edges out of the hash.
    pub async fn forget(&mut self, edges: &[String]) -> Result<(), NoReply> {
        if edges.is_empty() { Ok(()) } else { self.ask(&self.keys.forget(edges)).await.map(drop) }
    }

    async fn ask(&mut self, commands: &Commands) -> Result<Vec<Value>, NoReply> {
        self.link.ask(commands, self.timeout).await
    }
}

fn newest(stream: &str) -> [&str; 6] {
    ["XREVRANGE", stream, "+", "-", "COUNT", "1"]
}

fn id_of(value: &Value) -> Option<Id> {
    Id::parse(value.bytes())
}

/// The id of the first entry of a range.
fn first_id(range: &Value) -> Option<Id> {
    id_of(range.list().first()?.list().first()?)
}

/// Milliseconds from the reply to `TIME`: seconds and microseconds.
fn time_ms(value: &Value) -> Option<u64> {
    let [seconds, micros] = value.list() else { return None };
    let number = |value: &Value| value.text()?.parse::<u64>().ok();
    number(seconds)?.checked_mul(1000)?.checked_add(number(micros)? / 1000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    mod mutate {
        use super::*;
        use crate::purge::entry::Entry;
        use weir_mutate::mutate;

        /// Answers of Redis: each reader takes its parts or nothing, and an id reads the same when it is written.
        #[test]
        fn answers_of_redis() {
            let seeds: [&[u8]; 5] = [
                b"*1\r\n*2\r\n$3\r\n5-1\r\n*4\r\n$4\r\nkind\r\n$3\r\ntag\r\n$5\r\nvalue\r\n$1\r\na\r\n",
                b"*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n",
                b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n5-2\r\n*0\r\n",
                b"-ERR no\r\n",
                b"%1\r\n+a\r\n:1\r\n_\r\n",
            ];
            let words = [
                "*",
                "$",
                ":",
                "+",
                "-",
                "\r\n",
                "-1",
                "*-1\r\n",
                "$-1\r\n",
                "99999999999",
                "~1\r\n",
                "#t\r\n",
                "5-18446744073709551616",
            ];
            mutate(&seeds, &words, |mut bytes| {
                let length = bytes.len();
                let Ok(value) = Value::read(&mut bytes) else { return };
                if let Some(id) = first_id(&value).or(id_of(&value)) {
                    assert_eq!(Id::parse(id.to_string().as_bytes()), Some(id));
                }
                let _ = time_ms(&value);
                for entry in value.list() {
                    if let [id, fields] = entry.list() {
                        let entry = Entry::of_fields(id_of(id).unwrap_or_default(), pairs(fields.list()));
                        assert!(entry.run.len() <= length);
                    }
                }
            });
        }
    }
}
