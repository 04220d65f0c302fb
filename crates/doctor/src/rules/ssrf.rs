//! A client can choose the server that gets the request.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "ssrf",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "A client chooses the server that gets the request",
        "클라이언트가 요청을 보낼 서버를 고를 수 있습니다",
    ),
    remedy: words(
        "Through this location a client reaches every server that this machine can reach, including metadata services and databases. Choose among known names with `map`, or make the location `internal`.",
        "클라이언트는 이 location을 통해 메타데이터 서비스와 데이터베이스를 포함해 이 머신에서 접근할 수 있는 모든 서버에 접근합니다. `map`으로 아는 이름 중에서 고르거나 location을 `internal`로 하세요.",
    ),
    source: "CWE-918; gixy ssrf",
    check,
    fires: Example::conf("location /proxy/ { proxy_pass http://$arg_to; }"),
    silent: Example::conf("location /proxy/ { internal; proxy_pass http://$arg_to; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all() {
        let is_pass = matches!(spot.name(), "proxy_pass" | "fastcgi_pass" | "uwsgi_pass" | "scgi_pass" | "grpc_pass");
        if !is_pass || spot.is_in("stream") || spot.scope().outwards().any(|scope| scope.get("internal").is_some()) {
            continue;
        }
        if let Some(name) = chosen(spot.arg(0), spot, 0) {
            found.add(Finding::at(
                spot,
                said!("${name} decides where the request goes", "변수 ${name} 값이 요청을 보낼 곳을 정합니다"),
            ));
        }
    }
}

/// Longest chain of variables that hold an address.
const DEPTH_MAX: usize = 8;

/// The first variable before the path that a client can choose.
fn chosen<'v>(target: &'v str, spot: Spot<'v>, depth: usize) -> Option<&'v str> {
    let mut before = String::new();
    for piece in reach::pieces(target) {
        let name = match piece {
            ArgumentPiece::Text(text) => {
                before.push_str(text);
                let authority = before.split_once("://").map_or(before.as_str(), |(_, rest)| rest);
                // After the first slash of the path, no text can change the server.
                let is_past = before.contains("://") && authority.contains('/');
                if is_past || (!before.contains("://") && before.starts_with('/')) {
                    return None;
                }
                continue;
            }
            ArgumentPiece::Variable(name) => name,
        };
        // `set $to http://app$request_uri` is an address. Its text is checked as if it stood here.
        let is_it = |set: &Spot<'_>| set.arg(1).contains("://");
        if let Some(set) = spot.view().sets(name).find(is_it).filter(|_| depth < DEPTH_MAX && before.is_empty()) {
            return chosen(set.arg(1), set, depth + 1);
        }
        let reach = reach::of_variable(name, spot);
        let ends_host = !reach.first.is_empty() && !reach.first.meets(ByteSet::of(b"/?#").others());
        let is_path = ends_host && !before.is_empty() && !before.ends_with("://");
        if reach.free && !is_path {
            return Some(name);
        }
        if is_path && !reach.empty {
            return None;
        }
        before.push('x');
    }
    None
}
