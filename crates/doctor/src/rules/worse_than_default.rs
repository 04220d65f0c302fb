//! Values that are worse than the default.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "worse_than_default",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words("The value is worse than nginx's default", "nginx 기본값보다 나쁜 값입니다"),
    remedy: words(
        "Remove the line unless you measured its effect here.",
        "이 환경에서 효과를 측정하지 않았다면 이 줄을 지우세요.",
    ),
    source: "nginx.org ngx_http_core_module, ngx_http_gzip_module, ngx_http_proxy_module",
    check,
    fires: Example::conf("http { tcp_nodelay off; }"),
    silent: Example::conf("http { tcp_nodelay on; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all().filter(|spot| !spot.is_in("stream")) {
        let what = match (spot.name(), spot.arg(0)) {
            ("tcp_nodelay", "off") => said!(
                "small writes wait up to 40 ms for an acknowledgement",
                "작은 쓰기가 확인 응답을 최대 40ms 기다립니다"
            ),
            ("keepalive_timeout", "0" | "0s") if !spot.is_in("upstream") => {
                said!("every request needs new TCP and TLS handshakes", "요청마다 TCP와 TLS 핸드셰이크를 새로 합니다")
            }
            ("gzip_comp_level", level) if level.parse::<u8>().is_ok_and(|level| level > 6) => {
                said!(
                    "above level 6, a size smaller by 1 % needs several times the CPU",
                    "6을 넘으면 크기 1 %를 줄이는 데 CPU가 몇 배 듭니다"
                )
            }
            ("proxy_buffering", "off") if matches!(spot.scope().name(), "http" | "server") => {
                said!(
                    "a slow client occupies the origin's worker until the client has read the answer; write it only in locations that stream",
                    "느린 클라이언트가 읽는 동안 오리진의 워커를 붙잡습니다. 스트리밍하는 location에만 쓰세요"
                )
            }
            ("ssl_buffer_size", "1k" | "1400" | "1369") => said!(
                "one record per packet: large answers need several times the records and system calls",
                "패킷마다 레코드 하나: 큰 응답에서 레코드와 시스템 호출이 몇 배가 됩니다"
            ),
            _ => continue,
        };
        let fix = edit::remove(case.tree(), spot.statement());
        found.add(
            Finding::at(spot, Said::from(format!("{}: ", spot.text())) + what)
                .write(format!("# {};", spot.line()))
                .fix(fix),
        );
    }
}
