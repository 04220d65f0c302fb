//! Walks an exchange through rewrites, the choice of a location, and the handlers of its phases.

use crate::exchange::Exchange;
use crate::exchange::keepalive;
use crate::exchange::phase::{BodyPlace, From, Next, Outcome, Phase, Resume};
use crate::exchange::route;
use crate::family::rewrite::run as rewrite;
use weir_net::log::Level;

/// Walks an exchange through rewrites, location choice and phases, internal redirects included.
pub fn walk(exchange: &mut Exchange<'_>, from: From) -> Outcome {
    go(
        exchange,
        match from {
            From::Server => Jump::Server,
            From::Named(name) => Jump::Named(name),
        },
    )
}

fn go(exchange: &mut Exchange<'_>, mut next: Jump) -> Outcome {
    loop {
        let ended = match next {
            Jump::Server => server_rewrites(exchange).or_else(|| locate(exchange)),
            Jump::Location => locate(exchange),
            Jump::Named(name) => named(exchange, &name),
        };
        if let Some(outcome) = ended {
            return outcome;
        }
        match inside(exchange) {
            Step::Over(outcome) => return outcome,
            Step::Jump(jump) => next = jump,
        }
    }
}

/// Goes on after a `Wait`.
pub fn resume(exchange: &mut Exchange<'_>, resume: Resume) -> Outcome {
    let (from, refused) = match resume {
        Resume::Handler(from, refused) => (from, refused),
        Resume::Status(status) => return Outcome::Status(status),
        Resume::Server => return walk(exchange, From::Server),
        Resume::Location => return over(exchange, inside),
    };
    over(exchange, |exchange| handlers(exchange, from, refused))
}

/// Goes on with this step, and with the walk after it.
fn over(exchange: &mut Exchange<'_>, step: impl FnOnce(&mut Exchange<'_>) -> Step) -> Outcome {
    match step(exchange) {
        Step::Over(outcome) => outcome,
        Step::Jump(jump) => go(exchange, jump),
    }
}

/// Starts again with another URI, as `error_page`, `try_files`, `index` and X-Accel-Redirect do.
pub fn redirect(exchange: &mut Exchange<'_>, uri: Vec<u8>, args: Option<Vec<u8>>) -> Outcome {
    match redirected(exchange, uri, args) {
        Ok(()) => walk(exchange, From::Server),
        Err(outcome) => outcome,
    }
}

enum Jump {
    Server,
    Location,
    Named(String),
}

enum Step {
    Over(Outcome),
    Jump(Jump),
}

/// Counts a change of the URI; `false` if it is one too many. No error page follows then.
fn may_change(exchange: &mut Exchange<'_>) -> bool {
    // nginx: a location that ends the connection does so for the location that answers in its place too.
    exchange.flags.keeps_alive &= keepalive::may_go_on(exchange);
    exchange.facts.redirects_left = exchange.facts.redirects_left.saturating_sub(1);
    exchange.facts.redirects_left > 0
}

fn redirected(exchange: &mut Exchange<'_>, uri: Vec<u8>, args: Option<Vec<u8>>) -> Result<(), Outcome> {
    if !may_change(exchange) {
        let shown = String::from_utf8_lossy(&uri).into_owned();
        exchange.log(
            weir_net::log::Level::Error,
            format_args!("rewrite or internal redirection cycle while internally redirecting to \"{shown}\""),
        );
        return Err(Outcome::Status(500));
    }
    exchange.own.redirect();
    *exchange.uri = uri;
    if let Some(args) = args {
        *exchange.args = args;
    }
    exchange.flags.internal = true;
    exchange.flags.target_is_valid = false;
    exchange.flags.uri_changed = false;
    Ok(())
}

fn server_rewrites(exchange: &mut Exchange<'_>) -> Option<Outcome> {
    let server = exchange.server;
    exchange.enter(server.root);
    for enter in &exchange.location.steps.enter {
        enter(exchange);
    }
    if server.rules.is_empty() {
        return None;
    }
    match rewrite::run(exchange, &server.rules) {
        rewrite::Flow::Continue | rewrite::Flow::Break | rewrite::Flow::Last => None,
        rewrite::Flow::Status(status) => Some(Outcome::Status(status)),
        rewrite::Flow::Respond => Some(Outcome::Respond),
        rewrite::Flow::ReadBody => Some(Outcome::ReadBody(BodyPlace::AsConfigured, Resume::Server)),
    }
}

/// Enters the location of the URI; the outcome if none may answer.
#[inline]
fn locate(exchange: &mut Exchange<'_>) -> Option<Outcome> {
    exchange.flags.looks_up = false;
    let place = match exchange.conf.place(exchange.server, exchange.uri, exchange.slots) {
        Ok(place) => place,
        Err(failed) => {
            exchange.match_failed(&failed);
            return Some(Outcome::Status(500));
        }
    };
    match place {
        route::Place::Here(id) | route::Place::AddSlash(id) => exchange.enter(id),
        route::Place::Nowhere => exchange.enter(exchange.server.root),
    }
    if exchange.location.values.location.internal && !exchange.flags.internal {
        return Some(Outcome::Status(404));
    }
    if crate::receive::body::is_too_large(exchange) {
        // nginx: for a client that waits for `100 Continue`, the 413 is the answer.
        exchange.flags.expectation_met = true;
        return Some(Outcome::Status(413));
    }
    matches!(place, route::Place::AddSlash(_)).then(|| add_slash(exchange))
}

/// nginx: a prefix location that ends in a slash and asks an origin redirects the URI without the slash.
fn add_slash(exchange: &mut Exchange<'_>) -> Outcome {
    let mut location = Vec::with_capacity(exchange.uri.len() + exchange.args.len() + 2);
    weir_wire::escape::escape_uri(exchange.location.name.as_bytes(), &mut location);
    if !exchange.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(exchange.args);
    }
    exchange.response.fields.replace(b"Location", &location, weir_wire::Known::Location);
    exchange.response.own_location = true;
    Outcome::Status(301)
}

/// Enters a named location; the outcome if it may not answer.
fn named(exchange: &mut Exchange<'_>, name: &str) -> Option<Outcome> {
    if !may_change(exchange) {
        exchange.log(
            weir_net::log::Level::Error,
            format_args!("rewrite or internal redirection cycle while redirect to named location \"@{name}\""),
        );
        return Some(Outcome::Status(500));
    }
    if exchange.uri.is_empty() {
        exchange.log(weir_net::log::Level::Error, format_args!("empty URI in redirect to named location \"@{name}\""));
        return Some(Outcome::Status(500));
    }
    let Some(id) = exchange.server.named.get(name) else {
        exchange.log(weir_net::log::Level::Error, format_args!("could not find named location \"@{name}\""));
        return Some(Outcome::Status(500));
    };
    exchange.own.redirect();
    exchange.flags.looks_up = false;
    exchange.flags.internal = true;
    exchange.enter(*id);
    None
}

/// The location's rewrites, then its handlers.
fn inside(exchange: &mut Exchange<'_>) -> Step {
    // nginx: a method outside limit_except's list uses the settings of that block, rewrites included.
    if let Some((methods, other)) = &exchange.location.limit_except
        && !methods.has(exchange.request.method())
    {
        exchange.enter(*other);
    }
    for enter in &exchange.location.steps.enter_location {
        enter(exchange);
    }
    let location = exchange.location;
    if !location.rules.is_empty() {
        match rewrite::run(exchange, &location.rules) {
            rewrite::Flow::Continue | rewrite::Flow::Break => {}
            rewrite::Flow::Last => {
                if !may_change(exchange) {
                    let shown = String::from_utf8_lossy(exchange.uri).into_owned();
                    exchange.log(
                        weir_net::log::Level::Error,
                        format_args!("rewrite or internal redirection cycle while processing \"{shown}\""),
                    );
                    return Step::Over(Outcome::Status(500));
                }
                return Step::Jump(Jump::Location);
            }
            rewrite::Flow::Status(status) => return Step::Over(Outcome::Status(status)),
            rewrite::Flow::Respond => return Step::Over(Outcome::Respond),
            rewrite::Flow::ReadBody => {
                return Step::Over(Outcome::ReadBody(BodyPlace::AsConfigured, Resume::Location));
            }
        }
    }
    handlers(exchange, 0, None)
}

/// Whether the status asks for a password: as a server, or as a proxy.
fn asks_password(status: u16) -> bool {
    matches!(status, 401 | 407)
}

/// The answer to a client whose access is refused. `auth_delay` delays a request for a password, to slow down guessing.
fn refused_with(exchange: &Exchange<'_>, status: u16) -> Outcome {
    let delay = exchange.location.values.core.auth_delay;
    let is_delayed = asks_password(status) && !delay.is_zero();
    if is_delayed { Outcome::Wait(delay, Resume::Status(status)) } else { Outcome::Status(status) }
}

/// The handlers of the location from this one on, then its content. `refused` is the status of a check of access that
/// another check may still outvote.
fn handlers(exchange: &mut Exchange<'_>, from: usize, mut refused: Option<u16>) -> Step {
    let location = exchange.location;
    let satisfy_any = location.values.core.satisfy_any;
    let mut granted = false;
    for (index, (phase, enter)) in location.walk.iter().enumerate().skip(from) {
        // nginx checks the access of the client once, for its own request.
        if *phase == Phase::Access && (granted || exchange.flags.is_subrequest) {
            continue;
        }
        if *phase > Phase::Access
            && let Some(status) = refused.take()
        {
            return Step::Over(refused_with(exchange, status));
        }
        match enter(exchange) {
            Next::Continue => {}
            Next::Allow => {
                if satisfy_any && *phase == Phase::Access {
                    granted = true;
                    refused = None;
                    exchange.response.fields.remove(weir_wire::Known::WwwAuthenticate);
                    exchange.response.fields.remove(weir_wire::Known::ProxyAuthenticate);
                }
            }
            // nginx: of two objections, the one that asks for a password counts.
            Next::Status(status @ (401 | 403 | 407)) if *phase == Phase::Access && satisfy_any => {
                refused = refused.filter(|before| asks_password(*before)).or(Some(status));
            }
            Next::Wait(pause) => return Step::Over(Outcome::Wait(pause, Resume::Handler(index + 1, refused))),
            next @ (Next::ReadBody | Next::ReadBodyToFile | Next::Aside(_) | Next::Ask) => {
                return again(exchange, next, Resume::Handler(index, refused));
            }
            Next::Background(paths) => {
                return Step::Over(Outcome::Background(paths, Resume::Handler(index + 1, refused)));
            }
            Next::Status(status @ (401 | 407)) if *phase == Phase::Access => {
                return Step::Over(refused_with(exchange, status));
            }
            other => return said(exchange, other),
        }
    }
    if let Some(status) = refused {
        return Step::Over(refused_with(exchange, status));
    }
    content(exchange, from)
}

/// The handlers that answer, from this one on. Their numbers follow those of the other handlers.
fn content(exchange: &mut Exchange<'_>, from: usize) -> Step {
    let location = exchange.location;
    let first = location.walk.len();
    // nginx: a handler that declines leaves the request to the handlers of other locations.
    if let Some(handler) = location.handler {
        match handler(exchange) {
            Next::Continue => {}
            Next::Forward => return Step::Over(Outcome::Forward),
            other => return again(exchange, other, Resume::Handler(first, None)),
        }
    }
    if exchange.flags.handler_lost {
        // The file would not be protected by the rules of the `if` that was meant to answer.
        exchange.log(Level::Error, format_args!("no upstream configuration"));
        return Step::Over(Outcome::Status(500));
    }
    for (index, enter) in location.content.iter().enumerate().skip(from.saturating_sub(first)) {
        match enter(exchange) {
            Next::Continue => {}
            other => return again(exchange, other, Resume::Handler(first + index, None)),
        }
    }
    // nginx: a directory without a listing is forbidden, anything else is not found.
    let status = if exchange.uri.ends_with(b"/") { 403 } else { 404 };
    Step::Over(Outcome::Status(status))
}

/// A result after which this handler may be entered again.
fn again(exchange: &mut Exchange<'_>, next: Next, resume: Resume) -> Step {
    match next {
        Next::ReadBody => Step::Over(Outcome::ReadBody(BodyPlace::AsConfigured, resume)),
        Next::ReadBodyToFile => Step::Over(Outcome::ReadBody(BodyPlace::File, resume)),
        Next::Aside(chore) => Step::Over(Outcome::Aside(chore, resume)),
        Next::Ask => Step::Over(Outcome::Ask(resume)),
        other => said(exchange, other),
    }
}

fn said(exchange: &mut Exchange<'_>, next: Next) -> Step {
    match next {
        Next::Continue | Next::Allow => Step::Over(Outcome::Status(404)),
        Next::Status(status) => Step::Over(Outcome::Status(status)),
        Next::Respond => Step::Over(Outcome::Respond),
        Next::Forward => Step::Over(Outcome::Forward),
        Next::Answer(family) => Step::Over(Outcome::Answer(family)),
        // Only handlers of a phase before the content may return the first two; `again` has taken the others.
        Next::Wait(_) | Next::Background(_) | Next::ReadBody | Next::ReadBodyToFile | Next::Aside(_) | Next::Ask => {
            Step::Over(Outcome::Status(500))
        }
        Next::Named(name) => Step::Jump(Jump::Named(name.trim_start_matches('@').to_owned())),
        Next::Redirect { uri, args } => match redirected(exchange, uri, args) {
            Ok(()) => Step::Jump(Jump::Server),
            Err(outcome) => Step::Over(outcome),
        },
    }
}

#[cfg(test)]
mod tests;
