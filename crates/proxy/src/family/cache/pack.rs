//! Compressed bodies of stored answers: `compression` makes one for the first client that accepts a coding, and later
//! clients reuse it.
//!
//! Only for bodies in memory. The compressed body counts in the zone's memory, and weir removes it together with its
//! answer.

use std::sync::Arc;

use weir_cache::store::{Coding, Object, Packing};
use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::{Body, Kept};

/// The compressed body of a stored answer, if there is one in this coding.
pub fn stored(exchange: &Exchange<'_>, coding: Coding) -> Option<Arc<Object>> {
    plain(exchange).and_then(|plain| plain.packed(coding).cloned())
}

/// Puts the compressed body of a stored answer in place of the plain one.
pub fn replace(exchange: &mut Exchange<'_>, number: u8, packed: Arc<Object>) {
    let before = plain(exchange).map_or(0, |plain| plain.body.len());
    exchange.cache.packed = Some((number, (before, packed.body.len())));
    exchange.response.content_length = Some(packed.body.len());
    exchange.response.body = Body::Kept(Kept::whole(packed));
}

/// Stores the output of the filter that compresses a stored answer.
pub fn begin(exchange: &mut Exchange<'_>, coding: Coding) {
    let zone = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.zone(number));
    let packing = match (zone, plain(exchange)) {
        (Some(zone), Some(plain)) if !exchange.request.is_head() => Packing::begin(zone, plain, coding),
        _ => return,
    };
    exchange.cache.packing = packing.map(Box::new);
}

/// The stored answer, if its whole body is sent.
fn plain<'e>(exchange: &'e Exchange<'_>) -> Option<&'e Arc<Object>> {
    match &exchange.response.body {
        Body::Kept(kept) if kept.is_all() => Some(&kept.object),
        _ => None,
    }
}
