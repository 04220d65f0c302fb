//! The certificates that servers show to clients, with the end of each: of files, and of authorities.

use std::collections::HashSet;

use weir_http::exchange::conf::Conf;
use weir_meter::live::{Certificate, Timestamp};

use crate::acme::Cell;
use crate::family::ssl::assemble::Known;

/// Certificates in one snapshot; those that expire first stay.
const CERTIFICATES_MAX: usize = 1000;

/// Hosts shown of one certificate.
const HOSTS_MAX: usize = 16;

/// All of them, the first to expire first; those that are not there yet come before all.
pub fn all(conf: &Conf) -> Vec<Certificate> {
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    let of_requests = conf.servers.iter().map(|server| conf.location(server.root));
    let of_sessions = weir_stream::conf::of(conf).servers.iter().map(|server| &server.place);
    for place in of_requests.chain(of_sessions) {
        let Some(tls) = &crate::values(place).ssl.tls else { continue };
        let known =
            tls.known().into_iter().filter(|known| seen.insert((known.source.clone(), known.facts.serial.clone())));
        all.extend(known.map(of_file));
    }
    let authorities = &crate::declared(conf).acme.authorities;
    all.extend(authorities.iter().flat_map(|authority| &authority.orders).map(|(_, cell)| of_authority(cell)));
    all.sort_by_key(|certificate| certificate.ends);
    all.truncate(CERTIFICATES_MAX);
    all
}

/// Seconds since 1970 as a time; before 1970, 1970.
fn at(seconds: i64) -> Timestamp {
    Timestamp(u64::try_from(seconds).unwrap_or(0).saturating_mul(1000))
}

fn of_file(Known { source, facts }: Known) -> Certificate {
    let mut hosts = if facts.names.is_empty() { facts.subject_names } else { facts.names };
    hosts.truncate(HOSTS_MAX);
    Certificate { source, hosts, begins: Some(at(facts.begins)), ends: Some(at(facts.ends)), ..Certificate::default() }
}

fn of_authority(cell: &Cell) -> Certificate {
    let (held, state) = (cell.held(), cell.state());
    Certificate {
        source: cell.issuer.clone(),
        is_renewed: true,
        hosts: cell.hosts.iter().take(HOSTS_MAX).cloned().collect(),
        begins: held.as_ref().map(|held| at(held.begins)),
        ends: held.as_ref().map(|held| at(held.ends)),
        next: state.step.map(|_| at(state.next)).filter(|next| next.0 > 0),
        failures: state.fails,
        error: state.error,
    }
}
