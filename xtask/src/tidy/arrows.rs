//! The allowed dependencies between crates: all of these arrows, and no others. `ARCHITECTURE.md` prints the same
//! list.

use super::checkout::Checkout;
use super::remark::Remark;

/// Every arrow: from a crate to the crates below it.
const ARROWS: &[(&str, &[&str])] = &[
    ("weir-words", &[]),
    ("weir-conf", &[]),
    ("weir-wire", &[]),
    ("weir-host", &[]),
    ("weir-meter", &[]),
    ("weir-mutate", &[]),
    ("weir-judge", &[]),
    ("weir-fleet", &[]),
    ("weir-recording", &["weir-words"]),
    ("weir-dash", &["weir-words", "weir-meter"]),
    ("weir-net", &["weir-wire"]),
    ("weir-peers", &[]),
    ("weir-acme", &["weir-wire", "weir-net"]),
    ("weir-cache", &["weir-wire", "weir-net"]),
    ("weir-redis", &["weir-net"]),
    ("weir-quic", &["weir-net", "weir-meter"]),
    ("weir-fetch", &["weir-wire", "weir-net"]),
    (
        "weir-http",
        &["weir-fetch", "weir-quic", "weir-conf", "weir-wire", "weir-net", "weir-host", "weir-meter", "weir-cache"],
    ),
    ("weir-groups", &["weir-http", "weir-conf", "weir-wire", "weir-net", "weir-peers"]),
    (
        "weir-proxy",
        &["weir-groups", "weir-http", "weir-conf", "weir-wire", "weir-net", "weir-meter", "weir-cache", "weir-peers"],
    ),
    ("weir-stream", &["weir-groups", "weir-http", "weir-conf", "weir-wire", "weir-net", "weir-meter", "weir-peers"]),
    (
        "weir-edge",
        &[
            "weir-acme",
            "weir-fetch",
            "weir-http",
            "weir-proxy",
            "weir-stream",
            "weir-words",
            "weir-conf",
            "weir-wire",
            "weir-net",
            "weir-host",
            "weir-meter",
            "weir-dash",
            "weir-cache",
            "weir-peers",
            "weir-redis",
            "weir-quic",
            "weir-recording",
            "weir-judge",
            "weir-fleet",
        ],
    ),
    ("weir-doctor", &["weir-words", "weir-conf", "weir-http", "weir-host", "weir-meter"]),
    (
        "weir-load",
        &[
            "weir-recording",
            "weir-quic",
            "weir-words",
            "weir-conf",
            "weir-wire",
            "weir-net",
            "weir-host",
            "weir-meter",
            "weir-dash",
            "weir-redis",
        ],
    ),
    ("weir-origin", &["weir-wire", "weir-net"]),
    (
        "weir-lab",
        &[
            "weir-fetch",
            "weir-load",
            "weir-words",
            "weir-conf",
            "weir-wire",
            "weir-net",
            "weir-host",
            "weir-meter",
            "weir-dash",
        ],
    ),
    (
        "weir-swap",
        &[
            "weir-recording",
            "weir-lab",
            "weir-edge",
            "weir-doctor",
            "weir-load",
            "weir-http",
            "weir-words",
            "weir-conf",
            "weir-net",
            "weir-wire",
            "weir-dash",
            "weir-cache",
        ],
    ),
    (
        "weir-adopt",
        &["weir-swap", "weir-edge", "weir-doctor", "weir-http", "weir-words", "weir-conf", "weir-net", "weir-host"],
    ),
    ("weir-ci", &["weir-doctor", "weir-lab", "weir-words", "weir-conf", "weir-net"]),
    ("weir-mcp", &["weir-edge", "weir-doctor", "weir-lab", "weir-load", "weir-words", "weir-conf", "weir-net"]),
    ("weir-lsp", &["weir-edge", "weir-doctor", "weir-http", "weir-words", "weir-conf", "weir-net"]),
    (
        "weir",
        &[
            "weir-ci",
            "weir-adopt",
            "weir-mcp",
            "weir-lsp",
            "weir-swap",
            "weir-recording",
            "weir-words",
            "weir-conf",
            "weir-net",
            "weir-host",
            "weir-meter",
            "weir-dash",
            "weir-http",
            "weir-edge",
            "weir-doctor",
            "weir-load",
            "weir-origin",
            "weir-lab",
        ],
    ),
    ("xtask", &[]),
];

pub fn arrows(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for member in &checkout.crates {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == member.name) else {
            remarks.push(Remark::error(format!("crate {} has no line in xtask/src/tidy/arrows.rs", member.name)));
            continue;
        };
        for arrow in member.arrows.iter().filter(|arrow| !allowed.contains(&arrow.as_str())) {
            remarks.push(Remark::error(format!("{} may not depend on {arrow}", member.name)));
        }
        for arrow in allowed.iter().filter(|arrow| !member.arrows.iter().any(|own| own == *arrow)) {
            remarks.push(Remark::error(format!(
                "{} does not depend on {arrow}: remove the dependency from xtask/src/tidy/arrows.rs",
                member.name
            )));
        }
    }
    remarks
}

/// Checks that `ARCHITECTURE.md` prints these arrows.
pub fn printed(checkout: &Checkout) -> Vec<Remark> {
    let page = checkout.text("ARCHITECTURE.md");
    let short = |name: &str| name.trim_start_matches("weir-").to_owned();
    let lines = ARROWS.iter().filter(|(_, below)| !below.is_empty());
    let lines = lines.map(|(name, below)| {
        let below: Vec<String> = below.iter().map(|name| short(name)).collect();
        format!("`{}→{}`", short(name), below.join(", "))
    });
    let missing = lines.filter(|line| !page.contains(line.as_str()));
    missing.map(|line| Remark::error(format!("ARCHITECTURE.md: does not say {line}"))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::super::checkout::Crate;
    use super::*;

    fn member(name: &str, arrows: &[&str]) -> Checkout {
        let arrows = arrows.iter().map(|&arrow| arrow.to_owned()).collect();
        Checkout { crates: vec![Crate { name: name.to_owned(), arrows, foreign: Vec::new() }], ..Checkout::default() }
    }

    #[test]
    fn only_listed_arrows_pass() {
        assert_eq!(arrows(&member("weir-cache", &["weir-wire", "weir-net"])), []);
        assert_eq!(
            arrows(&member("weir-wire", &["weir-net"])),
            [Remark::error("weir-wire may not depend on weir-net")]
        );
        assert_eq!(arrows(&member("weir-new", &[])).len(), 1);
    }

    #[test]
    fn a_listed_arrow_is_used() {
        assert_eq!(arrows(&member("weir-dash", &["weir-words"])).len(), 1);
    }

    #[test]
    fn the_page_prints_each_arrow() {
        let of = |text: &str| printed(&Checkout::of(&[("ARCHITECTURE.md", text)])).len();
        assert_eq!(of("`dash→words, meter`") + 1, of(""));
    }

    #[test]
    fn the_list_itself_has_no_circle() {
        // Every arrow points to a crate that is earlier in the list.
        for (position, (name, below)) in ARROWS.iter().enumerate() {
            for lower in *below {
                let at = ARROWS.iter().position(|(name, _)| name == lower).unwrap();
                assert!(at < position, "{name} -> {lower}");
            }
        }
    }
}
