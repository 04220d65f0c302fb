//! A resolver on the Internet.

use std::net::IpAddr;

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "resolver_external",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words("nginx asks an external resolver for the names of origins", "오리진 이름을 외부 resolver에 묻습니다"),
    remedy: words(
        "Answers come over plain UDP. An attacker who forges an answer sends your traffic elsewhere. Use a resolver on this machine or in this network.",
        "응답은 평문 UDP로 옵니다. 공격자가 응답을 위조하면 트래픽이 다른 곳으로 갑니다. 이 서버나 내부망의 resolver를 쓰세요.",
    ),
    source: "nginx.org ngx_http_core_module, resolver (\"properly secured trusted local network\"); gixy-ng resolver_external",
    check,
    fires: Example::conf("resolver 1.1.1.1;"),
    silent: Example::conf("resolver 127.0.0.53 10.0.0.2;"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("resolver") {
        if let Some(outside) = spot.args().find(|arg| is_outside(arg)) {
            found.add(
                Finding::at(spot, said!("{outside} is on the Internet", "인터넷에 있는 주소: {outside}"))
                    .write("resolver 127.0.0.53 valid=30s;"),
            );
        }
    }
}

fn is_outside(argument: &str) -> bool {
    let bare = argument.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(address, _)| address);
    let address = match bare {
        Some(address) => address.parse::<IpAddr>(),
        None => argument.parse().or_else(|_| argument.rsplit_once(':').map_or("", |(host, _)| host).parse()),
    };
    match address {
        Ok(IpAddr::V4(address)) => {
            let [a, b, ..] = address.octets();
            let shared = a == 100 && (64..128).contains(&b);
            !(address.is_private() || address.is_loopback() || address.is_link_local() || shared)
        }
        Ok(IpAddr::V6(address)) => {
            let head = address.segments().first().copied().unwrap_or(0);
            let own = head & 0xfe00 == 0xfc00 || head & 0xff80 == 0xfe80;
            !(address.is_loopback() || own)
        }
        Err(_) => false,
    }
}
