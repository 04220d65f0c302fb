//! Reads `upstream` and the directives inside it: the same in `http` and in `stream`, but for `Parts`.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::hold::dns::TIMEOUT_DEFAULT;
use weir_http::read::authority::{literal_address, resolve, split_host_port};
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Directive, NONE, ONE};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::Address;
use weir_peers::balance::{Better, Policy};
use weir_peers::group::{Group, GroupError};
use weir_peers::peer::Peer;

use crate::members::{fits, named, parameter};
use crate::upstream::{Frame, Measure, Parts, Upstream};
use crate::{Live, Members, Named, members, state};

/// The statements of a group's block so far.
#[derive(Clone, Default)]
pub struct Written {
    /// The servers.
    servers: Vec<Peer>,
    /// The servers with `resolve`.
    named: Vec<Named>,
    /// The method.
    policy: Option<Policy>,
    /// The time that the method compares.
    measure: Option<Measure>,
    /// The key of `hash`.
    hash_key: Option<Template>,
    /// `zone`: its name. Such a group has one turn for all workers, and its peers can change.
    zone: Option<String>,
    /// `state`: the file.
    state: Option<String>,
}

/// The directives. These are the sentences of `server`, `least_conn`, `least_time` and `random` for the reference.
pub const fn directives<P: Parts>(
    of_server: &'static str,
    of_least_conn: &'static str,
    of_least_time: &'static str,
    of_random: &'static str,
) -> [Directive; 7] {
    let of_zone = "Names the group's state: all workers take its servers in one turn, and the API can change them.";
    let of_hash = "Chooses by a key; consistent moves few keys when peers change.";
    [
        Directive::new("upstream", P::AROUND, ONE, "Defines a group of servers.", upstream::<P>).many().block(),
        Directive::new("server", P::INSIDE, Arity::AtLeast(1), of_server, server::<P>).many(),
        Directive::new("zone", P::INSIDE, Arity::Between(1, 2), of_zone, zone::<P>).many(),
        Directive::new("least_conn", P::INSIDE, NONE, of_least_conn, least_conn::<P>).many(),
        Directive::new("least_time", P::INSIDE, Arity::Between(1, 2), of_least_time, least_time::<P>),
        Directive::new("hash", P::INSIDE, Arity::Between(1, 2), of_hash, hash::<P>).many(),
        Directive::new("random", P::INSIDE, Arity::Between(0, 2), of_random, random::<P>).many(),
    ]
}

fn upstream<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if P::declaring(b).find(&name).is_some() {
        return Err(Refusal::whole(format!("duplicate upstream \"{name}\"")));
    }
    let mut scope = b.block(Scope::new(Kind::Plain, P::INSIDE, b.at()), statement)?;
    let written = std::mem::take(P::written(&mut scope));
    if written.servers.is_empty() && written.named.is_empty() && written.state.is_none() {
        if b.has_lost("upstream", &name) {
            return Ok(()); // the servers have errors, but they are there
        }
        b.lose(statement);
        let port = if P::PORT_DEFAULT.is_none() { ":PORT" } else { "" };
        let empty = Refusal::whole("no servers are inside upstream").todo(format!("add: server ADDRESS{port};"));
        b.refuse_at("upstream", empty, statement.end);
        return Ok(());
    }
    let own = P::read(b, &mut scope, &name, written.zone.is_some());
    let built = build(b, scope, written, name, own)?;
    P::declaring(b).groups.push(Arc::new(built));
    Ok(())
}

fn build<P: Parts>(
    b: &Build<'_>,
    mut scope: Scope,
    written: Written,
    name: String,
    own: P,
) -> Result<Upstream<P>, Refusal> {
    let Written { mut servers, named, policy, measure, hash_key, zone, state } = written;
    let refused = |error: GroupError, name: &str| Refusal::whole(format!("{error} \"{name}\""));
    let frame = Frame { name, policy: policy.unwrap_or_default(), measure, hash_key, zone, at: b.at(), own };
    let name = frame.name.clone();
    if frame.zone.is_some() {
        let live = Live::new(frame, Members::new(servers, named), state).map_err(|error| refused(error, &name))?;
        let resolver = P::resolver(&mut scope);
        if let Some(Some(servers)) = &resolver.servers {
            live.set_resolver(servers.clone(), resolver.timeout.unwrap_or(TIMEOUT_DEFAULT));
        }
        return Ok(Upstream::pointing_to(Arc::new(live)));
    }
    let without = |what: &str| {
        let what = format!("{what} requires upstream \"{name}\" to be in shared memory");
        Err(Refusal::whole(what).todo("add: zone NAME 64k;"))
    };
    if state.is_some() {
        return without("\"state\"");
    }
    if !named.is_empty() {
        return without("resolving names at run time");
    }
    servers.iter_mut().zip(0..).for_each(|(peer, id)| peer.id = id);
    let group = Group::new(&name, servers, frame.policy).map_err(|error| refused(error, &name))?;
    // `server` wrote these addresses.
    let addresses = group.peers().filter_map(|peer| literal_address(&peer.address)).collect();
    Ok(Upstream::of(frame, group, addresses, None))
}

/// The addresses of `HOST:PORT` or `unix:PATH`.
fn addresses<P: Parts>(b: &Build<'_>, text: &str) -> Result<Vec<Address>, Refusal> {
    if P::PORT_DEFAULT.is_none() && !text.starts_with("unix:") && split_host_port(text).1.is_none() {
        return Err(Refusal::whole(format!("no port in upstream \"{text}\"")));
    }
    resolve(b, text, P::PORT_DEFAULT.unwrap_or_default())
}

/// The number of the group for an address in a `proxy_pass`; errors need an upstream of the name `missing`.
pub fn implicit<P: Parts>(b: &mut Build<'_>, name: &str, missing: &str) -> Result<usize, Refusal> {
    if let Some(number) = P::declaring(b).find_implicit(name) {
        return Ok(number);
    }
    let addresses = addresses::<P>(b, name).map_err(|refusal| refusal.needs("upstream", missing))?;
    let built = Upstream::implicit(name, &addresses).map_err(|error| Refusal::whole(error.to_string()))?;
    let groups = &mut P::declaring(b).groups;
    groups.push(Arc::new(built));
    Ok(groups.len() - 1)
}

fn state_and_server() -> Refusal {
    Refusal::whole("\"state\" and \"server\" cannot be used together")
        .todo("remove the server directives: the state file contains the servers")
}

fn server<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if P::written(b.scope()).state.is_some() {
        return Err(state_and_server());
    }
    let written = statement.text(0).to_owned();
    let mut pattern = Peer { server: written.clone(), ..Peer::new(written.clone()) };
    let (mut resolves, mut service) = (false, None);
    for word in statement.args.iter().skip(1) {
        match word.text.as_str() {
            "resolve" => resolves = true,
            "service=" => return Err(Refusal::whole("service is empty")),
            text => match text.strip_prefix("service=") {
                Some(name) => service = Some(name.to_owned()),
                None if !P::IS_STICKY && (text == "drain" || text.starts_with("route=")) => return Err(invalid(text)),
                None => parameter(&mut pattern, text)?,
            },
        }
    }
    fits(P::written(b.scope()).policy, &pattern)?;
    if let Some(named) = named(&written, &pattern, resolves, service, P::PORT_DEFAULT)? {
        P::written(b.scope()).named.push(named);
        return Ok(());
    }
    for address in addresses::<P>(b, &written)? {
        P::written(b.scope()).servers.push(Peer { address: address.to_string(), ..pattern.clone() });
    }
    Ok(())
}

/// `state`: reads the servers of the file, as if they were written here (NGINX Plus).
pub fn state<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let path = b.path(statement.text(0));
    let written = P::written(b.scope());
    if !written.servers.is_empty() || !written.named.is_empty() {
        return Err(state_and_server());
    }
    for read in state::read(&path, statement)? {
        server::<P>(b, &read)?;
    }
    b.reach.write_file(&path);
    P::written(b.scope()).state = Some(path);
    Ok(())
}

fn zone<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    P::written(b.scope()).zone = Some(members::zone(statement)?);
    Ok(())
}

/// Sets the method of the block.
pub fn method<P: Parts>(b: &mut Build<'_>, policy: Policy) -> Result<(), Refusal> {
    if P::written(b.scope()).policy.is_some() {
        b.warn("load balancing method redefined", None);
    }
    P::written(b.scope()).policy = Some(policy);
    Ok(())
}

fn least_conn<P: Parts>(b: &mut Build<'_>, _: &Statement) -> Result<(), Refusal> {
    method::<P>(b, Policy::LeastConn)
}

fn least_time<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let inflight = value::has_word(statement, 1, "inflight")?;
    let text = statement.text(0);
    let measure = measure::<P>(text).ok_or_else(|| Refusal::whole(format!("invalid value \"{text}\"")))?;
    P::written(b.scope()).measure = Some(measure);
    method::<P>(b, Policy::LeastTime { until: measure.until(), inflight })
}

fn measure<P: Parts>(word: &str) -> Option<Measure> {
    P::MEASURES.iter().find(|(known, _)| *known == word).map(|(_, measure)| *measure)
}

fn hash<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let consistent = value::has_word(statement, 1, "consistent")?;
    let key = b.template(statement.text(0))?;
    P::written(b.scope()).hash_key = Some(key);
    method::<P>(b, Policy::Hash { consistent })
}

fn random<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = |index: usize| statement.args.get(index).map(|word| word.text.as_str());
    let mut time = None;
    let two = match (word(0), word(1)) {
        (None, _) => None,
        (Some("two"), None | Some("least_conn")) => Some(Better::LeastConn),
        (Some("two"), Some(other)) => {
            let found = match other.strip_prefix("least_time=") {
                Some(word) => measure::<P>(word),
                None => P::MEASURE_DEFAULT.filter(|_| other == "least_time"),
            };
            let found = found.ok_or_else(|| invalid(other))?;
            time = Some(found);
            Some(Better::LeastTime(found.until()))
        }
        (Some(other), _) => return Err(invalid(other)),
    };
    P::written(b.scope()).measure = time;
    method::<P>(b, Policy::Random { two })
}

fn invalid(parameter: &str) -> Refusal {
    Refusal::whole(format!("invalid parameter \"{parameter}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Declared;
    use crate::tests::{Plain, fixed, of_text};
    use weir_http::exchange::conf::Conf;
    use weir_peers::balance::Until;

    fn read(inside: &str) -> (Option<Conf>, Vec<String>) {
        of_text(&format!("upstream u {{ {inside} }}"))
    }

    fn declared(conf: &Option<Conf>) -> &Declared<Plain> {
        Plain::declared(conf.as_ref().unwrap())
    }

    #[test]
    fn every_refusal_has_nginx_words() {
        for (inside, words) in [
            ("", "no servers are inside upstream"),
            ("server 127.0.0.1 weight=0;", "invalid parameter \"weight=0\""),
            ("server 127.0.0.1 drain;", "invalid parameter \"drain\""),
            ("server 127.0.0.1 route=a;", "invalid parameter \"route=a\""),
            ("server a.test service=;", "service is empty"),
            ("server 127.0.0.1:x;", "invalid port in upstream \"127.0.0.1:x\""),
            ("hash $remote_addr; server 127.0.0.1 backup;", "balancing method does not support parameter \"backup\""),
            ("server 127.0.0.1; hash $remote_addr x;", "invalid parameter \"x\""),
            ("server 127.0.0.1; zone z 1k;", "invalid zone size \"1k\""),
            ("server 127.0.0.1; least_time header;", "invalid value \"header\""),
            ("server 127.0.0.1; least_time connect x;", "invalid parameter \"x\""),
            ("server 127.0.0.1; random one;", "invalid parameter \"one\""),
            ("server 127.0.0.1; random two least_time;", "invalid parameter \"least_time\""),
            ("server 127.0.0.1; random two least_time=x;", "invalid parameter \"least_time=x\""),
            ("server 127.0.0.1; hash $remote_addr; least_conn;", "load balancing method redefined"),
            ("server a.test resolve;", "resolving names at run time requires upstream \"u\" to be in shared memory"),
            ("state /nowhere;", "\"state\" requires upstream \"u\" to be in shared memory"),
            ("zone z; state /nowhere; server 127.0.0.1;", "\"state\" and \"server\" cannot be used together"),
            ("server 127.0.0.1; state /nowhere;", "\"state\" and \"server\" cannot be used together"),
            ("server a.test resolve; zone z;", "no resolver defined to resolve names at run time in upstream \"u\""),
        ] {
            assert_eq!(read(inside).1, [words], "{inside}");
        }
        let twice = "upstream u { server 127.0.0.1; } upstream U { server 127.0.0.1; }";
        assert_eq!(of_text(twice).1, ["duplicate upstream \"U\""]);
    }

    #[test]
    fn each_method_is_a_policy_and_the_last_one_wins() {
        let two = |better| Policy::Random { two: Some(better) };
        let time = |until, inflight| Policy::LeastTime { until, inflight };
        for (method, policy, measure) in [
            ("", Policy::RoundRobin, None),
            ("least_conn;", Policy::LeastConn, None),
            ("hash $remote_addr;", Policy::Hash { consistent: false }, None),
            ("hash $remote_addr consistent;", Policy::Hash { consistent: true }, None),
            ("random;", Policy::Random { two: None }, None),
            ("random two;", two(Better::LeastConn), None),
            ("random two least_conn;", two(Better::LeastConn), None),
            ("random two least_time=connect;", two(Better::LeastTime(Until::Header)), Some(Measure::Connect)),
            ("least_time connect inflight;", time(Until::Header, true), Some(Measure::Connect)),
            ("least_time all; random;", Policy::Random { two: None }, None),
            ("hash $remote_addr; least_time all;", time(Until::LastByte, false), Some(Measure::LastByte)),
        ] {
            let (conf, _) = read(&format!("{method} server 127.0.0.1;"));
            let upstream = &declared(&conf).groups[0];
            assert_eq!((upstream.group.policy(), upstream.measure), (policy, measure), "{method}");
            assert_eq!(upstream.hash_key.is_some(), method.starts_with("hash"), "{method}");
        }
    }

    #[test]
    fn only_a_group_with_a_zone_changes() {
        for (inside, name, shown) in [
            ("server 127.0.0.1; server [::1]:1 backup;", None, "127.0.0.1:80 [::1]:1"),
            ("zone z; server 127.0.0.1; server a.test resolve; resolver [::1];", Some("z"), "127.0.0.1:80"),
            ("zone z; state /nowhere;", Some("z"), ""),
        ] {
            let (conf, told) = read(inside);
            assert_eq!(told, [""; 0], "{inside}");
            let upstream = &declared(&conf).groups[0];
            assert_eq!((upstream.zone.as_deref(), upstream.live.is_some()), (name, name.is_some()), "{inside}");
            let now = upstream.now();
            let peers: Vec<&str> = now.group.peers().map(|peer| peer.address.as_str()).collect();
            assert_eq!((peers.join(" "), now.addresses.len()), (shown.to_owned(), peers.len()), "{inside}");
        }
        let told = of_text("upstream u { zone z; server a.test resolve; } resolver [::1];").1;
        assert_eq!(told, [""; 0], "the resolver of the block around it serves, wherever it stands");
    }

    #[test]
    fn a_block_and_an_address_are_found_by_their_own_names() {
        let (conf, _) = read("server 127.0.0.1;");
        let block = declared(&conf);
        assert_eq!((block.find("U"), block.find_implicit("u")), (Some(0), None), "case is no difference");
        let address = Declared { groups: vec![fixed(&["127.0.0.1:1"])] };
        assert_eq!((address.find("u"), address.find_implicit("u")), (None, Some(0)));
        assert_eq!(address.find_implicit("U"), None);
    }
}
