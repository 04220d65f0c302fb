//! A statement that repeats a default.

use crate::defaults;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "equals_default",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words(
        "The value is the default: the line changes nothing",
        "기본값과 같아서 이 줄은 아무것도 바꾸지 않습니다",
    ),
    remedy: words(
        "Keep the line if it documents an intention. Do not expect different measurements.",
        "의도를 밝히려면 두어도 되지만, 측정값이 달라지리라 기대하지 마세요.",
    ),
    source: "nginx.org and CHANGES, by version (docs/reference/doctor.md); lab.md B48, 0-5, 0-7, 0-9",
    check,
    fires: Example::conf("http { proxy_connect_timeout 60s; }"),
    silent: Example::conf("http { proxy_connect_timeout 5s; }"),
};

/// The oldest nginx version that is still in use.
const OLDEST: Version = Version(1, 18, 0);

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all().filter(|spot| !spot.is_block()) {
        let mut path: Vec<String> = spot.around().map(|block| block.line()).collect();
        path.reverse();
        if let Some(why) = case.target.idle(spot.name(), &path) {
            let fix = edit::remove(case.tree(), spot.statement());
            found.add(
                Finding::at(spot, said!("it has no effect in weir: {why}", "weir에서는 효과가 없습니다: {why}"))
                    .write(format!("# {};", spot.line()))
                    .fix(fix),
            );
            continue;
        }
        let Some(default) = defaults::lookup(spot.name()).filter(|default| default.is_for(spot)) else { continue };
        let Some(value) = case.target.known(spot.name(), &path).and_then(|known| known.default) else { continue };
        // If the nginx version is unknown, report only defaults that have been the same for a long time.
        if !case.is_weir() && case.facts.version_is_told.is_none() && default.at(OLDEST) != Some(value) {
            continue;
        }
        let same = default.is_same(&spot.text(), value);
        // Inside a block that sets another value, the default is a change.
        let overrides = spot.scope().outer().and_then(|outer| outer.effective(spot.name())).is_some();
        if same && !overrides {
            let fix = edit::remove(case.tree(), spot.statement());
            let what = said!(
                "{} is the default of {}: this line has no effect",
                "기본값과 같아 효과가 없습니다: {} ({})",
                spot.text(),
                case.target
            );
            found.add(Finding::at(spot, what).write(format!("# {};", spot.line())).fix(fix));
        }
    }
    // On one CPU, auto equals the default 1.
    if let Some(spot) = case.view.root().get("worker_processes").filter(|spot| spot.arg(0) == "auto")
        && case.facts.cpus_present == Some(1)
        && !case.is_weir()
    {
        found.add(Finding::at(
            spot,
            said!("auto is 1 on this machine, which is the default", "이 머신에서는 auto가 기본값인 1입니다"),
        ));
    }
}
