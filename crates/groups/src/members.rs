//! The members of a group that may change: servers from the file or the API, and their peers. Pure.

use weir_conf::Statement;
use weir_http::authority::{authority, literal_address, split_host_port};
use weir_http::dns::ResolvedAddress;
use weir_http::refusal::Refusal;
use weir_http::value;
use weir_peers::balance::Policy;
use weir_peers::group::{MAX_PEERS, MAX_TOTAL_WEIGHT};
use weir_peers::peer::Peer;

/// nginx: a route is at most as long as a name made from an address.
pub const ROUTE_BYTES_MAX: usize = 32;

/// A `server` whose name is resolved repeatedly.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub host: String,
    /// The port of its addresses; a service brings its own.
    pub port: u16,
    /// `service=`.
    pub service: Option<String>,
    /// The other parameters of the server.
    pub pattern: Peer,
}

/// A server with a number that never changes.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number in the group.
    pub id: u32,
    /// The kind of server.
    pub kind: Kind,
}

/// The kind of a server.
#[derive(Clone, Debug)]
pub enum Kind {
    /// An address.
    Fixed(Peer),
    /// A name, and its current addresses, each with a number of its own.
    Named(Named, Vec<(u32, ResolvedAddress)>),
}

/// The servers of a group.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// In the order of the file, then of the API.
    pub list: Vec<Member>,
    next_id: u32,
}

impl Member {
    /// The parameters of the server.
    pub fn pattern(&self) -> &Peer {
        match &self.kind {
            Kind::Fixed(peer) => peer,
            Kind::Named(named, _) => &named.pattern,
        }
    }

    /// The same, mutable.
    pub fn pattern_mut(&mut self) -> &mut Peer {
        match &mut self.kind {
            Kind::Fixed(peer) => peer,
            Kind::Named(named, _) => &mut named.pattern,
        }
    }

    /// The peers of the server.
    pub fn peers(&self) -> Vec<Peer> {
        match &self.kind {
            Kind::Fixed(peer) => vec![Peer { id: self.id, ..peer.clone() }],
            Kind::Named(named, places) => {
                let first = places.iter().map(|(_, place)| place.priority).min().unwrap_or(0);
                places.iter().map(|(id, place)| named.peer(*id, place, first)).collect()
            }
        }
    }
}

impl Named {
    fn peer(&self, id: u32, place: &ResolvedAddress, first: u16) -> Peer {
        let mut peer = Peer { id, ..self.pattern.clone() };
        let mut address = place.address;
        if self.service.is_some() {
            peer.server.clone_from(&place.host);
            peer.backup |= place.priority != first;
            if peer.weight == 1 {
                peer.weight = u32::from(place.weight);
            }
        } else {
            address.set_port(self.port);
        }
        peer.address = address.to_string();
        peer
    }
}

impl Members {
    /// Makes the servers; only the addresses of the `fixed` ones are known.
    pub fn new(fixed: Vec<Peer>, named: Vec<Named>) -> Members {
        let mut members = Members::default();
        for peer in fixed {
            members.add(Kind::Fixed(peer));
        }
        for named in named {
            members.add(Kind::Named(named, Vec::new()));
        }
        members
    }

    /// Adds a server; returns its number.
    pub fn add(&mut self, kind: Kind) -> u32 {
        let id = self.number();
        self.list.push(Member { id, kind });
        id
    }

    fn number(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// Sets the addresses of a name; `false` if they are the same as before.
    pub fn learn(&mut self, id: u32, places: Vec<ResolvedAddress>) -> bool {
        let mut next_id = self.next_id;
        let Some(Kind::Named(_, known)) =
            self.list.iter_mut().find(|member| member.id == id).map(|member| &mut member.kind)
        else {
            return false;
        };
        // DNS servers send the same addresses in changing order: known addresses keep their order here, and their
        // number.
        let mut new = places;
        let mut now = Vec::with_capacity(new.len());
        for (id, before) in known.iter() {
            if let Some(at) = new.iter().position(|place| place.address == before.address && place.host == before.host)
            {
                now.push((*id, new.remove(at)));
            }
        }
        for place in new {
            now.push((next_id, place));
            next_id = next_id.wrapping_add(1);
        }
        if *known == now {
            return false;
        }
        *known = now;
        self.next_id = next_id;
        true
    }

    /// All peers, and whether there were too many: then the last ones are left out.
    pub fn peers(&self) -> (Vec<Peer>, bool) {
        let mut peers: Vec<Peer> = self.list.iter().flat_map(Member::peers).collect();
        let too_many = peers.len() > MAX_PEERS;
        peers.truncate(MAX_PEERS);
        lighten(&mut peers);
        (peers, too_many)
    }

    /// Takes over the addresses of names that `old` also has.
    pub fn adopt(&mut self, old: &Members) {
        let known = |named: &Named| {
            old.list.iter().find_map(|member| match &member.kind {
                Kind::Named(other, places) if other.host == named.host && other.service == named.service => {
                    Some(places.iter().map(|(_, place)| place.clone()).collect())
                }
                Kind::Named(..) | Kind::Fixed(_) => None,
            })
        };
        let found: Vec<(u32, Vec<ResolvedAddress>)> = self
            .list
            .iter()
            .filter_map(|member| match &member.kind {
                Kind::Named(named, _) => Some((member.id, known(named)?)),
                Kind::Fixed(_) => None,
            })
            .collect();
        for (id, places) in found {
            self.learn(id, places);
        }
    }
}

/// Services may have more total weight than a group allows: then all weights shrink in proportion.
fn lighten(peers: &mut [Peer]) {
    let total: u64 = peers.iter().map(|peer| u64::from(peer.weight)).sum();
    let limit = u64::from(MAX_TOTAL_WEIGHT) - MAX_PEERS as u64;
    if total > limit {
        let divisor = total.div_ceil(limit) as u32;
        peers.iter_mut().for_each(|peer| peer.weight = (peer.weight / divisor).max(1));
    }
}

/// A server with a name that is resolved repeatedly; `None` if it is an address, or is resolved once. A service brings its port.
pub fn named(
    written: &str,
    pattern: &Peer,
    resolves: bool,
    service: Option<String>,
    port_default: Option<u16>,
) -> Result<Option<Named>, Refusal> {
    if !resolves {
        return match service {
            None => Ok(None),
            Some(_) => Err(Refusal::whole(format!("service upstream \"{written}\" requires \"resolve\" parameter"))
                .todo("add: resolve")),
        };
    }
    let is_address = literal_address(written).is_some();
    if service.is_some() {
        if is_address {
            return Err(Refusal::whole(format!("service upstream \"{written}\" requires domain name")));
        }
        if split_host_port(written).1.is_some() {
            return Err(Refusal::whole(format!("service upstream \"{written}\" may not have port"))
                .todo("remove the port: the DNS record of the service contains the port"));
        }
    }
    let has_port = port_default.is_some() || service.is_some() || split_host_port(written).1.is_some();
    if !has_port {
        return Err(Refusal::whole(format!("no port in upstream \"{written}\"")));
    }
    if is_address {
        return Ok(None);
    }
    let (host, port) = authority(written, port_default.unwrap_or_default(), "upstream")?;
    weir_wire::dns::Name::of_text(host)
        .map_err(|_| Refusal::whole(format!("invalid host in upstream \"{written}\"")))?;
    Ok(Some(Named { host: host.to_owned(), port, service, pattern: pattern.clone() }))
}

/// The name of a group's `zone`; nginx refuses a size below eight pages, although weir needs none.
pub fn zone(statement: &Statement) -> Result<String, Refusal> {
    if statement.args.len() == 2 && value::size_of(statement.text(1)).is_none_or(|size| size < 8 * 4096) {
        return Err(Refusal::whole(format!("invalid zone size \"{}\"", statement.text(1))));
    }
    Ok(statement.text(0).to_owned())
}

/// The parameter of this server that the method of balancing ignores, if there is one.
pub fn ignored(policy: Policy, peer: &Peer) -> Option<&'static str> {
    if !policy.is_plain() {
        return None;
    }
    [(peer.backup, "backup"), (peer.slow_start_ms > 0, "slow_start")]
        .into_iter()
        .find_map(|(is_set, name)| is_set.then_some(name))
}

/// Refuses a server with a parameter that the method of balancing ignores. As in nginx, only a method that stands before the server counts:
/// files have `ip_hash` after a `backup`, which then serves only if no other server can.
pub fn fits(policy: Option<Policy>, peer: &Peer) -> Result<(), Refusal> {
    match policy.and_then(|policy| ignored(policy, peer)) {
        Some(name) => Err(Refusal::whole(format!("balancing method does not support parameter \"{name}\""))),
        None => Ok(()),
    }
}

/// Reads a parameter of a `server` line.
pub fn parameter(peer: &mut Peer, word: &str) -> Result<(), Refusal> {
    let invalid = || Refusal::whole(format!("invalid parameter \"{word}\""));
    // nginx takes larger numbers; weir counts no further.
    let number = |text: &str| value::number(text).map(|n| n.min(u64::from(u32::MAX)) as u32).ok_or_else(invalid);
    match word.split_once('=') {
        Some(("weight", text)) => {
            peer.weight = number(text).and_then(|n| if n == 0 { Err(invalid()) } else { Ok(n) })?
        }
        Some(("max_conns", text)) => peer.max_conns = number(text)?,
        Some(("max_fails", text)) => peer.max_fails = number(text)?,
        Some(("fail_timeout", text)) => {
            peer.fail_timeout_s = value::whole_seconds_of(text).ok_or_else(invalid)?.as_secs()
        }
        Some(("route", text)) => peer.route = route(text)?,
        Some(("slow_start", text)) => {
            peer.slow_start_ms = value::long_time_of(text).ok_or_else(invalid)?.as_millis() as u64;
        }
        None if word == "backup" => peer.backup = true,
        None if word == "down" => peer.down = true,
        None if word == "drain" => peer.drain = true,
        _ => return Err(invalid()),
    }
    Ok(())
}

/// `route=`: the peer's name for `sticky`.
fn route(text: &str) -> Result<String, Refusal> {
    match text.len() {
        0 => Err(Refusal::whole("route is empty")),
        1..=ROUTE_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(Refusal::whole(format!("route is longer than {ROUTE_BYTES_MAX}"))),
    }
}
