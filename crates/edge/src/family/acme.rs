//! `acme_issuer`, `acme_certificate`: weir gets certificates from an authority by itself.
//!
//! The directives and messages are those of nginx's module nginx-acme. The work is in `crate::acme`; `docs/guide/acme.md`
//! explains it to users. <https://nginx.org/en/docs/http/ngx_http_acme_module.html>

mod authority;
mod block;
mod dns;
mod share;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_acme::{CertificateOrder, ChallengeType, Identifier, KeyKind};
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::{Conf, Rule};
use weir_http::exchange::response_body::Body;
use weir_http::exchange::route::{Name, NameKind};
use weir_http::exchange::variable::Variable;
use weir_http::hold::dns::{Servers, TIMEOUT_DEFAULT};
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HTTP, ONE, SERVER};
use weir_http::read::families::Family;
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{self, Level, Os};
use weir_net::process::Identity;
use weir_net::tls::{self, ClientHello};

use self::authority::Authority;
use crate::acme::responder::ResponderSockets;
use crate::acme::{AcmeShare, Agent, Cell, Challenges, Held, Publisher, Unregistered, WantedCertificate, Work};

weir_http::settings! {
    /// `acme_certificate` of the server.
    wanted: Option<Arc<WantedCertificate>> = None,
}

/// The authorities of a configuration.
#[derive(Default)]
pub struct Declared {
    /// In the order of the file.
    pub authorities: Vec<Authority>,
    /// `resolver` and `resolver_timeout` of `http`.
    resolver: Option<(Arc<Servers>, Duration)>,
    challenges: Arc<Challenges>,
    agent: OnceLock<Agent>,
    /// `acme_dns_port`, and the time to live of its records in seconds.
    dns: Option<SocketAddr>,
    dns_ttl_s: Option<u32>,
    /// `acme_share`.
    share: Option<Arc<AcmeShare>>,
}

impl Declared {
    fn orders_something(&self) -> bool {
        self.resolver.is_some() && self.authorities.iter().any(|authority| !authority.orders.is_empty())
    }
}

/// nginx refuses zones of less than eight pages.
const ZONE_BYTES_MIN: u64 = 32 << 10;

/// The default of `acme_dns_ttl`; seconds.
const DNS_TTL_S: u32 = 60;

/// The most certificates of one authority.
const ORDERS_MAX: usize = 10_000;

/// The most hosts of one certificate.
const HOSTS_MAX: usize = 256;

/// The family.
pub static FAMILY: Family = Family::new("acme", &[
    Directive::new("acme_issuer", HTTP, ONE,
        "An authority: NAME { uri URL; account_key ALG[:SIZE]|FILE; challenge http-01|tls-alpn-01|dns-01|dns-persist-01; common_name_in_csr \
         on|off; contact URL; external_account_key KID FILE|data:KEY; preferred_chain NAME; profile NAME [require]; \
         ssl_trusted_certificate FILE; ssl_verify on|off; state_path PATH|off; accept_terms_of_service; } weir's own: \
         dns_update ADDRESS zone=NAME [key=NAME secret=BASE64|file:PATH|env:NAME] [algorithm=hmac-sha256] [ttl=60s]; \
         dns_hook FILE; dns_delay TIME;",
        block::issuer).many().block(),
    Directive::idle("acme_shared_zone", HTTP, ONE, "", "weir keeps certificates and challenges in its own memory", shared_zone),
    Directive::new("acme_certificate", SERVER, Arity::AtLeast(1),
        "Gets a certificate for the server: ISSUER [HOST …] [key=ALG[:SIZE]]; without hosts, for those of server_name.",
        certificate),
    Directive::new("acme_dns_port", HTTP, ONE,
        "weir's own (Angie's name): weir answers the questions of authorities for dns-01 itself, over UDP and TCP: [ADDRESS:]PORT.",
        |b, s| {
            let text = s.text(0);
            let address = dns::address(text, 53).ok_or_else(|| Refusal::whole(format!("invalid port \"{text}\"")))?;
            crate::declaring(b).acme.dns = Some(address);
            Ok(())
        }),
    Directive::new("acme_share", HTTP, Arity::AtLeast(1),
        "weir's own: edges share certificates, keys and challenges through Redis, and make one order together: redis://[user:password@]HOST:PORT[/DB], \
         or env:NAME or file:PATH with this URL; [prefix=weir:acme] [timeout=1s] [lease=5m] \
         [trusted_certificate=FILE].", share::read),
    Directive::new("acme_dns_ttl", HTTP, ONE, "weir's own (Angie's name): the time to live of records that acme_dns_port serves.",
        |b, s| {
            let time = u32::try_from(value::long_time_of(s.text(0)).ok_or_else(|| Refusal::directive("invalid value"))?.as_secs()).map_err(|_| Refusal::directive("invalid value"))?;
            crate::declaring(b).acme.dns_ttl_s = Some(time);
            Ok(())
        }).default("60s"),
])
.variables(&[
    Variable::without_answer("acme_certificate", |exchange, _, out| text(exchange, |held| &held.chain, out)).pem(),
    Variable::without_answer("acme_certificate_key", |exchange, _, out| text(exchange, |held| &held.key, out)).pem(),
])
.adopt(|new, old| { crate::declared_mut(new).acme.adopt(&crate::declared(old).acme); Ok(()) })
.finish(finish)
.check(check);

fn shared_zone(_: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let Some(text) = statement.text(0).strip_prefix("zone=") else {
        return Err(Refusal::whole("\"acme_shared_zone\" must have \"zone\" parameter"));
    };
    let read = text.split_once(':').and_then(|(name, size)| Some((name, value::offset_of(size)?)));
    match read {
        None => Err(Refusal::whole(format!("acme_shared_zone: invalid zone size \"{text}\""))),
        Some((name, size)) if size < ZONE_BYTES_MIN => {
            Err(Refusal::whole(format!("acme_shared_zone: zone {name} is too small")))
        }
        Some(_) => Ok(()),
    }
}

fn certificate(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let issuer = statement.text(0).to_owned();
    if issuer.is_empty() {
        return Err(Refusal::directive("\"issuer\" is missing"));
    }
    let (mut identifiers, mut key) = (Vec::new(), KeyKind::default());
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        if let Some(text) = word.strip_prefix("key=") {
            key = match KeyKind::read(text) {
                None => return Err(Refusal::directive("invalid \"key\" value")),
                Some(Err(why)) => return Err(Refusal::whole(format!("acme_certificate: {why}"))),
                Some(Ok(kind)) => kind,
            };
            continue;
        }
        if word.is_empty() {
            return Err(Refusal::directive("invalid value"));
        }
        let read = Identifier::read(word).map_err(|error| Refusal::whole(format!("acme_certificate: {error}")))?;
        identifiers.extend(read);
    }
    let wanted = WantedCertificate { issuer, identifiers, key, at: b.at(), cell: OnceLock::new() };
    crate::settings(b).acme.wanted = Some(Some(Arc::new(wanted)));
    Ok(())
}

fn text(exchange: &mut Exchange<'_>, part: fn(&Held) -> &String, out: &mut Vec<u8>) -> bool {
    let held = crate::values(exchange.location).acme.wanted.as_ref().and_then(|wanted| wanted.held());
    if let Some(held) = &held {
        out.extend_from_slice(part(held).as_bytes());
    }
    held.is_some()
}

/// Notes the resolver of `http`, and lets servers answer challenges before their own rules.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context == HTTP {
        let own = &weir_proxy::written(scope).resolver;
        let servers = own.servers.clone().flatten();
        let timeout = own.timeout.unwrap_or(TIMEOUT_DEFAULT);
        crate::declaring(b).acme.resolver = servers.map(|servers| (servers, timeout));
    }
    let is_http = |authority: &Authority| authority.issuer.challenge == ChallengeType::Http01;
    if scope.context == SERVER && crate::declaring(b).acme.authorities.iter().any(is_http) {
        scope.rules.insert(0, Rule::Answer(answer));
    }
}

/// `http-01`.
fn answer(exchange: &mut Exchange<'_>) -> bool {
    if exchange.request.method() != b"GET" {
        return false;
    }
    let Some(text) = crate::declared(exchange.conf).acme.challenges.text(exchange.uri) else { return false };
    exchange.flags.keeps_alive = false;
    let response = &mut exchange.response;
    response.status.answer(200);
    response.status_line.clear();
    response.content_type.clear();
    response.content_type.extend_from_slice(b"text/plain");
    response.content_length = Some(text.len() as u64);
    response.body = Body::Bytes(text);
    true
}

/// Gives each server its certificate, and each authority its orders.
fn check(b: &mut Build<'_>, found: &Found<'_>) {
    let mut authorities = std::mem::take(&mut crate::declaring(b).acme.authorities);
    for server in found.servers {
        let Some(root) = found.root(server.id) else { continue };
        let Some(wanted) = &crate::values(root).acme.wanted else { continue };
        if let Err(refusal) = give(b, &mut authorities, wanted, &server.names) {
            b.refuse_at("acme_certificate", refusal, wanted.at);
        }
    }
    let has_resolver = crate::declaring(b).acme.resolver.is_some();
    for authority in authorities.iter().filter(|_| !has_resolver) {
        let refusal = Refusal::whole("acme_issuer: \"resolver\" is not configured");
        let refusal = refusal.todo("add to http: resolver ADDRESS;").needs("resolver", "");
        b.refuse_at("acme_issuer", refusal, authority.at);
    }
    let has_responder = crate::declaring(b).acme.dns.is_some();
    for authority in authorities.iter_mut().filter(|authority| matches!(authority.publisher, Publisher::Nobody)) {
        if has_responder {
            authority.publisher = Publisher::Responder;
        } else if authority.issuer.challenge == ChallengeType::Dns01 {
            let refusal = Refusal::whole(
                "acme_issuer: challenge \"dns-01\" needs \"acme_dns_port\", \"dns_update\" or \"dns_hook\"",
            );
            b.refuse_at("acme_issuer", refusal, authority.at);
        }
    }
    crate::declaring(b).acme.authorities = authorities;
}

fn give(
    b: &mut Build<'_>,
    authorities: &mut [Authority],
    wanted: &WantedCertificate,
    names: &[Name],
) -> Result<(), Refusal> {
    let mut identifiers = wanted.identifiers.clone();
    if identifiers.is_empty() {
        for name in names {
            match written(name) {
                None => {
                    let what =
                        format!("\"acme_certificate\": unsupported regular expression in server_name: {}", name.shown);
                    b.stand(wanted.at);
                    b.warn(what, None);
                }
                Some(name) if name.is_empty() => {}
                Some(name) => {
                    let read = Identifier::read(&name);
                    identifiers.extend(read.map_err(|error| Refusal::whole(format!("\"acme_certificate\": {error}")))?);
                }
            }
        }
    }
    if identifiers.is_empty() {
        return Err(Refusal::whole("\"acme_certificate\": no identifiers found in \"server_name\""));
    }
    if identifiers.len() > HOSTS_MAX {
        return Err(
            Refusal::whole(format!("\"acme_certificate\": more than {HOSTS_MAX} hosts in one certificate")).weirs_own()
        );
    }
    let Some(authority) = authorities.iter_mut().find(|authority| authority.issuer.name == wanted.issuer) else {
        let refusal = Refusal::whole(format!("issuer \"{}\" is missing", wanted.issuer));
        return Err(refusal.needs("acme_issuer", &wanted.issuer));
    };
    if !authority.issuer.challenge.is_dns() && identifiers.iter().any(Identifier::is_wildcard) {
        let challenge = authority.issuer.challenge.name();
        let what = format!("the challenge {challenge} of acme issuer \"{}\" proves no wildcard name", wanted.issuer);
        b.stand(wanted.at);
        b.warn(what, Some("write challenge dns-01 in the issuer, or name each host".to_owned()));
    }
    let order = CertificateOrder { identifiers, key: wanted.key };
    let known = authority.orders.iter().find(|(known, _)| *known == order).map(|(_, cell)| cell.clone());
    let cell = match known {
        Some(known) => known,
        None if authority.orders.len() >= ORDERS_MAX => {
            return Err(Refusal::whole(format!("more than {ORDERS_MAX} certificates of one acme issuer")).weirs_own());
        }
        None => {
            let hosts = order.identifiers.iter().map(|identifier| identifier.value().to_owned()).collect();
            let cell = Arc::new(Cell::new(wanted.issuer.clone(), order.id(), hosts));
            authority.orders.push((order, cell.clone()));
            cell
        }
    };
    // Set once: a server has one root.
    let _ = wanted.cell.set(cell);
    Ok(())
}

/// A server's name as written; `None` for a regular expression.
fn written(name: &Name) -> Option<String> {
    match name.kinds.as_slice() {
        [NameKind::Exact(exact), NameKind::Suffix(_)] => Some(format!(".{exact}")),
        [NameKind::Suffix(_), NameKind::Exact(exact)] => Some(format!(".{exact}")),
        [NameKind::Exact(exact)] => Some(exact.clone()),
        [NameKind::Suffix(suffix)] => Some(format!("*{suffix}")),
        [NameKind::Prefix(prefix)] => Some(format!("{prefix}*")),
        _ => None,
    }
}

impl Declared {
    /// Takes over certificates, accounts without files, and challenges under way.
    fn adopt(&mut self, old: &Declared) {
        self.challenges = old.challenges.clone();
        for new in &mut self.authorities {
            let Some(old) = old.authorities.iter().find(|old| old.issuer.name == new.issuer.name) else { continue };
            if old.key == new.key && old.issuer.uri == new.issuer.uri {
                new.memory = old.memory.clone();
            }
            for (order, cell) in &new.orders {
                if let Some((_, old)) = old.orders.iter().find(|(known, _)| known == order) {
                    cell.adopt(old);
                }
            }
        }
    }

    /// The certificate to show in a handshake, if the client is an authority that looks at a challenge; `Err` if weir
    /// answers no such challenge.
    pub fn challenged(&self, hello: &ClientHello) -> Option<Result<tls::Server, Unregistered>> {
        let is_tls = |authority: &Authority| authority.issuer.challenge == ChallengeType::TlsAlpn01;
        if !self.authorities.iter().any(is_tls) {
            return None;
        }
        self.challenges.server(hello).transpose()
    }
}

/// Makes the directories of all authorities for the user of the workers, and binds the sockets of `acme_dns_port`, unless
/// `known` is on the same address. Failures are lines of the error log: the edge serves without them.
pub fn prepare(conf: &Conf, known: Option<&ResponderSockets>, identity: Option<&Identity>) -> Option<ResponderSockets> {
    let declared = &crate::declared(conf).acme;
    for authority in &declared.authorities {
        if let Some(directory) = &authority.directory
            && let Err(error) = directory.make(identity)
        {
            let (path, issuer) = (directory.path().display(), &authority.issuer.name);
            log::global(
                Level::Error,
                format_args!("mkdir() \"{path}\" failed {}, acme issuer: \"{issuer}\"", Os(&error)),
            );
        }
    }
    let address = declared.dns.filter(|_| declared.orders_something())?;
    if let Some(known) = known.filter(|known| known.address == address) {
        return Some(known.clone());
    }
    let bound = ResponderSockets::bind(address);
    bound
        .inspect_err(|error| {
            log::global(Level::Emerg, format_args!("acme_dns_port: bind() to {address} failed {}", Os(error)));
        })
        .ok()
}

/// Starts the work of a configuration that is about to be put in force, and ends that of the one before. If the thread
/// cannot start, the edge serves the certificates that it has.
pub fn open(conf: &Conf, old: Option<&Conf>, sockets: Option<&ResponderSockets>, identity: Option<&Identity>) {
    if let Some(old) = old {
        close(old);
    }
    let declared = &crate::declared(conf).acme;
    let Some(resolver) = &declared.resolver else { return };
    let works: Vec<Arc<Work>> = declared
        .authorities
        .iter()
        .filter(|authority| !authority.orders.is_empty())
        .map(|authority| Arc::new(authority.work(resolver, declared.share.clone())))
        .collect();
    if works.is_empty() {
        if !declared.authorities.is_empty() {
            log::global(Level::Notice, format_args!("acme: no certificates"));
        }
        return;
    }
    let responder = sockets.map(|sockets| (sockets.clone(), declared.dns_ttl_s.unwrap_or(DNS_TTL_S)));
    match Agent::start(works, declared.challenges.clone(), responder, identity.cloned()) {
        // Nothing else opens this configuration.
        Ok(agent) => drop(declared.agent.set(agent)),
        Err(error) => log::global(
            Level::Emerg,
            format_args!("thread could not be started {}: weir renews no certificates", Os(&error)),
        ),
    }
}

/// Ends the work of a configuration.
pub fn close(conf: &Conf) {
    if let Some(agent) = crate::declared(conf).acme.agent.get() {
        agent.stop();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::of_text;

    const ISSUER: &str = "resolver 127.0.0.1; acme_issuer one { uri https://ca.test/dir; ssl_verify off; }";

    fn said(http: &str) -> String {
        of_text(&format!("events {{}} http {{ {http} }}")).1.join("\n")
    }

    fn orders(server: &str) -> Vec<String> {
        let text = format!("events {{}} http {{ {ISSUER} server {{ listen 1; {server} }} }}");
        let (conf, said) = of_text(&text);
        let conf = conf.unwrap_or_else(|| unreachable!("{said:?}"));
        let orders = &crate::declared(&conf).acme.authorities[0].orders;
        orders.iter().flat_map(|(order, _)| order.identifiers.iter().map(ToString::to_string)).collect()
    }

    #[test]
    fn hosts_come_from_the_statement_or_from_the_names_of_the_server() {
        assert_eq!(
            orders("server_name .a.test b.test; acme_certificate one;"),
            ["DNS:www.a.test", "DNS:a.test", "DNS:b.test"]
        );
        assert_eq!(
            orders("server_name .a.test; acme_certificate one c.test 192.0.2.1 key=rsa;"),
            ["DNS:c.test", "IP:192.0.2.1"]
        );
        assert_eq!(orders("server_name ~x a.test; acme_certificate one;"), ["DNS:a.test"]);
    }

    #[test]
    fn a_certificate_of_weir_s_own_opens_no_file() {
        let texts = "ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;";
        let braced = texts.replace("$acme_certificate_key", "${acme_certificate_key}");
        let files = "ssl_certificate $ssl_server_name; ssl_certificate_key $ssl_server_name;";
        let all = "this name may be any file: the server process may open the whole file system for reading";
        for (certificate, warnings) in [(texts, vec![]), (&braced, vec![]), (files, vec![all; 2])] {
            let server = format!("listen 1 ssl; server_name a.test; acme_certificate one; {certificate}");
            let (conf, said) = of_text(&format!("events {{}} http {{ {ISSUER} server {{ {server} }} }}"));
            assert_eq!(said, warnings, "{certificate}");
            let opened = conf.unwrap().reach.reads().any(|place| place == std::path::Path::new("/"));
            assert_eq!(opened, !warnings.is_empty(), "{certificate}");
        }
    }

    #[test]
    fn files_are_refused_in_the_words_of_the_module() {
        let server = |text: &str| said(&format!("{ISSUER} server {{ listen 1; {text} }}"));
        for (text, expected) in [
            ("acme_certificate one;", "\"acme_certificate\": no identifiers found in \"server_name\""),
            ("acme_certificate two a.test;", "issuer \"two\" is missing"),
            (
                "acme_certificate one a..test;",
                "acme_certificate: invalid server name: unexpected character '.' at position 2",
            ),
            (
                "server_name www.a.*; acme_certificate one;",
                "\"acme_certificate\": invalid server name: unexpected character '*'",
            ),
            ("acme_certificate one a.test key=ecdsa:1;", "acme_certificate: unsupported curve"),
            ("acme_certificate one a.test key=file;", "\"acme_certificate\" directive invalid \"key\" value"),
            (
                "acme_certificate one a.test; acme_certificate one b.test;",
                "\"acme_certificate\" directive is duplicate",
            ),
            ("acme_certificate one \"\";", "\"acme_certificate\" directive invalid value"),
            ("acme_certificate \"\";", "\"issuer\" is missing"),
            ("acme_certificate one *.a.test;", "proves no wildcard name"),
        ] {
            let said = server(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
        for (text, expected) in [
            (
                "acme_issuer one { uri https://ca.test/dir; ssl_verify off; }",
                "acme_issuer: \"resolver\" is not configured",
            ),
            (
                "resolver 127.0.0.1; acme_issuer one { uri https://ca.test/dir; ssl_verify off; challenge dns; }",
                "acme_issuer: challenge \"dns-01\" needs \"acme_dns_port\", \"dns_update\" or \"dns_hook\"",
            ),
            ("acme_dns_port x;", "invalid port \"x\""),
            ("acme_shared_zone bad;", "\"acme_shared_zone\" must have \"zone\" parameter"),
            ("acme_shared_zone zone=a:bad;", "acme_shared_zone: invalid zone size \"a:bad\""),
            ("acme_shared_zone zone=a;", "acme_shared_zone: invalid zone size \"a\""),
            ("acme_shared_zone zone=a:1k;", "acme_shared_zone: zone a is too small"),
        ] {
            let said = said(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
