//! A server that gets no requests, because another server has its name.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "conflicting_server_name",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "An earlier server on the same address already has this server name",
        "같은 주소에서 앞의 server가 이미 쓰는 이름입니다",
    ),
    remedy: words(
        "nginx warns \"conflicting server name … ignored\" and serves the first; often the configuration includes a file twice, or sites-enabled contains a backup file.",
        "nginx는 \"conflicting server name … ignored\" 경고만 하고 첫 번째를 씁니다. 파일이 두 번 include 되었거나 sites-enabled에 백업이 남은 경우가 많습니다.",
    ),
    source: "nginx ngx_http.c, \"conflicting server name\"",
    check,
    fires: Example::conf(
        "http { server { listen 80; server_name a.example; } server { listen 80; server_name a.example; } }",
    ),
    silent: Example::conf(
        "http { server { listen 80; server_name a.example; } server { listen 81; server_name a.example; } }",
    ),
};

/// Most names and addresses that are checked.
const NAMES_MAX: usize = 100_000;

fn check(case: &Case<'_>, found: &mut Findings) {
    let mut taken: std::collections::HashMap<(String, String), Spot<'_>> = std::collections::HashMap::new();
    for server in case.view.servers() {
        let mut addresses: Vec<String> = server.named("listen").map(|listen| listen.arg(0).to_owned()).collect();
        if addresses.is_empty() {
            addresses.push("80".to_owned());
        }
        for name in server.named("server_name").flat_map(|spot| spot.args().map(move |name| (spot, name))) {
            let (spot, name) = (name.0, name.1.to_ascii_lowercase());
            for address in &addresses {
                let key = (address.clone(), name.clone());
                match taken.get(&key) {
                    // `_` is an ordinary name that no client requests.
                    Some(first) if !first.scope().is(server) && name != "_" && !name.is_empty() => {
                        let what = said!(
                            "conflicting server name \"{name}\" on {address}, ignored: line {} has it",
                            "{address}의 서버 이름이 {}번째 줄과 겹쳐 무시됩니다: \"{name}\"",
                            first.at().line
                        );
                        found.add(Finding::at(spot, what));
                    }
                    Some(_) => {}
                    None if taken.len() < NAMES_MAX => {
                        taken.insert(key, spot);
                    }
                    None => return,
                }
            }
        }
    }
}
