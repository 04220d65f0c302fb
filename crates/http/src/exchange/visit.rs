//! The cache's part of one exchange: the object it found, whether it keeps the answer, and its status and reason.

use std::sync::Arc;
use std::task::{Context, Poll};

use weir_cache::reason::Reason;
use weir_cache::serving::Trouble;
use weir_cache::store::{Fill, Leader, Object, Packing, Status};
use weir_net::{Lease, clock};

/// The cache's state in one exchange; empty where there is no cache. Its memory is used again by the next exchange.
#[derive(Default)]
pub struct Visit {
    /// `$upstream_cache_status`.
    pub status: Option<Status>,
    /// `$weir_cache_reason`.
    pub reason: Option<Reason>,
    /// The number of the zone.
    pub zone: Option<usize>,
    /// The text of the key.
    pub key: Key,
    /// A stale object: the upstream may confirm it, and weir serves it if the upstream fails.
    pub old: Option<Arc<Object>>,
    /// The object that was served, or that is too old: for `$upstream_cache_last_modified` and its kin.
    pub shown: Option<Arc<Object>>,
    /// The right to fetch for all waiting requests.
    pub leader: Option<Leader>,
    /// The upstream request asks for the whole answer, without the client's ranges and conditions.
    pub wants_whole: bool,
    /// HEAD goes upstream as GET.
    pub converts_head: bool,
    /// The upstream confirmed another answer than the stored one: weir asks for the whole answer.
    pub distrusts: bool,
    /// The stored answer's validators go upstream.
    pub revalidates: bool,
    /// An answer to this unsafe request invalidates the objects under the key: the zone's number.
    pub invalidates: Option<usize>,
    /// The upstream's failure, if it gave no answer.
    pub trouble: Option<Trouble>,
    /// The reason not to keep the answer, whatever its fields say.
    pub may_not_keep: Option<Reason>,
    /// Notices answers that differ by client.
    pub watch: Option<Box<dyn Along>>,
    /// Collects the compressed body of the stored answer.
    pub packing: Option<Box<Packing>>,
    /// The number of the coding of a compressed body from the cache, and its sizes before and after compression in bytes.
    pub packed: Option<(u8, (u64, u64))>,
    /// Bytes of the stored body.
    pub written: Option<u64>,
    /// The copy of the answer for `proxy_store`.
    pub saving: Option<Box<dyn Along>>,
    /// Stores the body as it comes.
    pub fill: Option<Fill>,
}

/// A key in a leased buffer.
pub struct Key(pub Lease);

impl Default for Key {
    fn default() -> Key {
        Key(Lease::none())
    }
}

impl Visit {
    /// True if no field has been set yet. Most exchanges use the cache once, and this check is cheaper than a new
    /// Visit.
    pub fn is_untouched(&self) -> bool {
        let has_said =
            self.status.is_some() || self.reason.is_some() || self.zone.is_some() || self.invalidates.is_some();
        let holds = self.old.is_some() || self.shown.is_some() || self.leader.is_some() || self.fill.is_some();
        let keeps = self.packing.is_some() || self.saving.is_some() || self.watch.is_some() || self.written.is_some();
        let asks = self.wants_whole || self.converts_head || self.revalidates || self.distrusts;
        let knows =
            self.trouble.is_some() || self.may_not_keep.is_some() || self.packed.is_some() || !self.key.0.is_empty();
        !(has_said || holds || keeps || asks || knows)
    }

    /// Ends everything: the memory serves the next exchange.
    pub fn clear(&mut self) {
        if !self.is_untouched() {
            *self = Visit::default();
        }
    }

    /// Whether the cache needs the upstream's answer.
    pub fn is_concerned(&self) -> bool {
        self.zone.is_some() || self.invalidates.is_some()
    }

    /// The exchange continues in a location without a cache: status, reason and key stay, everything in progress ends.
    pub fn leave(&mut self) {
        let (status, reason) = (self.status, self.reason);
        *self = Visit { status, reason, key: std::mem::take(&mut self.key), ..Visit::default() };
    }

    /// Whether others may wait for the answer that this exchange fetches.
    pub fn is_for_others(&self) -> bool {
        self.leader.is_some() || self.fill.is_some()
    }

    /// Whether the answer's body is being kept.
    pub fn is_filling(&self) -> bool {
        self.fill.is_some()
    }

    /// Whether weir keeps the client's conditions and ranges from the upstream.
    pub fn holds_conditions_back(&self) -> bool {
        self.wants_whole
    }

    /// Whether HEAD goes upstream as GET.
    pub fn asks_with_get(&self) -> bool {
        self.converts_head
    }

    /// The validators of the stored answer for the upstream request: Last-Modified in seconds, and the tag.
    #[inline]
    pub fn validators(&self) -> Option<(Option<i64>, &[u8])> {
        let old = self.old.as_ref().filter(|_| self.revalidates)?;
        Some((old.head.last_modified, old.head.etag()))
    }

    /// Begins to keep the body.
    pub fn begin(&mut self, fill: Fill) {
        self.fill = Some(fill);
    }

    /// Waits while the disk lags behind a long body.
    pub async fn ready(&self) {
        if let Some(fill) = &self.fill {
            fill.ready().await;
        }
    }

    /// The same without waiting.
    pub fn poll_ready(&self, context: &Context<'_>) -> Poll<()> {
        self.fill.as_ref().map_or(Poll::Ready(()), |fill| fill.poll_ready(context))
    }

    /// Keeps body bytes; the last ones complete the stored answer.
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
            watch.read(bytes);
        }
        if last && let Some(fill) = self.fill.take() {
            // Here the store refuses only after a purge, or if it has no room. The client gets its answer in either
            // case.
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
        saving.read(bytes);
        if last && let Some(saving) = self.saving.take() {
            saving.end();
        }
    }

    /// The upstream broke off: weir stores nothing, and the requests that read the growing body see its end.
    pub fn cut(&mut self) {
        self.saving = None;
        if self.fill.take().is_some() {
            self.reason = Some(Reason::CutShort);
        }
    }

    /// The answer is not for others: each waiting request asks the upstream itself.
    pub fn pass(&mut self, reason: Reason) {
        self.reason = Some(reason);
        if let Some(leader) = self.leader.take() {
            leader.pass();
        }
    }
}

/// A reader of a body on its way to the client.
pub trait Along {
    /// Reads the next bytes.
    fn read(&mut self, bytes: &[u8]);

    /// The body is complete. If it does not become complete, the reader is dropped.
    fn end(self: Box<Self>);
}
