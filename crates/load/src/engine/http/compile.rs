//! Compiles requests of a script: constant parts become bytes before the first request is sent.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use super::metrics::{ByEndpoint, Endpoint};
use super::multipart;
use super::outgoing::{self, Outgoing, OwnFields};
use super::places::{RunOrigins, with_target};
use crate::client::Origin;
use crate::failed::Failed;
use crate::plan::{Plan, Request, RequestBody};
use crate::processor::params::Form;
use crate::random::push_hex;
use crate::record::Recorder;
use crate::template::{Template, TemplateFunctions, With};
use crate::value::Value;
use crate::vars::Vars;

/// Artillery's user-agent if the script sets no default headers.
const ARTILLERY: &str = "Artillery (https://artillery.io)";
/// The user-agent of Artillery's client if default headers are set and contain no user-agent.
const GOT: &str = "got (https://github.com/sindresorhus/got)";

/// A request of the plan, compiled for one worker.
pub(super) struct Compiled {
    fields: Vec<Piece>,
    own: OwnFields,
    /// The whole request, if nothing in it varies.
    pub(super) ready: Option<ReadyBytes>,
    /// The metrics of its endpoint, if they do not depend on the rendered request.
    pub(super) endpoint: Option<Rc<Endpoint>>,
    /// True if a capture, check or plugin reads the body of the answer (hooks aside).
    pub(super) looks: bool,
    /// The parts for requests with hooks; made for the first such request.
    pub(super) hooked: OnceCell<Hooked>,
}

/// The parts that requests with hooks need, made once.
pub(super) struct Hooked {
    /// `requestParams`.
    pub(super) form: Rc<Form>,
    /// Default headers and the step's, merged.
    pub(super) fields: Vec<(String, Template)>,
    /// The same fields as bytes, if nothing in them varies.
    pub(super) literal: Option<(Vec<u8>, OwnFields)>,
}

/// Bytes to send.
pub(super) struct ReadyBytes {
    pub(super) target: String,
    pub(super) origin: Rc<Origin>,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
}

enum Piece {
    Bytes(Vec<u8>),
    Field(String, Template),
}

impl Compiled {
    pub(super) fn new(
        places: &RunOrigins,
        by_endpoint: &ByEndpoint,
        plan: &Plan,
        request: &Request,
        recorder: &Recorder,
    ) -> Compiled {
        let mut own = OwnFields::default();
        let fields = fields(plan, request, &mut own);
        let looks = !request.captures.is_empty() || !request.matches.is_empty() || !request.expect.is_empty();
        let mut compiled = Compiled { fields, own, ready: None, endpoint: None, looks, hooked: OnceCell::new() };
        if by_endpoint.groups {
            let url = written_url(request);
            let url = with_target(plan, &url);
            let name = request.name.as_ref().map(Template::source);
            compiled.endpoint = by_endpoint.of(recorder, &plan.target, &url, name.as_deref());
        }
        if is_constant(plan, request) && compiled.fields.iter().all(|piece| matches!(piece, Piece::Bytes(_))) {
            let vars = Vars::new(plan.names.clone());
            let with = With { vars: &vars, functions: &NoFunctions };
            compiled.ready = compiled.render(places, plan, request, with).ok().map(|outgoing| {
                let mut head = Vec::new();
                outgoing.write_head(b"", &mut head);
                ReadyBytes {
                    target: outgoing.target,
                    origin: outgoing.origin,
                    head,
                    body: outgoing.body.unwrap_or_default(),
                }
            });
        }
        compiled
    }

    /// Renders the request.
    pub(super) fn render(
        &self,
        places: &RunOrigins,
        plan: &Plan,
        request: &Request,
        with: With<'_>,
    ) -> Result<Outgoing, Failed> {
        let Some(url) = &request.url else {
            return Err(Failed(Cow::Borrowed("an URL must be specified")));
        };
        let (origin, mut target, url_authorization) = places.of(plan, &url.text(with.vars, with.functions))?;
        let mut own = self.own;
        let mut fields = Vec::with_capacity(512);
        for piece in &self.fields {
            match piece {
                Piece::Bytes(bytes) => fields.extend_from_slice(bytes),
                Piece::Field(name, template) => render_field(&mut fields, name, template, with)?,
            }
        }
        if let Some((is_sampled, prefix)) = &plan.http.tracing {
            outgoing::push_field(&mut fields, "traceparent", traceparent(*is_sampled, prefix).as_bytes())?;
        }
        let body = body(plan, &request.body, with, &mut fields, &mut own)?;
        refuse_body(&request.method, body.is_some(), request.allow_get_body)?;
        if let Some(query) = &request.query {
            target = outgoing::with_query(&target, &form(&query.value(with.vars, with.functions), true));
        }
        let authorization = match &request.auth {
            _ if own.authorization => None,
            Some((user, pass)) => {
                let text = |template: &Template| template.text(with.vars, with.functions).into_owned();
                Some(outgoing::basic(&text(user), &text(pass)))
            }
            None => url_authorization,
        };
        Ok(Outgoing {
            method: Cow::Owned(request.method.clone()),
            origin,
            target,
            fields,
            own,
            body,
            decompress: request.gzip != Some(false),
            follows: request.follows,
            authorization,
        })
    }
}

/// Refuses GET and HEAD with a body, as Artillery's client does, unless the step has `allowGetBody`.
pub(super) fn refuse_body(method: &str, has_body: bool, allows: bool) -> Result<(), Failed> {
    let is_refused = method == "HEAD" || (method == "GET" && !allows);
    if has_body && is_refused {
        return Err(Failed(Cow::Borrowed("ERR_GOT_REQUEST_ERROR")));
    }
    Ok(())
}

/// The URL as the script wrote it.
pub(super) fn written_url(request: &Request) -> Cow<'_, str> {
    request.url.as_ref().map_or(Cow::Borrowed(""), Template::source)
}

/// Default headers with the step's headers merged in: a step's header replaces a default or is appended. user-agent
/// is first, as the client sends it.
fn merged<'p>(plan: &'p Plan, request: &'p Request) -> Vec<(&'p str, Cow<'p, Template>)> {
    let mut all: Vec<(&str, Cow<'_, Template>)> = Vec::new();
    match &plan.http.headers {
        Some(headers) => all.extend(headers.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value)))),
        None => all.push(("user-agent", Cow::Owned(Template::verbatim(ARTILLERY)))),
    }
    for (name, value) in &request.headers {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some(place) => place.1 = Cow::Borrowed(value),
            None => all.push((name, Cow::Borrowed(value))),
        }
    }
    let agent = all.iter().position(|(name, _)| *name == "user-agent").map(|at| all.remove(at));
    let agent = agent.unwrap_or(("user-agent", Cow::Owned(Template::verbatim(GOT))));
    all.insert(0, agent);
    all
}

impl Hooked {
    /// Makes the parts from this form of `requestParams` and from the fields of the plan.
    pub(super) fn new(plan: &Plan, request: &Request, compiled: &Compiled, form: Rc<Form>) -> Hooked {
        let literal = match compiled.fields.as_slice() {
            [Piece::Bytes(bytes)] if plan.http.tracing.is_none() => Some((bytes.clone(), compiled.own)),
            _ => None,
        };
        let fields = merged(plan, request).into_iter().map(|(name, value)| (name.to_owned(), value.into_owned()));
        Hooked { form, fields: fields.collect(), literal }
    }
}

fn fields(plan: &Plan, request: &Request, own: &mut OwnFields) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (name, value) in merged(plan, request) {
        own.note(name);
        match value.literal() {
            Some(text) => {
                let mut bytes = Vec::new();
                if outgoing::push_field(&mut bytes, name, text.as_bytes()).is_err() {
                    // The error is raised when the request is sent, not before.
                    pieces.push(Piece::Field(name.to_owned(), value.into_owned()));
                } else if let Some(Piece::Bytes(last)) = pieces.last_mut() {
                    last.extend_from_slice(&bytes);
                } else {
                    pieces.push(Piece::Bytes(bytes));
                }
            }
            None => pieces.push(Piece::Field(name.to_owned(), value.into_owned())),
        }
    }
    pieces
}

/// Renders a field; leaves it out if its value is `undefined`.
fn render_field(out: &mut Vec<u8>, name: &str, template: &Template, with: With<'_>) -> Result<(), Failed> {
    let begin = out.len();
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let value_at = out.len();
    if !template.write(with.vars, with.functions, out) {
        out.truncate(begin);
        return Ok(());
    }
    if out.get(value_at..).unwrap_or_default().iter().any(|&byte| byte == 0x7f || (byte < b' ' && byte != b'\t')) {
        return Err(Failed(Cow::Borrowed("ERR_INVALID_CHAR")));
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Renders the body, and its content-type if the script sets none.
fn body(
    plan: &Plan,
    body: &RequestBody,
    with: With<'_>,
    fields: &mut Vec<u8>,
    own: &mut OwnFields,
) -> Result<Option<Vec<u8>>, Failed> {
    let (bytes, kind) = match body {
        RequestBody::None => return Ok(None),
        RequestBody::Json(tree) => {
            if !tree.value(with.vars, with.functions).is_truthy() {
                return Ok(None);
            }
            let mut out = Vec::new();
            tree.write_json(with.vars, with.functions, &mut out);
            (out, Some("application/json".to_owned()))
        }
        RequestBody::Raw(template) => {
            let mut out = Vec::new();
            if !template.write(with.vars, with.functions, &mut out) {
                return Ok(None);
            }
            (out, None)
        }
        RequestBody::Form(pairs) => {
            let mut out = Vec::new();
            for (name, tree) in pairs {
                match tree.value(with.vars, with.functions) {
                    Value::Undefined => {}
                    Value::Null => outgoing::push_form_pair(&mut out, name, ""),
                    value => outgoing::push_form_pair(&mut out, name, &value.to_text()),
                }
            }
            (out, Some("application/x-www-form-urlencoded".to_owned()))
        }
        RequestBody::Multipart { parts, .. } => {
            let (bytes, kind) = multipart::encode(parts, &plan.dir, with)?;
            (bytes, Some(kind))
        }
    };
    if let Some(kind) = kind.filter(|_| !own.content_type) {
        outgoing::push_field(fields, "content-type", kind.as_bytes())?;
        own.content_type = true;
    }
    Ok(Some(bytes))
}

/// An object as `a=1&b=2`; with `repeats` a list repeats its key.
pub(super) fn form(value: &Value, repeats: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let Value::Map(map) = value else {
        return out;
    };
    let text = |value: &Value| match value {
        Value::Undefined | Value::Null | Value::Map(_) => String::new(),
        value => value.to_text().into_owned(),
    };
    for (name, value) in map.iter() {
        match value {
            Value::List(list) if repeats => {
                list.iter().for_each(|item| outgoing::push_form_pair(&mut out, name, &text(item)));
            }
            value => outgoing::push_form_pair(&mut out, name, &text(value)),
        }
    }
    out
}

/// True if nothing varies, apart from header fields, which are checked elsewhere.
fn is_constant(plan: &Plan, request: &Request) -> bool {
    let is_fixed = |template: &Template| template.literal().is_some();
    let body_is_fixed = match &request.body {
        RequestBody::None => true,
        RequestBody::Json(tree) => tree.literal().is_some(),
        RequestBody::Raw(template) => is_fixed(template),
        RequestBody::Form(pairs) => pairs.iter().all(|(_, tree)| tree.literal().is_some()),
        // A multipart body has a new boundary each time.
        RequestBody::Multipart { .. } => false,
    };
    plan.http.tracing.is_none()
        && plan.http.cookies.is_empty()
        && request.cookies.is_empty()
        && body_is_fixed
        && request.url.as_ref().is_some_and(is_fixed)
        && request.query.as_ref().is_none_or(|query| query.literal().is_some())
        && request.auth.as_ref().is_none_or(|(user, pass)| is_fixed(user) && is_fixed(pass))
}

/// W3C Trace Context, as Artillery makes it: the prefix, then random digits.
pub(super) fn traceparent(is_sampled: bool, prefix: &str) -> String {
    let mut trace: String = prefix.to_ascii_lowercase().chars().filter(char::is_ascii_hexdigit).take(8).collect();
    if trace.is_empty() {
        trace.push_str("a9");
    }
    push_hex(&mut trace, 32);
    let mut parent = String::new();
    push_hex(&mut parent, 16);
    format!("00-{trace}-{parent}-0{}", u8::from(is_sampled))
}

struct NoFunctions;

impl TemplateFunctions for NoFunctions {
    fn call(&self, _: &str, _: &[Value]) -> Option<Value> {
        None
    }
}
