//! Each time an object expires, one client waits for the origin.

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

fn check(case: &Case<'_>, found: &mut Found) {
    for (spot, names) in caches(case.view) {
        let scope = spot.scope();
        let Some(stale) = scope.effective(names.use_stale).filter(|spot| spot.says("updating")) else {
            continue;
        };
        if scope.effective(names.background_update).is_none_or(|spot| spot.arg(0) != "on") {
            let line = format!("{} on", names.background_update);
            let fix = edit::insert_after(case.tree(), stale.statement(), &line)
                .filter(|_| !super::nginx_cves::background_update_opens(case));
            found.add(
                Finding::at(
                    stale,
                    said!("a client's own request refreshes the object", "클라이언트의 요청이 직접 갱신합니다"),
                )
                .write(format!("{line};"))
                .fix(fix),
            );
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
}
