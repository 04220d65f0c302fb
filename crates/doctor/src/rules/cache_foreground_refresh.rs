//! Each time an object expires, one client waits for the origin.

use super::cache_stampede::caches;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_foreground_refresh",
    level: Level::Risk,
    group: Group::Speed,
    says: words(
        "Each time an object expires, one client waits for the origin",
        "만료될 때마다 클라이언트 하나가 오리진을 기다립니다",
    ),
    remedy: words(
        "The first request after the expiry fetches the object, and nginx gives the other requests the stale answer. With `proxy_cache_background_update on;`, the first request gets the stale answer too.",
        "만료 뒤의 첫 요청이 객체를 가져오고, nginx는 다른 요청에 오래된 응답을 줍니다. `proxy_cache_background_update on;`이면 첫 요청도 오래된 응답을 바로 받습니다.",
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
                    said!("a client's own request refreshes the object", "클라이언트의 요청이 직접 갱신합니다"),
                )
                .write("proxy_cache_background_update on;")
                .fix(fix),
            );
        }
    }
}
