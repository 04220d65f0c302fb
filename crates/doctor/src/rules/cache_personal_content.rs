//! Answers for one user are stored for all users.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_personal_content",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "The cache may give one user's pages to another user",
        "한 사용자의 페이지가 캐시를 통해 다른 사용자에게 갈 수 있습니다",
    ),
    remedy: words(
        "The cache key does not contain cookies, so one stored answer serves all users. Let users with a session bypass the cache: `proxy_cache_bypass $cookie_session; proxy_no_cache $cookie_session;`. If proxy_ignore_headers or fastcgi_ignore_headers names Set-Cookie or Cache-Control, remove them there: nginx then ignores the origin's instruction not to store the answer.",
        "캐시 키에 쿠키가 없어 저장된 응답 하나를 모든 사용자에게 줍니다. 세션이 있는 사용자는 캐시를 거치지 않게 하세요: `proxy_cache_bypass $cookie_session; proxy_no_cache $cookie_session;`. proxy_ignore_headers나 fastcgi_ignore_headers에 Set-Cookie나 Cache-Control이 있으면 빼세요. 있으면 nginx가 저장하지 말라는 오리진의 지시를 무시합니다.",
    ),
    source: "RFC 9111 §3; engintron/engintron#133; lab.md B32, 4-16",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_ignore_headers Set-Cookie; }"),
    silent: Example::conf(
        "server { proxy_cache c; proxy_ignore_headers Set-Cookie; proxy_no_cache $cookie_sid; proxy_cache_bypass $cookie_sid; }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view) {
        // weir does not store personal answers for other users, unless the file turns that off.
        if case.is_weir() && !case.view.named(names.guard).any(|spot| spot.arg(0) == "off") {
            continue;
        }
        let scope = spot.scope();
        let passes = |name| {
            scope.effective(name).is_some_and(|spot| spot.arg(0) != "0") || scope.all().any(|spot| spot.name() == name)
        };
        let key = scope.effective(names.key).is_some_and(|key| {
            key.text().contains("$cookie_")
                || key.text().contains("$http_cookie")
                || key.text().contains("$http_authorization")
        });
        if key || (passes(names.no_cache) && passes(names.bypass)) {
            continue;
        }
        let line = format!("{} $cookie_session; {} $cookie_session;", names.bypass, names.no_cache);
        let ignored = scope.effective(names.ignore_headers).filter(|spot| {
            spot.args().any(|arg| arg.eq_ignore_ascii_case("set-cookie") || arg.eq_ignore_ascii_case("cache-control"))
        });
        match ignored {
            Some(ignored) => {
                found.add(
                    Finding::at(
                        ignored,
                        said!(
                            "nginx stores the origin's answer although it has {}",
                            "오리진이 보낸 헤더가 있어도 응답이 캐시에 저장됩니다: {}",
                            ignored.text()
                        ),
                    )
                    .write(line),
                );
            }
            None if scope.effective(names.valid).is_some() => {
                let what = said!(
                    "the cache key contains no cookie: if the origin does not mark a signed-in user's page (private, Set-Cookie), nginx gives that page to everybody",
                    "키에 쿠키가 없습니다. 오리진이 표시하지 않은(private, Set-Cookie) 로그인 사용자의 페이지가 모두에게 제공됩니다"
                );
                found.add_as(FindingLevel::Note, Finding::at(spot, what).write(line));
            }
            None => {}
        }
    }
}
