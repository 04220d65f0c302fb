//! An exchange that weir puts aside while its tunnel is open: it keeps the data for the log line in as little memory as
//! possible.
//!
//! A WebSocket may be idle for days, and there may be ten thousand of them. Texts are packed into one allocation of
//! exactly their size, heads are parsed again from their bytes, and fields that most exchanges do not use are boxed.
//! Invariant: after weir takes an exchange up again, every variable has the same value as before.

use std::rc::Rc;

use weir_http::exchange::conf::Location;
use weir_http::exchange::message::{Origin, Request, Try};
use weir_http::exchange::request_body::{Reader, RequestBody};
use weir_http::exchange::response_body::{Body, BodyFilter};
use weir_http::exchange::route::{LocationId, ServerId};
use weir_http::exchange::status_code::StatusCode;
use weir_http::exchange::{self, Bytes, Exchange, Facts, Flags, Parts, Response};
use weir_http::hold::client::Client;
use weir_http::hold::own::Own;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::receive::head;
use weir_http::text::slots::{Captures, SlotStore, VariableId};
use weir_net::buffer;
use weir_wire::fields::Fields;
use weir_wire::{BodyLength, ConnectionTokens, RequestHead};

/// An exchange that was put aside.
pub struct Aside {
    generation: Rc<Generation>,
    server: ServerId,
    location: LocationId,
    texts: Box<[u8]>,
    tries: Box<[Try]>,
    request: RequestFacts,
    response: ResponseFacts,
    facts: Facts,
    flags: Flags,
    bytes: Bytes,
    unusual: Option<Box<Unusual>>,
}

struct RequestFacts {
    length: Option<BodyLength>,
    port: Option<u16>,
    pipelined: bool,
    method_override: Option<&'static [u8]>,
    /// The parts of a head that arrived over HTTP/2: it has no text that could be parsed again.
    head: Option<Box<RequestHead>>,
}

struct ResponseFacts {
    status: StatusCode,
    content_length: Option<u64>,
    last_modified: Option<i64>,
    expects_trailers: bool,
    refused: Option<u16>,
    own_location: bool,
    allows_ranges: bool,
    header_only: bool,
}

/// The fields that few exchanges use.
struct Unusual {
    body: RequestBody,
    reader: Option<Reader>,
    rare: Option<Box<exchange::Rare>>,
    own: Own,
    captures: Captures,
    sent: Body,
    filters: Vec<Box<dyn BodyFilter>>,
}

impl Aside {
    /// Puts an exchange aside. Forgets bytes behind the request's head: they belong to the tunnel.
    pub fn put(exchange: &mut Exchange<'_>) -> Aside {
        // Every field by its name: a new one does not compile until this function handles it.
        let Exchange {
            conf: _,
            worker: _,
            generation,
            client: _,
            server,
            location,
            request,
            uri: _,
            args: _,
            response,
            body: _,
            reader: _,
            slots: _,
            tries: _,
            head: _,
            origin: _,
            cache: _,
            plain: _,
            own: _,
            facts,
            flags,
            bytes,
            rare: _,
        } = &*exchange;
        let aside = Aside {
            generation: (*generation).clone(),
            server: server.id,
            location: location.id,
            texts: pack(exchange),
            facts: *facts,
            flags: *flags,
            bytes: *bytes,
            request: RequestFacts::of(request),
            response: ResponseFacts::of(response),
            tries: exchange.tries.drain(..).collect(),
            unusual: Unusual::of(exchange),
        };
        exchange.request.used = exchange.request.bytes.len();
        aside
    }

    /// The location it ended up in.
    pub fn location(&self) -> &Location {
        self.generation.conf.location(self.location)
    }

    /// Takes the exchange up again and ends it with `end`; its memory goes back to the worker.
    pub fn end<R>(self, worker: &Rc<Worker>, client: &Client, end: impl FnOnce(&mut Exchange<'_>) -> R) -> R {
        let Aside { generation, server, location, texts, tries, request, response, facts, flags, bytes, unusual } =
            self;
        let conf = &*generation.conf;
        let (server, mut parts) = (conf.server(server), Parts::lease(worker));
        let (started, wall_ms) = (facts.started, facts.started_wall_ms);
        let mut exchange = Exchange::new(conf, worker, &generation, client, server, &mut parts, started, wall_ms);
        exchange.location = conf.location(location);
        unpack(&texts, &mut exchange);
        exchange.tries.extend(tries);
        request.give_to(exchange.request);
        response.give_to(exchange.response);
        (exchange.facts, exchange.flags, exchange.bytes) = (facts, flags, bytes);
        // Only a client's exchange becomes a tunnel, and its start was already counted.
        exchange.flags.is_counted = true;
        match unusual {
            Some(unusual) => unusual.give_to(&mut exchange),
            None => exchange.body = RequestBody::Gone,
        }
        let result = end(&mut exchange);
        drop(exchange);
        parts.give_back(worker);
        result
    }
}

impl RequestFacts {
    fn of(request: &Request) -> RequestFacts {
        // Only refusals need the parser's memory, and weir did not refuse this request. The exchange itself has the
        // start time.
        let Request {
            bytes: _,
            head,
            parser: _,
            started: _,
            tokens: _,
            used: _,
            host: _,
            last_host: _,
            may_have_fragment: _,
            length,
            port,
            pipelined,
            method_override,
            sent: _,
            is_open_ended: _,
            is_changed,
            // Only a client's own request becomes a tunnel.
            is_copy: _,
            // It is found again.
            client_number: _,
        } = request;
        let head = (head.version.is_framed() || *is_changed).then(|| Box::new(head.clone()));
        RequestFacts { length: *length, port: *port, pipelined: *pipelined, method_override: *method_override, head }
    }

    fn give_to(self, request: &mut Request) {
        request.length = self.length;
        request.port = self.port;
        request.pipelined = self.pipelined;
        request.method_override = self.method_override;
        if let Some(head) = self.head {
            request.head = *head;
            request.tokens = ConnectionTokens::of(&request.bytes, &request.head.fields);
        }
    }
}

impl ResponseFacts {
    fn of(response: &Response) -> ResponseFacts {
        let Response {
            status_line: _,
            content_type: _,
            fields: _,
            trailers: _,
            body: _,
            body_filters: _,
            status,
            content_length,
            last_modified,
            expects_trailers,
            refused,
            own_location,
            allows_ranges,
            header_only,
            // Not needed once the head has been sent.
            charset: _,
            without_own: _,
        } = response;
        ResponseFacts {
            status: *status,
            content_length: *content_length,
            last_modified: *last_modified,
            expects_trailers: *expects_trailers,
            refused: *refused,
            own_location: *own_location,
            allows_ranges: *allows_ranges,
            header_only: *header_only,
        }
    }

    fn give_to(self, response: &mut Response) {
        response.status = self.status;
        response.content_length = self.content_length;
        response.last_modified = self.last_modified;
        response.expects_trailers = self.expects_trailers;
        response.refused = self.refused;
        response.own_location = self.own_location;
        response.allows_ranges = self.allows_ranges;
        response.header_only = self.header_only;
    }
}

impl Unusual {
    fn of(exchange: &mut Exchange<'_>) -> Option<Box<Unusual>> {
        let is_usual = matches!(exchange.body, RequestBody::Gone)
            && exchange.reader.is_none()
            && exchange.rare.is_none()
            && exchange.own.is_empty()
            && exchange.slots.captures.is_empty()
            && matches!(exchange.response.body, Body::Empty)
            && exchange.response.body_filters.is_empty();
        if is_usual {
            return None;
        }
        Some(Box::new(Unusual {
            body: std::mem::take(&mut exchange.body),
            reader: exchange.reader.take(),
            rare: exchange.rare.take(),
            own: std::mem::take(&mut exchange.own),
            captures: std::mem::take(&mut exchange.slots.captures),
            sent: std::mem::take(&mut exchange.response.body),
            filters: std::mem::take(&mut exchange.response.body_filters),
        }))
    }

    fn give_to(self, exchange: &mut Exchange<'_>) {
        exchange.body = self.body;
        exchange.reader = self.reader;
        exchange.rare = self.rare;
        exchange.own = self.own;
        exchange.slots.captures = self.captures;
        exchange.response.body = self.sent;
        exchange.response.body_filters = self.filters;
    }
}

/// The length that stands for "none": no text is this long.
const ABSENT: u32 = u32::MAX;

/// All texts of an exchange in the order in which `unpack` reads them.
fn pack(exchange: &Exchange<'_>) -> Box<[u8]> {
    let (request, response) = (&exchange.request, &exchange.response);
    let mut out = buffer::lease(0);
    push(&mut out, request.bytes.get(..request.head.len));
    push(&mut out, Some(&request.host));
    push(&mut out, Some(exchange.uri));
    push(&mut out, Some(exchange.args));
    push(&mut out, exchange.origin.as_ref().and_then(|origin| origin.bytes.get(..origin.head.len)));
    push(&mut out, Some(&response.status_line));
    push(&mut out, Some(&response.content_type));
    push_fields(&mut out, &response.fields);
    push_fields(&mut out, &response.trailers);
    if let Some(origin) = &exchange.origin {
        push_fields(&mut out, &origin.trailers);
    }
    for (id, value) in exchange.slots.iter() {
        push(&mut out, Some(&id.0.to_le_bytes()));
        push(&mut out, Some(value));
    }
    out.as_slice().into()
}

fn push(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text.and_then(|text| Some((text, u32::try_from(text.len()).ok()?))) {
        Some((text, length)) if length != ABSENT => {
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text);
        }
        Some(_) | None => out.extend_from_slice(&ABSENT.to_le_bytes()),
    }
}

/// Name and value of each field, then an end mark.
fn push_fields(out: &mut Vec<u8>, fields: &Fields) {
    for field in fields.iter() {
        push(out, Some(field.name));
        push(out, Some(field.value));
    }
    push(out, None);
}

/// Reads the texts that `pack` wrote into an exchange that has none of them.
fn unpack(mut texts: &[u8], exchange: &mut Exchange<'_>) {
    let from = &mut texts;
    let request = &mut exchange.request;
    request.bytes.extend_from_slice(pull(from).unwrap_or_default());
    request.host.extend_from_slice(pull(from).unwrap_or_default());
    exchange.uri.extend_from_slice(pull(from).unwrap_or_default());
    exchange.args.extend_from_slice(pull(from).unwrap_or_default());
    exchange.origin = pull(from).map(origin);
    exchange.response.status_line.extend_from_slice(pull(from).unwrap_or_default());
    exchange.response.content_type.extend_from_slice(pull(from).unwrap_or_default());
    pull_fields(from, &mut exchange.response.fields);
    pull_fields(from, &mut exchange.response.trailers);
    if let Some(origin) = &mut exchange.origin {
        pull_fields(from, &mut origin.trailers);
    }
    pull_slots(from, exchange.slots);
    read_head(exchange);
}

/// The next text; `None` if the exchange did not have it, and at the end.
fn pull<'t>(from: &mut &'t [u8]) -> Option<&'t [u8]> {
    let (length, rest) = from.split_first_chunk()?;
    let (text, rest) = match u32::from_le_bytes(*length) {
        ABSENT => (None, rest),
        length => rest.split_at_checked(length as usize).map(|(text, rest)| (Some(text), rest))?,
    };
    *from = rest;
    text
}

fn pull_fields(from: &mut &[u8], fields: &mut Fields) {
    while let Some(name) = pull(from) {
        fields.push(name, pull(from).unwrap_or_default());
    }
}

fn pull_slots(from: &mut &[u8], slots: &mut SlotStore) {
    while let Some(id) = pull(from).and_then(|id| id.first_chunk()) {
        slots.set(VariableId(u32::from_le_bytes(*id)), pull(from).unwrap_or_default());
    }
}

/// Finds the parts of the request's head again, by the rules of the listen that accepted it.
fn read_head(exchange: &mut Exchange<'_>) {
    let policy = head::policy(head::default_core(exchange.conf, exchange.client.listen.get()));
    let request = &mut exchange.request;
    // The same parser accepted an HTTP/1 head before, so it accepts it again. weir kept an HTTP/2 head and does not
    // parse it again.
    let _ = request.parser.request(&request.bytes, &policy, &mut request.head);
    request.tokens = ConnectionTokens::of(&request.bytes, &request.head.fields);
    request.leave_out_named();
    request.used = request.bytes.len();
}

fn origin(head: &[u8]) -> Box<Origin> {
    let mut origin: Box<Origin> = Box::default();
    origin.bytes.extend_from_slice(head);
    let Origin { bytes, head, parser, trailers: _ } = &mut *origin;
    let _ = parser.response(bytes, head);
    origin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_in_order_and_absent_ones_absent() {
        let mut packed = Vec::new();
        for text in [Some(&b"one"[..]), None, Some(b""), Some(b"four")] {
            push(&mut packed, text);
        }
        let mut from = packed.as_slice();
        assert_eq!(pull(&mut from), Some(&b"one"[..]));
        assert_eq!(pull(&mut from), None);
        assert_eq!(pull(&mut from), Some(&b""[..]));
        assert_eq!(pull(&mut from), Some(&b"four"[..]));
        assert_eq!(pull(&mut from), None, "the end");
    }

    #[test]
    fn fields_come_back_without_those_taken_out() {
        let mut fields = Fields::default();
        fields.push(b"X-One", b"1");
        fields.push(b"Server", b"gone");
        fields.push(b"x-TWO", b"");
        fields.remove_name(b"server");
        let mut packed = Vec::new();
        push_fields(&mut packed, &fields);
        push_fields(&mut packed, &Fields::default());
        push(&mut packed, Some(b"after"));
        let (mut from, mut again) = (packed.as_slice(), Fields::default());
        pull_fields(&mut from, &mut again);
        let read: Vec<_> = again.iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(read, [(&b"X-One"[..], &b"1"[..]), (b"x-TWO", b"")]);
        pull_fields(&mut from, &mut again);
        assert_eq!((again.iter().count(), pull(&mut from)), (2, Some(&b"after"[..])));
    }

    #[test]
    fn an_exchange_at_rest_is_small() {
        let (aside, exchange) = (size_of::<Aside>(), size_of::<Exchange<'_>>());
        assert!(aside <= 360, "{aside}, an exchange {exchange}");
    }
}
