//! Compressed bodies of stored answers: made by `gzip` for the first who takes one, and kept for those after.
//!
//! Only of bodies in memory. What is kept counts in the zone's memory, and goes with the answer it was made of.

use weir_net::clock;

use weir_cache::store::Packing;
use crate::exchange::Exchange;
use crate::kept::Kept;
use crate::respond::Body;

/// Puts the compressed body of a stored answer in place of the plain one; `false` when none is kept of this level. Then
/// what the filter makes of it will be.
pub fn replace(exchange: &mut Exchange<'_>, level: u32) -> bool {
    let Body::Kept(kept) = &exchange.response.body else { return false };
    if !kept.is_all() {
        return false;
    }
    let plain = &kept.object;
    match plain.packed(level) {
        Some(packed) => {
            exchange.cache.packed = Some((plain.body.len(), packed.body.len()));
            exchange.response.content_length = Some(packed.body.len());
            exchange.response.body = Body::Kept(Kept::whole(packed.clone()));
            true
        }
        None => {
            let zone = exchange.cache.zone.and_then(|number| exchange.conf.declared.cache.zone(number));
            if let (Some(zone), false) = (zone, exchange.request.is_head()) {
                exchange.cache.packing = Packing::begin(zone, plain, level).map(Box::new);
            }
            false
        }
    }
}

/// What the filters made of a part of a stored body; with the `last` of them it is kept.
pub fn keep(exchange: &mut Exchange<'_>, bytes: &[u8], last: bool) {
    // Another filter would have made something else of it.
    if exchange.response.body_filters.len() != 1 {
        exchange.cache.packing = None;
    }
    let Some(packing) = &mut exchange.cache.packing else { return };
    packing.push(bytes);
    if last && let Some(packing) = exchange.cache.packing.take() {
        // Where it does not fit, the next one pays again.
        packing.finish(clock::now());
    }
}
