//! Names that nginx does not know, and directives in blocks that do not allow them.

use weir_http::read::nginx_only::{self, DirectiveOrigin};

use crate::rule::FINDINGS_MAX;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "unknown_directive",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words("nginx refuses this directive", "nginx가 이 지시어를 거부합니다"),
    remedy: words(
        "nginx does not start until you remove the directive or move it to a block that allows it.",
        "이 지시어를 지우거나 허용되는 블록으로 옮기기 전에는 nginx가 시작하지 않습니다.",
    ),
    source: "nginx's command tables; lab.md 0-1, 4-2, 4-17",
    check,
    fires: Example::conf("worker_connections 1024; events { }"),
    silent: Example::conf("events { worker_connections 1024; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    if !case.view.is_whole() {
        return;
    }
    // The search for a similar name takes long, and the first findings of a rule are enough.
    let mut left = FINDINGS_MAX;
    for spot in case.view.all() {
        let Some(context) = context(spot.scope()) else { continue };
        let name = spot.name();
        let Some(entry) = nginx_only::lookup(name) else {
            if super::is_weirs(name) {
                continue;
            }
            let mut finding = Finding::at(spot, said!("unknown directive \"{name}\"", "알 수 없는 지시어 \"{name}\""));
            left = left.saturating_sub(1);
            if left > 0
                && let Some(meant) = weir_conf::did_you_mean(name, nginx_only::names())
            {
                finding = finding.write(format!("{meant} {};", spot.text()));
            }
            found.add(finding);
            continue;
        };
        match entry.origin() {
            DirectiveOrigin::Commercial => {
                let what = said!(
                    "unknown directive \"{name}\": it belongs to NGINX Plus; weir edge has it or does not need it",
                    "알 수 없는 지시어 \"{name}\": NGINX Plus의 지시어이며, weir edge에는 있거나 필요 없습니다"
                );
                found.add(
                    Finding::at(spot, what)
                        .write(format!("# {};", spot.line()))
                        .fix(edit::remove(case.tree(), spot.statement())),
                );
            }
            DirectiveOrigin::Removed => {
                let what = said!(
                    "unknown directive \"{name}\": older versions of nginx had it",
                    "알 수 없는 지시어 \"{name}\": 예전 nginx에 있던 지시어입니다"
                );
                found.add(Finding::at(spot, what).fix(edit::remove(case.tree(), spot.statement())));
            }
            DirectiveOrigin::SeparateModule => {
                let loads = case.view.root().get("load_module").is_some();
                if !loads {
                    let what = said!(
                        "unknown directive \"{name}\" unless nginx has {} compiled in",
                        "nginx가 모듈 {} 없이 컴파일되었으면 알 수 없는 지시어 \"{name}\"입니다",
                        entry.modules
                    );
                    found.add_as(FindingLevel::Note, Finding::at(spot, what));
                }
            }
            DirectiveOrigin::Nginx if !entry.is_allowed_in(context) => {
                let place = entry.contexts;
                let mut finding = Finding::at(
                    spot,
                    said!("\"{name}\" directive is not allowed here", "\"{name}\" 지시어는 여기에 쓸 수 없습니다"),
                );
                finding = match place {
                    "events" | "http" => finding.write(format!("{place} {{ {}; }}", spot.line())),
                    _ => finding.write(format!("# {name} belongs in: {place}")),
                };
                if let Some(block) = case.view.root().get(place).filter(|block| block.is_block()) {
                    finding = finding.fix(edit::remove(case.tree(), spot.statement())).fix(edit::insert_into(
                        case.tree(),
                        block.statement(),
                        &spot.line(),
                    ));
                }
                found.add(finding);
            }
            DirectiveOrigin::Nginx => {}
        }
    }
}

/// The block, in the words of the table. `None` if names in it are not directives (`map`, `types`, other modules).
fn context(scope: Scope<'_>) -> Option<&'static str> {
    let Some(opener) = scope.opener() else { return Some("main") };
    let outer = context(opener.scope())?;
    Some(match (opener.name(), outer) {
        ("events", "main") => "events",
        ("http", "main") => "http",
        ("server", "http") => "server",
        ("location", "server" | "location") => "location",
        ("upstream", "http") => "upstream",
        ("if", "server") => "if in server",
        ("if", "location") => "if in location",
        ("limit_except", "location") => "limit_except",
        ("stream", "main") => "stream",
        ("server", "stream") => "stream server",
        ("upstream", "stream") => "stream upstream",
        _ => return None,
    })
}
