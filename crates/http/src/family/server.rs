//! `http`, `server`, `listen`, `server_name`: the addresses and names of a server.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#listen>

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use weir_conf::{At, Statement};
use weir_net::{Address, ListenOptions, SocketAddress};

use crate::exchange::route::{Name, NameKind};
use crate::read::authority::split_host_port;
use crate::read::build::{Build, Kind, Scope};
use crate::read::directive::{Arity, Directive, HSL, HTTP, MAIN, NONE, SERVER};
use crate::read::families::Family;
use crate::read::listens::{Draft, ListenDraft};
use crate::text::refusal::Refusal;
use crate::text::value;

crate::settings! {
    /// `server_name_in_redirect`.
    name_in_redirect: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "server",
    &[
        Directive::new("http", MAIN, NONE, "Holds the HTTP server directives.", http).block(),
        Directive::new("server", HTTP, NONE, "Sets configuration for a virtual server.", server).many().block(),
        Directive::new(
            "listen",
            SERVER,
            Arity::AtLeast(1),
            "Sets the address and port, or the unix socket, on which the server accepts requests.",
            listen,
        )
        .many()
        .default("*:80"),
        Directive::new(
            "server_name",
            SERVER,
            Arity::AtLeast(1),
            "Sets names of a virtual server: exact, with a wildcard at either end, or regular expressions.",
            server_name,
        )
        .many()
        .default("\"\""),
        Directive::new(
            "server_name_in_redirect",
            HSL,
            Arity::Flag,
            "Uses the first server_name in redirects instead of the Host field.",
            |b, s| {
                b.settings().server.name_in_redirect = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "server_names_hash_bucket_size",
            HTTP,
            Arity::exactly(1),
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        ),
        Directive::new(
            "server_names_hash_max_size",
            HTTP,
            Arity::exactly(1),
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        ),
    ],
);

fn http(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let scope = b.block(Scope::new(Kind::Plain, HTTP, b.at()), statement)?;
    b.scope().children.push(scope);
    Ok(())
}

fn server(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let at = b.at();
    let mut scope = b.block(Scope::new(Kind::Server(Draft::default()), SERVER, at), statement)?;
    if let Kind::Server(draft) = &mut scope.kind {
        if draft.listens.is_empty() {
            // nginx: port 80 for root, 8000 for other users. weir takes 80 and reports it at start instead of guessing.
            draft.listens.push(plain_listen(wildcard(), at));
        }
        if draft.names.is_empty() {
            draft.names.push(Name { shown: String::new(), kinds: vec![NameKind::Exact(String::new())] });
        }
    }
    b.scope().children.push(scope);
    Ok(())
}

/// `*:80`.
fn wildcard() -> Address {
    Address::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80)))
}

/// A `listen` without parameters.
pub fn plain_listen(address: Address, at: At) -> ListenDraft {
    ListenDraft {
        address,
        options: ListenOptions::default(),
        is_default: false,
        binds: false,
        sets_options: false,
        proxy_protocol: false,
        ssl: false,
        http2: false,
        quic: false,
        at,
    }
}

fn listen(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let at = b.at();
    let addresses = addresses(b, statement.text(0), Some(80))?;
    let mut draft = plain_listen(wildcard(), at);
    for word in statement.args.iter().skip(1) {
        listen_parameter(&mut draft, &word.text)?;
    }
    if draft.quic
        && let Some(other) = not_of_quic(&draft, statement)
    {
        return Err(Refusal::directive(format!("\"{other}\" parameter is incompatible with \"quic\"")));
    }
    if draft.http2 {
        b.warn("the \"listen ... http2\" directive is deprecated, use the \"http2\" directive instead", None);
    }
    if let Some(false) = draft.options.ipv6only
        && addresses.iter().all(|address| matches!(address, Address::Tcp(SocketAddr::V4(_))))
    {
        return Err(Refusal::whole(format!("ipv6only is not supported on addr \"{}\"", statement.text(0))));
    }
    if draft.quic && addresses.iter().any(|address| matches!(address, Address::Unix(_))) {
        return Err(
            Refusal::whole(format!("\"quic\" needs an address of UDP, not \"{}\"", statement.text(0))).weirs_own()
        );
    }
    for address in addresses {
        let listen = ListenDraft { address, ..draft.clone() };
        let Kind::Server(server) = &mut b.scope().kind else { continue };
        if server.listens.iter().any(|known| known.address == listen.address && known.quic == listen.quic) {
            return Err(Refusal::whole(format!("a duplicate listen {}", listen.shown())));
        }
        server.listens.push(listen);
    }
    Ok(())
}

/// The parameter that a listen of QUIC must not have, in nginx's order.
fn not_of_quic(draft: &ListenDraft, statement: &Statement) -> Option<&'static str> {
    let has = |key: &str| statement.args.iter().skip(1).any(|word| word.text.split('=').next() == Some(key));
    [
        ("fastopen", has("fastopen")),
        ("backlog", has("backlog")),
        ("deferred", has("deferred")),
        ("ssl", draft.ssl),
        ("http2", draft.http2),
        ("so_keepalive", draft.options.keepalive.is_some()),
        ("proxy_protocol", draft.proxy_protocol),
    ]
    .into_iter()
    .find_map(|(name, is_set)| is_set.then_some(name))
}

/// The address forms of `listen`: `IP:PORT`, `IP`, `PORT`, `*:PORT`, `[IPv6]:PORT`, `HOST:PORT`, `PORT-PORT`,
/// `unix:PATH`. `default` is the port of an address without one.
pub fn addresses(b: &Build<'_>, text: &str, default: Option<u16>) -> Result<Vec<Address>, Refusal> {
    if let Some(path) = text.strip_prefix("unix:") {
        let address = Address::unix(path)
            .map_err(|what| Refusal::whole(format!("{what} in \"{text}\" of the \"listen\" directive")))?;
        return Ok(vec![address]);
    }
    let (host, ports) = split_port(text);
    let ports = match ports {
        None => match default {
            Some(port) => port..=port,
            None => return Err(Refusal::whole(format!("no port in \"{text}\" of the \"listen\" directive"))),
        },
        Some(ports) => {
            let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
            match (first.parse::<u16>(), last.parse::<u16>()) {
                (Ok(first), Ok(last)) if first > 0 && first <= last => first..=last,
                _ => return Err(Refusal::whole(format!("invalid port in \"{text}\" of the \"listen\" directive"))),
            }
        }
    };
    let ips: Vec<IpAddr> = match host {
        "" | "*" => vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
        _ => match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(v6) => vec![IpAddr::V6(v6.parse::<Ipv6Addr>().map_err(|_| {
                Refusal::whole(format!("invalid IPv6 address in \"{text}\" of the \"listen\" directive"))
            })?)],
            None => match host.parse::<IpAddr>() {
                Ok(ip) => vec![ip],
                Err(_) => (b.resolve)(host)
                    .map_err(|_| Refusal::whole(format!("host not found in \"{text}\" of the \"listen\" directive")))?
                    .iter()
                    .map(SocketAddr::ip)
                    .collect(),
            },
        },
    };
    let mut found: Vec<Address> = Vec::new();
    for address in ips.iter().flat_map(|ip| ports.clone().map(|port| Address::Tcp(SocketAddr::new(*ip, port)))) {
        // nginx: a name that resolves twice to one address names it once.
        if !found.contains(&address) {
            found.push(address);
        }
    }
    Ok(found)
}

/// Host and port of `text`; a bare number is a port.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match split_host_port(text) {
        (port, None) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit() || b == b'-') => ("", Some(port)),
        parts => parts,
    }
}

fn listen_parameter(draft: &mut ListenDraft, word: &str) -> Result<(), Refusal> {
    match word {
        "default_server" | "default" => draft.is_default = true,
        "proxy_protocol" => draft.proxy_protocol = true,
        "ssl" => draft.ssl = true,
        "http2" => draft.http2 = true,
        "quic" => draft.quic = true,
        _ => {
            if word != "bind" {
                socket_parameter(&mut draft.options, word)?;
            }
            draft.sets_options = true;
            draft.binds = true;
        }
    }
    Ok(())
}

/// A parameter of `listen` that concerns the socket.
pub fn socket_parameter(options: &mut ListenOptions, word: &str) -> Result<(), Refusal> {
    let (key, value) = match word.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (word, None),
    };
    let bad = || Refusal::whole(format!("invalid {key} \"{}\"", value.unwrap_or_default()));
    match (key, value) {
        ("backlog", Some(n)) => {
            options.backlog = value::number(n).filter(|n| *n > 0).and_then(|n| i32::try_from(n).ok()).ok_or_else(bad)?
        }
        ("rcvbuf", Some(n)) => options.receive_buffer_bytes = value::size_of(n).ok_or_else(bad)? as usize,
        ("sndbuf", Some(n)) => options.send_buffer_bytes = value::size_of(n).ok_or_else(bad)? as usize,
        ("fastopen", Some(n)) => {
            options.fastopen = Some(value::number(n).and_then(|n| u32::try_from(n).ok()).ok_or_else(bad)?)
        }
        ("deferred", None) => options.deferred = true,
        ("reuseport", None) => options.reuseport = true,
        ("ipv6only", Some("on")) => options.ipv6only = Some(true),
        ("ipv6only", Some("off")) => options.ipv6only = Some(false),
        ("so_keepalive", Some(text)) => {
            options.keepalive =
                so_keepalive(text).ok_or_else(|| Refusal::whole(format!("invalid so_keepalive value: \"{text}\"")))?
        }
        // nginx on Linux: "is not supported on this platform, ignored".
        ("accept_filter", Some(_)) => {}
        ("setfib", Some(_)) | ("multipath", None) => {
            return Err(Refusal::whole(format!("\"{key}\" is not supported on this platform, parameter \"{word}\"")));
        }
        _ => return Err(Refusal::whole(format!("invalid parameter \"{word}\""))),
    }
    Ok(())
}

/// `on`, `off` or `idle:interval:count`, each part optional.
fn so_keepalive(text: &str) -> Option<Option<weir_net::Keepalive>> {
    match text {
        "on" => return Some(Some(weir_net::Keepalive::default())),
        "off" => return Some(None),
        _ => {}
    }
    let mut parts = text.split(':');
    let mut time = || match parts.next() {
        None | Some("") => Some(None),
        Some(text) => value::whole_seconds_of(text).map(Some),
    };
    let (idle, interval) = (time()?, time()?);
    let count = match parts.next() {
        None | Some("") => None,
        Some(text) => Some(u32::try_from(value::number(text)?).ok()?),
    };
    if parts.next().is_some() || (idle.is_none() && interval.is_none() && count.is_none()) {
        return None;
    }
    Some(Some(weir_net::Keepalive { idle, interval, count }))
}

fn server_name(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    for word in &statement.args {
        let name = read_name(b, &word.text)?;
        if let Kind::Server(draft) = &mut b.scope().kind {
            draft.names.push(name);
        }
    }
    Ok(())
}

/// One name of a server.
pub fn read_name(b: &mut Build<'_>, text: &str) -> Result<Name, Refusal> {
    if let Some(pattern) = text.strip_prefix('~') {
        if pattern.is_empty() {
            return Err(Refusal::whole(format!("empty regex in server name \"{text}\"")));
        }
        // nginx: a server name's regex is caseless if it has an upper-case letter, and hosts are lower case.
        let caseless = pattern.bytes().any(|b| b.is_ascii_uppercase());
        let regex = b.regex(pattern, caseless).map_err(Refusal::whole)?;
        return Ok(Name { shown: text.to_owned(), kinds: vec![NameKind::Regex(Arc::new(regex))] });
    }
    if text.contains('/') {
        b.warn(format!("server name \"{text}\" has suspicious symbols"), None);
    }
    let lower = text.to_ascii_lowercase();
    if (lower.starts_with('*') && (lower.len() < 3 || !lower.starts_with("*."))) || lower == "." {
        return Err(Refusal::whole(format!("server name \"{text}\" is invalid")));
    }
    // nginx refuses such a name only where several servers share an address, and never matches it where one has it.
    let fits_nothing = |b: &mut Build<'_>| {
        b.warn(
            format!("server name \"{text}\" fits no host"),
            Some("write a name, *.NAME, NAME.*, or a regular expression after ~".to_owned()),
        );
        Vec::new()
    };
    let kinds = if lower == "$hostname" {
        vec![NameKind::Exact(weir_net::log::hostname().to_owned())]
    } else if let Some(rest) = lower.strip_prefix("*.") {
        match rest.contains('*') {
            true => fits_nothing(b),
            false => vec![NameKind::Suffix(format!(".{rest}"))],
        }
    } else if let Some(rest) = lower.strip_prefix('.') {
        match rest.contains('*') {
            true => fits_nothing(b),
            false => vec![NameKind::Exact(rest.to_owned()), NameKind::Suffix(lower.clone())],
        }
    } else if let Some(rest) = lower.strip_suffix(".*") {
        match rest.contains('*') {
            true => fits_nothing(b),
            false => vec![NameKind::Prefix(format!("{rest}."))],
        }
    } else if lower.contains('*') {
        fits_nothing(b)
    } else {
        vec![NameKind::Exact(lower.clone())]
    };
    let shown = if lower == "$hostname" {
        weir_net::log::hostname().to_owned()
    } else {
        lower.trim_start_matches('.').to_owned()
    };
    Ok(Name { shown, kinds })
}

/// Appends an address in the form of `$remote_addr` and `$server_addr`.
pub fn address_text(address: &SocketAddress, out: &mut Vec<u8>) {
    use std::io::Write;
    let written = match address {
        SocketAddress::Tcp(tcp) => write!(out, "{}", tcp.ip()),
        SocketAddress::Unix(_) => write!(out, "unix:"),
    };
    debug_assert!(written.is_ok());
}

#[cfg(test)]
mod tests {
    use crate::of_text;

    fn problems(server: &str) -> Vec<String> {
        of_text(&format!("events {{}} http {{ server {{ {server} }} }}")).1
    }

    #[test]
    fn a_name_that_resolves_twice_to_one_address_is_listened_on_once() {
        assert_eq!(problems("listen twice.test:1;"), [""; 0]);
        assert_eq!(problems("listen twice.test:1-3;"), [""; 0]);
        assert_eq!(problems("listen twice.test:1; listen 192.0.2.1:1;"), ["a duplicate listen 192.0.2.1:1"]);
    }

    #[test]
    fn a_name_that_fits_no_host_is_accepted_with_a_warning() {
        for name in ["www.*.com", "*.a.*", "*.*", ".a.*.b", "a.*.*"] {
            assert_eq!(
                problems(&format!("listen 1; server_name {name};")),
                [format!("server name \"{name}\" fits no host")]
            );
        }
        for name in ["*", "*a.b", "."] {
            assert_eq!(
                problems(&format!("listen 1; server_name {name};")),
                [format!("server name \"{name}\" is invalid")]
            );
        }
    }
}
