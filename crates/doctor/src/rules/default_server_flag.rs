//! Several servers on one address, none of them marked as the default.

use std::collections::BTreeMap;

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "default_server_flag",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "Several servers share an address and none is marked default_server",
        "같은 주소를 쓰는 server가 여럿인데 default_server 표시가 없습니다",
    ),
    remedy: words(
        "nginx sends a request with an unknown Host to the server that it reads first, so the order of the files decides. Mark one server, best a server that contains only `return 444;`.",
        "알 수 없는 Host 요청은 먼저 읽힌 server로 갑니다. 파일 순서가 결정하게 두지 말고 하나를 표시하세요. `return 444;`만 하는 server가 가장 좋습니다.",
    ),
    source: "nginx.org, How nginx processes a request; gixy-ng default_server_flag",
    check,
    fires: Example::conf("http { server { listen 80; server_name a; } server { listen 80; server_name b; } }"),
    silent: Example::conf(
        "http { server { listen 80 default_server; server_name a; } server { listen 80; server_name b; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let mut addresses: BTreeMap<String, (Vec<Spot<'_>>, bool)> = BTreeMap::new();
    for server in case.view.servers() {
        for listen in server.named("listen") {
            let address = normal(listen.arg(0));
            let (spots, marked) = addresses.entry(address).or_default();
            *marked |= listen.says("default_server") || listen.says("default");
            if !spots.iter().any(|other| other.scope().is(server)) {
                spots.push(listen);
            }
        }
    }
    for (address, (spots, marked)) in addresses {
        if let (false, [first, _, ..]) = (marked, spots.as_slice()) {
            let what = said!(
                "{} servers listen on {address}; this one answers for unknown names because it is read first",
                "server {}개가 {address}에서 리슨합니다. 이 server가 먼저 읽혀 모르는 이름에 응답합니다",
                spots.len()
            );
            let line = format!("{} default_server", first.line());
            let fix = edit::replace(first.statement(), &line);
            found.add(Finding::at(*first, what).write(format!("{line};")).fix(Some(fix)));
        }
    }
}

/// `80`, `*:80` and `0.0.0.0:80` are one address.
fn normal(address: &str) -> String {
    let address = address.strip_prefix("*:").or_else(|| address.strip_prefix("0.0.0.0:")).unwrap_or(address);
    address.to_owned()
}
