//! One connection, with or without TLS: login, commands with a time limit, and messages of channels.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_net::log::Os;
use weir_net::tls::{self, TlsStream};
use weir_net::{Address, ConnectOptions, Deadline, Stream, Transport, clock, process};

use crate::commands::Commands;
use crate::place::Place;
use crate::value::{BYTES_MAX, Value};

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// There is no connection, or it ended: the reason.
    Lost(String),
    /// The time limit has passed.
    Late,
    /// [`crate::QUEUE_MAX`] other requests wait.
    Full,
    /// The server refuses a command: its words.
    Refused(String),
    /// The reply is not one that Redis gives to this command.
    Unexpected,
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoReply::Lost(why) | NoReply::Refused(why) => f.write_str(why),
            NoReply::Late => f.write_str("the server did not answer in time"),
            NoReply::Full => f.write_str("too many commands wait for the server"),
            NoReply::Unexpected => f.write_str("the answer is not that of Redis 5.0 or later"),
        }
    }
}

impl From<io::Error> for NoReply {
    fn from(error: io::Error) -> NoReply {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => NoReply::Late,
            _ => NoReply::Lost(error.to_string()),
        }
    }
}

/// The time between two tries to connect: it doubles from the first to the last.
#[derive(Clone, Copy, Debug)]
pub struct Backoff(Duration);

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LAST: Duration = Duration::from_millis(500);

    /// The time until the next try.
    pub fn longer(&mut self) -> Duration {
        let time = self.0;
        self.0 = (time * 2).min(Backoff::LAST);
        time
    }
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff(Backoff::FIRST)
    }
}

/// A message of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The channel.
    pub channel: Vec<u8>,
    /// Its content.
    pub content: Vec<u8>,
}

/// Addresses of one host that are tried, at most; all within the same time limit.
const ADDRESSES_MAX: usize = 4;

/// Bytes to read at a time.
const READ_BYTES: usize = 16 << 10;

/// A connection that is logged in. After [`NoReply::Lost`] or [`NoReply::Late`] it is of no use any more.
pub struct Link {
    transport: Transport,
    /// Bytes that have arrived, and were not read yet.
    input: Vec<u8>,
    deadline: Deadline,
}

impl Link {
    pub(crate) async fn open(place: &Place, timeout: Duration) -> Result<Link, NoReply> {
        let deadline = Deadline::new();
        // The clock of the loop stands still while its thread waits for requests.
        deadline.set_at(clock::precise() + timeout);
        let unknown = || NoReply::Lost(format!("host not found: \"{}\"", place.host));
        // Not by the standard library: the server process may not read the files of the system's resolver.
        let found = process::resolve(&place.host).map_err(|_| unknown())?;
        let mut connected = Err(unknown());
        for ip in found.iter().take(ADDRESSES_MAX) {
            let address = Address::Tcp(SocketAddr::new(*ip, place.port));
            connected =
                Stream::connect_by(&address, &ConnectOptions::default(), &deadline).await.map_err(NoReply::from);
            if connected.is_ok() {
                break;
            }
        }
        let stream = connected?;
        let transport = match &place.trust {
            Some(trust) if place.is_secure => secured(stream, &trust.client, &place.host, &deadline).await?.into(),
            None if place.is_secure => return Err(NoReply::Lost("no authority for TLS is known".to_owned())),
            _ => Transport::from(stream),
        };
        let mut link = Link { transport, input: Vec::new(), deadline };
        if !link.log_in(place, place.user.as_deref()).await? {
            // A server before Redis 6 has no users.
            link.log_in(place, None).await?;
        }
        Ok(link)
    }

    /// False if the server knows a password, but no users.
    async fn log_in(&mut self, place: &Place, user: Option<&str>) -> Result<bool, NoReply> {
        let mut commands = Commands::default();
        if let Some(password) = place.password.as_deref() {
            let words: Vec<&str> = ["AUTH"].into_iter().chain(user).chain([password]).collect();
            commands.add(&words);
        }
        if place.database != 0 {
            commands.add(&["SELECT", &place.database.to_string()]);
        }
        let needed = commands.count();
        // Names this connection in CLIENT LIST; a server before Redis 7.2 refuses it.
        commands.add(&["CLIENT", "SETINFO", "LIB-NAME", "weir"]);
        commands.add(&["CLIENT", "SETINFO", "LIB-VER", env!("CARGO_PKG_VERSION")]);
        self.send(commands.bytes()).await?;
        let mut replies = Vec::new();
        if let Err(lost) = self.values(commands.count(), &mut replies).await {
            // A server that accepts nobody says why, before it reads a command.
            return Err(match replies.first().and_then(Value::error) {
                Some(words) => NoReply::Refused(words.to_owned()),
                None => lost,
            });
        }
        match replies.iter().take(needed).find_map(Value::error) {
            None => Ok(true),
            Some(words) if user.is_some() && words.contains("wrong number of arguments") => Ok(false),
            Some(words) => Err(NoReply::Refused(words.to_owned())),
        }
    }

    /// Sends commands, and returns their replies.
    ///
    /// # Errors
    /// Also if the server refuses one of the commands; the others may have been done.
    pub async fn ask(&mut self, commands: &Commands, timeout: Duration) -> Result<Vec<Value>, NoReply> {
        self.set_limit(timeout);
        self.send(commands.bytes()).await?;
        self.receive(commands.count()).await
    }

    /// Subscribes to channels, and to all channels whose names match a pattern.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub async fn subscribe(&mut self, channels: &[&str], patterns: &[&str], timeout: Duration) -> Result<(), NoReply> {
        let mut commands = Commands::default();
        for (command, names) in [("SUBSCRIBE", channels), ("PSUBSCRIBE", patterns)] {
            names.iter().for_each(|name| commands.add(&[command, name]));
        }
        self.ask(&commands, timeout).await.map(drop)
    }

    /// Waits at most `wait` for the next message of the channels; then asks whether the server is still there, and waits
    /// at most `timeout` for that answer, or for the rest of a message. `None` if there is no message.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn message(&mut self, wait: Duration, timeout: Duration) -> Result<Option<Message>, NoReply> {
        self.set_limit(wait);
        let is_late = self.input.is_empty()
            && match self.more().await.map_err(NoReply::from) {
                Ok(()) => false,
                Err(NoReply::Late) => true,
                Err(lost) => return Err(lost),
            };
        self.set_limit(timeout);
        if is_late {
            self.send(Commands::one(&["PING"]).bytes()).await?;
        }
        let values = self.receive(1).await?;
        let items: Vec<&[u8]> = values.iter().flat_map(Value::list).map(Value::bytes).collect();
        Ok(match *items.as_slice() {
            [b"message", channel, content] | [b"pmessage", _, channel, content] => {
                Some(Message { channel: channel.to_vec(), content: content.to_vec() })
            }
            _ => None,
        })
    }

    /// Whether the server has neither closed a connection that was kept, nor sent anything over it.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let read = self.transport.try_read_vec(&mut self.input, READ_BYTES);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) && self.input.is_empty()
    }

    /// The time limit of all that follows.
    pub(crate) fn set_limit(&mut self, timeout: Duration) {
        self.deadline.set_at(clock::precise() + timeout);
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), NoReply> {
        Ok(self.transport.write_all(bytes, &self.deadline).await?)
    }

    /// As many replies; all of them are read, also if one is an error.
    pub(crate) async fn receive(&mut self, count: usize) -> Result<Vec<Value>, NoReply> {
        let mut values = Vec::new();
        self.values(count, &mut values).await?;
        match values.iter().find_map(Value::error) {
            Some(words) => Err(NoReply::Refused(words.to_owned())),
            None => Ok(values),
        }
    }

    async fn values(&mut self, count: usize, values: &mut Vec<Value>) -> Result<(), NoReply> {
        while values.len() < count {
            let mut rest = self.input.as_slice();
            match Value::read(&mut rest) {
                Ok(value) => {
                    let read = self.input.len() - rest.len();
                    self.input.drain(..read);
                    values.push(value);
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.more().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits for bytes, and takes all that have arrived.
    async fn more(&mut self) -> io::Result<()> {
        if self.transport.read_more(&mut self.input, READ_BYTES, &self.deadline).await? == 0 {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "the server closed the connection"));
        }
        while self.input.len() as u64 <= BYTES_MAX {
            match self.transport.try_read_vec(&mut self.input, READ_BYTES) {
                // The next wait finds the end again.
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Speaks TLS, and checks that the certificate is for the host.
async fn secured(stream: Stream, client: &tls::Client, host: &str, deadline: &Deadline) -> Result<TlsStream, NoReply> {
    let begun = TlsStream::to_origin(stream, client, host, None);
    let begun = begun.map_err(|failure| NoReply::Lost(failure.to_string()))?;
    begun.handshake(deadline).await.map_err(|error| match tls::failure(&error) {
        Some(failure) => NoReply::Lost(format!("no TLS: {failure}")),
        None if error.kind() == ErrorKind::TimedOut => NoReply::Late,
        None => NoReply::Lost(format!("no TLS {}", Os(&error))),
    })?;
    let is_for = host.parse::<IpAddr>().map_or_else(|_| begun.is_for(host), |address| begun.is_for_address(address));
    match is_for {
        true => Ok(begun),
        false => Err(NoReply::Lost(format!("its certificate is not for \"{host}\""))),
    }
}
