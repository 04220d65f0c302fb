//! Machines as network namespaces on a bridge; their links can be cut.

use std::process::Command;

/// Three namespaces, `a`, `b` and `c`; removed at the end.
pub struct Namespaces {
    id: u32,
    /// The bridge's address, reachable from all of them.
    pub gateway: String,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Namespaces {
    /// Makes the namespaces; needs root.
    pub fn new() -> Namespaces {
        let id = std::process::id() % 10_000;
        // Link-local addresses do not collide with other networks; the agents' test has its gateway at .1.
        let net = Namespaces { id, gateway: format!("169.254.{}.129", 1 + id % 250) };
        let (bridge, gateway) = (format!("wpb{id}"), &net.gateway);
        let mut is_made = ip(&format!("link add {bridge} type bridge"))
            && ip(&format!("addr add {gateway}/25 dev {bridge}"))
            && ip(&format!("link set {bridge} up"));
        for name in NAMES {
            let (space, out, address) = (net.name(name), net.link(name), net.address(name));
            is_made = is_made
                && ip(&format!("netns add {space}"))
                && ip(&format!("link add {out} type veth peer name eth0 netns {space}"))
                && ip(&format!("link set {out} master {bridge} up"))
                && ip(&format!("-n {space} addr add {address}/25 dev eth0"))
                && ip(&format!("-n {space} link set eth0 up"))
                && ip(&format!("-n {space} link set lo up"));
        }
        assert!(is_made, "no namespaces on {bridge}");
        net
    }

    /// The namespace's own name.
    pub fn name(&self, name: &str) -> String {
        format!("wpn{}{name}", self.id)
    }

    /// Its address.
    pub fn address(&self, name: &str) -> String {
        let last = NAMES.iter().position(|known| *known == name).unwrap_or_default() + 130;
        format!("169.254.{}.{last}", 1 + self.id % 250)
    }

    /// Cuts a namespace off from the others.
    pub fn cut(&self, name: &str) {
        assert!(ip(&format!("link set {} down", self.link(name))));
    }

    /// Reconnects a namespace.
    pub fn join(&self, name: &str) {
        assert!(ip(&format!("link set {} up", self.link(name))));
    }

    fn link(&self, name: &str) -> String {
        format!("wpv{}{name}", self.id)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in NAMES {
            ip(&format!("netns del {}", self.name(name)));
        }
        ip(&format!("link del wpb{}", self.id));
    }
}

fn ip(line: &str) -> bool {
    Command::new("ip").args(line.split(' ')).output().is_ok_and(|out| out.status.success())
}
