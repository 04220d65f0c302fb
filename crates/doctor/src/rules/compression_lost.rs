//! An empty Accept-Encoding keeps the origin from compressing, and the edge does not compress.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "compression_lost",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words(
        "No server compresses: nginx tells the origin not to, and gzip is off here",
        "압축하는 서버가 없습니다: nginx가 오리진의 압축을 막고, 여기서는 gzip이 꺼져 있습니다",
    ),
    remedy: words(
        "nginx sends HTML, CSS and JSON four to six times as large. Write `gzip on; gzip_proxied any; gzip_types …;` beside the empty Accept-Encoding.",
        "HTML·CSS·JSON이 4~6배 큰 채로 나갑니다. 빈 Accept-Encoding과 함께 `gzip on; gzip_proxied any; gzip_types …;`를 쓰세요.",
    ),
    source: "nginx.org ngx_http_gzip_module; lab.md 4-9",
    check,
    fires: Example::conf("location / { proxy_set_header Accept-Encoding ''; proxy_pass http://a; }"),
    silent: Example::conf("gzip on; location / { proxy_set_header Accept-Encoding ''; proxy_pass http://a; }"),
};

/// Lines that `gzip on` needs for answers of an origin, unless they are there.
const MORE: [(&str, &str); 2] =
    [("gzip_proxied", "any"), ("gzip_types", "text/css application/javascript application/json image/svg+xml")];

fn check(case: &Case<'_>, found: &mut Findings) {
    let headers = case.view.named("proxy_set_header");
    for spot in headers.filter(|spot| spot.arg(0).eq_ignore_ascii_case("accept-encoding") && spot.arg(1).is_empty()) {
        let on = |name| spot.scope().effective(name).is_some_and(|spot| spot.arg(0) == "on");
        if !on("gzip") && !on("brotli") && !on("zstd") {
            let mut lines = vec!["gzip on".to_owned()];
            let is_new = |(name, _): &(&'static str, &str)| spot.scope().effective(name).is_none();
            lines.extend(MORE.into_iter().filter(is_new).map(|(name, value)| format!("{name} {value}")));
            let what = said!(
                "proxy_set_header empties Accept-Encoding, and gzip is off",
                "Accept-Encoding을 비우고 gzip은 꺼져 있습니다"
            );
            let mut finding = Finding::at(spot, what).write(format!("{};", lines.join("; ")));
            finding.fix = edits_for(spot, &lines).unwrap_or_default();
            found.add(finding);
        }
    }
}
