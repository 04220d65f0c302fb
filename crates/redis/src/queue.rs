//! The requests of all tasks to one server, and the thread that sends them over one connection.

use std::collections::VecDeque;
use std::iter;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use weir_net::reply::Promise;
use weir_net::{Instant, clock, worker};

use crate::commands::Commands;
use crate::link::{Backoff, Link, NoReply};
use crate::place::Place;
use crate::value::Value;

/// Requests that may wait for one server; more are refused.
pub const QUEUE_MAX: usize = 256;

/// Requests that are sent at once, at most.
const BATCH_MAX: usize = 64;

/// The replies to a request's commands.
pub type CommandReplies = Result<Vec<Value>, NoReply>;

/// Commands, and the caller that waits for their replies.
pub struct QueuedRequest {
    pub commands: Commands,
    pub timeout: Duration,
    pub asker: Asker,
}

/// The caller that waits.
pub enum Asker {
    Task(Promise<CommandReplies>),
    Thread(SyncSender<CommandReplies>),
    Nobody,
}

impl QueuedRequest {
    /// False if a task has stopped to wait: then its commands are not sent.
    fn is_awaited(&self) -> bool {
        match &self.asker {
            Asker::Task(promise) => promise.is_awaited(),
            Asker::Thread(_) | Asker::Nobody => true,
        }
    }

    fn answer(self, replies: CommandReplies) {
        match self.asker {
            Asker::Task(promise) => promise.give(|| replies),
            // A thread that waits no longer has dropped the other end.
            Asker::Thread(sender) => drop(sender.try_send(replies)),
            Asker::Nobody => {}
        }
    }
}

/// The requests to one server. The thread ends with the last owner.
pub struct Queue {
    place: Place,
    requests: SyncSender<QueuedRequest>,
}

impl Queue {
    /// The queue of this process for a server. Starts its thread, as the user of this thread, if there is none.
    pub fn of(place: &Place) -> Arc<Queue> {
        static QUEUES: Mutex<Vec<Weak<Queue>>> = Mutex::new(Vec::new());
        let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        if let Some(known) = queues.iter().filter_map(Weak::upgrade).find(|queue| queue.place == *place) {
            return known;
        }
        let (requests, list) = sync_channel(QUEUE_MAX);
        let queue = Arc::new(Queue { place: place.clone(), requests });
        queues.push(Arc::downgrade(&queue));
        let place = place.clone();
        // Without the thread, the list is dropped, and `push` fails.
        let _ = worker::block_aside("redis", move || drop(worker::block_on(serve(place, list))));
        queue
    }

    pub fn push(&self, request: QueuedRequest) -> Result<(), NoReply> {
        self.requests.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => NoReply::Full,
            TrySendError::Disconnected(_) => NoReply::Lost("its thread could not be started".to_owned()),
        })
    }
}

/// The loop of the thread. It has one task, so it may block while there is no request.
async fn serve(place: Place, list: Receiver<QueuedRequest>) {
    let mut kept: Option<Link> = None;
    let mut pause = Pause::default();
    while let Ok(first) = list.recv() {
        let rest = list.try_iter().take(BATCH_MAX - 1);
        let batch: VecDeque<QueuedRequest> = iter::once(first).chain(rest).filter(QueuedRequest::is_awaited).collect();
        // The others have their own limit while they wait for the slowest.
        let Some(timeout) = batch.iter().map(|request| request.timeout).max() else { continue };
        let link = match kept.take().and_then(|mut link| link.is_quiet().then_some(link)) {
            Some(link) => Ok(link),
            None => pause.then_open(&place, timeout).await,
        };
        kept = match link {
            Ok(link) => exchange(link, timeout, batch).await,
            Err(failed) => {
                fail(batch, &failed);
                None
            }
        };
        pause.note(kept.is_some());
    }
}

/// Sends all, then reads all. Returns the link if it can be used again.
async fn exchange(mut link: Link, timeout: Duration, mut batch: VecDeque<QueuedRequest>) -> Option<Link> {
    let bytes: Vec<u8> = batch.iter().flat_map(|request| request.commands.bytes()).copied().collect();
    link.set_limit(timeout);
    if let Err(failed) = link.send(&bytes).await {
        fail(batch, &failed);
        return None;
    }
    while let Some(request) = batch.pop_front() {
        match link.receive(request.commands.count()).await {
            Err(failed @ (NoReply::Lost(_) | NoReply::Late)) => {
                request.answer(Err(failed.clone()));
                fail(batch, &failed);
                return None;
            }
            replies => request.answer(replies),
        }
    }
    Some(link)
}

fn fail(batch: VecDeque<QueuedRequest>, failed: &NoReply) {
    batch.into_iter().for_each(|request| request.answer(Err(failed.clone())));
}

/// The wait before the next connection, after one failed.
#[derive(Default)]
struct Pause {
    backoff: Backoff,
    until: Option<Instant>,
}

impl Pause {
    async fn then_open(&self, place: &Place, timeout: Duration) -> Result<Link, NoReply> {
        if let Some(until) = self.until {
            thread::sleep(until.saturating_duration_since(clock::precise()));
        }
        Link::open(place, timeout).await
    }

    fn note(&mut self, is_well: bool) {
        match is_well {
            true => *self = Pause::default(),
            false => self.until = Some(clock::precise() + self.backoff.longer()),
        }
    }
}
