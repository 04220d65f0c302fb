//! Finds the group of a session: a block, an address, or the addresses of a name.

use std::rc::Rc;
use std::sync::Arc;

use weir_http::hold::dns;
use weir_http::read::authority::{literal_address, split_host_port};
use weir_http::text::template::Template;
use weir_meter::Step;
use weir_net::Address;
use weir_net::log::Level;

use super::status::INTERNAL;
use crate::conf::ProxyTarget;
use crate::family::upstream::{LocalGroup, LocalGroups, StreamUpstream};
use crate::session::Session;

/// The group, or the status that ends the session.
pub async fn group(session: &mut Session<'_>, target: &ProxyTarget) -> Result<Rc<LocalGroup>, u16> {
    match target {
        ProxyTarget::Group(number) => declared(session, *number).ok_or(INTERNAL),
        ProxyTarget::Named(text) => named(session, text).await,
    }
}

/// A group of the configuration, in its current version.
fn declared(session: &Session<'_>, number: usize) -> Option<Rc<LocalGroup>> {
    let groups = &crate::declared(session.conf).upstream.groups;
    session.generation.own.of(LocalGroups::default).get(groups, number)
}

async fn named(session: &mut Session<'_>, text: &Template) -> Result<Rc<LocalGroup>, u16> {
    let text = String::from_utf8_lossy(&text.text(session)).into_owned();
    let number = crate::declared(session.conf).upstream.find(&text);
    if let Some(group) = number.and_then(|number| declared(session, number)) {
        return Ok(group);
    }
    let refuse = |what: std::fmt::Arguments<'_>| {
        session.log(Level::Error, what);
        INTERNAL
    };
    let (host, port) = match text.strip_prefix("unix:") {
        Some(_) => ("", None),
        None => split_host_port(&text),
    };
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port > 0 => Some(port),
        Some(Ok(_) | Err(_)) => return Err(refuse(format_args!("invalid port in upstream \"{text}\""))),
    };
    let is_unix = text.starts_with("unix:");
    if host.is_empty() && !is_unix {
        return Err(refuse(format_args!("no host in upstream \"{text}\"")));
    }
    if port.is_none() && !is_unix {
        return Err(refuse(format_args!("no port in upstream \"{host}\"")));
    }
    let addresses = match literal_address(&text) {
        Some(address) => vec![address],
        None => resolved(session, host, port.unwrap_or_default()).await?,
    };
    StreamUpstream::implicit(&text, &addresses).map(|upstream| LocalGroup::new(Arc::new(upstream))).map_err(|error| {
        session.log(Level::Error, format_args!("{error} \"{text}\""));
        INTERNAL
    })
}

/// Asks the resolver of the server.
async fn resolved(session: &mut Session<'_>, host: &str, port: u16) -> Result<Vec<Address>, u16> {
    let resolver = &crate::values(&session.server.place).resolver;
    let Some(servers) = &resolver.servers else {
        session.log(Level::Error, format_args!("no resolver defined to resolve {host}"));
        return Err(INTERNAL);
    };
    session.step = Some(Step::Resolve);
    let client = dns::client(session.generation, servers);
    match client.addresses(host, resolver.timeout).await {
        Ok(found) => {
            let with_port =
                |place: &dns::ResolvedAddress| Address::Tcp(std::net::SocketAddr::new(place.address.ip(), port));
            Ok(found.places.iter().map(with_port).collect())
        }
        Err(trouble) => {
            session.log(Level::Error, format_args!("{host} could not be resolved {trouble}"));
            Err(INTERNAL)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Content;
    use crate::tests::{Edge, on_worker};

    #[test]
    fn the_text_of_a_proxy_pass_is_a_group_or_an_address() {
        // The text; then the name of the group with its addresses, or nothing: the session ends with 500.
        for (text, expected) in [
            ("u", Some(("u", "127.0.0.1:1 127.0.0.1:2"))),
            ("U", Some(("u", "127.0.0.1:1 127.0.0.1:2"))),
            ("127.0.0.1:7", Some(("127.0.0.1:7", "127.0.0.1:7"))),
            ("[::1]:7", Some(("[::1]:7", "[::1]:7"))),
            ("unix:/tmp/a", Some(("unix:/tmp/a", "unix:/tmp/a"))),
            ("127.0.0.1", None),
            ("127.0.0.1:0", None),
            ("127.0.0.1:x", None),
            ("127.0.0.1:70000", None),
            (":7", None),
            ("", None),
            ("name.test:7", None),
        ] {
            on_worker(async move {
                let edge = Edge::new(&format!(
                    "upstream u {{ server 127.0.0.1:1; server 127.0.0.1:2; }} \
                     server {{ listen 127.0.0.1:1; set $to \"{text}\"; proxy_pass $to; }}"
                ));
                let mut session = edge.session();
                crate::family::set::run(&mut session);
                let Content::Proxy(target) = &session.server.content else { panic!("it has a target") };
                let found = group(&mut session, target).await.map(|group| {
                    let addresses: Vec<String> = group.addresses.iter().map(Address::to_string).collect();
                    (group.name.clone(), addresses.join(" "))
                });
                let expected = expected.map(|(name, addresses)| (name.to_owned(), addresses.to_owned()));
                assert_eq!(found, expected.ok_or(INTERNAL), "{text}");
            });
        }
    }

    #[test]
    fn a_worker_uses_one_record_of_a_group_for_all_sessions() {
        on_worker(async {
            let edge = Edge::new("upstream u { server 127.0.0.1:1; } server { listen 127.0.0.1:1; proxy_pass u; }");
            let mut session = edge.session();
            let target = ProxyTarget::Group(0);
            let (first, second) = (group(&mut session, &target).await, group(&mut session, &target).await);
            assert!(Rc::ptr_eq(&first.unwrap(), &second.unwrap()));
            assert_eq!(group(&mut session, &ProxyTarget::Group(9)).await.err(), Some(INTERNAL));
        });
    }
}
