//! The thread that follows the log: it applies new entries, reports how far it is, and reconnects when the connection
//! is lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_cache::store::{Force, Purge};
use weir_net::log::{self, Level};
use weir_net::{Instant, clock};
use weir_redis::{Backoff, NoReply};

use crate::purge::bus::shared::{Book, Shared};
use crate::purge::edges::Beat;
use crate::purge::entry::{Entry, Id, Said};
use crate::purge::keys::{Follower, OrderNews};
use crate::purge::memory::Memory;

/// How long one read waits for new entries. Between two reads the edge reports that it is alive.
const BLOCK: Duration = Duration::from_millis(500);

/// The time between two looks at the reports of other edges and at the last applied entry, which must still be there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// weir logs another edge with this edge's name after this many reports in a row.
const NAMESAKE_AFTER: u32 = 3;

/// Follows the log after an entry, until the bus stops. The thread has this task alone, so it may block.
pub(super) async fn follow(shared: &Shared, applied: Option<Id>) {
    let mut tail = Tail {
        shared,
        applied,
        now_ms: 0,
        looked: None,
        namesake: 0,
        is_lost: false,
        is_unsaved: false,
        met_unknown: false,
    };
    // Now, because this thread has the right user.
    shared.settings.server.start();
    let mut backoff = Backoff::default();
    while !shared.is_stopped() {
        let settings = &shared.settings;
        let joined = match Follower::open(&settings.server, &settings.stream, settings.timeout).await {
            Ok(mut link) => tail.join(&mut link).await.map(|heard| (link, heard)),
            Err(failed) => Err(failed),
        };
        let failed = match joined {
            Err(failed) => failed,
            Ok((mut link, heard)) => {
                backoff = Backoff::default();
                match tail.run(&mut link, heard).await {
                    Err(failed) => failed,
                    Ok(()) => return,
                }
            }
        };
        tail.lose(&failed);
        shared.pause(backoff.longer());
    }
}

struct Tail<'s> {
    shared: &'s Shared,
    /// The last entry applied; `None` if unknown.
    applied: Option<Id>,
    /// Redis' clock, as last read.
    now_ms: u64,
    looked: Option<Instant>,
    /// How many reports in a row came from another start in this edge's name.
    namesake: u32,
    /// The loss of the connection was logged.
    is_lost: bool,
    /// It was logged that the state cannot be kept.
    is_unsaved: bool,
    /// It was logged that an entry cannot be read.
    met_unknown: bool,
}

impl Tail<'_> {
    /// Finds the entry to continue after; returns the id of the newest report.
    async fn join(&mut self, link: &mut Follower) -> Result<Id, NoReply> {
        let heard = link.newest_heard().await?;
        let newest = link.newest_or_begin().await?;
        let look = link.look(self.applied.unwrap_or(newest)).await?;
        self.now_ms = look.now_ms;
        match self.applied {
            Some(_) if look.is_there => {}
            Some(applied) => self.start_over(newest, Some(applied)),
            None => self.start_over(newest, None),
        }
        self.say(link, false).await?;
        let (server, stream) = (&self.shared.settings.server, &self.shared.settings.stream);
        let from = self.applied.unwrap_or_default();
        let again = if self.is_lost { " again" } else { "" };
        log::global(
            Level::Notice,
            format_args!(
                "weir is connected{again} to the purge log {stream} at {server} and reads it from entry {from}"
            ),
        );
        self.is_lost = false;
        let applied = self.applied;
        self.shared.note(|book| {
            (book.is_connected, book.applied) = (true, applied);
            book.newest = book.newest.max(newest);
        });
        self.looked = None;
        Ok(heard)
    }

    /// Reads and applies entries until the bus stops.
    async fn run(&mut self, link: &mut Follower, mut heard: Id) -> Result<(), NoReply> {
        while !self.shared.is_stopped() {
            if self.looked.is_none_or(|looked| clock::precise() - looked >= LOOK_EVERY) {
                self.look(link).await?;
            }
            let OrderNews { entries, applied, heard: further } = link.read(self.from(), heard, BLOCK).await?;
            heard = further;
            if self.shared.is_stopped() {
                break;
            }
            if !applied.is_empty() {
                self.shared.note(|book| applied.iter().for_each(|(name, id)| book.edges.hear(name, *id)));
            }
            if let Some(last) = entries.last().map(|entry| entry.id) {
                entries.iter().for_each(|entry| self.apply(entry));
                self.move_to(last);
                self.say(link, true).await?;
            }
        }
        Ok(())
    }

    /// Reads the reports of the other edges, and checks whether the stream is still the same.
    async fn look(&mut self, link: &mut Follower) -> Result<(), NoReply> {
        let look = link.look(self.from()).await?;
        (self.now_ms, self.looked) = (look.now_ms, Some(clock::precise()));
        if !look.is_there {
            let newest = link.newest_or_begin().await?;
            self.start_over(newest, self.applied);
        }
        self.say(link, false).await?;
        let mut forgotten = Vec::new();
        let mut is_namesake = false;
        self.shared.note(|book: &mut Book| {
            book.newest = look.newest.unwrap_or_default().max(book.newest);
            forgotten = book.edges.take(look.edges.into_iter(), look.now_ms);
            is_namesake = book.edges.run_of(&self.shared.settings.edge).is_some_and(|run| run != self.shared.run);
        });
        link.forget(&forgotten).await?;
        self.namesake = if is_namesake { self.namesake.saturating_add(1) } else { 0 };
        if self.namesake == NAMESAKE_AFTER && !self.shared.has_namesake.load(Ordering::Relaxed) {
            let name = &self.shared.settings.edge;
            log::global(
                Level::Error,
                format_args!(
                    "another edge in the purge log is also called \"{name}\": give each edge its own name with edge="
                ),
            );
        }
        Ok(())
    }

    fn apply(&mut self, entry: &Entry) {
        // This start applied its own entries before it wrote them.
        if entry.run == self.shared.run.as_bytes() {
            return;
        }
        match &entry.said {
            Said::Begin => {}
            Said::Purge { zone, purge, force } => {
                self.shared.zones.apply(zone.as_deref(), purge, *force);
            }
            Said::Unknown => {
                self.shared.zones.apply(None, &Purge::All, Force::Soft);
                if !std::mem::replace(&mut self.met_unknown, true) {
                    let id = entry.id;
                    log::global(
                        Level::Error,
                        format_args!(
                            "weir does not know the kind of the purge log entry {id}, so it soft-purges everything"
                        ),
                    );
                }
            }
        }
    }

    /// Soft-purges everything and continues after `newest`: weir does not know what was purged before it.
    fn start_over(&mut self, newest: Id, gone: Option<Id>) {
        self.shared.zones.apply(None, &Purge::All, Force::Soft);
        if let Some(gone) = gone {
            let stream = &self.shared.settings.stream;
            log::global(
                Level::Error,
                format_args!("the purge log {stream} no longer has the entry {gone}, so weir soft-purges everything"),
            );
        }
        self.move_to(newest);
    }

    fn move_to(&mut self, id: Id) {
        self.applied = Some(id);
        self.shared.note(|book| {
            book.applied = Some(id);
            book.newest = book.newest.max(id);
        });
        let settings = &self.shared.settings;
        let Some(path) = &settings.state else { return };
        let memory = Memory { applied: id, zones: self.shared.zones.names() };
        match memory.write(path, &settings.stream) {
            Ok(()) => self.is_unsaved = false,
            Err(error) => {
                if !std::mem::replace(&mut self.is_unsaved, true) {
                    let (path, error) = (path.display(), log::Os(&error));
                    log::global(Level::Error, format_args!("weir cannot write the purge log state \"{path}\" {error}"));
                }
            }
        }
    }

    async fn say(&mut self, link: &mut Follower, aloud: bool) -> Result<(), NoReply> {
        let beat = Beat { applied: self.from(), at_ms: self.now_ms, run: self.shared.run.clone() };
        link.say(&self.shared.settings.edge, &beat, aloud).await
    }

    fn from(&self) -> Id {
        self.applied.unwrap_or_default()
    }

    fn lose(&mut self, failed: &NoReply) {
        self.shared.note(|book| book.is_connected = false);
        if !std::mem::replace(&mut self.is_lost, true) {
            let (server, stream) = (&self.shared.settings.server, &self.shared.settings.stream);
            log::global(
                Level::Error,
                format_args!("weir cannot reach the purge log {stream} at {server}: {failed}; it keeps trying"),
            );
        }
    }
}
