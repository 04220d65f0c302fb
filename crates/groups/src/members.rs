//! The members of a group that may change: servers from the file or the API, and their peers. Pure.

use weir_conf::Statement;
use weir_http::hold::dns::ResolvedAddress;
use weir_http::read::authority::{authority, literal_address, split_host_port};
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
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
    pub kind: MemberKind,
}

/// The kind of a server.
#[derive(Clone, Debug)]
pub enum MemberKind {
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
            MemberKind::Fixed(peer) => peer,
            MemberKind::Named(named, _) => &named.pattern,
        }
    }

    /// The same, mutable.
    pub fn pattern_mut(&mut self) -> &mut Peer {
        match &mut self.kind {
            MemberKind::Fixed(peer) => peer,
            MemberKind::Named(named, _) => &mut named.pattern,
        }
    }

    /// The peers of the server.
    pub fn peers(&self) -> Vec<Peer> {
        match &self.kind {
            MemberKind::Fixed(peer) => vec![Peer { id: self.id, ..peer.clone() }],
            MemberKind::Named(named, places) => {
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
            members.add(MemberKind::Fixed(peer));
        }
        for named in named {
            members.add(MemberKind::Named(named, Vec::new()));
        }
        members
    }

    /// Adds a server; returns its number.
    pub fn add(&mut self, kind: MemberKind) -> u32 {
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
        let Some(MemberKind::Named(_, known)) =
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
                MemberKind::Named(other, places) if other.host == named.host && other.service == named.service => {
                    Some(places.iter().map(|(_, place)| place.clone()).collect())
                }
                MemberKind::Named(..) | MemberKind::Fixed(_) => None,
            })
        };
        let found: Vec<(u32, Vec<ResolvedAddress>)> = self
            .list
            .iter()
            .filter_map(|member| match &member.kind {
                MemberKind::Named(named, _) => Some((member.id, known(named)?)),
                MemberKind::Fixed(_) => None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{name, peer, place};
    use weir_peers::balance::Until;

    #[test]
    fn every_parameter_of_a_server_is_read_or_refused() {
        let with = |change: fn(&mut Peer)| {
            let mut peer = peer("a");
            change(&mut peer);
            Some(peer)
        };
        for (word, expected) in [
            ("weight=5", with(|peer| peer.weight = 5)),
            ("weight=5000000000", with(|peer| peer.weight = u32::MAX)),
            ("max_conns=7", with(|peer| peer.max_conns = 7)),
            ("max_fails=0", with(|peer| peer.max_fails = 0)),
            ("fail_timeout=1m", with(|peer| peer.fail_timeout_s = 60)),
            ("fail_timeout=0", with(|peer| peer.fail_timeout_s = 0)),
            ("slow_start=1500ms", with(|peer| peer.slow_start_ms = 1500)),
            ("route=a", with(|peer| peer.route = "a".to_owned())),
            ("backup", with(|peer| peer.backup = true)),
            ("down", with(|peer| peer.down = true)),
            ("drain", with(|peer| peer.drain = true)),
            ("weight=0", None),
            ("weight=-1", None),
            ("weight=", None),
            ("weight", None),
            ("max_conns=x", None),
            ("max_fails=1s", None),
            ("fail_timeout=x", None),
            ("slow_start=1x", None),
            ("backup=1", None),
            ("BACKUP", None),
            ("", None),
        ] {
            let mut peer = peer("a");
            let refused = parameter(&mut peer, word).err().map(|refusal| refusal.what);
            match expected {
                Some(expected) => assert_eq!((refused, peer), (None, expected), "{word}"),
                None => assert_eq!(refused, Some(format!("invalid parameter \"{word}\"")), "{word}"),
            }
        }
    }

    #[test]
    fn a_route_is_as_long_as_a_name_made_from_an_address() {
        for (bytes, words) in [(0, Some("route is empty")), (32, None), (33, Some("route is longer than 32"))] {
            let told = parameter(&mut peer("a"), &format!("route={}", "r".repeat(bytes)));
            assert_eq!(told.err().map(|refusal| refusal.what).as_deref(), words, "{bytes}");
        }
    }

    #[test]
    fn a_name_is_resolved_repeatedly_only_if_the_server_says_so() {
        let long = format!("{}.test:80", "a".repeat(64));
        // The server, whether it has `resolve`, `service=`, the default port; then host and port, or the words.
        for (written, resolves, service, port, expected) in [
            ("a.test:8080", true, None, None, Ok(Some(("a.test", 8080)))),
            ("a.test", true, None, Some(80), Ok(Some(("a.test", 80)))),
            ("a.test:8080", true, None, Some(80), Ok(Some(("a.test", 8080)))),
            ("a.test", true, Some("http"), None, Ok(Some(("a.test", 0)))),
            ("a.test:80", false, None, None, Ok(None)),
            ("127.0.0.1:80", true, None, None, Ok(None)),
            ("unix:/a", true, None, None, Ok(None)),
            ("a.test", false, Some("x"), None, Err("service upstream \"a.test\" requires \"resolve\" parameter")),
            ("127.0.0.1:80", true, Some("x"), None, Err("service upstream \"127.0.0.1:80\" requires domain name")),
            ("a.test:80", true, Some("x"), None, Err("service upstream \"a.test:80\" may not have port")),
            ("a.test", true, None, None, Err("no port in upstream \"a.test\"")),
            ("a.test:0", true, None, None, Err("invalid port in upstream \"a.test:0\"")),
            ("a.test:x", true, None, None, Err("invalid port in upstream \"a.test:x\"")),
            (":80", true, None, None, Err("no host in upstream \":80\"")),
            ("a..test:80", true, None, None, Err("invalid host in upstream \"a..test:80\"")),
            (&long, true, None, None, Err(&format!("invalid host in upstream \"{long}\""))),
        ] {
            let found = named(written, &peer("a"), resolves, service.map(str::to_owned), port);
            let found = found.map(|named| named.map(|named| (named.host, named.port)));
            let expected = expected.map(|named| named.map(|(host, port)| (host.to_owned(), port)));
            assert_eq!(found.map_err(|refusal| refusal.what), expected.map_err(str::to_owned), "{written} {service:?}");
        }
    }

    #[test]
    fn zones_have_the_sizes_of_nginx() {
        for (text, expected) in [
            ("zone a;", Ok("a")),
            ("zone a 32k;", Ok("a")),
            ("zone a 1m;", Ok("a")),
            ("zone a 32767;", Err("invalid zone size \"32767\"")),
            ("zone a x;", Err("invalid zone size \"x\"")),
        ] {
            let statements = weir_conf::parse(text.as_bytes(), 0, &|_| false).statements;
            let found = zone(&statements[0]).map_err(|refusal| refusal.what);
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_method_before_a_server_must_know_its_parameters() {
        let (backup, slow) = (Peer { backup: true, ..peer("a") }, Peer { slow_start_ms: 1, ..peer("a") });
        let refused = |policy, peer: &Peer| fits(policy, peer).err().map(|refusal| refusal.what);
        let words = |name| Some(format!("balancing method does not support parameter \"{name}\""));
        for (policy, ignores) in [
            (None, false),
            (Some(Policy::RoundRobin), false),
            (Some(Policy::LeastConn), false),
            (Some(Policy::LeastTime { until: Until::Header, inflight: false }), false),
            (Some(Policy::IpHash), true),
            (Some(Policy::Hash { consistent: true }), true),
            (Some(Policy::Random { two: None }), true),
        ] {
            let found = [refused(policy, &backup), refused(policy, &slow), refused(policy, &peer("a"))];
            let expected = if ignores { [words("backup"), words("slow_start"), None] } else { [None, None, None] };
            assert_eq!(found, expected, "{policy:?}");
        }
    }

    fn ids(members: &Members) -> Vec<(u32, String)> {
        members.peers().0.into_iter().map(|peer| (peer.id, peer.address)).collect()
    }

    #[test]
    fn servers_and_learned_addresses_have_numbers_that_are_never_used_again() {
        let mut members = Members::new(vec![peer("127.0.0.1:1")], vec![name("a.test", 80)]);
        assert!(members.learn(1, vec![place("10.0.0.1:0"), place("10.0.0.2:0")]));
        let expected = [(0, "127.0.0.1:1"), (2, "10.0.0.1:80"), (3, "10.0.0.2:80")];
        assert_eq!(ids(&members), expected.map(|(id, address)| (id, address.to_owned())));
        assert!(
            !members.learn(1, vec![place("10.0.0.2:0"), place("10.0.0.1:0")]),
            "the order of an answer says nothing"
        );
        assert!(members.learn(1, vec![place("10.0.0.3:0"), place("10.0.0.2:0")]));
        assert_eq!(members.add(MemberKind::Fixed(peer("127.0.0.1:2"))), 5);
        let expected = [(0, "127.0.0.1:1"), (3, "10.0.0.2:80"), (4, "10.0.0.3:80"), (5, "127.0.0.1:2")];
        assert_eq!(ids(&members), expected.map(|(id, address)| (id, address.to_owned())));
    }

    #[test]
    fn a_service_gives_host_port_priority_and_weight() {
        let service = Named { service: Some("http".to_owned()), ..name("a.test", 0) };
        let at = |address: &str, host: &str, priority, weight| ResolvedAddress {
            host: host.to_owned(),
            priority,
            weight,
            ..place(address)
        };
        let places = || vec![at("10.0.0.1:81", "x.test", 5, 3), at("10.0.0.2:82", "y.test", 9, 2)];
        let shown = |weight| {
            let named = Named { pattern: Peer { weight, ..service.pattern.clone() }, ..service.clone() };
            let mut members = Members::new(vec![], vec![named]);
            members.learn(0, places());
            let peers = members.peers().0;
            peers.into_iter().map(|peer| (peer.address, peer.server, peer.weight, peer.backup)).collect::<Vec<_>>()
        };
        let expected = |first, second| {
            let row = |address: &str, host: &str, weight, backup| (address.to_owned(), host.to_owned(), weight, backup);
            vec![row("10.0.0.1:81", "x.test", first, false), row("10.0.0.2:82", "y.test", second, true)]
        };
        assert_eq!(shown(1), expected(3, 2), "a server without a weight takes the weights of the records");
        assert_eq!(shown(4), expected(4, 4));
    }

    #[test]
    fn a_group_has_a_bounded_number_and_weight_of_peers() {
        let many = |count: usize| Members::new((0..count).map(|_| peer("127.0.0.1:1")).collect(), vec![]).peers();
        for (count, too_many) in [(MAX_PEERS, false), (MAX_PEERS + 1, true)] {
            let (peers, told) = many(count);
            assert_eq!((peers.len(), told), (MAX_PEERS, too_many), "{count}");
        }
        let heavy = |weights: [u32; 3]| {
            let members = Members::new(weights.map(|weight| Peer { weight, ..peer("a") }).to_vec(), vec![]);
            members.peers().0.iter().map(|peer| peer.weight).collect::<Vec<_>>()
        };
        assert_eq!(heavy([10, 20, 30]), [10, 20, 30]);
        let shrunk = heavy([400_000, 200_000, 1]);
        assert!(shrunk.iter().sum::<u32>() <= MAX_TOTAL_WEIGHT, "{shrunk:?}");
        assert_eq!((shrunk[0] / shrunk[1], shrunk[2]), (2, 1), "shares stay, and no peer loses all: {shrunk:?}");
    }

    #[test]
    fn only_the_same_name_and_service_take_over_addresses() {
        let of = |host: &str, service: Option<&str>| Named { service: service.map(str::to_owned), ..name(host, 80) };
        let mut old = Members::new(vec![], vec![of("a.test", None), of("b.test", Some("x"))]);
        old.learn(0, vec![place("10.0.0.1:0")]);
        old.learn(1, vec![place("10.0.0.2:9")]);
        for (named, expected) in [
            (of("a.test", None), &["10.0.0.1:80"][..]),
            (of("b.test", Some("x")), &["10.0.0.2:9"]),
            (of("a.test", Some("x")), &[]),
            (of("b.test", None), &[]),
            (of("c.test", None), &[]),
        ] {
            let mut new = Members::new(vec![], vec![named.clone()]);
            new.adopt(&old);
            let found: Vec<String> = new.peers().0.into_iter().map(|peer| peer.address).collect();
            assert_eq!(found, expected, "{named:?}");
        }
    }
}
