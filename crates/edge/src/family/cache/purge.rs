//! What makes stored answers go: `proxy_cache_purge`, and requests that change what they are about.
//!
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache_purge>: answered by 204 whether there was
//! anything or not, once no worker gives any of it.

use crate::cache::invalidation::{self, Target};
use crate::cache::store::{Force, Purge, Zone};
use crate::exchange::{Exchange, Origin};
use crate::family::cache::keep;
use crate::family::upstream::forward::Answer;
use crate::phase::Outcome;
use crate::respond::Body;

/// Purges the exchange's key and answers.
pub fn answer(exchange: &mut Exchange<'_>, zone: &Zone) -> Answer {
    zone.purge(Purge::of_key(&exchange.cache.key.0), Force::Hard);
    exchange.response.status = 204;
    exchange.response.body = Body::Empty;
    Answer::Outcome(Outcome::Respond)
}

/// After a request that changes something: what is stored under its key, and under the keys that `Location` and
/// `Content-Location` come to, is no longer true (RFC 9111 §4.4).
pub fn after_unsafe(exchange: &mut Exchange<'_>, origin: &Origin) {
    let zone = exchange.cache.invalidates.take().and_then(|number| exchange.conf.declared.cache.zone(number));
    let Some(zone) = zone else { return };
    let own = exchange.request.target();
    let target = Target { scheme: b"http", host: &exchange.request.host, uri: own };
    let fields = keep::origin_fields(origin);
    let uris = invalidation::targets(exchange.request.method(), origin.head.status, target, fields);
    let key: &[u8] = &exchange.cache.key.0;
    for uri in uris {
        if uri == own {
            zone.purge(Purge::Key(key.into()), Force::Hard);
        } else if let Some(rest) = key.strip_suffix(own) {
            // A key that ends with the request's target ends with another's just so.
            zone.purge(Purge::Key([rest, &uri].concat().into()), Force::Hard);
        }
    }
}
