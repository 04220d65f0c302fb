//! A cache that stores nothing, because answers are not buffered.

use super::cache_stampede::caches;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_needs_buffering",
    level: Level::Wrong,
    group: Group::NoEffect,
    says: words(
        "proxy_cache stores nothing if proxy_buffering is off",
        "proxy_buffering off이면 proxy_cache가 아무것도 저장하지 않습니다",
    ),
    remedy: words(
        "nginx stores only answers that it buffers. Set proxy_buffering on in the location with the cache, or proxy_cache off in the location that streams.",
        "nginx는 버퍼링한 응답만 저장합니다. 캐시가 있는 location에서는 proxy_buffering을 켜고, 스트리밍하는 location에서는 proxy_cache를 끄세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_buffering, proxy_cache; ngx_http_upstream.c",
    check,
    fires: Example::conf("server { proxy_cache c; proxy_buffering off; proxy_pass http://a; }"),
    silent: Example::conf(
        "server { proxy_cache c; location /events { proxy_cache off; proxy_buffering off; proxy_pass http://a; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in caches(case) {
        let off = spot.scope().effective("proxy_buffering").filter(|spot| spot.arg(0) == "off");
        if let Some(off) = off {
            let fix = edit::remove(case.tree(), off.statement());
            found.add(
                Finding::at(
                    off,
                    said!("the zone \"{}\" stays empty here", "여기서는 존 \"{}\"이(가) 비어 있습니다", spot.arg(0)),
                )
                .write("proxy_buffering on;")
                .fix(fix),
            );
        }
    }
}
