//! Requests that wait for nginx's cache lock poll it twice a second.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_lock_polling",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words(
        "In nginx, a request that waits for a cache lock checks the cache every 500 ms",
        "nginx에서 캐시 잠금을 기다리는 요청은 500ms 단위로 기다립니다",
    ),
    remedy: words(
        "If a page takes 300 ms, all requests but the first wait 500 ms. A stale answer avoids the wait while nginx refreshes an object. weir edge wakes the waiting requests as soon as the answer is in the cache.",
        "300ms 걸리는 페이지를 첫 요청 외에는 모두 500ms 기다립니다. 객체를 갱신할 때는 오래된 응답으로 이 대기를 피할 수 있습니다. weir edge는 응답이 캐시에 들어오는 즉시 기다리는 요청을 깨웁니다.",
    ),
    source: "nginx ngx_http_file_cache.c; nginx/nginx#1189; lab.md B30, 4-14",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_lock on; }"),
    silent: Example::conf("server { proxy_cache c; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view) {
        if let Some(lock) = spot.scope().effective(names.lock).filter(|spot| spot.arg(0) == "on") {
            found.add(Finding::at(
                lock,
                said!(
                    "a request that waits for another request's fetch ends at a multiple of 500 ms",
                    "다른 요청이 가져오기를 기다리는 요청은 500ms의 배수에 맞춰 끝납니다"
                ),
            ));
        }
    }
}
