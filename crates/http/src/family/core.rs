//! The client side of HTTP: limits, timeouts, keep-alive, and sending responses.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html>

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;

use crate::hold::patience::{self, BodyTimeout, SendTimeout};
use crate::read::build::{Build, Scope};
use crate::read::directive::{Arity, Directive, HSL, HTTP, LOCATION_IF, ONE, SERVER, TWO};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Template;
use crate::text::value;

crate::settings! {
    /// `client_header_timeout`.
    header_timeout: Duration = patience::FIRST,
    /// `client_header_buffer_size`.
    header_buffer: u64 = 1024,
    /// `large_client_header_buffers`: number and size.
    large_headers: (u32, u64) = (4, 8192),
    /// `connection_pool_size`, which has no effect.
    connection_pool: u64 = 0,
    /// `max_headers`.
    headers_max: u64 = 1000,
    /// `ignore_invalid_headers`.
    ignore_invalid_headers: bool = true,
    /// `underscores_in_headers`.
    underscores_in_headers: bool = false,
    /// `merge_slashes`.
    merge_slashes: bool = true,
    /// `strict_targets`.
    strict_targets: StrictTargets = StrictTargets::Forwarded,
    /// `client_max_body_size`, 0 for no limit.
    body_max: u64 = 1 << 20,
    /// `client_body_buffer_size`.
    body_buffer: u64 = 16 << 10,
    /// `client_body_timeout`.
    body_timeout: BodyTimeout = BodyTimeout::UNWRITTEN,
    /// `client_body_temp_path`.
    body_temp_path: Option<String> = None,
    /// `client_body_in_file_only`.
    body_in_file: BodyInFile = BodyInFile::Off,
    /// `send_timeout`.
    send_timeout: SendTimeout = SendTimeout::UNWRITTEN,
    /// `keepalive_timeout`.
    keepalive_timeout: Duration = Duration::from_secs(75),
    /// The value of the Keep-Alive field, zero for none. A `keepalive_timeout` without it inherits it.
    keepalive_header: Duration = Duration::ZERO,
    /// `keepalive_requests`.
    keepalive_requests: u64 = 1000,
    /// `keepalive_time`.
    keepalive_time: Duration = Duration::from_secs(3600),
    /// `keepalive_disable`: `msie6`, `safari`.
    keepalive_disable: Vec<String> = vec!["msie6".to_owned()],
    /// `lingering_close`.
    lingering_close: Lingering = Lingering::On,
    /// `lingering_time`.
    lingering_time: Duration = Duration::from_secs(30),
    /// `lingering_timeout`.
    lingering_timeout: Duration = Duration::from_secs(5),
    /// `reset_timedout_connection`.
    reset_timedout: bool = false,
    /// `tcp_nodelay`.
    nodelay: bool = true,
    /// `tcp_nopush`.
    nopush: bool = false,
    /// `sendfile`: weir picks the cheaper way; with `off` it reads and writes.
    sendfile: bool = true,
    /// `auth_delay`.
    auth_delay: Duration = Duration::ZERO,
    /// `limit_rate`, bytes a second.
    limit_rate: Option<Template> = None,
    /// `limit_rate_after`.
    limit_rate_after: Option<Template> = None,
    /// `chunked_transfer_encoding`.
    chunked: bool = true,
    /// `server_tokens`.
    server_tokens: Tokens = Tokens::Off,
    /// `absolute_redirect`.
    absolute_redirect: bool = true,
    /// `port_in_redirect`.
    port_in_redirect: bool = true,
    /// `satisfy any`.
    satisfy_any: bool = false,
    /// `log_not_found`.
    log_not_found: bool = true,
    /// `log_subrequest`.
    log_subrequest: bool = false,
    /// `subrequest_output_buffer_size`: bytes (nginx's default is the size of a page).
    subrequest_buffer: u64 = 4 << 10,
    /// `post_action`: a path or `@name`.
    post_action: Option<Arc<str>> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// `client_body_in_file_only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyInFile {
    /// Only if the body does not fit in memory.
    Off,
    /// Always; the file is removed after the request.
    Clean,
    /// Always; the file stays.
    On,
}

/// `strict_targets`: which targets with bytes that no URI may have are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrictTargets {
    /// None, as in nginx.
    Off,
    /// Targets with a fragment, if an origin would get them: the origin may read another path than the location saw.
    Forwarded,
    /// All: targets with fragments, or with bytes that RFC 3986 does not allow.
    On,
}

/// `lingering_close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lingering {
    /// Never.
    Off,
    /// If the client may still be sending.
    On,
    /// Whenever weir closes the connection.
    Always,
}

/// `server_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// `weir/VERSION`.
    On,
    /// `weir`.
    Off,
    /// `weir/VERSION (BUILD)`; BUILD is the version of nginx whose directives weir reads.
    Build,
}

impl Tokens {
    /// The text of `Server` and of the last line of error pages.
    pub const fn product(self) -> &'static str {
        match self {
            Tokens::On => concat!("weir/", env!("CARGO_PKG_VERSION")),
            Tokens::Off => "weir",
            Tokens::Build => concat!("weir/", env!("CARGO_PKG_VERSION"), " (nginx/", crate::nginx_version!(), ")"),
        }
    }
}

macro_rules! flag {
    ($name:literal, $contexts:expr, $field:ident, $default:literal, $doc:literal) => {
        Directive::new($name, $contexts, Arity::Flag, $doc, |b, s| {
            b.settings().core.$field = Some(value::flag(s)?);
            Ok(())
        })
        .default($default)
    };
}

macro_rules! time {
    ($name:literal, $contexts:expr, $field:ident, $default:literal, $doc:literal) => {
        Directive::new($name, $contexts, ONE, $doc, |b, s| {
            b.settings().core.$field = Some(value::time(s)?);
            Ok(())
        })
        .default($default)
    };
}

macro_rules! size {
    ($name:literal, $contexts:expr, $field:ident, $default:literal, $doc:literal) => {
        Directive::new($name, $contexts, ONE, $doc, |b, s| {
            b.settings().core.$field = Some(value::size(s)?);
            Ok(())
        })
        .default($default)
    };
}

const HS: crate::read::directive::Contexts = HTTP.or(SERVER);
const HSLI: crate::read::directive::Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new("core", &[
    time!("client_header_timeout", HS, header_timeout, "10s (nginx: 60s)", "The longest time for reading a request head, and for a TLS handshake."),
    size!("client_header_buffer_size", HS, header_buffer, "1k", "Size of the first buffer for a request head."),
    Directive::new("large_client_header_buffers", HS, TWO, "Number and size of further buffers for large heads.",
        |b, s| { b.settings().core.large_headers = Some(value::buffers(s)?); Ok(()) }).default("4 8k"),
    Directive::new("max_headers", HS, ONE, "How many fields a request head may have.",
        |b, s| { b.settings().core.headers_max = Some(value::first_number(s)?); Ok(()) }).default("1000"),
    flag!("ignore_invalid_headers", HS, ignore_invalid_headers, "on", "Removes fields with invalid names. weir refuses control bytes in a value with 400; nginx passes them on. off keeps both."),
    flag!("underscores_in_headers", HS, underscores_in_headers, "off", "Treats underscores in field names as valid."),
    flag!("merge_slashes", HS, merge_slashes, "on", "Treats adjacent slashes in a URI as one."),
    Directive::new("strict_targets", HS, ONE,
        "Refuses request targets with bytes that a URI cannot contain. By default, a target with a fragment (\"#\") \
         gets 400 if weir would pass it to an origin. on refuses fragments everywhere, and also bytes above 0x7f and \
         others that RFC 3986 does not allow; off passes all targets on, as nginx does.",
        |b, s| {
            let choices = [("off", StrictTargets::Off), ("forwarded", StrictTargets::Forwarded), ("on", StrictTargets::On)];
            b.settings().core.strict_targets = Some(value::choice(s, &choices)?);
            Ok(())
        }).default("forwarded"),
    Directive::new("client_max_body_size", HSL, ONE, "Largest request body; 0 for no limit.",
        |b, s| { b.settings().core.body_max = Some(value::offset(s)?); Ok(()) }).default("1m"),
    size!("client_body_buffer_size", HSL, body_buffer, "16k", "Request bodies above this size go to a file."),
    Directive::new("client_body_timeout", HSL, ONE,
        "Longest pause between two reads of a request body. If the directive is not set, the client must also send 500 \
         bytes a second on average, after the first 10 seconds.",
        |b, s| { b.settings().core.body_timeout = Some(BodyTimeout::written(value::time(s)?)); Ok(()) })
        .default("60s, and 500 bytes a second (nginx: 60s)"),
    Directive::new("client_body_temp_path", HSL, Arity::Between(1, 4), "Directory for request bodies.",
        |b, s| { let path = b.path(value::leveled_path(s)?); b.settings().core.body_temp_path = Some(Some(path)); Ok(()) }).default("client_body_temp"),
    Directive::new("client_body_in_file_only", HSL, ONE, "Saves every request body to a file.",
        |b, s| {
            let choice = value::choice(s, &[("on", BodyInFile::On), ("off", BodyInFile::Off), ("clean", BodyInFile::Clean)])?;
            b.settings().core.body_in_file = Some(choice);
            Ok(())
        }).default("off"),
    time!("auth_delay", HSL, auth_delay, "0s", "How long weir delays the 401 for an unauthorised request."),
    Directive::new("send_timeout", HSL, ONE,
        "Longest pause between two writes to a client. If the directive is not set, the pause is 10 seconds for a \
         client that has taken less than 64 KiB on its connection.",
        |b, s| { b.settings().core.send_timeout = Some(SendTimeout::written(value::time(s)?)); Ok(()) })
        .default("60s, and 10s at first (nginx: 60s)"),
    Directive::new("keepalive_timeout", HSL, Arity::Between(1, 2), "How long an idle client connection stays open.", keepalive_timeout)
        .default("75s"),
    Directive::new("keepalive_requests", HSL, ONE, "The largest number of requests on one client connection.",
        |b, s| { b.settings().core.keepalive_requests = Some(value::first_number(s)?); Ok(()) }).default("1000"),
    time!("keepalive_time", HSL, keepalive_time, "1h", "How long weir serves requests on one client connection."),
    Directive::idle("keepalive_min_timeout", HSL, ONE, "0",
        "a graceful stop closes idle connections at once, as nginx does without this \
         directive", |_, s| value::time(s).map(drop)),
    Directive::new("keepalive_disable", HSL, Arity::Between(1, 2), "Browsers that get no keep-alive after a POST.",
        |b, s| {
            // nginx: repeated in one block, the lists add up, and "none" adds no browser.
            let mut list = b.settings().core.keepalive_disable.take().unwrap_or_default();
            for word in &s.args {
                match word.text.to_ascii_lowercase().as_str() {
                    "none" => {}
                    known @ ("msie6" | "safari") => list.push(known.to_owned()),
                    other => return Err(Refusal::whole(format!("invalid value \"{other}\""))),
                }
            }
            b.settings().core.keepalive_disable = Some(list);
            Ok(())
        }).many().default("msie6"),
    Directive::new("lingering_close", HSL, ONE, "Whether weir reads the client's remaining data before it closes the connection.",
        |b, s| {
            let choice = value::choice(s, &[("on", Lingering::On), ("off", Lingering::Off), ("always", Lingering::Always)])?;
            b.settings().core.lingering_close = Some(choice);
            Ok(())
        }).default("on"),
    time!("lingering_time", HSL, lingering_time, "30s", "The longest time for which weir reads the client's remaining data."),
    time!("lingering_timeout", HSL, lingering_timeout, "5s", "How long weir waits for more of the client's remaining data."),
    flag!("reset_timedout_connection", HSL, reset_timedout, "off", "Closes timed-out connections by RST, freeing kernel memory."),
    flag!("tcp_nodelay", HSL, nodelay, "on", "Sends small packets at once."),
    flag!("tcp_nopush", HSL, nopush, "off", "Fills packets before sending files."),
    flag!("sendfile", HSLI, sendfile, "on (nginx: off)", "Sends files without copying them through the process."),
    Directive::new("limit_rate", HSLI, ONE, "Bytes a second to a client; 0 for no limit.",
        |b, s| { let rate = rate(b, s)?; b.settings().core.limit_rate = Some(Some(rate)); Ok(()) }).default("0"),
    Directive::new("limit_rate_after", HSLI, ONE, "Bytes sent before the rate is limited.",
        |b, s| { let rate = rate(b, s)?; b.settings().core.limit_rate_after = Some(Some(rate)); Ok(()) }).default("0"),
    flag!("chunked_transfer_encoding", HSL, chunked, "on", "Allows chunked responses to HTTP/1.1 clients."),
    Directive::new("server_tokens", HSL, ONE, "The name and version of the server in the Server field and on error pages.",
        |b, s| {
            let choice = value::choice(s, &[("on", Tokens::On), ("off", Tokens::Off), ("build", Tokens::Build)])?;
            b.settings().core.server_tokens = Some(choice);
            Ok(())
        }).default("off (nginx: on)"),
    flag!("absolute_redirect", HSL, absolute_redirect, "on", "Makes redirects of this server absolute."),
    flag!("port_in_redirect", HSL, port_in_redirect, "on", "Adds the port to absolute redirects."),
    Directive::new("satisfy", HSL, ONE, "Whether all access checks must allow a request, or any one of them.",
        |b, s| { b.settings().core.satisfy_any = Some(value::choice(s, &[("all", false), ("any", true)])?); Ok(()) }).default("all"),
    flag!("log_not_found", HSL, log_not_found, "on", "Logs files that were not found."),
    flag!("log_subrequest", HSL, log_subrequest, "off", "Logs the subrequests: the requests that weir makes for a client's request."),
    Directive::idle("connection_pool_size", HS, ONE, "",
        "weir manages this memory itself",
        |b, s| { b.settings().core.connection_pool = Some(value::pool(s)?); Ok(()) }),
    Directive::idle("request_pool_size", HS, ONE, "",
        "weir manages this memory itself", |_, s| value::pool(s).map(drop)),
    Directive::idle("client_body_in_single_buffer", HSL, Arity::Flag, "",
        "weir manages this memory itself", |_, s| value::flag(s).map(drop)),
    Directive::idle("output_buffers", HSL, TWO, "",
        "weir manages this memory itself", |_, s| value::buffers(s).map(drop)),
    Directive::idle("postpone_output", HSL, ONE, "",
        "weir sends an answer in as few writes as it arrives in", |_, s| value::size(s).map(drop)),
    Directive::idle("sendfile_max_chunk", HSL, ONE, "",
        "weir itself limits the bytes that one call sends", |_, s| value::size(s).map(drop)),
    Directive::idle("send_lowat", HSL, ONE, "",
        "Linux has no such limit", |_, s| value::size(s).map(drop)),
    Directive::idle("aio", HSL, ONE, "off",
        "the kernel's page cache reads ahead", |_, s| aio(s)),
    Directive::idle("aio_write", HSL, Arity::Flag, "off",
        "the kernel's page cache writes in the background", |_, s| value::flag(s).map(drop)),
    Directive::idle("directio", HSL, ONE, "off",
        "weir reads files through the kernel's page cache", |_, s| if s.text(0) == "off" { Ok(()) } else { value::offset(s).map(drop) }),
    Directive::idle("directio_alignment", HSL, ONE, "",
        "weir reads files through the kernel's page cache", |_, s| value::offset(s).map(drop)),
    Directive::idle("read_ahead", HSL, ONE, "",
        "the kernel's page cache reads ahead by itself", |_, s| value::size(s).map(drop)),
    Directive::new("types_hash_max_size", HSL, ONE,
        "No effect: weir sizes its tables itself.", |_, s| value::first_number(s).map(drop)),
    Directive::new("types_hash_bucket_size", HSL, ONE,
        "No effect: weir sizes its tables itself.", |_, s| value::first_number(s).map(drop)),
    Directive::new("variables_hash_max_size", HTTP, ONE,
        "No effect: weir sizes its tables itself.", |_, s| value::first_number(s).map(drop)),
    Directive::new("variables_hash_bucket_size", HTTP, ONE,
        "No effect: weir sizes its tables itself.", |_, s| value::first_number(s).map(drop)),
    Directive::idle("msie_padding", HSL, Arity::Flag, "",
        "it is for browsers that nobody uses any more", |_, s| value::flag(s).map(drop)),
    Directive::new("subrequest_output_buffer_size", HSL, ONE, "The largest answer of a subrequest that weir keeps in memory as a whole.",
        |b, s| { b.settings().core.subrequest_buffer = Some(value::size(s)?); Ok(()) }).default("4k"),
    Directive::new("post_action", HSLI, ONE, "Sends the request to this path or named location after its answer, and ignores the answer of that location.",
        |b, s| { b.settings().core.post_action = Some(Some(s.text(0).into())); Ok(()) }),
    Directive::idle("optimize_server_names", HS, Arity::Flag, "",
        "weir compares names only where several servers share an address", |_, s| value::flag(s).map(drop)),
])
.finish(finish);

/// Refuses buffers for heads that are smaller than a connection's pool would be.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    const POOL_BYTES: u64 = 512;
    let (core, name) = (&scope.settings.core, "large_client_header_buffers");
    let (_, size) = core.large_headers.unwrap_or((4, 8 << 10));
    if size < core.connection_pool.unwrap_or(POOL_BYTES) {
        let at = scope.place(if core.large_headers.is_some() { name } else { "connection_pool_size" }, 0);
        let small = format!("the \"{name}\" size must be equal to or greater than \"connection_pool_size\"");
        b.refuse_once(name, Refusal::whole(small), at);
    }
}

/// Checks `on`, `off`, `threads` or `threads=POOL`.
fn aio(statement: &Statement) -> Result<(), Refusal> {
    match statement.text(0) {
        "on" | "off" | "threads" => Ok(()),
        pool if pool.strip_prefix("threads=").is_some_and(|name| !name.is_empty()) => Ok(()),
        _ => Err(Refusal::directive("invalid value")),
    }
}

fn keepalive_timeout(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    b.settings().core.keepalive_timeout = Some(value::time(statement)?);
    if let Some(word) = statement.args.get(1) {
        let header = value::whole_seconds_of(&word.text).ok_or_else(|| Refusal::directive("invalid value"))?;
        b.settings().core.keepalive_header = Some(header);
    }
    Ok(())
}

/// A size, or a text with variables that gives a size at run time.
fn rate(b: &mut Build<'_>, statement: &Statement) -> Result<Template, Refusal> {
    if !statement.text(0).contains('$') {
        value::size(statement)?;
    }
    b.template(statement.text(0))
}
