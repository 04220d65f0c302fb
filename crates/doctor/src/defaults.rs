//! nginx's defaults, version by version.
//!
//! From the source's `ngx_conf_init_*` and `ngx_conf_merge_*` calls and CHANGES. Each change has its version. Sizes
//! that depend on the page size are for pages of 4 KiB.

use weir_http::text::value::{long_time_of, offset_of};

use crate::version::Version;
use crate::view::Spot;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Words, literally.
    Words,
    /// Words in any order.
    Set,
    /// `60s` is `1m`.
    Time,
    /// `1m` is `1024k`.
    Size,
    /// A number and a size.
    Buffers,
}

/// A directive's default.
pub struct Default {
    /// The directive.
    pub name: &'static str,
    /// The outermost block in which it is usually written, for the reference.
    pub place: &'static str,
    /// How its values are compared.
    pub kind: Comparison,
    /// The values, each from a version on, oldest first; `-` for no default.
    pub history: &'static [(Version, &'static str)],
    /// The actual meaning, if people often misunderstand it. Otherwise empty.
    pub note: weir_words::Words,
}

const ALWAYS: Version = Version(0, 0, 0);

const fn one(
    name: &'static str,
    place: &'static str,
    kind: Comparison,
    value: &'static [(Version, &'static str)],
) -> Default {
    Default { name, place, kind, history: value, note: words("", "") }
}

impl Default {
    const fn note(mut self, note: weir_words::Words) -> Default {
        self.note = note;
        self
    }

    /// The value in this version; `None` if there is no default.
    pub fn at(&self, version: Version) -> Option<&'static str> {
        let last = self.history.iter().rev().find(|(since, _)| version >= *since)?;
        (last.1 != "-").then_some(last.1)
    }

    /// Whether it is the default of this statement. `keepalive_timeout` in an upstream is another directive.
    pub fn is_for(&self, spot: Spot<'_>) -> bool {
        let in_upstream = spot.is_in("upstream");
        let elsewhere = spot.is_in("stream") || spot.is_in("mail") || spot.is_in("types") || spot.is_in("map");
        !elsewhere && (self.place == "upstream") == in_upstream
    }

    /// Whether two values mean the same.
    pub fn is_same(&self, one: &str, other: &str) -> bool {
        let words = |text: &str| -> Vec<String> {
            let mut words: Vec<String> = text.split_whitespace().map(|word| self.normal(word)).collect();
            if self.kind == Comparison::Set {
                words.sort();
            }
            words
        };
        words(one) == words(other)
    }

    fn normal(&self, word: &str) -> String {
        let read = match self.kind {
            Comparison::Words | Comparison::Set => None,
            Comparison::Time => long_time_of(word).map(|time| format!("{} ms", time.as_millis())),
            Comparison::Size | Comparison::Buffers => offset_of(word).map(|size| format!("{size} bytes")),
        };
        read.unwrap_or_else(|| word.to_owned())
    }
}

/// The default of a directive in http. Directives of upstreams with the same names, such as `keepalive_timeout`, are
/// not found here.
pub fn lookup(name: &str) -> Option<&'static Default> {
    DEFAULTS.iter().find(|default| default.name == name && default.place != "upstream")
}

use Comparison::{Buffers, Set, Size, Time, Words};
use weir_words::words;

/// The table, sorted by place, then by name.
#[rustfmt::skip]
pub static DEFAULTS: &[Default] = &[
    one("worker_processes", "main", Words, &[(ALWAYS, "1")])
        .note(words("a worker is one thread; auto means one worker for each CPU of the machine", "워커는 스레드 하나입니다. auto는 머신의 CPU 수입니다")),
    one("daemon", "main", Words, &[(ALWAYS, "on")]),
    one("master_process", "main", Words, &[(ALWAYS, "on")]),
    one("pcre_jit", "main", Words, &[(ALWAYS, "off")]),
    one("timer_resolution", "main", Time, &[(ALWAYS, "-")]),
    one("worker_rlimit_nofile", "main", Words, &[(ALWAYS, "-")])
        .note(words("open files of each worker; without this line, the limit of the process that starts nginx applies", "워커마다의 파일 수입니다. 없으면 nginx를 시작한 프로세스의 한도가 적용됩니다")),
    one("worker_connections", "events", Words, &[(ALWAYS, "512")])
        .note(words("for each worker, connections to origins included; Debian's nginx.conf sets 768, nginx.org's sets 1024", "워커마다의 값이고 오리진 연결도 셉니다. 768은 Debian, 1024는 nginx.org의 파일입니다")),
    one("multi_accept", "events", Words, &[(ALWAYS, "off")])
        .note(words("off means one accept per wake-up, not one per second", "off는 초당이 아니라 깨어날 때마다 accept 한 번입니다")),
    one("accept_mutex", "events", Words, &[(ALWAYS, "on"), (Version(1, 11, 3), "off")]),
    one("accept_mutex_delay", "events", Time, &[(ALWAYS, "500ms")]),
    one("absolute_redirect", "http", Words, &[(ALWAYS, "on")]),
    one("access_log", "http", Words, &[(ALWAYS, "logs/access.log combined")]),
    one("add_header_inherit", "http", Words, &[(Version(1, 29, 3), "on")]),
    one("aio", "http", Words, &[(ALWAYS, "off")]),
    one("autoindex", "http", Words, &[(ALWAYS, "off")]),
    one("charset", "http", Words, &[(ALWAYS, "off")]),
    one("chunked_transfer_encoding", "http", Words, &[(ALWAYS, "on")]),
    one("client_body_buffer_size", "http", Size, &[(ALWAYS, "8k")]).note(words("16k on 64-bit systems with pages of 8k", "8k 페이지를 쓰는 64비트 시스템에서는 16k입니다")),
    one("client_body_timeout", "http", Time, &[(ALWAYS, "60s")]).note(words("the time between two reads of a request's body", "요청 본문을 두 번 읽는 사이의 시간입니다")),
    one("client_header_buffer_size", "http", Size, &[(ALWAYS, "1k")]),
    one("client_header_timeout", "http", Time, &[(ALWAYS, "60s")]),
    one("client_max_body_size", "http", Size, &[(ALWAYS, "1m")]).note(words("nginx answers a larger upload with 413", "더 큰 업로드에는 413으로 응답합니다")),
    one("default_type", "http", Words, &[(ALWAYS, "text/plain")]),
    one("directio", "http", Words, &[(ALWAYS, "off")]),
    one("etag", "http", Words, &[(ALWAYS, "on")]),
    one("gzip", "http", Words, &[(ALWAYS, "off")]),
    one("gzip_comp_level", "http", Words, &[(ALWAYS, "1")]),
    one("gzip_http_version", "http", Words, &[(ALWAYS, "1.1")]),
    one("gzip_min_length", "http", Size, &[(ALWAYS, "20")]),
    one("gzip_proxied", "http", Words, &[(ALWAYS, "off")]),
    one("gzip_types", "http", Set, &[(ALWAYS, "text/html")]),
    one("gzip_vary", "http", Words, &[(ALWAYS, "off")]),
    one("http2", "http", Words, &[(Version(1, 25, 1), "off")]),
    one("if_modified_since", "http", Words, &[(ALWAYS, "exact")]),
    one("ignore_invalid_headers", "http", Words, &[(ALWAYS, "on")]),
    one("keepalive_disable", "http", Words, &[(ALWAYS, "msie6")]),
    one("keepalive_requests", "http", Words, &[(ALWAYS, "100"), (Version(1, 19, 10), "1000")])
        .note(words("nginx closes a client's connection after this many requests", "클라이언트 연결 하나가 닫히기 전까지의 요청 수입니다")),
    one("keepalive_time", "http", Time, &[(Version(1, 19, 10), "1h")]),
    one("keepalive_timeout", "http", Time, &[(ALWAYS, "75s")])
        .note(words("the time that a client's idle connection may wait for its next request; it does not apply after 101", "클라이언트의 유휴 연결이 다음 요청을 기다리는 시간이며, 101 뒤에는 적용되지 않습니다")),
    one("large_client_header_buffers", "http", Buffers, &[(ALWAYS, "4 8k")]),
    one("lingering_close", "http", Words, &[(ALWAYS, "on")]),
    one("lingering_time", "http", Time, &[(ALWAYS, "30s")]),
    one("lingering_timeout", "http", Time, &[(ALWAYS, "5s")]),
    one("log_not_found", "http", Words, &[(ALWAYS, "on")]),
    one("log_subrequest", "http", Words, &[(ALWAYS, "off")]),
    one("merge_slashes", "http", Words, &[(ALWAYS, "on")]),
    one("open_file_cache", "http", Words, &[(ALWAYS, "off")]),
    one("port_in_redirect", "http", Words, &[(ALWAYS, "on")]),
    one("postpone_output", "http", Size, &[(ALWAYS, "1460")]),
    one("proxy_buffer_size", "http", Size, &[(ALWAYS, "4k")]).note(words("the head of the origin's answer must fit; otherwise the client gets 502", "응답 헤더가 들어가야 하며, 아니면 502입니다")),
    one("proxy_buffering", "http", Words, &[(ALWAYS, "on")]),
    one("proxy_buffers", "http", Buffers, &[(ALWAYS, "8 4k")]),
    one("proxy_cache", "http", Words, &[(ALWAYS, "off")]),
    one("proxy_cache_background_update", "http", Words, &[(Version(1, 11, 10), "off")]),
    one("proxy_cache_key", "http", Words, &[(ALWAYS, "$scheme://$proxy_host$request_uri")])
        .note(words("the key contains neither cookies nor the client's Host", "쿠키도 클라이언트의 Host도 들어 있지 않습니다")),
    one("proxy_cache_lock", "http", Words, &[(ALWAYS, "off")]).note(words("a waiting request checks every 500 ms", "기다리는 요청은 500ms마다 확인합니다")),
    one("proxy_cache_lock_age", "http", Time, &[(ALWAYS, "5s")]),
    one("proxy_cache_lock_timeout", "http", Time, &[(ALWAYS, "5s")]),
    one("proxy_cache_methods", "http", Set, &[(ALWAYS, "GET HEAD")]),
    one("proxy_cache_min_uses", "http", Words, &[(ALWAYS, "1")]),
    one("proxy_cache_revalidate", "http", Words, &[(ALWAYS, "off")]),
    one("proxy_cache_use_stale", "http", Words, &[(ALWAYS, "off")]),
    one("proxy_connect_timeout", "http", Time, &[(ALWAYS, "60s")]).note(words("the time until the origin accepts the connection; the kernel itself gives up after about 75 s", "오리진이 수락할 때까지이며, 커널은 75초쯤 뒤에 포기합니다")),
    one("proxy_http_version", "http", Words, &[(ALWAYS, "1.0"), (Version(1, 29, 7), "1.1")]),
    one("proxy_ignore_client_abort", "http", Words, &[(ALWAYS, "off")]),
    one("proxy_intercept_errors", "http", Words, &[(ALWAYS, "off")]),
    one("proxy_max_temp_file_size", "http", Size, &[(ALWAYS, "1024m")]),
    one("proxy_next_upstream", "http", Set, &[(ALWAYS, "error timeout")]),
    one("proxy_next_upstream_timeout", "http", Time, &[(ALWAYS, "0")]),
    one("proxy_next_upstream_tries", "http", Words, &[(ALWAYS, "0")]).note(words("0 means that nginx may try every server of the group", "0은 그룹의 모든 서버입니다")),
    one("proxy_pass_request_body", "http", Words, &[(ALWAYS, "on")]),
    one("proxy_pass_request_headers", "http", Words, &[(ALWAYS, "on")]),
    one("proxy_read_timeout", "http", Time, &[(ALWAYS, "60s")])
        .note(words("the time between two reads from the origin, not from the client; it also applies after 101", "클라이언트가 아니라 오리진에서 두 번 읽는 사이의 시간이며, 101 뒤에도 적용됩니다")),
    one("proxy_redirect", "http", Words, &[(ALWAYS, "default")]),
    one("proxy_request_buffering", "http", Words, &[(ALWAYS, "on")]),
    one("proxy_send_timeout", "http", Time, &[(ALWAYS, "60s")]).note(words("the time between two writes to the origin", "오리진에 두 번 쓰는 사이의 시간입니다")),
    one("proxy_socket_keepalive", "http", Words, &[(Version(1, 15, 6), "off")]),
    one("proxy_ssl_server_name", "http", Words, &[(ALWAYS, "off")]).note(words("with off, nginx sends no SNI, and many origins then answer with another certificate", "off면 SNI를 보내지 않아 많은 오리진이 다른 인증서로 응답합니다")),
    one("proxy_ssl_session_reuse", "http", Words, &[(ALWAYS, "on")]),
    one("proxy_ssl_verify", "http", Words, &[(ALWAYS, "off")]),
    one("recursive_error_pages", "http", Words, &[(ALWAYS, "off")]),
    one("reset_timedout_connection", "http", Words, &[(ALWAYS, "off")]),
    one("satisfy", "http", Words, &[(ALWAYS, "all")]),
    one("send_timeout", "http", Time, &[(ALWAYS, "60s")]).note(words("the time between two writes to a client", "클라이언트에 두 번 쓰는 사이의 시간입니다")),
    one("sendfile", "http", Words, &[(ALWAYS, "off")]),
    one("sendfile_max_chunk", "http", Size, &[(ALWAYS, "0"), (Version(1, 21, 4), "2m")]),
    one("server_name_in_redirect", "http", Words, &[(ALWAYS, "off")]),
    one("server_tokens", "http", Words, &[(ALWAYS, "on")]),
    one("ssl_buffer_size", "http", Size, &[(ALWAYS, "16k")]),
    one("ssl_ciphers", "http", Words, &[(ALWAYS, "HIGH:!aNULL:!MD5")]),
    one("ssl_early_data", "http", Words, &[(Version(1, 15, 3), "off")]),
    one("ssl_prefer_server_ciphers", "http", Words, &[(ALWAYS, "off")]),
    one("ssl_protocols", "http", Set, &[
        (ALWAYS, "TLSv1 TLSv1.1 TLSv1.2"), (Version(1, 23, 4), "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"), (Version(1, 27, 3), "TLSv1.2 TLSv1.3")]),
    one("ssl_session_cache", "http", Words, &[(ALWAYS, "none")]),
    one("ssl_session_tickets", "http", Words, &[(ALWAYS, "on")]),
    one("ssl_session_timeout", "http", Time, &[(ALWAYS, "5m")]),
    one("ssl_stapling", "http", Words, &[(ALWAYS, "off")]),
    one("ssl_verify_client", "http", Words, &[(ALWAYS, "off")]),
    one("tcp_nodelay", "http", Words, &[(ALWAYS, "on")]),
    one("tcp_nopush", "http", Words, &[(ALWAYS, "off")]),
    one("types_hash_max_size", "http", Words, &[(ALWAYS, "1024")]),
    one("underscores_in_headers", "http", Words, &[(ALWAYS, "off")]),
    one("keepalive", "upstream", Words, &[(ALWAYS, "-"), (Version(1, 29, 7), "32 local")])
        .note(words("idle connections that each worker keeps; not a number for each user, and not a limit on connections", "사용자가 아니라 워커마다의 유휴 연결 수이며, 연결의 상한이 아닙니다")),
    one("keepalive_requests", "upstream", Words, &[(Version(1, 15, 3), "100"), (Version(1, 19, 10), "1000")]),
    one("keepalive_timeout", "upstream", Time, &[(Version(1, 15, 3), "60s")])
        .note(words("if it is longer than the origin's own timeout (Node: 5 s), nginx sometimes uses a connection that the origin is closing", "오리진의 값(Node: 5초)보다 길면 가끔 막 닫히는 연결을 쓰게 됩니다")),
];

const DEBIAN: weir_words::Words = words("Debian's package", "Debian 패키지");
const NGINX_ORG: weir_words::Words = words("nginx.org's package", "nginx.org 패키지");
const BOTH: weir_words::Words = words("Debian's and nginx.org's packages", "Debian과 nginx.org 패키지");

/// Lines in the configuration files of distributions: directive, value, distributor.
pub static SHIPPED: &[(&str, &str, weir_words::Words)] = &[
    ("user", "www-data", DEBIAN),
    ("worker_processes", "auto", BOTH),
    ("worker_connections", "768", DEBIAN),
    ("worker_connections", "1024", NGINX_ORG),
    ("sendfile", "on", BOTH),
    ("tcp_nopush", "on", DEBIAN),
    ("types_hash_max_size", "2048", DEBIAN),
    ("default_type", "application/octet-stream", BOTH),
    ("keepalive_timeout", "65", NGINX_ORG),
    ("ssl_prefer_server_ciphers", "on", DEBIAN),
    ("gzip", "on", DEBIAN),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn defaults_are_true_to_the_version() {
        let at = |name: &str, version| lookup(name).unwrap().at(version);
        assert_eq!(at("keepalive_requests", Version(1, 19, 9)), Some("100"));
        assert_eq!(at("keepalive_requests", Version(1, 19, 10)), Some("1000"));
        assert_eq!(at("proxy_http_version", Version(1, 29, 6)), Some("1.0"));
        assert_eq!(at("proxy_http_version", Version(1, 29, 7)), Some("1.1"));
        assert_eq!(at("http2", Version(1, 25, 0)), None);
        assert_eq!(at("timer_resolution", Version(1, 25, 0)), None);
    }

    #[test]
    fn values_are_compared_by_meaning() {
        let same = |name: &str, one: &str, other: &str| lookup(name).unwrap().is_same(one, other);
        assert!(same("proxy_read_timeout", "1m", "60s") && same("proxy_read_timeout", "60", "60s"));
        assert!(!same("proxy_read_timeout", "600", "60s"));
        assert!(same("client_max_body_size", "1024k", "1m") && same("proxy_buffers", "8 4096", "8 4k"));
        assert!(same("ssl_protocols", "TLSv1.3 TLSv1.2", "TLSv1.2 TLSv1.3"));
        assert!(!same("proxy_redirect", "off", "default"));
    }

    #[test]
    fn the_table_is_in_order() {
        for default in DEFAULTS {
            assert!(default.history.is_sorted_by_key(|(since, _)| *since), "{}", default.name);
            assert!(!default.history.is_empty(), "{}", default.name);
            assert!(crate::rules::is_known(default.name), "{}", default.name);
            let again = DEFAULTS.iter().filter(|other| other.name == default.name && other.place == default.place);
            assert_eq!(again.count(), 1, "{}", default.name);
        }
    }
}
