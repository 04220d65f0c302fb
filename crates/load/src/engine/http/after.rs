//! Handles the end of a step, its last answer or its failure: captures, hooks, checks, and the plugins' counts.

use std::borrow::Cow;
use std::rc::Rc;

use weir_meter::Step;
use weir_wire::Known;

use super::asked::CurrentRequest;
use super::expects::{ExpectFormat, Expects};
use super::headers::{header, headers};
use super::hooks;
use super::metrics::Endpoint;
use super::places::with_target;
use crate::capture::{self, CapturedMessage};
use crate::client::{Answer, Error, decode};
use crate::expect::{self, CheckResult};
use crate::failed::Failed;
use crate::plan::{Engine, RequestBody};
use crate::value::Value;
use crate::vuser::Vuser;
use crate::worker::Worker;

/// Handles the final answer.
pub(super) async fn look(
    vuser: &mut Vuser,
    worker: &Rc<Worker>,
    mut asked: CurrentRequest<'_>,
    answer: Answer,
) -> Result<(), Failed> {
    let has_hooks = hooks::has_after(vuser, asked.request);
    if !asked.compiled.looks && !has_hooks && worker.http.expects.is_none() {
        count(vuser, worker, &asked, &answer);
        return Ok(());
    }
    let coding = answer.value(Known::ContentEncoding).filter(|_| asked.decompresses());
    let body = match decode(answer.body(), coding) {
        Ok(body) => body,
        Err(name) => return Err(Box::pin(fail(vuser, &mut asked, Error::named(Step::ReadResponse, name))).await),
    };
    let headers = |name: &str| header(&answer, name);
    let message = CapturedMessage::new(&body, &headers);
    let request = asked.request;
    let taken = (request.captures.is_empty() && request.matches.is_empty())
        || capture::take(
            (&request.captures, &request.matches),
            &message,
            &mut vuser.vars,
            &*worker.functions,
            worker.plan.http.strict_capture,
        );
    if worker.debug.speaks_http {
        let captured = request.captures.iter().map(|capture| {
            let value = vuser.vars.get(capture.slot);
            let text = value.to_json().filter(|_| value.is_object()).unwrap_or_else(|| value.to_text().into_owned());
            (vuser.vars.name(capture.slot).to_owned(), text)
        });
        worker.say_debug(worker.debug.captures(&captured.collect::<Vec<_>>()));
    }
    if has_hooks {
        Box::pin(hooks::after_scenario(vuser, &mut asked, &answer, &body)).await?;
    }
    check(vuser, worker, &asked, &answer, &message)?;
    count(vuser, worker, &asked, &answer);
    if has_hooks {
        Box::pin(hooks::after_request(vuser, &mut asked, &answer, &body)).await?;
    }
    if taken { Ok(()) } else { Err(Failed(Cow::Borrowed("Failed capture or match"))) }
}

/// Prints the parts of an answer that `DEBUG` selects.
pub(super) fn debug(worker: &Worker, asked: &CurrentRequest<'_>, answer: &Answer) {
    let coding = answer.value(Known::ContentEncoding).filter(|_| asked.decompresses());
    let body = decode(answer.body(), coding);
    let body = body.as_deref().unwrap_or(answer.body());
    worker.say_debug(worker.debug.response(answer.status(), answer.fields(), body));
}

/// Counts a failure, and calls the hooks for it.
pub(super) async fn fail(vuser: &mut Vuser, asked: &mut CurrentRequest<'_>, error: Error) -> Failed {
    let worker = vuser.worker.clone();
    if let Some((status, timings)) = error.answered.as_deref()
        && vuser.scenario.is_some()
    {
        worker.http.metrics.head(&worker.recorder, *status, timings);
    }
    worker.say_debug(worker.debug.error(&error.name));
    hooks::on_error(vuser, asked, &error.name).await;
    if let Some(expects) = worker.http.expects.as_ref().filter(|_| has_plugins(vuser)) {
        worker.say(expects.error(&error.name));
    }
    if vuser.scenario.is_some() {
        worker.recorder.failure(error.step, &error.name);
    }
    if has_plugins(vuser)
        && let Some(endpoint) = endpoint(vuser, &worker, asked)
    {
        worker.http.by_endpoint.failure(&worker.recorder, &endpoint, &error.name);
    }
    Failed(error.name)
}

/// True for http scenarios. Plugins ignore requests of hooks, and requests between messages of other engines.
fn has_plugins(vuser: &Vuser) -> bool {
    vuser.scenario().is_some_and(|scenario| scenario.engine == Engine::Http)
}

/// Counts for metrics-by-endpoint and apdex.
fn count(vuser: &Vuser, worker: &Worker, asked: &CurrentRequest<'_>, answer: &Answer) {
    if !has_plugins(vuser) {
        return;
    }
    let http = &worker.http;
    if let Some(endpoint) = endpoint(vuser, worker, asked) {
        let first_byte_ms = http.metrics.first_byte_ms(&answer.timings);
        http.by_endpoint.answer(&worker.recorder, &endpoint, answer, first_byte_ms);
    }
    http.metrics.apdex(&worker.recorder, &answer.timings);
}

/// The metrics of the requested endpoint.
pub(super) fn endpoint(vuser: &Vuser, worker: &Worker, asked: &CurrentRequest<'_>) -> Option<Rc<Endpoint>> {
    let by_endpoint = &worker.http.by_endpoint;
    if by_endpoint.groups && asked.endpoint.is_none() {
        return asked.compiled.endpoint.clone();
    }
    let plan = &worker.plan;
    let (url, name) = match &asked.endpoint {
        Some(endpoint) if by_endpoint.groups => endpoint.clone(),
        _ => (asked.first_url(), name(vuser, worker, asked)),
    };
    by_endpoint.of(&worker.recorder, &plan.target, &with_target(plan, &url), name.as_deref())
}

/// The request's name, rendered.
fn name(vuser: &Vuser, worker: &Worker, asked: &CurrentRequest<'_>) -> Option<String> {
    match &asked.params {
        Some(params) => hooks::written_name(params),
        None => asked.request.name.as_ref().map(|name| name.text(&vuser.vars, &*worker.functions).into_owned()),
    }
}

/// `expect`.
fn check<'m>(
    vuser: &Vuser,
    worker: &Worker,
    asked: &CurrentRequest<'_>,
    answer: &Answer,
    message: &'m CapturedMessage<'m>,
) -> Result<(), Failed> {
    let Some(expects) = worker.http.expects.as_ref().filter(|_| has_plugins(vuser)) else {
        return Ok(());
    };
    let checked = expect::CheckedAnswer::new(answer.status(), message);
    let mut outcomes: Vec<CheckResult> = Vec::with_capacity(asked.request.expect.len());
    for (kind, tree) in &asked.request.expect {
        match expect::check(kind, &tree.value(&vuser.vars, &*worker.functions), &checked) {
            Some(outcome) => outcomes.push(outcome),
            None => worker.say(format!("Expect Plugin: Expectation '{kind}' is not supported")),
        }
    }
    if asked.request.expect.is_empty() && expects.default_200 {
        outcomes.extend(expect::check("statusCode", &Value::Number(200.0), &checked));
    }
    outcomes.iter().for_each(|outcome| expects.count(&worker.recorder, outcome));
    let has_failed = outcomes.iter().any(|outcome| !outcome.ok);
    let shows = match expects.format {
        ExpectFormat::Silent => false,
        ExpectFormat::PrettyError => has_failed,
        ExpectFormat::Pretty | ExpectFormat::Json => true,
    };
    if shows {
        let text = shown(vuser, worker, asked, answer, message, expects, &outcomes);
        if !text.is_empty() {
            worker.say(text.trim_end_matches('\n').to_owned());
        }
    }
    if has_failed && expects.fails {
        let name = name(vuser, worker, asked).filter(|name| expects.only_names && !name.is_empty());
        let what = name.unwrap_or_else(|| asked.first_url());
        return Err(Failed(Cow::Owned(format!("Failed expectations for request {what}"))));
    }
    Ok(())
}

fn shown(
    vuser: &Vuser,
    worker: &Worker,
    asked: &CurrentRequest<'_>,
    answer: &Answer,
    message: &CapturedMessage<'_>,
    expects: &Expects,
    outcomes: &[CheckResult],
) -> String {
    let (url, name) = (asked.first_url(), name(vuser, worker, asked));
    if expects.format == ExpectFormat::Json {
        return expect::json_line(outcomes, name.as_deref(), &url);
    }
    let headers: Vec<(String, String)> =
        headers(answer).iter().map(|(name, value)| (name.to_string(), value.to_text().into_owned())).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let json = match &asked.request.body {
        RequestBody::Json(tree) => Some(tree.value(&vuser.vars, &*worker.functions)),
        _ => None,
    };
    let exchange = expect::Exchange {
        method: &asked.request.method,
        url: &url,
        name: name.as_deref(),
        json: json.as_ref(),
        headers: &headers,
        body: message.text(),
        vars: &vuser.vars,
        is_coloured: expects.is_coloured,
    };
    expect::pretty(outcomes, &exchange)
}
