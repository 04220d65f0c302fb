//! Takes subrequests through the phases: to the head of their answer, for checks and for exchanges in the background, or
//! to the end of its body, for a body that contains the answer.

use weir_http::exchange::background::{Background, NoBackground};
use weir_http::exchange::phase::{BodyPlace, From, Outcome, Resume};
use weir_http::exchange::request_body::{Reader, RequestBody};
use weir_http::exchange::response_body::{Body, Source as _};
use weir_http::exchange::subrequest::{self, Ask, Child, Stub, Subrequest, Way};
use weir_http::exchange::{Exchange, Parts, Plain};
use weir_http::exchange::{counting, special, walk};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::worker::Worker;
use weir_http::receive::body;
use weir_http::send::respond;
use weir_http::text::slots::SlotStore;
use weir_meter::Step;
use weir_net::log::{self, Level};
use weir_proxy::family::upstream::answer::Answer;
use weir_proxy::family::upstream::source::Source;
use weir_proxy::way;
use weir_wire::BodyLength;

use super::{chores, open};
use crate::family::ALL;
use crate::family::log as access_log;

/// Sends the request that a handler asks for, hands its answer over, then goes on with the walk of `exchange`.
pub async fn ask(exchange: &mut Exchange<'_>, conn: &mut Conn, resume: Resume) -> Result<Outcome, Gone> {
    let Some(ask) = exchange.own.take::<Ask>() else { return Ok(Outcome::Status(500)) };
    let Some(subrequest) = Subrequest::of(exchange, ask.uri, ask.args) else { return Ok(Outcome::Status(500)) };
    let (place, ends) = ((exchange.worker, exchange.generation), (exchange.client, exchange.server));
    let mut parts = Parts::default();
    let mut asked = subrequest.begin(exchange.conf, place, ends, SlotStore::default(), &mut parts);
    subrequest::swap_variables(exchange, &mut asked);
    let outcome = walk::walk(&mut asked, From::Server);
    let result = match head(&mut asked, conn, outcome, None).await {
        Ok(source) => {
            if let Some(mut source) = source {
                source.discard(&mut asked).await;
            }
            (ask.take)(exchange, &mut asked);
            Ok(())
        }
        Err(gone) => {
            // nginx: a subrequest that ends the connection ends the client's request.
            exchange.response.status.answer(asked.response.status.get());
            Err(gone)
        }
    };
    subrequest::swap_variables(exchange, &mut asked);
    log(&mut asked);
    drop(asked);
    result.map(|()| walk::resume(exchange, resume))
}

/// Goes on from an outcome of the phases to the head of a response, which is in the exchange then. Returns the source
/// of its body, if an origin has the body. `stub` takes the place of an error page.
pub async fn head(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    mut outcome: Outcome,
    stub: Option<&Stub>,
) -> Result<Option<Source>, Gone> {
    loop {
        if let (Outcome::Status(_), Some(stub)) = (&outcome, stub) {
            return Ok(stand_in(exchange, stub, true));
        }
        if matches!(outcome, Outcome::Forward)
            && let Some(why) = open::withheld(exchange)
        {
            outcome = Outcome::Status(open::withhold(exchange, why));
        }
        outcome = match outcome {
            Outcome::Respond => return Ok(None),
            Outcome::Status(status @ (408 | 444 | 499)) => {
                exchange.response.status.answer(status);
                return Err(Gone::Cut);
            }
            Outcome::Status(status) => match special::redirect(exchange, status) {
                Some(outcome) => outcome,
                None => {
                    special::page(exchange, status);
                    return Ok(None);
                }
            },
            Outcome::Wait(pause, resume) => match conn.pause(pause).await {
                Some(gone) => return Err(gone),
                None => walk::resume(exchange, resume),
            },
            // weir has read the body already, or does not need it. The place must not ask for it again.
            Outcome::ReadBody(BodyPlace::AsConfigured, resume) => {
                if matches!(exchange.body, RequestBody::Unread) {
                    exchange.body = RequestBody::Gone;
                }
                walk::resume(exchange, resume)
            }
            Outcome::ReadBody(BodyPlace::File, resume) => match body::to_file(exchange) {
                Ok(()) => walk::resume(exchange, resume),
                Err(_) => Outcome::Status(500),
            },
            Outcome::Aside(chore, resume) => Box::pin(chores::run(exchange, chore, resume)).await,
            Outcome::Background(paths, resume) => {
                start_all(exchange, paths);
                walk::resume(exchange, resume)
            }
            Outcome::Ask(resume) => Box::pin(ask(exchange, conn, resume)).await?,
            Outcome::Answer(family) => match ALL.answering(family).filter(|own| own.is_inner) {
                Some(own) => (own.answer)(exchange, conn).await?,
                // Its pages are for clients only.
                None => Outcome::Status(403),
            },
            Outcome::Forward => {
                let mut source = None;
                match way::forward(exchange, conn, &mut source).await {
                    Answer::Response => return Ok(source),
                    Answer::Outcome(outcome) => outcome,
                    Answer::Tunnel(_) => {
                        exchange.log(Level::Error, format_args!("connection upgrade in subrequest"));
                        return Err(Gone::Cut);
                    }
                    Answer::Gone(gone) => return Err(gone),
                }
            }
        };
    }
}

/// Puts the text of a stub in place of a response; only a text that `has_type` is processed further.
fn stand_in(exchange: &mut Exchange<'_>, stub: &Stub, has_type: bool) -> Option<Source> {
    let response = &mut exchange.response;
    response.status.free();
    response.status.answer(200);
    response.header_only = false;
    response.content_type.clear();
    response.content_type.extend_from_slice(if has_type { &stub.content_type } else { &[] });
    response.content_length = Some(stub.text.len() as u64);
    response.body = Body::Bytes(stub.text.clone());
    None
}

/// Lets this worker serve subrequests whose answers become parts of bodies.
pub fn serve(worker: &Worker) {
    subrequest::start_with(worker, |child: Child| {
        child.spawn(async |exchange: &mut Exchange<'_>, conn: &mut Conn, way: Way| {
            let result = part(exchange, conn, &way).await;
            log(exchange);
            result
        });
    });
}

/// Sends the answer of a subrequest as a part of a body.
async fn part(exchange: &mut Exchange<'_>, conn: &mut Conn, way: &Way) -> Result<(), Gone> {
    let mut outcome = walk::walk(exchange, From::Server);
    let had_length = loop {
        let mut source = head(exchange, conn, outcome, way.stub.as_ref()).await?;
        if way.is_whole {
            keep_whole(exchange, way)?;
        }
        let length = exchange.response.content_length;
        match respond::insert(exchange, conn, &mut source).await {
            Ok(None) => break length,
            Ok(Some(status)) => outcome = Outcome::Status(status),
            // nginx: the page goes on if an origin breaks off within a part. The log says so.
            Err(Gone::Cut) if exchange.facts.step == Step::ReadResponse => return Ok(()),
            Err(gone) => {
                if way.pipe.is_too_big() {
                    exchange.log(Level::Error, format_args!("too big subrequest response"));
                }
                return Err(gone);
            }
        }
    };
    match &way.stub {
        Some(stub) if exchange.bytes.body_sent == 0 => {
            // nginx: its filters have passed over an answer that announced its emptiness, and pass over the stub too.
            let mut source = stand_in(exchange, stub, had_length != Some(0));
            respond::insert(exchange, conn, &mut source).await.map(drop)
        }
        Some(_) | None => Ok(()),
    }
}

/// Bounds the memory for an answer that is kept as a whole.
fn keep_whole(exchange: &mut Exchange<'_>, way: &Way) -> Result<(), Gone> {
    let max = exchange.location.values.core.subrequest_buffer;
    if let Some(length) = exchange.response.content_length.filter(|length| *length > max) {
        exchange.log(Level::Error, format_args!("too big subrequest response: {length}"));
        return Err(Gone::Cut);
    }
    way.pipe.keep_whole(usize::try_from(max).unwrap_or(usize::MAX));
    Ok(())
}

/// Sends the exchange, whose answer was sent, on to the location's `post_action`, and again to that of the location in
/// which it ends. Their answers are ignored (nginx: `ngx_http_post_action`).
pub async fn post_action(exchange: &mut Exchange<'_>) {
    let (mut conn, _other) = match Conn::of_nobody(exchange.worker, exchange.client, exchange.conf.generation) {
        Ok(Some(nobody)) => nobody,
        // `take_place` has logged it.
        Ok(None) => return,
        Err(error) => {
            let error = log::Os(&error);
            return exchange.log(Level::Error, format_args!("post_action failed to start {error}"));
        }
    };
    // The client has its answer, so nobody is left for whom an origin could switch protocols.
    exchange.request.is_copy = true;
    // A body that nobody has read is dropped from the client's connection later: it is for nobody.
    if matches!(exchange.body, RequestBody::Unread) {
        exchange.body = RequestBody::Gone;
    }
    while exchange.facts.redirects_left > 1
        && let Some(target) = &exchange.location.values.core.post_action
    {
        // nginx: the status that the client got is still that of the exchange, until the location answers.
        let status = exchange.response.status;
        exchange.response.clear();
        exchange.response.status = status;
        (exchange.flags.in_error_page, exchange.plain) = (false, Plain::No);
        let outcome = match target.strip_prefix('@') {
            Some(name) => walk::walk(exchange, From::Named(name.to_owned())),
            None => walk::redirect(exchange, target.as_bytes().to_vec(), Some(Vec::new())),
        };
        match head(exchange, &mut conn, outcome, None).await {
            Ok(Some(mut source)) => source.discard(exchange).await,
            Ok(None) => {}
            Err(_) => exchange.response.status = status,
        }
    }
}

/// Starts a request to each path in the background, on the server of `exchange`. No client gets the answers. A request
/// that cannot start is logged and left out.
pub fn start_all(exchange: &mut Exchange<'_>, paths: Vec<Vec<u8>>) {
    for path in paths {
        let shown = String::from_utf8_lossy(&path).into_owned();
        match begin(exchange, path) {
            Ok(()) => {}
            Err(NoBackground::TooMany(most)) => exchange.log(
                Level::Error,
                format_args!("{most} background requests are already running, so weir does not send \"{shown}\""),
            ),
            // `take_place` has logged it.
            Err(NoBackground::NoPlace) => {}
            Err(NoBackground::Os(error)) => {
                let error = log::Os(&error);
                exchange.log(Level::Error, format_args!("background request \"{shown}\" failed to start {error}"));
            }
        }
    }
}

fn begin(exchange: &Exchange<'_>, path: Vec<u8>) -> Result<(), NoBackground> {
    let mut background = Background::beside(exchange)?;
    let body = exchange.body.copy().map_err(NoBackground::Os)?;
    if !matches!(body, RequestBody::Gone) {
        background.request.length = Some(BodyLength::Exact(body.length()));
    }
    let trace = exchange.trace().cloned().map(Box::new);
    background.spawn(path, async move |exchange: &mut Exchange<'_>, conn: &mut Conn| {
        exchange.flags.is_subrequest = true;
        exchange.flags.internal = true;
        exchange.follow(None, trace);
        exchange.body = body;
        // Until there is a reader, the walk compares the length of the body with `client_max_body_size`.
        let outcome = walk::walk(exchange, From::Server);
        exchange.reader = Some(Reader::at_end(exchange.body.length()));
        if let Ok(Some(mut source)) = head(exchange, conn, outcome, None).await {
            source.discard(exchange).await;
        }
        log(exchange);
    });
    Ok(())
}

/// Counts and logs a subrequest that has ended.
fn log(exchange: &mut Exchange<'_>) {
    counting::count_tries(exchange);
    if exchange.location.values.core.log_subrequest {
        access_log::log(exchange);
    }
}
