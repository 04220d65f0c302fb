//! Stale answers are not used when the origin fails.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_stale_errors",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway, Symptom::Timeout],
    says: words(
        "The cache has an answer, but nginx sends the origin's errors to clients",
        "캐시에 답이 있는데도 오리진의 오류를 보여 줍니다",
    ),
    remedy: words(
        "`updating` alone applies only during a refresh. Add `error timeout http_500 http_503`, and for `proxy_cache_use_stale` also `http_502 http_504`: nginx then serves the last good answer while the origin is down. FastCGI, uwsgi and SCGI do not take the last two.",
        "`updating`만으로는 갱신 중일 때만 적용됩니다. `error timeout http_500 http_503`을 더하고, `proxy_cache_use_stale`에는 `http_502 http_504`도 더하세요. 그러면 오리진이 죽어도 nginx가 마지막 답을 줍니다. FastCGI, uwsgi, SCGI는 뒤의 두 값을 받지 않습니다.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_cache_use_stale; RFC 5861; lab.md 4-15",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_use_stale updating; }"),
    silent: Example::conf(
        "server { proxy_cache c; proxy_cache_use_stale updating error timeout http_502 http_503 http_504; }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view) {
        let in_force = stale_in_force(spot.scope(), names);
        let Some(stale) = spot.scope().effective(names.use_stale).filter(|_| !in_force.is_empty()) else { continue };
        let more: Vec<&str> =
            stale_words(names).split(' ').filter(|word| *word != "updating" && !in_force.contains(word)).collect();
        let is_named = |word: &&str| ["error", "timeout", "http_502", "http_503"].contains(word);
        let missing: Vec<&str> = more.iter().copied().filter(is_named).collect();
        if missing.len() > 1 {
            let line = format!("{} {}", stale.line(), more.join(" "));
            let fix = edit::replace(stale.statement(), &line);
            found.add(
                Finding::at(stale, said!("{} are passed on", "그대로 전달되는 응답: {}", missing.join(", ")))
                    .write(format!("{line};"))
                    .fix(Some(fix)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_line_stay() {
        let rows = [
            (
                "server { proxy_cache c; proxy_cache_use_stale http_404 invalid_header; }",
                "proxy_cache_use_stale http_404 invalid_header error timeout http_500 http_502 http_503 http_504;",
            ),
            (
                "server { fastcgi_cache c; fastcgi_cache_use_stale updating http_403; }",
                "fastcgi_cache_use_stale updating http_403 error timeout http_500 http_503;",
            ),
        ];
        for (before, line) in rows {
            let after = crate::rules::mended(&RULE, before);
            assert!(after.contains(line), "{after}");
        }
    }
}
