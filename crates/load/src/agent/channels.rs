//! The messages between a controller and its agents, over the channels of a Redis server.
//!
//! ```text
//!   owner ── publish ──► queue of weir_redis, one connection ── PUBLISH ──► Redis
//!   owner ◄─ LinkEvent ─ thread `channels`, a connection of its own ◄─ SUBSCRIBE ─ Redis
//! ```
//!
//! Redis keeps no message of a channel: a client that is not connected at that moment misses it. The letters bear that.
//! docs/why/dependencies.md says why agents use channels and not streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use weir_net::tls::{Client, Trust};
use weir_net::{process, timer, worker};
use weir_redis::{Backoff, Commands, Link, NoReply, RedisServer};
use weir_words::{Said, say};

use super::limits::MESSAGE_BYTES_MAX;
use crate::texts::agents as texts;

/// Longest time to connect, to log in, and to subscribe; longest time for the server to say that it is still there.
const GREETING: Duration = Duration::from_secs(3);
/// Longest time for the server to take a message; after that, the message counts as lost.
const PUBLISH: Duration = Duration::from_secs(2);
/// The reader asks the server after this time without a message whether it is still there.
const SILENCE: Duration = Duration::from_secs(1);
/// A message with more bytes waits until the server has it. So the queue, which has a bound in number
/// ([`weir_redis::QUEUE_MAX`]), also has a bound in bytes.
const QUEUED_BYTES_MAX: usize = 64 << 10;

/// The server of a URL `redis://…` or `rediss://…`, or of `env:NAME` or `file:PATH` with this URL. With `rediss://`,
/// weir trusts the authorities of the machine.
///
/// # Errors
/// For the user, without the password.
pub fn server_of(url: &str) -> Result<RedisServer, Said> {
    let url = process::kept_elsewhere(url, str::to_owned)?;
    if url.starts_with("nats:") {
        return Err(say!(texts::NOT_NATS));
    }
    let server = RedisServer::parse(&url).map_err(|_| say!(texts::REDIS_FORM))?;
    if !server.is_secure() {
        return Ok(server);
    }
    let client = Client::for_servers(Some(Trust::of_machine()), &[]);
    let client = client.map_err(|why| say!(texts::REDIS_NONE, server.to_string(), why))?;
    // The text with the authorities tells two servers apart; here all of them trust the same authorities.
    Ok(server.trusting(client, &[]))
}

/// Events for the owner of a link: from the server, or from the owner's own helpers.
#[derive(Debug)]
pub enum LinkEvent<T> {
    /// A published message.
    Message(Vec<u8>),
    /// The connection of the reader is lost, and why. The reader connects again by itself.
    Gone(Said),
    /// The reader is connected again.
    Back,
    /// A message of the owner's helpers.
    Own(T),
}

/// A subscription to channels, and the right to publish. The reader's thread ends after the link is dropped.
pub struct ChannelLink {
    server: RedisServer,
    is_over: Arc<AtomicBool>,
}

impl ChannelLink {
    /// Connects and subscribes to `channels`; their messages go to `ear`. Makes sure that weir may publish in `own`.
    ///
    /// # Errors
    /// For the user: there is no connection, or the server refuses the login, the subscription or the message.
    pub fn open<T: Send + 'static>(
        server: &RedisServer,
        channels: Vec<String>,
        own: &str,
        ear: SyncSender<LinkEvent<T>>,
    ) -> Result<ChannelLink, Said> {
        let failed = |why: &NoReply| match why {
            NoReply::Refused(words) => say!(texts::REDIS_REFUSES, server.to_string(), words),
            other => say!(texts::REDIS_NONE, server.to_string(), reason(other)),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let link = ChannelLink { server: server.clone(), is_over: is_over.clone() };
        // An empty message is no letter, so all ignore it.
        server.ask_and_block(publication(own, b""), GREETING).map_err(|why| failed(&why))?;
        let reader = ChannelReader { server: server.clone(), channels, ear, is_over };
        let (first, begun) = sync_channel(1);
        worker::block_aside("channels", move || drop(worker::block_on(reader.read(first))))
            .map_err(|error| say!(texts::NO_THREAD, error.to_string()))?;
        match begun.recv() {
            Ok(Ok(())) => Ok(link),
            Ok(Err(why)) => Err(failed(&why)),
            Err(_) => Err(failed(&NoReply::Late)),
        }
    }

    /// Publishes a message, which may be lost. It waits for nothing; but a message with more than 64 KiB waits as
    /// [`ChannelLink::deliver`].
    pub fn publish(&self, channel: &str, message: &[u8]) {
        if message.len() > QUEUED_BYTES_MAX {
            return self.deliver(channel, message);
        }
        // A full queue loses the message.
        let _ = self.server.tell(publication(channel, message), PUBLISH);
    }

    /// Publishes a message, which may be lost, and waits until the server has it, for two seconds at most.
    pub fn deliver(&self, channel: &str, message: &[u8]) {
        // Without a reply, the message counts as lost.
        let _ = self.server.ask_and_block(publication(channel, message), PUBLISH);
    }
}

impl Drop for ChannelLink {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn publication(channel: &str, message: &[u8]) -> Commands {
    Commands::one(&[b"PUBLISH".as_slice(), channel.as_bytes(), message])
}

fn reason(why: &NoReply) -> Said {
    match why {
        NoReply::Late => say!(texts::REDIS_LATE),
        other => other.to_string().into(),
    }
}

/// The thread that reads.
struct ChannelReader<T> {
    server: RedisServer,
    channels: Vec<String>,
    ear: SyncSender<LinkEvent<T>>,
    is_over: Arc<AtomicBool>,
}

impl<T> ChannelReader<T> {
    /// Reads over one connection after another. If the first one does not begin, it says why, and ends.
    async fn read(self, first: SyncSender<Result<(), NoReply>>) {
        let mut first = Some(first);
        let mut backoff = Backoff::default();
        while !self.is_over() {
            match self.subscribe().await {
                Ok(mut link) => {
                    backoff = Backoff::default();
                    let is_told = match first.take() {
                        Some(first) => first.send(Ok(())).is_ok(),
                        None => self.ear.send(LinkEvent::Back).is_ok(),
                    };
                    if !is_told {
                        return;
                    }
                    let Some(why) = self.pass_on(&mut link).await else { return };
                    if self.ear.send(LinkEvent::Gone(reason(&why))).is_err() {
                        return;
                    }
                }
                // Only the loss of a connection is told, not each attempt after it.
                Err(why) => {
                    if let Some(first) = first.take() {
                        // It does not matter if the receiver is gone.
                        let _ = first.send(Err(why));
                        return;
                    }
                }
            }
            timer::sleep(backoff.longer()).await;
        }
    }

    async fn subscribe(&self) -> Result<Link, NoReply> {
        let channels: Vec<&str> = self.channels.iter().map(String::as_str).collect();
        let mut link = self.server.link(GREETING).await?;
        link.subscribe(&channels, &[], GREETING).await?;
        Ok(link)
    }

    /// Passes on the messages of a connection until it is lost, and returns the reason. `None`: the owner is gone.
    async fn pass_on(&self, link: &mut Link) -> Option<NoReply> {
        while !self.is_over() {
            match link.message(SILENCE, GREETING).await {
                // Nothing that weir publishes is longer.
                Ok(Some(message)) if message.content.len() <= MESSAGE_BYTES_MAX => {
                    self.ear.send(LinkEvent::Message(message.content)).ok()?;
                }
                Ok(_) => {}
                Err(why) => return Some(why),
            }
        }
        None
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_others_are_refused_without_telling_secrets() {
        for (url, place) in [
            ("redis://a", "a:6379"),
            ("redis://u:p@10.0.0.1:5000/2", "10.0.0.1:5000"),
            ("rediss://:secret@h", "h:6379"),
        ] {
            assert_eq!(server_of(url).unwrap().to_string(), place, "{url}");
        }
        for (url, words) in [
            ("nats://u:secret@h", "Redis in place of NATS: write redis://HOST"),
            ("tls://u:secret@h", "write the server as redis://"),
            ("h:6379", "write the server as redis://"),
            ("redis://u:secret@", "write the server as redis://"),
            ("redis://u:secret@a,b:x", "write the server as redis://"),
            ("env:WEIR_NO_SUCH_URL", "no variable \"WEIR_NO_SUCH_URL\""),
            ("file:/no/such/file", "/no/such/file: No such file"),
        ] {
            let error = server_of(url).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{url}: {error}");
        }
    }

    #[test]
    fn all_messages_pass_the_bounds_of_the_client() {
        use super::super::limits::BODY_BYTES_MAX;
        assert!(BODY_BYTES_MAX < MESSAGE_BYTES_MAX && (MESSAGE_BYTES_MAX as u64) < weir_redis::BYTES_MAX);
    }
}
