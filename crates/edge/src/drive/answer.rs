//! Turns an outcome of the phases into a response and sends it.

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::{BodyPlace, Outcome, Resume};
use weir_http::exchange::{counting, special, walk};
use weir_http::hold::board::Leg;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::receive::body::{self, BodyFailed};
use weir_http::send::respond;
use weir_net::clock;
use weir_proxy::family::upstream::answer::{Answer, Upgraded};
use weir_proxy::family::upstream::forward;
use weir_proxy::family::upstream::source::Source;
use weir_proxy::family::{cache, slice};
use weir_proxy::way::Way;

use super::chores;
use super::open;
use super::subrequest;
use super::tunnel;
use crate::family::ALL;

/// Turns an outcome into a response and sends it; returns the connection to the upstream if the response
/// switched protocols.
pub async fn answer(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    mut outcome: Outcome,
) -> Result<Option<Box<Upgraded>>, Gone> {
    loop {
        if matches!(outcome, Outcome::Forward)
            && let Some(why) = open::withheld(exchange)
        {
            outcome = Outcome::Status(open::withhold(exchange, why));
        }
        outcome = match outcome {
            Outcome::Respond => match body::skim(exchange) {
                Some(status) => Outcome::Status(status),
                None => match respond::send::<Source>(exchange, conn, &mut None).await? {
                    None => return Ok(None),
                    Some(status) => Outcome::Status(status),
                },
            },
            Outcome::Status(444) => {
                exchange.response.status.answer(444);
                exchange.flags.keeps_alive = false;
                return Err(Gone::Cut);
            }
            Outcome::Status(408) => return Err(Gone::TimedOut),
            Outcome::Status(499) => {
                exchange.response.status.answer(499);
                exchange.flags.keeps_alive = false;
                return Err(Gone::Cut);
            }
            Outcome::Status(status) => match special::redirect(exchange, status) {
                Some(outcome) => outcome,
                None => {
                    special::page(exchange, status);
                    Outcome::Respond
                }
            },
            Outcome::Wait(pause, resume) => {
                let begun = clock::now();
                if let Some(gone) = conn.pause(pause).await {
                    return Err(gone);
                }
                counting::held(exchange, Leg::Queue, begun);
                walk::resume(exchange, resume)
            }
            // Boxed: few exchanges read their body here, and otherwise every exchange would be larger.
            Outcome::ReadBody(place, resume) => Box::pin(read_body(exchange, conn, place, resume)).await?,
            Outcome::Aside(chore, resume) => Box::pin(chores::run(exchange, chore, resume)).await,
            Outcome::Background(paths, resume) => {
                subrequest::start_all(exchange, paths);
                walk::resume(exchange, resume)
            }
            Outcome::Ask(resume) => {
                let begun = clock::now();
                let next = Box::pin(subrequest::ask(exchange, conn, resume)).await?;
                counting::held(exchange, Leg::Auth, begun);
                next
            }
            Outcome::Answer(family) => match ALL.answering(family) {
                Some(own) => (own.answer)(exchange, conn).await?,
                None => Outcome::Status(500),
            },
            Outcome::Forward => {
                let mut source = None;
                let values = weir_proxy::values(exchange.location);
                let answer = match Way::of(values) {
                    // The usual ways, without a stage between.
                    Way::Plain => forward::forward(exchange, conn, values, None, &mut source).await,
                    Way::Cached => cache::forward::forward(exchange, conn, values, &mut source).await,
                    // Boxed: few answers are made of slices.
                    Way::Sliced => Box::pin(slice::forward(exchange, conn, values, &mut source)).await,
                };
                match answer {
                    Answer::Response => match respond::send(exchange, conn, &mut source).await? {
                        None => return Ok(None),
                        Some(status) => Outcome::Status(status),
                    },
                    Answer::Tunnel(upstream) => {
                        return tunnel::open(exchange, conn).await.map(|()| Some(upstream));
                    }
                    Answer::Outcome(outcome) => outcome,
                    Answer::Gone(gone) => return Err(gone),
                }
            }
        };
    }
}

/// Reads the whole body, then goes on with the walk.
async fn read_body(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    place: BodyPlace,
    resume: Resume,
) -> Result<Outcome, Gone> {
    let read = match place {
        BodyPlace::AsConfigured => body::read(exchange, conn).await,
        BodyPlace::File => body::read_to_file(exchange, conn).await,
    };
    match read {
        Ok(()) => Ok(walk::resume(exchange, resume)),
        Err(BodyFailed::Status(status)) => Ok(Outcome::Status(status)),
        Err(BodyFailed::Gone(gone)) => Err(gone),
    }
}
