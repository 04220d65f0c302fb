//! The writes of NGINX Plus' API: the servers of upstreams, the pairs of keyval zones. weir checks the client's
//! permission before it asks the observer.

use serde_json::Value;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Conf;
use weir_net::log::{self, Level};
use weir_proxy::family::upstream::Upstream;
use weir_proxy::family::upstream::edit::Refused;

use super::api::No;
use super::question::Question;
use super::servers;
use crate::guard::{self, Deed};
use crate::{canary, recorder};

/// Bytes of a request's body, at most: a server takes a few hundred.
pub const BODY_BYTES_MAX: usize = 64 << 10;

/// Bytes of a body that the log shows.
const SHOWN_BYTES_MAX: usize = 512;

/// Whether a method changes something.
pub fn is_write(method: &[u8]) -> bool {
    !matches!(method, b"GET" | b"HEAD")
}

/// Why the client may not change anything.
pub fn objection(exchange: &Exchange<'_>) -> Option<Refused> {
    guard::objection(exchange, Deed::Write).map(|objection| no(objection.status, "Forbidden", objection.text))
}

/// Why weir does not read this body.
pub fn media_objection(exchange: &Exchange<'_>, body: &[u8]) -> Option<Refused> {
    let objection = guard::media_objection(exchange, body)?;
    Some(no(objection.status, "UnsupportedMediaType", objection.text))
}

/// The error for an unknown zone.
pub(super) const KEYVAL_NOT_FOUND: No = No(404, "KeyvalNotFound", "keyval not found");

/// Changes the servers of an upstream or a keyval zone as a question asks. Returns status and answer; `None` if the
/// question is about something else.
pub fn change(conf: Option<&Conf>, question: &Question, rest: &str) -> Option<Result<(u16, Value), Refused>> {
    if let Some(name) = rest.strip_prefix("http/keyvals/") {
        return Some(change_pairs(conf, question, name.trim_end_matches('/')));
    }
    let (name, id) = rest.strip_prefix("http/upstreams/")?.rsplit_once("/servers")?;
    let groups = conf.iter().flat_map(|conf| &weir_proxy::declared(conf).upstream.groups);
    let upstream = groups.into_iter().find(|upstream| upstream.name == name);
    Some(match upstream {
        Some(upstream) => change_servers(conf, upstream, question, id.trim_matches('/')),
        None => Err(no(404, "UpstreamNotFound", "upstream not found")),
    })
}

/// Changes an object that only weir has: a recorder, the canary. Returns its state.
pub fn change_own(conf: Option<&Conf>, question: &Question, name: &str) -> Result<Value, Refused> {
    match name {
        "record" => recorder::api::change(conf, &question.method, &question.body),
        "canary" => canary::api::change(&question.method, &question.body),
        _ => Err(no(405, "MethodDisabled", "method disabled")),
    }
}

fn body(question: &Question) -> Result<Value, Refused> {
    serde_json::from_slice(&question.body).map_err(|error| no(415, "JsonError", format!("json error: {error}")))
}

fn change_pairs(conf: Option<&Conf>, question: &Question, name: &str) -> Result<(u16, Value), Refused> {
    let conf = conf.ok_or(KEYVAL_NOT_FOUND)?;
    let zone = crate::declared(conf).keyval.find(name).ok_or(KEYVAL_NOT_FOUND)?;
    let (status, keys) = match question.method.as_str() {
        "POST" => (201, zone.add(&body(question)?)?),
        "PATCH" => (204, zone.change(&body(question)?)?),
        "DELETE" => (204, zone.clear()?),
        _ => return Err(no(405, "MethodDisabled", "method disabled")),
    };
    zone.publish(conf, &keys);
    Ok((status, Value::Null))
}

fn change_servers(
    conf: Option<&Conf>,
    upstream: &Upstream,
    question: &Question,
    id: &str,
) -> Result<(u16, Value), Refused> {
    let share = |name: &Value, server: Option<&Value>| {
        if let (Some(conf), Some(name)) = (conf, name.as_str()) {
            servers::publish(conf, &upstream.name, name, server);
        }
    };
    let Some(live) = &upstream.live else {
        return Err(no(400, "UpstreamStatic", "upstream is static: it has no zone"));
    };
    let body = || body(question);
    match (question.method.as_str(), id) {
        ("POST", "") => {
            let added = live.add_server(&body()?)?;
            share(&added["server"], Some(&added));
            Ok((201, added))
        }
        ("PATCH" | "DELETE", "") | ("POST", _) => Err(no(405, "MethodDisabled", "method disabled")),
        (method, id) => {
            let id = id.parse().map_err(|_| no(400, "UpstreamBadServerId", "invalid server id"))?;
            match method {
                "PATCH" => {
                    let before = live.server(id)?;
                    let changed = live.change_server(id, &body()?)?;
                    if before["server"] != changed["server"] {
                        share(&before["server"], None);
                    }
                    share(&changed["server"], Some(&changed));
                    Ok((200, changed))
                }
                "DELETE" => {
                    let before = live.server(id)?;
                    let rest = live.remove_server(id)?;
                    share(&before["server"], None);
                    Ok((200, rest))
                }
                _ => Err(no(405, "MethodDisabled", "method disabled")),
            }
        }
    }
}

fn no(status: u16, code: &'static str, text: impl Into<String>) -> Refused {
    Refused { status, code, text: text.into() }
}

/// Logs each change, and each refused attempt, with the client.
pub fn audit(question: &Question, path: &str, status: u16) {
    let Question { client, method, body, .. } = question;
    let shown = body.get(..SHOWN_BYTES_MAX).unwrap_or(body).escape_ascii();
    log::global(Level::Notice, format_args!("api: {client} {method} {path} {shown}: {status}"));
}
