//! Compressed bodies of stored answers: `compression` makes one for the first client that accepts a coding, and later
//! clients reuse it.
//!
//! Only for bodies in memory. The compressed body counts in the zone's memory, and weir removes it together with its
//! answer.

use weir_cache::store::{Coding, Packing};
use weir_http::exchange::Exchange;
use weir_http::response_body::{Body, Kept};

/// Puts the compressed body of a stored answer in place of the plain one. Returns `false` if there is none in this
/// coding; weir then stores the output of the filter.
pub fn replace(exchange: &mut Exchange<'_>, coding: Coding) -> bool {
    let Body::Kept(kept) = &exchange.response.body else { return false };
    if !kept.is_all() {
        return false;
    }
    let plain = &kept.object;
    match plain.packed(coding) {
        Some(packed) => {
            exchange.cache.packed = Some((coding.number, (plain.body.len(), packed.body.len())));
            exchange.response.content_length = Some(packed.body.len());
            exchange.response.body = Body::Kept(Kept::whole(packed.clone()));
            true
        }
        None => {
            let zone = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.zone(number));
            if let (Some(zone), false) = (zone, exchange.request.is_head()) {
                exchange.cache.packing = Packing::begin(zone, plain, coding).map(Box::new);
            }
            false
        }
    }
}
