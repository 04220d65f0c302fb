//! Whether a client connection serves another request, by the settings of the location that answers.
//!
//! The client's own wish was read from its head. nginx: `ngx_http_update_location_config`.

use memchr::memmem;
use weir_net::clock;
use weir_wire::Known;

use crate::exchange::Exchange;

/// Whether the settings of the location that answers let the connection serve another request.
pub fn may_go_on(exchange: &Exchange<'_>) -> bool {
    let core = &exchange.location.values.core;
    !core.keepalive_timeout.is_zero()
        && exchange.facts.number_on_connection < core.keepalive_requests
        && clock::now().saturating_duration_since(exchange.client.accepted) < core.keepalive_time
        && !exchange.worker.is_draining()
        && !(exchange.request.head.known().contains(Known::UserAgent) && is_refused(exchange))
}

/// Whether `keepalive_disable` names the client's browser.
fn is_refused(exchange: &Exchange<'_>) -> bool {
    exchange.location.values.core.keepalive_disable.iter().any(|browser| match browser.as_str() {
        "msie6" => exchange.request.method() == b"POST" && is_browser(exchange, is_old_explorer),
        _ => is_browser(exchange, is_safari),
    })
}

fn is_browser(exchange: &Exchange<'_>, is_it: fn(&[u8]) -> bool) -> bool {
    exchange.request.field(Known::UserAgent).is_some_and(is_it)
}

/// Internet Explorer 4 to 6, except its version with "SV1", which does not have the flaw any more.
fn is_old_explorer(agent: &[u8]) -> bool {
    let Some(version) = after_explorer(agent) else { return false };
    match version {
        _ if has(agent, b"Opera") => false,
        [b'4' | b'5', b'.', _, ..] => true,
        [b'6', b'.', rest @ ..] => !rest.is_empty() && !has(rest, b"SV1"),
        _ => false,
    }
}

fn is_safari(agent: &[u8]) -> bool {
    has(agent, b"Safari/")
        && has(agent, b"Mac OS X")
        && !has(agent, b"Gecko/")
        && !has(agent, b"Chrome/")
        && !has(agent, b"Opera")
        && after_explorer(agent).is_none()
}

fn after_explorer(agent: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"MSIE ";
    agent.get(memmem::find(agent, NAME)? + NAME.len()..)
}

fn has(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_apart_as_in_nginx() {
        for (agent, explorer, safari) in [
            ("Mozilla/4.0 (compatible; MSIE 5.5; Windows 98)", true, false),
            ("MSIE 5.0", true, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", false, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1) Opera 8.0", false, false),
            ("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)", false, false),
            ("MSIE 6", false, false),
            ("Mac OS X Safari/7534.48.3", false, true),
            ("Mac OS X Chrome/99 Safari/7534.48.3", false, false),
            ("Mac OS X Safari/7534.48.3 Gecko/1", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_old_explorer(agent.as_bytes()), explorer, "{agent}");
            assert_eq!(is_safari(agent.as_bytes()), safari, "{agent}");
        }
    }
}
