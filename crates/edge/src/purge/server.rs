//! The commands to Redis: each blocks for a limited time, on a thread of the bus.
//!
//! Three keys: `NAME` is the stream of purges, `NAME:applied` is a short stream in which edges report the last entry
//! they have applied, `NAME:edges` a hash of all edges. <https://redis.io/docs/latest/commands/xread/>

use std::fmt;
use std::time::Duration;

use redis::{Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Pipeline, Value};
use weir_net::process;

use crate::purge::edges::Beat;
use crate::purge::entry::{Entry, Id};

/// Entries of one read, at most.
pub const READ_MAX: usize = 100;

/// About how many reports of edges the stream keeps for waiting edges; the hash of all edges has the rest.
const APPLIED_MAX: usize = 1000;

/// A server by its URL.
#[derive(Clone, Debug)]
pub struct Server {
    url: String,
    info: ConnectionInfo,
}

/// Two servers are equal if their URLs are.
impl PartialEq for Server {
    fn eq(&self, other: &Server) -> bool {
        self.url == other.url
    }
}

impl fmt::Display for Server {
    /// Its address, without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.info.addr())
    }
}

impl Server {
    /// Reads `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`; the error is for the user, and does not contain the password.
    pub fn parse(url: &str) -> Result<Server, &'static str> {
        const FORM: &str = "write the purge log as redis://[user:password@]HOST:PORT[/DB]";
        let (scheme, _) = url.split_once("://").ok_or(FORM)?;
        match scheme {
            "redis" => {}
            "rediss" => {
                return Err(
                    "weir connects to Redis without TLS: write redis://, if necessary through a tunnel such as stunnel",
                );
            }
            _ => return Err(FORM),
        }
        let info = url.into_connection_info().map_err(|_| FORM)?;
        match info.addr() {
            ConnectionAddr::Tcp(host, port) if !host.is_empty() && *port > 0 => {}
            _ => return Err(FORM),
        }
        // Identifies this connection in CLIENT LIST.
        let redis = info.redis_settings().clone().set_lib_name("weir", env!("CARGO_PKG_VERSION"));
        Ok(Server { url: url.to_owned(), info: info.set_redis_settings(redis) })
    }
}

impl Server {
    /// A connection whose commands may take as long as `timeout`.
    pub fn connect(&self, timeout: Duration) -> Result<Connection, Failed> {
        let client = self.client()?;
        let connection = client.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        Ok(connection)
    }

    /// A client of the server's address at this moment: the server process itself may not ask the system's resolver.
    fn client(&self) -> Result<redis::Client, Failed> {
        let ConnectionAddr::Tcp(host, port) = self.info.addr() else {
            return Ok(redis::Client::open(self.info.clone())?);
        };
        let unknown = || Failed(format!("host not found: \"{host}\""));
        let found = process::resolve(host).map_err(|_| unknown())?;
        let address = ConnectionAddr::Tcp(found.first().ok_or_else(unknown)?.to_string(), *port);
        Ok(redis::Client::open(self.info.clone().set_addr(address))?)
    }
}

/// Why a command failed, in words.
#[derive(Debug)]
pub struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<redis::RedisError> for Failed {
    fn from(error: redis::RedisError) -> Failed {
        match error.is_timeout() {
            true => Failed("the server did not answer in time".to_owned()),
            false => Failed(error.to_string()),
        }
    }
}

/// One connection.
pub struct Link {
    connection: Connection,
    stream: String,
    applied: String,
    edges: String,
}

/// The result of a read.
#[derive(Debug, Default)]
pub struct News {
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

impl Link {
    /// Connects within `timeout`; after that a command may take `patience`.
    pub fn open(server: &Server, stream: &str, timeout: Duration, patience: Duration) -> Result<Link, Failed> {
        let client = server.client()?;
        let connection = client.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(patience))?;
        connection.set_write_timeout(Some(timeout))?;
        let (applied, edges) = (format!("{stream}:applied"), format!("{stream}:edges"));
        Ok(Link { connection, stream: stream.to_owned(), applied, edges })
    }

    /// The newest entry; makes one if there is none, so that every edge has an id to continue from.
    pub fn newest_or_begin(&mut self) -> Result<Id, Failed> {
        if let Some(id) = self.look(Id::default())?.newest {
            return Ok(id);
        }
        let reply: Value =
            redis::cmd("XADD").arg(&self.stream).arg("*").arg("kind").arg("begin").query(&mut self.connection)?;
        id_of(&reply).ok_or_else(unexpected)
    }

    /// The id of the newest report.
    pub fn newest_heard(&mut self) -> Result<Id, Failed> {
        let reply: Value = newest(&self.applied).query(&mut self.connection)?;
        Ok(first_id(&reply).unwrap_or_default())
    }

    /// The state of the log, and whether entry `id` is there.
    pub fn look(&mut self, id: Id) -> Result<Look, Failed> {
        let mut pipe = redis::pipe();
        pipe.cmd("TIME");
        pipe.cmd("HGETALL").arg(&self.edges);
        pipe.cmd("XRANGE").arg(&self.stream).arg(id.to_string()).arg(id.to_string());
        pipe.add_command(newest(&self.stream));
        let replies: Vec<Value> = pipe.query(&mut self.connection)?;
        let [time, edges, there, newest] = replies.as_slice() else { return Err(unexpected()) };
        let edges = pairs(list(edges))
            .filter_map(|(name, beat)| Some((String::from_utf8(name.to_vec()).ok()?, Beat::parse(beat)?)));
        Ok(Look {
            now_ms: time_ms(time).ok_or_else(unexpected)?,
            edges: edges.collect(),
            is_there: first_id(there).is_some(),
            newest: first_id(newest),
        })
    }

    /// The entries after `after` and the reports after `heard`; waits at most `block` for new ones.
    pub fn read(&mut self, after: Id, heard: Id, block: Duration) -> Result<News, Failed> {
        let reply: Value = redis::cmd("XREAD")
            .arg("COUNT")
            .arg(READ_MAX)
            .arg("BLOCK")
            .arg(u64::try_from(block.as_millis()).unwrap_or(1).max(1))
            .arg("STREAMS")
            .arg(&self.stream)
            .arg(&self.applied)
            .arg(after.to_string())
            .arg(heard.to_string())
            .query(&mut self.connection)?;
        let mut news = News { heard, ..News::default() };
        for stream in list(&reply) {
            let [name, entries] = list(stream) else { return Err(unexpected()) };
            for entry in list(entries) {
                let [id, fields] = list(entry) else { return Err(unexpected()) };
                let id = id_of(id).ok_or_else(unexpected)?;
                if bytes(name) == self.stream.as_bytes() {
                    news.entries.push(Entry::of_fields(id, pairs(list(fields))));
                } else {
                    news.heard = id;
                    news.applied.extend(pairs(list(fields)).filter_map(|(name, applied)| {
                        Some((String::from_utf8(name.to_vec()).ok()?, Id::parse(applied)?))
                    }));
                }
            }
        }
        Ok(news)
    }

    /// Appends entries, all or none; returns the id of the last.
    pub fn append(&mut self, entries: &[Vec<(&'static str, String)>], length_max: u64) -> Result<Id, Failed> {
        let mut pipe = redis::pipe();
        pipe.atomic();
        for fields in entries {
            pipe.cmd("XADD").arg(&self.stream).arg("MAXLEN").arg("~").arg(length_max).arg("*");
            for (name, text) in fields {
                pipe.arg(*name).arg(text);
            }
        }
        let replies: Vec<Value> = pipe.query(&mut self.connection)?;
        replies.last().and_then(id_of).ok_or_else(unexpected)
    }

    /// Reports for all edges how far an edge is: in the hash, and if `aloud`, also in the stream that waiting edges
    /// read.
    pub fn say(&mut self, edge: &str, beat: &Beat, aloud: bool) -> Result<(), Failed> {
        let mut pipe = redis::pipe();
        self.set_beat(&mut pipe, edge, beat);
        if aloud {
            pipe.cmd("XADD").arg(&self.applied).arg("MAXLEN").arg("~").arg(APPLIED_MAX).arg("*");
            pipe.arg(edge).arg(beat.applied.to_string());
        }
        let _: Vec<Value> = pipe.query(&mut self.connection)?;
        Ok(())
    }

    /// Takes edges out of the hash.
    pub fn forget(&mut self, edges: &[String]) -> Result<(), Failed> {
        if !edges.is_empty() {
            let _: Value = redis::cmd("HDEL").arg(&self.edges).arg(edges).query(&mut self.connection)?;
        }
        Ok(())
    }

    fn set_beat(&self, pipe: &mut Pipeline, edge: &str, beat: &Beat) {
        pipe.cmd("HSET").arg(&self.edges).arg(edge).arg(beat.to_text());
    }
}

fn newest(stream: &str) -> redis::Cmd {
    let mut command = redis::cmd("XREVRANGE");
    command.arg(stream).arg("+").arg("-").arg("COUNT").arg(1);
    command
}

fn unexpected() -> Failed {
    Failed("the answer is not that of Redis 5.0 or later".to_owned())
}

/// The items of a list; none for any other value.
fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        _ => &[],
    }
}

fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) => text.as_bytes(),
        _ => &[],
    }
}

fn pairs(values: &[Value]) -> impl Iterator<Item = (&[u8], &[u8])> {
    values.chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((bytes(name), bytes(value))),
        _ => None,
    })
}

fn id_of(value: &Value) -> Option<Id> {
    Id::parse(bytes(value))
}

/// The id of the first entry of a range.
fn first_id(range: &Value) -> Option<Id> {
    id_of(list(list(range).first()?).first()?)
}

/// Milliseconds from the reply to `TIME`: seconds and microseconds.
fn time_ms(value: &Value) -> Option<u64> {
    let [seconds, micros] = list(value) else { return None };
    let number = |value: &Value| std::str::from_utf8(bytes(value)).ok()?.parse::<u64>().ok();
    number(seconds)?.checked_mul(1000)?.checked_add(number(micros)? / 1000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn servers_are_read_and_passwords_kept() {
        let server = Server::parse("redis://user:s3cret@10.0.0.1:7000/2").unwrap();
        assert_eq!(server.to_string(), "10.0.0.1:7000");
        assert_eq!(server.info.redis_settings().db(), 2);
        assert_eq!(server.info.redis_settings().password(), Some("s3cret"));
        assert_eq!(Server::parse("redis://h").unwrap().to_string(), "h:6379");
        for (url, words) in [
            ("rediss://h", "without TLS"),
            ("http://h", "redis://["),
            ("h:6379", "redis://["),
            ("redis://", "redis://["),
            ("redis://h:99999", "redis://["),
            ("redis://h/x", "redis://["),
        ] {
            let said = Server::parse(url).unwrap_err();
            assert!(said.contains(words), "{url}: {said}");
        }
    }

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
            mutate(&seeds, &words, |bytes| {
                let Ok(value) = redis::parse_redis_value(bytes) else { return };
                if let Some(id) = first_id(&value).or(id_of(&value)) {
                    assert_eq!(Id::parse(id.to_string().as_bytes()), Some(id));
                }
                let _ = time_ms(&value);
                for entry in list(&value) {
                    if let [id, fields] = list(entry) {
                        let entry = Entry::of_fields(id_of(id).unwrap_or_default(), pairs(list(fields)));
                        assert!(entry.run.len() <= bytes.len());
                    }
                }
            });
        }
    }
}
