//! Watches fills for bodies that differ by who asks: such a key is shared no more.
//!
//! The rules keep what they recognise as somebody's from being shared; an application whose cookie has a name nobody
//! knows gets past them. Then bodies under one key differ by cookie, and that is noticed here, after the second person
//! at the earliest (`weir_cache::divergence`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use weir_net::clock;

use weir_cache::divergence::{Detector, Noticed};
use weir_cache::personal;
use weir_cache::store::{Force, Purge, Zone};
use crate::exchange::Exchange;
use crate::family::cache::keep;
use weir_net::log::{self, Level};

/// One cache as the configuration holds it.
#[derive(Clone)]
pub struct Opened {
    /// What is stored.
    pub zone: Arc<Zone>,
    /// Who got what.
    pub detector: Arc<Mutex<Detector>>,
}

impl Opened {
    /// A cache just opened.
    pub fn new(zone: Arc<Zone>) -> Opened {
        Opened { zone, detector: Arc::default() }
    }

    /// Whether bodies under a key were seen to differ by who asked.
    pub fn is_personal(&self, key: &[u8]) -> bool {
        let detector = self.detector.lock().unwrap_or_else(PoisonError::into_inner);
        detector.is_personal(hash(key), clock::unix_ms() as i64)
    }
}

/// One fill under watch.
pub struct Watch {
    cache: Opened,
    key: Box<[u8]>,
    person: u64,
    body: crc32fast::Hasher,
    length: u64,
}

impl Watch {
    /// Begins to watch what this exchange fetches.
    pub fn begin(exchange: &Exchange<'_>) -> Option<Box<Watch>> {
        let cache = exchange.cache.zone.and_then(|number| exchange.conf.declared.cache.opened(number))?;
        Some(Box::new(Watch {
            cache: cache.clone(),
            key: exchange.cache.key.0.as_slice().into(),
            person: personal::identity(keep::request_fields(&exchange.request)),
            body: crc32fast::Hasher::new(),
            length: 0,
        }))
    }

    /// Looks at body bytes.
    pub fn see(&mut self, bytes: &[u8]) {
        self.body.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// The body is complete and stored.
    pub fn end(self) {
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
                format_args!("cache key \"{key}\" has answers that differ by who asks, they are shared no more"),
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
