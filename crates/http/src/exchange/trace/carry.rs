//! Carries an export to the collector: gRPC over HTTP/2, or a POST over HTTP/1.1, on a kept connection.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use weir_fetch::{FetchedAnswer as Posted, NoAnswer};
use weir_net::tls::Client;
use weir_net::{ConnectOptions, Deadline, SocketAddress, Stream, TlsStream, Transport, process};
use weir_wire::Known;
use weir_wire::h2::connection::{Connection, H2Event, Limits, Role, Step};
use weir_wire::section::SectionEncoder;

use super::endpoint::{At, Endpoint, GRPC_PATH};

/// How long connecting and an export may take: OpenTelemetry's own default.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
const EXPORT_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes to read at a time.
const READ_BYTES: usize = 16 << 10;
/// Bytes of a collector's answer that weir reads, at most; a longer answer ends the connection.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Bytes of a collector's message that the log shows.
const WORDS_BYTES_MAX: usize = 256;

/// Why an export failed.
#[derive(Debug)]
pub enum ExportFailed {
    /// Another try may succeed.
    Passing(String),
    /// Another try would fail too.
    Refused(String),
}

impl fmt::Display for ExportFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ExportFailed::Passing(what) | ExportFailed::Refused(what)) = self;
        f.write_str(what)
    }
}

impl From<io::Error> for ExportFailed {
    fn from(error: io::Error) -> ExportFailed {
        match error.kind() {
            io::ErrorKind::TimedOut => ExportFailed::Passing("the collector did not answer in time".to_owned()),
            _ => ExportFailed::Passing(error.to_string()),
        }
    }
}

fn closed() -> ExportFailed {
    ExportFailed::Passing("the collector closed the connection".to_owned())
}

/// The connection to a collector, made when needed.
pub struct SpanCarrier {
    endpoint: Endpoint,
    headers: Vec<(String, String)>,
    tls: Option<Client>,
    /// The user named the certificate authorities; weir checks the certificate as nginx checks that of an upstream.
    has_own_trust: bool,
    link: Option<Link>,
}

/// A connection.
struct Link {
    stream: Transport,
    /// Bytes that arrived and were not read yet.
    input: Vec<u8>,
    /// The HTTP/2 state, if the connection speaks HTTP/2.
    h2: Option<Connection>,
    /// It may carry another export.
    is_kept: bool,
}

impl SpanCarrier {
    /// No connection yet; `headers` are fields of every export.
    pub fn new(
        endpoint: Endpoint,
        headers: Vec<(String, String)>,
        tls: Option<Client>,
        has_own_trust: bool,
    ) -> SpanCarrier {
        SpanCarrier { endpoint, headers, tls, has_own_trust, link: None }
    }

    /// Sends an export; over a new connection if the kept one has ended meanwhile.
    pub async fn send(&mut self, body: &[u8]) -> Result<(), ExportFailed> {
        let mut kept = self.link.take().filter(Link::is_alive);
        let was_kept = kept.is_some();
        let mut link = match kept.take() {
            Some(link) => link,
            None => self.connect().await?,
        };
        let mut sent = self.exchange(&mut link, body).await;
        if was_kept && matches!(sent, Err(ExportFailed::Passing(_))) && link.input.is_empty() {
            link = self.connect().await?;
            sent = self.exchange(&mut link, body).await;
        }
        if link.is_kept && !matches!(sent, Err(ExportFailed::Passing(_))) {
            self.link = Some(link);
        }
        sent
    }

    async fn exchange(&self, link: &mut Link, body: &[u8]) -> Result<(), ExportFailed> {
        let deadline = Deadline::new();
        deadline.set(EXPORT_PATIENCE);
        match link.h2.take() {
            Some(mut h2) => {
                let called = self.call(link, &mut h2, body, &deadline).await;
                link.h2 = Some(h2);
                called
            }
            None => self.post(link, body, &deadline).await,
        }
    }

    async fn connect(&self) -> Result<Link, ExportFailed> {
        let deadline = Deadline::new();
        deadline.set(CONNECT_PATIENCE);
        let mut failed = io::Error::other("the collector's name has no address");
        for address in self.addresses()? {
            match Stream::connect_by(&address, &ConnectOptions::default(), &deadline).await {
                Ok(stream) => return self.begin(stream, &deadline).await,
                Err(error) => failed = error,
            }
        }
        Err(ExportFailed::Passing(failed.to_string()))
    }

    /// This thread may wait for the system's resolver: it serves no clients.
    fn addresses(&self) -> Result<Vec<SocketAddress>, ExportFailed> {
        match &self.endpoint.at {
            At::Unix(path) => Ok(vec![SocketAddress::Unix(path.clone())]),
            At::Host(host, port) => {
                let at = |ip| SocketAddress::Tcp(SocketAddr::new(ip, *port));
                process::resolve(host)
                    .map(|all| all.into_iter().map(at).collect())
                    .map_err(|error| ExportFailed::Passing(format!("host not found: {error}")))
            }
        }
    }

    async fn begin(&self, stream: Stream, deadline: &Deadline) -> Result<Link, ExportFailed> {
        let stream = match &self.tls {
            None => Transport::from(stream),
            Some(client) => {
                let host = self.endpoint.host();
                let begin = if self.has_own_trust { TlsStream::to_origin } else { TlsStream::client };
                let secure = begin(stream, client, host, None).map_err(io::Error::from)?;
                secure.handshake(deadline).await?;
                if self.has_own_trust && !secure.is_for(host) {
                    return Err(ExportFailed::Passing(format!(
                        "the collector's certificate does not match \"{host}\""
                    )));
                }
                Transport::from(secure)
            }
        };
        let is_grpc = self.endpoint.path.is_none();
        let limits = Limits { streams: 0, ..Limits::default() };
        let h2 = is_grpc.then(|| Connection::new(Role::Client, limits));
        Ok(Link { stream, input: Vec::new(), h2, is_kept: true })
    }

    /// `TraceService/Export` (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).
    async fn call(
        &self,
        link: &mut Link,
        h2: &mut Connection,
        body: &[u8],
        deadline: &Deadline,
    ) -> Result<(), ExportFailed> {
        let stream =
            h2.open().ok_or_else(|| ExportFailed::Passing("the collector accepts no more streams".to_owned()))?;
        let scheme: &[u8] = if self.endpoint.is_tls { b"https" } else { b"http" };
        h2.head(stream, false, |encoder, out| {
            encoder.pseudo(":method", b"POST", out);
            encoder.pseudo(":scheme", scheme, out);
            encoder.pseudo(":path", GRPC_PATH.as_bytes(), out);
            encoder.pseudo(":authority", self.endpoint.authority.as_bytes(), out);
            for (name, value) in self.fields("application/grpc").chain([("te", "trailers")]) {
                encoder.field(name.as_bytes(), value.as_bytes(), Known::of(name.as_bytes()), out);
            }
        });
        let rest = weir_wire::grpc::frame(body)
            .ok_or_else(|| ExportFailed::Refused("the export is larger than 4 GiB".to_owned()))?;
        let mut sent = 0;
        let mut answer = Answer::default();
        loop {
            let mut out = std::mem::take(h2.output());
            while let count @ 1.. = h2.sendable(stream).min(rest.len() - sent) {
                let head = h2.data(stream, count, sent + count == rest.len());
                out.append(h2.output());
                out.extend_from_slice(&head);
                out.extend_from_slice(rest.get(sent..sent + count).unwrap_or_default());
                sent += count;
            }
            link.stream.write_all(&out, deadline).await?;
            link.take_frames(h2, stream, &mut answer)?;
            if let Some(outcome) = answer.outcome() {
                // The collector answered before weir had sent all of the stream: both sides end it.
                if sent < rest.len() {
                    h2.reset(stream, weir_wire::h2::ErrorCode::NoError);
                }
                return outcome;
            }
            if h2.output().is_empty() && h2.sendable(stream).min(rest.len() - sent) == 0 {
                link.read(deadline).await?;
            }
        }
    }

    /// OTLP over HTTP (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
    async fn post(&self, link: &mut Link, body: &[u8], deadline: &Deadline) -> Result<(), ExportFailed> {
        let mut out = Vec::with_capacity(body.len() + 512);
        let path = self.endpoint.path.as_deref().unwrap_or("/");
        out.extend_from_slice(format!("POST {path} HTTP/1.1\r\nHost: {}\r\n", self.endpoint.authority).as_bytes());
        for (name, value) in self.fields("application/x-protobuf") {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        out.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        out.extend_from_slice(body);
        let exchanged = weir_fetch::exchange(&link.stream, &mut link.input, &out, ANSWER_BYTES_MAX, deadline).await;
        link.is_kept = exchanged.as_ref().is_ok_and(|answer| answer.is_kept);
        let status = match exchanged {
            Ok(Posted { status, .. }) | Err(NoAnswer::Large { status, .. }) => status,
            Err(NoAnswer::Connect(error) | NoAnswer::Send(error) | NoAnswer::Receive(error)) => {
                return Err(error.into());
            }
            Err(NoAnswer::Closed) => return Err(closed()),
            Err(NoAnswer::Invalid(violation)) => {
                return Err(ExportFailed::Refused(format!("the collector's answer is not HTTP: {violation}")));
            }
        };
        match status {
            200..=299 => Ok(()),
            429 | 502 | 503 | 504 => Err(ExportFailed::Passing(format!("the collector answered {status}"))),
            _ => Err(ExportFailed::Refused(format!("the collector answered {status}"))),
        }
    }

    /// The fields of every export.
    fn fields<'f>(&'f self, content_type: &'f str) -> impl Iterator<Item = (&'f str, &'f str)> {
        let own = [("content-type", content_type), ("user-agent", concat!("weir/", env!("CARGO_PKG_VERSION")))];
        own.into_iter().chain(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

/// The answer to a call.
#[derive(Default)]
struct Answer {
    http_status: Option<Vec<u8>>,
    grpc_status: Option<u32>,
    message: String,
    is_over: bool,
    failed: Option<String>,
}

impl Answer {
    fn take(&mut self, fields: impl Iterator<Item = (impl AsRef<[u8]>, impl AsRef<[u8]>)>) {
        for (name, value) in fields {
            let value = value.as_ref();
            match name.as_ref() {
                b":status" => self.http_status = Some(value.to_vec()),
                b"grpc-status" => self.grpc_status = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()),
                b"grpc-message" => {
                    let shown = value.get(..value.len().min(WORDS_BYTES_MAX)).unwrap_or_default();
                    self.message = shown.escape_ascii().to_string();
                }
                _ => {}
            }
        }
    }

    /// The result, once the answer is complete.
    fn outcome(&self) -> Option<Result<(), ExportFailed>> {
        if let Some(failed) = &self.failed {
            return Some(Err(ExportFailed::Passing(failed.clone())));
        }
        if !self.is_over {
            return None;
        }
        let said = || if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
        Some(match (self.grpc_status, self.http_status.as_deref()) {
            (Some(0), _) => Ok(()),
            // The statuses after which OTLP tries again: cancelled, deadline exceeded, resource exhausted, aborted,
            // out of range, unavailable, data loss.
            (Some(code @ (1 | 4 | 8 | 10 | 11 | 14 | 15)), _) => {
                Err(ExportFailed::Passing(format!("the collector answered gRPC status {code}{}", said())))
            }
            (Some(code), _) => {
                Err(ExportFailed::Refused(format!("the collector answered gRPC status {code}{}", said())))
            }
            (None, status) => {
                let status = status.unwrap_or_default().escape_ascii();
                Err(ExportFailed::Passing(format!("the collector answered {status} without a gRPC status")))
            }
        })
    }
}

impl Link {
    /// Whether nothing shows that the connection has ended: a collector that stops closes an idle connection.
    fn is_alive(&self) -> bool {
        !self.stream.peek_closed()
    }

    async fn read(&mut self, deadline: &Deadline) -> Result<(), ExportFailed> {
        match self.stream.read_more(&mut self.input, READ_BYTES, deadline).await? {
            0 => Err(closed()),
            _ => Ok(()),
        }
    }

    /// Handles the frames that have arrived.
    fn take_frames(&mut self, h2: &mut Connection, ours: u32, answer: &mut Answer) -> Result<(), ExportFailed> {
        let mut used = 0;
        loop {
            let rest = self.input.get(used..).unwrap_or_default();
            let step = h2.next(rest).map_err(|fault| ExportFailed::Refused(format!("the collector sent {fault}")))?;
            let Step::Took { used: more, event } = step else { break };
            used += more;
            match event {
                H2Event::Head { stream, ends, .. } if stream == ours => {
                    answer.take(h2.block().iter());
                    answer.is_over |= ends;
                    let is_interim = answer.http_status.as_ref().is_some_and(|status| status.starts_with(b"1"));
                    if !is_interim {
                        h2.answered(stream, None);
                    }
                }
                H2Event::Data { stream, counted, ends, .. } => {
                    h2.consumed(stream, counted);
                    answer.is_over |= ends && stream == ours;
                }
                H2Event::Trailers { stream } if stream == ours => {
                    answer.take(h2.block().iter());
                    answer.is_over = true;
                }
                H2Event::Reset { stream, code, .. } if stream == ours && !answer.is_over => {
                    answer.failed = Some(format!("the collector reset the stream with error {code}"));
                }
                H2Event::GoAway { last, code } => {
                    self.is_kept = false;
                    if last < ours {
                        answer.failed = Some(format!("the collector closed the connection with GOAWAY, error {code}"));
                    }
                }
                _ => {}
            }
        }
        self.input.drain(..used);
        Ok(())
    }
}
