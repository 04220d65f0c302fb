//! An exchange as it is recorded.

use weir_http::exchange::Exchange;
use weir_http::exchange::message::{Request, Try};
use weir_http::exchange::request_body::RequestBody;
use weir_http::send::head_out;
use weir_net::{Lease, buffer, clock, opening};
use weir_recording::model::RecordedVersion;
use weir_recording::{LiveAnswer, LiveBody, LiveExchange, LiveFields, LiveTry};
use weir_wire::fields::Fields;
use weir_wire::{BodyLength, Known, Version};

use super::noted::Noted;
use super::options::{BODY_BYTES_MAX, MediaKind};
use super::place::RecordPlace;
use super::run::RecordRun;

/// Composes the exchange at its end, with borrowed parts, and gives it to `take`.
pub fn with_live(
    exchange: &mut Exchange<'_>,
    place: &RecordPlace,
    run: &RecordRun,
    client: u64,
    noted: Option<&Noted>,
    take: impl FnOnce(&LiveExchange<'_>),
) {
    let mut composed = Lease::none();
    if exchange.bytes.sent > 0 && head_out::sent(exchange).is_none() {
        composed = buffer::lease(0);
        head_out::again(exchange, &mut composed);
    }
    let exchange = &*exchange;
    let head = if composed.is_empty() { head_out::sent(exchange).unwrap_or_default() } else { composed.as_slice() };
    let (request, facts) = (&*exchange.request, &exchange.facts);
    let fields = fields_of(head, &exchange.response.trailers, request.version().is_framed());
    let answered = Listed(&fields);
    let seen = noted.and_then(|noted| noted.answer.as_ref()).map(|seen| seen.borrow());
    let mut kept = Lease::none();
    let tries: Vec<LiveTry<'_>> = exchange.tries.iter().map(tried).collect();
    take(&LiveExchange {
        at_us: facts.started.us_since(run.begun),
        client,
        connection: exchange.client.number,
        version: version(request.version()),
        is_tls: exchange.client.facts().is_some(),
        port: port(exchange),
        method: request.text(request.head.method),
        target: request.target(),
        fields: &RequestFields(request),
        body: request_body(exchange, place, run, &mut kept),
        answer: (exchange.bytes.sent > 0).then(|| LiveAnswer {
            status: exchange.response.status.get(),
            fields: &answered,
            body: LiveBody {
                length: exchange.bytes.body_sent,
                hash: seen.as_ref().and_then(|seen| seen.hash()),
                content_type: &exchange.response.content_type,
                kept: seen.as_ref().and_then(|seen| seen.kept()),
            },
        }),
        is_cut: !exchange.flags.complete,
        took_us: clock::now().us_since(facts.started),
        tries: &tries,
        cache: exchange.cache.status.map(|status| status.as_str()),
        generation: exchange.conf.generation.into(),
        location: exchange.location.id.0,
        tunnel: noted.map_or(0, |noted| noted.tunnel),
    });
}

/// The port of the listen, which is known without a call of the kernel.
fn port(exchange: &Exchange<'_>) -> u16 {
    let listen = exchange.conf.listens.get(exchange.client.listen.get());
    listen.and_then(|listen| listen.address.tcp()).map_or(0, |address| address.port())
}

fn version(version: Version) -> RecordedVersion {
    match version {
        Version::Http09 | Version::Http10 => RecordedVersion::Http10,
        Version::Http11 => RecordedVersion::Http11,
        Version::Http2 => RecordedVersion::Http2,
        Version::Http3 => RecordedVersion::Http3,
    }
}

fn tried(attempt: &Try) -> LiveTry<'_> {
    LiveTry { peer: &attempt.peer, status: attempt.status, took_us: attempt.response_us }
}

/// The fields of a request.
struct RequestFields<'x>(&'x Request);

impl LiveFields for RequestFields<'_> {
    fn each(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        let RequestFields(request) = self;
        request.fields().iter().for_each(|field| take(request.text(field.name), request.text(field.value)));
    }
}

/// Fields that are found already: they are given several times.
struct Listed<'x>(&'x [(&'x [u8], &'x [u8])]);

impl LiveFields for Listed<'_> {
    fn each(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        self.0.iter().for_each(|(name, value)| take(name, value));
    }
}

/// Fields of an answer, about.
const FIELDS: usize = 24;

/// The fields of an answer: the lines of its head, and its trailers.
fn fields_of<'x>(head: &'x [u8], trailers: &'x Fields, is_framed: bool) -> Vec<(&'x [u8], &'x [u8])> {
    let mut fields = Vec::with_capacity(FIELDS);
    let mut from = 0;
    for end in memchr::memchr_iter(b'\n', head) {
        let line = head.get(from..end).unwrap_or_default();
        from = end + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // The line of the status has no colon before its first space.
        let Some((name, value)) = memchr::memchr2(b':', b' ', line).and_then(|at| line.split_at_checked(at)) else {
            continue;
        };
        let Some(value) = value.strip_prefix(b":") else { continue };
        // A stream has no fields about a connection of HTTP/1.1.
        if !is_framed || !is_of_connection(name) {
            fields.push((name, value.trim_ascii()));
        }
    }
    fields.extend(trailers.iter().map(|field| (field.name, field.value)));
    fields
}

fn is_of_connection(name: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection"];
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The body of the request. A body that went on without being kept, in memory or in a file, has only its length.
fn request_body<'x>(
    exchange: &'x Exchange<'_>,
    place: &RecordPlace,
    run: &RecordRun,
    read: &'x mut Lease,
) -> LiveBody<'x> {
    let length = request_length(exchange);
    let options = &place.options;
    if length == 0 || !options.has_bodies && !options.has_hashes {
        return LiveBody { length, ..LiveBody::default() };
    }
    let bytes: Option<&[u8]> = match &exchange.body {
        RequestBody::Memory(bytes) if bytes.len() as u64 == length => Some(bytes),
        RequestBody::File(file) if file.length() == length && length <= BODY_BYTES_MAX => {
            opening::read_at(file.file(), 0, length as usize, read).ok().map(|()| read.as_slice())
        }
        RequestBody::Memory(_) | RequestBody::File(_) | RequestBody::Unread | RequestBody::Gone => None,
    };
    let content_type = exchange.request.field(Known::ContentType).unwrap_or_default();
    let hash = bytes.map(|bytes| {
        let mut hash = run.secrets.body_hash();
        hash.update(bytes);
        hash.finish()
    });
    let is_plain = exchange.request.field(Known::ContentEncoding).is_none();
    let is_kept = options.has_bodies
        && is_plain
        && length <= BODY_BYTES_MAX
        && MediaKind::of(content_type).is_some_and(|kind| options.kinds.contains(&kind));
    LiveBody { length, hash, content_type, kept: bytes.filter(|_| is_kept) }
}

/// The length of the request's body, as far as the client has sent it.
fn request_length(exchange: &Exchange<'_>) -> u64 {
    match (exchange.request.length, &exchange.reader) {
        (_, Some(reader)) => reader.taken(),
        (Some(BodyLength::Exact(length)), None) => length,
        (_, None) => exchange.body.length(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_head_are_fields_and_a_stream_has_none_about_a_connection() {
        let head = b"HTTP/1.1 200 It: is\r\nServer: weir\r\nX-Empty:\r\nDate: Mon, 30 Nov 2026 08:07:23 GMT\r\nConnection: close\r\n\r\n";
        let mut trailers = Fields::default();
        trailers.push(b"grpc-status", b"0");
        let text = |is_framed| {
            let fields = fields_of(head, &trailers, is_framed);
            let all = fields.iter().map(|(name, value)| [name, &b"="[..], value].concat());
            all.map(|one| String::from_utf8_lossy(&one).into_owned()).collect::<Vec<_>>().join(" ")
        };
        let date = "Date=Mon, 30 Nov 2026 08:07:23 GMT";
        assert_eq!(text(false), format!("Server=weir X-Empty= {date} Connection=close grpc-status=0"));
        assert_eq!(text(true), format!("Server=weir X-Empty= {date} grpc-status=0"));
    }
}
