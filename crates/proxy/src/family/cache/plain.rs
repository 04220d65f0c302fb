//! Fast hits: if only the stored answer and the location determine the head, weir composes the head once, keeps it
//! with the answer, and copies it for later requests.
//!
//! The compiler of the configuration decides which locations qualify (`is_possible`): each response filter states
//! whether it reads the request; weir assumes that a filter without a statement does. For a request, a few comparisons
//! decide. For all other requests, weir composes the head anew; the bytes are the same.

use std::sync::Arc;

use weir_cache::ready::Ready;
use weir_cache::reason::Reason;
use weir_cache::request::RequestFacts;
use weir_cache::store::{Object, Status};
use weir_http::exchange::conf::Location;
use weir_http::exchange::response_body::{Body, Framing, Kept};
use weir_http::exchange::{Exchange, Plain};
use weir_http::read::families::VariablesRead;
use weir_net::clock;
use weir_wire::{Known, Version};

use super::facts::{self, Use};
use crate::family::compression::{self, Coding};
use crate::family::gzip;
use crate::part;

/// Decides for each place whether heads of stored answers may be kept ready.
pub fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    if !reading.has_answer() {
        for location in locations {
            location.has_ready_heads = is_possible(location, reading);
        }
    }
}

/// Whether heads of stored answers may be kept ready for this location, if no variable reads the fields of answers.
fn is_possible(location: &Location, reading: &VariablesRead<'_>) -> bool {
    let values = crate::values(location);
    let mut filters = reading.families.all.iter().filter_map(|family| family.filter.as_ref());
    !matches!(values.cache.zone, Use::Off)
        && values.slice.size == 0
        && location.values.core.limit_rate.is_none()
        && filters.all(|filter| !(filter.active)(location) || (filter.is_fixed)(location, reading))
}

/// Answers with a ready head, if there is one for this request; else notes that one is wanted, if allowed.
pub fn serve(exchange: &mut Exchange<'_>, object: &Arc<Object>, reason: Reason, facts: &RequestFacts) -> bool {
    if !exchange.location.has_ready_heads || reason != Reason::Fresh || !is_plain(exchange, facts) {
        return false;
    }
    let here = (exchange.conf.generation, exchange.location.id.0);
    let (body, ready, coding) = match find(exchange, object, here) {
        Ok(found) => found,
        Err(is_wanted) => {
            if is_wanted && object.body.is_in_memory() {
                exchange.plain = Plain::Wanted(note);
            }
            return false;
        }
    };
    let response = &mut exchange.response;
    response.status.answer(object.head.status);
    response.content_length = Some(body.body.len());
    if let Some(coding) = coding {
        exchange.cache.packed = Some((coding.number(), (object.body.len(), body.body.len())));
    }
    response.body = Body::Kept(Kept::whole(body.clone()));
    let age_s = facts::validity(&object.times).current_age_s(clock::unix_ms() as i64);
    exchange.plain = Plain::Ready(ready.clone(), age_s);
    exchange.cache.status = Some(Status::Hit);
    exchange.cache.reason = Some(reason);
    exchange.cache.shown = Some(object.clone());
    true
}

/// True if neither the request nor its processing so far calls for a special head.
fn is_plain(exchange: &Exchange<'_>, facts: &RequestFacts) -> bool {
    let (request, response) = (&exchange.request, &exchange.response);
    request.method() == b"GET"
        && request.version() == Version::Http11
        && !facts.has_range
        && !facts.is_conditional
        && !response.status.is_fixed()
        && exchange.facts.limit_rate.is_none()
        && !exchange.flags.is_subrequest
        && !part::is_part(exchange)
        && response.fields.is_empty()
        && response.content_type.is_empty()
}

/// A body, its head and its coding.
type Hit<'o> = (&'o Arc<Object>, &'o Arc<Ready>, Option<Coding>);

/// The body, the head and the coding for this request; `Err(true)` if a newly composed head should be kept.
fn find<'o>(exchange: &Exchange<'_>, object: &'o Arc<Object>, here: (u32, u32)) -> Result<Hit<'o>, bool> {
    let values = crate::values(exchange.location);
    let may = |coding: Coding| {
        coding.is_on(values) && (coding != Coding::Gzip || gzip::is_allowed_without_proxy(exchange, &values.gzip))
    };
    let mut accepted = compression::accepted(exchange, may).peekable();
    // Whether a proxy gets a compressed answer depends on fields of the answer.
    if accepted.peek().is_some() && exchange.request.field(Known::Via).is_some() {
        return Err(false);
    }
    // Every head that was made here tells in which codings this answer goes out.
    let suited = object.readies().find(|ready| ready.made_in == here).map(|ready| ready.codings);
    let coding = accepted.find(|coding| suited.is_none_or(|suited| suited & coding.bit() != 0));
    let known = match coding {
        Some(coding) => object.ready_packed(coding.kind(values)),
        None => object.ready().map(|ready| (object, ready)),
    };
    match known {
        Some((body, ready)) if ready.made_in == here => Ok((body, ready, coding)),
        // Two locations that share answers would replace each other's head forever, so weir replaces only a head of an
        // older configuration.
        known => Err(known.is_none_or(|(_, ready)| ready.made_in.0 != here.0)),
    }
}

/// Keeps a composed head, if other requests may get the same head.
fn note(exchange: &mut Exchange<'_>, framing: Framing, head: &[u8]) {
    let response = &exchange.response;
    let Body::Kept(kept) = &response.body else { return };
    let Some(object) = &exchange.cache.shown else { return };
    // These fields are made for each request; the answer itself may set a rate.
    let is_personal =
        [Known::Location, Known::Refresh, Known::SetCookie].iter().any(|known| response.fields.has(*known));
    if framing != Framing::Length
        || response.status.get() != 200
        || !response.body_filters.is_empty()
        || response.own_location
        || is_personal
        || !exchange.flags.keeps_alive
        || exchange.facts.limit_rate.is_some()
        || !kept.is_all()
    {
        return;
    }
    let zone = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.zone(number));
    let Some(zone) = zone else { return };
    let values = crate::values(exchange.location);
    let coding = response.fields.get(Known::ContentEncoding).filter(|_| !Arc::ptr_eq(&kept.object, object));
    let coding = compression::ALL.into_iter().find(|known| coding == Some(known.name().as_bytes()));
    let codings = match coding {
        None => compression::suited(exchange, values),
        Some(_) => compression::suited_by(values, &response.content_type, Some(object.body.len())),
    };
    let own_date = !response.fields.has(Known::Date) && !response.without_own.date;
    let here = (exchange.conf.generation, exchange.location.id.0);
    if let Some(ready) = Ready::of(head, here, own_date, codings) {
        // If another request was first, or there is no room, the next request tries again.
        zone.keep_ready(object, coding.map(|coding| coding.kind(values)), ready, clock::now());
    }
}
