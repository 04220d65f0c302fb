//! `proxy_ssl_*`: TLS to upstreams, for `proxy_pass https://…`, and for sessions of `stream` with `proxy_ssl on`.
//!
//! A block that passes requests over TLS gets a [`Tls`]; blocks with the same settings share it. A [`Party`] adds the
//! parts that differ between exchanges: the server's name, and a certificate named by variables. weir reuses
//! connections and sessions only for the same party. `handshake` runs the handshake of a connection. Certificates and
//! keys are read as for servers (`ssl`). <https://nginx.org/en/docs/http/ngx_http_proxy_module.html>

pub mod command;
pub mod fault;
pub mod handshake;
pub mod sessions;

use std::sync::Arc;

use command::Commands;
use weir_conf::Statement;
use weir_http::exchange::subject::Subject;
use weir_http::family::certificates::source::{self, CertificateCache, Half};
use weir_http::family::certificates::{self};
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{HSL, SS, STREAM_SERVER};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Reads, Template};
use weir_net::tls::ciphers::{Ciphers, Protocols};
use weir_net::tls::{Client, KeyLogFile, OriginOptions, Trust, certificates, revocation_lists};
use weir_wire::Version;

use crate::family::proxy::pass::Pass;

weir_http::settings! {
    /// `proxy_ssl_session_reuse`.
    session_reuse: bool = true,
    /// `proxy_ssl_protocols`.
    protocols: Protocols = Protocols::default(),
    /// `proxy_ssl_ciphers`, as written.
    ciphers: String = "DEFAULT".to_owned(),
    /// `proxy_ssl_name`: the template, and the text as written.
    name: Option<(Template, String)> = None,
    /// `proxy_ssl_server_name`.
    server_name: bool = false,
    /// `proxy_ssl_verify`.
    verify: bool = false,
    /// `proxy_ssl_verify_depth`.
    verify_depth: u16 = 1,
    /// `proxy_ssl_trusted_certificate`.
    trusted_certificate: String = String::new(),
    /// `proxy_ssl_crl`.
    crl: String = String::new(),
    /// `proxy_ssl_certificate`: the template, and the text as written.
    certificate: (Template, String) = Default::default(),
    /// `proxy_ssl_certificate_key`: the template, and the text as written.
    certificate_key: Option<(Template, String)> = None,
    /// `proxy_ssl_certificate_cache`.
    certificate_cache: Option<Arc<CertificateCache>> = None,
    /// `proxy_ssl_password_file`: its passwords.
    passwords: Arc<Vec<Vec<u8>>> = Arc::default(),
    /// `proxy_ssl_conf_command`.
    commands: Commands = Commands::default(),
    /// `proxy_ssl_key_log`.
    key_log: Option<String> = None,
    /// `proxy_ssl`, of `stream`.
    enabled: bool = false,
    /// `proxy_ssl_alpn`, of `stream`.
    protocols_offered: Arc<Vec<Template>> = Arc::default(),
    /// The TLS settings of this block, if it passes requests over TLS.
    tls: Option<Arc<Tls>> = None,
    /// The party of this block, if it does not depend on the exchange.
    party: Option<Arc<Party>> = None,
}

/// The compiled settings: blocks with equal settings share them.
#[derive(Default)]
pub struct Declared {
    made: Vec<(Written, Arc<Tls>)>,
    parties: Vec<Arc<Party>>,
}

/// The TLS settings of one or several blocks.
pub struct Tls {
    client: Client,
    /// The server's certificate must match the party's name.
    verifies: bool,
    /// The party has a name: weir sends it, checks it, or both.
    is_named: bool,
    /// The passwords for keys that variables name.
    passwords: Arc<Vec<Vec<u8>>>,
    cache: Option<Arc<CertificateCache>>,
}

/// The identity of a connection: the settings, the server's name, and weir's own certificate.
pub struct Party {
    tls: Arc<Tls>,
    /// Without port and brackets; empty if weir neither sends nor checks it.
    name: Box<str>,
    /// Certificate and key, if variables name them.
    certificate: Option<(Box<str>, Box<str>)>,
}

impl Party {
    /// Whether variables named the certificate.
    pub fn shows_its_own(&self) -> bool {
        self.certificate.is_some()
    }
}

impl PartialEq for Party {
    fn eq(&self, other: &Party) -> bool {
        Arc::ptr_eq(&self.tls, &other.tls) && self.name == other.name && self.certificate == other.certificate
    }
}

/// The party that an exchange needs.
pub enum AskedTls<'c> {
    /// Plain text.
    Nothing,
    /// The same for all exchanges of a block.
    Fixed(&'c Arc<Party>),
    /// Made from variables.
    Own(Arc<Party>),
}

impl AskedTls<'_> {
    /// The party, if the connection uses TLS.
    pub fn party(&self) -> Option<&Arc<Party>> {
        match self {
            AskedTls::Nothing => None,
            AskedTls::Fixed(party) => Some(party),
            AskedTls::Own(party) => Some(party),
        }
    }
}

/// The directives, under a family's prefix.
macro_rules! towards_origins {
    ($prefix:literal, $places:expr, [$($path:tt)+] $(, $more:expr)* $(,)?) => {{
        use weir_http::read::directive::{Arity, Directive, ONE, TWO};
        use weir_http::family::certificates;
        use weir_http::text::value;
        use $crate::family::proxy_ssl::{ciphers, protocols};
        &[
            Directive::new(
                concat!($prefix, "_session_reuse"),
                $places,
                Arity::Flag,
                "Resumes TLS sessions with upstreams.",
                |b, s| {
                    crate::settings(b).$($path)+.session_reuse = Some(value::flag(s)?);
                    Ok(())
                },
            )
            .default("on"),
            Directive::new(
                concat!($prefix, "_protocols"),
                $places,
                Arity::AtLeast(1),
                "The TLS versions that weir offers to upstreams: TLSv1.2 TLSv1.3.",
                |b, s| protocols(b, s, |all| &mut all.$($path)+),
            )
            .many()
            .default("TLSv1.2 TLSv1.3"),
            Directive::new(
                concat!($prefix, "_ciphers"),
                $places,
                ONE,
                "The cipher suites of TLS 1.2 that weir offers to upstreams, as an OpenSSL list.",
                |b, s| ciphers(b, s, |all| &mut all.$($path)+),
            )
            .default("DEFAULT"),
            Directive::new(
                concat!($prefix, "_name"),
                $places,
                ONE,
                "The name that the upstream's certificate must contain, and that weir sends to the upstream.",
                |b, s| {
                    let template = b.template(s.text(0))?;
                    crate::settings(b).$($path)+.name = Some(Some((template, s.text(0).to_owned())));
                    Ok(())
                },
            )
            .default("$proxy_host"),
            Directive::new(
                concat!($prefix, "_server_name"),
                $places,
                Arity::Flag,
                "Sends the name to upstreams (SNI).",
                |b, s| {
                    crate::settings(b).$($path)+.server_name = Some(value::flag(s)?);
                    Ok(())
                },
            )
            .default("off"),
            Directive::new(
                concat!($prefix, "_verify"),
                $places,
                Arity::Flag,
                "Checks the certificates of upstreams.",
                |b, s| {
                    crate::settings(b).$($path)+.verify = Some(value::flag(s)?);
                    Ok(())
                },
            )
            .default("off"),
            Directive::new(
                concat!($prefix, "_verify_depth"),
                $places,
                ONE,
                "The largest number of authorities between an upstream's certificate and a trusted one.",
                |b, s| {
                    crate::settings(b).$($path)+.verify_depth = Some(value::at_most(s, u64::from(u16::MAX))? as u16);
                    Ok(())
                },
            )
            .default("1"),
            Directive::new(
                concat!($prefix, "_trusted_certificate"),
                $places,
                ONE,
                "A PEM file with the trusted authorities.",
                |b, s| {
                    crate::settings(b).$($path)+.trusted_certificate = Some(s.text(0).to_owned());
                    Ok(())
                },
            ),
            Directive::new(
                concat!($prefix, "_crl"),
                $places,
                ONE,
                "A PEM file with the revocation lists, one for each authority.",
                |b, s| {
                    crate::settings(b).$($path)+.crl = Some(s.text(0).to_owned());
                    Ok(())
                },
            ),
            Directive::new(
                concat!($prefix, "_certificate"),
                $places,
                ONE,
                "A PEM file with the certificate that weir shows to upstreams that request one; variables are allowed.",
                |b, s| {
                    let template = b.template(s.text(0))?;
                    weir_http::family::certificates::source::reach(b, s.text(0), &template);
                    crate::settings(b).$($path)+.certificate = Some((template, s.text(0).to_owned()));
                    Ok(())
                },
            ),
            Directive::new(
                concat!($prefix, "_certificate_key"),
                $places,
                ONE,
                "A PEM file with the key of the certificate that weir shows to upstreams; variables are allowed.",
                |b, s| {
                    let template = b.template(s.text(0))?;
                    weir_http::family::certificates::source::reach(b, s.text(0), &template);
                    crate::settings(b).$($path)+.certificate_key = Some(Some((template, s.text(0).to_owned())));
                    Ok(())
                },
            ),
            Directive::new(
                concat!($prefix, "_certificate_cache"),
                $places,
                Arity::Between(1, 3),
                "Caches certificates and keys whose file names contain variables: off, or max=N [inactive=TIME] \
                 [valid=TIME].",
                |b, s| {
                    crate::settings(b).$($path)+.certificate_cache = Some(certificates::source::cache(s)?);
                    Ok(())
                },
            )
            .default("off"),
            Directive::new(
                concat!($prefix, "_password_file"),
                $places,
                ONE,
                "A file with passwords for encrypted keys, one per line; weir tries each in turn.",
                |b, s| {
                    let lines = certificates::passwords(b, s)?;
                    crate::settings(b).$($path)+.passwords = Some(lines);
                    Ok(())
                },
            ),
            Directive::new(
                concat!($prefix, "_conf_command"),
                $places,
                TWO,
                "An OpenSSL setting: Ciphersuites, CipherString, MinProtocol, MaxProtocol, Certificate, PrivateKey.",
                |b, s| crate::settings(b).$($path)+.commands.get_or_insert_default().add(s.text(0), s.text(1)),
            )
            .many(),
            Directive::new(
                concat!($prefix, "_key_log"),
                $places,
                ONE,
                "The file to which weir writes the keys of connections to upstreams, for Wireshark.",
                |b, s| {
                    let path = b.path(s.text(0));
                    b.reach.write_file(&path);
                    crate::settings(b).$($path)+.key_log = Some(Some(path));
                    Ok(())
                },
            ),
            $( $more, )*
        ]
    }};
}

pub(crate) use towards_origins;

/// The family.
pub static FAMILY: Family = Family::new(
    "proxy_ssl",
    towards_origins!(
        "proxy_ssl",
        HSL.or(SS),
        [proxy_ssl],
        Directive::new("proxy_ssl", SS, Arity::Flag, "Speaks TLS to the peers of sessions.", |b, s| {
            crate::settings(b).proxy_ssl.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new(
            "proxy_ssl_alpn",
            SS,
            Arity::AtLeast(1),
            "The protocols that weir offers to the peers of sessions (ALPN); variables are allowed.",
            |b, s| {
                let mut names = Vec::with_capacity(s.args.len());
                for word in &s.args {
                    names.push(b.template(&word.text)?);
                }
                crate::settings(b).proxy_ssl.protocols_offered = Some(Arc::new(names));
                Ok(())
            },
        ),
    ),
)
.finish(finish);

/// Selects the family's settings in a block.
pub type TlsOf = fn(&mut crate::family::Settings) -> &mut Settings;

/// `…_ssl_protocols`.
pub fn protocols(b: &mut Build<'_>, statement: &Statement, of: TlsOf) -> Result<(), Refusal> {
    for word in &statement.args {
        if Protocols::of_words([word.text.as_str()]).is_none() {
            return Err(
                Refusal::whole(format!("invalid value \"{}\"", word.text)).todo("write TLSv1.2, TLSv1.3 or both")
            );
        }
    }
    let words = statement.args.iter().map(|word| word.text.as_str());
    let Some(chosen) = Protocols::of_words(words) else { return Ok(()) };
    if chosen.kept.is_empty() {
        let asked = chosen.left_out.join(" ");
        return Err(Refusal::whole(format!("weir does not support {asked}, which is no longer safe"))
            .weirs_own()
            .todo(
                "write: proxy_ssl_protocols TLSv1.2 TLSv1.3; or put a TLS proxy in front of an upstream that is older",
            ));
    }
    if !chosen.left_out.is_empty() {
        b.warn(
            format!("weir does not support {}", chosen.left_out.join(" ")),
            Some("weir uses the other versions of the list".to_owned()),
        );
    }
    // nginx: repeated in one block, the lists add up.
    let protocols = of(crate::settings(b)).protocols.get_or_insert(chosen.kept);
    *protocols = protocols.with(chosen.kept);
    Ok(())
}

/// `…_ssl_ciphers`.
pub fn ciphers(b: &mut Build<'_>, statement: &Statement, of: TlsOf) -> Result<(), Refusal> {
    ciphers_of(statement.text(0))?;
    of(crate::settings(b)).ciphers = Some(statement.text(0).to_owned());
    Ok(())
}

fn ciphers_of(list: &str) -> Result<Ciphers, Refusal> {
    let chosen = Ciphers::of_list(list).map_err(|nothing| {
        Refusal::whole(format!("SSL_CTX_set_cipher_list(\"{list}\") failed (SSL: {nothing})"))
            .weirs_own()
            .todo("name suites with ECDHE and GCM or CHACHA20, such as ECDHE-RSA-AES128-GCM-SHA256, or DEFAULT")
    })?;
    Ok(chosen.kept)
}

/// The text of a file; a relative name starts at the configuration's directory, as in nginx.
fn read(b: &mut Build<'_>, doing: &str, name: &str) -> Result<Arc<Vec<u8>>, Refusal> {
    certificates::read(b, name).map_err(|(path, error)| Refusal::whole(format!("{doing} \"{path}\" failed {error}")))
}

/// The settings that determine a connection; equal ones share their `Tls`.
#[derive(PartialEq)]
struct Written {
    session_reuse: bool,
    protocols: Protocols,
    ciphers: String,
    server_name: bool,
    verify: bool,
    verify_depth: u16,
    trusted_certificate: String,
    crl: String,
    certificate: String,
    certificate_key: Option<String>,
    /// The address of the cache: two directives make two caches.
    cache: Option<usize>,
    passwords: Arc<Vec<Vec<u8>>>,
    commands: Commands,
    key_log: Option<String>,
    is_h2: bool,
}

impl Written {
    fn of(values: &Values, is_h2: bool) -> Written {
        Written {
            is_h2,
            session_reuse: values.session_reuse,
            protocols: values.protocols,
            ciphers: values.ciphers.clone(),
            server_name: values.server_name,
            verify: values.verify,
            verify_depth: values.verify_depth,
            trusted_certificate: values.trusted_certificate.clone(),
            crl: values.crl.clone(),
            certificate: values.certificate.1.clone(),
            certificate_key: values.certificate_key.as_ref().map(|(_, text)| text.clone()),
            cache: values.certificate_cache.as_ref().map(|cache| Arc::as_ptr(cache) as usize),
            passwords: values.passwords.clone(),
            commands: values.commands.clone(),
            key_log: values.key_log.clone(),
        }
    }
}

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context == STREAM_SERVER {
        return finish_sessions(b, scope);
    }
    let mut settings = std::mem::take(&mut crate::written_mut(scope).proxy_ssl);
    if let Some(Some(pass)) = &crate::written(scope).proxy.pass {
        let is_h2 = crate::written(scope).proxy.version == Some(Version::Http2);
        compile_block(b, &mut settings, (pass, is_h2), scope);
    }
    crate::written_mut(scope).proxy_ssl = settings;
}

/// Compiles a server of `stream` with `proxy_ssl on`. Its party depends on the session: the name is the group's.
fn finish_sessions(b: &mut Build<'_>, scope: &mut Scope) {
    let settings = crate::written(scope).proxy_ssl.clone();
    if settings.enabled != Some(true) {
        return;
    }
    if let Some(tls) = tls_of(b, &settings.values(), false, ("proxy_ssl", "proxy"), scope) {
        crate::written_mut(scope).proxy_ssl.tls = Some(Some(tls));
    }
}

/// Compiles a block that passes requests over TLS, or that may do so because its target has variables.
pub fn compile_block(b: &mut Build<'_>, settings: &mut Settings, (pass, is_h2): (&Pass, bool), scope: &Scope) {
    if !pass.is_tls && pass.template.is_none() {
        return;
    }
    let values = settings.clone().values();
    let place = (pass.scheme.directive(), pass.scheme.family());
    let Some(tls) = tls_of(b, &values, is_h2, place, scope) else { return };
    let party = fixed_party(&values, pass, &tls).map(|party| {
        let parties = &mut crate::declaring(b).proxy_ssl.parties;
        let known = parties.iter().find(|known| ***known == party).cloned();
        known.unwrap_or_else(|| {
            let party = Arc::new(party);
            parties.push(party.clone());
            party
        })
    });
    settings.tls = Some(Some(tls));
    settings.party = Some(party);
}

/// The compiled settings, shared with equal ones; `None` if they are refused. The place is the directive that passes
/// requests on, and its family.
fn tls_of(
    b: &mut Build<'_>,
    values: &Values,
    is_h2: bool,
    (directive, family): (&'static str, &str),
    scope: &Scope,
) -> Option<Arc<Tls>> {
    let written = Written::of(values, is_h2);
    let known = crate::declaring(b).proxy_ssl.made.iter().find(|(made, _)| *made == written);
    if let Some((_, tls)) = known {
        return Some(tls.clone());
    }
    match compile(b, values, is_h2) {
        Ok(tls) => {
            let tls = Arc::new(tls);
            crate::declaring(b).proxy_ssl.made.push((written, tls.clone()));
            Some(tls)
        }
        Err(refusal) => {
            let (about, number) = refusal.place.unwrap_or((directive, 0));
            // Each family has its own names for the same settings.
            let named = |text: &str| text.replace("proxy_ssl", &format!("{family}_ssl"));
            let (about, what) = (named(about), named(&refusal.what));
            b.refuse_at(directive, Refusal { what, ..refusal }, scope.place(&about, number));
            None
        }
    }
}

fn compile(b: &mut Build<'_>, values: &Values, is_h2: bool) -> Result<Tls, Refusal> {
    let trust = if values.verify { Some((trust(b, values)?, usize::from(values.verify_depth))) } else { None };
    let (protocols, ciphers) = values.commands.apply(values.protocols, ciphers_of(&values.ciphers)?)?;
    let options = OriginOptions {
        protocols,
        ciphers,
        trust,
        sends_name: values.server_name,
        resumes: values.session_reuse,
        // nginx offers no ALPN for HTTP/1.1.
        alpn: if is_h2 { vec![b"h2".to_vec()] } else { Vec::new() },
        key_log: values.key_log.as_ref().map(|path| Arc::new(KeyLogFile::new(path))),
    };
    let client = Client::for_origins(options).map_err(|error| {
        Refusal::whole(format!("weir cannot use TLS to upstreams: {error}"))
            .weirs_own()
            .todo("name cipher suites of the versions in proxy_ssl_protocols")
    })?;
    let written = values.certificate.0.literal();
    let client = match (written, &values.certificate_key) {
        (Some(b""), _) => client,
        (_, None) => {
            let certificate = &values.certificate.1;
            return Err(Refusal::whole(format!(
                "no \"proxy_ssl_certificate_key\" is defined for certificate \"{certificate}\""
            ))
            .needs("proxy_ssl_certificate_key", "")
            .about("proxy_ssl_certificate", 0));
        }
        (Some(_), Some((key, name))) if key.literal().is_some() => {
            show(b, values, &client, &values.certificate.1, name)?
        }
        _ => client,
    };
    let client = match &values.commands.pair {
        (Some(certificate), Some(key)) => show(b, values, &client, certificate, key)?,
        _ => client,
    };
    Ok(Tls {
        client,
        verifies: values.verify,
        is_named: values.verify || values.server_name,
        passwords: values.passwords.clone(),
        cache: values.certificate_cache.clone(),
    })
}

fn show(b: &mut Build<'_>, values: &Values, client: &Client, certificate: &str, key: &str) -> Result<Client, Refusal> {
    let about = |(half, words): (Half, String)| {
        let directive = match half {
            Half::Certificate => "proxy_ssl_certificate",
            Half::Key => "proxy_ssl_certificate_key",
        };
        Refusal::whole(words).about(directive, 0)
    };
    source::load_once(b, (certificate, key), &values.passwords).map(|pair| client.showing(&pair)).map_err(about)
}

fn trust(b: &mut Build<'_>, values: &Values) -> Result<Trust, Refusal> {
    let name = &values.trusted_certificate;
    if name.is_empty() {
        return Err(Refusal::whole("no proxy_ssl_trusted_certificate for proxy_ssl_verify")
            .todo("name a file, such as the system's file: proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt")
            .about("proxy_ssl_verify", 0));
    }
    const FILE: &str = "proxy_ssl_trusted_certificate";
    let text = read(b, "SSL_CTX_load_verify_locations()", name).map_err(|refusal| refusal.about(FILE, 0))?;
    let bad = |doing: &str, name: &str, why: &str| Refusal::whole(format!("{doing}(\"{name}\") failed (SSL: {why})"));
    let mut trust = certificates(&text)
        .and_then(|all| if all.is_empty() { Err("the file contains no certificate".to_owned()) } else { Ok(all) })
        .and_then(|all| Trust::new(all).map_err(|flaw| format!("weir cannot read a certificate: {flaw}")))
        .map_err(|why| bad("SSL_CTX_load_verify_locations", name, &why).about(FILE, 0))?;
    if !values.crl.is_empty() {
        let text =
            read(b, "X509_LOOKUP_load_file()", &values.crl).map_err(|refusal| refusal.about("proxy_ssl_crl", 0))?;
        let lists = revocation_lists(&text)
            .map_err(|why| bad("X509_LOOKUP_load_file", &values.crl, &why).about("proxy_ssl_crl", 0))?;
        let refused = |why: &str| bad("X509_LOOKUP_load_file", &values.crl, why).about("proxy_ssl_crl", 0);
        if lists.is_empty() {
            return Err(refused("the file contains no revocation list"));
        }
        for list in &lists {
            trust.add_list(list).map_err(|flaw| refused(&format!("weir cannot read a revocation list: {flaw}")))?;
        }
    }
    Ok(trust)
}

/// The party of a block, if all its exchanges have the same party.
fn fixed_party(values: &Values, pass: &Pass, tls: &Arc<Tls>) -> Option<Party> {
    let name = match (&values.name, tls.is_named) {
        (_, false) => "",
        (Some((name, _)), true) => std::str::from_utf8(name.literal()?).ok()?,
        (None, true) if pass.template.is_none() => &pass.host,
        (None, true) => return None,
    };
    if is_variable(values) {
        return None;
    }
    Some(Party { tls: tls.clone(), name: bare(name).into(), certificate: None })
}

/// Whether variables name the certificate or its key.
fn is_variable(values: &Values) -> bool {
    let is_key_literal = values.certificate_key.as_ref().is_none_or(|(key, _)| key.literal().is_some());
    match values.certificate.0.literal() {
        Some(b"") => false,
        Some(_) => !is_key_literal,
        None => true,
    }
}

/// A host without its port and its brackets.
fn bare(name: &str) -> &str {
    match name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => name.split(':').next().unwrap_or_default(),
    }
}

/// The party that the exchange's connection needs; `host` is the host of `proxy_pass`.
pub fn asked<'c>(subject: &mut impl Subject<'c>, host: &[u8]) -> AskedTls<'c> {
    let values = &crate::values(subject.place()).proxy_ssl;
    if let Some(party) = &values.party {
        return AskedTls::Fixed(party);
    }
    let Some(tls) = &values.tls else { return AskedTls::Nothing };
    let name = match &values.name {
        _ if !tls.is_named => Vec::new(),
        Some((name, _)) => name.text(subject),
        None => host.to_vec(),
    };
    let certificate = match &values.certificate_key {
        Some((key, _)) if is_variable(values) => {
            let certificate = text(&values.certificate.0, subject);
            // nginx: an empty name means no certificate.
            if certificate.is_empty() { None } else { Some((certificate, text(key, subject))) }
        }
        _ => None,
    };
    let name = String::from_utf8_lossy(&name);
    AskedTls::Own(Arc::new(Party { tls: tls.clone(), name: bare(&name).into(), certificate }))
}

/// The protocols that a session offers: those of `proxy_ssl_alpn` with a valid value.
pub fn offered<'c>(subject: &mut impl Subject<'c>) -> Vec<Vec<u8>> {
    let names = &crate::values(subject.place()).proxy_ssl.protocols_offered;
    let values = names.iter().map(|name| name.text(subject));
    values.filter(|name| (1..=255).contains(&name.len())).collect()
}

fn text(template: &Template, reader: &mut impl Reads) -> Box<str> {
    String::from_utf8_lossy(&template.text(reader)).into()
}

#[cfg(test)]
mod tests;
