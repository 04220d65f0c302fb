//! Stale answers are not used when the origin fails.

use super::cache_stampede::stale_words;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_stale_errors",
    level: Level::Note,
    group: Group::Works,
    says: words(
        "The cache has an answer, but nginx sends the origin's errors to clients",
        "캐시에 답이 있는데도 오리진의 오류를 보여 줍니다",
    ),
    remedy: words(
        "`updating` alone applies only during a refresh. Add `error timeout http_500 http_502 http_503 http_504`: nginx then serves the last good answer while the origin is down.",
        "`updating`만으로는 갱신 중일 때만 적용됩니다. `error timeout http_500 http_502 http_503 http_504`를 더하면 오리진이 죽어도 마지막 답을 줍니다.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_cache_use_stale; RFC 5861; lab.md 4-15",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_use_stale updating; }"),
    silent: Example::conf(
        "server { proxy_cache c; proxy_cache_use_stale updating error timeout http_502 http_503 http_504; }",
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for (spot, names) in caches(case.view) {
        let Some(stale) = spot.scope().effective(names.use_stale).filter(|spot| spot.arg(0) != "off") else {
            continue;
        };
        let wanted =
            stale_words(names).split(' ').filter(|word| ["error", "timeout", "http_502", "http_503"].contains(word));
        let missing: Vec<&str> = wanted.filter(|word| !stale.says(word)).collect();
        if missing.len() > 1 {
            let line = format!("{} {}", names.use_stale, stale_words(names));
            let fix = edit::replace(stale.statement(), &line);
            found.add(
                Finding::at(stale, said!("{} are passed on", "{}이(가) 그대로 전달됩니다", missing.join(", ")))
                    .write(format!("{line};"))
                    .fix(Some(fix)),
            );
        }
    }
}
