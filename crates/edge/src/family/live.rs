//! `api`, `metrics`: the locations that show the counters of zones.
//!
//! The log phase counts an
//! exchange into its worker's cells. The code that reads the cells is in `crate::live`; `docs/guide/live.md` explains
//! them to users. <https://nginx.org/en/docs/http/ngx_http_api_module.html>

use weir_conf::{At, Statement};
use weir_dash::logs;
use weir_http::exchange::Exchange;
use weir_http::exchange::counting;
use weir_http::exchange::message::Try;
use weir_http::exchange::phase::Next;
use weir_http::hold::board::mishap::Mishap;
use weir_http::hold::board::{self, Leg};
use weir_http::hold::counters;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, LOCATION, NONE};
use weir_http::read::families::{Answering, Family};
use weir_http::text::refusal::Refusal;
use weir_http::text::texts::push_address;
use weir_meter::Step;
use weir_meter::live::{ErrorKind, ErrorSample, Timestamp};
use weir_net::worker::{self, Coalesce};
use weir_net::{Instant, clock};

use crate::canary;
use crate::guard::{self, Deed};
use weir_http::family::variables::push_request_id;

weir_http::settings! {
    /// `api` rather than `metrics` answers here.
    is_api: bool = false,
    /// `write=on`: the API may change the running server.
    may_write: bool = false,
    /// The place of `api write=on`, until its access rules have been checked.
    door: Option<At> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "live",
    &[
        Directive::new(
            "api",
            LOCATION,
            Arity::Between(0, 1),
            "Serves the API of NGINX Plus, versions 1 to 9, and at /weir weir's own API: the live state as JSON. \
             write=on|off.",
            api,
        )
        .default("write=off"),
        Directive::new(
            "metrics",
            LOCATION,
            NONE,
            "weir's own: serves all metrics, for Prometheus and OpenMetrics.",
            |b, _| {
                crate::settings(b).live.is_api = Some(false);
                b.scope().handler = Some(|_| Next::Answer(FAMILY.name));
                Ok(())
            },
        ),
    ],
)
.answer(Answering { answer: |exchange, conn| Box::pin(crate::live::api::answer(exchange, conn)), is_inner: false })
.log(|_, _| true, ended)
.finish(finish);

fn api(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let may_write = match statement.args.first().map(|word| word.text.as_str()) {
        None | Some("write=off") => false,
        Some("write=on") => true,
        Some(other) => {
            return Err(
                Refusal::whole(format!("invalid parameter \"{other}\"")).todo("write either write=on or write=off")
            );
        }
    };
    let at = b.at();
    crate::settings(b).live.may_write = Some(may_write);
    crate::settings(b).live.door = Some(may_write.then_some(at));
    crate::settings(b).live.is_api = Some(true);
    b.scope().handler = Some(|_| Next::Answer(FAMILY.name));
    Ok(())
}

/// Warns of an API that may change the running server and has no access control.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    // Takes the place out, so that inner blocks do not repeat the warning.
    if let Some(Some(at)) = crate::written_mut(scope).live.door.replace(None) {
        guard::warn(b, scope, Deed::Write, at);
    }
}

/// Counts the end of an exchange, and its tries.
fn ended(exchange: &mut Exchange<'_>) {
    let spot = counting::count_tries(exchange);
    if !std::mem::take(&mut exchange.flags.is_counted) {
        tell_tries(exchange);
        return;
    }
    let board = &*exchange.worker.board;
    let cell = board.zone(exchange.location.cell);
    let (status, was_answered) = (exchange.response.status.get(), exchange.bytes.sent > 0);
    if was_answered {
        cell.codes.count(status);
    } else {
        cell.discarded.one();
    }
    cell.received.add(exchange.bytes.request);
    cell.sent.add(exchange.bytes.sent);
    let traffic = exchange.worker.counters().of(exchange.request.version());
    counters::add(&traffic.received, exchange.bytes.request);
    counters::add(&traffic.sent, exchange.bytes.sent);
    if let Some(number) = exchange.cache.zone {
        count_visit(exchange, number);
    }
    // Tunnels and the event streams of dashboard viewers last long, and say nothing about the speed of requests.
    let mut speed = None;
    if exchange.facts.step != Step::Tunnel && !crate::values(exchange.location).dashboard.is_on {
        let took = clock::now().us_since(exchange.facts.started);
        speed = Some(took);
        cell.times.put(spot.or(took));
        if exchange.conf.main.process.coalesce == Coalesce::Auto {
            worker::took(took);
        }
        let of_source = exchange.tries.last().and_then(|last| until_source(last, exchange.facts.started));
        let paced_us = exchange.paced_us();
        // While a rate holds back an answer, its source is not at its end either.
        let before = of_source.unwrap_or(0).max(u64::from(exchange.facts.held_us) + paced_us);
        board.took(Leg::Write, took.saturating_sub(before));
        if paced_us > 0 {
            board.took(Leg::Rate, paced_us);
        }
    }
    let mishap = mishap(exchange, was_answered);
    if exchange.worker.is_split() {
        canary::worker::note(exchange, speed, matches!(mishap, Some(Mishap::Cut)));
    }
    match mishap {
        Some(mishap) => {
            match mishap.kind() {
                ErrorKind::Failed => cell.failed.one(),
                ErrorKind::Refused => cell.refused.one(),
                ErrorKind::Recovered | ErrorKind::Client => {}
            }
            let upstream = exchange.tries.last().map(|last| last.peer.to_string()).unwrap_or_default();
            tell(exchange, mishap, upstream);
        }
        None => tell_tries(exchange),
    }
}

/// The problem of an exchange that ended; `None` for most.
#[inline]
fn mishap(exchange: &Exchange<'_>, was_answered: bool) -> Option<Mishap> {
    let status = exchange.response.status.get();
    let why = || exchange.tries.last().and_then(|last| last.why);
    match exchange.rare().and_then(|rare| rare.refused_by) {
        Some(policy) => Some(Mishap::Refused(policy)),
        None if exchange.flags.is_cut => Some(Mishap::Cut),
        // The configuration closes the connection.
        None if status == 444 => None,
        None if status < 400 && was_answered => None,
        None => Mishap::of_status(status, why()).or_else(|| (!was_answered).then(|| Mishap::Unanswered(why()))),
    }
}

/// Reports tries that failed although the client, if there is one, got an answer.
#[inline]
fn tell_tries(exchange: &Exchange<'_>) {
    for attempt in &*exchange.tries {
        if let Some(why) = attempt.why {
            tell(exchange, Mishap::Tried(why), attempt.peer.to_string());
        }
    }
}

/// Counts the exchange for its cache zone; the cache itself counts its statuses.
fn count_visit(exchange: &Exchange<'_>, zone: usize) {
    let visit = &exchange.cache;
    let Some(path) = weir_proxy::declared(exchange.conf).cache.paths.get(zone) else { return };
    let cell = exchange.worker.board.cache(path.cell);
    cell.requests.one();
    if visit.status.is_none() || exchange.bytes.sent == 0 {
        cell.errors.one();
    }
    if let Some(count) = visit.reason.and_then(|reason| cell.reasons.get(reason as usize)) {
        count.one();
    }
}

/// Microseconds from the start of an exchange to the end of its last peer's response.
#[inline]
fn until_source(last: &Try, began: Instant) -> Option<u64> {
    let (started, response) = (last.started?, last.response_us?);
    // The clock is read once a turn, so most tries start at the same instant as the exchange.
    Some(if started == began { response } else { started.us_since(began) + response })
}

/// Counts a mishap and keeps a sample of it. This happens rarely, or for requests that weir refuses under load.
#[cold]
fn tell(exchange: &Exchange<'_>, mishap: Mishap, upstream: String) {
    let (status, board) = (exchange.response.status.get(), &exchange.worker.board);
    board.mishaps.count(mishap);
    board.sample(|| {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut client = Vec::new();
        push_address(exchange.remote(), &mut client);
        let target = exchange.request.target();
        // The query may hold private data.
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        let path = path.get(..path.len().min(PATH_BYTES_MAX)).unwrap_or_default();
        let sample = ErrorSample {
            at: Timestamp(clock::unix_ms()),
            client: lossy(&client),
            server: exchange.location.zone.server.clone(),
            zone: exchange.location.zone.location.clone().unwrap_or_default(),
            request: format!("{} {}", lossy(exchange.request.method()), lossy(path)),
            status,
            upstream,
            took_us: clock::now().us_since(exchange.facts.started),
            line: board::line_of(exchange.asked()),
            ids: ids(exchange),
            ..ErrorSample::default()
        };
        (mishap, sample)
    });
}

/// Fields in which clients send an id that applications log.
const ID_FIELDS: [&[u8]; 2] = [b"x-request-id", b"x-correlation-id"];

/// The ids by which logs may know an exchange: `$request_id`, its trace, ids from the client.
fn ids(exchange: &Exchange<'_>) -> Vec<String> {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut own = Vec::new();
    push_request_id(exchange, &mut own);
    let mut ids = vec![lossy(&own)];
    // The trace id, after the version in a `traceparent`.
    ids.extend(exchange.trace().and_then(|trace| trace.current.text().get(3..35).map(lossy)));
    let request = &exchange.request;
    for field in request.fields() {
        let (name, value) = (request.text(field.name), request.text(field.value));
        if ids.len() < IDS_MAX && ID_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known)) && logs::is_id(value) {
            ids.push(lossy(value));
        }
    }
    ids
}

/// Ids kept in a sample.
const IDS_MAX: usize = 4;

/// Bytes of a path kept in a sample.
const PATH_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::of_text;

    fn zones(servers: &str) -> Vec<(String, Option<String>)> {
        let (conf, said) = of_text(&format!("events {{}} http {{ {servers} }}"));
        assert!(said.is_empty(), "{said:?}");
        conf.unwrap().locations.into_iter().map(|location| (location.zone.server, location.zone.location)).collect()
    }

    fn named(server: &str, location: Option<&str>) -> (String, Option<String>) {
        (server.to_owned(), location.map(str::to_owned))
    }

    #[test]
    fn zones_have_names_without_being_told() {
        assert_eq!(
            zones(
                "server { listen 81; server_name shop.example www.shop.example;
                    location / { if ($arg_a) { return 204; } }
                    location = / { return 204; } location ~ [.]php$ { return 204; } location @x { return 204; } }
                 server { listen 82; }"
            ),
            [
                named("shop.example", None),
                named("shop.example", Some("shop.example/")),
                named("shop.example", Some("shop.example/")),
                named("shop.example", Some("shop.example = /")),
                named("shop.example", Some("shop.example ~ [.]php$")),
                named("shop.example", Some("shop.example @x")),
                named("0.0.0.0:82", None),
            ]
        );
    }

    #[test]
    fn status_zone_names_merges_and_takes_out() {
        assert_eq!(
            zones(
                "server { listen 81; status_zone all; location /a { status_zone one; location /a/b { } }
                    location /c { status_zone off; } location /d { if ($arg_a) { status_zone two; } } }"
            ),
            [
                named("all", None),
                named("all", Some("one")),
                named("all", Some("one")),
                named("all", None),
                named("all", Some("all/d")),
                named("all", Some("two")),
            ]
        );
        for (text, said_of) in [
            ("server { listen 1; status_zone a; status_zone b; }", "duplicate"),
            ("server { listen 1; location / { api write=maybe; } }", "invalid parameter \"write=maybe\""),
            ("server { listen 1; status_zone \"\"; }", "invalid zone name"),
        ] {
            let (_, said) = of_text(&format!("events {{}} http {{ {text} }}"));
            assert!(said.join("\n").contains(said_of), "{text}: {said:?}");
        }
    }

    #[test]
    fn an_api_that_writes_without_a_guard_is_warned_of_once() {
        for (location, warns) in [
            ("location /a { api write=on; }", 1),
            ("location /a { api write=on; location /a/b { return 200; } if ($arg_a) { return 200; } }", 1),
            ("location /a { api; }", 0),
            ("location /a { api write=on; allow 127.0.0.1; deny all; }", 0),
            ("dashboard_token f; location /a { api write=on; }", 0),
            ("location /a { api write=on; auth_basic x; auth_basic_user_file f; }", 0),
            ("auth_basic x; auth_basic_user_file f; location /a { api write=on; auth_basic off; }", 1),
            ("location /a { api write=on; internal; }", 1),
        ] {
            let (_, said) = of_text(&format!("events {{}} http {{ server {{ listen 1; {location} }} }}"));
            let count = said.iter().filter(|what| what.contains("\"api write=on\" has no access control")).count();
            assert_eq!((count, said.len()), (warns, warns), "{location}: {said:?}");
        }
    }
}
