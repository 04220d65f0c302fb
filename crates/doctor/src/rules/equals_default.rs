//! A statement that says what is so anyway.

use crate::defaults;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "equals_default",
    level: Level::Note,
    group: Group::NoEffect,
    says: words("The value is nginx's own default: the line changes nothing", "nginx 기본값과 같아서 이 줄은 아무것도 바꾸지 않습니다"),
    remedy: words(
        "Keep it if it documents an intention; do not expect a measurement to change.",
        "의도를 밝히려면 두어도 되지만, 측정값이 달라지리라 기대하지 마세요.",
    ),
    source: "nginx.org and CHANGES, by version (docs/reference/doctor.md); lab.md B48, 0-5, 0-7, 0-9",
    check,
    fires: Example::conf("http { proxy_connect_timeout 60s; }"),
    silent: Example::conf("http { proxy_connect_timeout 5s; }"),
};

/// The oldest nginx that one still meets.
const OLDEST: Version = Version(1, 18, 0);

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.all().filter(|spot| !spot.is_block()) {
        let Some(default) = defaults::lookup(spot.name()).filter(|default| default.is_for(spot)) else { continue };
        let Some(value) = default.at(case.version) else { continue };
        // Of an unknown nginx, only what has been so for long can be said.
        if case.facts.version_is_told.is_none() && default.at(OLDEST) != Some(value) {
            continue;
        }
        let same = default.is_same(&spot.text(), value);
        // Under a block that says otherwise, the default is a change.
        let overrides = spot.scope().outer().and_then(|outer| outer.effective(spot.name())).is_some();
        if same && !overrides {
            let fix = edit::remove(case.tree(), spot.statement());
            let what = format!("{} is what nginx {} has without it: no effect to expect", spot.text(), case.version);
            found.add(Finding::at(spot, what).write(format!("# {};", spot.line())).fix(fix));
        }
    }
    // On one CPU, auto is the default's 1.
    if let Some(spot) = case.view.root().get("worker_processes").filter(|spot| spot.arg(0) == "auto")
        && case.facts.cpus_present == Some(1)
    {
        found.add(Finding::at(spot, "auto is 1 on this machine, which is the default"));
    }
}
