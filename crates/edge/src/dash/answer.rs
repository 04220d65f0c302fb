//! The answers of a location with `dashboard`.
//!
//! Every client that may reach the location gets the files of the page. For the data it needs the token. Without a
//! token, it needs a client on loopback that also used a loopback name as the host: a page of another site can make a
//! browser send a request, but not under that name.

use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Value, json};
use weir_dash::assets::{self, Asset};
use weir_dash::feed;
use weir_dash::logs::Logs;
use weir_dash::runs;
use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::response_body::{Body, BodyStream, Framing, Sending};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::receive::body::{self, BodyFailed};
use weir_http::send::filtering::PiecePlace;
use weir_http::send::{filtering, writing};
use weir_meter::live::{ErrorClass, Snapshot};
use weir_net::clock;
use weir_wire::Known;
use weir_words::Said;

use crate::dash::hall::{VIEWERS_MAX, Viewer};
use crate::dash::host::LogPlace;
use crate::dash::shelf::{Lines, Want, WantedLog};
use crate::dash::token::{self, Token};
use crate::guard::{self, Deed};
use crate::live::api;
use crate::{canary, purge, recorder};

/// How long a wait lasts before weir checks whether the configuration and the worker are still in force.
const TURN: Duration = Duration::from_secs(1);
/// After this many turns without an event, the stream sends a sign of life.
const QUIET_TURNS: u32 = 10;
/// Addresses of upstreams for which weir looks for a process, at most.
const ORIGINS_MAX: usize = 256;
/// How long a request for the document (sent once) waits for it.
const PATIENCE_MS: u64 = 5000;

/// Answers a request.
pub async fn answer(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<Outcome, Gone> {
    let location = exchange.location;
    let declared = &crate::declared(exchange.conf).dashboard;
    let token = crate::values(location).dashboard.token.as_ref().and_then(|source| declared.token(source));
    if let Some(objection) = guard::objection(exchange, Deed::Look) {
        return Ok(refuse(exchange, objection.status, &format!("{}\n", objection.text)));
    }
    let name = exchange.uri.strip_prefix(location.name.as_bytes()).unwrap_or_default().to_vec();
    let is_get = matches!(exchange.request.method(), b"GET" | b"HEAD");
    if let Some(asset) = assets::find(&name) {
        return Ok(if is_get { file(exchange, asset) } else { method_not_allowed(exchange, b"GET, HEAD") });
    }
    if name == b"token" {
        return sign_in(exchange, conn, token).await;
    }
    let is_server = name.starts_with(b"upstreams/");
    if !is_server
        && !matches!(
            name.as_slice(),
            b"feed"
                | b"doc.json"
                | b"day.json"
                | b"samples.json"
                | b"logs.json"
                | b"runs.json"
                | b"machine.json"
                | b"snapshot.json"
                | b"processes.json"
                | b"configuration.json"
                | b"purge"
                | b"record"
                | b"canary"
        )
    {
        return Ok(Outcome::Status(404));
    }
    if token.is_some_and(|token| !token.is_brought(exchange)) {
        exchange.response.fields.push(b"WWW-Authenticate", b"Bearer realm=\"weir dashboard\"");
        return Ok(refuse(exchange, 401, "send the token as Authorization: Bearer, or open the page and sign in\n"));
    }
    match name.as_slice() {
        _ if is_server && token.is_none() => {
            Ok(refuse(exchange, 403, "changing the servers of upstreams needs a dashboard_token\n"))
        }
        _ if is_server && exchange.request.method() != b"PATCH" => Ok(method_not_allowed(exchange, b"PATCH")),
        name if is_server => {
            let path = format!("9/http/{}", String::from_utf8_lossy(name));
            common(exchange);
            api::change(exchange, conn, path).await
        }
        b"record" if is_get => Ok(recordings(exchange)),
        b"record" if token.is_none() => Ok(refuse(
            exchange,
            403,
            "switching a recording needs a dashboard_token, or a location with \"api write=on\"\n",
        )),
        b"record" => {
            common(exchange);
            api::change(exchange, conn, "weir/record".to_owned()).await
        }
        b"canary" if is_get => Ok(json(exchange, &canary::api::shown(canary::api::state().as_ref()))),
        b"canary" if token.is_none() => Ok(refuse(
            exchange,
            403,
            "changing a canary needs a dashboard_token, or a location with \"api write=on\"\n",
        )),
        b"canary" => {
            common(exchange);
            api::change(exchange, conn, "weir/canary".to_owned()).await
        }
        b"purge" if token.is_none() => Ok(refuse(exchange, 403, "purging needs a dashboard_token\n")),
        b"purge" => {
            common(exchange);
            purge::api::answer(exchange, conn).await
        }
        _ if !is_get => Ok(method_not_allowed(exchange, b"GET, HEAD")),
        b"feed" => Ok(stream(exchange)),
        b"samples.json" => Ok(samples(exchange)),
        b"logs.json" => Ok(logs(exchange).await),
        b"runs.json" => Ok(lab_runs(exchange).await),
        b"snapshot.json" => Ok(snapshot(exchange)),
        b"machine.json" => Ok(json(exchange, &declared.hall().machine())),
        b"configuration.json" => {
            // Any user of the machine may look without a token, so files that not every user may read stay unseen.
            Ok(json(exchange, &declared.hall().configuration(token.is_some())))
        }
        b"processes.json" => Ok(processes(exchange).await),
        b"day.json" => Ok(history(exchange)),
        _ => document(exchange, conn).await,
    }
}

/// The state of the recordings.
fn recordings(exchange: &mut Exchange<'_>) -> Outcome {
    let shown = recorder::api::shown(&recorder::api::all(exchange.conf));
    json(exchange, &shown)
}

/// The history on disk.
fn history(exchange: &mut Exchange<'_>) -> Outcome {
    let (from, to, now) = stretch(exchange.args, clock::unix_ms());
    let points = crate::declared(exchange.conf).dashboard.hall().day(from, to, now);
    text(exchange, 200, b"application/json", serde_json::to_vec(&points).unwrap_or_default())
}

/// The stretch of time that a query names as FROM-TO in milliseconds since 1970, and now; otherwise the last day.
fn stretch(query: &[u8], now: u64) -> (u64, u64, u64) {
    let named = std::str::from_utf8(query).ok().and_then(|text| text.split_once('-'));
    let named = named.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let (from, to) = named.unwrap_or((now.saturating_sub(86_400_000), now));
    (from, to, now)
}

/// The fields of all answers here.
fn common(exchange: &mut Exchange<'_>) {
    let fields = &mut exchange.response.fields;
    fields.push(b"X-Content-Type-Options", b"nosniff");
    fields.push(b"Referrer-Policy", b"no-referrer");
    fields.push(b"Content-Security-Policy", assets::POLICY.as_bytes());
    fields.push(b"Cross-Origin-Resource-Policy", b"same-origin");
}

fn text(exchange: &mut Exchange<'_>, status: u16, media_type: &[u8], bytes: Vec<u8>) -> Outcome {
    common(exchange);
    let response = &mut exchange.response;
    response.status.answer(status);
    response.fields.push_known(b"Cache-Control", b"no-store", Some(Known::CacheControl));
    response.content_type.clear();
    response.content_type.extend_from_slice(media_type);
    response.content_length = Some(bytes.len() as u64);
    response.body = Body::Bytes(bytes);
    Outcome::Respond
}

fn refuse(exchange: &mut Exchange<'_>, status: u16, why: &str) -> Outcome {
    text(exchange, status, b"text/plain", why.as_bytes().to_vec())
}

fn method_not_allowed(exchange: &mut Exchange<'_>, allowed: &[u8]) -> Outcome {
    exchange.response.fields.push(b"Allow", allowed);
    refuse(exchange, 405, "the method is not allowed here; the field Allow names the allowed methods\n")
}

/// A file of the page. A browser keeps its copy and uses the tag to ask whether the copy is still current.
fn file(exchange: &mut Exchange<'_>, asset: &Asset) -> Outcome {
    common(exchange);
    let response = &mut exchange.response;
    response.status.answer(200);
    response.fields.push_known(b"ETag", &asset.etag, Some(Known::Etag));
    response.fields.push_known(b"Cache-Control", b"no-cache", Some(Known::CacheControl));
    response.content_type.clear();
    response.content_type.extend_from_slice(asset.media_type.as_bytes());
    response.content_length = Some(asset.bytes.len() as u64);
    response.body = Body::Bytes(asset.bytes.to_vec());
    Outcome::Respond
}

/// Takes a token and sets a cookie.
async fn sign_in(exchange: &mut Exchange<'_>, conn: &mut Conn, token: Option<&Token>) -> Result<Outcome, Gone> {
    if exchange.request.method() != b"POST" {
        return Ok(method_not_allowed(exchange, b"POST"));
    }
    let bytes = match body::read_small(exchange, conn, token::BYTES_MAX).await {
        Ok(bytes) => bytes,
        Err(BodyFailed::Status(status)) => return Ok(Outcome::Status(status)),
        Err(BodyFailed::Gone(gone)) => return Err(gone),
    };
    let Some(token) = token.filter(|token| token.is(bytes.trim_ascii())) else {
        return Ok(refuse(exchange, 403, "the token is wrong\n"));
    };
    let cookie = token.cookie(&exchange.location.name, exchange.client.shared.is_secure());
    common(exchange);
    let response = &mut exchange.response;
    response.status.answer(204);
    response.fields.push_known(b"Set-Cookie", cookie.as_bytes(), Some(Known::SetCookie));
    response.fields.push_known(b"Cache-Control", b"no-store", Some(Known::CacheControl));
    Ok(Outcome::Respond)
}

fn busy(exchange: &mut Exchange<'_>) -> Outcome {
    refuse(
        exchange,
        503,
        &format!("the dashboard already has {VIEWERS_MAX} viewers, the most it allows: try again later\n"),
    )
}

/// The events.
fn stream(exchange: &mut Exchange<'_>) -> Outcome {
    let Some(viewer) = crate::declared(exchange.conf).dashboard.hall().enter() else { return busy(exchange) };
    common(exchange);
    let response = &mut exchange.response;
    response.status.answer(200);
    response.fields.push_known(b"Cache-Control", b"no-store", Some(Known::CacheControl));
    // A proxy in between must not hold events back.
    response.fields.push(b"X-Accel-Buffering", b"no");
    response.content_type.clear();
    response.content_type.extend_from_slice(b"text/event-stream");
    response.content_length = None;
    response.body = Body::Stream(Box::new(viewer));
    Outcome::Respond
}

/// Everything that the edge knows about itself, as the API gives it.
fn snapshot(exchange: &mut Exchange<'_>) -> Outcome {
    let snapshot = crate::declared(exchange.conf).dashboard.hall().newest();
    match snapshot.and_then(|snapshot| serde_json::to_vec(&*snapshot).ok()) {
        Some(json) => text(exchange, 200, b"application/json", json),
        None => refuse(exchange, 503, "weir has no data yet: try again in a second\n"),
    }
}

/// The samples of one class of errors; the query is the position of the class in the list.
fn samples(exchange: &mut Exchange<'_>) -> Outcome {
    let snapshot = crate::declared(exchange.conf).dashboard.hall().newest();
    let class = snapshot.as_ref().and_then(|snapshot| class_of(exchange, snapshot));
    match class.and_then(|class| serde_json::to_vec(class).ok()) {
        Some(json) => text(exchange, 200, b"application/json", json),
        None => no_class(exchange),
    }
}

fn class_of<'s>(exchange: &Exchange<'_>, snapshot: &'s Snapshot) -> Option<&'s ErrorClass> {
    let place = std::str::from_utf8(exchange.args).ok()?.parse::<usize>().ok()?;
    snapshot.weir.errors.get(place)
}

fn no_class(exchange: &mut Exchange<'_>) -> Outcome {
    refuse(exchange, 404, "no class of errors has this number; the first number is 0\n")
}

/// The samples of one class of errors, and the lines about them in the logs of upstreams.
async fn logs(exchange: &mut Exchange<'_>) -> Outcome {
    let declared = &crate::declared(exchange.conf).dashboard;
    let Some(snapshot) = declared.hall().newest() else { return no_class(exchange) };
    let Some(class) = class_of(exchange, &snapshot) else { return no_class(exchange) };
    let mut wanted = Vec::new();
    for log in &declared.logs {
        let samples = class.samples.iter().filter(|sample| log.is_of(&sample.upstream, &snapshot)).cloned();
        let samples: Vec<_> = samples.collect();
        if samples.is_empty() {
            continue;
        }
        let (name, lines) = match &log.place {
            LogPlace::File(file) => (file.display().to_string(), Lines::File(file.clone())),
            LogPlace::Output(source) => {
                let tail = declared.hall().host.output(source.clone()).await;
                (source.to_string(), Lines::Output(tail.unwrap_or_else(|| Err(too_busy()))))
            }
        };
        wanted.push(WantedLog { name, lines, of: log.upstream.clone().unwrap_or_default(), samples });
    }
    if wanted.is_empty() {
        let none = serde_json::to_vec(&Logs::default().beside(class)).unwrap_or_default();
        return text(exchange, 200, b"application/json", none);
    }
    let class = class.clone();
    shelved(exchange, Want::Logs(class, wanted)).await
}

/// The runs of a lab, or the run that the query names.
async fn lab_runs(exchange: &mut Exchange<'_>) -> Outcome {
    let Some(lab) = crate::declared(exchange.conf).dashboard.lab.clone() else {
        return refuse(
            exchange,
            404,
            "the dashboard shows no lab runs: name their directory with dashboard_lab DIRECTORY;\n",
        );
    };
    let id = String::from_utf8_lossy(exchange.args).into_owned();
    if id.is_empty() {
        return shelved(exchange, Want::Runs(lab)).await;
    }
    if !runs::is_id(&id) {
        return refuse(exchange, 400, "this is not the name of a run: runs.json lists the names\n");
    }
    shelved(exchange, Want::Run(lab, id)).await
}

/// The programs of the machine, those behind the edge first.
async fn processes(exchange: &mut Exchange<'_>) -> Outcome {
    let groups = crate::live::groups(exchange.conf);
    let origins = groups.iter().flat_map(|group| {
        group.addresses.iter().map(|address| (address.to_string(), group.name.clone())).collect::<Vec<_>>()
    });
    let origins: Vec<_> = origins.take(ORIGINS_MAX).collect();
    match crate::declared(exchange.conf).dashboard.hall().host.programs(origins).await {
        Some(programs) => json(exchange, &programs),
        None => refuse(exchange, 503, "weir is busy with other viewers: try again in a second\n"),
    }
}

fn too_busy() -> Said {
    Said::of_both(
        "weir is busy reading other logs: try again in a second",
        "다른 로그를 읽고 있습니다. 잠시 뒤에 다시 시도하세요",
    )
}

fn json(exchange: &mut Exchange<'_>, value: &Value) -> Outcome {
    text(exchange, 200, b"application/json", value.to_string().into_bytes())
}

/// An answer read from files.
async fn shelved(exchange: &mut Exchange<'_>, want: Want) -> Outcome {
    match crate::declared(exchange.conf).dashboard.hall().shelf.ask(want).await {
        Some((status, json)) => text(exchange, status, b"application/json", json),
        None => refuse(exchange, 503, "weir is busy reading files for other viewers: try again in a second\n"),
    }
}

/// The whole document, once.
async fn document(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<Outcome, Gone> {
    if exchange.request.is_head() {
        return Ok(text(exchange, 200, b"application/json", Vec::new()));
    }
    let Some(mut viewer) = crate::declared(exchange.conf).dashboard.hall().enter() else { return Ok(busy(exchange)) };
    let begun = clock::now();
    loop {
        match next(conn, |context| viewer.poll_document(context)).await? {
            Some(bytes) => {
                let mut json = feed::data(&bytes).to_vec();
                json.push(b'\n');
                return Ok(text(exchange, 200, b"application/json", json));
            }
            None if clock::now().ms_since(begun) > PATIENCE_MS => {
                return Ok(refuse(exchange, 503, "weir has no data yet: try again in a second\n"));
            }
            None => {}
        }
    }
}

/// The next event, watching the client meanwhile; `None` after a turn without one.
async fn next(conn: &Conn, mut poll: impl FnMut(&Context<'_>) -> Poll<Arc<[u8]>>) -> Result<Option<Arc<[u8]>>, Gone> {
    conn.deadline.set(TURN);
    poll_fn(|context| {
        if let Poll::Ready(bytes) = poll(context) {
            return Poll::Ready(Ok(Some(bytes)));
        }
        if conn.deadline.poll_expired().is_ready() {
            return Poll::Ready(Ok(None));
        }
        conn.poll_gone().map(|error| Err(Gone::Closed(error)))
    })
    .await
}

impl BodyStream for Viewer {
    fn send<'a, 'e: 'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        framing: Framing,
        head: &'a mut Vec<u8>,
    ) -> Sending<'a> {
        Box::pin(send(exchange, conn, framing, head, *self))
    }
}

/// Sends events until the client goes, the configuration changes, or the worker ends; a browser then reconnects.
async fn send(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    head: &mut Vec<u8>,
    mut viewer: Viewer,
) -> Result<(), Gone> {
    writing::pieces(exchange, conn, &mut [IoSlice::new(head)]).await?;
    // The stream lasts as long as the viewer watches: as with a tunnel, its time is not request time.
    exchange.facts.step = weir_meter::Step::Tunnel;
    // The time after which a browser reconnects.
    event(exchange, conn, framing, head, b"retry: 1000\n\n").await?;
    let may = may(exchange);
    event(exchange, conn, framing, head, format!("event: may\ndata: {may}\n\n").as_bytes()).await?;
    let mut quiet = 0;
    while exchange.worker.goes_on(exchange.generation) {
        match next(conn, |context| viewer.poll_next(context)).await? {
            Some(bytes) => {
                quiet = 0;
                event(exchange, conn, framing, head, &bytes).await?;
            }
            None => {
                quiet += 1;
                if quiet % QUIET_TURNS == 0 {
                    event(exchange, conn, framing, head, b": still here\n\n").await?;
                }
            }
        }
    }
    exchange.flags.keeps_alive = false;
    head.clear();
    if framing == Framing::Chunked {
        head.extend_from_slice(b"0\r\n\r\n");
    }
    writing::pieces(exchange, conn, &mut [IoSlice::new(head)]).await
}

/// The actions that viewers may take besides looking. An action takes a token; if no token is set, viewers without
/// one may not act either.
fn may(exchange: &Exchange<'_>) -> Value {
    let declared = &crate::declared(exchange.conf).dashboard;
    let source = crate::values(exchange.location).dashboard.token.as_ref();
    let has_token = source.is_some_and(|source| declared.token(source).is_some());
    json!({"purge": has_token, "servers": has_token, "lab": declared.lab.is_some()})
}

async fn event(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    framing: Framing,
    out: &mut Vec<u8>,
    bytes: &[u8],
) -> Result<(), Gone> {
    out.clear();
    let place = PiecePlace { last: false, ends: false, flush: true };
    filtering::send(exchange, conn, framing, out, bytes, place, &mut None).await
}
