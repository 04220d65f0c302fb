//! The origin gets the Host that the client wrote.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "host_spoofing",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "The client chooses the Host that nginx sends to the origin",
        "nginx가 오리진에 보내는 Host를 클라이언트가 정합니다",
    ),
    remedy: words(
        "$http_host is the client's header unchanged, even if the request line names another host. Applications build links and cookies from it. Write `proxy_set_header Host $host;`: nginx takes $host from the request line first.",
        "$http_host는 클라이언트가 보낸 그대로의 헤더이며, 요청 줄에 다른 호스트가 있어도 같습니다. 앱은 이 값으로 링크와 쿠키를 만듭니다. `proxy_set_header Host $host;`를 쓰세요: nginx는 $host를 요청 줄에서 먼저 얻습니다.",
    ),
    source: "nginx.org ngx_http_core_module, $host; gixy host_spoofing",
    check,
    fires: Example::conf("location / { proxy_set_header Host $http_host; }"),
    silent: Example::conf("location / { proxy_set_header Host $host; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("proxy_set_header").filter(|spot| spot.arg(0).eq_ignore_ascii_case("host")) {
        let chosen = reach::variables(spot.arg(1)).find(|name| {
            name.eq_ignore_ascii_case("http_host") || name.starts_with("arg_") || name.starts_with("cookie_")
        });
        if let Some(name) = chosen {
            let line = format!("proxy_set_header {} $host", spot.arg(0));
            let fix = edit::replace(spot.statement(), &line);
            found.add(
                Finding::at(spot, said!("Host is ${name}", "Host가 ${name}입니다"))
                    .write(format!("{line};"))
                    .fix(Some(fix)),
            );
        }
    }
}
