//! A cache that stores nothing, because answers are not buffered.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_needs_buffering",
    level: FindingLevel::Wrong,
    group: Group::NoEffect,
    symptoms: &[Symptom::Slow],
    says: words("A cache stores nothing if buffering is off", "버퍼링이 꺼져 있으면 캐시가 아무것도 저장하지 않습니다"),
    remedy: words(
        "nginx stores only answers that it buffers. Set buffering on in the location with the cache (proxy_buffering, fastcgi_buffering and so on), or the cache off in the location that streams.",
        "nginx는 버퍼링한 응답만 저장합니다. 캐시가 있는 location에서는 버퍼링(proxy_buffering, fastcgi_buffering 등)을 켜고, 스트리밍하는 location에서는 캐시를 끄세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_buffering, proxy_cache; ngx_http_upstream.c",
    check,
    fires: Example::conf("server { location / { proxy_cache c; proxy_buffering off; proxy_pass http://a; } }"),
    silent: Example::conf(
        "server { proxy_cache c; location /events { proxy_cache off; proxy_buffering off; proxy_pass http://a; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view) {
        let off = spot.scope().effective(names.buffering).filter(|spot| spot.arg(0) == "off");
        if let Some(off) = off {
            found.add(
                Finding::at(off, said!("the zone \"{}\" stays empty here", "여기서 비어 있는 존: \"{}\"", spot.arg(0)))
                    .write(format!("{} on;", names.buffering)),
            );
        }
    }
}
