//! Decides who may write to the API, purge, and open a dashboard. No other place decides this.
//!
//! A caller proves itself with a token, a password that was checked for this request, or a verified client
//! certificate. Without any of these, only a direct local client may act. Its connection comes from this machine.
//! Nothing shows a relay in between. Its `Host` is a loopback name, so that a page of another site cannot act through
//! a browser. Its socket is not one of this edge's own, which a proxy or a tunnel of this edge would have opened. For writing, its
//! socket must belong to root or to the user who started weir. This last check also finds most relays that add no field: they
//! run as users of their own, and so do weir's workers. `docs/guide/live.md` has
//! the words for users.

use std::net::IpAddr;

use weir_conf::{At, Problem};
use weir_http::exchange::Exchange;
use weir_http::read::build::{Build, Scope};
use weir_net::{diag, process};
use weir_wire::Known;

use crate::family::auth_basic;
use crate::family::ssl::Verify;

/// The action that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// See the dashboard.
    Look,
    /// Change the running state through the API.
    Write,
    /// Make caches forget.
    Purge,
}

/// Why a request is refused: its status and a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The status of the answer.
    pub status: u16,
    /// The reason and the remedy.
    pub text: String,
}

/// Why the client may not do it; `None` when it may. A dashboard with a token lets everybody load its page, which
/// asks for the token.
pub fn objection(exchange: &Exchange<'_>, deed: Deed) -> Option<Objection> {
    if deed != Deed::Look
        && let Some(why) = another_site(exchange)
    {
        return Some(forbidden(format!(
            "{why}: weir allows no change from a page of another site; send the request from the same origin, or \
             without a browser"
        )));
    }
    let token = crate::values(exchange.location).dashboard.token.as_ref();
    if let Some(source) = token {
        let declared = &crate::declared(exchange.conf).dashboard;
        // The page of a dashboard must be open to clients that have not signed in yet.
        let is_enough = declared.token(source).is_some_and(|token| deed == Deed::Look || token.is_brought(exchange));
        if is_enough {
            return None;
        }
        if deed == Deed::Write {
            return Some(forbidden("changes need the dashboard_token: send it as Authorization: Bearer"));
        }
    }
    if deed != Deed::Look && (exchange.flags.knows_password || has_good_certificate(exchange)) {
        return None;
    }
    // `allow` and `deny` decide who may purge, if they judged the real client (and not a relay).
    let location = exchange.location;
    let is_let_in = !crate::values(location).access.rules.is_empty() || location.values.location.internal;
    if deed == Deed::Purge && is_let_in && (exchange.told_address().is_some() || relay(exchange).is_none()) {
        return None;
    }
    let why = match token {
        Some(_) => "the request does not contain the dashboard_token".to_owned(),
        None => not_local(exchange, deed)?,
    };
    let remedy = match deed {
        Deed::Look => "set dashboard_token and sign in with it",
        Deed::Write => "set dashboard_token (and send it as Authorization: Bearer), auth_basic or ssl_verify_client",
        Deed::Purge => {
            "set auth_basic, ssl_verify_client, dashboard_token, or allow and deny (behind a proxy with set_real_ip_from)"
        }
    };
    let rule = match deed {
        Deed::Look => "without a token this dashboard answers only clients on loopback",
        Deed::Write => "a client without credentials may make changes only over a direct local connection",
        Deed::Purge => "a client without credentials may purge only over a direct local connection",
    };
    Some(forbidden(format!("{rule}, and {why}: {remedy}")))
}

/// Why weir does not read the body of a write: it takes only JSON. Before a browser sends JSON to another site, it
/// asks that site; it sends form types without asking.
pub fn media_objection(exchange: &Exchange<'_>, body: &[u8]) -> Option<Objection> {
    let value = exchange.request.field(Known::ContentType).unwrap_or_default();
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_json = essence.eq_ignore_ascii_case(b"application/json");
    (!body.is_empty() && !is_json).then(|| Objection {
        status: 415,
        text: "weir accepts only JSON here: send Content-Type: application/json".to_owned(),
    })
}

fn forbidden(text: impl Into<String>) -> Objection {
    Objection { status: 403, text: text.into() }
}

fn has_good_certificate(exchange: &Exchange<'_>) -> bool {
    exchange.client.facts().and_then(|facts| facts.shown()).is_some_and(|(_, outcome)| outcome.is_ok())
}

/// The sign that a page of another site made a browser send this. Browsers send `Sec-Fetch-Site`
/// (<https://www.w3.org/TR/fetch-metadata/>) to https and to loopback only, and `Origin` (RFC 6454) with every
/// request that is not GET.
fn another_site(exchange: &Exchange<'_>) -> Option<&'static str> {
    let request = &exchange.request;
    for field in request.fields() {
        let (name, value) = (request.text(field.name), request.text(field.value));
        if name.eq_ignore_ascii_case(b"sec-fetch-site") && !matches!(value, b"same-origin" | b"none") {
            return Some("the field Sec-Fetch-Site says that another site sent the request");
        }
        if field.known == Some(Known::Origin) && !is_own_origin(value, &request.host, request.port) {
            return Some("the field Origin names another host than the field Host");
        }
    }
    None
}

/// Whether an `Origin` names the requested host and port. `null`, which sandboxed pages send, matches no host.
fn is_own_origin(origin: &[u8], host: &[u8], port: Option<u16>) -> bool {
    let Some((scheme, authority)) = std::str::from_utf8(origin).ok().and_then(|text| text.split_once("://")) else {
        return false;
    };
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    // In an IPv6 address, the colons stand before the bracket.
    let (name, of_origin) = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, port),
            Err(_) => return false,
        },
        None => (authority, usual),
    };
    !name.is_empty() && name.as_bytes().eq_ignore_ascii_case(host) && of_origin == port.unwrap_or(usual)
}

/// The reason why the client is not a direct client on this machine; `None` if it is one.
fn not_local(exchange: &Exchange<'_>, deed: Deed) -> Option<String> {
    // A unix socket has no remote address; the next checks find out whether it belongs to a relay.
    if !exchange.client.remote.tcp().is_none_or(|address| address.ip().to_canonical().is_loopback()) {
        return Some("the client is not on this machine".to_owned());
    }
    if let Some(how) = relay(exchange) {
        return Some(format!("the request came through a relay ({how})"));
    }
    if !is_loopback_name(&exchange.request.host) {
        return Some("the field Host is neither localhost nor a loopback address".to_owned());
    }
    let trusted = [0, process::starter()];
    match exchange.client.shared.stream.socket().and_then(diag::holder) {
        Some(holder) if holder.is_us => {
            Some("the request came through this edge itself (proxy_pass or tunnel_pass)".to_owned())
        }
        // Looking needs no more than that. For example, a user of the machine makes an ssh tunnel.
        _ if deed == Deed::Look => None,
        None => Some("the kernel does not report the user of the connection".to_owned()),
        Some(holder) if !trusted.contains(&holder.uid) => Some(format!(
            "user {} made the connection; only root and the user that started weir may do this",
            holder.uid
        )),
        Some(_) => None,
    }
}

/// The sign that a relay stands between the client and this edge; `None` if there is none.
fn relay(exchange: &Exchange<'_>) -> Option<String> {
    let listen = exchange.conf.listens.get(exchange.client.listen.get());
    // Also if the header names no client: then the proxy speaks for itself, or does not know the client.
    if exchange.client.proxied.get().is_some() || listen.is_none_or(|listen| listen.proxy_protocol) {
        return Some("PROXY protocol".to_owned());
    }
    if exchange.told_address().is_some() {
        return Some("set_real_ip_from".to_owned());
    }
    let request = &exchange.request;
    let mut names = request.fields().iter().map(|field| request.text(field.name));
    let name = names.find(|name| says_relay(name))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Whether relays add fields of this name.
fn says_relay(name: &[u8]) -> bool {
    const NAMES: [&str; 12] = [
        "forwarded",
        "via",
        "x-real-ip",
        "client-ip",
        "x-client-ip",
        "true-client-ip",
        "fastly-client-ip",
        "x-cluster-client-ip",
        "cf-connecting-ip",
        "cdn-loop",
        "x-original-forwarded-for",
        "x-envoy-external-address",
    ];
    const BEGINNING: &[u8] = b"x-forwarded";
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        || name.get(..BEGINNING.len()).is_some_and(|start| start.eq_ignore_ascii_case(BEGINNING))
}

fn is_loopback_name(host: &[u8]) -> bool {
    let host = std::str::from_utf8(host).unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Warns, once a block is read, if nothing guards its API, purge or dashboard.
pub fn warn(b: &mut Build<'_>, scope: &Scope, door: Deed, at: At) {
    let settings = crate::written(scope);
    let is_guarded = settings.access.rules.as_ref().is_some_and(|rules| !rules.is_empty())
        || asks_for_password(&settings.auth_basic)
        || matches!(settings.ssl.verify, Some(Verify::On))
        || settings.dashboard.token.iter().flatten().next().is_some()
        || (door == Deed::Purge && scope.settings.location.internal == Some(true));
    if is_guarded {
        return;
    }
    let (what, todo) = match door {
        Deed::Purge => (
            "\"cache_purge_api\" has no access control: every local program of root or of weir's own user may purge",
            "add to the location: allow 127.0.0.1; deny all; or auth_basic",
        ),
        Deed::Write => (
            "\"api write=on\" has no access control: every local program of root or of weir's own user may change the \
             running configuration",
            "add to the location: dashboard_token FILE; or auth_basic, ssl_verify_client, allow and deny",
        ),
        // Without a token, only this machine can open it.
        Deed::Look => return,
    };
    b.problems.push(Problem::warn(what.to_owned(), at).todo(todo));
}

/// Whether the location asks for a password: it has a realm that is not `off`, and a password file.
fn asks_for_password(settings: &auth_basic::Settings) -> bool {
    let realm = settings.realm.iter().flatten().next();
    let file = settings.user_file.iter().flatten().next();
    file.is_some() && realm.is_some_and(|realm| realm.literal() != Some(b"off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_goes_by_loopback_names() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.8.8.8", "[::1]", "::1"] {
            assert!(is_loopback_name(host.as_bytes()), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com", "10.0.0.1", "[::2]", "127.0.0.1.nip.io"] {
            assert!(!is_loopback_name(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (origin, host, port, is_own) in [
            ("http://edge.internal:8090", "edge.internal", Some(8090), true),
            ("http://Edge.internal:8090", "edge.internal", Some(8090), true),
            ("https://edge.internal", "edge.internal", None, true),
            ("https://edge.internal", "edge.internal", Some(443), true),
            ("http://[::1]:81", "[::1]", Some(81), true),
            ("http://[::1]", "[::1]", None, true),
            ("http://edge.internal:8091", "edge.internal", Some(8090), false),
            ("http://edge.internal", "edge.internal", Some(8090), false),
            ("http://evil.example", "edge.internal", None, false),
            ("http://edge.internal.evil.example", "edge.internal", None, false),
            ("null", "null", None, false),
            ("", "", None, false),
            ("http://", "", None, false),
            ("chrome-extension://edge.internal", "edge.internal", None, false),
            ("http://edge.internal:x", "edge.internal", None, false),
        ] {
            assert_eq!(is_own_origin(origin.as_bytes(), host.as_bytes(), port), is_own, "{origin} {host} {port:?}");
        }
    }

    #[test]
    fn relays_are_known_by_what_they_add() {
        for name in ["Forwarded", "VIA", "X-Real-IP", "x-forwarded-for", "X-Forwarded-Proto", "X-Forwarded", "CDN-Loop"]
        {
            assert!(says_relay(name.as_bytes()), "{name}");
        }
        for name in ["Host", "X-Request-ID", "X-Forward", "Accept", ""] {
            assert!(!says_relay(name.as_bytes()), "{name}");
        }
    }
}
