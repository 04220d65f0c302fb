//! NGINX Plus' API, versions 1 to 9, over a snapshot; and weir's own at `/weir`.
//!
//! A worker passes the question to the observer and sends its reply.
//! <https://nginx.org/en/docs/http/ngx_http_api_module.html>

use serde_json::{Map, Value, json};
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Conf;
use weir_http::exchange::phase;
use weir_http::exchange::response_body::Body;
use weir_http::exchange::route::Pattern;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::receive::body::{self, BodyFailed};
use weir_http::text::texts::push_address;
use weir_meter::live::Snapshot;
use weir_proxy::family::upstream::edit::Refused;
use weir_wire::Known;

use super::gather::Reset;
use super::question::{QUESTIONS_MAX, Question, Reply};
use super::writes;
use crate::{canary, recorder};
use weir_http::family::variables::push_request_id;

/// Versions of the API.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=9;

/// The members at the root of the API, and the first version that has each.
const ROOT: &[(&str, u32)] = &[
    ("nginx", 1),
    ("processes", 1),
    ("connections", 1),
    ("slabs", 1),
    ("http", 1),
    ("stream", 1),
    ("resolvers", 5),
    ("ssl", 1),
    ("workers", 9),
];

/// The same for `http/`.
const HTTP: &[(&str, u32)] = &[
    ("requests", 1),
    ("server_zones", 1),
    ("location_zones", 5),
    ("caches", 1),
    ("limit_conns", 6),
    ("limit_reqs", 6),
    ("upstreams", 1),
    ("keyvals", 1),
];

/// The same for `stream/`.
const STREAM: &[(&str, u32)] = &[("server_zones", 1), ("limit_conns", 6), ("upstreams", 1)];

/// Answers a request to a location with `api` or `metrics`.
pub async fn answer(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<phase::Outcome, Gone> {
    let question = question(exchange);
    carry(exchange, conn, question).await
}

/// Changes a server of a group for the dashboard's page: the same write as in the API, under the same conditions.
/// `path` is a path of the API.
pub async fn change(exchange: &mut Exchange<'_>, conn: &mut Conn, path: String) -> Result<phase::Outcome, Gone> {
    let question = Question { path: Some(path), may_write: true, ..question(exchange) };
    carry(exchange, conn, question).await
}

async fn carry(exchange: &mut Exchange<'_>, conn: &mut Conn, mut question: Question) -> Result<phase::Outcome, Gone> {
    let writes = writes::is_write(exchange.request.method()) && question.may_write;
    let mut refused = if writes { writes::objection(exchange) } else { None };
    if writes && refused.is_none() {
        match body::read_small(exchange, conn, writes::BODY_BYTES_MAX).await {
            Ok(bytes) => {
                refused = writes::media_objection(exchange, &bytes);
                question.body = bytes;
            }
            Err(BodyFailed::Status(status)) => return Ok(phase::Outcome::Status(status)),
            Err(BodyFailed::Gone(gone)) => return Err(gone),
        }
    }
    let reply = match refused {
        Some(refused) => {
            writes::audit(&question, question.path.as_deref().unwrap_or_default(), refused.status);
            Some(error_reply(&refused, &question))
        }
        None => crate::live::of(exchange.worker).ask(question).await,
    };
    let reply = reply.unwrap_or_else(|| {
        let text = format!(
            "weir is busy with {QUESTIONS_MAX} other requests to this API, or the answer took too long: try again"
        );
        Reply { status: 503, content_type: "text/plain", body: format!("{text}\n").into_bytes() }
    });
    let response = &mut exchange.response;
    response.status.answer(reply.status);
    response.content_type.clear();
    response.content_type.extend_from_slice(reply.content_type.as_bytes());
    response.fields.push_known(b"Cache-Control", b"no-store", Some(Known::CacheControl));
    response.content_length = Some(reply.body.len() as u64);
    response.body = Body::Bytes(reply.body);
    Ok(phase::Outcome::Respond)
}

fn question(exchange: &mut Exchange<'_>) -> Question {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut address = Vec::new();
    push_address(exchange.client.local(), &mut address);
    let port = exchange.client.local().tcp().map(|local| local.port());
    let accept = exchange
        .request
        .fields()
        .iter()
        .find(|field| exchange.request.text(field.name).eq_ignore_ascii_case(b"accept"));
    let accept = accept.map(|field| lossy(exchange.request.text(field.value))).unwrap_or_default();
    let mut client = Vec::new();
    push_address(exchange.remote(), &mut client);
    let mut request_id = Vec::new();
    push_request_id(exchange, &mut request_id);
    Question {
        method: lossy(exchange.request.method()),
        path: crate::values(exchange.location).live.is_api.then(|| rest(exchange)),
        query: lossy(exchange.args),
        may_write: crate::values(exchange.location).live.may_write,
        client: lossy(&client),
        body: Vec::new(),
        address: port.map_or_else(|| lossy(&address), |port| format!("{}:{port}", lossy(&address))),
        request_id: lossy(&request_id),
        wants_openmetrics: accept.contains("application/openmetrics-text"),
    }
}

/// The part of the path after the location.
fn rest(exchange: &Exchange<'_>) -> String {
    let uri = String::from_utf8_lossy(exchange.uri);
    let prefix = match &exchange.location.pattern {
        Some(Pattern::Prefix { path, .. } | Pattern::Exact(path)) => path.as_str(),
        Some(Pattern::Regex(_) | Pattern::Named(_)) | None => "",
    };
    uri.strip_prefix(prefix).unwrap_or(&uri).trim_start_matches('/').to_owned()
}

/// An error answer: status, code and text as in NGINX Plus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct No(pub u16, pub &'static str, pub &'static str);

impl From<No> for Refused {
    fn from(No(status, code, text): No) -> Refused {
        Refused { status, code, text: text.to_owned() }
    }
}

const UNKNOWN_VERSION: No = No(404, "UnknownVersion", "unknown version");
const PATH_NOT_FOUND: No = No(404, "PathNotFound", "path not found");
const METHOD_DISABLED: No = No(405, "MethodDisabled", "method disabled");

/// The reply to a question, and the counters it sets to zero.
pub fn reply(snapshot: &Snapshot, conf: Option<&Conf>, question: &Question, path: &str) -> (Reply, Option<Reset>) {
    let (reply, reset) = match decide(snapshot, conf, question, path) {
        Ok(Said::Shows(value)) => (json_reply(200, &value), None),
        Ok(Said::Changed(status, Value::Null)) => (bare_reply(status), None),
        Ok(Said::Changed(status, value)) => (json_reply(status, &value), None),
        Ok(Said::Resets(what)) => (bare_reply(204), Some(what)),
        Err(refused) => (error_reply(&refused, question), None),
    };
    if question.may_write && writes::is_write(question.method.as_bytes()) {
        writes::audit(question, path, reply.status);
    }
    (reply, reset)
}

fn bare_reply(status: u16) -> Reply {
    Reply { status, content_type: "application/json", body: Vec::new() }
}

fn json_reply(status: u16, value: &Value) -> Reply {
    Reply { status, content_type: "application/json", body: value.to_string().into_bytes() }
}

fn error_reply(refused: &Refused, question: &Question) -> Reply {
    let value = json!({
        "error": {"status": refused.status, "text": refused.text, "code": refused.code},
        "request_id": question.request_id,
        "href": "https://nginx.org/en/docs/http/ngx_http_api_module.html",
    });
    json_reply(refused.status, &value)
}

enum Said {
    Shows(Value),
    Changed(u16, Value),
    Resets(Reset),
}

fn decide(snapshot: &Snapshot, conf: Option<&Conf>, question: &Question, path: &str) -> Result<Said, Refused> {
    let reads = !writes::is_write(question.method.as_bytes());
    if !reads && !question.may_write {
        return Err(METHOD_DISABLED.into());
    }
    let (version, rest) = path.split_once('/').unwrap_or((path, ""));
    if version.is_empty() || version == "weir" {
        return match (reads, version, rest.trim_end_matches('/')) {
            (true, "weir", "record") => Ok(Said::Shows(recorder::api::shown(&snapshot.weir.recordings))),
            (true, "weir", "canary") => Ok(Said::Shows(canary::api::shown(snapshot.weir.canary.as_ref()))),
            (false, "weir", name) => writes::change_own(conf, question, name).map(|value| Said::Changed(200, value)),
            (false, ..) => Err(METHOD_DISABLED.into()),
            (true, "", _) => Ok(Said::Shows(VERSIONS.collect())),
            (true, _, "") => Ok(Said::Shows(value_of(snapshot))),
            (true, ..) => Err(PATH_NOT_FOUND.into()),
        };
    }
    let version = version.parse().ok().filter(|version| VERSIONS.contains(version)).ok_or(UNKNOWN_VERSION)?;
    if !reads {
        if let Some(changed) = writes::change(conf, question, rest) {
            return changed.map(|(status, value)| Said::Changed(status, value));
        }
        return match question.method.as_str() {
            "DELETE" => Ok(Said::Resets(reset(snapshot, version, rest)?)),
            _ => Err(METHOD_DISABLED.into()),
        };
    }
    if let Some(shown) = keyvals(conf, &question.query, rest) {
        return Ok(Said::Shows(shown?));
    }
    let asked = Asked { all: value_of(snapshot), conf, version, fields: fields(&question.query) };
    Ok(Said::Shows(asked.get(rest)?))
}

fn value_of(snapshot: &Snapshot) -> Value {
    // The keys of maps are strings and numbers, and no number is NaN: this cannot fail.
    serde_json::to_value(snapshot).unwrap_or_default()
}

/// The pairs of all zones, of one zone, or one pair; `None` if the path is about something else.
fn keyvals(conf: Option<&Conf>, query: &str, rest: &str) -> Option<Result<Value, Refused>> {
    let name = rest.strip_prefix("http/keyvals")?;
    let zones = conf.map(|conf| &crate::declared(conf).keyval);
    let name = match name.strip_prefix('/') {
        Some(name) if !name.is_empty() => name.trim_end_matches('/'),
        None if !name.is_empty() => return None,
        _ => {
            let is_bare = fields(query).is_some_and(|fields| fields.is_empty());
            let names = zones.iter().flat_map(|declared| &declared.zones);
            return Some(if is_bare {
                Ok(names.map(|zone| zone.name.as_str()).collect())
            } else {
                names
                    .map(|zone| Ok((zone.name.clone(), zone.shown(None)?)))
                    .collect::<Result<_, _>>()
                    .map(Value::Object)
            });
        }
    };
    let key = query.split('&').find_map(|part| part.strip_prefix("key=")).map(unescaped);
    let zone = zones.and_then(|declared| declared.find(name));
    Some(zone.ok_or_else(|| writes::KEYVAL_NOT_FOUND.into()).and_then(|zone| zone.shown(key.as_deref())))
}

/// A parameter of a query without its `%XX`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `fields=`: the requested members; `None` for all.
fn fields(query: &str) -> Option<Vec<String>> {
    let text = query.split('&').find_map(|part| part.strip_prefix("fields="))?;
    Some(
        text.replace("%2C", ",")
            .replace("%2c", ",")
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// The kinds of things with names, and the error of Plus for a name that does not exist.
const KINDS: &[(&str, No)] = &[
    ("slabs", No(404, "SlabNotFound", "slab not found")),
    ("resolvers", No(404, "ResolverZoneNotFound", "resolver zone not found")),
    ("http/server_zones", No(404, "ServerZoneNotFound", "server zone not found")),
    ("http/location_zones", No(404, "LocationZoneNotFound", "location zone not found")),
    ("http/caches", No(404, "CacheNotFound", "cache not found")),
    ("http/limit_conns", No(404, "LimitConnNotFound", "limit_conn zone not found")),
    ("http/limit_reqs", No(404, "LimitReqNotFound", "limit_req zone not found")),
    ("http/upstreams", UPSTREAM_NOT_FOUND),
    ("stream/server_zones", No(404, "ServerZoneNotFound", "server zone not found")),
    ("stream/limit_conns", No(404, "LimitConnNotFound", "limit_conn zone not found")),
    ("stream/upstreams", UPSTREAM_NOT_FOUND),
];

const UPSTREAM_NOT_FOUND: No = No(404, "UpstreamNotFound", "upstream not found");
const WORKER_NOT_FOUND: No = No(404, "WorkerNotFound", "worker not found");

/// The kind that a path is about and the name in it; the name is empty for all of them.
fn kind_of(rest: &str) -> Option<(&'static str, &str, No)> {
    KINDS.iter().find_map(|(kind, no)| {
        let name = rest.strip_prefix(kind)?;
        (name.is_empty() || name.starts_with('/')).then(|| (*kind, name.trim_start_matches('/'), *no))
    })
}

/// Whether a version has this path.
fn is_in(version: u32, rest: &str) -> bool {
    let mut parts = rest.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let has = |list: &[(&str, u32)], name: &str| list.iter().any(|(known, since)| *known == name && version >= *since);
    let inner = match first {
        "http" => HTTP,
        "stream" => STREAM,
        _ => return has(ROOT, first),
    };
    has(ROOT, first) && (second.is_empty() || has(inner, second))
}

struct Asked<'a> {
    all: Value,
    conf: Option<&'a Conf>,
    version: u32,
    fields: Option<Vec<String>>,
}

impl Asked<'_> {
    fn get(&self, rest: &str) -> Result<Value, No> {
        let list = |list: &[(&'static str, u32)]| {
            list.iter().filter(|(_, since)| self.version >= *since).map(|(name, _)| *name).collect::<Value>()
        };
        let path = rest.trim_end_matches('/');
        if path.is_empty() {
            return Ok(list(ROOT));
        }
        if !is_in(self.version, path) {
            return Err(PATH_NOT_FOUND);
        }
        match path {
            "http" => return Ok(list(HTTP)),
            "stream" => return Ok(list(STREAM)),
            "nginx" | "processes" | "connections" | "ssl" => return Ok(self.only(self.at(path))),
            "http/requests" => return Ok(self.only(self.at(path))),
            _ => {}
        }
        if let Some(id) = path.strip_prefix("workers") {
            return self.workers(id.trim_start_matches('/'));
        }
        let (kind, name, no) = kind_of(rest).ok_or(PATH_NOT_FOUND)?;
        let all = self.at(kind);
        let Value::Object(all) = all else { return Err(PATH_NOT_FOUND) };
        if name.is_empty() {
            return Ok(self.map(all));
        }
        // Both a name and a path may end in a slash.
        match all.get(name).or_else(|| all.get(name.trim_end_matches('/'))) {
            Some(found) => Ok(self.only(found)),
            None if kind == "http/upstreams" => self.servers(name),
            None => Err(no),
        }
    }

    fn at(&self, path: &str) -> &Value {
        self.all.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
    }

    /// An object with the requested members.
    fn only(&self, value: &Value) -> Value {
        match (&self.fields, value) {
            (Some(fields), Value::Object(members)) => {
                let wanted = members.iter().filter(|(name, _)| fields.contains(name));
                Value::Object(wanted.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => value.clone(),
        }
    }

    /// All things of a kind; only their names if no member is requested.
    fn map(&self, all: &Map<String, Value>) -> Value {
        match &self.fields {
            Some(fields) if fields.is_empty() => all.keys().cloned().collect(),
            _ => Value::Object(all.iter().map(|(name, value)| (name.clone(), self.only(value))).collect()),
        }
    }

    fn workers(&self, id: &str) -> Result<Value, No> {
        let Value::Array(all) = self.at("workers") else { return Err(PATH_NOT_FOUND) };
        if id.is_empty() {
            return Ok(all.iter().map(|worker| self.only(worker)).collect());
        }
        let id: u64 = id.parse().map_err(|_| WORKER_NOT_FOUND)?;
        all.iter().find(|worker| worker["id"] == id).map(|worker| self.only(worker)).ok_or(WORKER_NOT_FOUND)
    }

    /// `NAME/servers/` and `NAME/servers/ID`: the servers of a group, as configured.
    fn servers(&self, path: &str) -> Result<Value, No> {
        let (name, id) = path.rsplit_once("/servers").ok_or(UPSTREAM_NOT_FOUND)?;
        let groups = self.conf.iter().flat_map(|conf| &weir_proxy::declared(conf).upstream.groups);
        let upstream = groups.into_iter().find(|upstream| upstream.name == name).ok_or(UPSTREAM_NOT_FOUND)?;
        let mut servers = upstream.servers();
        match id.trim_matches('/') {
            "" => Ok(Value::Array(servers)),
            id => {
                let id: u64 = id.parse().map_err(|_| No(400, "UpstreamBadServerId", "invalid server id"))?;
                let lacks = No(404, "UpstreamServerNotFound", "server not found");
                let found = servers.iter().position(|server| server["id"] == id);
                found.map(|index| servers.swap_remove(index)).ok_or(lacks)
            }
        }
    }
}

/// The counters that a DELETE sets to zero.
fn reset(snapshot: &Snapshot, version: u32, rest: &str) -> Result<Reset, No> {
    let path = rest.trim_end_matches('/');
    if !is_in(version, path) {
        return Err(PATH_NOT_FOUND);
    }
    match path {
        "connections" => return Ok(Reset::Connections),
        "processes" => return Ok(Reset::Processes),
        "ssl" => return Ok(Reset::Ssl),
        "http/requests" => return Ok(Reset::Requests),
        "workers" => return Ok(Reset::Workers(None)),
        _ => {}
    }
    if let Some(id) = path.strip_prefix("workers/") {
        let found = id.parse().ok().filter(|id| snapshot.workers.iter().any(|worker| worker.id == *id));
        return found.map(|id| Reset::Workers(Some(id))).ok_or(WORKER_NOT_FOUND);
    }
    let (kind, name, no) = kind_of(rest).ok_or(METHOD_DISABLED)?;
    let http = &snapshot.http;
    let has = |name: &str| match kind {
        "http/server_zones" => http.server_zones.contains_key(name),
        "http/location_zones" => http.location_zones.contains_key(name),
        "http/caches" => http.caches.contains_key(name),
        "http/limit_conns" => http.limit_conns.contains_key(name),
        "http/limit_reqs" => http.limit_reqs.contains_key(name),
        "http/upstreams" => http.upstreams.contains_key(name),
        "stream/server_zones" => snapshot.stream.server_zones.contains_key(name),
        "stream/limit_conns" => snapshot.stream.limit_conns.contains_key(name),
        "stream/upstreams" => snapshot.stream.upstreams.contains_key(name),
        _ => false,
    };
    if name.is_empty() || kind == "slabs" {
        return Err(METHOD_DISABLED);
    }
    let name = if has(name) { name } else { name.trim_end_matches('/') };
    if !has(name) {
        return Err(no);
    }
    let name = name.to_owned();
    Ok(match kind {
        "http/server_zones" => Reset::Server(name),
        "http/location_zones" => Reset::Location(name),
        "http/caches" => Reset::Cache(name),
        "http/limit_conns" => Reset::LimitConn(name),
        "http/limit_reqs" => Reset::LimitReq(name),
        "http/upstreams" => Reset::Upstream(name),
        _ => return Err(METHOD_DISABLED),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ask(method: &str, path: &str, query: &str) -> (u16, Value, Option<Reset>) {
        let question =
            Question { method: method.to_owned(), query: query.to_owned(), may_write: true, ..Question::default() };
        let (reply, reset) = reply(&Snapshot::example(), None, &question, path);
        (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default(), reset)
    }

    #[test]
    fn every_endpoint_of_what_there_is_answers() {
        assert_eq!(ask("GET", "", "").1, json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
        let (_, root, _) = ask("GET", "9/", "");
        for name in root.as_array().unwrap() {
            let (status, value, _) = ask("GET", &format!("9/{}", name.as_str().unwrap()), "");
            assert!(status == 200 && !value.is_null(), "{name}");
        }
        let (_, http, _) = ask("GET", "9/http", "");
        for name in http.as_array().unwrap() {
            let (status, value, _) = ask("GET", &format!("9/http/{}/", name.as_str().unwrap()), "");
            assert!(status == 200 && value.is_object(), "{name}");
        }
        assert_eq!(
            ask("GET", "1/", "").1,
            json!(["nginx", "processes", "connections", "slabs", "http", "stream", "ssl"])
        );
        for (path, pointer, expected) in [
            ("9/http/server_zones/shop.example", "/processing", json!(41)),
            ("9/http/location_zones/shop.example/api/", "/requests", json!(16_294)),
            ("9/http/caches/pages", "/hit/responses", json!(17_400)),
            ("9/http/upstreams/app", "/peers/1/state", json!("unavail")),
            ("9/http/upstreams/app/", "/peers/0/id", json!(0)),
            ("9/stream/server_zones/0.0.0.0:5432", "/sessions/total", json!(206)),
            ("9/stream/upstreams/db", "/peers/0/state", json!("up")),
            ("9/stream/limit_conns/", "/db/passed", json!(222)),
            ("9/workers/1", "/connections/accepted", json!(580)),
            ("9/slabs/per_ip", "/pages/used", json!(12)),
            ("weir", "/weir/path/0/step", json!("accept")),
        ] {
            let (status, value, _) = ask("GET", path, "");
            assert_eq!((status, value.pointer(pointer)), (200, Some(&expected)), "{path}");
        }
    }

    #[test]
    fn fields_limit_what_is_said() {
        assert_eq!(ask("GET", "9/nginx", "fields=pid,ppid").1, json!({"pid": 4711, "ppid": 1}));
        assert_eq!(ask("GET", "9/http/caches", "fields=").1, json!(["pages"]));
        assert_eq!(ask("GET", "9/http/caches", "fields=size").1, json!({"pages": {"size": 41_000_000}}));
        assert_eq!(ask("GET", "9/workers", "fields=id").1, json!([{"id": 0}, {"id": 1}]));
    }

    #[test]
    fn a_no_has_plus_code() {
        for (method, path, status, code) in [
            ("GET", "10/nginx", 404, "UnknownVersion"),
            ("GET", "x", 404, "UnknownVersion"),
            ("GET", "9/nothing", 404, "PathNotFound"),
            ("GET", "9/stream/keyvals/", 404, "PathNotFound"),
            ("GET", "9/stream/upstreams/x", 404, "UpstreamNotFound"),
            ("DELETE", "9/stream/upstreams/db", 405, "MethodDisabled"),
            ("GET", "4/resolvers", 404, "PathNotFound"),
            ("GET", "9/http/server_zones/x", 404, "ServerZoneNotFound"),
            ("GET", "9/http/upstreams/x/servers/", 404, "UpstreamNotFound"),
            ("GET", "9/workers/7", 404, "WorkerNotFound"),
            ("POST", "9/http/upstreams/x/servers/", 404, "UpstreamNotFound"),
            ("POST", "9/connections", 405, "MethodDisabled"),
            ("DELETE", "9/nginx", 405, "MethodDisabled"),
            ("DELETE", "9/http/caches/x", 404, "CacheNotFound"),
            ("DELETE", "weir", 405, "MethodDisabled"),
        ] {
            let (got, value, reset) = ask(method, path, "");
            assert_eq!((got, value["error"]["code"].as_str(), reset), (status, Some(code), None), "{method} {path}");
            assert_eq!(value["error"]["status"], status);
        }
    }

    #[test]
    fn a_delete_resets_only_where_writing_is_allowed() {
        assert_eq!(ask("DELETE", "9/http/caches/pages", "").2, Some(Reset::Cache("pages".to_owned())));
        assert_eq!(ask("DELETE", "9/workers/1", "").2, Some(Reset::Workers(Some(1))));
        assert_eq!(ask("DELETE", "9/http/requests", ""), (204, Value::Null, Some(Reset::Requests)));
        let question = Question { method: "DELETE".to_owned(), ..Question::default() };
        let (reply, reset) = reply(&Snapshot::example(), None, &question, "9/connections");
        assert_eq!((reply.status, reset), (405, None));
    }

    mod mutate {
        use super::*;
        /// Any path and query of the API has an answer.
        #[test]
        fn paths() {
            let seeds = [
                "9/http/upstreams/app/?fields=name,peers",
                "9/stream/limit_conns/",
                "1/http/server_zones/shop.example",
                "9/workers/1?fields=",
                "weir",
                "9/http/keyvals/a%20b?key=c",
                "9/slabs/per_ip",
            ];
            let words = [
                "/",
                "?",
                "fields=",
                ",",
                "%2f",
                "%",
                "%00",
                "..",
                "10/",
                "-1",
                "99999999999999999999",
                "http/",
                "é",
                "a",
                "&key=",
            ];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                let text = String::from_utf8_lossy(bytes);
                let (path, query) = text.split_once('?').unwrap_or((&text, ""));
                for method in ["GET", "DELETE", "POST", "OPTIONS"] {
                    let (status, ..) = ask(method, path, query);
                    assert!((200..500).contains(&status), "{status}");
                }
            });
        }
    }
}
