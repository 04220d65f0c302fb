//! `resolver` and `resolver_timeout`: the DNS servers for names at run time.
//!
//! `dns` sends the queries; `upstream::forward` resolves names in `proxy_pass`, and `upstream::live` resolves names of
//! upstreams' servers. <https://nginx.org/en/docs/http/ngx_http_core_module.html#resolver>

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::build::Build;
use weir_http::directive::{Arity, Directive, HSL, ONE, UPSTREAM};
use weir_http::families::Family;
use weir_http::refusal::Refusal;
use weir_http::{authority, value};

use crate::dns::{Servers, Zone};

weir_http::settings! {
    /// `resolver`.
    servers: Option<Arc<Servers>> = None,
    /// `resolver_timeout`.
    timeout: Duration = TIMEOUT_DEFAULT,
}

/// The default of `resolver_timeout`.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// The most servers of one `resolver`.
const SERVERS_MAX: usize = 64;

/// All resolvers of a configuration.
#[derive(Default)]
pub struct Declared {
    /// By their number.
    pub all: Vec<Arc<Servers>>,
}

impl Declared {
    /// The status zones, each once, in the order of the file.
    pub fn zones(&self) -> Vec<&Arc<Zone>> {
        let mut zones: Vec<&Arc<Zone>> = Vec::new();
        for servers in &self.all {
            if !zones.iter().any(|zone| zone.name == servers.zone.name) {
                zones.push(&servers.zone);
            }
        }
        zones
    }
}

/// The family.
pub static FAMILY: Family = Family::new(
    "resolver",
    &[
        Directive::new(
            "resolver",
            HSL.or(UPSTREAM),
            Arity::AtLeast(1),
            "Names the DNS servers that weir asks at run time: addresses, valid= ipv4= ipv6= status_zone=.",
            resolver,
        ),
        Directive::new("resolver_timeout", HSL.or(UPSTREAM), ONE, "The longest time for resolving a name.", |b, s| {
            crate::settings(b).resolver.timeout = Some(value::time(s)?);
            Ok(())
        })
        .default("30s"),
    ],
)
.adopt(|new, old| {
    for zone in crate::declared(new).resolver.zones() {
        if let Some(old) = crate::declared(old).resolver.zones().into_iter().find(|old| old.name == zone.name) {
            zone.adopt(old);
        }
    }
    Ok(())
});

fn resolver(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (mut servers, mut valid, mut ipv4, mut ipv6, mut zone) = (Vec::new(), None, true, true, None);
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let invalid = || Refusal::whole(format!("invalid parameter: {word}"));
        match word.split_once('=') {
            Some(("valid", text)) => valid = Some(value::time_of(text).ok_or_else(invalid)?),
            Some(("ipv4", text)) => ipv4 = on_or_off(text).ok_or_else(invalid)?,
            Some(("ipv6", text)) => ipv6 = on_or_off(text).ok_or_else(invalid)?,
            Some(("status_zone", "")) => return Err(invalid()),
            Some(("status_zone", name)) => zone = Some(name.to_owned()),
            Some(_) | None => servers.extend(server(b, word)?),
        }
    }
    if !ipv4 && !ipv6 {
        return Err(Refusal::whole("\"ipv4\" and \"ipv6\" cannot both be \"off\""));
    }
    if servers.is_empty() {
        return Err(Refusal::whole("no name servers defined").todo("name a server: resolver 127.0.0.53;"));
    }
    if servers.len() > SERVERS_MAX {
        return Err(Refusal::whole(format!("more than {SERVERS_MAX} name servers in resolver")));
    }
    let name = zone.unwrap_or_else(|| servers.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" "));
    let all = &mut crate::declaring(b).resolver.all;
    let known = all.iter().find(|known| known.zone.name == name).map(|known| known.zone.clone());
    let zone = known.unwrap_or_else(|| Arc::new(Zone::new(name)));
    let mut servers = Servers::new(all.len(), servers, zone);
    (servers.valid, servers.ipv4, servers.ipv6) = (valid, ipv4, ipv6);
    let servers = Arc::new(servers);
    all.push(servers.clone());
    crate::settings(b).resolver.servers = Some(Some(servers));
    Ok(())
}

fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The addresses of one server; a name is resolved when the configuration is read.
fn server(b: &Build<'_>, word: &str) -> Result<Vec<SocketAddr>, Refusal> {
    let addresses = authority::resolve_in(b, word, 53, "resolver")?;
    let tcp: Vec<SocketAddr> = addresses.iter().filter_map(weir_net::Address::tcp).collect();
    if tcp.is_empty() {
        return Err(Refusal::whole(format!("invalid address in resolver \"{word}\""))
            .todo("write an address: weir asks name servers over UDP and TCP"));
    }
    Ok(tcp)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use crate::of_text;

    fn problems(line: &str) -> Vec<String> {
        of_text(&format!("events {{}}\nhttp {{ {line} server {{ listen 80; }} }}")).1
    }

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (line, words) in [
            ("resolver 127.0.0.1 valid=x;", "invalid parameter: valid=x"),
            ("resolver 127.0.0.1 ipv6=maybe;", "invalid parameter: ipv6=maybe"),
            ("resolver 127.0.0.1 ipv4=off ipv6=off;", "\"ipv4\" and \"ipv6\" cannot both be \"off\""),
            ("resolver valid=5s;", "no name servers defined"),
            ("resolver 127.0.0.1:0;", "invalid port in resolver \"127.0.0.1:0\""),
            ("resolver unix:/x;", "invalid address in resolver \"unix:/x\""),
            ("resolver 127.0.0.1; resolver 127.0.0.2;", "\"resolver\" directive is duplicate"),
            (
                "upstream u { zone z 1m; server a.example resolve; }",
                "no resolver defined to resolve names at run time in upstream \"u\"",
            ),
            (
                "resolver [::1]; upstream u { server a.example resolve; }",
                "resolving names at run time requires upstream \"u\" to be in shared memory",
            ),
            (
                "resolver [::1]; upstream u { zone z 1m; server a.example service=x; }",
                "service upstream \"a.example\" requires \"resolve\" parameter",
            ),
            (
                "resolver [::1]; upstream u { zone z 1m; server a.example:80 service=x resolve; }",
                "service upstream \"a.example:80\" may not have port",
            ),
            (
                "resolver [::1]; upstream u { zone z 1m; server 127.0.0.1 service=x resolve; }",
                "service upstream \"127.0.0.1\" requires domain name",
            ),
            ("resolver [::1]; upstream u { zone z 1m; server a.example service= resolve; }", "service is empty"),
        ] {
            assert_eq!(problems(line), [words], "{line}");
        }
    }

    #[test]
    fn a_zone_is_shared_and_outlives_a_reload() {
        let text = "events {}\nhttp { resolver 127.0.0.1 status_zone=z; server { listen 80; resolver 127.0.0.2 status_zone=z; \
                    location / { resolver 127.0.0.3:5353 [::1]; } } }";
        let (old, new) = (of_text(text).0.unwrap(), of_text(text).0);
        let names: Vec<_> = crate::declared(&old).resolver.zones().iter().map(|zone| zone.name.clone()).collect();
        assert_eq!(names, ["z", "127.0.0.3:5353 [::1]:53"]);
        crate::declared(&old).resolver.zones()[0].counters().asked(weir_wire::dns::Kind::A);
        let mut new = new.unwrap();
        crate::families().adopt(&mut new, &old).unwrap();
        let counted = &crate::declared(&new).resolver.zones()[0].counters().name;
        assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
