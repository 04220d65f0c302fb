//! `try_files` without `open_file_cache`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "try_files_is_evil_too",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words(
        "try_files looks for each file on the disk at every request",
        "try_files가 요청마다 디스크에서 파일을 확인합니다",
    ),
    remedy: words(
        "Each name is looked up. `open_file_cache max=1000 inactive=20s;` remembers the results. Serve paths that are not files from a separate location.",
        "이름마다 디스크에서 찾습니다. `open_file_cache max=1000 inactive=20s;`가 결과를 기억합니다. 파일이 아닌 경로는 별도 location에서 처리하세요.",
    ),
    source: "nginx.org ngx_http_core_module, open_file_cache; gixy-ng try_files_is_evil_too",
    check,
    fires: Example::conf("location / { try_files $uri $uri/ /index.php; }"),
    silent: Example::conf(
        "http { open_file_cache max=1000; server { location / { try_files $uri $uri/ /index.php; } } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("try_files") {
        let is_cached = spot.scope().effective("open_file_cache").is_some_and(|cache| cache.arg(0) != "off");
        // nginx does not check the last argument on the disk.
        let looks = spot.args().count().saturating_sub(1);
        if !is_cached && looks > 0 {
            let what = Said::of_both(
                format!("{looks} look{} on the disk for each request", if looks == 1 { "" } else { "s" }),
                format!("요청마다 디스크를 {looks}번 확인합니다"),
            );
            found.add(Finding::at(spot, what).write("open_file_cache max=1000 inactive=20s;"));
        }
    }
}
