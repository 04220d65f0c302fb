//! `slice`: fetches and keeps a large answer in parts of one size.
//!
//! <https://nginx.org/en/docs/http/ngx_http_slice_module.html>. `$slice_range` becomes the upstream's `Range` and a
//! part of the cache key; the client gets one answer. weir fetches each later part by a separate exchange, after it has
//! sent the previous part. Invariant: all parts belong to one answer (same length, same entity tag); otherwise weir
//! closes the connection.

use std::io::Write;
use std::os::unix::fs::FileExt;

use weir_cache::partial::ContentRange;
use weir_cache::store::{Piece, Reader};
use weir_http::exchange::counting;
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::request_body;
use weir_http::exchange::response_body::{Body, BodyStream, Framing, Kept, Reading, Sending};
use weir_http::exchange::variable::Variable;
use weir_http::exchange::{Exchange, Parts};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::read::directive::{Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::send::filtering;
use weir_http::send::filtering::PiecePlace;
use weir_http::send::pace::Pace;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::Level;
use weir_net::{Lease, buffer, clock};
use weir_wire::Known;

use crate::family::upstream::answer::Answer;
use crate::family::upstream::source::Source;
use crate::family::{self, cache};
use crate::part::{self, Part, is_part, start};
use crate::relay;

weir_http::settings! {
    /// `slice`: bytes of a part, 0 for off.
    size: u64 = 0,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The largest part: a part stays in memory while it is sent.
pub const SLICE_BYTES_MAX: u64 = 256 << 20;

/// The family.
pub static FAMILY: Family = Family::new(
    "slice",
    &[Directive::new(
        "slice",
        HSL,
        ONE,
        "The size of the parts in which weir requests a large answer; 0 requests the whole answer.",
        |b, s| {
            let size = value::size(s)?;
            if size > SLICE_BYTES_MAX {
                return Err(Refusal::whole(format!("slice is larger than {SLICE_BYTES_MAX} bytes")).weirs_own());
            }
            crate::settings(b).slice.size = Some(size);
            Ok(())
        },
    )
    .default("0")],
)
.variables(&[Variable::without_answer("slice_range", |exchange, _, out| {
    let size = crate::values(exchange.location).slice.size;
    if size == 0 {
        return false;
    }
    let Some(start) = start(exchange).or_else(|| begin(exchange, size)) else { return false };
    // Writing to a vector does not fail.
    write!(out, "bytes={start}-{}", start.saturating_add(size - 1)).is_ok()
})]);

/// Continues from the state of `whole`, to fetch the part of the same answer that begins at `start`.
fn continue_as_part<'c>(exchange: &mut Exchange<'c>, whole: &Exchange<'c>, start: u64) {
    exchange.location = whole.location;
    exchange.flags.target_is_valid = whole.flags.target_is_valid;
    exchange.flags.uri_was_quoted = whole.flags.uri_was_quoted;
    exchange.flags.uri_changed = whole.flags.uri_changed;
    exchange.flags.internal = whole.flags.internal;
    exchange.follow(whole.told_address().cloned(), whole.trace().cloned().map(Box::new));
    exchange.own.set(Part { start, is_further: true });
}

/// A sliced answer that is being sent to the client.
pub struct Sliced {
    /// The part that was fetched first, until it is sent.
    first: Option<Lease>,
    /// The offset of the first part.
    first_start: u64,
    /// The length of the whole answer.
    length: u64,
    /// The entity tag of the answer.
    etag: Vec<u8>,
    /// The range that the client still gets.
    from: u64,
    to: u64,
}

impl BodyStream for Sliced {
    fn send<'a, 'e: 'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        framing: Framing,
        head: &'a mut Vec<u8>,
    ) -> Sending<'a> {
        Box::pin(send(exchange, conn, framing, head, *self))
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn next<'a, 'e: 'a>(
        &'a mut self,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        out: &'a mut Vec<u8>,
    ) -> Reading<'a> {
        Box::pin(next(exchange, conn, self, out))
    }

    fn cut(&mut self, start: u64, end: u64) {
        (self.from, self.to) = (start, end);
    }
}

/// Asks the location's cache and its upstream for the first part of the answer; further parts follow while it is sent.
pub async fn forward(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    values: &family::Values,
    source: &mut Option<Source>,
) -> Answer {
    let answer = cache::forward::forward(exchange, conn, values, source).await;
    take(exchange, conn, answer, source).await
}

/// Begins to slice the answer to the client's request, from the first part that it asks for. As in nginx, only the use of `$slice_range` begins
/// this, before the head of the answer is sent: a request whose cache key is not needed stays whole.
fn begin(exchange: &mut Exchange<'_>, size: u64) -> Option<u64> {
    // A fixed status is that of the error whose page is made: the page is no answer yet.
    let status = exchange.response.status;
    let is_answered = exchange.request.is_copy || status.get() != 0 && !status.is_fixed();
    if exchange.flags.is_subrequest || is_answered {
        return None;
    }
    let start = first_start(exchange, size);
    exchange.own.set(Part { start, is_further: false });
    Some(start)
}

/// The offset of the part with the start of the client's range (nginx: `ngx_http_slice_get_start`). Range has a meaning for GET and HEAD alone
/// (RFC 9110 §14.2): an answer to another method is whole, and begins with the first part.
fn first_start(exchange: &Exchange<'_>, size: u64) -> u64 {
    let request = &exchange.request;
    if request.field(Known::IfRange).is_some() || !matches!(request.method(), b"GET" | b"HEAD") {
        return 0;
    }
    let range = request.field(Known::Range).and_then(|range| {
        let (unit, set) = range.split_at_checked(6)?;
        unit.eq_ignore_ascii_case(b"bytes=").then(|| set.trim_ascii_start())
    });
    let digits = range.map(|set| set.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let first = range.zip(digits).and_then(|(set, digits)| std::str::from_utf8(set.get(..digits)?).ok());
    let start: u64 = first.and_then(|first| first.parse().ok()).unwrap_or(0);
    start / size * size
}

/// Turns the answer to the first part into the start of the whole answer; any other answer is returned unchanged.
async fn take(exchange: &mut Exchange<'_>, conn: &mut Conn, answer: Answer, source: &mut Option<Source>) -> Answer {
    let size = crate::values(exchange.location).slice.size;
    let stands = matches!(answer, Answer::Response | Answer::Outcome(Outcome::Respond));
    if size == 0 || is_part(exchange) {
        return answer;
    }
    if !stands || exchange.response.status.get() != 206 {
        // nginx: from now on, `$slice_range` is empty.
        part::forget(exchange);
        return answer;
    }
    let Some(start) = start(exchange) else { return answer };
    let length = match expected(exchange, start, size) {
        Ok(length) => length,
        Err(message) => {
            exchange.log(Level::Error, format_args!("{message}"));
            return refused(exchange, source);
        }
    };
    let first = match body(exchange, conn, source).await {
        Ok(first) => first,
        Err(gone) => return Answer::Gone(gone),
    };
    let response = &mut exchange.response;
    response.status.turn(200);
    response.status_line.clear();
    response.content_length = Some(length);
    response.fields.remove(Known::ContentRange);
    response.fields.remove(Known::AcceptRanges);
    response.allows_ranges = true;
    let etag = response.fields.get(Known::Etag).unwrap_or_default().to_vec();
    response.body =
        Body::Stream(Box::new(Sliced { first: Some(first), first_start: start, length, etag, from: 0, to: length }));
    Answer::Outcome(Outcome::Respond)
}

/// Closes the connection without an answer, as nginx does.
fn refused(exchange: &mut Exchange<'_>, source: &mut Option<Source>) -> Answer {
    if let Some(mut source) = source.take() {
        exchange.cache.cut();
        source.finish(exchange);
    }
    Answer::Gone(Gone::Cut)
}

/// The length of the whole answer, if the response is the requested part; else an error in nginx's words.
fn expected(exchange: &Exchange<'_>, start: u64, size: u64) -> Result<u64, String> {
    let text = exchange.response.fields.get(Known::ContentRange);
    let Some(range) = text.and_then(ContentRange::read) else {
        return Err("invalid range in slice response".to_owned());
    };
    let Some(length) = range.length else { return Err("no complete length in slice response".to_owned()) };
    let end = start.saturating_add(size).min(length);
    if range.first != start || range.last + 1 != end {
        return Err(format!("unexpected range in slice response: {}-{}", range.first, range.last + 1));
    }
    if exchange.response.content_length.is_some_and(|told| told != end - start) {
        return Err("unexpected length of slice response".to_owned());
    }
    Ok(length)
}

/// The bytes of a part.
async fn body(exchange: &mut Exchange<'_>, conn: &Conn, source: &mut Option<Source>) -> Result<Lease, Gone> {
    match source.take() {
        Some(mut source) => fetched(exchange, &mut source).await,
        None => match std::mem::take(&mut exchange.response.body) {
            Body::Kept(kept) => stored(exchange, conn, kept).await,
            _ => Ok(Lease::none()),
        },
    }
}

async fn fetched(exchange: &mut Exchange<'_>, source: &mut Source) -> Result<Lease, Gone> {
    let max = crate::values(exchange.location).slice.size;
    relay::collect(exchange, source, usize::try_from(max).unwrap_or(usize::MAX)).await
}

async fn stored(exchange: &mut Exchange<'_>, conn: &Conn, kept: Kept) -> Result<Lease, Gone> {
    let mut out = buffer::lease(usize::try_from(kept.length.unwrap_or(0)).unwrap_or(0));
    let mut reader = Reader::new(kept.object, kept.offset);
    while let Some(piece) = weir_http::send::kept::next_piece(conn, &reader).await? {
        match &piece {
            Piece::Memory(..) => out.extend_from_slice(piece.bytes().unwrap_or_default()),
            Piece::File(body) => {
                let from = out.len();
                out.resize(from + body.len as usize, 0);
                let read = body.file.read_exact_at(out.get_mut(from..).unwrap_or_default(), body.offset);
                read.map_err(|error| {
                    exchange.log(Level::Crit, format_args!("pread() of a cache file failed: {error}"));
                    Gone::Cut
                })?;
            }
        }
        reader.advance(piece.len());
    }
    Ok(out)
}

/// Fewer bytes wait for those of the next part (nginx: `postpone_output`). A small part that follows may be refused, and
/// then the client gets nothing.
const POSTPONED_BYTES: usize = 1460;

/// Sends the head and all parts.
async fn send(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    mut sliced: Sliced,
) -> Result<(), Gone> {
    let mut pace = Pace::of(exchange, out.len());
    let mut bytes = Vec::new();
    loop {
        let is_last = next(exchange, conn, &mut sliced, &mut bytes).await?;
        if !is_last && bytes.len() < POSTPONED_BYTES {
            continue;
        }
        let place = PiecePlace { last: is_last, ends: is_last, flush: false };
        filtering::send(exchange, conn, framing, out, &bytes, place, &mut pace).await?;
        if is_last {
            return Ok(());
        }
        bytes.clear();
    }
}

/// Appends the bytes of the next part; `true` after the last ones.
async fn next(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    sliced: &mut Sliced,
    out: &mut Vec<u8>,
) -> Result<bool, Gone> {
    let size = crate::values(exchange.location).slice.size.max(1);
    let start = sliced.from / size * size;
    let end = sliced.to.min(start.saturating_add(size));
    let bytes = match sliced.first.take().filter(|_| start == sliced.first_start) {
        Some(bytes) => bytes,
        None => part(exchange, conn, start, sliced.length, &sliced.etag).await?,
    };
    let (low, high) = (sliced.from - start, end.max(sliced.from) - start);
    out.extend_from_slice(bytes.get(low as usize..high as usize).ok_or(Gone::Cut)?);
    sliced.from = end;
    Ok(end >= sliced.to)
}

/// Fetches another part, through the cache if there is one.
async fn part(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    start: u64,
    length: u64,
    etag: &[u8],
) -> Result<Lease, Gone> {
    let size = crate::values(exchange.location).slice.size;
    let mut parts = Parts::of(
        exchange.request.head_alone(),
        (*exchange.slots).clone(),
        exchange.uri.clone(),
        exchange.args.clone(),
    );
    let (worker, server) = (exchange.worker, exchange.server);
    let mut sub = Exchange::new(
        exchange.conf,
        worker,
        exchange.generation,
        exchange.client,
        server,
        &mut parts,
        clock::now(),
        clock::unix_ms(),
    );
    continue_as_part(&mut sub, exchange, start);
    // nginx: a part has the body of the request. Its key may be made of the body.
    sub.body = exchange.body.copy().map_err(Gone::Closed)?;
    sub.reader = Some(request_body::Reader::at_end(sub.body.length()));
    let values = crate::values(sub.location);
    let mut source = None;
    let answer = cache::forward::forward(&mut sub, conn, values, &mut source).await;
    let stands = matches!(answer, Answer::Response | Answer::Outcome(Outcome::Respond));
    let told = if !stands || sub.response.status.get() != 206 {
        Err(format!("unexpected status code {} in slice response", sub.response.status.get()))
    } else if sub.response.fields.get(Known::Etag).unwrap_or_default() != etag {
        Err("etag mismatch in slice response".to_owned())
    } else {
        expected(&sub, start, size)
    };
    let result = match told {
        Ok(told) if told == length => body(&mut sub, conn, &mut source).await,
        Ok(_) => {
            Err("another length in slice response".to_owned()).or_else(|message| fail(&mut sub, &mut source, &message))
        }
        Err(message) => fail(&mut sub, &mut source, &message),
    };
    counting::count_tries(&sub);
    result
}

fn fail(sub: &mut Exchange<'_>, source: &mut Option<Source>, message: &str) -> Result<Lease, Gone> {
    sub.log(Level::Error, format_args!("{message}"));
    refused(sub, source);
    Err(Gone::Cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, on_worker, proxied, whole};

    #[test]
    fn the_first_part_has_the_start_of_the_client_s_range() {
        for (request, expected) in [
            ("GET /", "bytes=0-9"),
            ("GET /|Range: bytes=0-", "bytes=0-9"),
            ("GET /|Range: bytes=9-", "bytes=0-9"),
            ("GET /|Range: bytes=10-12", "bytes=10-19"),
            ("GET /|Range: Bytes= 25-26,3-4", "bytes=20-29"),
            ("HEAD /|Range: bytes=15-", "bytes=10-19"),
            ("GET /|Range: bytes=-5", "bytes=0-9"),
            ("GET /|Range: items=15-", "bytes=0-9"),
            ("GET /|Range: bytes=x", "bytes=0-9"),
            ("GET /|Range: bytes=99999999999999999999-", "bytes=0-9"),
            ("GET /|Range: bytes=18446744073709551615-", "bytes=18446744073709551610-18446744073709551615"),
            ("GET /|Range: bytes=15-|If-Range: x", "bytes=0-9"),
            ("POST /|Range: bytes=15-", "bytes=0-9"),
        ] {
            let request = whole(request);
            let shown = request.clone();
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&proxied("slice 10; proxy_set_header X-Range $slice_range;"));
                let mut exchange = site.exchange(&request);
                let id = exchange.conf.names.find("slice_range").unwrap();
                let mut out = Vec::new();
                let is_found = exchange.variable(id, &mut out);
                (is_found, String::from_utf8(out).unwrap(), start(&exchange).is_some())
            });
            assert_eq!(found, (true, expected.to_owned(), true), "{shown}");
        }
    }

    #[test]
    fn nothing_is_sliced_for_a_subrequest_or_behind_an_answer() {
        for (is_subrequest, status, error, begins) in
            [(false, 0, 0, true), (true, 0, 0, false), (false, 200, 0, false), (false, 0, 404, true)]
        {
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&proxied("slice 10;"));
                let mut exchange = site.exchange(&whole("GET /"));
                exchange.flags.is_subrequest = is_subrequest;
                exchange.response.status.answer(status);
                if error != 0 {
                    // The page of an error follows.
                    exchange.response.status.fix(error);
                }
                begin(&mut exchange, 10).is_some()
            });
            assert_eq!(found, begins, "{is_subrequest} {status} {error}");
        }
    }

    #[test]
    fn a_part_is_taken_only_if_it_is_the_part_that_was_asked_for() {
        let unexpected = |range: &str| Err(format!("unexpected range in slice response: {range}"));
        for (range, told, expected) in [
            ("bytes 10-19/25", None, Ok(25)),
            ("bytes 10-19/25", Some(10), Ok(25)),
            ("bytes 10-19/20", Some(10), Ok(20)),
            ("bytes 10-14/15", Some(5), Ok(15)),
            ("bytes 10-19/25", Some(9), Err("unexpected length of slice response".to_owned())),
            ("bytes 0-9/25", None, unexpected("0-10")),
            ("bytes 10-18/25", None, unexpected("10-19")),
            ("bytes 10-24/25", None, unexpected("10-25")),
            ("bytes 10-19/*", None, Err("no complete length in slice response".to_owned())),
            ("bytes x", None, Err("invalid range in slice response".to_owned())),
            ("", None, Err("invalid range in slice response".to_owned())),
        ] {
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&proxied("slice 10;"));
                let exchange = site.exchange(&whole("GET /"));
                exchange.response.content_length = told;
                if !range.is_empty() {
                    exchange.response.fields.push_known(b"Content-Range", range.as_bytes(), Some(Known::ContentRange));
                }
                super::expected(&exchange, 10, 10)
            });
            assert_eq!(found, expected, "{range} {told:?}");
        }
    }
}
