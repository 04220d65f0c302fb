//! The process: workers, limits, pid file, user, and the `events` block.
//!
//! <https://nginx.org/en/docs/ngx_core_module.html>

use std::time::Duration;

use weir_conf::{At, Statement};
use weir_net::worker::Coalesce;

use crate::hold::counters::WORKERS_MAX;
use crate::read::build::{Build, Kind, Scope};
use crate::read::directive::{Arity, Directive, EVENTS, MAIN, NONE, ONE, TWO};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::value;

crate::settings! {
    /// `daemon`.
    daemon: bool = true,
    /// `master_process`: whether a keeper starts the server as another process.
    keeper: bool = true,
    /// `pid`, as written; `None` for the compiled-in name.
    pid: Option<String> = None,
    /// `user` and its group.
    user: Option<(String, Option<String>)> = None,
    /// `worker_processes`; `None` for `auto`, which is also weir's default.
    workers: Option<usize> = None,
    /// `worker_connections`; `None` takes it from the limit on open files.
    connections: Option<usize> = None,
    /// The statement that says so.
    connections_at: At = At::default(),
    /// `worker_rlimit_nofile`; `None` raises the soft limit to the hard one.
    nofile: Option<u64> = None,
    /// `worker_shutdown_timeout`.
    shutdown_timeout: Option<Duration> = None,
    /// `worker_cpu_affinity`: a CPU for each worker.
    affinity: Affinity = Affinity::None,
    /// `worker_coalesce`: by how much a worker's sleeps may delay a request.
    coalesce: Coalesce = Coalesce::Off,
    /// The workers keep `CAP_NET_RAW` (`proxy_bind … transparent`).
    keeps_raw: bool = false,
    /// Whether an `events` block was written.
    events: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// Which CPUs workers are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The kernel chooses.
    None,
    /// One CPU after the other.
    Auto,
    /// The lowest CPU of each mask, worker by worker; later workers use the last one.
    Cpus(Vec<usize>),
}

/// The family.
pub static FAMILY: Family = Family::new("process", &[
    Directive::new("daemon", MAIN, Arity::Flag, "Runs in the background.",
        |b, s| { b.settings().process.daemon = Some(value::flag(s)?); Ok(()) }).default("on"),
    Directive::new("master_process", MAIN, Arity::Flag,
        "Keeps a server running: a process that opens sockets and files as root, reads nothing from the network, and \
         starts the server again if it dies. off serves in one process.",
        |b, s| { b.settings().process.keeper = Some(value::flag(s)?); Ok(()) }).default("on"),
    Directive::new("pid", MAIN, ONE, "The file that holds the process id.",
        |b, s| { let path = b.path(s.text(0)); b.settings().process.pid = Some(Some(path)); Ok(()) }).default("logs/nginx.pid"),
    Directive::new("user", MAIN, Arity::Between(1, 2),
        "User and group of the server, if root starts weir. Give weir a user that runs nothing else: other processes of \
         this user may kill the server.",
        |b, s| {
            let group = s.args.get(1).map(|word| word.text.clone());
            b.settings().process.user = Some(Some((s.text(0).to_owned(), group)));
            Ok(())
        }).default("nobody nogroup"),
    Directive::new("worker_processes", MAIN, ONE,
        "Number of workers; auto is the number of CPUs this process may really use (affinity and cgroup quota).",
        workers).default("auto (nginx: 1)"),
    Directive::new("worker_cpu_affinity", MAIN, Arity::AtLeast(1), "Binds workers to CPUs.", affinity),
    Directive::new("worker_coalesce", MAIN, ONE,
        "off, auto, or a time (200us, 1ms; at most 10ms): a busy worker sleeps before it asks for events, so that one wake-up \
         serves several. A request waits up to this time for that: up to half of it until weir reads the request, up to half of \
         it until weir reads the answer. With auto, weir takes a fiftieth of the time within which a quarter of the requests are \
         over, at most 1ms. A client that is alone is not delayed.",
        |b, s| { b.settings().process.coalesce = Some(coalesce(s)?); Ok(()) }).default("off"),
    Directive::new("worker_rlimit_nofile", MAIN, ONE,
        "Limit on open files; by default weir raises the soft limit to the hard limit.",
        |b, s| { b.settings().process.nofile = Some(Some(value::first_number(s)?)); Ok(()) }),
    Directive::new("worker_shutdown_timeout", MAIN, ONE,
        "How long connections of the old configuration may continue after a reload or a graceful stop.",
        |b, s| { b.settings().process.shutdown_timeout = Some(Some(value::time(s)?)); Ok(()) }),
    Directive::idle("worker_priority", MAIN, ONE, "",
        "the service manager sets the scheduling priority: set Nice= in the systemd unit",
        |_, s| s.text(0).parse::<i32>().map(drop).map_err(|_| Refusal::directive("invalid number"))).many(),
    Directive::idle("worker_rlimit_core", MAIN, ONE, "",
        "the service manager limits core dumps: set LimitCORE= in the systemd unit", |_, s| value::offset(s).map(drop)),
    Directive::idle("working_directory", MAIN, ONE, "",
        "the service manager sets the directory for core dumps: set WorkingDirectory= in the systemd \
         unit", |_, _| Ok(())),
    Directive::idle("env", MAIN, ONE, "", "weir does not read the environment after the start", |_, _| Ok(())).many(),
    Directive::new("pcre_jit", MAIN, Arity::Flag,
        "Compiles patterns to machine code. If a match exhausts its stack, weir repeats it without machine code.",
        |_, s| value::flag(s).map(drop)).default("on (nginx: off)"),
    Directive::idle("timer_resolution", MAIN, ONE, "",
        "weir reads the clock once in each turn of its event loop", |_, s| value::time(s).map(drop)),
    Directive::idle("lock_file", MAIN, ONE, "",
        "weir's workers need no lock", |_, _| Ok(())),
    Directive::new("ssl_engine", MAIN, ONE, "Refused: weir has no OpenSSL engines.",
        |_, _| Err(Refusal::directive("is not supported: weir has no OpenSSL engines").weirs_own())),
    Directive::idle("debug_points", MAIN, ONE, "",
        "weir has no debug points", |_, s| value::choice(s, &[("stop", ()), ("abort", ())])),
    Directive::idle("thread_pool", MAIN, Arity::Between(2, 3), "",
        "weir reads files without a thread pool", |_, s| thread_pool(s)).many(),
    Directive::new("load_module", MAIN, ONE, "No effect: weir loads no modules. It refuses each directive of a module that it does not have.", load_module).many(),
    Directive::new("events", MAIN, NONE, "Holds the connection processing directives.", events).block(),
    Directive::new("worker_connections", EVENTS, ONE,
        "The largest number of connections per worker, to clients and to upstreams; by default the limit on open files \
         decides.",
        |b, s| {
            b.settings().process.connections = Some(Some(value::first_number(s)? as usize));
            b.settings().process.connections_at = Some(s.at);
            Ok(())
        })
        .default("from the limit on open files (nginx: 512)"),
    Directive::new("use", EVENTS, ONE, "The event method; weir supports only epoll.", |_, s| match s.text(0) {
        "epoll" => Ok(()),
        other => {
            let refusal = Refusal::whole(format!("invalid event type \"{other}\""))
                .todo("remove the line: weir always uses epoll");
            // nginx has these methods on other systems, or if it was built with them.
            let is_nginxs = ["/dev/poll", "eventport", "kqueue", "poll", "select"].contains(&other);
            Err(if is_nginxs { refusal.weirs_own() } else { refusal })
        }
    }).default("epoll"),
    Directive::idle("multi_accept", EVENTS, Arity::Flag, "on", "weir accepts all waiting connections, up to a limit",
        |_, s| value::flag(s).map(drop)).default("on (nginx: off)"),
    Directive::idle("accept_mutex", EVENTS, Arity::Flag, "off",
        "the kernel wakes only one worker for each connection", |_, s| value::flag(s).map(drop)),
    Directive::idle("accept_mutex_delay", EVENTS, ONE, "",
        "the kernel wakes only one worker for each connection", |_, s| value::time(s).map(drop)),
    Directive::idle("epoll_events", EVENTS, ONE, "",
        "weir sizes its batches of events itself", |_, s| value::first_number(s).map(drop)),
    Directive::idle("worker_aio_requests", EVENTS, ONE, "",
        "weir reads files without asynchronous I/O", |_, s| value::first_number(s).map(drop)),
    Directive::new("google_perftools_profiles", MAIN, TWO, "Refused: weir has no support for it.",
        |_, _| Err(Refusal::directive("is not supported").weirs_own().todo("profile weir with: perf record -p PID"))),
]);

fn workers(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let count = match statement.text(0) {
        "auto" => None,
        text => match value::number(text) {
            Some(count) if count > 0 && count <= WORKERS_MAX as u64 => Some(count as usize),
            other => {
                let refusal = Refusal::directive("invalid value").todo(format!("write auto, or 1 to {WORKERS_MAX}"));
                return Err(if other.is_some() { refusal.weirs_own() } else { refusal });
            }
        },
    };
    b.settings().process.workers = Some(count);
    Ok(())
}

/// Checks `NAME threads=N [max_queue=N]`.
fn thread_pool(statement: &Statement) -> Result<(), Refusal> {
    let mut has_threads = false;
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        let (name, number) = match word.split_once('=') {
            Some(("threads", number)) => ("threads", value::number(number).filter(|number| *number > 0)),
            Some(("max_queue", number)) => ("max_queue", value::number(number)),
            Some(_) | None => return Err(Refusal::whole(format!("invalid parameter \"{word}\""))),
        };
        if number.is_none() {
            return Err(Refusal::whole(format!("invalid {name} value \"{word}\"")));
        }
        has_threads |= name == "threads";
    }
    let lacks = || Refusal::whole("\"thread_pool\" must have \"threads\" parameter");
    if has_threads { Ok(()) } else { Err(lacks()) }
}

/// The longest time that `worker_coalesce` takes.
const COALESCE_MAX: Duration = Duration::from_millis(10);

fn coalesce(statement: &Statement) -> Result<Coalesce, Refusal> {
    let refuse = |todo| Refusal::directive("invalid value").todo(todo);
    let text = statement.text(0);
    let time = match text.strip_suffix("us").map(value::number) {
        _ if text == "off" => return Ok(Coalesce::Off),
        _ if text == "auto" => return Ok(Coalesce::Auto),
        Some(Some(microseconds)) => Duration::from_micros(microseconds),
        Some(None) => return Err(refuse("write off, auto, or a time such as 200us")),
        None => value::time(statement)?,
    };
    match time <= COALESCE_MAX {
        true => Ok(Coalesce::Time(time)),
        false => Err(refuse("write off, auto, or a time of at most 10ms")),
    }
}

fn affinity(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut words = statement.args.iter().map(|word| word.text.as_str());
    let affinity = if statement.text(0) == "auto" {
        Affinity::Auto
    } else {
        let cpus: Option<Vec<usize>> = words
            .by_ref()
            .map(|mask| {
                if mask.is_empty() || !mask.bytes().all(|b| b == b'0' || b == b'1') {
                    return None;
                }
                mask.bytes().rev().position(|b| b == b'1')
            })
            .collect();
        Affinity::Cpus(
            cpus.ok_or_else(|| Refusal::whole(format!("invalid character in \"{}\" directive", statement.name.text)))?,
        )
    };
    b.settings().process.affinity = Some(affinity);
    Ok(())
}

fn events(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut scope = b.block(Scope::new(Kind::Plain, EVENTS, b.at()), statement)?;
    scope.settings.process.events = Some(true);
    b.scope().children.push(scope);
    Ok(())
}

/// The files of modules that weir may have built in, each with a directive of the module: weir has the module if it has
/// that directive. Files of nginx's own modules, and of modules that distributions package.
static MODULES: &[(&str, &str)] = &[
    ("ngx_http_addition_filter_module", "add_after_body"),
    ("ngx_http_auth_jwt_module", "auth_jwt"),
    ("ngx_http_auth_pam_module", "auth_pam"),
    ("ngx_http_auth_spnego_module", "auth_gss"),
    ("ngx_http_brotli_filter_module", "brotli"),
    ("ngx_http_brotli_static_module", "brotli_static"),
    ("ngx_http_cache_purge_module", "proxy_cache_purge"),
    ("ngx_http_dav_ext_module", "dav_ext_methods"),
    ("ngx_http_dav_module", "dav_methods"),
    ("ngx_http_echo_module", "echo"),
    ("ngx_http_fancyindex_module", "fancyindex"),
    ("ngx_http_geoip2_module", "geoip2"),
    ("ngx_http_geoip_module", "geoip_country"),
    ("ngx_http_headers_more_filter_module", "more_set_headers"),
    ("ngx_http_image_filter_module", "image_filter"),
    ("ngx_http_js_module", "js_import"),
    ("ngx_http_lua_module", "content_by_lua_block"),
    ("ngx_http_memc_module", "memc_pass"),
    ("ngx_http_modsecurity_module", "modsecurity"),
    ("ngx_http_perl_module", "perl"),
    ("ngx_http_set_misc_module", "set_unescape_uri"),
    ("ngx_http_srcache_filter_module", "srcache_fetch"),
    ("ngx_http_subs_filter_module", "subs_filter"),
    ("ngx_http_upload_module", "upload_pass"),
    ("ngx_http_uploadprogress_module", "upload_progress"),
    ("ngx_http_upstream_fair_module", "fair"),
    ("ngx_http_vhost_traffic_status_module", "vhost_traffic_status"),
    ("ngx_http_xslt_filter_module", "xslt_stylesheet"),
    ("ngx_http_zstd_filter_module", "zstd"),
    ("ngx_http_zstd_static_module", "zstd_static"),
    ("ngx_mail_module", "mail"),
    ("ngx_nchan_module", "nchan_pubsub"),
    ("ngx_otel_module", "otel_exporter"),
    ("ngx_rtmp_module", "rtmp"),
    ("ngx_stream_geoip2_module", "geoip2"),
    ("ngx_stream_geoip_module", "geoip_country"),
    ("ngx_stream_js_module", "js_import"),
    ("ngx_stream_module", "stream"),
];

/// A module without directives: other modules need it.
const FOR_OTHER_MODULES: &str = "ndk_http_module";

fn load_module(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let file = statement.text(0).rsplit('/').next().unwrap_or_default();
    let module = file.strip_suffix(".so").unwrap_or(file);
    let directive = MODULES.iter().find(|(name, _)| *name == module).map(|(_, directive)| *directive);
    // A file that was written for the module needs no change.
    if module == FOR_OTHER_MODULES || directive.is_some_and(|directive| b.known.has(directive)) {
        return Ok(());
    }
    // Debian's default file loads every installed module, whether the configuration uses it or not.
    if b.first_time("a module that is not loaded") {
        b.warn("weir loads no modules: the \"load_module\" directives have no effect",
            Some("you may keep the lines: weir reports each directive that it lacks; `weir edge -V` lists the built-in modules".to_owned()));
    }
    Ok(())
}
