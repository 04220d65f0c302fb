//! A server, as users name it and as callers ask it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use weir_net::{Deadline, reply};

use crate::commands::Commands;
use crate::link::{Link, NoReply};
use crate::place::Place;
use crate::queue::{Asker, Queue, QueuedRequest};
use crate::value::Value;

/// A server. All that name the same one share a connection, which ends with the last of them.
#[derive(Clone)]
pub struct RedisServer {
    place: Place,
    queue: Arc<OnceLock<Arc<Queue>>>,
}

impl PartialEq for RedisServer {
    fn eq(&self, other: &RedisServer) -> bool {
        self.place == other.place
    }
}

impl fmt::Display for RedisServer {
    /// Its address, without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.place.host, self.place.port)
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl RedisServer {
    /// Reads `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`.
    ///
    /// # Errors
    /// For the user, without the password.
    pub fn parse(url: &str) -> Result<RedisServer, &'static str> {
        Ok(RedisServer { place: Place::parse(url)?, queue: Arc::default() })
    }

    /// Starts the thread of the kept connection now, as the user of this thread. Otherwise the first request does it.
    pub fn start(&self) {
        self.queue();
    }

    /// Sends commands over the kept connection, and returns their replies; called on a worker.
    ///
    /// # Errors
    /// Also if the server refuses one of the commands. After [`NoReply::Lost`] or [`NoReply::Late`] the commands may
    /// have been done.
    pub async fn ask(&self, commands: Commands, timeout: Duration) -> Result<Vec<Value>, NoReply> {
        let (promise, reply) = reply::promise();
        self.queue().push(QueuedRequest { commands, timeout, asker: Asker::Task(promise) })?;
        let deadline = Deadline::new();
        deadline.set(timeout);
        let mut reply = pin!(reply);
        poll_fn(|context| match reply.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(answer.unwrap_or(Err(NoReply::Late))),
            Poll::Pending => deadline.poll_expired().map(|()| Err(NoReply::Late)),
        })
        .await
    }

    /// As [`RedisServer::ask`], on a thread that may wait.
    ///
    /// # Errors
    /// As [`RedisServer::ask`].
    pub fn ask_and_block(&self, commands: Commands, timeout: Duration) -> Result<Vec<Value>, NoReply> {
        let (sender, answer) = sync_channel(1);
        self.queue().push(QueuedRequest { commands, timeout, asker: Asker::Thread(sender) })?;
        answer.recv_timeout(timeout).unwrap_or(Err(NoReply::Late))
    }

    /// A connection of its own, for a thread that waits for the server.
    ///
    /// # Errors
    /// There is no connection within the time, or the server refuses the login.
    pub fn link(&self, timeout: Duration) -> Result<Link, NoReply> {
        Link::open(&self.place, timeout)
    }

    fn queue(&self) -> &Arc<Queue> {
        self.queue.get_or_init(|| Queue::of(&self.place))
    }
}
