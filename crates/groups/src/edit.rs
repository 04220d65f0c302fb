//! The API's view and changes of a group's servers, in NGINX Plus' JSON
//! (<https://nginx.org/en/docs/http/ngx_http_api_module.html#def_nginx_http_upstream_conf_server>).

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_http::read::authority::literal_address;
use weir_http::text::value;
use weir_peers::group::MAX_PEERS;
use weir_peers::peer::Peer;

use crate::members::{Member, MemberKind, Members, ROUTE_BYTES_MAX, ignored, named};
use crate::state::written_time;
use crate::{Live, Parts, Upstream, assemble, lock, state};

/// Why the API refuses to read or change a server: the status, NGINX Plus' code, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status of the answer.
    pub status: u16,
    /// NGINX Plus' name of the error.
    pub code: &'static str,
    /// The error as a sentence.
    pub text: String,
}

impl Refused {
    fn new(status: u16, code: &'static str, text: impl Into<String>) -> Refused {
        Refused { status, code, text: text.into() }
    }

    fn format(text: impl Into<String>) -> Refused {
        Refused::new(400, "UpstreamConfFormatError", text)
    }

    fn unknown() -> Refused {
        Refused::new(404, "UpstreamServerNotFound", "server not found")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A request's values for a server; a missing value stays, or is the default of a new server.
#[derive(Debug, Default)]
struct Change {
    server: Option<String>,
    service: Option<String>,
    weight: Option<u32>,
    max_conns: Option<u32>,
    max_fails: Option<u32>,
    fail_timeout_s: Option<u64>,
    slow_start_ms: Option<u64>,
    backup: Option<bool>,
    down: Option<bool>,
    drain: Option<bool>,
    route: Option<String>,
}

impl Change {
    fn read(body: &Value) -> Result<Change, Refused> {
        let Value::Object(fields) = body else {
            return Err(Refused::new(415, "JsonError", "json error: not an object"));
        };
        let mut change = Change::default();
        for (name, given) in fields {
            match name.as_str() {
                "server" => change.server = Some(text(name, given)?),
                "service" => change.service = Some(text(name, given)?),
                "weight" => match number(name, given)? {
                    0 => return Err(Refused::new(400, "UpstreamBadWeight", "invalid weight \"0\"")),
                    weight => change.weight = Some(weight),
                },
                "max_conns" => change.max_conns = Some(number(name, given)?),
                "max_fails" => change.max_fails = Some(number(name, given)?),
                "fail_timeout" => change.fail_timeout_s = Some(time(name, given)?.as_secs()),
                "slow_start" => change.slow_start_ms = Some(time(name, given)?.as_millis() as u64),
                "route" => match text(name, given)? {
                    long if long.len() > ROUTE_BYTES_MAX => {
                        return Err(Refused::format(format!("route is longer than {ROUTE_BYTES_MAX}")));
                    }
                    route => change.route = Some(route),
                },
                "backup" => change.backup = Some(flag(name, given)?),
                "down" => change.down = Some(flag(name, given)?),
                "drain" => change.drain = Some(flag(name, given)?),
                // A client may send back fields of an earlier answer.
                "id" | "parent" | "host" => {}
                _ => return Err(Refused::format(format!("unknown parameter \"{name}\""))),
            }
        }
        Ok(change)
    }

    fn apply(&self, peer: &mut Peer) {
        peer.weight = self.weight.unwrap_or(peer.weight);
        peer.max_conns = self.max_conns.unwrap_or(peer.max_conns);
        peer.max_fails = self.max_fails.unwrap_or(peer.max_fails);
        peer.fail_timeout_s = self.fail_timeout_s.unwrap_or(peer.fail_timeout_s);
        peer.slow_start_ms = self.slow_start_ms.unwrap_or(peer.slow_start_ms);
        peer.backup = self.backup.unwrap_or(peer.backup);
        peer.down = self.down.unwrap_or(peer.down);
        peer.drain = self.drain.unwrap_or(peer.drain);
        peer.route = self.route.clone().unwrap_or_else(|| std::mem::take(&mut peer.route));
    }

    /// The kind of a new server.
    fn kind(&self, can_resolve: bool, port_default: Option<u16>) -> Result<MemberKind, Refused> {
        let Some(written) = &self.server else { return Err(Refused::format("missing \"server\" argument")) };
        let bad = |text: String| Refused::new(400, "UpstreamBadAddress", text);
        let mut peer = Peer::new(written.clone());
        self.apply(&mut peer);
        let found =
            named(written, &peer, true, self.service.clone(), port_default).map_err(|refusal| bad(refusal.what))?;
        match (found, literal_address(written)) {
            (Some(named), _) if can_resolve => Ok(MemberKind::Named(named, Vec::new())),
            (Some(_), _) => Err(Refused::new(
                400,
                "UpstreamConfNoResolver",
                format!("no resolver defined to resolve \"{written}\""),
            )),
            (None, Some(address)) => Ok(MemberKind::Fixed(Peer { address: address.to_string(), ..peer })),
            (None, None) => Err(bad(format!("invalid address \"{written}\""))),
        }
    }
}

fn invalid(name: &str) -> Refused {
    Refused::format(format!("invalid \"{name}\" value"))
}

fn text(name: &str, given: &Value) -> Result<String, Refused> {
    given.as_str().map(str::to_owned).ok_or_else(|| invalid(name))
}

fn flag(name: &str, given: &Value) -> Result<bool, Refused> {
    given.as_bool().ok_or_else(|| invalid(name))
}

fn number(name: &str, given: &Value) -> Result<u32, Refused> {
    given.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(|| invalid(name))
}

/// `10s`, or a number of seconds.
fn time(name: &str, given: &Value) -> Result<Duration, Refused> {
    let written = given.as_str().and_then(value::long_time_of);
    written.or(given.as_u64().map(Duration::from_secs)).ok_or_else(|| invalid(name))
}

fn shown(peer: &Peer, id: u32) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("id", json!(id));
    put("server", json!(peer.server));
    put("weight", json!(peer.weight));
    put("max_conns", json!(peer.max_conns));
    put("max_fails", json!(peer.max_fails));
    put("fail_timeout", json!(format!("{}s", peer.fail_timeout_s)));
    put("slow_start", json!(written_time(peer.slow_start_ms)));
    put("route", json!(peer.route));
    put("backup", json!(peer.backup));
    put("down", json!(peer.down));
    if peer.drain {
        put("drain", json!(true));
    }
    fields
}

/// A server, and for a name also its current peers.
fn entries(member: &Member) -> Vec<Value> {
    let mut own = shown(member.pattern(), member.id);
    let MemberKind::Named(named, _) = &member.kind else { return vec![Value::Object(own)] };
    own.extend(named.service.iter().map(|service| ("service".to_owned(), json!(service))));
    let mut all = vec![Value::Object(own)];
    for peer in member.peers() {
        let mut child = shown(&peer, peer.id);
        child.insert("server".to_owned(), json!(peer.address));
        child.insert("parent".to_owned(), json!(member.id.to_string()));
        child.insert("host".to_owned(), json!(named.host));
        all.push(Value::Object(child));
    }
    all
}

fn position(members: &Members, id: u32) -> Result<usize, Refused> {
    let is_child = |member: &Member| match &member.kind {
        MemberKind::Named(_, places) => places.iter().any(|(other, _)| *other == id),
        MemberKind::Fixed(_) => false,
    };
    match members.list.iter().position(|member| member.id == id) {
        Some(at) => Ok(at),
        None if members.list.iter().any(is_child) => Err(Refused::new(
            400,
            "UpstreamServerImmutable",
            "server is immutable: its address comes from resolving a name",
        )),
        None => Err(Refused::unknown()),
    }
}

impl<P: Parts> Upstream<P> {
    /// All servers, as `GET …/servers/` shows them; those of a group without a `zone` by their addresses.
    pub fn servers(&self) -> Vec<Value> {
        if let Some(live) = &self.live {
            return live.servers();
        }
        let of_address = |peer: &Peer| {
            let mut fields = shown(peer, peer.id);
            fields.insert("server".to_owned(), json!(peer.address));
            fields.insert("drain".to_owned(), json!(peer.drain));
            Value::Object(fields)
        };
        self.group.peers().map(of_address).collect()
    }
}

impl<P: Parts> Live<P> {
    /// All servers, as `GET …/servers/` shows them.
    pub fn servers(&self) -> Vec<Value> {
        lock(&self.known).members.list.iter().flat_map(entries).collect()
    }

    /// One server, as `GET …/servers/ID` shows it.
    pub fn server(&self, id: u32) -> Result<Value, Refused> {
        let known = lock(&self.known);
        let found = known.members.list.iter().flat_map(entries).find(|entry| entry["id"] == id);
        found.ok_or_else(Refused::unknown)
    }

    /// `POST …/servers/`: adds a server and returns it.
    pub fn add_server(&self, body: &Value) -> Result<Value, Refused> {
        let change = Change::read(body)?;
        let kind = change.kind(self.has_resolver(), P::PORT_DEFAULT)?;
        let id = self.edit(|members| Ok(members.add(kind)))?;
        self.server(id)
    }

    /// `PATCH …/servers/ID`: changes a server and returns it.
    pub fn change_server(&self, id: u32, body: &Value) -> Result<Value, Refused> {
        let change = Change::read(body)?;
        self.edit(|members| {
            let at = position(members, id)?;
            let Some(member) = members.list.get_mut(at) else { return Err(Refused::unknown()) };
            if change.server.is_some() || change.service.is_some() {
                let MemberKind::Fixed(peer) = &mut member.kind else {
                    return Err(Refused::new(400, "UpstreamServerImmutable", "server address is immutable"));
                };
                let MemberKind::Fixed(moved) = change.kind(false, P::PORT_DEFAULT)? else {
                    return Err(invalid("server"));
                };
                (peer.server, peer.address) = (moved.server, moved.address);
            }
            change.apply(member.pattern_mut());
            Ok(())
        })?;
        self.server(id)
    }

    /// `DELETE …/servers/ID`: returns the remaining servers. Exchanges with the removed server run to their end.
    pub fn remove_server(&self, id: u32) -> Result<Value, Refused> {
        self.edit(|members| {
            let at = position(members, id)?;
            members.list.remove(at);
            Ok(())
        })?;
        Ok(Value::Array(self.servers()))
    }

    /// Changes the servers, all or nothing: an invalid group, or a failure to write the `state` file, changes nothing.
    fn edit<T>(&self, change: impl FnOnce(&mut Members) -> Result<T, Refused>) -> Result<T, Refused> {
        let mut known = lock(&self.known);
        let mut members = known.members.clone();
        let done = change(&mut members)?;
        // A server that the file gives may have such a parameter, if the method stands after it.
        let misfit =
            |members: &Members| members.list.iter().find_map(|member| ignored(self.frame.policy, member.pattern()));
        if let Some(parameter) = misfit(&members).filter(|_| misfit(&known.members).is_none()) {
            return Err(Refused::format(format!("balancing method does not support parameter \"{parameter}\"")));
        }
        let (peers, too_many) = members.peers();
        if too_many {
            return Err(Refused::format(format!("more than {MAX_PEERS} servers in upstream")));
        }
        let ids = known.ids.clone();
        let upstream = assemble(&self.frame, peers, &mut known, Some(&*self.current()))
            .map_err(|error| Refused::format(error.to_string()))?;
        if let Some(path) = &self.state
            && let Err(error) = state::write(path, &members)
        {
            known.ids = ids;
            let text = format!("weir cannot write the state file \"{path}\" {}", weir_net::log::Os(&error));
            return Err(Refused::new(500, "UpstreamStateError", text));
        }
        known.members = members;
        self.put(upstream, &mut known);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Plain, live, live_of, place, resolver};
    use weir_peers::balance::Policy;

    /// A group of an address (0) and a name (1) with one known address (2).
    fn group() -> Live<Plain> {
        let live = live_of(&["127.0.0.1:1"], &["a.test"]);
        live.learn(1, vec![place("10.0.0.1:0")]);
        live
    }

    fn ids(live: &Live<Plain>) -> Vec<u64> {
        live.servers().iter().filter_map(|server| server["id"].as_u64()).collect()
    }

    fn peers(live: &Live<Plain>) -> Vec<String> {
        live.current().group.peers().map(|peer| peer.address.clone()).collect()
    }

    #[test]
    fn every_refusal_has_a_status_a_code_and_words_and_changes_nothing() {
        let live = group();
        let before = (live.version(), live.servers());
        let format = |words: &str| (400, "UpstreamConfFormatError", words.to_owned());
        let bad = |words: &str| (400, "UpstreamBadAddress", words.to_owned());
        let unresolved = (400, "UpstreamConfNoResolver", "no resolver defined to resolve \"b.test\"".to_owned());
        let immutable = |words: &str| (400, "UpstreamServerImmutable", words.to_owned());
        let unknown = || (404, "UpstreamServerNotFound", "server not found".to_owned());
        // The number of the server to change, or none for a new one.
        for (id, body, expected) in [
            (None, json!([]), (415, "JsonError", "json error: not an object".to_owned())),
            (None, json!({}), format("missing \"server\" argument")),
            (None, json!({"server": 1}), format("invalid \"server\" value")),
            (None, json!({"server": "127.0.0.1:x"}), bad("invalid port in upstream \"127.0.0.1:x\"")),
            (
                None,
                json!({"server": "a.test:1", "service": "x"}),
                bad("service upstream \"a.test:1\" may not have port"),
            ),
            (None, json!({"server": "b.test"}), unresolved),
            (Some(0), json!({"colour": 1}), format("unknown parameter \"colour\"")),
            (Some(0), json!({"weight": 0}), (400, "UpstreamBadWeight", "invalid weight \"0\"".to_owned())),
            (Some(0), json!({"weight": "1"}), format("invalid \"weight\" value")),
            (Some(0), json!({"max_conns": -1}), format("invalid \"max_conns\" value")),
            (Some(0), json!({"max_fails": 1u64 << 32}), format("invalid \"max_fails\" value")),
            (Some(0), json!({"fail_timeout": "x"}), format("invalid \"fail_timeout\" value")),
            (Some(0), json!({"slow_start": true}), format("invalid \"slow_start\" value")),
            (Some(0), json!({"route": "r".repeat(33)}), format("route is longer than 32")),
            (Some(0), json!({"backup": 1}), format("invalid \"backup\" value")),
            (Some(0), json!({"down": "yes"}), format("invalid \"down\" value")),
            (Some(0), json!({"drain": null}), format("invalid \"drain\" value")),
            (Some(0), json!({"service": "x"}), format("missing \"server\" argument")),
            (Some(1), json!({"server": "127.0.0.1:9"}), immutable("server address is immutable")),
            (Some(2), json!({"weight": 2}), immutable("server is immutable: its address comes from resolving a name")),
            (Some(9), json!({"weight": 2}), unknown()),
        ] {
            let told = match id {
                None => live.add_server(&body),
                Some(id) => live.change_server(id, &body),
            };
            let told = told.map_err(|refused| (refused.status, refused.code, refused.text));
            assert_eq!(told, Err(expected), "{id:?} {body}");
        }
        let removed = [2, 9].map(|id| live.remove_server(id).map_err(|refused| refused.status));
        assert_eq!(removed, [Err(400), Err(404)]);
        assert_eq!((live.version(), live.servers()), before);
    }

    #[test]
    fn each_parameter_changes_alone_and_is_shown() {
        let live = group();
        let mut expected = live.server(0).unwrap();
        for (name, given, shown) in [
            ("weight", json!(5), json!(5)),
            ("max_conns", json!(6), json!(6)),
            ("max_fails", json!(0), json!(0)),
            ("fail_timeout", json!("1m"), json!("60s")),
            ("slow_start", json!(3), json!("3s")),
            ("slow_start", json!("1500ms"), json!("1500ms")),
            ("route", json!("r"), json!("r")),
            ("backup", json!(true), json!(true)),
            ("down", json!(true), json!(true)),
            ("drain", json!(true), json!(true)),
            ("server", json!("127.0.0.1:7"), json!("127.0.0.1:7")),
            // A client may send back what it got.
            ("id", json!(77), json!(0)),
        ] {
            let version = live.version();
            expected[name] = shown;
            assert_eq!(live.change_server(0, &json!({name: given})), Ok(expected.clone()), "{name}");
            assert_eq!((live.server(0), live.version()), (Ok(expected.clone()), version + 1), "{name}");
        }
        let current = live.current();
        let group = &current.group;
        let peer = group.peers().find(|peer| peer.id == 0).unwrap();
        assert_eq!((peer.address.as_str(), peer.weight, peer.drain), ("127.0.0.1:7", 5, true));
        assert_eq!(group.peers().last().unwrap().id, 0, "a backup stands after the primaries");
    }

    #[test]
    fn a_name_is_shown_with_its_addresses_which_follow_its_parameters() {
        let live = group();
        live.change_server(1, &json!({"weight": 4})).unwrap();
        let child = live.server(2).unwrap();
        let fields = ["server", "parent", "host", "weight"].map(|field| child[field].clone());
        assert_eq!(fields, [json!("10.0.0.1:80"), json!("1"), json!("a.test"), json!(4)]);
        assert_eq!(ids(&live), [0, 1, 2]);
        live.remove_server(1).unwrap();
        assert_eq!((ids(&live), peers(&live)), (vec![0], vec!["127.0.0.1:1".to_owned()]));
    }

    #[test]
    fn servers_come_and_go_with_new_numbers_and_new_versions() {
        let live = group();
        live.set_resolver(resolver(), Duration::from_secs(1));
        let added = live.add_server(&json!({"server": "[::1]:5", "weight": 3})).unwrap();
        assert_eq!((&added["id"], &added["weight"], &added["server"]), (&json!(3), &json!(3), &json!("[::1]:5")));
        assert_eq!(live.add_server(&json!({"server": "b.test"})).unwrap()["id"], 4, "with a resolver, a name is fine");
        assert_eq!((live.version(), ids(&live)), (3, vec![0, 1, 2, 3, 4]));
        let rest = live.remove_server(3).unwrap();
        assert_eq!(rest.as_array().map(Vec::len), Some(4));
        assert_eq!(live.add_server(&json!({"server": "127.0.0.1:6"})).unwrap()["id"], 5);
        assert_eq!(peers(&live), ["127.0.0.1:1", "10.0.0.1:80", "127.0.0.1:6"]);
        for id in ids(&live).into_iter().filter(|id| *id != 2) {
            live.remove_server(id as u32).unwrap();
        }
        assert_eq!((live.servers(), peers(&live)), (vec![], vec![]), "a group may lose all its servers");
    }

    #[test]
    fn a_change_that_makes_no_valid_group_changes_nothing() {
        let hashed = live(Policy::Hash { consistent: false }, &["127.0.0.1:1"], &[], None);
        let told = hashed.add_server(&json!({"server": "127.0.0.1:2", "backup": true}));
        let words = "balancing method does not support parameter \"backup\"";
        assert_eq!((told.map_err(|refused| refused.text), peers(&hashed).len()), (Err(words.to_owned()), 1));

        let all: Vec<String> = (0..MAX_PEERS).map(|at| format!("127.0.{}.{}:1", at / 256, at % 256)).collect();
        let full = live_of(&all.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        let told = full.add_server(&json!({"server": "127.1.0.1:2"}));
        let words = format!("more than {MAX_PEERS} servers in upstream");
        assert_eq!((told.map_err(|refused| refused.text), full.version()), (Err(words), 0));
    }

    #[test]
    fn a_state_file_that_cannot_be_written_undoes_the_change() {
        let path = "/proc/weir/state".to_owned();
        let live = live(Policy::RoundRobin, &["127.0.0.1:1"], &[], Some(path));
        let told = live.add_server(&json!({"server": "127.0.0.1:2"})).unwrap_err();
        assert_eq!((told.status, told.code), (500, "UpstreamStateError"));
        assert!(told.text.starts_with("weir cannot write the state file \"/proc/weir/state\" (2: "), "{told}");
        assert_eq!((live.version(), ids(&live), peers(&live).len()), (0, vec![0], 1));
    }
}
