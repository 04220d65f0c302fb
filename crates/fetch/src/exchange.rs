//! One exchange: on a connection that the caller made, or over a new one.

use std::fmt;
use std::io;
use std::time::Duration;

use url::{Position, Url};
use weir_net::log::Os;
use weir_net::{Address, ConnectOptions, Deadline, Stream, Transport, worker};

use crate::answer::{Arriving, FetchedAnswer};

/// Bytes to read at a time.
const READ_BYTES: usize = 16 << 10;

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// There is no connection.
    Connect(io::Error),
    /// The request could not be sent.
    Send(io::Error),
    /// The answer could not be received.
    Receive(io::Error),
    /// The server closed the connection before the end of its answer.
    Closed,
    /// The answer is larger than the caller wants.
    Large {
        /// Its status, or 0.
        status: u16,
        /// The most bytes that the caller wants.
        bytes_max: usize,
    },
    /// The answer is not HTTP: the violation.
    Invalid(String),
}

/// For the log, in nginx's words.
impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Connect(error) => write!(f, "connect() failed {}", Os(error)),
            NoAnswer::Send(error) => write!(f, "send() failed {}", Os(error)),
            NoAnswer::Receive(error) => write!(f, "recv() failed {}", Os(error)),
            NoAnswer::Large { bytes_max, .. } => {
                write!(f, "recv() failed (the response is larger than {}k)", bytes_max >> 10)
            }
            NoAnswer::Closed | NoAnswer::Invalid(_) => f.write_str("the response is invalid or incomplete"),
        }
    }
}

/// The bytes of a request after which the server closes the connection, with `fields` beside those that every request has.
pub fn compose(method: &str, url: &Url, fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
    let mut out = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nConnection: close\r\n");
    fields.iter().for_each(|(name, value)| out += &format!("{name}: {value}\r\n"));
    if !body.is_empty() {
        out += &format!("Content-Length: {}\r\n", body.len());
    }
    (out + "\r\n" + body).into_bytes()
}

/// Sends a request, and reads the answer of at most `bytes_max` bytes with its head. `input` has the bytes that arrived and
/// were not read yet; it belongs to the connection.
///
/// # Errors
/// The connection is of no use then.
pub async fn exchange(
    transport: &Transport,
    input: &mut Vec<u8>,
    request: &[u8],
    bytes_max: usize,
    deadline: &Deadline,
) -> Result<FetchedAnswer, NoAnswer> {
    transport.write_all(request, deadline).await.map_err(NoAnswer::Send)?;
    let (mut arriving, mut is_closed) = (Arriving::default(), false);
    loop {
        if let Some((answer, length)) = arriving.read(input, is_closed).map_err(NoAnswer::Invalid)? {
            input.drain(..length);
            return Ok(answer);
        }
        if is_closed {
            return Err(NoAnswer::Closed);
        }
        if input.len() >= bytes_max {
            return Err(NoAnswer::Large { status: arriving.status(), bytes_max });
        }
        is_closed = transport.read_more(input, READ_BYTES, deadline).await.map_err(NoAnswer::Receive)? == 0;
    }
}

/// One exchange as [`exchange`], over a new connection without TLS; `timeout` is for all of it.
///
/// # Errors
/// As [`exchange`], or there is no connection.
pub async fn ask(
    address: &Address,
    request: &[u8],
    bytes_max: usize,
    timeout: Duration,
) -> Result<FetchedAnswer, NoAnswer> {
    let deadline = Deadline::new();
    deadline.set(timeout);
    let stream = Stream::connect_by(address, &ConnectOptions::default(), &deadline).await.map_err(NoAnswer::Connect)?;
    exchange(&Transport::from(stream), &mut Vec::new(), request, bytes_max, &deadline).await
}

/// As [`ask`], for a thread that may block and is not a worker.
///
/// # Errors
/// As [`ask`].
pub fn ask_and_block(
    address: Address,
    request: Vec<u8>,
    bytes_max: usize,
    timeout: Duration,
) -> Result<FetchedAnswer, NoAnswer> {
    let asked = worker::block_on(async move { ask(&address, &request, bytes_max, timeout).await });
    asked.unwrap_or_else(|error| Err(NoAnswer::Connect(error)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn requests_name_their_target_and_their_host() {
        let url = Url::parse("https://user@ca.test:14000/a/b?c=d#e").unwrap();
        let get = String::from_utf8(compose("GET", &url, &[], "")).unwrap();
        assert!(get.starts_with("GET /a/b?c=d HTTP/1.1\r\nHost: ca.test:14000\r\n") && get.ends_with("\r\n\r\n"));
        let url = Url::parse("https://[::1]/").unwrap();
        let post = String::from_utf8(compose("POST", &url, &[("X-A", "b")], "{}")).unwrap();
        assert!(post.contains("Host: [::1]\r\n") && post.ends_with("X-A: b\r\nContent-Length: 2\r\n\r\n{}"));
    }

    #[test]
    fn a_thread_that_blocks_asks_a_unix_socket() {
        let path = std::env::temp_dir().join(format!("weir-fetch-{}.sock", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let served = std::thread::spawn(move || {
            for answer in ["HTTP/1.0 200 OK\r\n\r\nabc", "HTTP/1.0 200 OK\r\n\r\nabcdefghijk", "HTTP"] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 4]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let asked = || ask_and_block(Address::Unix(path.clone()), b"GET ".to_vec(), 24, Duration::from_secs(9));
        assert_eq!(asked().unwrap().body, b"abc");
        assert!(matches!(asked(), Err(NoAnswer::Large { status: 200, .. })));
        assert!(matches!(asked(), Err(NoAnswer::Closed)));
        served.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(asked(), Err(NoAnswer::Connect(_))));
    }
}
