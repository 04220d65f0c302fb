//! `proxy_pass` and its family: passes requests to another server.
//!
//! This file has the directives and their compiled form; `request` composes the request, `response` reads the answer,
//! `rewrite` changes Location, Refresh and cookies. The tries themselves are in `upstream::forward`.
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html>

pub mod hidden;
pub mod pass;
pub mod request;
pub mod response;
pub mod rewrite;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_conf::{At, Statement};
use weir_http::authority::{self, split_host_port};
use weir_http::build::{Build, Kind, Scope};
use weir_http::directive::{Contexts, LIMIT_EXCEPT, LOCATION, LOCATION_IF};
use weir_http::exchange::Exchange;
use weir_http::families::Family;
use weir_http::phase::Next;
use weir_http::refusal::Refusal;
use weir_http::value;
use weir_http::variable::{Template, Variable};
use weir_peers::retry::Conditions;
use weir_wire::{Known, Version};

use crate::family::proxy::pass::{Pass, parse_url};
use crate::family::upstream::Upstream;

weir_http::settings! {
    /// `proxy_pass`.
    pass: Option<Arc<Pass>> = None,
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
    /// `proxy_max_temp_file_size`, 0 for no file; `None` where it is not set.
    max_temp_file: Option<u64> = None,
    /// `proxy_temp_path`.
    temp_path: Option<String> = None,
    /// `proxy_limit_rate`: bytes a second read from an upstream, 0 for no limit.
    limit_rate: Option<Template> = None,
    /// `proxy_http_version`.
    version: Version = Version::Http11,
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
    bind: Option<Template> = None,
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

/// The directives that all upstream families share, each under the family's prefix; the family's own directives
/// follow.
macro_rules! passing {
    ($family:ident, $prefix:literal, [$($own:tt)*]) => {{
        use weir_http::directive::{Arity, Directive, HSL, ONE, TWO};
        use $crate::family::proxy::{bind, ignore, next_upstream};
        use weir_http::value;
        &[
            Directive::new(concat!($prefix, "_connect_timeout"), HSL, ONE, "The longest time for opening a connection.",
                |b, s| { crate::settings(b).$family.connect_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
            Directive::new(concat!($prefix, "_send_timeout"), HSL, ONE, "Longest pause between two writes to the upstream.",
                |b, s| { crate::settings(b).$family.send_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
            Directive::new(concat!($prefix, "_read_timeout"), HSL, ONE, "Longest pause between two reads from the upstream.",
                |b, s| { crate::settings(b).$family.read_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
            Directive::new(concat!($prefix, "_buffer_size"), HSL, ONE, "The buffer size for the head of an answer.",
                |b, s| { crate::settings(b).$family.buffer_size = Some(value::size(s)?); Ok(()) }).default("16k (nginx: 4k|8k)"),
            Directive::new(concat!($prefix, "_set_header"), HSL, TWO, "Sets a field of the request; an empty value removes the field.", |b, s| {
                let template = b.template(s.text(1))?;
                let name = s.text(0).to_owned();
                crate::settings(b).$family.set_headers.get_or_insert_default().push((name, template));
                Ok(())
            }).many().default("Host $proxy_host"),
            Directive::new(concat!($prefix, "_hide_header"), HSL, ONE, "Names a field of the answer that weir does not pass on.", |b, s| {
                let name = s.text(0).to_owned();
                crate::settings(b).$family.hide.get_or_insert_default().push(name);
                Ok(())
            }).many(),
            Directive::new(concat!($prefix, "_pass_header"), HSL, ONE, "Names a field of the answer that weir passes on although it hides it by default.", |b, s| {
                let name = s.text(0).to_owned();
                crate::settings(b).$family.show.get_or_insert_default().push(name);
                Ok(())
            }).many(),
            Directive::new(concat!($prefix, "_ignore_headers"), HSL, Arity::AtLeast(1), "Names fields of the answer that weir does not obey.", |b, s| ignore(b, s, |all| &mut all.$family)).many(),
            Directive::new(concat!($prefix, "_intercept_errors"), HSL, Arity::Flag, "Lets error_page answer in place of answers of 300 and above.",
                |b, s| { crate::settings(b).$family.intercept_errors = Some(value::flag(s)?); Ok(()) }).default("off"),
            Directive::new(concat!($prefix, "_next_upstream"), HSL, Arity::AtLeast(1), "The failures after which weir tries another peer.", |b, s| next_upstream(b, s, |all| &mut all.$family)).default("error timeout"),
            Directive::new(concat!($prefix, "_next_upstream_tries"), HSL, ONE, "The largest number of tries; 0 for no limit.",
                |b, s| { crate::settings(b).$family.tries = Some(value::bounded(s, 0, u64::from(u32::MAX))? as u32); Ok(()) }).default("0"),
            Directive::new(concat!($prefix, "_next_upstream_timeout"), HSL, ONE, "The longest time in which weir tries further peers; 0 for no limit.",
                |b, s| { crate::settings(b).$family.tries_timeout = Some(value::time(s)?); Ok(()) }).default("0"),
            Directive::new(concat!($prefix, "_bind"), HSL, Arity::Between(1, 2), "The local address of connections to upstreams.", |b, s| bind(b, s, |all| &mut all.$family)).default("off"),
            Directive::new(concat!($prefix, "_socket_keepalive"), HSL, Arity::Flag, "TCP keep-alive towards upstreams.",
                |b, s| { crate::settings(b).$family.socket_keepalive = Some(value::flag(s)?); Ok(()) }).default("off"),
            Directive::new(concat!($prefix, "_socket_rcvbuf"), HSL, ONE, "Receive buffer of upstream sockets.",
                |b, s| { crate::settings(b).$family.receive_buffer = Some(value::size(s)?); Ok(()) }),
            Directive::new(concat!($prefix, "_socket_sndbuf"), HSL, ONE, "Send buffer of upstream sockets.",
                |b, s| { crate::settings(b).$family.send_buffer = Some(value::size(s)?); Ok(()) }),
            $($own)*
        ]
    }};
}

pub(crate) use passing;

macro_rules! flag {
    ($name:literal, $field:ident, $default:literal, $doc:literal) => {
        Directive::new($name, HSL, Arity::Flag, $doc, |b, s| {
            crate::settings(b).proxy.$field = Some(value::flag(s)?);
            Ok(())
        })
        .default($default)
    };
}

/// The family.
pub static FAMILY: Family = Family::new("proxy", passing!(proxy, "proxy", [
    Directive::new("proxy_pass", PASS_CONTEXTS, ONE, "The server for requests of this location: http://HOST[:PORT][/URI] or http://unix:PATH:/URI; https:// likewise.", pass),
    flag!("proxy_buffering", buffering, "on", "Reads the answer as fast as the upstream sends it."),
    flag!("proxy_request_buffering", request_buffering, "on", "Reads the whole request body before weir asks the upstream."),
    Directive::new("proxy_buffers", HSL, TWO, "Memory for an answer that the client takes slowly.",
        |b, s| { crate::settings(b).proxy.buffers = Some(value::buffers(s)?); Ok(()) }).default("8 32k (nginx: 8 4k|8k)"),
    Directive::new("proxy_max_temp_file_size", HSL, ONE, "The largest part of an answer that weir buffers in a file; 0 for no file.",
        |b, s| { crate::settings(b).proxy.max_temp_file = Some(Some(value::size(s)?)); Ok(()) })
        .default("1024m for all answers together (nginx: 1024m for each)"),
    Directive::new("proxy_temp_path", HSL, Arity::Between(1, 4), "Directory for those files.",
        |b, s| { let path = b.path(s.text(0)); crate::settings(b).proxy.temp_path = Some(Some(path)); Ok(()) }).default("proxy_temp"),
    Directive::new("proxy_limit_rate", HSL, ONE, "The bytes that weir reads from an upstream per second; 0 for no limit.",
        |b, s| { let t = b.template(s.text(0))?; crate::settings(b).proxy.limit_rate = Some(Some(t)); Ok(()) }).default("0"),
    Directive::new("proxy_http_version", HSL, ONE, "The HTTP version for upstreams.", |b, s| {
        let version = match s.text(0) {
            "1.0" => Version::Http10,
            "1.1" => Version::Http11,
            "2" => Version::Http2,
            other => return Err(Refusal::whole(format!("invalid value \"{other}\"")).todo("write 1.0, 1.1 or 2")),
        };
        crate::settings(b).proxy.version = Some(version);
        Ok(())
    }).default("1.1"),
    Directive::new("proxy_method", HSL, ONE, "The method that weir sends instead of the client's.",
        |b, s| { let t = b.template(s.text(0))?; crate::settings(b).proxy.method = Some(Some(t)); Ok(()) }),
    Directive::new("proxy_set_body", HSL, ONE, "The body that weir sends instead of the client's.",
        |b, s| { let t = b.template(s.text(0))?; crate::settings(b).proxy.set_body = Some(Some(t)); Ok(()) }),
    flag!("proxy_pass_request_headers", pass_headers, "on", "Passes the client's fields on."),
    flag!("proxy_pass_request_body", pass_body, "on", "Passes the client's body on."),
    Directive::new("proxy_redirect", HSL, Arity::Between(1, 2), "Changes Location and Refresh of answers.", rewrite::redirect).many().default("default"),
    Directive::new("proxy_cookie_domain", HSL, Arity::Between(1, 2), "Changes the domain of cookies.", rewrite::cookie_domain).many().default("off"),
    Directive::new("proxy_cookie_path", HSL, Arity::Between(1, 2), "Changes the path of cookies.", rewrite::cookie_path).many().default("off"),
    Directive::new("proxy_cookie_flags", HSL, Arity::Between(1, 4), "Sets flags of cookies.", rewrite::cookie_flags).many().default("off"),
    flag!("proxy_ignore_client_abort", ignore_client_abort, "off", "Continues the request to the upstream when the client has closed its connection."),
    flag!("proxy_force_ranges", force_ranges, "off", "Answers range requests even if the upstream does not offer ranges."),
    flag!("proxy_pass_trailers", pass_trailers, "off", "Passes on the fields that upstreams send after a body."),
    Directive::idle("proxy_busy_buffers_size", HSL, ONE, "",
        "weir manages this memory itself", |_, _| Ok(())),
    Directive::idle("proxy_temp_file_write_size", HSL, ONE, "",
        "weir manages this memory itself", |_, _| Ok(())),
    Directive::new("proxy_headers_hash_max_size", HSL, ONE,
        "No effect: weir sizes its tables itself.", |_, _| Ok(())),
    Directive::new("proxy_headers_hash_bucket_size", HSL, ONE,
        "No effect: weir sizes its tables itself.", |_, _| Ok(())),
    Directive::idle("proxy_send_lowat", HSL, ONE, "",
        "Linux has no such limit", |_, _| Ok(())),
]))
.variables(&[
    Variable::without_answer("proxy_host", |ex, _, out| {
        let Some(pass) = &crate::values(ex.location).proxy.pass else { return false };
        match &ex.proxy_host {
            Some(host) => out.extend_from_slice(host),
            None => out.extend_from_slice(pass.host.as_bytes()),
        }
        true
    }),
    Variable::without_answer("proxy_port", |ex, _, out| {
        let Some(pass) = &crate::values(ex.location).proxy.pass else { return false };
        out.extend_from_slice(pass.port.as_bytes());
        true
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
        weir_wire::encode::push_decimal(out, ex.body.length());
        true
    }),
])
.finish(finish)
.context(request::context);

/// The content handler: the driver does the rest.
pub fn enter(_: &mut Exchange<'_>) -> Next {
    Next::Forward
}

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let url = statement.text(0);
    let replaces = replaced_length(b);
    let pass = if url.contains('$') {
        let template = b.template(url)?;
        Pass {
            url: url.to_owned(),
            template: Some(template),
            host: String::new(),
            port: String::new(),
            uri: None,
            is_tls: false,
            is_grpc: false,
            replaces: 0,
            group: None,
            default_redirect: None,
        }
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
    b.scope().handler = Some(enter);
    crate::settings(b).proxy.pass = Some(Some(Arc::new(pass)));
    crate::settings(b).grpc.pass = Some(None);
    Ok(())
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

/// `…_next_upstream`.
pub fn next_upstream(b: &mut Build<'_>, statement: &Statement, of: Of) -> Result<(), Refusal> {
    let mut conditions = Conditions::NONE;
    for word in &statement.args {
        let condition = Conditions::of_word(&word.text)
            .filter(|condition| *condition != Conditions::DENIED)
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
        (text, None) => {
            let template = b.template(text)?;
            if let Some(address) = template.literal()
                && parse_bind(address).is_none()
            {
                return Err(Refusal::whole(format!("invalid address \"{text}\"")));
            }
            of(crate::settings(b)).bind = Some(Some(template));
        }
        (_, Some("transparent")) => {
            return Err(Refusal::whole("\"transparent\" is a parameter of \"proxy_bind\" that weir does not have yet"));
        }
        (_, Some(other)) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    }
    Ok(())
}

/// `IP` or `IP:PORT`.
pub fn parse_bind(text: &[u8]) -> Option<SocketAddr> {
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
    compile(b, proxy, "proxy_pass", at, false);
}

/// Compiles the parts of a block that all upstream families share.
pub fn compile(b: &mut Build<'_>, settings: &mut Settings, directive: &str, at: At, passes_te: bool) {
    if let Some(Some(pass)) = &mut settings.pass
        && pass.template.is_none()
        && pass.group.is_none()
    {
        match group_of(b, pass) {
            Ok(group) => Arc::make_mut(pass).group = Some(group),
            Err(refusal) => b.refuse_at(directive, refusal, at),
        }
    }
    let empty = Vec::new();
    if settings.plan.is_none() || settings.set_headers.is_some() {
        let plan = request::Plan::compile(settings.set_headers.as_ref().unwrap_or(&empty), &mut b.names, passes_te);
        settings.plan = Some(Arc::new(plan));
    }
    let empty = Vec::new();
    let hide = settings.hide.as_ref().unwrap_or(&empty);
    let hidden = hidden::Hidden::compile(hide, settings.show.as_ref().unwrap_or(&empty));
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
    let name = pass.dialled();
    if let Some(group) = crate::declaring(b).upstream.find_implicit(&name) {
        return Ok(group);
    }
    let addresses = authority::resolve(b, &name, 80).map_err(|refusal| refusal.needs("upstream", host))?;
    let upstream = Upstream::implicit(&name, &addresses).map_err(|error| Refusal::whole(error.to_string()))?;
    crate::declaring(b).upstream.groups.push(Arc::new(upstream));
    Ok(crate::declaring(b).upstream.groups.len() - 1)
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
