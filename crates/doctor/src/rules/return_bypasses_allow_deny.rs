//! `return` in a block that `allow` and `deny` should protect.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "return_bypasses_allow_deny",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words("return answers before nginx checks allow and deny", "return은 allow/deny보다 먼저 응답합니다"),
    remedy: words(
        "The rewrite phase runs before the access phase, so everybody gets this answer. Move the return into a separate location, and reach that location with `try_files`.",
        "rewrite 단계가 access 단계보다 먼저라 모두가 이 응답을 받습니다. `try_files`로 가는 별도 location으로 옮기세요.",
    ),
    source: "nginx development guide, phases; gixy-ng return_bypasses_allow_deny",
    check,
    fires: Example::conf("location / { allow 10.0.0.1; deny all; return 200 secret; }"),
    silent: Example::conf("location / { allow 10.0.0.1; deny all; proxy_pass http://app; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("return") {
        let mut block = spot.scope();
        if block.name() == "if" {
            block = block.outer().unwrap_or(block);
        }
        let refuses = matches!(spot.arg(0), "403" | "404" | "444" | "401");
        if block.get("deny").is_some() && !refuses {
            found.add(Finding::at(
                spot,
                said!("deny in this block does not prevent this answer", "이 블록의 deny는 이 응답을 막지 못합니다"),
            ));
        }
    }
}
