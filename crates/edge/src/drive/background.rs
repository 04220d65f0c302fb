//! Requests that weir makes in the background for a client's request: they go through the phases like any other, except
//! for the checks of access, and no client gets their answers.

use std::io;

use weir_http::background::{Background, Refused};
use weir_http::conn::Conn;
use weir_http::exchange::Exchange;
use weir_http::phase::{From, Outcome, Place};
use weir_http::request_body::{Reader, RequestBody};
use weir_http::{body, counting, special, walk};
use weir_net::log::{self, Level};
use weir_proxy::family::slice;
use weir_proxy::family::upstream::forward::Answer;
use weir_proxy::relay;
use weir_wire::BodyLength;

use super::{chores, open};
use crate::family::log as access_log;
use crate::purge;

/// Starts a request to each path, on the server of `exchange`. A request that cannot start is logged and left out.
pub fn start(exchange: &mut Exchange<'_>, paths: Vec<Vec<u8>>) {
    for path in paths {
        let shown = String::from_utf8_lossy(&path).into_owned();
        match begin(exchange, path) {
            Ok(()) => {}
            Err(Refused::TooMany(most)) => exchange.log(
                Level::Error,
                format_args!("{most} background requests are already running, so weir does not send \"{shown}\""),
            ),
            // `take_place` has logged it.
            Err(Refused::NoPlace) => {}
            Err(Refused::Os(error)) => {
                let error = log::Os(&error);
                exchange.log(Level::Error, format_args!("background request \"{shown}\" failed to start {error}"));
            }
        }
    }
}

fn begin(exchange: &Exchange<'_>, path: Vec<u8>) -> Result<(), Refused> {
    let mut background = Background::beside(exchange)?;
    let body = copy_of(&exchange.body).map_err(Refused::Os)?;
    if !matches!(body, RequestBody::Gone) {
        background.request.length = Some(BodyLength::Exact(body.length()));
    }
    let trace = exchange.trace.clone();
    background.spawn(path, async move |exchange: &mut Exchange<'_>, conn: &mut Conn| {
        exchange.is_background = true;
        exchange.internal = true;
        exchange.trace = trace;
        exchange.body = body;
        // Until there is a reader, the walk compares the length of the body with `client_max_body_size`.
        let outcome = walk::walk(exchange, From::Server);
        exchange.reader = Some(Reader::at_end(exchange.body.length()));
        finish(exchange, conn, outcome).await;
        counting::count_tries(exchange);
        if exchange.location.values.core.log_subrequest {
            access_log::log(exchange);
        }
    });
    Ok(())
}

/// The same body for another exchange, none if it was not read. The first exchange removes the file of a body; the
/// second one reads it through a descriptor of its own.
fn copy_of(body: &RequestBody) -> io::Result<RequestBody> {
    Ok(match body {
        RequestBody::Unread | RequestBody::Gone => RequestBody::Gone,
        RequestBody::Memory(bytes) => RequestBody::Memory(bytes.clone()),
        RequestBody::File { file, path, length, remove: _ } => {
            RequestBody::File { file: file.try_clone()?, path: path.clone(), length: *length, remove: false }
        }
    })
}

/// Goes on from an outcome of the phases to a response, and drops the response.
async fn finish(exchange: &mut Exchange<'_>, conn: &mut Conn, mut outcome: Outcome) {
    loop {
        if matches!(outcome, Outcome::Forward)
            && let Some(why) = open::withheld(exchange)
        {
            outcome = Outcome::Status(open::withhold(exchange, why));
        }
        outcome = match outcome {
            // No client would see a page with counters.
            Outcome::Respond | Outcome::Observe | Outcome::Dashboard => return,
            Outcome::Status(status @ (408 | 444 | 499)) => {
                exchange.response.status = status;
                return;
            }
            Outcome::Status(status) => match special::redirect(exchange, status) {
                Some(outcome) => outcome,
                None => return special::page(exchange, status),
            },
            Outcome::Wait(pause, resume) => match conn.pause(pause).await {
                Some(_) => return,
                None => walk::resume(exchange, resume),
            },
            // weir has read the body already, or does not need it.
            Outcome::ReadBody(Place::AsConfigured, resume) => walk::resume(exchange, resume),
            Outcome::ReadBody(Place::File, resume) => match body::to_file(exchange) {
                Ok(()) => walk::resume(exchange, resume),
                Err(_) => Outcome::Status(500),
            },
            Outcome::Aside(chore, resume) => chores::run(exchange, chore, resume).await,
            Outcome::Background(paths, resume) => {
                start(exchange, paths);
                walk::resume(exchange, resume)
            }
            Outcome::Purge => match purge::api::answer(exchange, conn).await {
                Ok(outcome) => outcome,
                Err(_) => return,
            },
            Outcome::Forward => match slice::forward(exchange, conn).await {
                Answer::Response(source) if exchange.cache.is_filling() => return relay::drain(exchange, source).await,
                Answer::Response(source) => return source.finish_unread(exchange),
                Answer::Outcome(outcome) => outcome,
                Answer::Tunnel(_) | Answer::Gone(_) => return,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_was_not_read_is_not_copied() {
        assert!(matches!(copy_of(&RequestBody::Unread), Ok(RequestBody::Gone)));
        assert!(
            matches!(copy_of(&RequestBody::Memory(b"abc".to_vec())), Ok(RequestBody::Memory(bytes)) if bytes == b"abc")
        );
    }
}
