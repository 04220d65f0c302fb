//! Watches fills for bodies that differ by client: weir stops sharing such a key.
//!
//! The rules do not share answers that they recognise as personal. They miss an application whose session cookie has
//! an unknown name. Then bodies under one key differ by cookie. This file notices that, after the second person at the
//! earliest (`weir_cache::divergence`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use weir_cache::divergence::{Detector, Noticed};
use weir_cache::personal;
use weir_cache::store::{Force, Purge, Zone};
use weir_http::exchange::Exchange;
use weir_http::exchange::visit::Along;
use weir_net::clock;
use weir_net::log::{self, Level};

use crate::family::cache::facts;

/// One cache that the configuration has opened.
#[derive(Clone)]
pub struct OpenedZone {
    /// The store.
    pub zone: Arc<Zone>,
    /// Records which client got which body.
    pub detector: Arc<Mutex<Detector>>,
}

impl OpenedZone {
    /// Wraps a cache that was just opened.
    pub fn new(zone: Arc<Zone>) -> OpenedZone {
        OpenedZone { zone, detector: Arc::default() }
    }

    /// Whether weir has seen that bodies under this key differ by client.
    pub fn is_personal(&self, key: &[u8]) -> bool {
        let detector = self.detector.lock().unwrap_or_else(PoisonError::into_inner);
        detector.is_personal(hash(key), clock::unix_ms() as i64)
    }
}

/// A fill that is being watched.
pub struct Watch {
    cache: OpenedZone,
    key: Box<[u8]>,
    person: u64,
    body: crc32fast::Hasher,
    length: u64,
}

impl Watch {
    /// Begins to watch the fill of this exchange.
    pub fn begin(exchange: &Exchange<'_>) -> Option<Box<dyn Along>> {
        let cache = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.opened(number))?;
        Some(Box::new(Watch {
            cache: cache.clone(),
            key: exchange.cache.key.0.as_slice().into(),
            person: personal::identity(facts::request_fields(exchange.request)),
            body: crc32fast::Hasher::new(),
            length: 0,
        }))
    }
}

impl Along for Watch {
    fn read(&mut self, bytes: &[u8]) {
        self.body.update(bytes);
        self.length += bytes.len() as u64;
    }

    fn end(self: Box<Self>) {
        let body = u64::from(self.body.finalize()) << 32 | (self.length & u64::from(u32::MAX));
        let noticed = {
            let mut detector = self.cache.detector.lock().unwrap_or_else(PoisonError::into_inner);
            detector.note(hash(&self.key), self.person, body, clock::unix_ms() as i64)
        };
        if noticed == Noticed::Nothing {
            return;
        }
        if noticed == Noticed::Diverges {
            let key = String::from_utf8_lossy(&self.key);
            log::global(
                Level::Warn,
                format_args!(
                    "answers under the cache key \"{key}\" differ between users, so weir no longer shares them"
                ),
            );
        }
        self.cache.zone.purge(Purge::Key(self.key), Force::Hard);
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
