//! `root /` and `alias /`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "filesystem_root_exposure",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words("nginx serves the whole file system", "파일 시스템 전체가 공개됩니다"),
    remedy: words(
        "A client can fetch every file that nginx's user can read. Name the directory that you want to publish.",
        "nginx 사용자가 읽을 수 있는 모든 파일을 받아 갈 수 있습니다. 공개할 디렉터리를 지정하세요.",
    ),
    source: "nginx.org ngx_http_core_module, root; gixy-ng filesystem_root_exposure",
    check,
    fires: Example::conf("server { root /srv/..; }"),
    silent: Example::conf("server { root /srv/www; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all().filter(|spot| matches!(spot.name(), "root" | "alias")) {
        let path = spot.arg(0);
        if path.starts_with('/') && !path.contains('$') && is_root(path) {
            found.add(Finding::at(
                spot,
                said!("{} {path} is the file system's root", "파일 시스템의 루트입니다: {} {path}", spot.name()),
            ));
        }
    }
}

fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    depth == 0
}
