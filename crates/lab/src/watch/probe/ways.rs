//! The ways to a program that is probed: connections, pages over HTTP, and their limits.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weir_fetch::NoAnswer;

/// How long an answer may take. A program with busy workers answers slowly.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Most bytes of an answer.
pub const ANSWER_MAX: u64 = 4 << 20;

/// One reading: names and numbers.
pub type Reading = BTreeMap<String, f64>;

fn address(at: &str) -> Result<SocketAddr, String> {
    at.parse().map_err(|_| format!("{at}: write an address, as 127.0.0.1:6379"))
}

/// A connection with timeouts, for a protocol other than HTTP.
pub fn connect(at: &str) -> Result<TcpStream, String> {
    let at = address(at)?;
    let stream = TcpStream::connect_timeout(&at, PATIENCE).map_err(|error| format!("{at}: {error}"))?;
    let timed = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    timed.map(|()| stream).map_err(|error| format!("{at}: {error}"))
}

/// Sends bytes to `HOST:PORT`, or to the socket of this path, and reads until the program closes.
pub fn ask(at: &str, request: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("{at}: {error}");
    if !at.starts_with('/') {
        return all_of(connect(at)?, request).map_err(failed);
    }
    let stream = UnixStream::connect(at).map_err(failed)?;
    let timed = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    timed.and_then(|()| all_of(stream, request)).map_err(failed)
}

fn all_of(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

/// The body of a 200 response. The error names what came instead.
pub fn get(at: &str, path: &str) -> Result<String, String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain, application/json\r\n\r\n");
    let asked = weir_fetch::ask_and_block(address(at)?.into(), request.into_bytes(), ANSWER_MAX as usize, PATIENCE);
    match asked {
        Ok(answer) if answer.status == 200 => Ok(String::from_utf8_lossy(&answer.body).into_owned()),
        Ok(answer) => Err(format!("http://{at}{path}: status {}", answer.status)),
        Err(NoAnswer::Connect(error)) => Err(format!("{at}: {error}")),
        Err(NoAnswer::Send(error) | NoAnswer::Receive(error)) => Err(format!("http://{at}{path}: {error}")),
        Err(_) => Err(format!("http://{at}{path}: the application did not answer")),
    }
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
