//! The purge API: the answers of a location with `cache_purge_api`.
//!
//! POST (or PURGE) an order as JSON; GET shows how far each edge has applied the log. 200: applied on every worker
//! here and on all edges. 202: applied here and logged, but the named edges have not confirmed it in time. 503:
//! applied here, and not logged.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use weir_cache::store::{Purge, Zone};
use weir_http::exchange::Exchange;
use weir_http::exchange::phase;
use weir_http::exchange::response_body::Body;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::receive::body::{self, BodyFailed};
use weir_net::clock;
use weir_wire::Known;

use crate::guard::{self, Deed, Objection};
use crate::purge::bus::{Bus, Outcome, PENDING_MAX};
use crate::purge::order::{PurgeKind, PurgeOrder};
use crate::purge::zones::ZoneList;

/// Bytes of an order, at most.
pub const ORDER_BYTES_MAX: usize = 64 << 10;

/// Answers a request.
pub async fn answer(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<phase::Outcome, Gone> {
    let (status, value) = match exchange.request.method() {
        b"GET" | b"HEAD" => (200, state(exchange)),
        b"POST" | b"PURGE" => match guard::objection(exchange, Deed::Purge) {
            Some(Objection { status, text }) => (status, said(&text)),
            None => match body::read_small(exchange, conn, ORDER_BYTES_MAX).await {
                Ok(bytes) => match guard::media_objection(exchange, &bytes) {
                    Some(Objection { status, text }) => (status, said(&text)),
                    None => follow(exchange, &bytes).await,
                },
                Err(BodyFailed::Status(413)) => {
                    (413, said(&format!("the body is larger than {ORDER_BYTES_MAX} bytes")))
                }
                Err(BodyFailed::Status(status)) => return Ok(phase::Outcome::Status(status)),
                Err(BodyFailed::Gone(gone)) => return Err(gone),
            },
        },
        _ => {
            exchange.response.fields.push(b"Allow", b"GET, HEAD, POST, PURGE");
            (405, said("purge with POST and a body such as {\"tag\": \"news\"}; GET reports the progress of the edges"))
        }
    };
    put(exchange, status, &value);
    Ok(phase::Outcome::Respond)
}

/// Applies an order here, then logs it.
async fn follow(exchange: &Exchange<'_>, bytes: &[u8]) -> (u16, Value) {
    let begun = clock::precise();
    let order = match PurgeOrder::of_json(bytes) {
        Ok(order) => order,
        Err(no) => return (400, said(&no.to_string())),
    };
    let bus = crate::declared(exchange.conf).purge.bus();
    let own = ZoneList::new(weir_proxy::declared(exchange.conf).cache.all());
    let zones = bus.map_or(&own, |bus| bus.zones());
    let names = zones.names();
    if let Some(zone) = order.zone.as_ref().filter(|zone| !names.contains(zone)) {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return (404, said(&format!("no zone has the name \"{zone}\"; zones: {known}")));
    }
    let counted = count(&zones.of(order.zone.as_deref()), &order).await;
    for purge in order.purges() {
        zones.apply(order.zone.as_deref(), &purge, order.force);
    }
    let outcome = match bus {
        Some(bus) if !order.is_local => Some(bus.publish(&order).await),
        _ => None,
    };
    let (status, mut value) = of_outcome(bus.map(|bus| &**bus), outcome);
    if let Value::Object(members) = &mut value {
        members.insert("purged".to_owned(), order.to_json());
        members.insert("ms".to_owned(), json!(clock::precise().ms_since(begun)));
        members.extend(counted);
    }
    (status, value)
}

/// Counts the objects of this edge that an order names: `objects`, and the same for each zone. The value is `null`
/// while a zone still reads its directory. If an order names no object, `example_key` shows the form of a stored key.
async fn count(zones: &[Arc<Zone>], order: &PurgeOrder) -> Map<String, Value> {
    let purges: Vec<Purge> = order.purges().collect();
    let (mut all, mut example, mut of_zones) = (Some(0_u64), None, Map::new());
    for zone in zones {
        let tally = zone.tally(&purges).await;
        let named = (!tally.is_cold).then_some(tally.named);
        all = all.zip(named).map(|(all, named)| all.saturating_add(named));
        example = example.or(tally.other);
        of_zones.insert(zone.settings().name.clone(), json!(named));
    }
    let mut members = Map::new();
    members.insert("objects".to_owned(), json!(all));
    members.insert("objects_of_zones".to_owned(), Value::Object(of_zones));
    if let Some(key) = example.filter(|_| all == Some(0) && matches!(order.kind, PurgeKind::Key | PurgeKind::Prefix)) {
        members.insert("example_key".to_owned(), json!(String::from_utf8_lossy(&key)));
    }
    members
}

fn of_outcome(bus: Option<&Bus>, outcome: Option<Outcome>) -> (u16, Value) {
    let of = |applied: &[String], behind: &[String], id: String| json!({"edges": applied.len() + behind.len(), "applied_on": applied, "behind": behind, "id": id});
    match outcome {
        None if bus.is_some() => (200, json!({"applied": "here"})),
        None => (200, json!({"applied": "everywhere", "edges": 1, "behind": []})),
        Some(Outcome::Everywhere { id, applied }) => {
            (200, with(of(&applied, &[], id.to_string()), "applied", json!("everywhere")))
        }
        Some(Outcome::Behind { id, applied, behind }) => {
            let value = with(of(&applied, &behind, id.to_string()), "applied", json!("here"));
            let names = behind.join(", ");
            (
                202,
                with(
                    value,
                    "message",
                    json!(format!(
                        "the purge is in the purge log; {names} will apply it on the next connection to the log"
                    )),
                ),
            )
        }
        Some(Outcome::NotLogged(why)) => {
            let place = bus.map(|bus| bus.settings().server.to_string()).unwrap_or_default();
            let message = format!(
                "purged on this edge only: weir cannot write the purge log at {place}: {why}; repeat the request \
                 later, or add \"local\": true"
            );
            (503, json!({"applied": "here", "message": message}))
        }
        Some(Outcome::Busy) => {
            let message = format!(
                "purged on this edge only: {PENDING_MAX} purges already wait for the purge log; repeat the request \
                 later"
            );
            (503, json!({"applied": "here", "message": message}))
        }
    }
}

/// The answer to GET.
fn state(exchange: &Exchange<'_>) -> Value {
    let zones = ZoneList::new(weir_proxy::declared(exchange.conf).cache.all()).names();
    let bus = crate::declared(exchange.conf).purge.bus();
    json!({
        "edge": bus.map(|bus| bus.settings().edge.clone()),
        "zones": zones,
        "log": bus.map(|bus| bus.to_json()),
    })
}

fn said(message: &str) -> Value {
    json!({"message": message})
}

fn with(mut value: Value, name: &str, member: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.insert(name.to_owned(), member);
    }
    value
}

fn put(exchange: &mut Exchange<'_>, status: u16, value: &Value) {
    let mut text = value.to_string();
    text.push('\n');
    let response = &mut exchange.response;
    response.status.answer(status);
    response.content_type.clear();
    response.content_type.extend_from_slice(b"application/json");
    response.fields.push_known(b"Cache-Control", b"no-store", Some(Known::CacheControl));
    response.content_length = Some(text.len() as u64);
    response.body = Body::Bytes(text.into_bytes());
}
