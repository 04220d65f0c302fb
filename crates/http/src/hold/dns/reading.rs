//! Reads `resolver`: the same in `http`, in `stream` and in an upstream.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_conf::Statement;

use super::{ResolverZone, Servers};
use crate::read::authority;
use crate::read::build::Build;
use crate::text::refusal::Refusal;
use crate::text::value;

/// The most servers of one `resolver`.
const SERVERS_MAX: usize = 64;

/// The status zones of these resolvers, each once, in their order.
pub fn zones(all: &[Arc<Servers>]) -> Vec<&Arc<ResolverZone>> {
    let mut zones: Vec<&Arc<ResolverZone>> = Vec::new();
    for servers in all {
        if !zones.iter().any(|zone| zone.name == servers.zone.name) {
            zones.push(&servers.zone);
        }
    }
    zones
}

/// Reads a `resolver` statement and adds its servers to `all`.
pub fn read(b: &Build<'_>, statement: &Statement, all: &mut Vec<Arc<Servers>>) -> Result<Arc<Servers>, Refusal> {
    let (mut servers, mut valid, mut ipv4, mut ipv6, mut zone) = (Vec::new(), None, true, true, None);
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let invalid = || Refusal::whole(format!("invalid parameter: {word}"));
        match word.split_once('=') {
            Some(("valid", text)) => valid = Some(value::whole_seconds_of(text).ok_or_else(invalid)?),
            Some(("ipv4", text)) => ipv4 = on_or_off(text).ok_or_else(invalid)?,
            Some(("ipv6", text)) => ipv6 = on_or_off(text).ok_or_else(invalid)?,
            Some(("status_zone", "")) => return Err(invalid()),
            Some(("status_zone", name)) => zone = Some(name.to_owned()),
            Some(_) | None => servers.extend(server(b, word)?),
        }
    }
    if !ipv4 && !ipv6 {
        return Err(Refusal::whole("\"ipv4\" and \"ipv6\" cannot both be \"off\""));
    }
    if servers.is_empty() {
        return Err(Refusal::whole("no name servers defined").todo("name a server: resolver 127.0.0.53;"));
    }
    if servers.len() > SERVERS_MAX {
        return Err(Refusal::whole(format!("more than {SERVERS_MAX} name servers in resolver")).weirs_own());
    }
    let name = zone.unwrap_or_else(|| servers.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" "));
    let known = all.iter().find(|known| known.zone.name == name).map(|known| known.zone.clone());
    let zone = known.unwrap_or_else(|| Arc::new(ResolverZone::new(name)));
    let mut servers = Servers::new(servers, zone);
    (servers.valid, servers.ipv4, servers.ipv6) = (valid, ipv4, ipv6);
    let servers = Arc::new(servers);
    all.push(servers.clone());
    Ok(servers)
}

fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The addresses of one server; a name is resolved when the configuration is read.
fn server(b: &Build<'_>, word: &str) -> Result<Vec<SocketAddr>, Refusal> {
    let addresses = authority::resolve_in(b, word, 53, "resolver")?;
    let tcp: Vec<SocketAddr> = addresses.iter().filter_map(weir_net::Address::tcp).collect();
    if tcp.is_empty() {
        return Err(Refusal::whole(format!("invalid address in resolver \"{word}\""))
            .todo("write an address: weir asks name servers over UDP and TCP"));
    }
    Ok(tcp)
}
