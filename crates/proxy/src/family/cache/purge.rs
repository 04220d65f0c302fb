//! Removes stored answers: `proxy_cache_purge`, by key or by tag, and requests that change a resource.
//!
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache_purge>: weir answers 204 whether it removed
//! anything or not, once no worker serves any of it.

use weir_cache::invalidation::{self, TargetUri};
use weir_cache::store::{Force, Purge, Tag, Zone};
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::response_body::Body;
use weir_net::log::Level;

use crate::family::cache::facts;
use crate::family::upstream::answer::Answer;

/// The most tags that one request may purge; each tag becomes a rule that all later look-ups check.
const TAGS_MAX: usize = 256;

/// Purges the tags that the request names, or else the exchange's key, and answers.
pub fn answer(exchange: &mut Exchange<'_>, zone: &Zone) -> Answer {
    let location = exchange.location;
    let mut text = weir_net::buffer::lease(0);
    for template in crate::values(location).cache.purge_tag.iter() {
        template.eval(exchange, &mut text);
        text.push(b' ');
    }
    match tags(&text).count() {
        0 => {
            zone.purge(Purge::of_key(&exchange.cache.key.0), Force::Hard);
        }
        1..=TAGS_MAX => {
            for tag in tags(&text) {
                zone.purge(Purge::Tag(Tag::of(tag)), Force::Hard);
            }
        }
        count => {
            let what =
                format_args!("client names {count} tags to purge, but at most {TAGS_MAX} are allowed: nothing purged");
            exchange.log(Level::Error, what);
            return Answer::Outcome(Outcome::Status(400));
        }
    }
    exchange.response.status.answer(204);
    exchange.response.body = Body::Empty;
    Answer::Outcome(Outcome::Respond)
}

/// The tags in a text, separated by commas or spaces: `a, b` and `a b`.
fn tags(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b',' | b' ' | b'\t')).filter(|tag| !tag.is_empty())
}

/// After an unsafe request, removes the answers stored under its key, and under the keys of the URIs in `Location` and
/// `Content-Location` (RFC 9111 §4.4).
pub fn after_unsafe(exchange: &mut Exchange<'_>, origin: &Origin) {
    let zone = exchange.cache.invalidates.take().and_then(|number| crate::declared(exchange.conf).cache.zone(number));
    let Some(zone) = zone else { return };
    let own = exchange.request.target();
    let target = TargetUri { scheme: exchange.client.scheme(), host: &exchange.request.host, uri: own };
    let fields = facts::origin_fields(origin);
    let uris = invalidation::targets(exchange.request.method(), origin.head.status, target, fields);
    let key: &[u8] = &exchange.cache.key.0;
    for uri in uris {
        if uri == own {
            zone.purge(Purge::Key(key.into()), Force::Hard);
        } else if let Some(rest) = key.strip_suffix(own) {
            // If the key ends with the request's target, the key of another URI ends with that URI.
            zone.purge(Purge::Key([rest, &uri].concat().into()), Force::Hard);
        }
    }
}
