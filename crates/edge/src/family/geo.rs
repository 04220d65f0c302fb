//! `geo`: a variable whose value depends on an IP address.
//!
//! weir looks up networks by the longest prefix, and ranges (`ranges`) by their pieces of 65536 addresses. nginx
//! resolves overlaps of ranges piece by piece. <https://nginx.org/en/docs/http/ngx_http_geo_module.html>

mod ranges;

use std::collections::HashMap;
use std::net::IpAddr;

use ranges::{Added, Ranges};
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::subject::Subject;
use weir_http::family::rewrite::declarable;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HTTP, STREAM};
use weir_http::read::families::Family;
use weir_http::text::cidr::{self, Cidr, Peer};
use weir_http::text::refusal::Refusal;
use weir_http::text::slots::VariableId;
use weir_http::text::template::Argument;
use weir_wire::Known;

weir_http::settings! {}

/// The `geo` blocks, in the order of the file.
pub type Declared = Vec<Geo>;

/// The family.
pub static FAMILY: Family = Family::new(
    "geo",
    &[Directive::new(
        "geo",
        HTTP.or(STREAM),
        Arity::Between(1, 2),
        "Defines a variable whose value depends on the client's address.",
        geo,
    )
    .many()
    .block()],
);

/// One `geo` block.
#[derive(Default)]
pub struct Geo {
    /// The variable that holds the address; the client's own address without one.
    source: Option<VariableId>,
    table: Table,
    values: Vec<Box<[u8]>>,
    /// The numbers of the values while the block is read: a base of a country has 100,000 of them.
    numbers: HashMap<Box<[u8]>, u32>,
    proxies: Vec<Cidr>,
    recursive: bool,
    volatile: bool,
}

enum Table {
    Networks(Networks),
    Ranges { ranges: Ranges, default: Option<u32> },
}

impl Default for Table {
    fn default() -> Self {
        Table::Networks(Networks::default())
    }
}

/// Values by network; the prefix lengths in use, longest first.
#[derive(Default)]
struct Networks {
    values: HashMap<Cidr, u32>,
    lengths4: Vec<u8>,
    lengths6: Vec<u8>,
}

/// nginx looks up this address for a text that is no IP address.
const NO_ADDRESS: u32 = u32::MAX;

fn geo(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut geo = Geo::default();
    let name = match statement.args.as_slice() {
        [source, name] => {
            let source = source.text.strip_prefix('$').filter(|name| !name.is_empty());
            let source =
                source.ok_or_else(|| Refusal::whole(format!("invalid variable name \"{}\"", statement.text(0))))?;
            geo.source = Some(b.mentions().read(source));
            declarable(b, &name.text)?
        }
        _ => declarable(b, statement.text(0))?,
    };
    for line in statement.children() {
        b.stand(line.at);
        if let Err(refusal) = geo.line(b, line) {
            b.refuse_at("geo", refusal, line.at);
        }
    }
    b.stand(statement.at);
    geo.numbers = HashMap::new();
    if let Table::Networks(networks) = &mut geo.table {
        networks.sort();
    }
    let argument = Argument { name, index: crate::declaring(b).geo.len() as u32 };
    super::define(b, argument, !geo.volatile, get_of_exchange, |s, a, out| get(s, a, out, |_, _, peer| peer));
    crate::declaring(b).geo.push(geo);
    Ok(())
}

impl Geo {
    fn line(&mut self, b: &mut Build<'_>, line: &Statement) -> Result<(), Refusal> {
        match (line.name.text.as_str(), line.args.as_slice()) {
            ("ranges", []) => {
                if matches!(&self.table, Table::Networks(networks) if !networks.values.is_empty()) {
                    return Err(Refusal::whole(
                        "the \"ranges\" directive must be the first directive inside \"geo\" block",
                    ));
                }
                self.table = Table::Ranges { ranges: Ranges::default(), default: None };
            }
            ("proxy_recursive", []) if !b.is_in_stream() => self.recursive = true,
            ("volatile", []) => self.volatile = true,
            ("proxy", [network]) if !b.is_in_stream() => self.proxies.push(network_of(b, &network.text)?),
            (key, [word]) => match &self.table {
                Table::Networks(_) => self.network(b, key, &word.text, word.bytes())?,
                Table::Ranges { .. } => self.range(b, key, &word.text, word.bytes())?,
            },
            _ => return Err(Refusal::whole("invalid number of the geo parameters")),
        }
        Ok(())
    }

    fn value(&mut self, bytes: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(bytes) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(bytes.into());
        self.numbers.insert(bytes.into(), number);
        number
    }

    fn shown(&self, value: u32) -> String {
        self.values.get(value as usize).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    fn network(&mut self, b: &mut Build<'_>, key: &str, word: &str, bytes: &[u8]) -> Result<(), Refusal> {
        let networks = match key {
            "default" => vec![Cidr::V4(0, 0), Cidr::V6(0, 0)],
            "delete" => {
                let network = network_of(b, word)?;
                let Table::Networks(networks) = &mut self.table else { return Ok(()) };
                if networks.values.remove(&network).is_none() {
                    b.warn(format!("no network \"{word}\" to delete"), None);
                }
                return Ok(());
            }
            _ => vec![network_of(b, key)?],
        };
        let value = self.value(bytes);
        for network in networks {
            let Table::Networks(table) = &mut self.table else { return Ok(()) };
            if let Some(old) = table.values.insert(network, value) {
                let old = self.shown(old);
                b.warn(format!("duplicate network \"{key}\", value: \"{word}\", old value: \"{old}\""), None);
            }
        }
        Ok(())
    }

    fn range(&mut self, b: &mut Build<'_>, key: &str, word: &str, bytes: &[u8]) -> Result<(), Refusal> {
        if key == "default" {
            let value = self.value(bytes);
            let Table::Ranges { default, .. } = &mut self.table else { return Ok(()) };
            if let Some(old) = default.replace(value) {
                let old = self.shown(old);
                b.warn(format!("duplicate default geo range value: \"{word}\", old value: \"{old}\""), None);
            }
            return Ok(());
        }
        let text = if key == "delete" { word } else { key };
        let (start, end) = range_of(text).ok_or_else(|| Refusal::whole(format!("invalid range \"{text}\"")))?;
        let value = if key == "delete" { 0 } else { self.value(bytes) };
        let Table::Ranges { ranges, .. } = &mut self.table else { return Ok(()) };
        if key == "delete" {
            if !ranges.remove(start, end) {
                b.warn(format!("no address range \"{text}\" to delete"), None);
            }
            return Ok(());
        }
        match ranges.add(start, end, value) {
            Ok(Added::New) => Ok(()),
            Ok(Added::Replaced(old)) => {
                let old = self.shown(old);
                b.warn(format!("duplicate range \"{text}\", value: \"{word}\", old value: \"{old}\""), None);
                Ok(())
            }
            Err(overlap) => Err(Refusal::whole(format!("range \"{text}\" overlaps \"{overlap}\""))),
        }
    }

    /// The index of the value for an address.
    fn find(&self, peer: Option<Peer>) -> Option<u32> {
        match (&self.table, peer) {
            (Table::Networks(networks), Some(Peer::V6(address))) => networks.find6(address),
            (Table::Networks(networks), Some(Peer::V4(address))) => networks.find4(address),
            (Table::Networks(networks), Some(Peer::Unix) | None) => networks.find4(NO_ADDRESS),
            (Table::Ranges { ranges, default }, peer) => {
                let address = match peer {
                    Some(Peer::V4(address)) => address,
                    Some(Peer::V6(_) | Peer::Unix) | None => NO_ADDRESS,
                };
                ranges.find(address).or(*default)
            }
        }
    }
}

impl Networks {
    fn sort(&mut self) {
        for network in self.values.keys() {
            match network {
                Cidr::V4(_, bits) => self.lengths4.push(*bits),
                Cidr::V6(_, bits) => self.lengths6.push(*bits),
                Cidr::Unix => {}
            }
        }
        for lengths in [&mut self.lengths4, &mut self.lengths6] {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.dedup();
        }
    }

    fn find4(&self, address: u32) -> Option<u32> {
        let lookup = |bits: &u8| self.values.get(&Cidr::V4(address & cidr::mask4(*bits), *bits)).copied();
        self.lengths4.iter().find_map(lookup)
    }

    fn find6(&self, address: u128) -> Option<u32> {
        let lookup = |bits: &u8| self.values.get(&Cidr::V6(address & cidr::mask6(*bits), *bits)).copied();
        self.lengths6.iter().find_map(lookup)
    }
}

fn network_of(b: &mut Build<'_>, text: &str) -> Result<Cidr, Refusal> {
    let (network, has_low_bits) =
        Cidr::parse(text).ok_or_else(|| Refusal::whole(format!("invalid network \"{text}\"")))?;
    if has_low_bits {
        b.warn(format!("low address bits of {text} are meaningless"), None);
    }
    Ok(network)
}

fn range_of(text: &str) -> Option<(u32, u32)> {
    let (start, end) = text.split_once('-')?;
    let address = |text: &str| text.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
    let (start, end) = (address(start)?, address(end)?);
    (start <= end).then_some((start, end))
}

fn get_of_exchange(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    get(exchange, argument, out, behind_proxies)
}

/// `behind` replaces the known address by one that a trusted proxy reports.
fn get<'c, S: Subject<'c>>(
    subject: &mut S,
    argument: &Argument,
    out: &mut Vec<u8>,
    behind: impl Fn(&S, &Geo, Peer) -> Peer,
) -> bool {
    let conf = subject.conf();
    let Some(geo) = crate::declared(conf).geo.get(argument.index as usize) else { return false };
    let peer = match geo.source {
        None => Some(Peer::of(subject.remote())),
        Some(id) => {
            let mut text = weir_net::buffer::lease(0);
            subject.variable(id, &mut text);
            std::str::from_utf8(&text).ok().and_then(|text| text.parse::<IpAddr>().ok()).map(Peer::of_ip)
        }
    };
    let peer = peer.map(|peer| behind(subject, geo, peer));
    if let Some(value) = geo.find(peer).and_then(|index| geo.values.get(index as usize)) {
        out.extend_from_slice(value);
    }
    true
}

/// The address that X-Forwarded-For names, if the known address is a trusted proxy.
fn behind_proxies(exchange: &Exchange<'_>, geo: &Geo, peer: Peer) -> Peer {
    if geo.proxies.is_empty() {
        return peer;
    }
    let request = &exchange.request;
    let lists = request.fields().iter().rev().filter(|field| field.known == Some(Known::XForwardedFor));
    let lists = lists.map(|field| request.text(field.value));
    cidr::forwarded(peer, lists, &geo.proxies, geo.recursive).map_or(peer, |address| Peer::of_ip(address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_network_wins() {
        let mut networks = Networks::default();
        for (value, network) in
            [Cidr::V4(0, 0), Cidr::V4(0x0a00_0000, 8), Cidr::V4(0x0a01_0000, 16)].into_iter().enumerate()
        {
            networks.values.insert(network, value as u32);
        }
        networks.sort();
        for (address, value) in [(0x0a01_0203, 2), (0x0a02_0203, 1), (0x0b00_0000, 0)] {
            assert_eq!(networks.find4(address), Some(value), "{address:x}");
        }
        assert_eq!(networks.find6(1), None);
    }

    #[test]
    fn each_value_is_there_once() {
        let mut geo = Geo::default();
        let numbers = [b"kr".as_slice(), b"", b"kr", b"us", b""].map(|value| geo.value(value));
        assert_eq!((numbers, geo.values.len()), ([0, 1, 0, 2, 1], 3));
        assert_eq!(geo.shown(2), "us");
    }

    #[test]
    fn ranges_are_two_addresses_in_order() {
        for (text, range) in [
            ("10.0.0.0-10.0.0.255", Some((0x0a00_0000, 0x0a00_00ff))),
            ("10.0.0.9-10.0.0.1", None),
            ("10.0.0.9", None),
            ("a-b", None),
        ] {
            assert_eq!(range_of(text), range, "{text}");
        }
    }
}
