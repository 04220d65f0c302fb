//! Each time an object expires, one client waits for the origin.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_foreground_refresh",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words(
        "Each time an object expires, one client waits for the origin",
        "만료될 때마다 클라이언트 하나가 오리진을 기다립니다",
    ),
    remedy: words(
        "The first request after the expiry fetches the object, and nginx gives the other requests the stale answer. With `proxy_cache_background_update on;` (or the directive of FastCGI, uwsgi, SCGI), the first request gets the stale answer too.",
        "만료 뒤의 첫 요청이 객체를 가져오고, nginx는 다른 요청에 오래된 응답을 줍니다. `proxy_cache_background_update on;`(FastCGI, uwsgi, SCGI에는 각자의 지시어)이면 첫 요청도 오래된 응답을 바로 받습니다.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_cache_background_update; lab.md B33, 4-13",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_cache_use_stale updating; }"),
    silent: Example::conf(
        "server { proxy_cache c; proxy_cache_use_stale updating; proxy_cache_background_update on; }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view) {
        let scope = spot.scope();
        let Some(stale) = scope.effective(names.use_stale).filter(|spot| spot.says("updating")) else {
            continue;
        };
        if scope.effective(names.background_update).is_none_or(|spot| spot.arg(0) != "on") {
            let line = format!("{} on", names.background_update);
            let what = said!("a client's own request refreshes the object", "클라이언트의 요청이 직접 갱신합니다");
            let mut finding = Finding::at(stale, what).write(format!("{line};"));
            // The nearest block that sets one of the two decides.
            let beside = scope.outwards().find_map(|block| {
                let written = block.get(names.background_update);
                written.or(block.get(names.use_stale))
            });
            if let Some(beside) = beside.filter(|_| !super::nginx_cves::background_update_opens(case)) {
                finding.fix = edits_for(beside, &[line]).unwrap_or_default();
            }
            found.add(finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    /// Background updates beside unnamed captures read uninitialised memory in nginx before 1.31.3.
    #[test]
    fn the_fix_opens_no_vulnerability() {
        let fixes = |version: Version, more: &str| {
            let conf = format!("server {{ proxy_cache c; proxy_cache_use_stale updating; {more} }}");
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            let facts = Facts { version_is_told: Some(version), ..Facts::default() };
            let found = crate::examine(&tree, version, &facts);
            found.iter().filter(|finding| finding.rule == RULE.id).map(|finding| finding.fix.len()).sum::<usize>()
        };
        let captures = "rewrite ^/a(.*) /$1 last;";
        assert_eq!((fixes(Version(1, 22, 1), captures), fixes(Version(1, 22, 1), "")), (0, 1));
        assert_eq!(fixes(Version(1, 31, 5), captures), 1);
    }

    /// nginx refuses a second `proxy_cache_background_update`.
    #[test]
    fn a_line_that_is_there_is_replaced() {
        for (conf, after) in [
            (
                "server { proxy_cache c; proxy_cache_use_stale updating; proxy_cache_background_update off; }",
                "server { proxy_cache c; proxy_cache_use_stale updating; proxy_cache_background_update on; }",
            ),
            (
                "server { proxy_cache_use_stale updating; location / { proxy_cache c; proxy_cache_background_update off; } }",
                "server { proxy_cache_use_stale updating; location / { proxy_cache c; proxy_cache_background_update on; } }",
            ),
            (
                "server { proxy_cache_use_stale updating;\nlocation / { proxy_cache c; } }",
                "server { proxy_cache_use_stale updating;\nproxy_cache_background_update on;\nlocation / { proxy_cache c; } }",
            ),
        ] {
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            let mut all = crate::examine(&tree, crate::NEWEST, &Facts::default());
            all.retain(|finding| finding.rule == RULE.id);
            let mended = crate::mend::mend(&tree, &all);
            let text = mended.first().map_or(String::new(), |file| String::from_utf8_lossy(&file.after).into_owned());
            assert_eq!(text, after);
        }
    }
}
