//! An address of an origin on this machine where nothing listens, while a program listens at the same port elsewhere.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "origin_listens_elsewhere",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway],
    says: words(
        "The application listens at this port, but at another address",
        "앱이 이 포트에서 리슨하지만 주소가 다릅니다",
    ),
    remedy: words(
        "127.0.0.1 and [::1] are two addresses. A program that listens at \"localhost\" often takes only one of them: Node.js takes the first one that the system returns, which is usually ::1. Write the address at which the application listens, or let the application listen at this one.",
        "127.0.0.1과 [::1]은 서로 다른 주소입니다. \"localhost\"에서 리슨하는 프로그램은 흔히 하나만 씁니다. Node.js는 시스템이 먼저 알려 주는 주소를 쓰는데 보통 ::1입니다. 앱이 리슨하는 주소를 쓰거나, 앱이 이 주소에서 리슨하게 하세요.",
    ),
    source: "ip(7), ipv6(7); Node.js net, server.listen; dns.setDefaultResultOrder",
    check,
    fires: Example::with("proxy_pass http://127.0.0.1:4873/;", |facts| facts.listens = at("[::1]:4873")),
    silent: Example::with("proxy_pass http://127.0.0.1:4873/;", |facts| facts.listens = at("[::]:4873")),
};

fn at(address: &str) -> Option<BTreeSet<SocketAddr>> {
    Some(address.parse().into_iter().collect())
}

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(listens) = &case.facts.listens else { return };
    for spot in case.view.all() {
        let written = match spot.name() {
            "server" if !spot.is_block() && !spot.says("down") => spot.arg(0),
            name if name.ends_with("_pass") => {
                let arg = spot.arg(0);
                arg.split_once("://").map_or(arg, |(_, rest)| rest).split('/').next().unwrap_or_default()
            }
            _ => continue,
        };
        let Ok(address) = written.parse::<SocketAddr>() else { continue };
        if !address.ip().is_loopback() || listens.iter().any(|at| accepts(*at, address)) {
            continue;
        }
        let others: Vec<SocketAddr> = listens.iter().filter(|at| at.port() == address.port()).copied().collect();
        let [other] = others.as_slice() else { continue };
        let line = spot.line().replacen(written, &other.to_string(), 1);
        let what = said!(
            "nothing listens at {address} on this machine now, but a program listens at {other}",
            "지금 이 머신의 {address}에서는 아무 프로그램도 리슨하지 않고, {other}에서 리슨합니다"
        );
        let fix = edit::replace(spot.statement(), &line);
        found.add(Finding::at(spot, what).write(format!("{line};")).fix(Some(fix)));
    }
}

/// Whether a socket that listens at the first address takes connections to the second one. `[::]` takes IPv4, too,
/// unless its program forbids it.
fn accepts(at: SocketAddr, address: SocketAddr) -> bool {
    let takes = at.ip().is_unspecified() && (at.is_ipv6() || address.is_ipv4());
    at.port() == address.port() && (takes || at.ip().to_canonical() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_takes_its_own_addresses() {
        let is_silent = |at: &str, address: &str| {
            let (Ok(at), Ok(address)) = (at.parse(), address.parse()) else { return false };
            accepts(at, address)
        };
        for (at, address, expected) in [
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("[::1]:80", "127.0.0.1:80", false),
            ("192.0.2.1:80", "127.0.0.1:80", false),
        ] {
            assert_eq!(is_silent(at, address), expected, "{at} {address}");
        }
    }
}
