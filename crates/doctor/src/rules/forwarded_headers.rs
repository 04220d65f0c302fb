//! The origin does not learn the host and scheme that the client requested.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "forwarded_headers",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[Symptom::WebSocket],
    says: words(
        "nginx does not send the client's host, address or scheme to the origin",
        "nginx가 클라이언트의 호스트·주소·스킴을 오리진에 보내지 않습니다",
    ),
    remedy: words(
        "nginx sends $proxy_host, the name in proxy_pass, as Host: the application's redirects, cookies and links are then wrong, and its log shows the proxy's address.",
        "nginx는 proxy_pass에 쓴 이름을 Host로 보냅니다. 앱의 리다이렉트·쿠키·링크가 틀어지고 로그에는 프록시 주소만 남습니다.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_set_header; lab.md 3-11",
    check,
    fires: Example::conf("server { listen 443 ssl; location / { proxy_pass http://10.0.0.1; } }"),
    silent: Example::conf(
        "server { listen 443 ssl; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme; location / { proxy_pass http://10.0.0.1; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for pass in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let scope = pass.scope();
        if scope.server().is_none() {
            continue;
        }
        let headers = scope.effective_all("proxy_set_header");
        let has =
            |names: &[&str]| headers.iter().any(|spot| names.iter().any(|name| spot.arg(0).eq_ignore_ascii_case(name)));
        let tls = scope.server().is_some_and(|server| server.named("listen").any(|listen| listen.says("ssl")));
        // A server that is addressed by its own name needs that name as Host.
        let is_public = pass.arg(0).starts_with("https://");
        let mut missing = Vec::new();
        if !has(&["host"]) && !is_public {
            missing.push("proxy_set_header Host $host");
        }
        if !has(&["x-forwarded-for", "x-real-ip", "forwarded"]) {
            missing.push("proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for");
        }
        if tls
            && !has(&[
                "x-forwarded-proto",
                "forwarded",
                "x-forwarded-ssl",
                "x-scheme",
                "x-url-scheme",
                "x-forwarded-scheme",
            ])
        {
            missing.push("proxy_set_header X-Forwarded-Proto $scheme");
        }
        if missing.is_empty() {
            continue;
        }
        let host = pass.arg(0).split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
        let names: Vec<&str> = missing.iter().filter_map(|line| line.split(' ').nth(1)).collect();
        let what = match missing.contains(&"proxy_set_header Host $host") {
            true => said!(
                "the origin gets \"Host: {host}\"; {} not set",
                "오리진은 \"Host: {host}\"를 받습니다. 설정되지 않은 헤더: {}",
                names.join(", ")
            ),
            false => said!("{} not set", "설정되지 않은 헤더: {}", names.join(", ")),
        };
        // If only the client address is missing, a note is enough.
        let level = if missing.contains(&"proxy_set_header Host $host") || missing.len() > 1 {
            FindingLevel::Risk
        } else {
            FindingLevel::Note
        };
        let lines: Vec<String> = missing.iter().map(|line| (*line).to_owned()).collect();
        let mut finding = Finding::at(pass, what).write(format!("{};", lines.join("; ")));
        finding.fix = edits_for(pass, &lines).unwrap_or_default();
        found.add_as(level, finding);
    }
}
