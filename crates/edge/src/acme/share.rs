//! Certificates, keys and challenges that several edges share through Redis, so that all of them make one order.
//!
//! ```text
//!  PREFIX:cert:ISSUER:ORDER     a certificate with its key
//!  PREFIX:lock:ISSUER:ORDER     the edge that makes the order, for the time of a lease
//!  PREFIX:account:ISSUER        the key of the account
//!  PREFIX:challenges            the answers that every edge shows
//! ```
//!
//! Every command has a limited time. Invariant: no worker and no certificate in force ever waits for Redis.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_acme::Proof;
use weir_net::log::{self, Level};
use weir_net::{random, timer};
use weir_redis::{Commands, RedisServer, Value, pairs};

use super::challenges::{CHALLENGES_MAX, Challenges};

/// How often an edge looks at the challenges of the others.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long an edge waits after it shared a challenge: every other edge has looked by then.
pub const SETTLE: Duration = Duration::from_millis(2500);

/// Challenges that no edge removed are forgotten after this time.
const CHALLENGES_MS: u64 = 10 * 60 * 1000;

/// `acme_share`.
#[derive(Debug, PartialEq)]
pub struct AcmeShare {
    /// The Redis server.
    pub server: RedisServer,
    /// `prefix=`.
    pub prefix: String,
    /// `timeout=`: how long one command may take.
    pub timeout: Duration,
    /// `lease=`: how long one edge may take for an order.
    pub lease: Duration,
}

/// A certificate with its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedCertificate {
    /// The chain as PEM.
    pub chain: String,
    /// The key as PEM.
    pub key: String,
}

/// Tells the locks of this process from those of others.
fn own() -> &'static str {
    static OWN: LazyLock<String> = LazyLock::new(|| {
        let chance: Vec<String> = (0..4).map(|_| format!("{:04x}", random::word().unwrap_or_default())).collect();
        format!("{} {} {}", log::hostname(), std::process::id(), chance.concat())
    });
    &OWN
}

/// Takes a lock that nobody has, or that is ours already.
const LOCK: &str = "local held = redis.call('get', KEYS[1]) if held == false or held == ARGV[1] then \
                    redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0";

/// Deletes a lock if it is still ours.
const UNLOCK: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

impl AcmeShare {
    fn key(&self, kind: &str, issuer: &str, order: &str) -> String {
        format!("{}:{kind}:{issuer}:{order}", self.prefix)
    }

    /// Runs commands and returns the reply to the first; the error is for the log.
    async fn ask(&self, commands: Commands) -> Result<Value, String> {
        let replies = self.server.ask(commands, self.timeout).await;
        let first = replies.map(|replies| replies.into_iter().next().unwrap_or(Value::Nil));
        first.map_err(|failed| format!("acme_share at {}: {failed}", self.server))
    }

    /// The shared certificate of an order.
    pub async fn certificate(&self, issuer: &str, order: &str) -> Result<Option<SharedCertificate>, String> {
        let reply = self.ask(Commands::one(&["GET", &self.key("cert", issuer, order)])).await?;
        Ok(serde_json::from_slice(reply.bytes()).ok())
    }

    /// Shares a certificate.
    pub async fn put(&self, issuer: &str, order: &str, shared: &SharedCertificate) -> Result<(), String> {
        let text = serde_json::to_string(shared).unwrap_or_default();
        self.ask(Commands::one(&["SET", &self.key("cert", issuer, order), &text])).await.map(drop)
    }

    /// Takes the lock of an order for the time of the lease; false if another edge has it.
    pub async fn lock(&self, issuer: &str, order: &str) -> Result<bool, String> {
        let (key, lease_ms) = (self.key("lock", issuer, order), self.lease.as_millis().to_string());
        let reply = self.ask(Commands::one(&["EVAL", LOCK, "1", &key, own(), &lease_ms])).await?;
        Ok(reply.number() == Some(1))
    }

    /// Gives the lock back.
    pub async fn unlock(&self, issuer: &str, order: &str) -> Result<(), String> {
        let key = self.key("lock", issuer, order);
        self.ask(Commands::one(&["EVAL", UNLOCK, "1", &key, own()])).await.map(drop)
    }

    /// The key of the account: the one that an edge has shared first, or `own`.
    pub async fn account_key(&self, issuer: &str, own: Option<String>) -> Result<Option<String>, String> {
        let key = format!("{}:account:{issuer}", self.prefix);
        if let Some(own) = own {
            self.ask(Commands::one(&["SET", &key, &own, "NX"])).await?;
        }
        Ok(self.ask(Commands::one(&["GET", &key])).await?.text().map(str::to_owned))
    }

    /// Lets every edge show the answer to a challenge.
    pub async fn show(&self, proof: &Proof) -> Result<(), String> {
        let (key, text) = (self.challenges_key(), serde_json::to_string(proof).unwrap_or_default());
        let mut commands = Commands::one(&["HSET", &key, &name_of(proof), &text]);
        commands.add(&["PEXPIRE", &key, &CHALLENGES_MS.to_string()]);
        self.ask(commands).await.map(drop)
    }

    /// Takes the answer back.
    pub async fn hide(&self, proof: &Proof) -> Result<(), String> {
        self.ask(Commands::one(&["HDEL", &self.challenges_key(), &name_of(proof)])).await.map(drop)
    }

    async fn challenges(&self) -> Result<HashMap<String, String>, String> {
        let reply = self.ask(Commands::one(&["HGETALL", &self.challenges_key()])).await?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        Ok(pairs(reply.list()).filter_map(|(name, proof)| Some((text(name)?, text(proof)?))).collect())
    }

    fn challenges_key(&self) -> String {
        format!("{}:challenges", self.prefix)
    }
}

fn name_of(proof: &Proof) -> String {
    format!("{} {} {}", proof.challenge.name(), proof.identifier, proof.token)
}

/// Shows the challenges of the other edges, for as long as the thread runs.
pub async fn follow(share: Arc<AcmeShare>, challenges: Arc<Challenges>) {
    let mut shown: HashMap<String, Proof> = HashMap::new();
    let mut is_failing = false;
    loop {
        match share.challenges().await {
            Ok(all) => {
                if std::mem::take(&mut is_failing) {
                    log::global(Level::Notice, format_args!("acme_share at {}: weir is connected again", share.server));
                }
                shown.retain(|name, proof| {
                    let stays = all.contains_key(name);
                    if !stays {
                        challenges.remove(proof);
                    }
                    stays
                });
                for (name, text) in all.into_iter().take(CHALLENGES_MAX) {
                    if let Ok(proof) = serde_json::from_str::<Proof>(&text)
                        && !shown.contains_key(&name)
                        && challenges.add(&proof).is_ok()
                    {
                        shown.insert(name, proof);
                    }
                }
            }
            Err(why) => {
                if !std::mem::replace(&mut is_failing, true) {
                    log::global(Level::Error, format_args!("{why}; this edge goes on by itself"));
                }
            }
        }
        timer::sleep(LOOK_EVERY).await;
    }
}
