//! Requests: one step of a flow, from its template to the values captured from the answer (artillery.md §2.1).
//!
//! ```text
//!  probability, ifTrue ─► hooks ─► render ─► client, once per redirect ─► counted ─► capture, hooks, expect
//! ```
//!
//! Constant parts of a request become bytes before the run begins ([`compile`]). A request with hooks of a processor
//! takes a longer way ([`hooks`]).

mod after;
mod compile;
mod hooks;
pub(crate) mod metrics;
mod multipart;
mod outgoing;
mod sockets;

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use weir_meter::Step;
use weir_net::{buffer, clock};
use weir_wire::Known;

use crate::client::h2::NOT_AGREED;
use crate::client::{self, Answer, Call, Error, Origin, Origins, Resolver};
use crate::cookie::{Jar, Rules};
use crate::plan::{Condition, Engine, Plan, Request};
use crate::processor::Params;
use crate::record::Recorder;
use crate::tls::Tls;
use crate::url::{Scheme, Url};
use crate::value::Value;
use crate::vuser::{Failed, Vuser};
use crate::worker::Worker;
use after::Expects;
use compile::{Base, Compiled, Ready, With};
use metrics::{ByEndpoint, Metrics};
use outgoing::Outgoing;
use sockets::Sockets;

/// Most redirects of one step; Artillery's limit.
pub const REDIRECTS_MAX: usize = 10;
/// Time limit of one exchange if the script sets none.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// State that the requests of all virtual users of a worker share.
pub struct Http {
    metrics: Metrics,
    by_endpoint: ByEndpoint,
    expects: Option<Expects>,
    origins: Origins,
    resolver: Resolver,
    base: Option<Base>,
    /// Indexed by the request's number; compiled when a virtual user first reaches the request.
    compiled: Box<[OnceCell<Rc<Compiled>>]>,
    /// `http.pool`: connections that all virtual users share.
    pool: Option<Rc<Sockets>>,
    timeout: Duration,
}

/// State that a virtual user keeps between requests: connections, cookies.
pub struct Session(Rc<Inner>);

struct Inner {
    sockets: OnceCell<Rc<Sockets>>,
    jar: RefCell<Option<Box<Jar>>>,
    rules: Rules,
    /// True if requests send cookies: after the first cookie arrived, or from the start.
    sends_cookies: Cell<bool>,
}

impl Session {
    /// A session without connections or cookies; it accepts cookies by these rules.
    pub fn new(rules: Rules) -> Session {
        Session(Rc::new(Inner {
            sockets: OnceCell::new(),
            jar: RefCell::new(None),
            rules,
            sends_cookies: Cell::new(false),
        }))
    }

    /// The same connections and cookies, for a branch of `parallel`.
    pub fn share(&self) -> Session {
        Session(self.0.clone())
    }

    fn sockets(&self, http: &Http, plan: &Plan) -> Rc<Sockets> {
        match &http.pool {
            Some(pool) => pool.clone(),
            None => self.0.sockets.get_or_init(|| Sockets::new(plan.http.sockets_max.unwrap_or(1))).clone(),
        }
    }

    /// Stores a cookie; false if it cannot be read.
    fn set_cookie(&self, text: &str, host: &str, target: &str) -> bool {
        let (now, rules) = (clock::unix_seconds() as i64, self.0.rules);
        self.0.jar.borrow_mut().get_or_insert_default().set(text, host, target, now, rules).is_ok()
    }

    /// Stores a cookie that a processor sets for a URL; false if it cannot be read.
    pub fn put_cookie(&self, text: &str, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.set_cookie(text, &url.host, &url.target))
    }

    /// The cookies in the form for a processor; undefined if there are none.
    pub fn listed_cookies(&self) -> Value {
        self.0.jar.borrow().as_ref().map_or(Value::Undefined, |jar| jar.list(clock::unix_seconds() as i64))
    }

    /// Forgets the cookies.
    pub fn clear_cookies(&self) {
        self.0.jar.replace(None);
    }

    /// The Cookie field's value.
    fn cookies(&self, outgoing: &Outgoing) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(jar) = &*self.0.jar.borrow() {
            let origin = &outgoing.origin;
            jar.write(origin.scheme, &origin.host, &outgoing.target, clock::unix_seconds() as i64, &mut out);
        }
        out
    }
}

impl Http {
    /// Prepares the state that requests of this plan need.
    pub fn new(plan: &Plan, recorder: &Recorder, tls: &Rc<Tls>) -> Http {
        let origins = Origins::new(tls.clone(), plan.proxies.clone());
        Http {
            metrics: Metrics::new(plan, recorder),
            by_endpoint: ByEndpoint::new(plan),
            expects: plan.plugins.expect.as_ref().map(|options| Expects::new(options, recorder)),
            base: Base::of(&plan.target, &origins),
            origins,
            resolver: Resolver::default(),
            compiled: (0..plan.requests.count()).map(|_| OnceCell::new()).collect(),
            pool: plan.http.pool.map(Sockets::pool),
            timeout: plan.timeout.or(plan.http.timeout).unwrap_or(TIMEOUT),
        }
    }

    /// The origins. Other engines use them too, so that a name is resolved once.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The resolver of the run.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The compiled request.
    fn compiled(&self, worker: &Worker, request: &Request) -> Rc<Compiled> {
        let made = || Rc::new(Compiled::new(self, &worker.plan, request, &worker.recorder));
        match self.compiled.get(request.number.index()) {
            Some(place) => place.get_or_init(made).clone(),
            None => made(),
        }
    }
}

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
    let compiled = worker.http.compiled(&worker, request);
    let mut asked = Asked { request, compiled: &compiled, params: None, endpoint: None, outgoing: None };
    if hooks::has_before(vuser, request) {
        let made = Box::pin(hooks::before(vuser, request, &compiled)).await?;
        asked.params = Some(made.params);
        asked.endpoint = made.endpoint;
    }
    let is_ready = compiled.ready.is_some() && asked.params.is_none() && !vuser.session.0.sends_cookies.get();
    if !is_ready {
        match asked.render(vuser, &worker) {
            Ok(outgoing) => asked.outgoing = Some(outgoing),
            Err(failed) => return Box::pin(refused(vuser, asked, failed)).await,
        }
    }
    exchange(vuser, &worker, asked).await
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
    Ok(expression.value(&|name| vars.by_path(name)).map_or(true, |value| value.is_truthy()))
}

/// Whether and how a request uses HTTP/2.
enum Http2 {
    Never,
    /// If the server agrees.
    Agreed,
    Always,
}

/// A request that is being carried out.
struct Asked<'r> {
    request: &'r Request,
    compiled: &'r Compiled,
    /// `requestParams`, once hooks have seen them.
    params: Option<Params>,
    /// URL and name for the metrics, if hooks changed them.
    endpoint: Option<(String, Option<String>)>,
    /// The rendered request; `None` while the compiled bytes are used.
    outgoing: Option<Box<Outgoing>>,
}

impl Asked<'_> {
    fn render(&mut self, vuser: &Vuser, worker: &Worker) -> Result<Box<Outgoing>, Failed> {
        let with = With { vars: &vuser.vars, functions: &*worker.functions };
        let (http, plan) = (&worker.http, &worker.plan);
        let outgoing = match &mut self.params {
            Some(params) => {
                let hooked = hooks::hooked(vuser, self.request, self.compiled);
                hooks::render(http, plan, (self.request, hooked), params, with)?
            }
            None => self.compiled.render(http, plan, self.request, with)?,
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
            vuser.session.0.sends_cookies.set(true);
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
        vuser.session.0.sends_cookies.get()
            || !self.request.cookies.is_empty()
            || self.params.as_ref().is_some_and(hooks::has_cookies)
    }

    fn ready(&self) -> Option<&Ready> {
        self.compiled.ready.as_ref().filter(|_| self.outgoing.is_none())
    }

    /// Whether the request uses HTTP/2. The step's setting wins over the configuration's. As in Artillery, whose
    /// client uses ALPN, a step's setting applies to `https://` only, and the server may decline.
    fn speaks_http2(&self, always: bool, origin: &Origin) -> Http2 {
        match (self.request.http2, always) {
            (Some(false), _) | (None, false) => Http2::Never,
            (_, true) => Http2::Always,
            (Some(true), false) if origin.scheme == Scheme::Https && !origin.lacks_http2.get() => Http2::Agreed,
            (Some(true), false) => Http2::Never,
        }
    }

    fn follows(&self) -> bool {
        self.outgoing.as_ref().map_or(self.request.follows, |outgoing| outgoing.follows)
    }

    fn decompresses(&self) -> bool {
        self.outgoing.as_ref().map_or(self.request.gzip != Some(false), |outgoing| outgoing.decompress)
    }

    /// The final URL of the request.
    fn url(&self) -> String {
        match (&self.outgoing, self.ready()) {
            (Some(outgoing), _) => outgoing.url(),
            (None, Some(ready)) => {
                format!("{}://{}{}", ready.origin.scheme.name(), ready.origin.authority, ready.target)
            }
            (None, None) => String::new(),
        }
    }
}

/// Counts a request that could not be made.
async fn refused(vuser: &mut Vuser, mut asked: Asked<'_>, failed: Failed) -> Result<(), Failed> {
    if failed.0.starts_with("Invalid URL") {
        return Err(failed);
    }
    let error = Error { name: failed.0, ..Error::named(Step::SendRequest, "") };
    Err(fail(vuser, &mut asked, error).await)
}

/// Sends the request, follows redirects, counts, and handles the last answer.
async fn exchange(vuser: &mut Vuser, worker: &Rc<Worker>, mut asked: Asked<'_>) -> Result<(), Failed> {
    let counts = vuser.scenario.is_some();
    let wants_body = asked.compiled.looks || worker.debug.speaks_http || hooks::has_after(vuser, asked.request);
    let mut hops = 0;
    loop {
        let answer = match send(vuser, worker, &asked, wants_body).await {
            Ok(answer) => answer,
            Err(error) => return Err(Box::pin(fail(vuser, &mut asked, error)).await),
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
            false => outgoing.redirect(answer.status(), location, &worker.http.origins),
        };
        asked.outgoing = Some(outgoing);
        if let Err(name) = next {
            drop(answer);
            return Err(Box::pin(fail(vuser, &mut asked, Error::named(Step::AwaitHead, name))).await);
        }
    }
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 300..=303 | 307 | 308)
}

/// One exchange with the origin.
async fn send(vuser: &Vuser, worker: &Worker, asked: &Asked<'_>, wants_body: bool) -> Result<Answer, Error> {
    let mut lease = None;
    let (origin, method, head, body) = match (&asked.outgoing, asked.ready()) {
        (Some(outgoing), _) => {
            let cookies = if asked.sends_cookies(vuser) { vuser.session.cookies(outgoing) } else { Vec::new() };
            let head = lease.insert(buffer::lease(1024));
            outgoing.write_head(&cookies, head);
            let body = outgoing.body.as_deref().unwrap_or_default();
            (&outgoing.origin, outgoing.method.as_bytes(), head.as_slice(), body)
        }
        (None, Some(ready)) => {
            (&ready.origin, asked.request.method.as_bytes(), ready.head.as_slice(), ready.body.as_slice())
        }
        (None, None) => return Err(Error::named(Step::SendRequest, "ERR_GOT_REQUEST_ERROR")),
    };
    if vuser.scenario.is_some() {
        worker.http.metrics.request(&worker.recorder);
    }
    if worker.debug.speaks_http {
        worker.say_debug(worker.debug.request(&format!("{}://{}", origin.scheme.name(), origin.authority), head, body));
    }
    let sockets = vuser.session.sockets(&worker.http, &worker.plan);
    let timeout = worker.http.timeout;
    let sessions = sockets.sessions(origin);
    let call = Call { origin, method, head, body, wants_body, sessions, timeout, started: None };
    let resolver = &worker.http.resolver;
    match asked.speaks_http2(worker.plan.http.http2, origin) {
        Http2::Never => {}
        Http2::Always => return Box::pin(sockets.line(origin).exchange(&call, resolver)).await,
        Http2::Agreed => match Box::pin(sockets.line(origin).exchange(&call, resolver)).await {
            Err(error) if error.name == NOT_AGREED => origin.lacks_http2.set(true),
            outcome => return outcome,
        },
    }
    let mut permit = sockets.acquire(origin).await;
    client::exchange(&mut permit.kept, &call, resolver).await
}

/// Stores the cookies of an answer; from the first cookie on, requests send cookies.
fn take_cookies(vuser: &Vuser, worker: &Worker, asked: &Asked<'_>, answer: &Answer) {
    if !answer.head.known().contains(Known::SetCookie) {
        return;
    }
    let (origin, target) = match (&asked.outgoing, asked.ready()) {
        (Some(outgoing), _) => (&outgoing.origin, outgoing.target.as_str()),
        (None, Some(ready)) => (&ready.origin, ready.target.as_str()),
        (None, None) => return,
    };
    vuser.session.0.sends_cookies.set(true);
    for (_, value) in answer.fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
        let is_taken = vuser.session.set_cookie(&String::from_utf8_lossy(value), &origin.host, target);
        if !is_taken && vuser.scenario.is_some() {
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

/// Counts a failure, and calls the hooks for it.
async fn fail(vuser: &mut Vuser, asked: &mut Asked<'_>, error: Error) -> Failed {
    let worker = vuser.worker.clone();
    if let Some((status, timings)) = error.answered.as_deref()
        && vuser.scenario.is_some()
    {
        worker.http.metrics.head(&worker.recorder, *status, timings);
    }
    worker.say_debug(worker.debug.error(&error.name));
    hooks::on_error(vuser, asked, &error.name).await;
    if let Some(expects) = worker.http.expects.as_ref().filter(|_| has_plugins(vuser)) {
        expects.error(&worker, &error.name);
    }
    if vuser.scenario.is_some() {
        worker.recorder.failure(error.step, &error.name);
    }
    if has_plugins(vuser)
        && let Some(endpoint) = after::endpoint(vuser, &worker, asked)
    {
        worker.http.by_endpoint.failure(&worker.recorder, &endpoint, &error.name);
    }
    Failed(error.name)
}

/// True for http scenarios. Plugins ignore requests of hooks, and requests between messages of other engines.
fn has_plugins(vuser: &Vuser) -> bool {
    vuser.scenario().is_some_and(|scenario| scenario.engine == Engine::Http)
}

#[cfg(test)]
mod tests;
