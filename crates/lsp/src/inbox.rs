//! The queue between the reader and the worker.
//!
//! The reader puts messages in, the worker takes them in their order. The reader also ends requests: it answers a cancelled
//! request at once, whatever the worker does, and the worker's own answer is dropped. If the queue is full, a request is
//! refused by name, and a notification waits, because a lost change of a document could never be repaired.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use weir_net::Instant;

use serde_json::Value;

use crate::rpc::ClientMessage;

/// Most messages that wait.
pub const MESSAGES_MAX: usize = 1_000;

/// Most bytes of the messages that wait; one message always fits.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// The queue.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<Waiting>,
    /// A message came, or the end.
    arrived: Condvar,
    /// There is room again.
    taken: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<(ClientMessage, usize)>,
    bytes: usize,
    /// The requests without an answer, those that wait and the one at work.
    open: Vec<Value>,
    /// The number of changes of documents so far.
    changes: u64,
    is_ended: bool,
    /// The worker takes no more.
    is_deserted: bool,
}

/// A result of waiting for a message.
pub enum Taken {
    /// The next message.
    Message(ClientMessage),
    /// The time is over.
    TimeOut,
    /// The client has ended.
    End,
}

impl Inbox {
    /// Puts a message in. If the queue is full, a request is refused, and another message waits.
    ///
    /// # Errors
    /// The id of the request that is refused.
    pub fn put(&self, message: ClientMessage, bytes: usize) -> Result<(), Value> {
        let mut state = self.lock();
        if let ClientMessage::Request { id, .. } = &message {
            if state.is_full() {
                return Err(id.clone());
            }
            state.open.push(id.clone());
        }
        while state.is_full() && !state.is_deserted {
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.changes += u64::from(is_change(&message));
        state.bytes = state.bytes.saturating_add(bytes);
        state.messages.push_back((message, bytes));
        self.arrived.notify_one();
        Ok(())
    }

    /// Says that no more messages come.
    pub fn end(&self) {
        self.lock().is_ended = true;
        self.arrived.notify_one();
    }

    /// Says that nobody takes messages any more.
    pub fn desert(&self) {
        self.lock().is_deserted = true;
        self.taken.notify_all();
    }

    /// The next message; waits for it until `until`, or without a limit.
    pub fn take(&self, until: Option<Instant>, now: impl Fn() -> Instant) -> Taken {
        let mut state = self.lock();
        loop {
            if let Some((message, bytes)) = state.messages.pop_front() {
                state.bytes = state.bytes.saturating_sub(bytes);
                self.taken.notify_one();
                return Taken::Message(message);
            }
            if state.is_ended {
                return Taken::End;
            }
            state = match until.map(|until| until.saturating_duration_since(now())) {
                Some(left) if left.is_zero() => return Taken::TimeOut,
                Some(left) => self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Takes a request out of those without an answer. Whoever gets `true` answers it.
    pub fn settle(&self, id: &Value) -> bool {
        let mut state = self.lock();
        let place = state.open.iter().position(|open| open == id);
        place.map(|place| state.open.swap_remove(place)).is_some()
    }

    /// Whether a request still wants its answer.
    pub fn is_open(&self, id: &Value) -> bool {
        self.lock().open.contains(id)
    }

    /// The number of changes of documents that came so far, those that wait included.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_MAX || self.bytes >= WAITING_BYTES_MAX
    }
}

/// Whether a message changes what diagnostics are made of.
fn is_change(message: &ClientMessage) -> bool {
    let ClientMessage::Notification { method, .. } = message else { return false };
    method.starts_with("textDocument/did") && method != "textDocument/didSave"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use std::time::Duration;
    use weir_net::clock;

    fn request(id: u64) -> ClientMessage {
        ClientMessage::Request { id: json!(id), method: "m".into(), params: Value::Null }
    }

    fn notification(method: &str) -> ClientMessage {
        ClientMessage::Notification { method: method.into(), params: Value::Null }
    }

    #[test]
    fn a_request_is_answered_by_the_first_who_settles_it() {
        let inbox = Inbox::default();
        assert_eq!(inbox.put(request(1), 10), Ok(()));
        assert!(inbox.is_open(&json!(1)) && inbox.settle(&json!(1)) && !inbox.settle(&json!(1)));
        assert!(matches!(inbox.take(None, clock::now), Taken::Message(ClientMessage::Request { .. })));
        assert!(matches!(inbox.take(Some(clock::now()), clock::now), Taken::TimeOut));
        inbox.end();
        assert!(matches!(inbox.take(None, clock::now), Taken::End));
    }

    #[test]
    fn a_full_queue_refuses_requests_and_lets_notifications_wait() {
        let inbox = Arc::new(Inbox::default());
        for id in 0..MESSAGES_MAX as u64 {
            assert_eq!(inbox.put(request(id), 1), Ok(()));
        }
        assert_eq!(inbox.put(request(9_999), 1), Err(9_999.into()));
        let (one, (told, came)) = (inbox.clone(), std::sync::mpsc::channel());
        let wait = move || {
            let put = one.put(notification("textDocument/didChange"), 1);
            told.send(put.is_ok()).unwrap_or_default();
        };
        weir_net::worker::block_aside("test", wait).unwrap_or_else(|error| panic!("{error}"));
        assert!(came.recv_timeout(Duration::from_millis(20)).is_err() && inbox.changes() == 0);
        assert!(matches!(inbox.take(None, clock::now), Taken::Message(_)));
        assert_eq!(came.recv(), Ok(true));
        assert_eq!(inbox.changes(), 1);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let inbox = Inbox::default();
        assert_eq!(inbox.put(notification("a"), WAITING_BYTES_MAX), Ok(()));
        assert!(inbox.put(request(1), 1).is_err());
        inbox.desert();
        assert_eq!(inbox.put(notification("b"), 1), Ok(()), "nobody waits for a worker that has gone");
    }
}
