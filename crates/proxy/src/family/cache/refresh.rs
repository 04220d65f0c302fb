//! Refreshes an object in the background: the client already has its answer, and later clients get the new one.
//!
//! The refresh is an exchange of its own, and writes nothing to the access log (nginx: a background subrequest). If
//! requests are traced, it is a span below the request that caused it.

use weir_cache::reason::Reason;
use weir_cache::store::{Refreshed, Status};
use weir_http::exchange::Exchange;
use weir_http::exchange::background::{Background, NoBackground};
use weir_http::exchange::counting;
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::response_body::Source as _;
use weir_http::exchange::visit::Visit;
use weir_http::family::otel;
use weir_http::hold::conn::Conn;
use weir_net::log::{self, Level};

use crate::family::cache::keep;
use crate::family::upstream::answer::Answer;
use crate::family::upstream::forward;

/// Starts a refresh with `visit`, which leads the flight. If the refresh cannot start, returns `false` and lets another
/// request lead the flight.
pub fn start(exchange: &mut Exchange<'_>, visit: Visit) -> bool {
    let background = match Background::beside(exchange) {
        Ok(background) => background,
        Err(NoBackground::TooMany(_) | NoBackground::NoPlace) => return false,
        Err(NoBackground::Os(error)) => {
            let error = log::Os(&error);
            exchange.log(Level::Error, format_args!("socketpair() failed {error} while refreshing the cache"));
            return false;
        }
    };
    let (location, trace) = (exchange.location.id, otel::behind(exchange));
    let (target_is_valid, uri_was_quoted) = (exchange.flags.target_is_valid, exchange.flags.uri_was_quoted);
    let (uri_changed, internal) = (exchange.flags.uri_changed, exchange.flags.internal);
    background.spawn(exchange.uri.clone(), async move |exchange: &mut Exchange<'_>, conn: &mut Conn| {
        exchange.enter(location);
        (exchange.flags.target_is_valid, exchange.flags.uri_was_quoted) = (target_is_valid, uri_was_quoted);
        (exchange.flags.uri_changed, exchange.flags.internal) = (uri_changed, internal);
        exchange.body = RequestBody::Gone;
        exchange.follow(None, trace);
        *exchange.cache = visit;
        refresh(exchange, conn).await;
    });
    true
}

async fn refresh(exchange: &mut Exchange<'_>, conn: &mut Conn) {
    let values = crate::values(exchange.location);
    let mut source = None;
    match forward::forward(exchange, conn, values, Some(keep::judge), &mut source).await {
        Answer::Response => {
            if let Some(mut source) = source {
                source.discard(exchange).await;
            }
        }
        // Nobody gets this status, but the span reports it.
        Answer::Outcome(Outcome::Status(status)) => exchange.response.status.answer(status),
        Answer::Outcome(_) | Answer::Tunnel(_) | Answer::Gone(_) => {}
    }
    let how = outcome(exchange);
    note(exchange, how);
    otel::refreshed(exchange, how);
    counting::count_tries(exchange);
}

/// The result of the refresh.
fn outcome(exchange: &mut Exchange<'_>) -> Refreshed {
    match (exchange.cache.written.take(), exchange.cache.status) {
        (Some(bytes), _) => Refreshed::Stored(bytes),
        (None, Some(Status::Revalidated)) => Refreshed::Confirmed,
        (None, _) => Refreshed::Failed,
    }
}

/// Counts the refresh apart from the clients' requests, and logs it at level `info`.
fn note(exchange: &mut Exchange<'_>, how: Refreshed) {
    let Some(zone) = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.zone(number)) else {
        return;
    };
    zone.counters().refreshed(how);
    if exchange.logs(Level::Info) {
        let key = String::from_utf8_lossy(&exchange.cache.key.0).into_owned();
        let reason = exchange.cache.reason.map_or("no-answer", Reason::as_str);
        exchange.log(Level::Info, format_args!("cache refreshed \"{key}\" in the background: {reason}"));
    }
}
