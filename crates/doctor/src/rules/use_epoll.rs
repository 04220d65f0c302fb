//! `use epoll` on Linux.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "use_epoll",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words("use epoll is the default on Linux", "Linux에서는 use epoll이 기본값입니다"),
    remedy: words("Remove the line: nothing changes.", "지워도 달라지지 않습니다."),
    source: "nginx.org, Connection processing methods; lab.md B48, 0-4",
    check,
    fires: Example::conf("events { use epoll; }"),
    silent: Example::conf("events { use poll; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("use").filter(|spot| spot.arg(0) == "epoll" && spot.is_in("events")) {
        let fix = edit::remove(case.tree(), spot.statement());
        found.add(
            Finding::at(spot, said!("nginx chooses epoll without this line", "이 줄이 없어도 epoll을 씁니다"))
                .write("# use epoll;")
                .fix(fix),
        );
    }
}
