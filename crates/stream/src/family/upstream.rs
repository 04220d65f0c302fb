//! `upstream` of `stream`: groups of peers, and the choice of a peer for a session. `weir_peers` makes the decisions.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_upstream_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_groups::{Members, Named, fits, named, parameter};
use weir_http::hold::dns::TIMEOUT_DEFAULT;
use weir_http::read::authority::{literal_address, resolve_in, split_host_port};
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Directive, NONE, ONE, STREAM, STREAM_UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::Address;
use weir_peers::balance::{Better, Policy};
use weir_peers::group::Group;
use weir_peers::peer::Peer;

use super::group::{Frame, Live, Measure, Upstream};
use super::live;

weir_http::settings! {
    /// The servers of this block so far.
    servers: Vec<Peer> = Vec::new(),
    /// The servers with `resolve`.
    named: Vec<Named> = Vec::new(),
    /// The method of this block.
    policy: Policy = Policy::RoundRobin,
    /// The time that the method compares.
    measure: Option<Measure> = None,
    /// The key of `hash`.
    hash_key: Option<Template> = None,
    /// `zone`: its name. Such a group has one turn for all workers, and its peers can change.
    zone: Option<String> = None,
}

/// All groups: those of `upstream` blocks, and those for addresses in a `proxy_pass`.
#[derive(Default)]
pub struct Declared {
    /// By number; a server keeps the number.
    pub groups: Vec<Arc<Upstream>>,
}

const METHOD_NOTE: &str = "load balancing method redefined";

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_upstream",
    &[
        Directive::new("upstream", STREAM, ONE, "Defines a group of servers.", upstream).many().block(),
        Directive::new(
            "server",
            STREAM_UPSTREAM,
            Arity::AtLeast(1),
            "Defines an address of the group: weight= max_conns= max_fails= fail_timeout= slow_start= backup down resolve \
             service=.",
            server,
        )
        .many(),
        Directive::new(
            "zone",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Names the group's state: all workers take its servers in one turn, and the API can change them.",
            zone,
        )
        .many(),
        Directive::new("least_conn", STREAM_UPSTREAM, NONE, "Prefers the peer with the fewest sessions.", |b, _| {
            method(b, Policy::LeastConn)
        })
        .many(),
        Directive::new(
            "hash",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Chooses by a key; consistent moves few keys when peers change.",
            hash,
        )
        .many(),
        Directive::new(
            "random",
            STREAM_UPSTREAM,
            Arity::Between(0, 2),
            "Chooses at random; two chooses the better of two random peers, by least_conn or least_time=.",
            random,
        )
        .many(),
        Directive::new(
            "least_time",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Prefers the peer with the shortest time until connect, first_byte or last_byte, and the fewest sessions; \
             inflight also counts sessions whose time is not over.",
            least_time,
        ),
    ],
)
.adopt(|new, old| {
    live::adopt(&mut crate::declared_mut(new).upstream.groups, &crate::declared(old).upstream.groups);
    Ok(())
})
.finish(|b, scope| {
    if scope.context == STREAM {
        live::give_resolver(b, &crate::written(scope).resolver);
    }
})
.watch(live::watch);

impl Declared {
    /// The number of the group of an `upstream` block.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|upstream| !upstream.is_implicit && upstream.name.eq_ignore_ascii_case(name))
    }
}

/// The number of the group that a `proxy_pass` without variables names: a block, or an address.
pub fn of_pass(b: &mut Build<'_>, text: &str) -> Result<usize, Refusal> {
    let declared = &crate::declared_so_far(b).upstream;
    if let Some(number) = declared.find(text) {
        return Ok(number);
    }
    if let Some(number) = declared.groups.iter().position(|known| known.is_implicit && known.name == text) {
        return Ok(number);
    }
    let addresses = addresses(b, text).map_err(|refusal| refusal.needs("upstream", text))?;
    let built = Upstream::implicit(text, &addresses).map_err(Refusal::whole)?;
    let groups = &mut crate::declaring(b).upstream.groups;
    groups.push(Arc::new(built));
    Ok(groups.len() - 1)
}

/// The addresses of `HOST:PORT` or `unix:PATH`.
fn addresses(b: &Build<'_>, text: &str) -> Result<Vec<Address>, Refusal> {
    if !text.starts_with("unix:") && split_host_port(text).1.is_none() {
        return Err(Refusal::whole(format!("no port in upstream \"{text}\"")));
    }
    resolve_in(b, text, 0, "upstream")
}

fn upstream(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if crate::declaring(b).upstream.find(&name).is_some() {
        return Err(Refusal::whole(format!("duplicate upstream \"{name}\"")));
    }
    let mut scope = b.block(Scope::new(Kind::Plain, STREAM_UPSTREAM, b.at()), statement)?;
    let written = std::mem::take(crate::written_mut(&mut scope));
    let settings = written.upstream;
    let is_empty = settings.servers.as_ref().is_none_or(Vec::is_empty);
    if is_empty && settings.named.as_ref().is_none_or(Vec::is_empty) {
        if b.has_lost("upstream", &name) {
            return Ok(()); // the servers have errors, but they are there
        }
        b.lose(statement);
        let empty = Refusal::whole("no servers are inside upstream").todo("add: server ADDRESS:PORT;");
        b.refuse_at("upstream", empty, statement.end);
        return Ok(());
    }
    let Values { servers, named, policy, measure, hash_key, zone } = settings.values();
    let frame = Frame { name: name.clone(), policy, measure, hash_key, zone, at: b.at() };
    let built = if frame.zone.is_some() {
        let made = Live::new(frame, Members::new(servers, named), None);
        let live = made.map_err(|error| Refusal::whole(format!("{error} \"{name}\"")))?;
        if let Some(Some(servers)) = written.resolver.servers {
            live.set_resolver(servers, written.resolver.timeout.unwrap_or(TIMEOUT_DEFAULT));
        }
        live::declared(live)
    } else if named.is_empty() {
        fixed(frame, servers)?
    } else {
        let what = format!("resolving names at run time requires upstream \"{}\" to be in shared memory", frame.name);
        return Err(Refusal::whole(what).todo("add: zone NAME 64k;"));
    };
    crate::declaring(b).upstream.groups.push(Arc::new(built));
    Ok(())
}

/// A group of addresses.
fn fixed(frame: Frame, mut servers: Vec<Peer>) -> Result<Upstream, Refusal> {
    servers.iter_mut().zip(0..).for_each(|(peer, id)| peer.id = id);
    let group = Group::new(&frame.name, servers, frame.policy)
        .map_err(|error| Refusal::whole(format!("{error} \"{}\"", frame.name)))?;
    // `server` wrote these addresses.
    let addresses = group.peers().filter_map(|peer| literal_address(&peer.address)).collect();
    Ok(Upstream::of(frame, group, addresses))
}

fn server(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let written = statement.text(0).to_owned();
    let mut pattern = Peer { server: written.clone(), ..Peer::new(written.clone()) };
    let (mut resolves, mut service) = (false, None);
    for word in statement.args.iter().skip(1) {
        match word.text.as_str() {
            "resolve" => resolves = true,
            "service=" => return Err(Refusal::whole("service is empty")),
            text => match text.strip_prefix("service=") {
                Some(name) => service = Some(name.to_owned()),
                None if text == "drain" || text.starts_with("route=") => {
                    return Err(Refusal::whole(format!("invalid parameter \"{text}\"")));
                }
                None => parameter(&mut pattern, text)?,
            },
        }
    }
    fits(crate::settings(b).upstream.policy, &pattern)?;
    if let Some(named) = named(&written, &pattern, resolves, service, None)? {
        crate::settings(b).upstream.named.get_or_insert_default().push(named);
        return Ok(());
    }
    for address in addresses(b, &written)? {
        let peer = Peer { address: address.to_string(), ..pattern.clone() };
        crate::settings(b).upstream.servers.get_or_insert_default().push(peer);
    }
    Ok(())
}

fn zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    crate::settings(b).upstream.zone = Some(Some(weir_groups::zone(statement)?));
    Ok(())
}

fn method(b: &mut Build<'_>, policy: Policy) -> Result<(), Refusal> {
    if crate::settings(b).upstream.policy.is_some() {
        b.warn(METHOD_NOTE, None);
    }
    crate::settings(b).upstream.policy = Some(policy);
    Ok(())
}

fn least_time(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let inflight = value::has_word(statement, 1, "inflight")?;
    let text = statement.text(0);
    let measure = Measure::of(text).ok_or_else(|| Refusal::whole(format!("invalid value \"{text}\"")))?;
    crate::settings(b).upstream.measure = Some(Some(measure));
    method(b, Policy::LeastTime { until: measure.until(), inflight })
}

fn hash(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let consistent = value::has_word(statement, 1, "consistent")?;
    let key = b.template(statement.text(0))?;
    crate::settings(b).upstream.hash_key = Some(Some(key));
    method(b, Policy::Hash { consistent })
}

fn random(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = |index: usize| statement.args.get(index).map(|word| word.text.as_str());
    let invalid = |word: &str| Refusal::whole(format!("invalid parameter \"{word}\""));
    let mut measure = None;
    let two = match (word(0), word(1)) {
        (None, _) => None,
        (Some("two"), None | Some("least_conn")) => Some(Better::LeastConn),
        (Some("two"), Some(other)) => {
            let found = other.strip_prefix("least_time=").and_then(Measure::of).ok_or_else(|| invalid(other))?;
            measure = Some(found);
            Some(Better::LeastTime(found.until()))
        }
        (Some(other), _) => return Err(invalid(other)),
    };
    crate::settings(b).upstream.measure = Some(measure);
    method(b, Policy::Random { two })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of_text;
    use weir_http::exchange::conf::Conf;
    use weir_peers::balance::Until;

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (upstream, words) in [
            ("", "no servers are inside upstream"),
            ("server 127.0.0.1;", "no port in upstream \"127.0.0.1\""),
            ("server 127.0.0.1:1 weight=0;", "invalid parameter \"weight=0\""),
            ("hash $remote_addr; server 127.0.0.1:1 backup;", "balancing method does not support parameter \"backup\""),
            ("server 127.0.0.1:1; hash $remote_addr x;", "invalid parameter \"x\""),
            ("server 127.0.0.1:1; zone z 1k;", "invalid zone size \"1k\""),
            ("server 127.0.0.1:1 drain;", "invalid parameter \"drain\""),
            ("server 127.0.0.1 resolve;", "no port in upstream \"127.0.0.1\""),
            ("server a.example resolve; zone z 1m;", "no port in upstream \"a.example\""),
            (
                "server a.example:1 resolve;",
                "resolving names at run time requires upstream \"u\" to be in shared memory",
            ),
            (
                "server a.example:1 resolve; zone z 1m;",
                "no resolver defined to resolve names at run time in upstream \"u\"",
            ),
            ("server a.example service=x; zone z 1m;", "service upstream \"a.example\" requires \"resolve\" parameter"),
            ("server a.example:1 service=x resolve; zone z 1m;", "service upstream \"a.example:1\" may not have port"),
            ("server 127.0.0.1:1; least_time header;", "invalid value \"header\""),
            ("server 127.0.0.1:1; least_time connect x;", "invalid parameter \"x\""),
            ("server 127.0.0.1:1; random two least_time;", "invalid parameter \"least_time\""),
            ("random; server 127.0.0.1:1 slow_start=5s;", "balancing method does not support parameter \"slow_start\""),
        ] {
            let text = format!("events {{}}\nstream {{ upstream u {{ {upstream} }} }}");
            assert_eq!(of_text(&text).1, [words], "{upstream}");
        }
    }

    fn groups(upstreams: &str) -> (Option<Conf>, Vec<String>) {
        of_text(&format!("events {{}}\nstream {{ {upstreams} }}"))
    }

    #[test]
    fn each_method_is_a_policy_and_the_last_one_wins_with_a_warning() {
        use Policy::{Hash, IpHash, LeastConn, LeastTime, Random, RoundRobin};
        let two = |better| Random { two: Some(better) };
        for (method, policy, measure) in [
            ("", RoundRobin, None),
            ("least_conn;", LeastConn, None),
            ("hash $remote_addr;", Hash { consistent: false }, None),
            ("hash $remote_addr consistent;", Hash { consistent: true }, None),
            ("random;", Random { two: None }, None),
            ("random two;", two(Better::LeastConn), None),
            ("random two least_conn;", two(Better::LeastConn), None),
            ("random two least_time=connect;", two(Better::LeastTime(Until::Header)), Some(Measure::Connect)),
            ("random two least_time=last_byte;", two(Better::LeastTime(Until::LastByte)), Some(Measure::LastByte)),
            ("least_time connect;", LeastTime { until: Until::Header, inflight: false }, Some(Measure::Connect)),
            ("least_time first_byte;", LeastTime { until: Until::Header, inflight: false }, Some(Measure::FirstByte)),
            (
                "least_time last_byte inflight;",
                LeastTime { until: Until::LastByte, inflight: true },
                Some(Measure::LastByte),
            ),
        ] {
            let (conf, told) = groups(&format!("upstream u {{ {method} server 127.0.0.1:1; }}"));
            assert_eq!(told, [""; 0], "{method}");
            let conf = conf.unwrap();
            let group = &crate::declared(&conf).upstream.groups[0];
            assert_eq!((group.group.policy(), group.measure), (policy, measure), "{method}");
            assert_ne!(policy, IpHash, "stream has no ip_hash");
        }
        let told = groups("upstream u { hash $remote_addr; least_conn; server 127.0.0.1:1; }").1;
        assert_eq!(told, ["load balancing method redefined"]);
    }

    #[test]
    fn an_address_in_a_proxy_pass_is_one_group_and_a_block_goes_before_it() {
        let block = "upstream A.test { server 127.0.0.1:1; }";
        let servers: String = ["a.test", "127.0.0.1:2", "127.0.0.1:2", "twice.test:3"]
            .iter()
            .zip(10..)
            .map(|(to, port)| format!("server {{ listen {port}; proxy_pass {to}; }}"))
            .collect();
        // The block may stand after its use.
        let (conf, told) = groups(&format!("{servers} {block}"));
        assert_eq!(told, [""; 0]);
        let conf = conf.unwrap();
        let declared = &crate::declared(&conf).upstream;
        let shown: Vec<_> = declared.groups.iter().map(|group| (&*group.name, group.addresses.len())).collect();
        assert_eq!(shown, [("A.test", 1), ("127.0.0.1:2", 1), ("twice.test:3", 1)]);
        assert_eq!((declared.find("a.TEST"), declared.find("127.0.0.1:2")), (Some(0), None));
        let told = groups("upstream u { server 127.0.0.1:1; } upstream U { server 127.0.0.1:2; }").1;
        assert_eq!(told, ["duplicate upstream \"U\""]);
    }
}
