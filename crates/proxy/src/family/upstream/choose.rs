//! Finds the group for a `proxy_pass`: a declared one, an address, or a name to resolve first.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

use weir_http::exchange::Exchange;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::read::authority::{literal_address, split_host_port};
use weir_http::text::refusal::Refusal;
use weir_net::log::Level;

use super::Upstream;
use super::source::GroupRef;
use crate::family::proxy;
use crate::family::proxy::pass::Pass;
use crate::family::proxy::request::Target;
use weir_http::hold::dns::{self, ResolvedAddress};

/// The group to ask, and the target of a `proxy_pass` with variables.
pub(super) fn group(exchange: &mut Exchange<'_>, pass: &Pass) -> Result<Chosen, u16> {
    let generation = exchange.generation.clone();
    let Some(template) = &pass.template else {
        let number = pass.group.ok_or(500u16)?;
        return Ok(Chosen::Group(GroupRef::declared(generation, number).ok_or(500u16)?, None));
    };
    // One character per byte: the URI keeps its bytes, and only the host must be text.
    let text: String = template.text(exchange).iter().map(|byte| char::from(*byte)).collect();
    let parsed =
        Pass::parse(pass.scheme, &text).and_then(|parsed| match is_host(&parsed.host) && is_host(&parsed.url) {
            true => Ok(parsed),
            false => Err(Refusal::whole("invalid host in upstream")),
        });
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(refusal) => {
            exchange.log(Level::Error, format_args!("{} in \"{text}\"", refusal.what));
            return Err(500);
        }
    };
    exchange.rare_mut().proxy_host = Some(parsed.host.clone().into_bytes());
    let dialled = parsed.dialled().into_owned();
    let (is_tls, parsed_lacks_port) = (parsed.is_tls, parsed.lacks_port());
    let target = Target {
        host: parsed.host.into_bytes(),
        uri: parsed.uri.map(|uri| uri.chars().map(|byte| byte as u8).collect()),
        is_tls,
    };
    let declared = &crate::declared(&generation.conf).upstream;
    if let Some(number) = declared.find(&parsed.url).or_else(|| declared.find_implicit(&dialled)) {
        let group = GroupRef::declared(generation.clone(), number).ok_or(500u16)?;
        return Ok(Chosen::Group(group, Some(target)));
    }
    if parsed_lacks_port {
        exchange.log(Level::Error, format_args!("no port in upstream \"{dialled}\""));
        return Err(500);
    }
    match literal_address(&dialled) {
        Some(address) => {
            let upstream = Upstream::implicit(&dialled, &[address]).map_err(|_| 500u16)?;
            Ok(Chosen::Group(GroupRef::own(upstream), Some(target)))
        }
        None => Ok(Chosen::Name(dialled, target)),
    }
}

/// Whether a host and port, or the path of a socket, may appear in a head.
fn is_host(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'!'..=b'~'))
}

/// The value of `proxy_pass`.
pub(super) enum Chosen {
    /// A group, and the target if it was made for this exchange.
    Group(GroupRef, Option<Target>),
    /// A name to resolve, perhaps with a port.
    Name(String, Target),
}

/// Why a name has no group.
pub(super) enum Unresolved {
    /// The client gets this status; the reason is logged.
    Status(u16),
    /// The client left meanwhile.
    Gone(Gone),
}

/// Resolves a name by the location's resolver, and makes a group of its addresses.
pub(super) async fn resolve(exchange: &mut Exchange<'_>, conn: &Conn, dialled: &str) -> Result<GroupRef, Unresolved> {
    let values = &crate::values(exchange.location).resolver;
    let (host, port) = split_host_port(dialled);
    let Some(servers) = &values.servers else {
        exchange.log(Level::Error, format_args!("no resolver defined to resolve {host}"));
        return Err(Unresolved::Status(502));
    };
    let Ok(port) = port.unwrap_or("80").parse::<u16>() else {
        exchange.log(Level::Error, format_args!("invalid port in upstream \"{dialled}\""));
        return Err(Unresolved::Status(500));
    };
    let client = dns::client(exchange.generation, servers);
    let watch = proxy::is_for_its_client_alone(exchange);
    let mut asking = pin!(client.addresses(host, values.timeout));
    let resolved = poll_fn(|context| match asking.as_mut().poll(context) {
        Poll::Pending if watch => conn.poll_gone().map(Err),
        polled => polled.map(Ok),
    });
    let places = match resolved.await {
        Ok(Ok(resolved)) => resolved.places,
        Ok(Err(trouble)) => {
            exchange.log(Level::Error, format_args!("{host} could not be resolved {trouble}"));
            return Err(Unresolved::Status(502));
        }
        Err(error) => return Err(Unresolved::Gone(Gone::Closed(error))),
    };
    let address = |place: &ResolvedAddress| weir_net::Address::Tcp(SocketAddr::new(place.address.ip(), port));
    let addresses: Vec<_> = places.iter().map(address).collect();
    match Upstream::implicit(dialled, &addresses) {
        Ok(upstream) => Ok(GroupRef::own(upstream)),
        Err(_) => Err(Unresolved::Status(500)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, on_worker, proxied, whole};

    #[test]
    fn the_text_of_a_proxy_pass_is_a_group_an_address_or_a_name() {
        let base = "set $to $arg_to; proxy_pass";
        for (pass, target, expected) in [
            ("http://$arg_to", "u", "group u of 127.0.0.1:81, host u, no uri"),
            ("http://$arg_to", "U", "group u of 127.0.0.1:81, host U, no uri"),
            ("http://$arg_to", "127.0.0.1:7", "own 127.0.0.1:7 of 127.0.0.1:7, host 127.0.0.1:7, no uri"),
            ("http://$arg_to", "127.0.0.1", "own 127.0.0.1 of 127.0.0.1:80, host 127.0.0.1, no uri"),
            ("https://$arg_to", "127.0.0.1", "own 127.0.0.1:443 of 127.0.0.1:443, host 127.0.0.1, no uri, tls"),
            ("http://$arg_to", "127.0.0.1:7/x?y", "own 127.0.0.1:7 of 127.0.0.1:7, host 127.0.0.1:7, /x?y"),
            ("http://$arg_to", "name.test:7", "name name.test:7"),
            ("http://$arg_to", "", "500"),
            ("http://$arg_to:80", "", "500"),
            ("$arg_to", "nothing", "500"),
            ("http://$arg_to", "127.0.0.1:x", "name 127.0.0.1:x"),
        ] {
            let http = format!(
                "upstream u {{ server 127.0.0.1:81; }} server {{ listen 127.0.0.1:8080; location / {{ {base} {pass}; }} }}"
            );
            let request = whole(&format!("GET /?to={target}"));
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&http);
                let mut exchange = site.exchange(&request);
                let pass = crate::values(exchange.location).proxy.pass.clone().unwrap();
                let told = |target: &Target| {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let uri = target.uri.as_deref().map_or("no uri".to_owned(), text);
                    format!("host {}, {uri}{}", text(&target.host), if target.is_tls { ", tls" } else { "" })
                };
                match group(&mut exchange, &pass) {
                    Err(status) => status.to_string(),
                    Ok(Chosen::Name(name, _)) => format!("name {name}"),
                    Ok(Chosen::Group(group, target)) => {
                        let kind = if group.home().is_some() { "group" } else { "own" };
                        let upstream = group.get();
                        let addresses: Vec<String> = upstream.addresses.iter().map(ToString::to_string).collect();
                        let told = target.as_ref().map(told).unwrap_or_default();
                        format!("{kind} {} of {}, {told}", upstream.name, addresses.join(" "))
                    }
                }
            });
            assert_eq!(found, expected, "{pass} with {target}");
        }
    }

    #[test]
    fn a_name_without_a_resolver_has_no_group() {
        let found = on_worker(async {
            let (site, conn, _client) = Site::open(&proxied(""));
            let mut exchange = site.exchange(&whole("GET /"));
            match resolve(&mut exchange, &conn, "name.test:7").await {
                Err(Unresolved::Status(status)) => status,
                Err(Unresolved::Gone(_)) | Ok(_) => 0,
            }
        });
        assert_eq!(found, 502);
    }
}
