//! What the cache has to do with one exchange: what it found, whether it keeps the answer, and what it says of both.

use std::sync::Arc;
use std::task::{Context, Poll};

use weir_net::{Lease, clock};

use super::plain::Plain;
use super::watch::Watch;

use weir_cache::reason::Reason;
use weir_cache::serving::Trouble;
use weir_cache::store::{Fill, Leader, Object, Packing, Status};
use crate::family::store::Saving;

/// One exchange's dealings with the cache. Empty, and free, where there is none.
#[derive(Default)]
pub struct Visit {
    /// `$upstream_cache_status`.
    pub status: Option<Status>,
    /// `$weir_cache_reason`.
    pub reason: Option<Reason>,
    /// Its zone, by number.
    pub zone: Option<usize>,
    /// The text of the key.
    pub key: Key,
    /// What is stored and too old: to be confirmed, or given if the upstream fails.
    pub old: Option<Arc<Object>>,
    /// What was given, or what is too old: read by `$upstream_cache_last_modified` and its kin.
    pub shown: Option<Arc<Object>>,
    /// The right to fetch for all who wait.
    pub leader: Option<Leader>,
    /// The whole answer is asked for, whatever part or condition the client has in mind.
    pub wants_whole: bool,
    /// HEAD goes upstream as GET.
    pub converts_head: bool,
    /// The upstream spoke of another answer than it was asked about: it is asked for the whole.
    pub distrusts: bool,
    /// The stored answer's validators go upstream.
    pub revalidates: bool,
    /// Answers to the request make what is stored under the key untrue: the zone's number.
    pub invalidates: Option<usize>,
    /// What went wrong at the upstream, when it gave no answer.
    pub trouble: Option<Trouble>,
    /// The answer is not kept, whatever it says.
    pub may_not_keep: Option<Reason>,
    /// Notices answers that differ by who asks.
    pub(super) watch: Option<Box<Watch>>,
    /// Whether its head is copied from a ready one, or is to become one.
    pub plain: Plain,
    /// What the stored answer's compressed body is kept with.
    pub packing: Option<Box<Packing>>,
    /// What a compressed body out of the cache was, and is, in bytes.
    pub packed: Option<(u64, u64)>,
    /// Bytes of body that were stored.
    pub written: Option<u64>,
    /// The copy of the answer that `proxy_store` asks for.
    pub saving: Option<Box<Saving>>,
    pub(super) fill: Option<Fill>,
}

/// A key in a buffer on loan.
pub struct Key(pub Lease);

impl Default for Key {
    fn default() -> Key {
        Key(Lease::none())
    }
}

impl Visit {
    /// Whether it is as new: most exchanges ask once, and making another costs more than looking.
    pub fn is_untouched(&self) -> bool {
        let has_said =
            self.status.is_some() || self.reason.is_some() || self.zone.is_some() || self.invalidates.is_some();
        let holds = self.old.is_some() || self.shown.is_some() || self.leader.is_some() || self.fill.is_some();
        let keeps = self.packing.is_some() || self.saving.is_some() || self.watch.is_some() || self.written.is_some();
        let asks = self.wants_whole || self.converts_head || self.revalidates;
        let knows = self.trouble.is_some() || self.may_not_keep.is_some() || self.packed.is_some();
        !(has_said || holds || keeps || asks || knows || !matches!(self.plain, Plain::No))
    }

    /// Whether the cache wants to hear of the upstream's answer.
    pub fn is_concerned(&self) -> bool {
        self.zone.is_some() || self.invalidates.is_some()
    }

    /// The exchange goes on in a location without a cache: what was found out stays, what was begun ends.
    pub fn leave(&mut self) {
        if self.is_concerned() {
            let (status, reason) = (self.status, self.reason);
            *self = Visit { status, reason, key: std::mem::take(&mut self.key), ..Visit::default() };
        }
    }

    /// Whether others may wait for what this exchange fetches.
    pub fn is_for_others(&self) -> bool {
        self.leader.is_some() || self.fill.is_some()
    }

    /// Whether the answer's body is being kept.
    pub fn is_filling(&self) -> bool {
        self.fill.is_some()
    }

    /// Whether the client's conditions and ranges stay here instead of going upstream.
    pub fn holds_conditions_back(&self) -> bool {
        self.wants_whole
    }

    /// Whether HEAD goes upstream as GET.
    pub fn asks_with_get(&self) -> bool {
        self.converts_head
    }

    /// The validators of the stored answer that the upstream is asked about: seconds of Last-Modified, and the tag.
    pub fn validators(&self) -> Option<(Option<i64>, &[u8])> {
        let old = self.old.as_ref().filter(|_| self.revalidates)?;
        Some((old.head.last_modified, old.head.etag()))
    }

    /// From here on the body is kept.
    pub fn begin(&mut self, fill: Fill) {
        self.fill = Some(fill);
    }

    /// Waits while more of a long body is at hand than the disk has written.
    pub async fn ready(&self) {
        if let Some(fill) = &self.fill {
            fill.ready().await;
        }
    }

    /// The same without waiting.
    pub fn poll_ready(&self, context: &Context<'_>) -> Poll<()> {
        self.fill.as_ref().map_or(Poll::Ready(()), |fill| fill.poll_ready(context))
    }

    /// Keeps body bytes; with the last of them the answer is stored.
    pub fn keep(&mut self, bytes: &[u8], last: bool) {
        if self.saving.is_some() {
            self.save(bytes, last);
        }
        let Some(fill) = &mut self.fill else { return };
        if fill.push(bytes, clock::now()).is_err() {
            self.fill = None;
            self.reason = Some(Reason::TooLarge);
            return;
        }
        if let Some(watch) = &mut self.watch {
            watch.see(bytes);
        }
        if last && let Some(fill) = self.fill.take() {
            // What the store refuses now it refuses for a purge or for want of room: the client has its answer.
            match fill.finish(clock::now()) {
                Ok(object) => {
                    self.written = Some(object.body.len());
                    if let Some(watch) = self.watch.take() {
                        watch.end();
                    }
                }
                Err(_) => self.reason = Some(Reason::NoRoom),
            }
        }
    }

    fn save(&mut self, bytes: &[u8], last: bool) {
        let Some(saving) = &mut self.saving else { return };
        saving.write(bytes);
        if last && let Some(saving) = self.saving.take() {
            saving.finish();
        }
    }

    /// The upstream broke off: nothing is stored, and who reads along learns of it.
    pub fn cut(&mut self) {
        self.saving = None;
        if self.fill.take().is_some() {
            self.reason = Some(Reason::CutShort);
        }
    }

    /// The answer is not for others: who waits asks the upstream itself.
    pub fn pass(&mut self, reason: Reason) {
        self.reason = Some(reason);
        if let Some(leader) = self.leader.take() {
            leader.pass();
        }
    }
}
