//! A client of the NATS core protocol: connect, subscribe, publish, receive. One thread reads, the owner's thread
//! writes.
//!
//! It is small on purpose; docs/why/dependencies.md gives the reasons for writing it. Not here: TLS, JetStream,
//! headers, clusters.

pub mod parse;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use weir_net::{Instant, clock, process};
use weir_words::{Said, Text, say};

use crate::texts::agents as texts;
pub use parse::NatsMessage;
use parse::{Op, Parser};

/// Default port of NATS.
const PORT: u16 = 4222;
/// Longest time for the server to accept a connection and to greet.
const GREETING: Duration = Duration::from_secs(3);
/// Longest time that a write waits for the server to read.
const WRITE: Duration = Duration::from_secs(5);
/// Time between two attempts to reconnect.
const RETRY: Duration = Duration::from_millis(500);
/// Bytes left free in a full message for weir's own head.
const HEAD_BYTES: usize = 16 << 10;

/// A server by its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsServer {
    host: String,
    port: u16,
    login: Login,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Login {
    None,
    Token(String),
    User(String, String),
}

impl NatsServer {
    /// Parses `nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT]`, or `env:NAME` or `file:PATH` that holds this URL; the
    /// error is for the user.
    pub fn parse(url: &str) -> Result<NatsServer, Said> {
        let url = &process::kept_elsewhere(url, str::to_owned)?;
        let bad = |what: Text| Err(say!(texts::NATS_URL, hidden(url), what));
        let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
        match scheme {
            "nats" => {}
            "tls" | "wss" | "ws" => return bad(texts::NATS_TLS),
            _ => return bad(texts::NATS_FORM),
        }
        let (login, place) = match rest.trim_end_matches('/').rsplit_once('@') {
            Some((login, place)) => (login, place),
            None => ("", rest.trim_end_matches('/')),
        };
        let login = match login.split_once(':') {
            Some((user, password)) => Login::User(decoded(user), decoded(password)),
            None if login.is_empty() => Login::None,
            None => Login::Token(decoded(login)),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let Ok(port) = port.map_or(Ok(PORT), str::parse) else { return bad(texts::NATS_PORT) };
        if host.is_empty() || host.contains(['/', ',', ' ']) {
            return bad(texts::NATS_ONE);
        }
        Ok(NatsServer { host: host.to_owned(), port, login })
    }

    /// `HOST:PORT`, without secrets.
    pub fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A URL without the part before `@`.
fn hidden(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://***@{place}"),
        (None, Some((_, place))) => format!("***@{place}"),
        _ => url.to_owned(),
    }
}

/// The text with its percent signs decoded.
fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let (byte, left) = match code {
            Some(code) if first == b'%' => (code, after.get(2..).unwrap_or_default()),
            _ => (first, after),
        };
        rest = left;
        out.push(byte);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Messages to the owner of a link: from the server, or from the owner's own helpers.
#[derive(Debug)]
pub enum LinkEvent<T> {
    /// A published message.
    Message(NatsMessage),
    /// The connection with this number is over, and why.
    Gone(u64, Said),
    /// A message of the owner's helpers.
    Own(T),
}

/// A connection that reconnects. Messages published while it is down are lost, as in NATS itself.
pub struct NatsLink<T> {
    server: NatsServer,
    name: String,
    ear: SyncSender<LinkEvent<T>>,
    subjects: Vec<String>,
    client: Option<Client>,
    generation: u64,
    tried: Option<Instant>,
}

impl<T: Send + 'static> NatsLink<T> {
    /// Connects; the error is for the user.
    pub fn connect(server: &NatsServer, name: &str, ear: SyncSender<LinkEvent<T>>) -> Result<NatsLink<T>, Said> {
        let mut link = NatsLink {
            server: server.clone(),
            name: name.to_owned(),
            ear,
            subjects: Vec::new(),
            client: None,
            generation: 0,
            tried: None,
        };
        link.open()?;
        Ok(link)
    }

    /// Subscribes to a subject.
    pub fn subscribe(&mut self, subject: String) {
        let sid = self.subjects.len() + 1;
        self.write(&format!("SUB {subject} {sid}\r\n").into_bytes());
        self.subjects.push(subject);
    }

    /// Keeps only the first `kept` subscriptions.
    pub fn forget_after(&mut self, kept: usize) {
        for sid in kept..self.subjects.len() {
            self.write(&format!("UNSUB {}\r\n", sid + 1).into_bytes());
        }
        self.subjects.truncate(kept);
    }

    /// Publishes a message; does nothing if there is no connection.
    pub fn publish(&mut self, subject: &str, payload: &[u8]) {
        let mut bytes = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        self.write(&bytes);
    }

    /// Most bytes that a message's body may hold beside its head.
    pub fn body_bytes_max(&self) -> usize {
        let allowed = self.client.as_ref().map_or(1 << 20, |client| client.payload_bytes_max);
        allowed.saturating_sub(HEAD_BYTES).clamp(1, parse::PAYLOAD_BYTES_MAX - HEAD_BYTES)
    }

    /// True if there is a connection.
    pub fn is_up(&self) -> bool {
        self.client.is_some()
    }

    /// Handles [`LinkEvent::Gone`]; true if it was about the current connection.
    pub fn gone(&mut self, generation: u64) -> bool {
        let is_it = generation == self.generation && self.client.is_some();
        if is_it {
            self.client = None;
        }
        is_it
    }

    /// Reconnects if it is time to; call it regularly.
    pub fn mend(&mut self) {
        let is_time = self.tried.is_none_or(|tried| clock::precise().saturating_duration_since(tried) >= RETRY);
        if self.client.is_none() && is_time {
            // If this attempt fails, the next one reports the same.
            let _ = self.open();
        }
    }

    fn open(&mut self) -> Result<(), Said> {
        self.tried = Some(clock::precise());
        self.generation += 1;
        self.client = Some(Client::open(&self.server, &self.name, self.ear.clone(), self.generation)?);
        for (index, subject) in self.subjects.clone().iter().enumerate() {
            self.write(&format!("SUB {subject} {}\r\n", index + 1).into_bytes());
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(client) = &self.client
            && client.write(bytes).is_err()
        {
            self.client = None;
        }
    }
}

/// One connection; its thread ends with it.
struct Client {
    stream: Arc<Mutex<TcpStream>>,
    payload_bytes_max: usize,
}

impl Client {
    fn open<T: Send + 'static>(
        server: &NatsServer,
        name: &str,
        ear: SyncSender<LinkEvent<T>>,
        generation: u64,
    ) -> Result<Client, Said> {
        let place = server.place();
        let failed = |error: std::io::Error| say!(texts::NATS_NONE, &place, error.to_string());
        let mut stream = dial(server).map_err(failed)?;
        let mut reader = Reader { stream: stream.try_clone().map_err(failed)?, parser: Parser::default() };
        let info = match reader.next().map_err(|error| say!(texts::NATS_URL, &place, error))? {
            Op::Info(info) => serde_json::from_str::<Value>(&info)
                .map_err(|error| say!(texts::NATS_URL, &place, error.to_string()))?,
            other => return Err(say!(texts::NATS_OTHER, place, format!("{other:?}"))),
        };
        if info.get("tls_required").and_then(Value::as_bool) == Some(true) {
            return Err(say!(texts::NATS_REQUIRES_TLS, place));
        }
        stream.write_all(greeting(server, name).as_bytes()).map_err(failed)?;
        loop {
            match reader.next().map_err(|error| say!(texts::NATS_URL, &place, error))? {
                Op::Pong => break,
                Op::Error(error) => return Err(say!(texts::NATS_REFUSES, place, error)),
                _ => {}
            }
        }
        reader.stream.set_read_timeout(None).map_err(failed)?;
        let payload_bytes_max = info.get("max_payload").and_then(Value::as_u64).unwrap_or(1 << 20);
        let stream = Arc::new(Mutex::new(stream));
        let writer = stream.clone();
        std::thread::Builder::new()
            .name("nats".to_owned())
            .spawn(move || {
                let why = reader.read_on(&writer, &ear);
                // It does not matter if the receiver is gone.
                let _ = ear.send(LinkEvent::Gone(generation, why));
            })
            .map_err(failed)?;
        Ok(Client { stream, payload_bytes_max: usize::try_from(payload_bytes_max).unwrap_or(usize::MAX) })
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The connection may be closed already.
        let _ = self.stream.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
    }
}

fn dial(server: &NatsServer) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name has no address");
    for address in (server.host.as_str(), server.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, GREETING) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(GREETING))?;
                stream.set_write_timeout(Some(WRITE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn greeting(server: &NatsServer, name: &str) -> String {
    let mut connect = json!({
        "verbose": false, "pedantic": false, "tls_required": false, "headers": false, "protocol": 1,
        "name": name, "lang": "weir", "version": env!("CARGO_PKG_VERSION"),
    });
    match &server.login {
        Login::None => {}
        Login::Token(token) => connect["auth_token"] = token.as_str().into(),
        Login::User(user, password) => {
            connect["user"] = user.as_str().into();
            connect["pass"] = password.as_str().into();
        }
    }
    format!("CONNECT {connect}\r\nPING\r\n")
}

struct Reader {
    stream: TcpStream,
    parser: Parser,
}

impl Reader {
    fn next(&mut self) -> Result<Op, Said> {
        let mut bytes = [0; 16 << 10];
        loop {
            if let Some(op) = self.parser.pull().map_err(|wrong| Said::from(wrong.to_string()))? {
                return Ok(op);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(say!(texts::NATS_CLOSED)),
                Ok(read) => self.parser.push(bytes.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string().into()),
            }
        }
    }

    /// Passes on what the server sends, until the connection ends; returns the reason.
    fn read_on<T>(&mut self, writer: &Mutex<TcpStream>, ear: &SyncSender<LinkEvent<T>>) -> Said {
        loop {
            match self.next() {
                Ok(Op::Message(message)) => {
                    if ear.send(LinkEvent::Message(message)).is_err() {
                        return Said::default();
                    }
                }
                Ok(Op::Ping) => {
                    let written = writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(b"PONG\r\n");
                    if let Err(error) = written {
                        return error.to_string().into();
                    }
                }
                Ok(Op::Error(error)) => return error.into(),
                Ok(Op::Info(_) | Op::Pong | Op::Ok) => {}
                Err(error) => return error,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let server = |host: &str, port, login| Ok(NatsServer { host: host.to_owned(), port, login });
        let user = |user: &str, password: &str| Login::User(user.to_owned(), password.to_owned());
        for (url, expected) in [
            ("nats://a", server("a", 4222, Login::None)),
            ("nats://10.0.0.1:5000/", server("10.0.0.1", 5000, Login::None)),
            ("host:99", server("host", 99, Login::None)),
            ("nats://[::1]:9", server("::1", 9, Login::None)),
            ("nats://u:p%40ss@h:9", server("h", 9, user("u", "p@ss"))),
            ("nats://s3cr%ZZt@h", server("h", 4222, Login::Token("s3cr%ZZt".to_owned()))),
        ] {
            assert_eq!(NatsServer::parse(url), expected, "{url}");
        }
    }

    #[test]
    fn other_urls_are_refused_without_telling_secrets() {
        for (url, words) in [
            ("tls://u:secret@h", "does not support TLS to NATS"),
            ("redis://u:secret@h", "write the NATS server as nats://"),
            ("env:WEIR_NO_SUCH_URL", "no variable \"WEIR_NO_SUCH_URL\""),
            ("file:/no/such/file", "/no/such/file: No such file"),
            ("nats://u:secret@", "one server"),
            ("nats://u:secret@a,b", "one server"),
            ("nats://u:secret@a:b", "not a number"),
        ] {
            let error = NatsServer::parse(url).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{error}");
        }
    }
}
