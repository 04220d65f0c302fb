//! `Alt-Svc`: the ports at which a configuration tells clients that it speaks HTTP/3 (RFC 7838).

use crate::view::{Scope, Spot};

/// The directives that add a field to answers.
const ADDING: [&str; 3] = ["add_header", "more_set_headers", "add_headers"];

/// weir's own directive.
const OWN: &str = "http3_alt_svc";

/// The statements that tell clients of a server about HTTP/3: in force in the server, or somewhere below it.
pub fn of(server: Scope<'_>) -> impl Iterator<Item = Spot<'_>> {
    let above = ADDING.into_iter().flat_map(move |name| server.effective_all(name));
    above.chain(server.effective(OWN)).chain(server.all()).filter(|spot| names_h3(*spot))
}

/// The ports of this host that a statement names for HTTP/3. Ports in variables and on other hosts are left out.
pub fn ports(spot: Spot<'_>) -> impl Iterator<Item = u16> {
    let own = spot.name() == OWN;
    let own = own.then(|| spot.arg(0).parse().ok()).flatten();
    let services = if names_h3(spot) { spot.text() } else { String::new() };
    let ports = services.split([',', ' ', ';']).filter_map(|service| {
        let place = service.strip_prefix("h3=")?.trim_matches('"');
        place.strip_prefix(':')?.parse().ok()
    });
    ports.chain(own).collect::<Vec<_>>().into_iter()
}

/// The port of a `listen`; `None` for several, and for a text that has none.
pub fn port(listen: Spot<'_>) -> Option<u16> {
    let address = listen.arg(0);
    let is_host = !address.contains(':') && address.contains(['.', '*']) || address.ends_with(']');
    if is_host {
        return Some(80);
    }
    address.rsplit(':').next()?.parse().ok()
}

/// A value with a variable may name anything.
fn names_h3(spot: Spot<'_>) -> bool {
    if spot.name() == OWN {
        return !matches!(spot.arg(0), "off" | "clear");
    }
    let is_field = |text: &str| text.to_ascii_lowercase().trim_start().starts_with("alt-svc");
    ADDING.contains(&spot.name())
        && spot.args().any(is_field)
        && spot.args().any(|arg| arg.contains("h3=") || arg.contains('$'))
}
