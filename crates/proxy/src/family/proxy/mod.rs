//! `proxy_pass` and its family: passes requests to another server.
//!
//! This file has the directives and their compiled form; `request` composes the request, `response` reads the answer,
//! `rewrite` changes Location, Refresh and cookies. The tries themselves are in `upstream::forward`.
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html>

pub mod buffers;
pub mod hidden;
pub mod pass;
pub mod request;
pub mod response;
pub mod rewrite;
pub mod shared;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_conf::{At, Statement};
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::phase::Next;
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::variable::Variable;
use weir_http::read::authority::split_host_port;
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, LIMIT_EXCEPT, LOCATION, LOCATION_IF, ONE, join};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::Local;
use weir_peers::retry::Conditions;
use weir_wire::{BodyLength, Known, Version};

use crate::family::proxy::pass::{Pass, Scheme, parse_url};
use crate::family::proxy::shared::{heads, passing, set_header, talking};
use crate::family::upstream::HttpParts;
use crate::protocol::Protocol;

weir_http::settings! {
    /// `proxy_pass`.
    pass: Option<Arc<Pass>> = None,
    /// The text of `proxy_pass` is made of the request's body: weir reads the body first.
    pass_reads_body: bool = false,
    /// `proxy_connect_timeout`.
    connect_timeout: Duration = Duration::from_secs(60),
    /// `proxy_send_timeout`.
    send_timeout: Duration = Duration::from_secs(60),
    /// `proxy_read_timeout`.
    read_timeout: Duration = Duration::from_secs(60),
    /// `proxy_buffering`.
    buffering: bool = true,
    /// `proxy_request_buffering`.
    request_buffering: bool = true,
    /// `proxy_buffer_size`: the room for the head of an answer.
    buffer_size: u64 = 16 << 10,
    /// `proxy_buffers`: the memory for the rest of an answer to a slow client.
    buffers: (u32, u64) = (8, 32 << 10),
    /// `proxy_busy_buffers_size`, which has no effect.
    busy_buffers: u64 = 0,
    /// `proxy_temp_file_write_size`, which has no effect.
    temp_file_write: u64 = 0,
    /// `proxy_max_temp_file_size`, 0 for no file; `None` where it is not set.
    max_temp_file: Option<u64> = None,
    /// `proxy_temp_path`.
    temp_path: Option<String> = None,
    /// `proxy_limit_rate`: bytes a second read from an upstream, 0 for no limit.
    limit_rate: Option<Template> = None,
    /// `proxy_http_version`.
    version: Version = Version::Http11,
    /// The protocol, compiled from the settings.
    protocol: Protocol = Protocol::Http1,
    /// `proxy_pass_trailers`.
    pass_trailers: bool = false,
    /// `proxy_method`.
    method: Option<Template> = None,
    /// `proxy_set_body`.
    set_body: Option<Template> = None,
    /// `proxy_pass_request_headers`.
    pass_headers: bool = true,
    /// `proxy_pass_request_body`.
    pass_body: bool = true,
    /// `proxy_set_header`, as written.
    set_headers: Vec<(String, Template)> = Vec::new(),
    /// The request fields, compiled from the settings above.
    plan: Arc<request::Plan> = Arc::default(),
    /// `proxy_hide_header`.
    hide: Vec<String> = Vec::new(),
    /// `proxy_pass_header`.
    show: Vec<String> = Vec::new(),
    /// The response fields that are not passed on, compiled from the two settings above.
    hidden: Arc<hidden::Hidden> = Arc::default(),
    /// `proxy_ignore_headers`.
    ignore: Ignored = Ignored(0),
    /// `proxy_intercept_errors`.
    intercept_errors: bool = false,
    /// `proxy_redirect`.
    redirect: rewrite::Redirects = rewrite::Redirects::Default,
    /// `proxy_cookie_domain`.
    cookie_domain: Vec<rewrite::Change> = Vec::new(),
    /// `proxy_cookie_path`.
    cookie_path: Vec<rewrite::Change> = Vec::new(),
    /// `proxy_cookie_flags`.
    cookie_flags: Vec<rewrite::CookieFlags> = Vec::new(),
    /// `proxy_next_upstream`.
    next_upstream: Conditions = Conditions::default(),
    /// `proxy_next_upstream_tries`.
    tries: u32 = 0,
    /// `proxy_next_upstream_timeout`.
    tries_timeout: Duration = Duration::ZERO,
    /// `proxy_bind`.
    bind: Option<Bind> = None,
    /// `proxy_socket_keepalive`.
    socket_keepalive: bool = false,
    /// `proxy_ignore_client_abort`.
    ignore_client_abort: bool = false,
    /// `proxy_force_ranges`.
    force_ranges: bool = false,
    /// `proxy_socket_rcvbuf`.
    receive_buffer: u64 = 0,
    /// `proxy_socket_sndbuf`.
    send_buffer: u64 = 0,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// Response fields that weir passes on but does not obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ignored(u16);

const IGNORABLE: [(&str, u16); 9] = [
    ("X-Accel-Redirect", 1),
    ("X-Accel-Expires", 1 << 1),
    ("X-Accel-Limit-Rate", 1 << 2),
    ("X-Accel-Buffering", 1 << 3),
    ("X-Accel-Charset", 1 << 4),
    ("Expires", 1 << 5),
    ("Cache-Control", 1 << 6),
    ("Set-Cookie", 1 << 7),
    ("Vary", 1 << 8),
];

impl Ignored {
    /// Whether weir obeys all fields.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether weir only passes the field on.
    pub fn has(self, name: &str) -> bool {
        value::choice_of(name, &IGNORABLE).is_some_and(|bit| self.0 & bit != 0)
    }
}

const PASS_CONTEXTS: Contexts = LOCATION.or(LOCATION_IF).or(LIMIT_EXCEPT);

const TALKING: &[Directive] = talking!("proxy", proxy);
const HEADS: &[Directive] = heads!("proxy", |_| true, proxy);
const PASSING: &[Directive] = passing!("proxy", proxy);
const OWN: &[Directive] = &[
    set_header!("proxy", proxy),
    Directive::new(
        "proxy_pass",
        PASS_CONTEXTS,
        ONE,
        "The server for requests of this location: http://HOST[:PORT][/URI] or http://unix:PATH:/URI; https:// likewise.",
        pass,
    ),
    Directive::new("proxy_http_version", HSL, ONE, "The HTTP version for upstreams.", |b, s| {
        let version = match s.text(0) {
            "1.0" => Version::Http10,
            "1.1" => Version::Http11,
            "2" => Version::Http2,
            other => return Err(Refusal::whole(format!("invalid value \"{other}\"")).todo("write 1.0, 1.1 or 2")),
        };
        crate::settings(b).proxy.version = Some(version);
        Ok(())
    })
    .default("1.1"),
    Directive::new("proxy_method", HSL, ONE, "The method that weir sends instead of the client's.", |b, s| {
        let t = b.template(s.text(0))?;
        crate::settings(b).proxy.method = Some(Some(t));
        Ok(())
    }),
    Directive::new("proxy_set_body", HSL, ONE, "The body that weir sends instead of the client's.", |b, s| {
        let t = b.inherited_template(s.text(0))?;
        crate::settings(b).proxy.set_body = Some(Some(t));
        Ok(())
    }),
    Directive::new(
        "proxy_redirect",
        HSL,
        Arity::Between(1, 2),
        "Changes Location and Refresh of answers.",
        rewrite::redirect,
    )
    .many()
    .default("default"),
    Directive::new(
        "proxy_cookie_domain",
        HSL,
        Arity::Between(1, 2),
        "Changes the domain of cookies.",
        rewrite::cookie_domain,
    )
    .many()
    .default("off"),
    Directive::new(
        "proxy_cookie_path",
        HSL,
        Arity::Between(1, 2),
        "Changes the path of cookies.",
        rewrite::cookie_path,
    )
    .many()
    .default("off"),
    Directive::new("proxy_cookie_flags", HSL, Arity::Between(1, 4), "Sets flags of cookies.", rewrite::cookie_flags)
        .many()
        .default("off"),
    Directive::new(
        "proxy_pass_trailers",
        HSL,
        Arity::Flag,
        "Passes on the fields that upstreams send after a body.",
        |b, s| {
            crate::settings(b).proxy.pass_trailers = Some(value::flag(s)?);
            Ok(())
        },
    )
    .default("off"),
    Directive::new("proxy_headers_hash_max_size", HSL, ONE, "No effect: weir sizes its tables itself.", |_, s| {
        value::first_number(s).map(drop)
    }),
    Directive::new("proxy_headers_hash_bucket_size", HSL, ONE, "No effect: weir sizes its tables itself.", |_, s| {
        value::first_number(s).map(drop)
    }),
    Directive::idle("proxy_send_lowat", HSL, ONE, "", "Linux has no such limit", |_, s| value::size(s).map(drop)),
];

static ALL: [Directive; TALKING.len() + HEADS.len() + PASSING.len() + OWN.len()] =
    join(&[TALKING, HEADS, PASSING, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("proxy", &ALL)
    .variables(&[
        Variable::without_answer("proxy_host", |ex, _, out| {
            let Some(pass) = proxied(ex) else { return false };
            if let (Some(host), Some(_)) = (ex.rare().and_then(|rare| rare.proxy_host.as_ref()), &pass.template) {
                out.extend_from_slice(host);
                return true;
            }
            passed(ex, pass, out, |pass| &pass.host)
        }),
        Variable::without_answer("proxy_port", |ex, _, out| {
            let Some(pass) = proxied(ex) else { return false };
            passed(ex, pass, out, |pass| &pass.port)
        }),
        Variable::without_answer("proxy_add_x_forwarded_for", |ex, _, out| {
            let start = out.len();
            for field in ex.request.fields() {
                if field.known == Some(Known::XForwardedFor) {
                    if out.len() > start {
                        out.extend_from_slice(b", ");
                    }
                    out.extend_from_slice(ex.request.text(field.value));
                }
            }
            if out.len() > start {
                out.extend_from_slice(b", ");
            }
            weir_http::family::server::address_text(ex.remote(), out);
            true
        }),
        Variable::without_answer("proxy_internal_body_length", |ex, _, out| {
            let Some(length) = body_length(ex) else { return false };
            weir_wire::encode::push_decimal(out, length);
            true
        }),
        Variable::without_answer("proxy_internal_chunked", |ex, _, out| {
            let is_chunked = matches!(ex.request.length, Some(BodyLength::Chunked | BodyLength::UntilClose));
            let is_chunked = is_chunked && body_length(ex).is_none();
            out.extend_from_slice(if is_chunked { b"chunked" } else { b"" });
            is_chunked
        }),
    ])
    .finish(finish)
    .judge(judge)
    .check(check)
    .context(request::context);

/// The length of the body that the origin gets; `None` if there is no body, or if a chunked one is passed on while it comes.
fn body_length(exchange: &mut Exchange<'_>) -> Option<u64> {
    match (&crate::values(exchange.location).proxy.set_body, &exchange.body, exchange.request.length) {
        (Some(template), _, _) => Some(template.text(exchange).len() as u64),
        (None, _, None | Some(BodyLength::None)) => None,
        (None, RequestBody::Unread, Some(BodyLength::Exact(length))) => Some(length),
        (None, RequestBody::Unread, Some(BodyLength::Chunked | BodyLength::UntilClose)) => None,
        (None, RequestBody::Gone | RequestBody::Memory(_) | RequestBody::File(_), Some(_)) => {
            Some(exchange.body.length())
        }
    }
}

/// The directory for answers if `proxy_temp_path` is not set.
pub const TEMPORARY: &str = "proxy_temp";

/// Parts of large answers go into temporary files.
fn check(b: &mut Build<'_>, found: &Found<'_>) {
    for location in found.locations {
        let written = crate::values(location).proxy.temp_path.as_deref();
        b.reach.make(b.paths.temporary(written, TEMPORARY));
    }
}

/// The content handler: the driver does the rest.
pub fn enter(_: &mut Exchange<'_>) -> Next {
    Next::Forward
}

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let url = statement.text(0);
    let replaces = replaced_length(b);
    let pass = if url.contains('$') {
        Pass::computed(url, b.template(url)?, Scheme::Http)
    } else {
        let parsed = parse_url(url)?;
        if parsed.uri.is_some() && replaces.is_none() {
            return Err(Refusal::whole(
                "\"proxy_pass\" cannot have URI part in location given by regular expression, \
                 or inside named location, or inside \"if\" statement, or inside \"limit_except\" block",
            ));
        }
        let default_redirect = rewrite::default_redirect(b, url, parsed.uri.is_some());
        Pass { replaces: replaces.unwrap_or(0), default_redirect: Some(default_redirect), ..parsed }
    };
    b.scope().pass(enter);
    claim(b, |all| &mut all.proxy, pass);
    Ok(())
}

/// Sets the `…_pass` of a family for the innermost block. The `…_pass` of any other family, which the block inherits or
/// has above, has no effect any more: the last one is in force, as in nginx.
pub fn claim(b: &mut Build<'_>, of: Of, pass: Pass) {
    let all = crate::settings(b);
    for settings in [
        &mut all.proxy,
        &mut all.grpc,
        &mut all.fastcgi.proxy,
        &mut all.uwsgi.proxy,
        &mut all.scgi.proxy,
        &mut all.memcached.proxy,
        &mut all.tunnel.proxy,
    ] {
        settings.pass = Some(None);
    }
    of(all).pass = Some(Some(Arc::new(pass)));
}

/// The length of the location's prefix in a path; `None` where `proxy_pass` may not have a URI.
fn replaced_length(b: &Build<'_>) -> Option<usize> {
    match b.scopes().last().map(|scope| &scope.kind) {
        Some(Kind::Location(pattern)) if !pattern.forbids_uri() => Some(pattern.text().len()),
        _ => None,
    }
}

/// Selects the settings in a block: those of `proxy_…`, or of another family with the same settings.
pub type Of = fn(&mut crate::family::Settings) -> &mut Settings;

/// `…_ignore_headers`.
pub fn ignore(b: &mut Build<'_>, statement: &Statement, of: Of) -> Result<(), Refusal> {
    // nginx: repeated in one block, the lists add up.
    let mut bits = of(crate::settings(b)).ignore.map_or(0, |ignored| ignored.0);
    for word in &statement.args {
        let bit = IGNORABLE.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word.text)).map(|(_, bit)| bit);
        bits |= bit.ok_or_else(|| Refusal::whole(format!("invalid value \"{}\"", word.text)))?;
    }
    of(crate::settings(b)).ignore = Some(Ignored(bits));
    Ok(())
}

/// `…_next_upstream`; `has` says whether the family's directive has a condition.
pub fn next_upstream(
    b: &mut Build<'_>,
    statement: &Statement,
    of: Of,
    has: fn(Conditions) -> bool,
) -> Result<(), Refusal> {
    // nginx: repeated in one block, the lists add up.
    let mut conditions = of(crate::settings(b)).next_upstream.unwrap_or(Conditions::NONE);
    for word in &statement.args {
        let condition = Conditions::of_word(&word.text)
            .filter(|condition| *condition != Conditions::DENIED && has(*condition))
            .ok_or_else(|| Refusal::whole(format!("invalid value \"{}\"", word.text)))?;
        conditions = conditions | condition;
    }
    of(crate::settings(b)).next_upstream = Some(conditions);
    Ok(())
}

/// `…_bind`.
pub fn bind(b: &mut Build<'_>, statement: &Statement, of: Of) -> Result<(), Refusal> {
    match (statement.text(0), statement.args.get(1).map(|word| word.text.as_str())) {
        ("off", None) => of(crate::settings(b)).bind = Some(None),
        (text, parameter @ (None | Some("transparent"))) => {
            let bind = Bind { template: b.template(text)?, transparent: parameter.is_some() };
            if let Some(address) = bind.template.literal()
                && parse_bind(address).is_none()
            {
                return Err(Refusal::whole(format!("invalid address \"{text}\"")));
            }
            b.keeps_raw |= bind.transparent;
            of(crate::settings(b)).bind = Some(Some(bind));
        }
        (_, Some(other)) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    }
    Ok(())
}

/// The local address of connections to upstreams.
#[derive(Clone)]
pub struct Bind {
    template: Template,
    /// The address may be that of another machine, such as the client's.
    transparent: bool,
}

impl Bind {
    /// The address for an exchange; `None` if its value is no address, and then the kernel chooses one.
    pub fn local(&self, exchange: &mut Exchange<'_>) -> Option<Local> {
        let address = parse_bind(&self.template.text(exchange))?;
        Some(Local { address, transparent: self.transparent })
    }
}

/// `IP` or `IP:PORT`.
fn parse_bind(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().or_else(|| Some(SocketAddr::new(text.parse().ok()?, 0)))
}

/// Compiles a block: the group behind `proxy_pass`, the request's fields, the hidden fields.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let at = scope.place("proxy_pass", 0);
    let proxy = &mut crate::written_mut(scope).proxy;
    if proxy.redirect.is_none() {
        proxy.redirect = proxy.pass.as_ref().and_then(|pass| rewrite::implied(pass.as_deref()?));
    }
    proxy.protocol = Some(match proxy.version {
        Some(Version::Http2) => Protocol::Http2,
        Some(_) | None => Protocol::Http1,
    });
    compile(b, proxy, Scheme::Http, at);
    buffers::check(b, scope, &crate::written(scope).proxy, "proxy");
}

/// The target of `proxy_pass`; the variables of the module have no value for other kinds of origins, and before weir asks
/// the origin or its cache (nginx: the handler of the content).
fn proxied<'c>(exchange: &Exchange<'c>) -> Option<&'c Pass> {
    if !exchange.flags.is_forwarded {
        return None;
    }
    let pass = crate::values(exchange.location).proxy.pass.as_deref()?;
    matches!(pass.scheme, Scheme::Http | Scheme::Tunnel).then_some(pass)
}

/// Appends a part of the target. A target with variables is evaluated: the key of a cache may have this part, and the
/// upstream is chosen later.
fn passed(exchange: &mut Exchange<'_>, pass: &Pass, out: &mut Vec<u8>, part: fn(&Pass) -> &str) -> bool {
    let parsed = match &pass.template {
        None => {
            out.extend_from_slice(part(pass).as_bytes());
            return true;
        }
        // A target that is made of its own host has none.
        Some(_) if exchange.rare().and_then(|rare| rare.proxy_host.as_ref()).is_some_and(Vec::is_empty) => {
            return false;
        }
        Some(template) => {
            let before = exchange.rare_mut().proxy_host.replace(Vec::new());
            let text = template.text(exchange);
            exchange.rare_mut().proxy_host = before;
            text
        }
    };
    match std::str::from_utf8(&parsed).map(|text| Pass::parse(pass.scheme, text)) {
        Ok(Ok(parsed)) => out.extend_from_slice(part(&parsed).as_bytes()),
        Ok(Err(_)) | Err(_) => return false,
    }
    true
}

/// Marks the places whose `proxy_pass` is made of the request's body: weir reads it before it chooses the upstream.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    for location in locations {
        let pass = crate::values(location).proxy.pass.as_ref();
        if pass.and_then(|pass| pass.template.as_ref()).is_some_and(|text| reading.reads_body(text)) {
            crate::values_mut(location).proxy.pass_reads_body = true;
        }
    }
}

/// Compiles the parts of a block that all upstream families share.
pub fn compile(b: &mut Build<'_>, settings: &mut Settings, scheme: Scheme, at: At) {
    if let Some(Some(pass)) = &mut settings.pass
        && pass.template.is_none()
        && pass.group.is_none()
    {
        match group_of(b, pass) {
            Ok(group) => Arc::make_mut(pass).group = Some(group),
            Err(refusal) => b.refuse_at(scheme.directive(), refusal, at),
        }
    }
    let empty = Vec::new();
    if settings.plan.is_none() || settings.set_headers.is_some() {
        let plan = request::Plan::compile(settings.set_headers.as_ref().unwrap_or(&empty), scheme == Scheme::Grpc);
        settings.plan = Some(Arc::new(plan));
    }
    let empty = Vec::new();
    let hide = settings.hide.as_ref().unwrap_or(&empty);
    let hidden = hidden::Hidden::compile(hide, settings.show.as_ref().unwrap_or(&empty), scheme);
    settings.hidden = Some(Arc::new(hidden));
}

/// The number of the group for an address in the configuration.
fn group_of(b: &mut Build<'_>, pass: &Pass) -> Result<usize, Refusal> {
    let (host, port) =
        if pass.url.starts_with("unix:") { (pass.url.as_str(), None) } else { split_host_port(&pass.url) };
    if let Some(group) = crate::declaring(b).upstream.find(host) {
        return match port {
            None => Ok(group),
            Some(port) => Err(Refusal::whole(format!("upstream \"{host}\" may not have port {port}"))),
        };
    }
    if pass.lacks_port() {
        return Err(Refusal::whole(format!("no port in upstream \"{host}\"")));
    }
    weir_groups::block::implicit::<HttpParts>(b, &pass.dialled(), host)
}

/// Whether weir may drop the upstream request once the client has left: no other request waits for the answer, and
/// `proxy_ignore_client_abort` is off (nginx fetches an answer for the cache to its end).
pub fn is_for_its_client_alone(exchange: &Exchange<'_>) -> bool {
    crate::values(exchange.location).proxy.follows_client(exchange)
}

impl Values {
    /// The same, with the settings of the exchange's location at hand.
    pub fn follows_client(&self, exchange: &Exchange<'_>) -> bool {
        !self.ignore_client_abort && !exchange.cache.is_for_others()
    }
}
