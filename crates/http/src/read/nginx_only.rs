//! The directives of nginx, and weir's message for each directive that it does not have.
//!
//! The table holds every name of nginx 1.31.5, of NGINX Plus and of the usual separate modules, so a name that is not
//! in the table either is a typing error. The edge looks up only names that none of its families defines: a name in
//! the table may still be a directive of weir.
//!
//! Invariant: rows are sorted by name, and each has a remedy.

mod data;

pub use data::NginxDirective;

impl NginxDirective {
    /// Whether it may stand in this context, named as in [`NginxDirective::contexts`].
    pub fn is_allowed_in(&self, context: &str) -> bool {
        self.contexts.split(", ").any(|one| one == context || one == "any")
    }

    /// The origin of the directive, for the sentence `"NAME" is …`.
    pub fn origin(&self) -> DirectiveOrigin {
        match self.modules {
            "NGINX Plus" => DirectiveOrigin::Commercial,
            "removed from nginx" => DirectiveOrigin::Removed,
            modules if modules.starts_with("ngx_") || modules == "nginx" => DirectiveOrigin::Nginx,
            _ => DirectiveOrigin::SeparateModule,
        }
    }

    /// The remedy, in one line: the first rule that fits in [`REMEDIES`].
    pub fn remedy(&self) -> &'static str {
        let fits = |(rule, _): &&(Rule, &str)| rule.fits(self);
        REMEDIES.iter().find(fits).map_or(NO_COUNTERPART, |(_, remedy)| *remedy)
    }
}

/// The origin of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectiveOrigin {
    /// Open-source nginx has it.
    Nginx,
    /// Only NGINX Plus has it.
    Commercial,
    /// A module that is not part of nginx has it.
    SeparateModule,
    /// Older versions of nginx had it.
    Removed,
}

impl DirectiveOrigin {
    /// The words after `is `: `an nginx directive`, `a directive of NGINX Plus`, ….
    pub fn phrase(self) -> &'static str {
        match self {
            DirectiveOrigin::Nginx => "an nginx directive",
            DirectiveOrigin::Commercial => "a directive of NGINX Plus",
            DirectiveOrigin::SeparateModule => "a directive of a separate nginx module",
            DirectiveOrigin::Removed => "a directive removed from nginx",
        }
    }
}

/// The entry of a name, if nginx or a known module for it has such a directive.
pub fn lookup(name: &str) -> Option<&'static NginxDirective> {
    let index = data::ENTRIES.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
    data::ENTRIES.get(index)
}

/// The module whose variable this is; `None` if weir has the variable, or nginx has no variable of that name.
pub fn variable_module(name: &str) -> Option<&'static str> {
    let has = |(names, _): &&(&[&str], &str)| {
        names.iter().any(|known| *known == name || (known.ends_with('_') && name.starts_with(known)))
    };
    VARIABLES.iter().find(has).map(|(_, module)| *module)
}

/// The variables of nginx 1.31.5 that weir does not have, by module; a name that ends in `_` is a prefix.
#[rustfmt::skip]
static VARIABLES: &[(&[&str], &str)] = &[
    (&["geoip_"], "ngx_http_geoip_module"),
];

/// Every known name, sorted: candidates for `did you mean`.
pub fn names() -> impl Iterator<Item = &'static str> {
    data::ENTRIES.iter().map(|entry| entry.name)
}

/// The entries that a remedy applies to.
enum Rule {
    /// The directive of this name.
    Name(&'static str),
    /// Directives whose names begin with this text.
    Names(&'static str),
    /// Directives whose first module begins with this text.
    Module(&'static str),
}

impl Rule {
    fn fits(&self, entry: &NginxDirective) -> bool {
        match self {
            Rule::Name(name) => entry.name == *name,
            Rule::Names(start) => entry.name.starts_with(start),
            Rule::Module(start) => entry.modules.starts_with(start),
        }
    }
}

use Rule::{Module, Name, Names};

const NO_COUNTERPART: &str = "weir has no counterpart: run nginx for it on another port, and proxy_pass to that port";
const NOTHING_TO_TUNE: &str = "remove the line: it tunes internals of nginx that weir does not have";
const COMPUTE: &str =
    "compute the value with map, set or rewrite, let the origin decide, or keep nginx for this location";
const TLS_IN_FRONT: &str = "remove the line if it only repeats the default, or keep nginx for the TLS of this server";
const FIND_THE_CLIENT_S_PLACE: &str = "use geo, which maps addresses without a database, or keep nginx for this server";
const WATCH: &str = "remove the line, and use weir's own live status (api, metrics, dashboard)";
const JWT: &str = "check the token in the application or in a login proxy in front of it, or keep NGINX Plus";

/// Remedies, the most specific first: the first rule that fits an entry gives its remedy.
#[rustfmt::skip]
static REMEDIES: &[(Rule, &str)] = &[
    // Names that need a sentence of their own.
    (Name("load_module"), "weir loads no modules: the line has no effect, and weir reports each directive of the module that it lacks"),
    (Name("ssl"), "write \"listen ADDRESS ssl;\" instead of \"ssl on;\", which nginx requires since 1.25.1"),
    (Name("limit_zone"), "write limit_conn_zone instead, which nginx requires since 1.7.6"),
    (Names("spdy_"), "remove the line: neither clients nor nginx support SPDY any more"),
    (Name("debug_points"), "remove the line: it only stops nginx in a debugger"),
    (Name("env"), "set the environment when you start weir (systemd: Environment=)"),
    (Name("working_directory"), "set the directory when you start weir (systemd: WorkingDirectory=)"),
    (Name("worker_priority"), "set the priority when you start weir (systemd: Nice=)"),
    (Name("worker_rlimit_core"), "set the limit when you start weir (systemd: LimitCORE=)"),
    (Name("ssl_engine"), "weir loads no OpenSSL engines: use a key file"),
    (Name("perl_modules"), COMPUTE),
    // Whole groups of modules.
    (Module("ngx_mail"), "weir is not a mail proxy: keep nginx for mail"),
    (Module("ngx_http_ssl"), TLS_IN_FRONT),
    (Names("ssl_"), TLS_IN_FRONT),
    // Bodies and values that nginx makes itself.
    (Module("ngx_http_xslt"), "transform XML at the origin, or keep nginx for this location"),
    (Module("ngx_http_image_filter"), "resize images at the origin or in an image service, or keep nginx for this location"),
    (Module("ngx_http_perl"), COMPUTE),
    (Module("ngx_http_geoip"), FIND_THE_CLIENT_S_PLACE),
    // Internals of nginx.
    (Module("ngx_http_degradation"), "limit load with limit_req and limit_conn"),
    (Module("ngx_google_perftools"), "profile with perf: remove the line"),
    (Module("ngx_event"), NOTHING_TO_TUNE),
    (Module("ngx_epoll"), NOTHING_TO_TUNE),
    (Module("ngx_kqueue"), NOTHING_TO_TUNE),
    (Module("ngx_devpoll"), NOTHING_TO_TUNE),
    (Module("ngx_iocp"), NOTHING_TO_TUNE),
    (Module("ngx_regex"), NOTHING_TO_TUNE),
    (Module("ngx_thread_pool"), NOTHING_TO_TUNE),
    (Module("ngx_http_copy_filter"), NOTHING_TO_TUNE),
    (Names("aio"), NOTHING_TO_TUNE),
    (Names("directio"), NOTHING_TO_TUNE),
    (Names("open_file_cache"), NOTHING_TO_TUNE),
    (Names("server_names_hash_"), NOTHING_TO_TUNE),
    (Names("types_hash_"), NOTHING_TO_TUNE),
    (Names("variables_hash_"), NOTHING_TO_TUNE),
    (Names("map_hash_"), NOTHING_TO_TUNE),
    (Names("proxy_headers_hash_"), NOTHING_TO_TUNE),
    (Names("referer_hash_"), NOTHING_TO_TUNE),
    (Name("connection_pool_size"), NOTHING_TO_TUNE),
    (Name("request_pool_size"), NOTHING_TO_TUNE),
    (Name("read_ahead"), NOTHING_TO_TUNE),
    (Name("send_lowat"), NOTHING_TO_TUNE),
    (Name("proxy_send_lowat"), NOTHING_TO_TUNE),
    (Name("postpone_output"), NOTHING_TO_TUNE),
    (Name("timer_resolution"), NOTHING_TO_TUNE),
    (Name("lock_file"), NOTHING_TO_TUNE),
    (Name("master_process"), NOTHING_TO_TUNE),
    // NGINX Plus.
    (Names("auth_jwt"), JWT),
    (Name("auth_require"), JWT),
    (Names("auth_oidc"), "sign users in by the application or by a login proxy in front of it, or keep NGINX Plus"),
    (Name("oidc_provider"), "sign users in by the application or by a login proxy in front of it, or keep NGINX Plus"),
    (Names("zone_sync"), "instances of weir share no state: send each key to one instance with hash, or keep NGINX Plus"),
    (Names("status"), WATCH),
    (Name("api"), WATCH),
    (Name("upstream_conf"), "change the upstream block and reload: no request is lost"),
    (Name("state"), "write the servers into the upstream block and reload: no request is lost"),
    (Name("sticky_cookie_insert"), "write sticky cookie, which nginx has since 1.29.6, or use ip_hash"),
    (Name("internal_redirect"), "use error_page, rewrite or try_files"),
    (Name("mgmt"), "remove the block: it only reports the use of NGINX Plus"),
    (Names("session_log"), "use access_log, which writes one line for each request, or keep NGINX Plus"),
    (Names("hls"), "cut the stream into segments with ffmpeg and serve the files, or keep NGINX Plus"),
    (Names("f4f"), "serve HLS or DASH segments as files: players support HDS no more"),
    (Names("mqtt"), "keep NGINX Plus, or a broker, for MQTT"),
    (Name("ntlm"), "use another authentication scheme (NTLM binds a connection to a user), or keep NGINX Plus"),
    (Module("NGINX Plus"), "keep NGINX Plus for this server or location"),
    // Separate modules.
    (Names("js_"), COMPUTE),
    (Names("zstd_dict_file"), "remove the line: HTTP cannot say which dictionary a body needs"),
    (Name("echo_exec"), "use rewrite, try_files or error_page, which go on in another location"),
    (Names("echo"), "answer with echo or return in this location itself"),
    (Names("subs_filter"), "use sub_filter for plain texts, or let the origin answer with the final body"),
    (Names("geoip2"), FIND_THE_CLIENT_S_PLACE),
    (Names("vhost_traffic_status"), WATCH),
    (Names("rtmp"), "keep nginx for RTMP"),
    (Names("nchan"), "use a WebSocket server behind proxy_pass, or keep nginx for this location"),
    (Names("modsecurity"), "put a web application firewall in front, or keep nginx for this server"),
    (Names("passenger"), "let the application server listen on a port and use proxy_pass"),
    (Names("check"), "use health_check, or max_fails and fail_timeout"),
    (Names("pagespeed"), "optimise pages when you build them: nobody maintains this module any more"),
    (Module("separate module lua"), COMPUTE),
    (Module("separate module set-misc"), COMPUTE),
    (Module("separate module"), "weir loads no modules: keep nginx for this server or location"),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn rows_are_sorted_and_each_is_found() {
        let names: Vec<&str> = names().collect();
        assert!(names.is_sorted_by(|a, b| a < b));
        for name in names {
            assert_eq!(lookup(name).map(|entry| entry.name), Some(name));
        }
        assert_eq!(lookup("proxy_pas"), None);
        assert_eq!(lookup(""), None);
    }

    #[test]
    fn known_names_say_where_they_belong() {
        let entry = lookup("fastcgi_pass").unwrap();
        assert_eq!(entry.modules, "ngx_http_fastcgi_module");
        assert_eq!(entry.contexts, "location, if in location");
        assert!(entry.is_allowed_in("location") && !entry.is_allowed_in("server"));
        assert!(lookup("include").unwrap().is_allowed_in("upstream"));
        assert!(lookup("ssl_preread").unwrap().is_allowed_in("stream server"));
        assert!(lookup("worker_processes").unwrap().is_allowed_in("main"));
    }

    #[test]
    fn origins_are_told_apart() {
        let origin = |name| lookup(name).unwrap().origin();
        assert_eq!(origin("daemon"), DirectiveOrigin::Nginx);
        assert_eq!(origin("xslt_stylesheet"), DirectiveOrigin::Nginx);
        assert_eq!(origin("health_check"), DirectiveOrigin::Commercial);
        assert_eq!(origin("zone_sync_server"), DirectiveOrigin::Commercial);
        assert_eq!(origin("content_by_lua_block"), DirectiveOrigin::SeparateModule);
        assert_eq!(origin("ssl"), DirectiveOrigin::Removed);
    }

    #[test]
    fn each_rule_speaks_for_some_entry() {
        let spoken = |index: usize| {
            data::ENTRIES.iter().any(|entry| REMEDIES.iter().position(|(rule, _)| rule.fits(entry)) == Some(index))
        };
        let silent: Vec<&str> =
            (0..REMEDIES.len()).filter(|index| !spoken(*index)).map(|index| REMEDIES[index].1).collect();
        assert_eq!(silent, [""; 0]);
    }

    #[test]
    fn a_remedy_is_one_sentence_for_a_terminal() {
        for entry in data::ENTRIES {
            let remedy = entry.remedy();
            assert!(!remedy.is_empty() && remedy.len() <= 160, "{}: {remedy}", entry.name);
            assert!(!remedy.ends_with('.') && !remedy.contains('\n'), "{}: {remedy}", entry.name);
        }
    }
}
