//! `upstream` of `stream`: groups of peers, and the choice of a peer for a session. `weir_peers` makes the decisions.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_upstream_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::authority::{literal_address, resolve_in, split_host_port};
use weir_http::build::{Build, Kind, Scope};
use weir_http::directive::{Arity, Directive, NONE, ONE, STREAM, STREAM_UPSTREAM};
use weir_http::families::Family;
use weir_http::refusal::Refusal;
use weir_http::value;
use weir_http::variable::Template;
use weir_net::Address;
use weir_peers::balance::{Better, Policy};
use weir_peers::group::Group;
use weir_peers::peer::Peer;

use crate::counts::PeerCounts;

weir_http::settings! {
    /// The servers of this block so far.
    servers: Vec<Peer> = Vec::new(),
    /// The method of this block.
    policy: Policy = Policy::RoundRobin,
    /// The key of `hash`.
    hash_key: Option<Template> = None,
    /// `zone`: its name. All workers share weir's groups with or without it.
    zone: Option<String> = None,
}

/// All groups: those of `upstream` blocks, and those for addresses in a `proxy_pass`.
#[derive(Default)]
pub struct Declared {
    /// By number; a server keeps the number.
    pub groups: Vec<Arc<Upstream>>,
}

/// A group of peers.
pub struct Upstream {
    /// The name of the block, or the `host:port` of a `proxy_pass`.
    pub name: String,
    /// The peers.
    pub group: Group,
    /// The peers' addresses, by the group's index.
    pub addresses: Vec<Address>,
    /// The peers' counts, by the group's index.
    pub counts: Vec<Arc<PeerCounts>>,
    /// The key of `hash`.
    pub hash_key: Option<Template>,
    /// The name of its `zone`.
    pub zone: Option<String>,
    /// A `proxy_pass` created it, not a block.
    pub is_implicit: bool,
}

impl Upstream {
    /// A group for addresses that a session found by itself.
    pub fn implicit(name: &str, addresses: &[Address]) -> Result<Upstream, String> {
        let peer = |address: &Address| Peer { server: name.to_owned(), ..Peer::new(address.to_string()) };
        let group = Group::new(name, addresses.iter().map(peer).collect(), Policy::RoundRobin);
        Ok(Upstream {
            name: name.to_owned(),
            group: group.map_err(|error| error.to_string())?,
            counts: addresses.iter().map(|_| Arc::default()).collect(),
            addresses: addresses.to_vec(),
            hash_key: None,
            zone: None,
            is_implicit: true,
        })
    }
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
            "Defines an address of the group: weight= max_conns= max_fails= fail_timeout= backup down.",
            server,
        )
        .many(),
        Directive::new(
            "zone",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Names the group for the API. All workers share the group's state with or without it.",
            zone,
        ),
        Directive::new("least_conn", STREAM_UPSTREAM, NONE, "Prefers the peer with the fewest sessions.", |b, _| {
            method(b, Policy::LeastConn)
        }),
        Directive::new(
            "hash",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Chooses by a key; consistent moves few keys when peers change.",
            hash,
        ),
        Directive::new(
            "random",
            STREAM_UPSTREAM,
            Arity::Between(0, 2),
            "Chooses at random; two chooses the better of two random peers.",
            random,
        ),
    ],
)
.adopt(|new, old| {
    let before = &crate::declared(old).upstream.groups;
    for upstream in &mut crate::declared_mut(new).upstream.groups {
        let same = |old: &&Arc<Upstream>| old.name == upstream.name && old.is_implicit == upstream.is_implicit;
        if let (Some(old), Some(upstream)) = (before.iter().find(same).cloned(), Arc::get_mut(upstream)) {
            upstream.group.adopt(&old.group, weir_net::clock::unix_ms());
            for (address, counts) in upstream.addresses.iter().zip(&mut upstream.counts) {
                let known = old.addresses.iter().position(|known| known == address);
                if let Some(before) = known.and_then(|number| old.counts.get(number)) {
                    *counts = before.clone();
                }
            }
        }
    }
    Ok(())
});

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
    let settings = std::mem::take(&mut crate::written_mut(&mut scope).upstream);
    if settings.servers.as_ref().is_none_or(Vec::is_empty) {
        if b.has_lost("upstream", &name) {
            return Ok(()); // the servers have errors, but they are there
        }
        return Err(Refusal::whole("no servers are inside upstream").todo("add: server ADDRESS:PORT;"));
    }
    let Values { mut servers, policy, hash_key, zone } = settings.values();
    let has_backup = servers.iter().any(|peer| peer.backup);
    if has_backup && matches!(policy, Policy::Hash { .. } | Policy::Random { .. }) {
        return Err(Refusal::whole("balancing method does not support parameter \"backup\""));
    }
    servers.iter_mut().zip(0..).for_each(|(peer, id)| peer.id = id);
    let group = Group::new(&name, servers, policy).map_err(|error| Refusal::whole(error.to_string()))?;
    // `server` wrote these addresses.
    let addresses: Vec<Address> = group.peers().filter_map(|peer| literal_address(&peer.address)).collect();
    let counts = addresses.iter().map(|_| Arc::default()).collect();
    let built = Upstream { name, group, addresses, counts, hash_key, zone, is_implicit: false };
    crate::declaring(b).upstream.groups.push(Arc::new(built));
    Ok(())
}

fn server(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let written = statement.text(0).to_owned();
    let mut pattern = Peer { server: written.clone(), ..Peer::new(written.clone()) };
    for word in statement.args.iter().skip(1) {
        parameter(&mut pattern, &word.text)?;
    }
    for address in addresses(b, &written)? {
        let peer = Peer { address: address.to_string(), ..pattern.clone() };
        crate::settings(b).upstream.servers.get_or_insert_default().push(peer);
    }
    Ok(())
}

fn parameter(peer: &mut Peer, word: &str) -> Result<(), Refusal> {
    let invalid = || Refusal::whole(format!("invalid parameter \"{word}\""));
    let number = |text: &str| value::number(text).and_then(|n| u32::try_from(n).ok()).ok_or_else(invalid);
    match word.split_once('=') {
        Some(("weight", text)) => {
            peer.weight = number(text).and_then(|n| if n == 0 { Err(invalid()) } else { Ok(n) })?
        }
        Some(("max_conns", text)) => peer.max_conns = number(text)?,
        Some(("max_fails", text)) => peer.max_fails = number(text)?,
        Some(("fail_timeout", text)) => peer.fail_timeout_s = value::time_of(text).ok_or_else(invalid)?.as_secs(),
        Some(("slow_start" | "service", _)) => {
            return Err(Refusal::whole(format!("weir does not have the parameter \"{word}\" in stream yet")));
        }
        None if word == "resolve" => {
            return Err(Refusal::whole("weir does not have the parameter \"resolve\" in stream yet")
                .todo("write proxy_pass with a variable: weir then resolves the name for each session"));
        }
        None if word == "backup" => peer.backup = true,
        None if word == "down" => peer.down = true,
        _ => return Err(invalid()),
    }
    Ok(())
}

fn zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if statement.args.len() == 2 && value::size_of(statement.text(1)).is_none_or(|size| size < 8 * 4096) {
        return Err(Refusal::whole(format!("invalid zone size \"{}\"", statement.text(1))));
    }
    crate::settings(b).upstream.zone = Some(Some(statement.text(0).to_owned()));
    Ok(())
}

fn method(b: &mut Build<'_>, policy: Policy) -> Result<(), Refusal> {
    if crate::settings(b).upstream.policy.is_some() {
        b.warn(METHOD_NOTE, None);
    }
    crate::settings(b).upstream.policy = Some(policy);
    Ok(())
}

fn hash(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let consistent = match statement.args.get(1).map(|word| word.text.as_str()) {
        None => false,
        Some("consistent") => true,
        Some(other) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    };
    let key = b.template(statement.text(0))?;
    crate::settings(b).upstream.hash_key = Some(Some(key));
    method(b, Policy::Hash { consistent })
}

fn random(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = |index: usize| statement.args.get(index).map(|word| word.text.as_str());
    let two = match (word(0), word(1)) {
        (None, _) => None,
        (Some("two"), None | Some("least_conn")) => Some(Better::LeastConn),
        (Some("two"), Some(other)) | (Some(other), _) => {
            return Err(Refusal::whole(format!("invalid parameter \"{other}\"")));
        }
    };
    method(b, Policy::Random { two })
}

#[cfg(test)]
mod tests {
    use crate::of_text;

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (upstream, words) in [
            ("", "no servers are inside upstream"),
            ("server 127.0.0.1;", "no port in upstream \"127.0.0.1\""),
            ("server 127.0.0.1:1 weight=0;", "invalid parameter \"weight=0\""),
            ("server 127.0.0.1:1 backup; hash $remote_addr;", "balancing method does not support parameter \"backup\""),
            ("server 127.0.0.1:1; hash $remote_addr x;", "invalid parameter \"x\""),
            ("server 127.0.0.1:1; zone z 1k;", "invalid zone size \"1k\""),
            ("server 127.0.0.1:1 resolve;", "weir does not have the parameter \"resolve\" in stream yet"),
        ] {
            let text = format!("events {{}}\nstream {{ upstream u {{ {upstream} }} }}");
            assert_eq!(of_text(&text).1, [words], "{upstream}");
        }
    }
}
