//! Every request for an expired object goes to the origin.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_stampede",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Timeout, Symptom::Slow],
    says: words(
        "When an object expires, nginx sends the request of every waiting client to the origin",
        "객체가 만료되면 기다리는 클라이언트가 모두 오리진에 요청합니다",
    ),
    remedy: words(
        "At each expiry the origin gets as many requests as there are clients. Write `proxy_cache_lock on;` for the first fetch and `proxy_cache_use_stale updating` for refreshes.",
        "만료될 때마다 오리진이 클라이언트 수만큼 요청을 받습니다. 처음 가져올 때는 `proxy_cache_lock on;`, 갱신할 때는 `proxy_cache_use_stale updating`을 쓰세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_cache_lock; lab.md B29, 4-12",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_valid 200 1s; }"),
    silent: Example::conf("server { proxy_cache c; proxy_cache_lock on; proxy_cache_use_stale updating; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view) {
        let scope = spot.scope();
        // In weir the lock is on if the file does not set it. While one request fetches, the others get the stale
        // object.
        let weirs_lock = case.is_weir() && case.view.named(names.lock).next().is_none();
        let locks = weirs_lock || scope.effective(names.lock).is_some_and(|spot| spot.arg(0) == "on");
        let refreshes = scope.effective(names.background_update).is_none_or(|spot| spot.arg(0) == "on");
        let in_force = stale_in_force(scope, names);
        let stale = case.is_weir() && refreshes || in_force.contains(&"updating");
        if !locks || !stale {
            let mut lines = Vec::new();
            if !locks {
                lines.push(format!("{} on", names.lock));
            }
            if !stale {
                let more = if in_force.is_empty() { stale_words(names) } else { "updating" };
                lines.push([&[names.use_stale], in_force.as_slice(), &[more]].concat().join(" "));
            }
            let what = match (locks, stale) {
                (false, false) => said!(
                    "there is no cache lock, and nginx serves no stale answer during a fetch",
                    "잠금도 없고, 가져오는 동안 제공할 오래된 응답도 없습니다"
                ),
                (false, true) => said!(
                    "there is no cache lock: nginx fetches a new object once for each client",
                    "잠금이 없어 처음 채울 때 클라이언트마다 오리진에 요청합니다"
                ),
                _ => said!(
                    "nginx serves no stale answer during a fetch: all clients wait for the origin",
                    "가져오는 동안 제공할 오래된 응답이 없어 모두 오리진을 기다립니다"
                ),
            };
            let mut finding = Finding::at(spot, what).write(format!("{};", lines.join("; ")));
            finding.fix = edits_for(spot, &lines).unwrap_or_default();
            found.add(finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nginx refuses a second `proxy_cache_lock`. `updating` needs the background update.
    #[test]
    fn a_line_that_is_there_is_replaced() {
        let rows = [
            (
                "server {\nproxy_cache c;\nproxy_cache_lock off;\nproxy_cache_use_stale updating;\n}",
                "server {\nproxy_cache c;\nproxy_cache_lock on;\nproxy_cache_use_stale updating;\n}",
            ),
            (
                "server {\nproxy_cache c;\nproxy_cache_lock on;\nproxy_cache_use_stale off;\n}",
                "server {\nproxy_cache c;\nproxy_cache_lock on;\nproxy_cache_use_stale updating error timeout http_500 http_502 http_503 http_504;\nproxy_cache_background_update on;\n}",
            ),
            (
                "server {\nproxy_cache_lock on;\nproxy_cache_use_stale http_404;\nlocation / {\nproxy_cache c;\n}\n}",
                "server {\nproxy_cache_lock on;\nproxy_cache_use_stale http_404;\nlocation / {\nproxy_cache c;\nproxy_cache_use_stale http_404 updating;\nproxy_cache_background_update on;\n}\n}",
            ),
        ];
        for (before, after) in rows {
            assert_eq!(crate::rules::mended(&RULE, before), after);
        }
    }
}
