//! One connection: login, commands with a time limit, and messages of channels. It blocks its thread.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use weir_net::{Instant, clock, process};

use crate::commands::Commands;
use crate::place::Place;
use crate::value::Value;

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

/// A connection that is logged in. After [`NoReply::Lost`] or [`NoReply::Late`] it is of no use any more.
pub struct Link {
    stream: BufReader<Timed>,
}

impl Link {
    pub(crate) fn open(place: &Place, timeout: Duration) -> Result<Link, NoReply> {
        let until = clock::precise() + timeout;
        let unknown = || NoReply::Lost(format!("host not found: \"{}\"", place.host));
        // Not by the standard library: the server process may not read the files of the system's resolver.
        let found = process::resolve(&place.host).map_err(|_| unknown())?;
        let address = SocketAddr::new(*found.first().ok_or_else(unknown)?, place.port);
        let stream = TcpStream::connect_timeout(&address, left(until)?)?;
        stream.set_nodelay(true)?;
        let mut link = Link { stream: BufReader::new(Timed { stream, until }) };
        link.log_in(place, place.user.as_deref())?;
        Ok(link)
    }

    fn log_in(&mut self, place: &Place, user: Option<&str>) -> Result<(), NoReply> {
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
        self.send(commands.bytes())?;
        let replies = self.values(commands.count())?;
        match replies.iter().take(needed).find_map(Value::error) {
            None => Ok(()),
            // A server before Redis 6 has no users.
            Some(words) if user.is_some() && words.contains("wrong number of arguments") => self.log_in(place, None),
            Some(words) => Err(NoReply::Refused(words.to_owned())),
        }
    }

    /// Sends commands, and returns their replies.
    ///
    /// # Errors
    /// Also if the server refuses one of the commands; the others may have been done.
    pub fn ask(&mut self, commands: &Commands, timeout: Duration) -> Result<Vec<Value>, NoReply> {
        self.set_limit(timeout);
        self.send(commands.bytes())?;
        self.receive(commands.count())
    }

    /// Subscribes to channels, and to all channels whose names match a pattern.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub fn subscribe(&mut self, channels: &[&str], patterns: &[&str], timeout: Duration) -> Result<(), NoReply> {
        let mut commands = Commands::default();
        for (command, names) in [("SUBSCRIBE", channels), ("PSUBSCRIBE", patterns)] {
            names.iter().for_each(|name| commands.add(&[command, name]));
        }
        self.ask(&commands, timeout).map(drop)
    }

    /// Waits at most `wait` for the next message of the channels; then asks whether the server is still there, and waits
    /// at most `timeout` for that answer, or for the rest of a message. `None` if there is no message.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn message(&mut self, wait: Duration, timeout: Duration) -> Result<Option<Message>, NoReply> {
        self.set_limit(wait);
        let is_late = match self.stream.fill_buf() {
            Ok(_) => false,
            Err(error) => match NoReply::from(error) {
                NoReply::Late => true,
                lost => return Err(lost),
            },
        };
        self.set_limit(timeout);
        if is_late {
            self.send(Commands::one(&["PING"]).bytes())?;
        }
        let values = self.receive(1)?;
        let items: Vec<&[u8]> = values.iter().flat_map(Value::list).map(Value::bytes).collect();
        Ok(match *items.as_slice() {
            [b"message", channel, content] | [b"pmessage", _, channel, content] => {
                Some(Message { channel: channel.to_vec(), content: content.to_vec() })
            }
            _ => None,
        })
    }

    /// Whether the server has neither closed a connection that was kept, nor sent anything over it.
    pub(crate) fn is_quiet(&self) -> bool {
        let stream = &self.stream.get_ref().stream;
        let peek = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
        let is_waiting = peek.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        is_waiting && self.stream.buffer().is_empty() && stream.set_nonblocking(false).is_ok()
    }

    /// The time limit of all that follows.
    pub(crate) fn set_limit(&mut self, timeout: Duration) {
        self.stream.get_mut().until = clock::precise() + timeout;
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), NoReply> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// As many replies; all of them are read, also if one is an error.
    pub(crate) fn receive(&mut self, count: usize) -> Result<Vec<Value>, NoReply> {
        let values = self.values(count)?;
        match values.iter().find_map(Value::error) {
            Some(words) => Err(NoReply::Refused(words.to_owned())),
            None => Ok(values),
        }
    }

    fn values(&mut self, count: usize) -> Result<Vec<Value>, NoReply> {
        Ok((0..count).map(|_| Value::read(&mut self.stream)).collect::<io::Result<_>>()?)
    }
}

/// A socket with a time limit for all that is read and written.
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(Some(left(self.until)?))?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.until)?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(clock::precise());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
