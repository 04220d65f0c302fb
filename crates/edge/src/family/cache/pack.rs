//! Compressed bodies of stored answers: `gzip` makes one for the first client that accepts it, and later clients reuse
//! it.
//!
//! Only for bodies in memory. The compressed body counts in the zone's memory, and goes when its answer goes.

use weir_cache::store::Packing;
use weir_net::clock;

use crate::exchange::Exchange;
use crate::kept::Kept;
use crate::respond::Body;

/// Puts the compressed body of a stored answer in place of the plain one; `false` if none is kept for this level. Then
/// the filter's output will be kept.
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

/// Keeps the filters' output for a part of a stored body; the `last` part completes it.
pub fn keep(exchange: &mut Exchange<'_>, bytes: &[u8], last: bool) {
    // Another filter would have changed the output.
    if exchange.response.body_filters.len() != 1 {
        exchange.cache.packing = None;
    }
    let Some(packing) = &mut exchange.cache.packing else { return };
    packing.push(bytes);
    if last && let Some(packing) = exchange.cache.packing.take() {
        // If it does not fit, the next request compresses again.
        packing.finish(clock::now());
    }
}
