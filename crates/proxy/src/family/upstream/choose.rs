//! Finds the group for a `proxy_pass`: a declared one, an address, or a name to resolve first.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

use weir_http::authority::{literal_address, split_host_port};
use weir_http::conn::{Conn, Gone};
use weir_http::exchange::Exchange;
use weir_http::refusal::Refusal;
use weir_net::log::Level;

use super::Upstream;
use super::source::GroupRef;
use crate::family::proxy;
use crate::family::proxy::pass::Pass;
use crate::family::proxy::request::Target;
use weir_http::dns::{self, ResolvedAddress};

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
