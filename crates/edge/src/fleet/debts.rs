//! The debts of accounts, and the queue of those that the ledger is to be told of.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use weir_fleet::{Account, LimitTerms};
use weir_http::hold::zone::Table;

/// Debts that wait, at most. The ledger is not told of further ones; the edge counts them.
pub(super) const DEBTS_MAX: usize = 65_536;

/// How long debts are collected.
const COLLECT: Duration = Duration::from_millis(10);

/// The accounts of a zone.
pub struct SharedZone {
    /// The zone's name.
    pub name: String,
    /// One account for each key.
    pub accounts: Table<Account>,
}

/// One account that owes.
pub(super) struct Owing {
    pub zone: Arc<SharedZone>,
    pub key: Box<[u8]>,
    pub terms: LimitTerms,
    /// When it may be paid, in milliseconds of the fleet's clock.
    pub due_ms: i64,
}

/// The queue of accounts that owe.
#[derive(Default)]
pub(super) struct Debts {
    queue: Mutex<DebtQueue>,
    dropped: AtomicU64,
    /// Accounts that are paid later.
    later: AtomicUsize,
}

#[derive(Default)]
struct DebtQueue {
    waiting: Vec<Owing>,
    is_urgent: bool,
    payer: Option<Waker>,
}

impl Debts {
    /// Puts an account into the queue, unless it is there.
    pub fn add(&self, zone: &Arc<SharedZone>, key: &[u8], account: &mut Account, terms: &LimitTerms) {
        let is_urgent = account.is_pressed(terms);
        let is_new = account.begin_owing();
        if !is_new && !is_urgent {
            return;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if is_new {
            if queue.waiting.len() >= DEBTS_MAX {
                account.end_owing();
                self.drop_one();
                return;
            }
            queue.waiting.push(Owing { zone: zone.clone(), key: key.into(), terms: *terms, due_ms: 0 });
        }
        let was_urgent = queue.is_urgent;
        queue.is_urgent |= is_urgent;
        let is_to_wake = queue.waiting.len() == 1 || is_urgent && !was_urgent;
        if let Some(payer) = queue.payer.take_if(|_| is_to_wake) {
            drop(queue);
            payer.wake();
        }
    }

    /// Accounts that owe.
    pub fn len(&self) -> usize {
        let waiting = self.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting.len();
        waiting + self.later.load(Ordering::Relaxed)
    }

    /// Notes how many accounts are paid later.
    pub fn note_later(&self, count: usize) {
        self.later.store(count, Ordering::Relaxed);
    }

    /// Notes a debt that is not told.
    pub fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until an account owes, and then a little for others, unless one is pressed.
    pub async fn wait(&self, later_ms: Option<i64>) {
        let collected = weir_net::Deadline::new();
        let until_later = later_ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        if let Some(time) = until_later {
            collected.set(time);
        }
        let mut has_begun = false;
        poll_fn(|context| {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.is_urgent {
                return Poll::Ready(());
            }
            queue.payer = Some(context.waker().clone());
            if !queue.waiting.is_empty() && !has_begun {
                has_begun = true;
                collected.set(until_later.map_or(COLLECT, |time| time.min(COLLECT)));
            }
            drop(queue);
            collected.poll_expired()
        })
        .await;
    }

    /// Puts an account that never left the queue behind the others.
    pub fn put_back(&self, owing: Owing) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting.push(owing);
    }

    pub fn take(&self) -> Vec<Owing> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.is_urgent = false;
        std::mem::take(&mut queue.waiting)
    }
}

impl PartialEq for Owing {
    fn eq(&self, other: &Owing) -> bool {
        self.due_ms == other.due_ms
    }
}

impl Eq for Owing {}

impl PartialOrd for Owing {
    fn partial_cmp(&self, other: &Owing) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Owing {
    fn cmp(&self, other: &Owing) -> std::cmp::Ordering {
        self.due_ms.cmp(&other.due_ms)
    }
}
