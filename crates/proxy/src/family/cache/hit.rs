//! Answers from the cache: weir handles the head like an upstream's head, and sends the body as stored.

use std::sync::Arc;

use weir_cache::reason::Reason;
use weir_cache::request::RequestFacts;
use weir_cache::store::{Object, Status};
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::response_body::{Body, Kept};
use weir_net::log::Level;
use weir_net::{buffer, clock};
use weir_wire::{BodyLength, Known, Progress, encode};

use super::{facts, plain};
use crate::family::proxy::response;
use crate::family::upstream::answer::Answer;

/// Puts a stored answer in place of the upstream's.
pub fn serve(exchange: &mut Exchange<'_>, object: Arc<Object>, status: Status, reason: Reason) -> Answer {
    exchange.cache.status = Some(status);
    exchange.cache.reason = Some(reason);
    let code = object.head.status;
    let mut origin = exchange.worker.lease_origin();
    let is_sound = read_head(&object, &mut origin);
    if let Some(old) = exchange.origin.replace(origin) {
        exchange.worker.return_origin(old);
    }
    let answer = if facts::is_own_error(&object) {
        Answer::Outcome(Outcome::Status(code))
    } else if !is_sound {
        exchange.log(Level::Crit, format_args!("weir cannot read the head of a cache object"));
        Answer::Outcome(Outcome::Status(500))
    } else {
        answer(exchange, &object)
    };
    exchange.cache.shown = Some(object);
    answer
}

/// Puts the fresh object that the look-up found in place of the upstream's answer.
pub fn serve_found(exchange: &mut Exchange<'_>, object: Arc<Object>, reason: Reason, facts: &RequestFacts) -> Answer {
    if plain::serve(exchange, &object, reason, facts) {
        return Answer::Outcome(Outcome::Respond);
    }
    serve(exchange, object, Status::Hit, reason)
}

/// Reads the head of an object as if an upstream had sent it; `false` when it cannot be read.
pub fn read_head(object: &Object, origin: &mut Origin) -> bool {
    origin.clear();
    origin.bytes = buffer::lease(object.head.bytes.len());
    origin.bytes.extend_from_slice(object.head.shown());
    if let Some(parsed) = object.parsed.get() {
        origin.head.copy_from(parsed);
        return true;
    }
    let is_sound = matches!(origin.parser.response(&origin.bytes, &mut origin.head), Ok(Progress::Done));
    if is_sound {
        // Another worker may have set the same value first.
        let _ = object.parsed.set(origin.head.clone());
    }
    is_sound
}

/// The answer of an object whose head is in the exchange.
fn answer(exchange: &mut Exchange<'_>, object: &Arc<Object>) -> Answer {
    let code = object.head.status;
    if response::is_intercepted(exchange, code) {
        response::pass_authentication(exchange);
        return Answer::Outcome(Outcome::Status(code));
    }
    let told = exchange.origin.as_ref().and_then(|origin| origin.field(Known::ContentLength));
    let told = told.and_then(weir_wire::framing::content_length);
    let has_no_body = matches!(code, 204 | 304);
    let length = match (object.is_whole(), told) {
        // For an answer to HEAD, only the length is known.
        (true, Some(told)) if object.body.is_empty() && exchange.request.is_head() => BodyLength::Exact(told),
        (true, _) if has_no_body => BodyLength::None,
        (true, _) => BodyLength::Exact(object.body.len()),
        (false, Some(told)) => BodyLength::Exact(told),
        (false, None) => BodyLength::UntilClose,
    };
    if let Some(elsewhere) = response::accept(exchange, crate::values(exchange.location), length) {
        return Answer::Outcome(elsewhere.enter(exchange));
    }
    let age_s = facts::validity(&object.times).current_age_s(clock::unix_ms() as i64);
    let response = &mut exchange.response;
    response.fields.remove(Known::Age);
    response.fields.push_with(b"Age", Some(Known::Age), |out| encode::push_decimal(out, u64::from(age_s)));
    if !response.fields.has(Known::Date)
        && let Some(date) = exchange.origin.as_ref().and_then(|origin| origin.field(Known::Date))
    {
        // RFC 9110 §6.6.1: the time when the origin made the answer. `Expires` is relative to it.
        response.fields.push_known(b"Date", date, Some(Known::Date));
    }
    response.allows_ranges = code == 200;
    response.body = match length {
        BodyLength::None => Body::Empty,
        BodyLength::Exact(length) => Body::Kept(Kept { length: Some(length), ..Kept::whole(object.clone()) }),
        BodyLength::Chunked | BodyLength::UntilClose => Body::Kept(Kept::whole(object.clone())),
    };
    Answer::Outcome(Outcome::Respond)
}
