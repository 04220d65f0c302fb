//! `index.php` where no handler runs PHP.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "index_without_handler",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words(
        "index names a .php file, but no directive here runs PHP",
        "index에 .php가 있지만 PHP를 실행하는 설정이 없습니다",
    ),
    remedy: words(
        "If the file exists, nginx sends its source code to the client. Remove the name from this line.",
        "파일이 있으면 nginx가 그 소스 코드를 클라이언트에 보냅니다. 이 줄에서 이름을 빼세요.",
    ),
    source: "nginx.org ngx_http_index_module; lab.md 3-12",
    check,
    fires: Example::conf("server { index index.php index.html; location / { proxy_pass http://app; } }"),
    silent: Example::conf("server { index index.php; location ~ \\.php$ { fastcgi_pass unix:/p; } }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("index").filter(|spot| spot.args().any(|arg| arg.ends_with(".php"))) {
        let server = spot.scope().server().unwrap_or(spot.scope());
        let runs = server.all().any(|other| {
            matches!(other.name(), "fastcgi_pass" | "uwsgi_pass" | "include")
                || (other.name() == "location" && other.text().contains("php"))
        });
        if !runs {
            let stays = |arg: &str| !arg.ends_with(".php");
            let line = spot.line_where(stays);
            let fix = spot.args().any(stays).then(|| edit::replace(spot.statement(), &line));
            found.add(
                Finding::at(spot, said!("this server does not run index.php", "index.php는 남은 설정입니다"))
                    .write(format!("{line};"))
                    .fix(fix),
            );
        }
    }
}
