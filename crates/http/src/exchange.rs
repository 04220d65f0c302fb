//! One request, its answer, and the facts that weir learns during both.
//!
//! - `conf`, `route`: a configuration; addresses, hosts and URIs find servers and locations
//! - `message`, `status_code`, `visit`, `variable`: the request as received, and the tries; the status, which an error
//!   fixes; the cache's part; the value of a variable
//! - `phase`, `walk/`: nginx's phases, which never wait; the walk through them
//! - `request_body`, `body_file`, `response_body`: the bodies of an exchange
//! - `subrequest`, `background`, `composing/`, `pipe`: requests to other URIs of this server; a body that will contain their
//!   answers; the bounded way of such an answer into the body
//! - `special`, `keepalive`, `content_type`, `file_path`: error pages and redirects; whether the connection stays open
//! - `lane`: which of two configurations a request gets
//! - `line`, `counting`, `trace/`: lines of the error log about an exchange; its counts; W3C trace context, whose spans go into
//!   one bounded queue, and a thread sends them to a collector (`family/otel` has the directives)
//! - `subject`: an exchange or a session, for families whose directives are the same in `http` and in `stream`

pub mod background;
pub mod body_file;
pub mod composing;
pub mod conf;
pub mod content_type;
pub mod counting;
pub mod file_path;
pub mod keepalive;
pub mod lane;
pub mod line;
pub mod message;
pub mod phase;
pub mod pipe;
pub mod request_body;
pub mod response_body;
pub mod route;
pub mod special;
pub mod status_code;
pub mod subject;
pub mod subrequest;
pub mod trace;
pub mod variable;
pub mod visit;
pub mod walk;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use weir_cache::ready::Ready;
use weir_meter::Step;
use weir_meter::live::cells::LimitPolicy;
use weir_net::{Instant, SocketAddress};
use weir_wire::Known;
use weir_wire::fields::{FieldRef, Fields};

use crate::exchange::conf::{Conf, Location, Server};
use crate::exchange::message::{Origin, Request, Try};
use crate::exchange::phase::Next;
use crate::exchange::request_body::RequestBody;
use crate::exchange::response_body::{Body, Framing};
use crate::exchange::route::LocationId;
use crate::exchange::status_code::StatusCode;
use crate::exchange::trace::context::Trace;
use crate::exchange::visit::Visit;
use crate::hold::client::Client;
use crate::hold::own::Own;
use crate::hold::worker::{Generation, SPARE_BYTES_MAX, SPARE_MAX, Worker};
use crate::text::slots::{SlotStore, VariableId};
use crate::text::template::{Argument, Definition, Reads};

/// A handler of a phase. It never waits: it returns slow work as a `Next`, and the driver does it.
pub type Enter = fn(&mut Exchange<'_>) -> Next;

/// Appends the value to `out`; `false` means "not found" and leaves `out` as it was.
pub type Get = fn(&mut Exchange<'_>, &Argument, &mut Vec<u8>) -> bool;

/// How an exchange gets the head of its answer.
#[derive(Default)]
pub enum Plain {
    /// It composes the head.
    #[default]
    No,
    /// It composes the head, and passes it to this function, which may keep it.
    Wanted(fn(&mut Exchange<'_>, Framing, &[u8])),
    /// It copies this head, for an answer of this age in seconds.
    Ready(Arc<Ready>, u32),
}

/// The answer being made.
#[derive(Default)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// The upstream's own status line after the version, sent unchanged; empty for weir's own.
    pub status_line: Vec<u8>,
    /// `Content-Type`, charset included; empty for none.
    pub content_type: Vec<u8>,
    /// The character set that an upstream chose for the answer (`X-Accel-Charset`); empty for none.
    pub charset: Vec<u8>,
    /// The body's length if it is known before sending.
    pub content_length: Option<u64>,
    /// Unix seconds, for `Last-Modified` and conditional requests.
    pub last_modified: Option<i64>,
    /// The other fields, in order.
    pub fields: Fields,
    /// Fields after a chunked body (`add_trailer`, `proxy_pass_trailers`).
    pub trailers: Fields,
    /// Trailers will be evaluated when the body has ended: HTTP/1.1 needs chunks for them.
    pub expects_trailers: bool,
    /// A filter's verdict: weir answers with this status instead of the response.
    pub refused: Option<u16>,
    /// A `Location` that begins with `/` must be made absolute.
    pub own_location: bool,
    /// The client may ask for ranges of this body.
    pub allows_ranges: bool,
    /// weir passes on the upstream's own `Date` and `Server`: if the upstream sent none, weir does not add its own
    /// (nginx: `ngx_http_proxy_process_header`).
    pub without_own: WithoutOwn,
    /// Only headers are sent though the method is not HEAD (304, 204).
    pub header_only: bool,
    /// The body.
    pub body: Body,
    /// The filters that change the body on its way out, first to last.
    pub body_filters: Vec<Box<dyn crate::exchange::response_body::BodyFilter>>,
}

impl Response {
    /// Resets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.status = StatusCode::default();
        self.status_line.clear();
        self.content_type.clear();
        self.charset.clear();
        self.content_length = None;
        self.last_modified = None;
        self.fields.clear();
        self.trailers.clear();
        self.expects_trailers = false;
        self.refused = None;
        self.own_location = false;
        self.allows_ranges = false;
        self.header_only = false;
        self.without_own = WithoutOwn::default();
        self.body = Body::Empty;
        self.body_filters.clear();
    }
}

impl Response {
    /// The fields in their order, without the `Location` that weir makes absolute. A second `Location`, which `add_header` has
    /// added, is among them.
    pub fn plain_fields(&self) -> impl Iterator<Item = FieldRef<'_>> {
        let mut is_left_out = !self.own_location;
        self.fields.iter().filter(move |field| {
            let is_first = !is_left_out && field.known == Some(Known::Location);
            is_left_out |= is_first;
            !is_first
        })
    }

    /// Whether it is known, before filters change it, that the body has no bytes.
    pub fn has_no_bytes(&self) -> bool {
        self.content_length == Some(0) || matches!(self.body, Body::Empty)
    }

    /// `Content-Type` as the client gets it: weir's own 204 has none, an upstream's keeps it (as in nginx).
    pub fn told_type(&self) -> &[u8] {
        let is_own_204 = self.status.get() == 204 && self.status_line.is_empty();
        if is_own_204 { b"" } else { &self.content_type }
    }

    /// The time when the body last changed, if the response has it in a field of weir's own.
    pub fn told_last_modified(&self) -> Option<i64> {
        let tells = matches!(self.status.get(), 200 | 206 | 304) && !self.fields.has(Known::LastModified);
        self.last_modified.filter(|_| tells)
    }
}

/// The fields of weir's own that a response does not get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithoutOwn {
    /// `Date`.
    pub date: bool,
    /// `Server`.
    pub server: bool,
}

/// The parts of an exchange whose memory is used again: the exchange borrows them from their owner.
#[derive(Default)]
pub struct Parts {
    // Boxed: the parts of a stream's request are moved several times, and a pointer is cheaper to move.
    request: Box<Request>,
    uri: Vec<u8>,
    args: Vec<u8>,
    response: Box<Response>,
    slots: Box<SlotStore>,
    tries: Vec<Try>,
    visit: Box<Visit>,
    head: Vec<u8>,
}

/// One request and its answer.
pub struct Exchange<'c> {
    /// The configuration it began with.
    pub conf: &'c Conf,
    /// The worker it runs on.
    pub worker: &'c Rc<Worker>,
    /// The configuration with this worker's pools.
    pub generation: &'c Rc<Generation>,
    /// The client, with the facts about its connection.
    pub client: &'c Client,
    /// The server chosen by address and host.
    pub server: &'c Server,
    /// The location in force now.
    pub location: &'c Location,
    /// The request.
    pub request: &'c mut Request,
    /// `$uri`: decoded, normalised, as rewritten.
    pub uri: &'c mut Vec<u8>,
    /// `$args`, as rewritten.
    pub args: &'c mut Vec<u8>,
    /// The answer.
    pub response: &'c mut Response,
    /// The request's body.
    pub body: RequestBody,
    /// The reader of the body, once reading has begun.
    pub reader: Option<crate::exchange::request_body::Reader>,
    /// `set` variables and captures.
    pub slots: &'c mut SlotStore,
    /// Attempts at upstreams.
    pub tries: &'c mut Vec<Try>,
    /// Memory for a head that goes out: to the upstream, then to the client.
    pub head: &'c mut Vec<u8>,
    /// The upstream's answer.
    pub origin: Option<Box<Origin>>,
    /// The cache's part in this exchange.
    pub cache: &'c mut Visit,
    /// Whether its head is copied from a ready one, or will become one.
    pub plain: Plain,
    /// The values that families keep with it, until it ends.
    pub own: Own,
    /// Its course so far.
    pub facts: Facts,
    /// The facts about it that are true or false now.
    pub flags: Flags,
    /// The bytes so far.
    pub bytes: Bytes,
    /// Values that few exchanges need; `None` without any.
    pub rare: Option<Box<Rare>>,
}

/// The course of an exchange.
#[derive(Clone, Copy)]
pub struct Facts {
    /// Its current step, for error messages and timings.
    pub step: Step,
    /// When the first byte of the request arrived.
    pub started: Instant,
    /// Unix milliseconds at the same moment.
    pub started_wall_ms: u64,
    /// The number of this request on its connection, from 1.
    pub number_on_connection: u64,
    /// Internal redirects left, and one more: the redirect that makes it zero fails (nginx: `uri_changes`).
    pub redirects_left: u8,
    /// Bytes per second to the client, 0 for no limit; `set $limit_rate` changes it.
    pub limit_rate: Option<u64>,
    /// Time in steps that come before the source of the answer, µs, at most 71 minutes: `limit_req`, `auth_request`, the request's
    /// body, the cache.
    pub held_us: u32,
}

/// The facts about an exchange that are true or false now. All are false at its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    /// The target can go upstream as the client wrote it: no rewrite and no normalisation changed it.
    pub target_is_valid: bool,
    /// The path had percent escapes: weir escapes it again when it goes upstream.
    pub uri_was_quoted: bool,
    /// The current location asks its upstream, or the cache before it: `$proxy_host` has no value earlier.
    pub is_forwarded: bool,
    /// The body is read only to be thrown away: its size does not matter.
    pub discards_body: bool,
    /// `100 Continue` was sent or is not needed.
    pub expectation_met: bool,
    /// The whole request reached the upstream.
    pub request_complete: bool,
    /// True after an internal redirect: the request may enter `internal` locations.
    pub internal: bool,
    /// In a regex location with `alias`, the URI names a file below the alias (`try_files` found the file).
    pub alias_takes_uri: bool,
    /// A `rewrite … break` has changed `uri` since the request or the last internal redirect (nginx: `valid_location` is 0).
    pub uri_changed: bool,
    /// A `rewrite` has changed `uri`, and no location was chosen for it yet (nginx: `uri_changed`). An error page keeps it:
    /// a `break` of the server then counts as one after the `rewrite`.
    pub looks_up: bool,
    /// An `error_page` is being answered; further errors are answered without `error_page`.
    pub in_error_page: bool,
    /// The connection may serve another request.
    pub keeps_alive: bool,
    /// The response went out whole.
    pub complete: bool,
    /// The origin failed after the client had the head.
    pub is_cut: bool,
    /// `auth_basic` accepted the password, for the current location.
    pub knows_password: bool,
    /// An `if` whose handler would answer was left for an `if` without a handler.
    pub handler_lost: bool,
    /// weir started it for another exchange, of a client (nginx: a subrequest).
    pub is_subrequest: bool,
    /// Its start was counted; its end must be counted too.
    pub is_counted: bool,
}

/// The bytes of an exchange so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes {
    /// Head bytes sent; over HTTP/2 with the interim answers and the trailers.
    pub head_sent: u64,
    /// Body bytes sent, without framing: the number for the cache's counters and for spans. `$body_bytes_sent` is
    /// nginx's number: all sent bytes except the head, so it includes the framing of chunks.
    pub body_sent: u64,
    /// All bytes sent.
    pub sent: u64,
    /// Bytes of the request, head and body.
    pub request: u64,
}

/// Values that few exchanges need.
#[derive(Default)]
pub struct Rare {
    /// `$proxy_host` of the current location, if its `proxy_pass` has variables and weir has evaluated them.
    pub proxy_host: Option<Vec<u8>>,
    /// The client's address as a trusted proxy reported it (`set_real_ip_from`).
    pub told_address: Option<SocketAddress>,
    /// Time in which a rate held back the answer, µs.
    pub paced_us: u64,
    /// A policy of the configuration refused the request.
    pub refused_by: Option<LimitPolicy>,
    /// The trace it is part of, once something needs it.
    pub trace: Option<Box<Trace>>,
}

/// nginx allows ten internal redirects.
pub const REDIRECTS_MAX: u8 = 10;

impl<'c> Exchange<'c> {
    /// A new exchange in this memory, which must be clear but for the request.
    // A call would copy the whole exchange from its result.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // long: called in one place, with all that is known at the start
    pub fn new(
        conf: &'c Conf,
        worker: &'c Rc<Worker>,
        generation: &'c Rc<Generation>,
        client: &'c Client,
        server: &'c Server,
        parts: &'c mut Parts,
        started: Instant,
        wall_ms: u64,
    ) -> Exchange<'c> {
        let Parts { request, uri, args, response, slots, tries, visit, head } = parts;
        Exchange {
            conf,
            worker,
            generation,
            client,
            server,
            location: conf.location(server.root),
            request,
            uri,
            args,
            response,
            body: RequestBody::default(),
            reader: None,
            slots,
            tries,
            head,
            origin: None,
            cache: visit,
            plain: Plain::No,
            own: Own::default(),
            facts: Facts {
                step: Step::AwaitRequest,
                started,
                started_wall_ms: wall_ms,
                number_on_connection: 1,
                redirects_left: REDIRECTS_MAX + 1,
                limit_rate: None,
                held_us: 0,
            },
            flags: Flags::default(),
            bytes: Bytes::default(),
            rare: None,
        }
    }

    /// The client's address: as a trusted proxy reported it, else the connection's.
    pub fn remote(&self) -> &SocketAddress {
        self.told_address().unwrap_or(&self.client.remote)
    }

    /// The values that few exchanges need, to change them.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The values that few exchanges need; `None` without any.
    pub fn rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// Time in which a rate held back the answer, µs.
    pub fn paced_us(&self) -> u64 {
        self.rare().map_or(0, |rare| rare.paced_us)
    }

    /// Takes over the client's address and the trace of the exchange that this one belongs to, those that are there.
    pub fn follow(&mut self, told_address: Option<SocketAddress>, trace: Option<Box<Trace>>) {
        if told_address.is_some() {
            self.rare_mut().told_address = told_address;
        }
        if trace.is_some() {
            self.rare_mut().trace = trace;
        }
    }

    /// The client's address as a trusted proxy reported it.
    pub fn told_address(&self) -> Option<&SocketAddress> {
        self.rare()?.told_address.as_ref()
    }

    /// The trace that it is part of, once something needs it.
    pub fn trace(&self) -> Option<&Trace> {
        self.rare()?.trace.as_deref()
    }

    /// Reads something that may depend on an upstream's answer, such as `$upstream_http_NAME`, before the exchange has that answer.
    pub fn reading<R>(&mut self, origin: &mut Box<Origin>, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.origin.replace(std::mem::take(origin));
        let value = read(self);
        if let Some(read) = std::mem::replace(&mut self.origin, before) {
            *origin = read;
        }
        value
    }

    /// Gives back what an upstream has answered: `$upstream_http_NAME` is not found from here on.
    pub fn forget_answer(&mut self) {
        if let Some(origin) = self.origin.take() {
            self.worker.return_origin(origin);
        }
    }

    /// Reads a variable into `out`; `false` when it is not found.
    pub fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        let conf = self.conf;
        match conf.definitions.get(id.0 as usize) {
            Some(Definition::Slot) => self.slots.get(id).map(|value| out.extend_from_slice(value)).is_some(),
            Some(Definition::Computed(get, argument)) => get(self, argument, out),
            Some(Definition::Cached(get, argument)) => {
                if let Some(value) = self.slots.get(id) {
                    out.extend_from_slice(value);
                    return true;
                }
                let start = out.len();
                let found = get(self, argument, out);
                // A value that was made before the body came is not the value for later phases, and one that a subrequest without
                // the body made is not the value of the client's request: the two share their variables.
                let is_early = (matches!(self.body, RequestBody::Unread)
                    || self.flags.is_subrequest && matches!(self.body, RequestBody::Gone))
                    && conf.reads_body.get(id.0 as usize).copied().unwrap_or_default();
                if found && !is_early {
                    self.slots.set(id, out.get(start..).unwrap_or_default());
                }
                found
            }
            None => false,
        }
    }

    /// Reads a variable by its name in lower case, if the configuration mentions it or a family has it; `false` when it
    /// is not found. For names that come from an answer.
    pub fn variable_named(&mut self, name: &str, out: &mut Vec<u8>) -> bool {
        let conf = self.conf;
        if let Some(id) = conf.names.find(name) {
            return self.variable(id, out);
        }
        match (conf.built_in)(name) {
            Some(Definition::Computed(get, argument) | Definition::Cached(get, argument)) => get(self, &argument, out),
            Some(Definition::Slot) | None => false,
        }
    }

    /// Moves to a location.
    pub fn enter(&mut self, id: LocationId) {
        self.location = self.conf.location(id);
        self.flags.is_forwarded = false;
        if let Some(rare) = &mut self.rare {
            rare.proxy_host = None;
        }
        self.flags.alias_takes_uri = false;
        self.flags.knows_password = false;
        self.flags.handler_lost = false;
    }

    /// The method of the request to the upstream, as far as the cache decides it.
    pub fn upstream_method(&self) -> &[u8] {
        if self.cache.asks_with_get() { b"GET" } else { self.request.method() }
    }

    /// The last attempt.
    pub fn last_try(&mut self) -> Option<&mut Try> {
        self.tries.last_mut()
    }
}

impl Drop for Exchange<'_> {
    #[inline]
    fn drop(&mut self) {
        self.forget_answer();
    }
}

impl Reads for Exchange<'_> {
    #[inline]
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        Exchange::variable(self, id, out)
    }

    #[inline]
    fn slots(&mut self) -> &mut SlotStore {
        self.slots
    }
}

/// The spare memory of a worker.
#[derive(Default)]
struct SpareParts(RefCell<Vec<Parts>>);

impl Parts {
    /// Memory for an exchange.
    pub fn lease(worker: &Worker) -> Parts {
        worker.own.of(SpareParts::default).0.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives it back to the worker.
    pub fn give_back(mut self, worker: &Worker) {
        self.clear();
        let mut spare = worker.own.of(SpareParts::default).0.borrow_mut();
        if spare.len() < SPARE_MAX && self.capacity() <= SPARE_BYTES_MAX {
            spare.push(self);
        }
    }

    /// Parts of an exchange made from another.
    pub fn of(request: Request, slots: SlotStore, uri: Vec<u8>, args: Vec<u8>) -> Parts {
        Parts { request: Box::new(request), slots: Box::new(slots), uri, args, ..Parts::default() }
    }

    /// The request's buffer, to read a head into.
    pub fn request(&mut self) -> &mut Request {
        &mut self.request
    }

    /// The slots, for captures of a `server_name`.
    pub fn slots(&mut self) -> &mut SlotStore {
        &mut self.slots
    }

    /// Clears the last request and its answer, and keeps the bytes that follow it (pipelining).
    #[inline]
    pub fn next_request(&mut self) {
        self.clear_answer();
        let request = &mut self.request;
        let left = request.bytes.len().saturating_sub(request.used);
        if left > 0 {
            request.bytes.copy_within(request.used.., 0);
        }
        request.bytes.truncate(left);
        let bytes = std::mem::take(&mut request.bytes);
        request.clear();
        request.bytes = bytes;
        request.pipelined = left > 0;
    }

    /// Bytes of memory it would keep.
    pub fn capacity(&self) -> usize {
        self.request.bytes.capacity() + self.uri.capacity() + self.args.capacity() + self.head.capacity()
    }

    /// Empties everything.
    pub fn clear(&mut self) {
        self.clear_answer();
        self.request.clear();
    }

    /// Empties everything but the request.
    #[inline]
    fn clear_answer(&mut self) {
        self.uri.clear();
        self.args.clear();
        self.response.clear();
        self.slots.clear();
        self.tries.clear();
        self.visit.clear();
        self.head.clear();
    }
}

#[cfg(test)]
mod tests;
