//! `proxy_pass` that sends another path than the client requested: it is decoded once more.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "proxy_pass_normalized",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "The origin gets the decoded and normalised path, not the path that the client sent",
        "오리진이 클라이언트가 보낸 경로가 아니라 디코딩·정규화된 경로를 받습니다",
    ),
    remedy: words(
        "With a path in proxy_pass, nginx decodes the request's path and encodes it again: %2F becomes a slash, so nginx and the origin may apply their access rules to different paths. Remove the path, or pass $request_uri.",
        "proxy_pass에 경로가 있으면 nginx가 경로를 디코딩한 뒤 다시 인코딩해서 %2F가 슬래시가 됩니다. 경로를 빼거나 $request_uri를 넘기세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_pass; gixy-ng proxy_pass_normalized",
    check,
    fires: Example::conf("location / { proxy_pass http://app/; }"),
    silent: Example::conf("location / { proxy_pass http://app; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let target = spot.arg(0);
        let path = path(target);
        // `rewrite ^ $request_uri` sets $uri to the raw path, which nginx then encodes again.
        let rewrites = spot.scope().outwards().any(|scope| {
            scope.named("rewrite").any(|rewrite| rewrite.arg(1).contains("$request_uri") && !spot.is(rewrite))
        });
        let location = spot.scope().location();
        let is_exact = location.is_some_and(|location| matches!(matches_by(location), Match::Exact(_)));
        let keeps = |text: &str| reach::variables(text).next().is_some();
        let normalises = match path {
            // Without a scheme, the variable may hold a whole URL.
            None => target.starts_with('$') && target.contains('/') && !target.contains("://"),
            Some("") => rewrites && !keeps(target),
            Some(path) => !keeps(path) && !is_exact,
        };
        if normalises {
            let what = match path {
                Some("") => said!(
                    "after \"rewrite ^ $request_uri\" the path is encoded a second time",
                    "\"rewrite ^ $request_uri\" 뒤에 경로가 다시 인코딩됩니다"
                ),
                Some(path) => said!(
                    "the path {path} in proxy_pass makes nginx decode and rebuild the client's path",
                    "proxy_pass의 경로 {path} 때문에 nginx가 클라이언트의 경로를 디코딩해 다시 만듭니다"
                ),
                None => said!(
                    "the path after the variable makes nginx rebuild the client's path",
                    "변수 뒤의 경로 때문에 nginx가 클라이언트의 경로를 다시 만듭니다"
                ),
            };
            found.add(Finding::at(spot, what));
        }
    }
}

/// The text after the authority. `None` if a variable stands for scheme and host.
fn path(target: &str) -> Option<&str> {
    let (_, rest) = target.split_once("://")?;
    if let Some(socket) = rest.strip_prefix("unix:") {
        return Some(socket.find(':').and_then(|colon| socket.get(colon + 1..)).unwrap_or(""));
    }
    Some(rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or(""))
}
