//! The nginx modules that weir has, for the output of `-V`. It also names absent modules, so that nginx's own test
//! suite skips tests that cannot pass. Also the page of all directives.

use crate::family::ALL;

/// nginx's optional modules that weir has, and the family that implements each.
const WITH: &[(&str, &str)] = &[
    ("http_addition_module", "addition"),
    ("http_auth_request_module", "auth_request"),
    ("http_dav_module", "dav"),
    ("http_flv_module", "flv"),
    ("http_gunzip_module", "gunzip"),
    ("http_gzip_static_module", "precompressed"),
    ("http_mp4_module", "mp4"),
    ("http_random_index_module", "random_index"),
    ("http_secure_link_module", "secure_link"),
    ("http_slice_module", "slice"),
    ("http_ssl_module", "ssl"),
    ("http_stub_status_module", "stub_status"),
    ("http_sub_module", "sub_filter"),
    ("http_v2_module", "http2"),
    ("http_v3_module", "http3"),
];

/// nginx's modules that are on by default, and the family that implements each in weir.
const DEFAULT_MODULES: &[(&str, &str)] = &[
    ("http_access_module", "access"),
    ("http_auth_basic_module", "auth_basic"),
    ("http_autoindex_module", "autoindex"),
    ("http_browser_module", "browser"),
    ("http_charset_module", "charset"),
    ("http_empty_gif_module", "empty_gif"),
    ("http_fastcgi_module", "fastcgi"),
    ("http_geo_module", "geo"),
    ("http_grpc_module", "grpc"),
    ("http_gzip_module", "gzip"),
    ("http_limit_conn_module", "limit_conn"),
    ("http_limit_req_module", "limit_req"),
    ("http_map_module", "map"),
    ("http_memcached_module", "memcached"),
    ("http_mirror_module", "mirror"),
    ("http_proxy_module", "proxy"),
    ("http_referer_module", "referer"),
    ("http_rewrite_module", "rewrite"),
    ("http_scgi_module", "scgi"),
    ("http_split_clients_module", "split_clients"),
    ("http_ssi_module", "ssi"),
    ("http_tunnel_module", "tunnel"),
    ("http_upstream_least_time_module", "upstream"),
    ("http_upstream_sticky_module", "sticky"),
    ("http_userid_module", "userid"),
    ("http_uwsgi_module", "uwsgi"),
];

/// nginx's modules of `stream` that are optional, and those that are on by default and absent in weir.
const STREAM: &[&str] =
    &["--with-stream", "--with-stream_realip_module", "--with-stream_ssl_module", "--with-stream_ssl_preread_module"];

/// The `configure arguments` of `-V`.
pub fn configure_arguments() -> String {
    let has = |name: &str| ALL.all.iter().any(|family| family.name == name);
    // As an nginx that was built with a build name: `server_tokens build` shows the same name.
    let mut words = vec![format!("--build={}", weir_http::send::respond::BUILD)];
    words.push("--with-debug".to_owned());
    let with = WITH.iter().filter(|(_, family)| has(family));
    words.extend(with.map(|(module, _)| format!("--with-{module}")));
    if has("realip") {
        words.push("--with-http_realip_module".to_owned());
    }
    words.extend(STREAM.iter().map(|&word| word.to_owned()));
    // In nginx these are separate modules.
    for (module, family) in
        [("nginx-acme", "acme"), ("nginx-otel", "otel"), ("ngx_brotli", "brotli"), ("zstd-nginx-module", "zstd")]
    {
        if has(family) {
            words.push(format!("--add-module={module}"));
        }
    }
    if !has("cache") {
        words.push("--without-http-cache".to_owned());
    }
    words.extend(
        DEFAULT_MODULES.iter().filter(|(_, family)| !has(family)).map(|(module, _)| format!("--without-{module}")),
    );
    words.join(" ")
}

/// Every directive, family by family, as the page `docs/reference/directives.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "# Directives\n\nPrinted by `weir edge --reference` from weir's own tables; do not edit. A directive has \
         nginx's meaning\n\
         (<https://nginx.org/en/docs/dirindex.html>). Where weir's default differs, nginx's default follows in \
         parentheses.\n",
    );
    for family in ALL.all.iter().filter(|family| !family.directives.is_empty()) {
        text.push_str(&format!("\n## {}\n\n| directive | where | default | |\n|---|---|---|---|\n", family.name));
        for directive in family.directives {
            let default = match directive.default {
                "" => String::new(),
                default => format!("`{}`", default.replace('|', "\\|")),
            };
            let doc = directive.doc.replace('|', "\\|");
            let doc = if directive.idle { format!("No effect: {doc}.") } else { doc };
            text.push_str(&format!("| `{}` | {} | {default} | {doc} |\n", directive.name, directive.contexts));
        }
    }
    text
}
