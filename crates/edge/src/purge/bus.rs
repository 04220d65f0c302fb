//! The purge log of several edges: a stream in Redis, which one thread follows.
//!
//! `tail` follows the stream from the last entry this edge has applied. While Redis is away, it tries again and
//! again, and the edge serves. When Redis is back, it continues after its last entry. If that entry is gone (trimmed,
//! flushed, another server), it cannot know which orders it missed, and it soft-purges everything. The orders
//! that the API of this edge receives go over the connection that the process keeps to the server.

mod shared;
mod tail;

use std::future::poll_fn;
use std::io;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use weir_cache::store::Zone;
use weir_net::identity::assume;
use weir_net::{Deadline, clock, process, worker};

use crate::purge::bus::shared::{Pending, Shared};
use crate::purge::entry;
use crate::purge::keys::Keys;
use crate::purge::memory::Memory;
use crate::purge::order::PurgeOrder;
use crate::purge::zones::ZoneList;

pub use crate::purge::bus::shared::{Outcome, PENDING_MAX, Settings};

/// How long an edge that ends waits until its name is removed.
const LEAVE: Duration = Duration::from_millis(500);

/// An edge's access to the log. Its thread ends with it.
pub struct Bus {
    shared: Arc<Shared>,
    keys: Keys,
}

impl Bus {
    /// Follows the log from the entry in the state file; without that file, soft-purges everything in the zones.
    /// `identity` is the user of the thread.
    pub fn start(
        settings: &Settings,
        zones: Vec<Arc<Zone>>,
        identity: Option<process::Identity>,
    ) -> io::Result<Arc<Bus>> {
        let memory = settings.state.as_ref().and_then(|path| Memory::read(path, &settings.stream));
        let zones = ZoneList::new(zones);
        zones.doubt_all_but(memory.as_ref().map_or(&[], |memory| memory.zones.as_slice()));
        let shared = Arc::new(Shared::new(settings, zones));
        let (follower, applied) = (shared.clone(), memory.map(|memory| memory.applied));
        worker::block_aside("purge log", move || {
            if assume(identity.as_ref()) {
                let _ = worker::block_on(async move { tail::follow(&follower, applied).await });
            }
        })?;
        Ok(Arc::new(Bus { shared, keys: Keys::of(&settings.stream) }))
    }

    /// The settings it was started with.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The zones purges are applied to.
    pub fn zones(&self) -> &ZoneList {
        &self.shared.zones
    }

    /// Logs an order that was applied here, and waits for the other edges; called on a worker.
    pub async fn publish(&self, order: &PurgeOrder) -> Outcome {
        let shared = &self.shared;
        let Some(_place) = Pending::take(&shared.pending) else { return Outcome::Busy };
        let settings = &shared.settings;
        if shared.is_stopped() {
            return Outcome::NotLogged("a reload has closed the connection".to_owned());
        }
        let deadline = Deadline::new();
        deadline.set(settings.timeout);
        let entries = entry::fields(order, &settings.edge, &shared.run, clock::unix_ms());
        let append = self.keys.append(&entries, settings.length_max);
        let replies = settings.server.ask(append, settings.timeout).await;
        match replies.and_then(|replies| Keys::appended(&replies)) {
            Err(failed) => Outcome::NotLogged(failed.to_string()),
            Ok((id, look)) => {
                shared.note(|book| {
                    book.newest = book.newest.max(id);
                    book.edges.take(look.edges.into_iter(), look.now_ms);
                });
                poll_fn(|context| shared.poll_applied(id, &deadline, context)).await
            }
        }
    }

    /// For people: the last entry that this edge and the others have applied.
    pub fn to_json(&self) -> Value {
        let settings = &self.shared.settings;
        let book = self.shared.book();
        json!({
            "server": settings.server.to_string(),
            "stream": settings.stream,
            "connected": book.is_connected,
            "newest": book.newest.to_string(),
            "applied": book.applied.map(|id| id.to_string()),
            "edges": book.edges.to_json(book.newest),
        })
    }

    /// Notes that a new binary runs beside this one, under the same name.
    pub fn expect_namesake(&self) {
        self.shared.has_namesake.store(true, Ordering::Relaxed);
    }

    /// Ends it; if `for_good`, removes its name, so that no edge waits for it.
    pub fn leave(&self, for_good: bool) {
        self.shared.stop();
        if for_good && self.shared.book().is_connected {
            let own = self.keys.forget(slice::from_ref(&self.shared.settings.edge));
            // If this fails, the other edges forget the name in time.
            let _ = self.shared.settings.server.ask_and_block(own, LEAVE);
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
