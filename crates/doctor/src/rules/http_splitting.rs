//! A line break from a client may reach a header or a request line.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "http_splitting",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "A client can put line breaks into a header or a request that nginx sends",
        "클라이언트가 보낸 줄바꿈이 헤더나 요청에 그대로 들어갑니다",
    ),
    remedy: words(
        "nginx decodes $uri and its captures: %0d%0a becomes a line break, and the client writes the header after it. Use $request_uri, or a group that excludes line breaks, `([^\\r\\n]*)`.",
        "$uri와 그 캡처는 디코딩된 값이라 %0d%0a가 실제 줄바꿈이 되고, 그 뒤의 헤더는 클라이언트가 쓴 것이 됩니다. $request_uri를 쓰거나 `([^\\r\\n]*)`처럼 줄바꿈을 제외하는 그룹을 쓰세요.",
    ),
    source: "nginx.org ngx_http_core_module, $uri; RFC 9112 §11.1; gixy http_splitting",
    check,
    fires: Example::conf("server { return 302 https://a$uri; }"),
    silent: Example::conf("server { return 302 https://a$request_uri; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all() {
        // For some clients, a bare CR ends a line. For an origin, only LF counts as proof.
        let (text, breaks) = match spot.name() {
            "add_header" | "add_trailer" => (spot.arg(1), ByteSet::of(b"\r\n")),
            "return" if matches!(spot.arg(0), "301" | "302" | "303" | "307" | "308") => {
                (spot.arg(1), ByteSet::of(b"\r\n"))
            }
            "return" if spot.arg(1).is_empty() && spot.arg(0).starts_with(['h', '/', '$']) => {
                (spot.arg(0), ByteSet::of(b"\r\n"))
            }
            "rewrite" if is_redirect(spot) => (spot.arg(1), ByteSet::of(b"\r\n")),
            "proxy_pass" if !spot.is_in("stream") => (spot.arg(0), ByteSet::one(b'\n')),
            "proxy_set_header" | "fastcgi_param" | "grpc_set_header" if spot.name() == "proxy_set_header" => {
                (spot.arg(1), ByteSet::one(b'\n'))
            }
            _ => continue,
        };
        for name in reach::variables(text) {
            // nginx escapes the captures of a redirecting rewrite.
            let own_capture = spot.name() == "rewrite"
                && reach::pattern(spot).and_then(|pattern| pattern.tree()).is_some_and(|tree| {
                    name.parse().is_ok_and(|number| tree.group(number).is_some()) || tree.group_named(name).is_some()
                });
            if own_capture {
                continue;
            }
            let reach = reach::of_variable(name, spot);
            if reach.free && reach.bytes.meets(breaks) {
                let mut finding = Finding::at(
                    spot,
                    said!(
                        "${name} may hold a line break that a client wrote",
                        "${name}에 클라이언트가 쓴 줄바꿈이 들어갈 수 있습니다"
                    ),
                );
                if matches!(name, "uri" | "document_uri") {
                    let line = spot.line().replace(&format!("${name}"), "$request_uri");
                    let fix = edit::replace(spot.statement(), &line);
                    finding = finding.write(format!("{line};")).fix((spot.name() != "rewrite").then_some(fix));
                }
                found.add(finding);
                break;
            }
        }
    }
}

/// Whether a `rewrite` ends in a redirect, so that its text becomes a Location.
fn is_redirect(spot: Spot<'_>) -> bool {
    let target = spot.arg(1);
    let is_url = ["http://", "https://", "$scheme"].iter().any(|start| target.starts_with(start));
    is_url || matches!(spot.arg(2), "redirect" | "permanent")
}
