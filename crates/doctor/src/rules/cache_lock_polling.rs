//! Requests that wait for nginx's cache lock poll it twice a second.

use super::cache_stampede::caches;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_lock_polling",
    level: Level::Note,
    group: Group::Speed,
    says: words(
        "In nginx, a request that waits for proxy_cache_lock looks again every 500 ms",
        "nginx에서 proxy_cache_lock을 기다리는 요청은 500ms 단위로 기다립니다",
    ),
    remedy: words(
        "A page that takes 300 ms is 500 ms for all but the first. A stale answer meanwhile avoids it for refreshes; weir edge wakes waiters when the answer is there.",
        "300ms 걸리는 페이지가 첫 요청 외에는 500ms가 됩니다. 갱신은 오래된 답으로 피할 수 있고, weir edge는 답이 오는 즉시 깨웁니다.",
    ),
    source: "nginx ngx_http_file_cache.c; nginx/nginx#1189; lab.md B30, 4-14",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_lock on; }"),
    silent: Example::conf("server { proxy_cache c; }"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in caches(case) {
        if let Some(lock) = spot.scope().effective("proxy_cache_lock").filter(|spot| spot.arg(0) == "on") {
            found.add(Finding::at(
                lock,
                said!(
                    "fills that others wait for end at multiples of 500 ms for them",
                    "채우기를 기다리는 요청은 500ms의 배수에 맞춰 끝납니다"
                ),
            ));
        }
    }
}
