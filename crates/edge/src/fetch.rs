//! One HTTP exchange with a server that weir itself asks: an OCSP responder, an authority, a receiver of alerts.
//!
//! The caller knows the addresses. Invariant: an answer is bounded, and everything ends with the deadline.

pub mod trust;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_net::log::Os;
use weir_net::tls::{self, TlsStream};
use weir_net::{Address, ConnectOptions, Deadline, Stream, Transport};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Parser, Progress, ResponseHead};

/// Bytes to read at a time.
const READ_BYTES: usize = 16 << 10;

/// Interim answers before the final one (RFC 9110 §15.2).
const INTERIM_MAX: usize = 8;

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// How long one address has to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Begins the error of a certificate that weir does not trust, or that is for another host.
pub const DISTRUST: &str = "upstream SSL certificate";

/// A server, by URL.
pub struct Call<'c> {
    /// The URL.
    pub url: &'c url::Url,
    /// The addresses of its host, in the order in which weir tries them.
    pub addresses: &'c [SocketAddr],
    /// Speaks TLS, if the URL asks for it.
    pub tls: Result<&'c tls::Client, String>,
    /// Whether the certificate must be for the host.
    pub verifies: bool,
}

impl Call<'_> {
    /// Connects, sends a request, and reads the answer of at most `bytes_max` bytes with its head.
    ///
    /// # Errors
    /// For the log, in nginx's words. They name the host alone: the rest of a URL may be a secret.
    pub async fn exchange(&self, request: &[u8], bytes_max: usize, deadline: &Deadline) -> Result<Fetched, String> {
        let transport = self.connect(deadline).await?;
        let host = self.host();
        let failed = |call: &str, error: &io::Error| format!("{call}() failed {} ({host})", Os(error));
        send(&transport, request, deadline).await.map_err(|error| failed("send", &error))?;
        let bytes = receive(&transport, bytes_max, deadline).await.map_err(|error| failed("recv", &error))?;
        read(&bytes).ok_or_else(|| format!("{host} sent an invalid or incomplete response"))
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    async fn connect(&self, deadline: &Deadline) -> Result<Transport, String> {
        let mut last = format!("{} has no address", self.host());
        for address in self.addresses {
            match connect_to(*address).await {
                Ok(stream) if self.url.scheme() == "http" => return Ok(Transport::from(stream)),
                Ok(stream) => return self.secure(stream, deadline).await,
                Err(error) => last = format!("connect() to {address} failed {}", Os(&error)),
            }
        }
        Err(last)
    }

    /// Speaks TLS, and checks that the certificate is for the host.
    async fn secure(&self, stream: Stream, deadline: &Deadline) -> Result<Transport, String> {
        let host = self.host();
        let client = self.tls.clone()?;
        let begun = TlsStream::to_origin(stream, client, host, None).map_err(|failure| failure.to_string())?;
        begun.handshake(deadline).await.map_err(|error| told(&error))?;
        let is_for = match literal(host) {
            Some(address) => begun.is_for_address(address),
            None => begun.is_for(host),
        };
        if self.verifies && !is_for {
            return Err(format!("{DISTRUST} does not match \"{host}\""));
        }
        Ok(Transport::from(begun))
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<Stream> {
    let deadline = Deadline::new();
    deadline.set(CONNECT_TIMEOUT);
    let stream = Stream::connect(&Address::Tcp(address), &ConnectOptions::default())?;
    stream.connected(&deadline).await?;
    Ok(stream)
}

/// Why TLS failed, in nginx's words.
fn told(error: &io::Error) -> String {
    match tls::failure(error) {
        Some(failure) => match failure.distrust {
            Some(complaint) => {
                format!("{DISTRUST} verify error: ({}:{})", complaint.code, complaint.text)
            }
            None => format!("SSL_do_handshake() failed ({failure})"),
        },
        None => format!("SSL_do_handshake() failed {}", Os(error)),
    }
}

/// The address that a URL's host is, if it is one.
pub fn literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Sends a request.
pub async fn send(transport: &Transport, mut rest: &[u8], deadline: &Deadline) -> io::Result<()> {
    while !rest.is_empty() {
        match transport.try_write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => transport.writable(deadline).await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads an answer of at most `bytes_max` bytes with its head, until it is complete or the server closes.
pub async fn receive(transport: &Transport, bytes_max: usize, deadline: &Deadline) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if bytes.len() >= bytes_max {
            return Err(io::Error::other(format!("the response is larger than {}k", bytes_max >> 10)));
        }
        match transport.try_read_vec(&mut bytes, READ_BYTES) {
            Ok(0) => return Ok(bytes),
            Ok(_) if is_whole(&bytes) => return Ok(bytes),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => transport.readable(deadline).await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads the bytes of an answer to a GET or a POST; `None` if they are not a complete one.
pub fn read(bytes: &[u8]) -> Option<Fetched> {
    let (at, head, length) = head(bytes)?;
    let own = bytes.get(at..)?;
    let rest = own.get(head.len..)?;
    let body = match length {
        BodyLength::None => Vec::new(),
        BodyLength::Exact(length) => rest.get(..usize::try_from(length).ok()?)?.to_vec(),
        BodyLength::UntilClose => rest.to_vec(),
        BodyLength::Chunked => whole_chunks(rest)?,
    };
    let text = |span: weir_wire::Span| String::from_utf8_lossy(span.of(own)).into_owned();
    let fields = head.fields.iter().map(|field| (text(field.name).to_ascii_lowercase(), text(field.value)));
    Some(Fetched { status: head.status, fields: fields.collect(), body })
}

fn whole_chunks(rest: &[u8]) -> Option<Vec<u8>> {
    let (mut decoder, mut at, mut body) = (Decoder::new(), 0, Vec::new());
    loop {
        match decoder.next(rest, &mut at).ok()? {
            ChunkEvent::Data { start, end } => body.extend_from_slice(rest.get(start..end)?),
            ChunkEvent::NeedMore => return None,
            ChunkEvent::End => return Some(body),
        }
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some((at, head, length)) = head(bytes) else { return false };
    let rest = bytes.len().saturating_sub(at + head.len);
    match length {
        BodyLength::Exact(length) => rest as u64 >= length,
        BodyLength::None => true,
        BodyLength::Chunked => bytes.get(at + head.len..).is_some_and(|rest| whole_chunks(rest).is_some()),
        BodyLength::UntilClose => false,
    }
}

/// The final head, where it begins, and the length of its body.
fn head(bytes: &[u8]) -> Option<(usize, ResponseHead, BodyLength)> {
    let mut at = 0;
    for _ in 0..INTERIM_MAX {
        let rest = bytes.get(at..)?;
        let mut head = ResponseHead::default();
        match Parser::new().response(rest, &mut head) {
            Ok(Progress::Done) if (100..200).contains(&head.status) => at += head.len,
            Ok(Progress::Done) => {
                let length = weir_wire::response_body(rest, &head, b"GET").ok()?;
                return Some((at, head, length));
            }
            Ok(Progress::Partial { .. }) | Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_urls_are_known() {
        assert_eq!(literal("[::1]"), Some(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])));
        assert_eq!(literal("ca.test"), None);
    }

    #[test]
    fn bodies_end_as_their_heads_say() {
        let whole = |text: &str| read(text.as_bytes()).map(|read| (read.status, String::from_utf8(read.body).unwrap()));
        let of = |status, text: &str| Some((status, text.to_owned()));
        assert_eq!(whole("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), of(200, "abc"));
        assert_eq!(whole("HTTP/1.0 200 OK\r\n\r\nabc"), of(200, "abc"));
        assert_eq!(whole("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"), of(404, "ab"));
        assert_eq!(whole("HTTP/1.1 204 No\r\n\r\n"), of(204, ""));
        assert_eq!(whole("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), of(200, "a"));
        assert_eq!(whole("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), None);
        assert_eq!(whole("220 smtp"), None);
        assert_eq!(whole(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(20)), None);
    }

    #[test]
    fn an_answer_is_whole_without_a_close() {
        for (text, wanted) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", false),
            ("HTTP/1.1 200 OK\r\n\r\nabc", false),
        ] {
            assert_eq!(is_whole(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn names_of_fields_are_in_lower_case() {
        let read = read(b"HTTP/1.1 201 Created\r\nReplay-Nonce: aB\r\nContent-Length: 0\r\n\r\n").unwrap();
        assert_eq!(read.fields.first().unwrap(), &("replay-nonce".to_owned(), "aB".to_owned()));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (read(&bytes), is_whole(&bytes));
            let _ = read(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat());
        }
    }
}
