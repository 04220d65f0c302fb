//! `listen … quic` on sockets that hold few datagrams.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "udp_receive_buffer",
    level: FindingLevel::Note,
    group: Group::Limits,
    symptoms: &[],
    says: words("The sockets of QUIC hold few datagrams", "QUIC 소켓의 수신 버퍼가 작아 데이터그램을 조금만 담습니다"),
    remedy: words(
        "A busy worker reads a few milliseconds later. The kernel drops datagrams that do not fit until then, and clients send them again, more slowly. Linux counts about 2,300 bytes for a datagram of 1,200. Restart the server: an open socket keeps its buffer.",
        "바쁜 워커는 몇 밀리초 늦게 읽습니다. 그동안 버퍼에 들어가지 못한 데이터그램은 커널이 버리고, 클라이언트는 더 천천히 다시 보냅니다. Linux는 1,200바이트 데이터그램을 약 2,300바이트로 셉니다. 열린 소켓은 버퍼를 바꾸지 않으므로 서버를 다시 시작하세요.",
    ),
    source: "socket(7); RFC 9002, section 7.3.2",
    check,
    fires: Example::with("server { listen 443 quic; }", |facts| facts.rmem_default = Some(212_992)),
    silent: Example::with("server { listen 443 quic; }", |facts| facts.rmem_default = Some(4 << 20)),
};

/// Fewer bytes hold less than 500 datagrams: 5 ms of 100,000 a second.
const FEW: u64 = 1 << 20;
/// The size that the remedy sets.
const ENOUGH: u64 = 4 << 20;

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(listen) = case.view.named("listen").find(|listen| listen.says("quic")) else { return };
    // `rcvbuf=` is a wish, and so are the 4 MiB of weir: the kernel cuts it at net.core.rmem_max.
    let is_asked = case.is_weir() || listen.args().any(|arg| arg.starts_with("rcvbuf="));
    let (name, bytes) = if is_asked {
        ("net.core.rmem_max", case.facts.rmem_max)
    } else {
        ("net.core.rmem_default", case.facts.rmem_default)
    };
    let Some(bytes) = bytes.filter(|bytes| *bytes < FEW) else { return };
    found.add(
        Finding::at(listen, said!("{name} is {bytes} bytes", "{name} 값이 {bytes}바이트입니다"))
            .write(format!("sysctl -w {name}={ENOUGH}")),
    );
}

#[cfg(test)]
mod tests {
    use super::super::finds;
    use super::RULE;
    use crate::target::Target;
    use crate::{Facts, examine, load};
    use weir_conf::MemoryFiles;

    #[test]
    fn a_wish_of_the_file_is_cut_at_the_maximum() {
        let facts = Facts { rmem_default: Some(4 << 20), rmem_max: Some(212_992), ..Facts::default() };
        let written =
            |conf: &str| finds(&RULE, conf, &facts).into_iter().filter_map(|finding| finding.write).collect::<Vec<_>>();
        assert_eq!(written("server { listen 443 quic rcvbuf=4m; }"), ["sysctl -w net.core.rmem_max=4194304"]);
        assert_eq!(written("server { listen 443 quic; }"), [""; 0]);
        assert_eq!(written("server { listen 443 ssl rcvbuf=4m; }"), [""; 0]);
        assert_eq!(finds(&RULE, "server { listen 443 quic; }", &Facts::default()), [], "not known");
        let (tree, _) = load(&MemoryFiles::new().with("/f", "http { server { listen 443 quic; } }"), "/f", "/");
        let of_weir = examine(&tree, Target::Weir, &facts).into_iter().filter(|finding| finding.rule == RULE.id);
        let of_weir: Vec<_> = of_weir.filter_map(|finding| finding.write).collect();
        assert_eq!(of_weir, ["sysctl -w net.core.rmem_max=4194304"], "weir asks without the word");
    }
}
