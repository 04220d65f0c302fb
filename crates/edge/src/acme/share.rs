//! Certificates, keys and challenges that several edges share through Redis, so that all of them make one order.
//!
//! ```text
//!  PREFIX:cert:ISSUER:ORDER     a certificate with its key
//!  PREFIX:lock:ISSUER:ORDER     the edge that makes the order, for the time of a lease
//!  PREFIX:account:ISSUER        the key of the account
//!  PREFIX:challenges            the answers that every edge shows
//! ```
//!
//! Every command runs on a thread of its own, for a limited time. Invariant: no worker and no certificate in force ever
//! waits for Redis.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_acme::Proof;
use weir_net::log::{self, Level};
use weir_net::{aside, random, timer};

use super::challenges::{CHALLENGES_MAX, Challenges};
use crate::purge::bus::Server;

/// How often an edge looks at the challenges of the others.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long an edge waits after it shared a challenge: every other edge has looked by then.
pub const SETTLE: Duration = Duration::from_millis(2500);

/// Challenges that no edge removed are forgotten after this time.
const CHALLENGES_MS: u64 = 10 * 60 * 1000;

/// `acme_share`.
#[derive(Debug, PartialEq)]
pub struct Share {
    /// The Redis server.
    pub server: Server,
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

impl Share {
    fn key(&self, kind: &str, issuer: &str, order: &str) -> String {
        format!("{}:{kind}:{issuer}:{order}", self.prefix)
    }

    /// Runs a command; the error is for the log.
    async fn run<T, F>(self: &Arc<Self>, work: F) -> Result<T, String>
    where
        T: Send + 'static,
        F: FnOnce(&Share, &mut redis::Connection) -> redis::RedisResult<T> + Send + 'static,
    {
        let share = self.clone();
        let ran = aside::run("acme share", move || {
            let mut connection = share.server.connect(share.timeout).map_err(|failed| failed.to_string())?;
            work(&share, &mut connection).map_err(|error| match error.is_timeout() {
                true => "the server did not answer in time".to_owned(),
                false => error.to_string(),
            })
        });
        let failed = |why: String| format!("acme_share at {}: {why}", self.server);
        ran.await.map_err(|error| failed(error.to_string()))?.map_err(failed)
    }

    /// The shared certificate of an order.
    pub async fn certificate(self: &Arc<Self>, issuer: &str, order: &str) -> Result<Option<SharedCertificate>, String> {
        let key = self.key("cert", issuer, order);
        let text: Option<String> = self.run(move |_, connection| redis::cmd("GET").arg(&key).query(connection)).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Shares a certificate.
    pub async fn put(self: &Arc<Self>, issuer: &str, order: &str, shared: &SharedCertificate) -> Result<(), String> {
        let (key, text) = (self.key("cert", issuer, order), serde_json::to_string(shared).unwrap_or_default());
        self.run(move |_, connection| redis::cmd("SET").arg(&key).arg(&text).query(connection)).await
    }

    /// Takes the lock of an order for the time of the lease; false if another edge has it.
    pub async fn lock(self: &Arc<Self>, issuer: &str, order: &str) -> Result<bool, String> {
        let key = self.key("lock", issuer, order);
        let taken: i64 = self
            .run(move |share, connection| {
                let lease = u64::try_from(share.lease.as_millis()).unwrap_or(u64::MAX);
                redis::cmd("EVAL").arg(LOCK).arg(1).arg(&key).arg(own()).arg(lease).query(connection)
            })
            .await?;
        Ok(taken == 1)
    }

    /// Gives the lock back.
    pub async fn unlock(self: &Arc<Self>, issuer: &str, order: &str) -> Result<(), String> {
        let key = self.key("lock", issuer, order);
        self.run(move |_, connection| {
            let _: i64 = redis::cmd("EVAL").arg(UNLOCK).arg(1).arg(&key).arg(own()).query(connection)?;
            Ok(())
        })
        .await
    }

    /// The key of the account: the one that an edge has shared first, or `own`.
    pub async fn account_key(self: &Arc<Self>, issuer: &str, own: Option<String>) -> Result<Option<String>, String> {
        let key = format!("{}:account:{issuer}", self.prefix);
        self.run(move |_, connection| {
            if let Some(own) = own {
                let _: Option<String> = redis::cmd("SET").arg(&key).arg(&own).arg("NX").query(connection)?;
            }
            redis::cmd("GET").arg(&key).query(connection)
        })
        .await
    }

    /// Lets every edge show the answer to a challenge.
    pub async fn show(self: &Arc<Self>, proof: &Proof) -> Result<(), String> {
        let (name, text) = (name_of(proof), serde_json::to_string(proof).unwrap_or_default());
        self.run(move |share, connection| {
            let key = format!("{}:challenges", share.prefix);
            let _: i64 = redis::cmd("HSET").arg(&key).arg(&name).arg(&text).query(connection)?;
            let _: i64 = redis::cmd("PEXPIRE").arg(&key).arg(CHALLENGES_MS).query(connection)?;
            Ok(())
        })
        .await
    }

    /// Takes the answer back.
    pub async fn hide(self: &Arc<Self>, proof: &Proof) -> Result<(), String> {
        let name = name_of(proof);
        self.run(move |share, connection| {
            let _: i64 = redis::cmd("HDEL").arg(format!("{}:challenges", share.prefix)).arg(&name).query(connection)?;
            Ok(())
        })
        .await
    }

    async fn challenges(self: &Arc<Self>) -> Result<HashMap<String, String>, String> {
        self.run(|share, connection| {
            redis::cmd("HGETALL").arg(format!("{}:challenges", share.prefix)).query(connection)
        })
        .await
    }
}

fn name_of(proof: &Proof) -> String {
    format!("{} {} {}", proof.challenge.name(), proof.identifier, proof.token)
}

/// Shows the challenges of the other edges, for as long as the thread runs.
pub async fn follow(share: Arc<Share>, challenges: Arc<Challenges>) {
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
