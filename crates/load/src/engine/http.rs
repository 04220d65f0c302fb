//! Requests: one step of a flow, from its template to the values captured from the answer (artillery.md §2.1).
//!
//! ```text
//!  probability, ifTrue ─► hooks ─► render ─► client, once per redirect ─► counted ─► capture, hooks, expect
//! ```
//!
//! Constant parts of a request become bytes before the run begins ([`compile`]). A request with hooks of a processor
//! takes a longer way ([`hooks`]).

mod after;
mod asked;
mod compile;
mod expects;
mod headers;
mod hooks;
pub(crate) mod metrics;
mod multipart;
mod outgoing;
mod phrase;
mod places;
mod response;
pub mod session;
pub mod shared;
mod sockets;

use std::borrow::Cow;
use std::rc::Rc;

use weir_meter::Step;
use weir_net::timer::until;
use weir_net::{Instant, buffer, clock};
use weir_wire::Known;

use crate::client::{self, Answer, Error, IDLE_MAX, NOT_AGREED, Protocol, ReadyRequest};
use crate::failed::Failed;
use crate::plan::{Condition, Plan, Request};
use crate::template::With;
use crate::vuser::Vuser;
use crate::worker::Worker;
use asked::{CurrentRequest, Spoken};
use outgoing::Outgoing;

/// Most redirects of one step; Artillery's limit.
pub const REDIRECTS_MAX: usize = 10;

/// Carries out one request step of the plan.
pub async fn step(vuser: &mut Vuser, request: &Request) -> Result<(), Failed> {
    if request.url.is_none() {
        return Err(Failed(Cow::Borrowed("an URL must be specified")));
    }
    if request.probability.is_some_and(|probability| !is_probable(probability)) {
        return Ok(());
    }
    if let Some(condition) = &request.if_true
        && !Box::pin(holds(vuser, condition)).await?
    {
        return Ok(());
    }
    let worker = vuser.worker.clone();
    let compiled = worker.http.compiled(&worker.plan, &worker.recorder, request);
    let mut asked =
        CurrentRequest { request, compiled: &compiled, params: None, endpoint: None, outgoing: None, urls: Vec::new() };
    if hooks::has_before(vuser, request) {
        let made = Box::pin(hooks::before(vuser, request, &compiled)).await?;
        asked.params = Some(made.params);
        asked.endpoint = made.endpoint;
    }
    let is_ready = compiled.ready.is_some() && asked.params.is_none() && !vuser.session.sends_cookies();
    if !is_ready {
        match asked.render(vuser, &worker) {
            Ok(outgoing) => asked.outgoing = Some(outgoing),
            Err(failed) => return Box::pin(refused(vuser, asked, failed)).await,
        }
    }
    exchange(vuser, &worker, asked).await
}

/// Waits until `due`, and meanwhile closes connections that become too old.
pub async fn think(vuser: &Vuser, due: Instant) {
    let old = clock::precise() + IDLE_MAX;
    if old < due {
        until(old).await;
        vuser.session.close_old(vuser.worker.http.pool.as_ref());
    }
    until(due).await;
}

/// `probability`: 100 always runs the request; in Artillery it runs it in only 99 of 100 cases.
fn is_probable(probability: f64) -> bool {
    probability >= 100.0 || crate::random::unit() * 100.0 < probability
}

/// `ifTrue`: a condition that cannot be evaluated counts as true.
async fn holds(vuser: &mut Vuser, condition: &Condition) -> Result<bool, Failed> {
    let worker = vuser.worker.clone();
    if let Some(processor) = worker.processor.as_ref().filter(|processor| processor.has(&condition.text)) {
        let (_, context) = vuser.context();
        return Ok(processor.if_true(&condition.text, context).await.unwrap_or(true));
    }
    let Some(expression) = &condition.expression else {
        return Ok(true);
    };
    let vars = &vuser.vars;
    Ok(expression.value(&|name| vars.by_name(name).clone()).map_or(true, |value| value.is_truthy()))
}

impl CurrentRequest<'_> {
    fn render(&mut self, vuser: &Vuser, worker: &Worker) -> Result<Box<Outgoing>, Failed> {
        let with = With { vars: &vuser.vars, functions: &*worker.functions };
        let (places, plan) = (&worker.http.places, &worker.plan);
        let outgoing = match &mut self.params {
            Some(params) => {
                let hooked = hooks::hooked(vuser, self.request, self.compiled);
                hooks::render(places, plan, (self.request, hooked), params, with)?
            }
            None => self.compiled.render(places, plan, self.request, with)?,
        };
        self.set_cookies(vuser, plan, &outgoing, with);
        Ok(Box::new(outgoing))
    }

    /// Sets the cookies of `cookie` in the step and in the defaults.
    fn set_cookies(&self, vuser: &Vuser, plan: &Plan, outgoing: &Outgoing, with: With<'_>) {
        let set = |name: &str, value: &str| {
            vuser.session.set_cookie(&format!("{name}={value}"), &outgoing.origin.host, &outgoing.target);
        };
        if !plan.http.cookies.is_empty() {
            vuser.session.send_cookies();
        }
        let own = match &self.params {
            Some(params) => {
                hooks::cookies(params, with).into_iter().for_each(|(name, value)| set(&name, &value));
                None
            }
            None => Some(&self.request.cookies),
        };
        for (name, value) in plan.http.cookies.iter().chain(own.into_iter().flatten()) {
            set(name, &value.text(with.vars, with.functions));
        }
    }

    /// True if the request sends cookies.
    fn sends_cookies(&self, vuser: &Vuser) -> bool {
        vuser.session.sends_cookies()
            || !self.request.cookies.is_empty()
            || self.params.as_ref().is_some_and(hooks::has_cookies)
    }
}

/// Counts a request that could not be made.
async fn refused(vuser: &mut Vuser, mut asked: CurrentRequest<'_>, failed: Failed) -> Result<(), Failed> {
    if failed.0.starts_with("Invalid URL") {
        return Err(failed);
    }
    let error = Error { name: failed.0, ..Error::named(Step::SendRequest, "") };
    Err(after::fail(vuser, &mut asked, error).await)
}

/// Sends the request, follows redirects, counts, and handles the last answer.
async fn exchange(vuser: &mut Vuser, worker: &Rc<Worker>, mut asked: CurrentRequest<'_>) -> Result<(), Failed> {
    let counts = vuser.scenario.is_some();
    let wants_body = asked.compiled.looks || worker.debug.speaks_http || hooks::has_after(vuser, asked.request);
    let mut hops = 0;
    loop {
        let answer = match send(vuser, worker, &asked, wants_body).await {
            Ok(answer) => answer,
            Err(error) => return Err(Box::pin(after::fail(vuser, &mut asked, error)).await),
        };
        take_cookies(vuser, worker, &asked, &answer);
        if worker.debug.speaks_http {
            after::debug(worker, &asked, &answer);
        }
        if counts {
            worker.http.metrics.answer(&worker.recorder, &answer);
            note_latency(vuser, worker, &answer);
        }
        let location = answer.value(Known::Location).filter(|_| asked.follows() && is_redirect(answer.status()));
        let Some(location) = location else {
            return after::look(vuser, worker, asked, answer).await;
        };
        hops += 1;
        let mut outgoing = match asked.outgoing.take() {
            Some(outgoing) => outgoing,
            None => asked.render(vuser, worker)?,
        };
        let next = match hops > REDIRECTS_MAX {
            true => Err("ERR_TOO_MANY_REDIRECTS"),
            false => {
                asked.urls.push(outgoing.url());
                outgoing.redirect(answer.status(), location, &worker.http.places.origins)
            }
        };
        asked.outgoing = Some(outgoing);
        if let Err(name) = next {
            drop(answer);
            return Err(Box::pin(after::fail(vuser, &mut asked, Error::named(Step::AwaitHead, name))).await);
        }
    }
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 300..=303 | 307 | 308)
}

/// One exchange with the origin.
async fn send(vuser: &Vuser, worker: &Worker, asked: &CurrentRequest<'_>, wants_body: bool) -> Result<Answer, Error> {
    let missing = || Error::named(Step::SendRequest, "ERR_GOT_REQUEST_ERROR");
    let (origin, target) = asked.target().ok_or_else(missing)?;
    let mut lease = None;
    let (head, body) = match &asked.outgoing {
        Some(outgoing) => {
            let cookies = if asked.sends_cookies(vuser) { vuser.session.cookies(origin, target) } else { Vec::new() };
            let head = lease.insert(buffer::lease(1024));
            outgoing.write_head(&cookies, head);
            (head.as_slice(), outgoing.body.as_deref().unwrap_or_default())
        }
        None => {
            let ready = asked.ready().ok_or_else(missing)?;
            (ready.head.as_slice(), ready.body.as_slice())
        }
    };
    if vuser.scenario.is_some() {
        worker.http.metrics.request(&worker.recorder);
    }
    if worker.debug.speaks_http {
        worker.say_debug(worker.debug.request(&origin.url(""), head, body));
    }
    let sockets = vuser.session.sockets(worker.http.pool.as_ref(), worker.plan.http.sockets_max);
    let timeout = worker.http.timeout;
    let sessions = sockets.sessions(origin);
    let method = asked.method().as_bytes();
    let call = ReadyRequest { origin, method, head, body, wants_body, sessions, timeout, started: None };
    let resolver = &worker.http.resolver;
    let spoken = asked.speaks(worker.plan.http.protocol, origin);
    let protocol = match spoken {
        Spoken::Http1 => None,
        Spoken::Http2IfAgreed => Some(Protocol::Http2),
        Spoken::Always(protocol) => Some(protocol),
    };
    if let Some(protocol) = protocol {
        let mut resent = 0;
        let outcome = Box::pin(sockets.line(origin, protocol).exchange(&call, resolver, &mut resent)).await;
        if vuser.scenario.is_some() {
            worker.http.metrics.resent(&worker.recorder, resent);
        }
        let has_declined = |error: &Error| matches!(spoken, Spoken::Http2IfAgreed) && error.name == NOT_AGREED;
        if !outcome.as_ref().is_err_and(has_declined) {
            return outcome;
        }
        origin.lacks_http2.set(true);
    }
    let mut permit = sockets.acquire(origin).await;
    client::exchange(&mut permit.kept, &call, resolver).await
}

/// Stores the cookies of an answer; from the first cookie on, requests send cookies.
fn take_cookies(vuser: &Vuser, worker: &Worker, asked: &CurrentRequest<'_>, answer: &Answer) {
    if !answer.head.known().contains(Known::SetCookie) {
        return;
    }
    let Some((origin, target)) = asked.target() else { return };
    // As in Artillery, only the answer that opens the jar is checked.
    let opens = !vuser.session.sends_cookies();
    vuser.session.send_cookies();
    for (_, value) in answer.fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
        let is_taken = vuser.session.set_cookie(&String::from_utf8_lossy(value), &origin.host, target);
        if !is_taken && opens && vuser.scenario.is_some() {
            worker.count_error("cookie_parse_error_invalid_cookie");
        }
    }
}

/// Records weir's two latencies.
fn note_latency(vuser: &mut Vuser, worker: &Worker, answer: &Answer) {
    let timings = &answer.timings;
    let meant = vuser.meant(timings.started);
    worker.recorder.latency(timings.end.saturating_duration_since(meant), timings.service());
}

#[cfg(test)]
mod tests;
