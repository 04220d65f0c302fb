//! The keys of a fleet in Redis, and its scripts there.

use std::time::Duration;

use sha2::{Digest, Sha256};
use weir_redis::{Commands, NoReply, RedisServer, Value};

/// The names of the keys. The braces keep them together in a cluster.
#[derive(Debug)]
pub(super) struct FleetKeys {
    name: String,
    state: String,
    edges: String,
    figures: String,
    changes: String,
    sessions: String,
}

/// Bytes of a key's hash. Keys may be long, and may name clients.
const HASH_BYTES: usize = 16;

impl FleetKeys {
    pub fn of(name: &str) -> FleetKeys {
        let name = format!("{{weir:{name}}}");
        let key = |what: &str| format!("{name}:{what}");
        FleetKeys {
            state: key("fleet"),
            edges: key("shares"),
            figures: key("figures"),
            changes: key("changes"),
            sessions: key("sessions"),
            name,
        }
    }

    /// The ledger's state.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The edges with their shares.
    pub fn edges(&self) -> &str {
        &self.edges
    }

    /// The edges with their figures.
    pub fn figures(&self) -> &str {
        &self.figures
    }

    /// The stream of changes of records.
    pub fn changes(&self) -> &str {
        &self.changes
    }

    /// The stream of sessions of `sticky learn`.
    pub fn sessions(&self) -> &str {
        &self.sessions
    }

    /// The records of a space.
    pub fn records(&self, space: &str) -> String {
        format!("{}:records:{space}", self.name)
    }

    /// The bucket of a key of a zone.
    pub fn bucket(&self, zone: &str, key: &[u8]) -> String {
        let hash = Sha256::digest(key);
        let hex: String = hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
        format!("{}:req:{zone}:{hex}", self.name)
    }

    /// Takes an edge out.
    pub fn leave(&self, edge: &str) -> Commands {
        let mut commands = Commands::one(&["HDEL", &self.edges, edge]);
        commands.add(&["HDEL", &self.figures, edge]);
        commands
    }
}

/// A script, and the name that Redis gives to it (<https://redis.io/docs/latest/commands/evalsha/>).
pub(super) struct Script {
    text: &'static str,
    known_as: Option<String>,
}

impl Script {
    pub fn new(text: &'static str) -> Script {
        Script { text, known_as: None }
    }

    /// Runs it. Redis learns it first, also after it lost its memory.
    pub async fn run(
        &mut self,
        server: &RedisServer,
        keys: &[&str],
        words: &[String],
        timeout: Duration,
    ) -> Result<Value, NoReply> {
        let name = match self.known_as.take() {
            Some(name) => name,
            None => {
                let reply = server.ask(Commands::one(&["SCRIPT", "LOAD", self.text]), timeout).await?;
                reply.first().and_then(Value::text).map(str::to_owned).ok_or(NoReply::Unexpected)?
            }
        };
        let count = keys.len().to_string();
        let head = ["EVALSHA", &name, &count];
        let all: Vec<&str> =
            head.into_iter().chain(keys.iter().copied()).chain(words.iter().map(String::as_str)).collect();
        let reply = server.ask(Commands::one(&all), timeout).await;
        if !matches!(&reply, Err(NoReply::Refused(why)) if why.starts_with("NOSCRIPT")) {
            self.known_as = Some(name);
        }
        reply?.into_iter().next().ok_or(NoReply::Unexpected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_fleet_have_one_slot_and_name_no_client() {
        let keys = FleetKeys::of("shop");
        assert_eq!((keys.state(), keys.edges()), ("{weir:shop}:fleet", "{weir:shop}:shares"));
        let bucket = keys.bucket("one", b"192.0.2.7");
        assert!(bucket.starts_with("{weir:shop}:req:one:") && bucket.len() == 20 + 32, "{bucket}");
        assert!(bucket != keys.bucket("one", b"192.0.2.8") && !bucket.contains("192"));
    }
}
