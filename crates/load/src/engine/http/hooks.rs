//! Requests that a processor's hooks look at: `requestParams` as a value, and back (artillery.md §1.6).

use std::borrow::Cow;
use std::sync::Arc;

use super::asked::CurrentRequest;
use super::compile::{self, Compiled, Hooked};
use super::outgoing::{self, Outgoing, OwnFields};
use super::places::{RunOrigins, with_target};
use super::response;
use crate::client::Answer;
use crate::failed::Failed;
use crate::plan::{Engine, Plan, Request, RequestBody, Scenario};
use crate::processor::{Form, Params, Processor, member};
use crate::template::{Template, With, render_value};
use crate::value::{Map, Value};
use crate::vuser::Vuser;

/// The scenario, if its engine is http: only this engine calls the hooks of the scenario.
fn scenario(vuser: &Vuser) -> Option<&Scenario> {
    vuser.scenario().filter(|scenario| scenario.engine == Engine::Http)
}

/// True if hooks are called before the request.
pub(super) fn has_before(vuser: &Vuser, request: &Request) -> bool {
    !request.before_request.is_empty() || scenario(vuser).is_some_and(|scenario| !scenario.before_request.is_empty())
}

/// True if hooks are called after the answer.
pub(super) fn has_after(vuser: &Vuser, request: &Request) -> bool {
    !request.after_response.is_empty() || scenario(vuser).is_some_and(|scenario| !scenario.after_response.is_empty())
}

/// The request as the `beforeRequest` hooks left it.
pub(super) struct HookedRequest {
    pub(super) params: Params,
    /// URL and name for metrics-by-endpoint, as the scenario's hooks left them; `None` if they equal the script's.
    pub(super) endpoint: Option<(String, Option<String>)>,
}

/// Calls `beforeRequest` of the scenario, then of the request.
pub(super) async fn before(vuser: &mut Vuser, request: &Request, compiled: &Compiled) -> Result<HookedRequest, Failed> {
    let mut params = params(vuser, request, compiled);
    let plan = vuser.worker.plan.clone();
    let scenario = vuser.scenario.and_then(|index| plan.scenarios.get(index));
    let scenario = scenario.filter(|scenario| scenario.engine == Engine::Http);
    if let Some(scenario) = scenario {
        before_all(vuser, &scenario.before_request, &mut params).await?;
    }
    let mut endpoint = None;
    if params.is_made() {
        let (url, name) = (written_url(&params), written_name(&params));
        let planned = hooked(vuser, request, compiled).form.members();
        let is_same = Some(&*url) == planned.get("url").and_then(Value::as_str)
            && name.as_deref() == request.name.as_ref().map(Template::source).as_deref();
        endpoint = (!is_same).then_some((url, name));
    }
    before_all(vuser, &request.before_request, &mut params).await?;
    Ok(HookedRequest { params, endpoint })
}

async fn before_all(vuser: &mut Vuser, names: &[Template], params: &mut Params) -> Result<(), Failed> {
    for name in names {
        let name = rendered(vuser, name);
        let (worker, context) = vuser.context();
        match found(worker.processor.as_deref(), &name) {
            Some(processor) => processor.before_request(&name, params, context).await?,
            None => worker.say(missing(&name)),
        }
    }
    Ok(())
}

/// Calls `afterResponse` of the scenario.
pub(super) async fn after_scenario(
    vuser: &mut Vuser,
    asked: &mut CurrentRequest<'_>,
    answer: &Answer,
    body: &[u8],
) -> Result<(), Failed> {
    let plan = vuser.worker.plan.clone();
    let scenario = vuser.scenario.and_then(|index| plan.scenarios.get(index));
    match scenario.filter(|scenario| scenario.engine == Engine::Http) {
        Some(scenario) => after_all(vuser, asked, answer, body, &scenario.after_response).await,
        None => Ok(()),
    }
}

/// Calls `afterResponse` of the request.
pub(super) async fn after_request(
    vuser: &mut Vuser,
    asked: &mut CurrentRequest<'_>,
    answer: &Answer,
    body: &[u8],
) -> Result<(), Failed> {
    let names = &asked.request.after_response;
    after_all(vuser, asked, answer, body, names).await
}

async fn after_all(
    vuser: &mut Vuser,
    asked: &mut CurrentRequest<'_>,
    answer: &Answer,
    body: &[u8],
    names: &[Template],
) -> Result<(), Failed> {
    if names.is_empty() {
        return Ok(());
    }
    let params = final_params(vuser, asked);
    let response = response::of(asked, answer, body, &params);
    for name in names {
        let name = rendered(vuser, name);
        let (worker, context) = vuser.context();
        match found(worker.processor.as_deref(), &name) {
            Some(processor) => processor.after_response(&name, &params, &response, context).await?,
            None => worker.say(missing(&name)),
        }
    }
    Ok(())
}

/// Calls `onError` of the scenario; ignores a function that does not exist.
pub(super) async fn on_error(vuser: &mut Vuser, asked: &CurrentRequest<'_>, error: &str) {
    let plan = vuser.worker.plan.clone();
    let Some(scenario) = vuser.scenario.and_then(|index| plan.scenarios.get(index)) else {
        return;
    };
    if scenario.on_error.is_empty() || scenario.engine != Engine::Http {
        return;
    }
    let params = final_params(vuser, asked);
    for name in &scenario.on_error {
        let name = rendered(vuser, name);
        let (worker, context) = vuser.context();
        if let Some(processor) = found(worker.processor.as_deref(), &name) {
            processor.on_error(&name, error, &params, context).await;
        }
    }
}

fn rendered<'t>(vuser: &Vuser, name: &'t Template) -> Cow<'t, str> {
    match name.literal() {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(name.text(&vuser.vars, &*vuser.worker.functions).into_owned()),
    }
}

fn found<'p>(processor: Option<&'p Processor>, name: &str) -> Option<&'p Processor> {
    processor.filter(|processor| processor.has(name))
}

fn missing(name: &str) -> String {
    format!("WARNING: custom function {name} could not be found")
}

/// `requestParams` before the first hook: the step's own keys, not rendered, and a few more.
fn params(vuser: &Vuser, request: &Request, compiled: &Compiled) -> Params {
    Params::new(hooked(vuser, request, compiled).form.clone())
}

/// The parts for requests with hooks, made for the first such request.
pub(super) fn hooked<'c>(vuser: &Vuser, request: &Request, compiled: &'c Compiled) -> &'c Hooked {
    compiled.hooked.get_or_init(|| {
        let plan = &vuser.worker.plan;
        let mut params = match &request.spec {
            Value::Map(map) => (**map).clone(),
            _ => Map::default(),
        };
        let url = compile::written_url(request);
        params.insert("url".into(), Value::from(&*with_target(plan, &url)));
        params.insert("method".into(), Value::from(request.method.as_str()));
        params.insert("timeout".into(), Value::Number(vuser.worker.http.timeout.as_secs_f64()));
        // The key has its place here; the value differs for each request.
        params.insert("uuid".into(), Value::Undefined);
        params.insert("https".into(), Value::from(plan.tls.clone()));
        Hooked::new(plan, request, compiled, Form::new(params))
    })
}

/// `requestParams` after the request, with the URL and headers as they were sent; of redirects, the first URL.
fn final_params(vuser: &Vuser, asked: &CurrentRequest<'_>) -> Value {
    let params = match &asked.params {
        Some(params) => params.value().into_owned(),
        None => params(vuser, asked.request, asked.compiled).value().into_owned(),
    };
    let Value::Map(map) = params else { return params };
    let mut map = Arc::unwrap_or_clone(map);
    map.insert("url".into(), Value::from(&*asked.first_url()));
    if let Some(outgoing) = &asked.outgoing {
        let mut headers = Map::default();
        for line in outgoing.fields.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            if let Some((name, value)) = line.split_once(':') {
                headers.insert(name.into(), Value::from(value.trim()));
            }
        }
        map.insert("headers".into(), Value::from(headers));
    }
    Value::from(map)
}

/// The URL as the hooks left it, not rendered.
fn written_url(params: &Params) -> String {
    let url = params.member("uri").or_else(|| params.member("url"));
    url.map(|url| url.to_text().into_owned()).unwrap_or_default()
}

/// The name as the hooks left it.
pub(super) fn written_name(params: &Params) -> Option<String> {
    params.member("name").map(|name| name.to_text().into_owned())
}

/// True if hooks or the step set cookies.
pub(super) fn has_cookies(params: &Params) -> bool {
    matches!(params.member("cookie"), Some(Value::Map(map)) if !map.is_empty())
}

/// The cookies of the step, after the hooks.
pub(super) fn cookies(params: &Params, with: With<'_>) -> Vec<(String, String)> {
    let Some(Value::Map(map)) = params.member("cookie") else {
        return Vec::new();
    };
    let text = |value: &Value| render_value(value, with.vars, with.functions).to_text().into_owned();
    map.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// Renders the parameters as the hooks left them, with the templates that hooks wrote.
pub(super) fn render(
    places: &RunOrigins,
    plan: &Plan,
    (request, hooked): (&Request, &Hooked),
    params: &mut Params,
    with: With<'_>,
) -> Result<Outgoing, Failed> {
    let chosen = Chosen::of(params);
    let rendered = |value: Option<&Value>| value.map(|value| render_value(value, with.vars, with.functions));
    let method = match rendered(chosen.method) {
        Some(Value::Text(method)) if *method == *request.method => request.method.clone(),
        Some(method) => method.to_text().to_ascii_uppercase(),
        None => request.method.clone(),
    };
    let url = rendered(chosen.uri.or(chosen.url)).unwrap_or_else(|| Value::from(""));
    let (origin, mut target, url_authorization) = places.of(plan, &url.to_text())?;
    let mut own = OwnFields::default();
    let mut fields = fields(plan, hooked, chosen.headers, with, &mut own)?;
    let body = match rendered(chosen.json).filter(Value::is_truthy) {
        Some(json) => {
            push_kind(&mut fields, &mut own, "application/json")?;
            json.to_json().map(String::into_bytes)
        }
        None => match (rendered(chosen.body).filter(Value::is_truthy), rendered(chosen.form), &request.body) {
            (Some(body), ..) => Some(body.to_text().into_owned().into_bytes()),
            (None, Some(form @ Value::Map(_)), _) => {
                push_kind(&mut fields, &mut own, "application/x-www-form-urlencoded")?;
                Some(compile::form(&form, false))
            }
            (None, _, RequestBody::Multipart { parts, .. }) => {
                let (bytes, kind) = super::multipart::encode(parts, &plan.dir, with)?;
                push_kind(&mut fields, &mut own, &kind)?;
                Some(bytes)
            }
            _ => None,
        },
    };
    let allows = rendered(chosen.allow_get_body).map_or(request.allow_get_body, |allows| allows.is_truthy());
    compile::refuse_body(&method, body.is_some(), allows)?;
    if let Some(query) = rendered(chosen.search_params.or(chosen.qs)) {
        let query = match &query {
            Value::Text(text) => text.trim_start_matches('?').as_bytes().to_vec(),
            query => compile::form(query, true),
        };
        target = outgoing::with_query(&target, &query);
    }
    let authorization = match rendered(chosen.auth) {
        _ if own.authorization => None,
        Some(auth) => {
            let part = |name: &str| member(&auth, name).map(|part| part.to_text().into_owned()).unwrap_or_default();
            Some(outgoing::basic(&part("user"), &part("pass")))
        }
        None => url_authorization,
    };
    let flag = |value: Option<&Value>, default: bool| match rendered(value) {
        Some(Value::Bool(flag)) => flag,
        _ => default,
    };
    let decompress = flag(chosen.decompress, request.gzip != Some(false));
    let follows = flag(chosen.follow_redirect, request.follows);
    if let Some(name) = rendered(chosen.name).filter(|name| chosen.name != Some(name)) {
        params.set("name", name);
    }
    Ok(Outgoing { method: Cow::Owned(method), origin, target, fields, own, body, decompress, follows, authorization })
}

/// The parameters from which the request is made, found in one pass.
#[derive(Default)]
struct Chosen<'p> {
    method: Option<&'p Value>,
    uri: Option<&'p Value>,
    url: Option<&'p Value>,
    headers: Option<&'p Value>,
    json: Option<&'p Value>,
    body: Option<&'p Value>,
    form: Option<&'p Value>,
    allow_get_body: Option<&'p Value>,
    search_params: Option<&'p Value>,
    qs: Option<&'p Value>,
    auth: Option<&'p Value>,
    decompress: Option<&'p Value>,
    follow_redirect: Option<&'p Value>,
    name: Option<&'p Value>,
}

impl<'p> Chosen<'p> {
    fn of(params: &'p Params) -> Chosen<'p> {
        let mut chosen = Chosen::default();
        for (name, value) in params.members() {
            let place = match name {
                "method" => &mut chosen.method,
                "uri" => &mut chosen.uri,
                "url" => &mut chosen.url,
                "headers" => &mut chosen.headers,
                "json" => &mut chosen.json,
                "body" => &mut chosen.body,
                "form" => &mut chosen.form,
                "allowGetBody" => &mut chosen.allow_get_body,
                "searchParams" => &mut chosen.search_params,
                "qs" => &mut chosen.qs,
                "auth" => &mut chosen.auth,
                "decompress" => &mut chosen.decompress,
                "followRedirect" => &mut chosen.follow_redirect,
                "name" => &mut chosen.name,
                _ => continue,
            };
            *place = Some(value).filter(|value| !matches!(value, Value::Undefined | Value::Null));
        }
        chosen
    }
}

fn push_kind(fields: &mut Vec<u8>, own: &mut OwnFields, kind: &str) -> Result<(), Failed> {
    if !own.content_type {
        own.content_type = true;
        outgoing::push_field(fields, "content-type", kind.as_bytes())?;
    }
    Ok(())
}

/// Default headers, the step's headers, and the headers that hooks set; names in lower case.
fn fields(
    plan: &Plan,
    hooked: &Hooked,
    set: Option<&Value>,
    with: With<'_>,
    own: &mut OwnFields,
) -> Result<Vec<u8>, Failed> {
    let set_map = match set {
        Some(Value::Map(map)) => Some(&**map),
        _ => None,
    };
    if let Some((bytes, known)) = hooked.literal.as_ref().filter(|_| set_map.is_none_or(|map| is_new(hooked, map))) {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(bytes);
        *own = *known;
        for (name, value) in set_map.into_iter().flatten() {
            let value = render_value(value, with.vars, with.functions);
            if value != Value::Undefined {
                let name = lower(name);
                own.note(&name);
                outgoing::push_field(&mut out, &name, value.to_text().as_bytes())?;
            }
        }
        return Ok(out);
    }
    let written = hooked.fields.iter().map(|(name, value)| (Cow::Borrowed(&**name), Text::Written(value)));
    let mut all: Vec<(Cow<'_, str>, Text<'_>)> = written.collect();
    if let Some(map) = set_map {
        for (name, value) in map {
            let value = Text::Made(render_value(value, with.vars, with.functions));
            match all.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some(place) => place.1 = value,
                None => all.push((lower(name), value)),
            }
        }
    }
    if let Some((is_sampled, prefix)) = &plan.http.tracing {
        let parent = compile::traceparent(*is_sampled, prefix);
        all.push((Cow::Borrowed("traceparent"), Text::Made(Value::from(parent))));
    }
    let mut out = Vec::with_capacity(512);
    for (name, text) in &all {
        let value = match text {
            Text::Written(template) => match template.literal() {
                Some(literal) => Cow::Borrowed(literal),
                None => match template.value(with.vars, with.functions) {
                    Value::Undefined => continue,
                    value => Cow::Owned(value.to_text().into_owned()),
                },
            },
            Text::Made(Value::Undefined) => continue,
            Text::Made(value) => value.to_text(),
        };
        own.note(name);
        outgoing::push_field(&mut out, name, value.as_bytes())?;
    }
    Ok(out)
}

/// True if no field of `set` has the name of a known field or of another field of `set`.
fn is_new(hooked: &Hooked, set: &Map) -> bool {
    set.keys().enumerate().all(|(at, name)| {
        !hooked.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
            && !set.keys().take(at).any(|earlier| earlier.eq_ignore_ascii_case(name))
    })
}

/// A field's value.
enum Text<'t> {
    /// As the plan wrote it.
    Written(&'t Template),
    /// Rendered.
    Made(Value),
}

fn lower(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}
