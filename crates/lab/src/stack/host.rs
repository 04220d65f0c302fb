//! A host of a stack, and its addresses.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::credits::Credits;
use crate::wan::BadLink;

/// The host in the middle. It is the edge's host; without namespaces it is every process's host.
pub const HUB: &str = "edge";
/// The address at which every host reaches the hub.
pub(super) const HUB_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 254, 1);

/// A machine of the stack: a network namespace that a link joins to the hub, and a control group if it has limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name. The namespace has the same name, and other hosts know it by that name.
    pub name: String,
    /// Additional addresses.
    pub addresses: Vec<IpAddr>,
    /// Kernel parameters of its network namespace, `net.…`, and their values.
    pub sysctls: Vec<(String, String)>,
    /// The rate of its link, kilobits a second in each direction. Not for the hub, which has a link to every host.
    pub rate_kbit: Option<u64>,
    /// The faults of its link. The hub can have none. `None`: the link passes all packets on.
    pub link: Option<BadLink>,
    /// CPUs that its processes may use together; 0.5 is half a CPU.
    pub cpus: Option<f64>,
    /// Its memory, MiB.
    pub memory_mb: Option<u64>,
    /// CPUs that depend on credits, instead of `cpus`.
    pub credits: Option<Credits>,
}

impl Host {
    /// A host without limits.
    pub fn named(name: &str) -> Host {
        Host { name: name.to_owned(), ..Host::default() }
    }
}

/// The two ends of a host's link: the hub's end and its own.
pub(super) fn link(number: usize) -> (Ipv4Addr, Ipv4Addr) {
    let third = u8::try_from(number).unwrap_or(u8::MAX);
    (Ipv4Addr::new(10, 99, third, 1), Ipv4Addr::new(10, 99, third, 2))
}

/// All hosts except the hub, numbered.
pub(super) fn spokes(hosts: &[Host]) -> impl Iterator<Item = (usize, &Host)> {
    hosts.iter().filter(|host| host.name != HUB).enumerate()
}

/// A host's address.
pub(super) fn address_of(hosts: &[Host], name: &str) -> Option<IpAddr> {
    if name == HUB {
        return Some(HUB_ADDRESS.into());
    }
    spokes(hosts).find(|(_, host)| host.name == name).map(|(number, _)| link(number).1.into())
}
