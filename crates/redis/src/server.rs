//! A server, as users name it and as callers ask it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use weir_net::tls::Client;
use weir_net::{Deadline, reply};

use crate::commands::Commands;
use crate::link::{Link, NoReply};
use crate::place::{Place, RedisTrust};
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
    /// Reads `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `rediss://…` for TLS.
    ///
    /// # Errors
    /// For the user, without the password.
    pub fn parse(url: &str) -> Result<RedisServer, &'static str> {
        Ok(RedisServer { place: Place::parse(url)?, queue: Arc::default() })
    }

    /// Whether it is to be asked over TLS, for which it needs [`RedisServer::trusting`].
    pub fn is_secure(&self) -> bool {
        self.place.is_secure
    }

    /// Speaks TLS by this client, whose authorities stand in a text. The certificate must be for the server's host.
    pub fn trusting(mut self, client: Client, authorities: &[u8]) -> RedisServer {
        self.place.trust = Some(RedisTrust { client, authorities: authorities.into() });
        self
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

    /// Sends commands over the kept connection, and waits for nothing. A failure of the connection or of a command is
    /// not told.
    ///
    /// # Errors
    /// [`NoReply::Full`], or there is no thread; the commands are not sent.
    pub fn tell(&self, commands: Commands, timeout: Duration) -> Result<(), NoReply> {
        self.queue().push(QueuedRequest { commands, timeout, asker: Asker::Nobody })
    }

    /// A connection of its own, for a thread that waits for the server; called on a worker.
    ///
    /// # Errors
    /// There is no connection within the time, or the server refuses the login.
    pub async fn link(&self, timeout: Duration) -> Result<Link, NoReply> {
        Link::open(&self.place, timeout).await
    }

    fn queue(&self) -> &Arc<Queue> {
        self.queue.get_or_init(|| Queue::of(&self.place))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use weir_net::worker::block_aside;

    /// Longer than anything takes.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// A server that does this with each connection.
    fn server(serve: fn(TcpStream)) -> RedisServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        block_aside("server", move || listener.incoming().flatten().for_each(serve)).unwrap();
        RedisServer::parse(&format!("redis://{place}")).unwrap()
    }

    #[test]
    fn a_server_that_accepts_nobody_says_why() {
        let server = server(|mut stream| {
            stream.write_all(b"-DENIED in protected mode\r\n").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let answer = server.ask_and_block(Commands::one(&["PING"]), PATIENCE);
        assert_eq!(answer, Err(NoReply::Refused("DENIED in protected mode".to_owned())));
    }

    #[test]
    fn a_told_command_is_sent_and_its_reply_is_for_nobody() {
        // Answers each command with its number.
        let server = server(|mut stream| {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            for (number, _) in lines.filter(|line| line.starts_with('*')).enumerate() {
                stream.write_all(format!(":{number}\r\n").as_bytes()).unwrap();
            }
        });
        server.tell(Commands::one(&["PUBLISH", "a", "b"]), PATIENCE).unwrap();
        let answer = server.ask_and_block(Commands::one(&["PING"]), PATIENCE);
        // Two commands of the login, and the one that was told, came before it.
        assert_eq!(answer, Ok(vec![Value::Number(3)]));
    }
}
