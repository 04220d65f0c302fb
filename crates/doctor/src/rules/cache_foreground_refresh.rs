//! One client per expiry waits for the origin.

use super::cache_stampede::caches;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_foreground_refresh",
    level: Level::Risk,
    group: Group::Speed,
    says: words("One client per expiry waits for the origin", "만료될 때마다 클라이언트 하나가 오리진을 기다립니다"),
    remedy: words(
        "Stale answers are given to the others, and the one that found the object expired fetches it. `proxy_cache_background_update on;` gives that one the stale answer too.",
        "다른 클라이언트는 오래된 답을 받지만, 만료를 발견한 하나는 직접 가져옵니다. `proxy_cache_background_update on;`이면 그 하나도 바로 받습니다.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_cache_background_update; lab.md B33, 4-13",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_use_stale updating; }"),
    silent: Example::conf(
        "server { proxy_cache c; proxy_cache_use_stale updating; proxy_cache_background_update on; }",
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in caches(case) {
        let scope = spot.scope();
        let Some(stale) = scope.effective("proxy_cache_use_stale").filter(|spot| spot.says("updating")) else {
            continue;
        };
        if scope.effective("proxy_cache_background_update").is_none_or(|spot| spot.arg(0) != "on") {
            let fix = edit::insert_after(case.tree(), stale.statement(), "proxy_cache_background_update on");
            found.add(
                Finding::at(
                    stale,
                    said!("the refresh is done by a client's own request", "클라이언트의 요청이 직접 갱신합니다"),
                )
                .write("proxy_cache_background_update on;")
                .fix(fix),
            );
        }
    }
}
