//! The ways to a program that is probed: connections, pages over HTTP, and their limits.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take. A program with busy workers answers slowly.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Most bytes of an answer.
pub const ANSWER_MAX: u64 = 4 << 20;

/// One reading: names and numbers.
pub type Reading = BTreeMap<String, f64>;

/// A connection with timeouts.
pub fn connect(at: &str) -> Result<TcpStream, String> {
    let at: SocketAddr = at.parse().map_err(|_| format!("{at}: write an address, as 127.0.0.1:6379"))?;
    let stream = TcpStream::connect_timeout(&at, PATIENCE).map_err(|error| format!("{at}: {error}"))?;
    let timed = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    timed.map(|()| stream).map_err(|error| format!("{at}: {error}"))
}

/// The body of a 200 response. The error names what came instead.
pub fn get(at: &str, path: &str) -> Result<String, String> {
    let mut stream = connect(at)?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain, application/json\r\n\r\n");
    let failed = |error: std::io::Error| format!("http://{at}{path}: {error}");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).map_err(failed)?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) =
        text.split_once("\r\n\r\n").ok_or_else(|| format!("http://{at}{path}: the application did not answer"))?;
    let line = head.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) == Some("200") { Ok(body.to_owned()) } else { Err(format!("http://{at}{path}: {line}")) }
}

/// `http://HOST:PORT/PATH`, `HOST:PORT/PATH` or `HOST:PORT`: the address, and the path if there is one.
pub fn url(at: &str) -> (String, Option<String>) {
    let rest = at.strip_prefix("http://").unwrap_or(at);
    let (address, path) = rest.split_once('/').map_or((rest, None), |(address, path)| (address, Some(path)));
    let address = match address.strip_prefix("localhost:") {
        Some(port) => format!("{}:{port}", IpAddr::V4(Ipv4Addr::LOCALHOST)),
        None => address.to_owned(),
    };
    (address, path.filter(|path| !path.is_empty()).map(|path| format!("/{path}")))
}
