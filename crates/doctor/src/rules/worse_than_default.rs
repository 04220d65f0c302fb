//! Values that are worse than none.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "worse_than_default",
    level: Level::Risk,
    group: Group::Speed,
    says: words("The value is worse than nginx's default", "nginx 기본값보다 나쁜 값입니다"),
    remedy: words("Take the line out unless it was measured here.", "이 환경에서 측정한 결과가 아니라면 지우세요."),
    source: "nginx.org ngx_http_core_module, ngx_http_gzip_module, ngx_http_proxy_module",
    check,
    fires: Example::conf("http { tcp_nodelay off; }"),
    silent: Example::conf("http { tcp_nodelay on; }"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.all().filter(|spot| !spot.is_in("stream")) {
        let what = match (spot.name(), spot.arg(0)) {
            ("tcp_nodelay", "off") => "small writes wait up to 40 ms for an acknowledgement",
            ("keepalive_timeout", "0" | "0s") if !spot.is_in("upstream") => "every request pays for TCP and TLS anew",
            ("gzip_comp_level", level) if level.parse::<u8>().is_ok_and(|level| level > 6) => {
                "above 6 a percent of size costs a multiple of the CPU"
            }
            ("proxy_buffering", "off") if matches!(spot.scope().name(), "http" | "server") => {
                "a slow client holds the origin's worker for as long as it reads; say it in the locations that stream"
            }
            ("ssl_buffer_size", "1k" | "1400" | "1369") => "one record per packet: a multiple of the records and system calls for large answers",
            _ => continue,
        };
        let fix = edit::remove(case.tree(), spot.statement());
        found.add(Finding::at(spot, format!("{}: {what}", spot.text())).write(format!("# {};", spot.line())).fix(fix));
    }
}
