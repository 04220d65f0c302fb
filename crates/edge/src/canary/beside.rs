//! Whether a configuration may be beside another one. What the process has once is the same in both, or weir refuses the file
//! by name.

use std::collections::BTreeMap;

use weir_http::exchange::conf::Conf;
use weir_http::hold::split::SplitKey;
use weir_net::Address;

use crate::family::ssl::Verify;
use crate::load::{datagram_sockets, stream_sockets, worker_count};
use crate::resources::Resources;

/// Refuses a configuration that listens on other addresses than the sockets that are open, before a socket is bound.
///
/// # Errors
/// The address and the remedy.
pub fn same_addresses(new: &Conf, open: &Resources) -> Result<(), String> {
    let tcp = stream_sockets(new).map(|socket| named(&socket.address, ""));
    let udp = datagram_sockets(new).map(|(socket, _)| named(&socket.address, " udp"));
    let wanted: Vec<String> = tcp.chain(udp).collect();
    let tcp = open.sockets.keys().map(|address| named(address, ""));
    let udp = open.datagrams.keys().map(|address| named(&Address::Tcp(*address), " udp"));
    let known: Vec<String> = tcp.chain(udp).collect();
    let lacks = |all: &[String], other: &[String]| all.iter().find(|one| !other.contains(one)).cloned();
    if let Some(more) = lacks(&wanted, &known) {
        return Err(format!(
            "a canary has the \"listen\" addresses of the configuration in force: \"{more}\" is not among them; reload the \
             configuration with this address first"
        ));
    }
    match lacks(&known, &wanted) {
        Some(less) => Err(format!(
            "a canary has the \"listen\" addresses of the configuration in force: \"{less}\" is missing; add it, and remove it \
             with a reload later"
        )),
        None => Ok(()),
    }
}

fn named(address: &Address, kind: &str) -> String {
    format!("{address}{kind}")
}

/// Refuses a configuration that says other things about the process, the sockets and the shared memory than the one in force.
///
/// # Errors
/// The directive and the remedy.
pub fn check(new: &Conf, old: &Conf, key: &SplitKey) -> Result<(), String> {
    let no = |what: &str| Err(format!("a canary runs in the same process: {what}; change it with a reload"));
    if new.main.process.user != old.main.process.user {
        return no("\"user\" differs");
    }
    if worker_count(new) != worker_count(old) {
        return no("\"worker_processes\" differs");
    }
    if let Some(place) = new.reach.new_write(&old.reach) {
        return no(&format!("the server may not write to \"{}\"", place.display()));
    }
    let verifies = |conf: &Conf| conf.locations.iter().any(|place| crate::values(place).ssl.verify != Verify::Off);
    if !key.is_early() && (verifies(new) || verifies(old)) {
        // One configuration has judged the certificate, and the request would have another one.
        return Err("a canary with \"ssl_verify_client\" needs the key address: write --key address".to_owned());
    }
    let (parameters, before) = (parameters(new), parameters(old));
    if let Some((address, _)) = parameters.iter().find(|(address, own)| before.get(*address) != Some(own)) {
        return no(&format!("\"listen {address}\" has other parameters (ssl, quic, proxy_protocol)"));
    }
    let (new, old) = (&weir_proxy::declared(new).cache, &weir_proxy::declared(old).cache);
    for path in &new.paths {
        let before = old.find(path.name.as_bytes()).and_then(|number| old.paths.get(number));
        if before.is_some_and(|before| !path.is_as_large_as(before)) {
            return no(&format!("the cache \"{}\" has another size, and both configurations share it", path.name));
        }
    }
    Ok(())
}

/// The parameters of each `listen` that the clients of its socket notice, by its address.
fn parameters(conf: &Conf) -> BTreeMap<String, (bool, bool, bool)> {
    let http = conf.listens.iter().map(|listen| {
        let kind = if listen.quic { " quic" } else { "" };
        (named(&listen.address, kind), (listen.ssl, listen.quic, listen.proxy_protocol))
    });
    let streams = weir_stream::conf::of(conf).streams.listens.iter();
    let sessions =
        streams.map(|listen| (named(&listen.address, " stream"), (listen.ssl, false, listen.proxy_protocol)));
    http.chain(sessions).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn conf(text: &str) -> Conf {
        let (conf, problems) = crate::of_text(&format!("worker_processes 2; events {{}} {text}"));
        assert_eq!(problems, [""; 0], "{text}");
        conf.unwrap()
    }

    fn refused(new: &str) -> String {
        let old = "http { proxy_cache_path /tmp/weir-beside keys_zone=c:1m; server { listen 127.0.0.1:1; listen 127.0.0.1:2; } }";
        check(&conf(new), &conf(old), &SplitKey::Address).err().unwrap_or_default()
    }

    #[test]
    fn what_the_process_has_once_is_the_same_or_refused_by_name() {
        let server = "server { listen 127.0.0.1:1; listen 127.0.0.1:2; location / { return 204; } }";
        assert_eq!(refused(&format!("http {{ {server} }}")), "");
        let proxied = server.replace(":2;", ":2 proxy_protocol;");
        assert!(refused(&format!("http {{ {proxied} }}")).contains("\"listen 127.0.0.1:2\" has other parameters"));
        let cache = "proxy_cache_path /tmp/weir-beside keys_zone=c:2m;";
        assert!(refused(&format!("http {{ {cache} {server} }}")).contains("cache \"c\" has another size"));
        let place = "proxy_cache_path /tmp/weir-elsewhere keys_zone=d:1m;";
        assert!(refused(&format!("http {{ {place} {server} }}")).contains("may not write to \"/tmp/weir-elsewhere"));
        assert!(refused(&format!("user other; http {{ {server} }}")).contains("\"user\" differs"));
    }

    #[test]
    fn a_verified_client_has_one_configuration_from_its_handshake_on() {
        let both = "http { server { listen 127.0.0.1:1; ssl_verify_client optional_no_ca; } }";
        let with = |key: &str| check(&conf(both), &conf(both), &SplitKey::read(key).unwrap());
        assert_eq!(with("address"), Ok(()));
        assert!(with("cookie:sid").is_err_and(|why| why.contains("needs the key address")));
    }

    #[test]
    fn other_addresses_are_refused_before_a_socket_is_bound() {
        let listening =
            weir_net::listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()), &Default::default()).unwrap();
        let port = listening.local_addr().tcp().unwrap().port();
        let mut open = Resources::default();
        open.add([listening]);
        let with = |listens: &str| {
            same_addresses(&conf(&format!("http {{ server {{ {listens} }} }}")), &open).err().unwrap_or_default()
        };
        let own = format!("listen 127.0.0.1:{port};");
        assert_eq!(with(&own), "");
        assert!(with(&format!("{own} listen 127.0.0.1:1;")).contains("\"127.0.0.1:1\" is not among them"));
        assert!(with("listen 127.0.0.1:1;").contains("is not among them"));
    }
}
