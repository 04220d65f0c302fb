//! Builds a server's TLS once its block is read.

use std::sync::{Arc, Mutex, PoisonError};

use weir_http::exchange::route::ServerId;
use weir_http::family::certificates::source::{self, CertificateCache, CertificateSource, Watch};
use weir_http::family::certificates::{self};
use weir_http::hold::client::HQ;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{SERVER, STREAM_SERVER};
use weir_http::read::found::Found;
use weir_http::read::listens::Drafted;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_net::log::{self, Level};
use weir_net::tls::{
    self, CertificateFacts, Context, Flaw, KeyPair, Server, ServerOptions, TicketKeys, Trust, certificates, context_of,
    revocation_lists, subject_der,
};
use weir_proxy::family::resolver;

use super::stapling::{self, Stapler};
use super::status::{self, Checked, Checks};
use super::{Settings, Values, Verify, command, sessions};
use crate::acme::WantedCertificate;

/// The TLS of a server.
pub struct ServerTls {
    certificates: Certificates,
    sources: Vec<(CertificateSource, CertificateSource)>,
    passwords: Arc<Vec<Vec<u8>>>,
    directory: String,
    staple: Option<Vec<u8>>,
    staplers: Vec<Arc<Stapler>>,
    cache: Option<Arc<CertificateCache>>,
    /// The trusted authorities for chains of clients, if the server asks for client certificates.
    pub trust: Trust,
    /// `ssl_verify_depth`.
    pub depth: usize,
    /// The checks of client certificates at OCSP responders.
    pub checks: Option<Checks>,
    /// The server asks clients for a certificate.
    pub asks: bool,
    /// The server accepts early data.
    pub takes_early: bool,
    /// The certificates of files, for people.
    known: Mutex<Vec<Known>>,
    /// Binds sessions: equal in servers with the same certificates and the same trust.
    pub context: Context,
}

/// A certificate of a file, for people.
#[derive(Clone)]
pub struct Known {
    /// The file, as written.
    pub source: String,
    /// Hosts and times.
    pub facts: CertificateFacts,
}

/// The source of the certificates.
enum Certificates {
    Fixed(Speakers),
    /// Reloaded when the files change.
    Watched(Mutex<(Speakers, Watch)>),
    /// weir gets the certificate itself: the server for the certificate of this number, and the server without one.
    Issued(Arc<WantedCertificate>, Mutex<(u64, Speakers)>),
    /// The names have variables: certificates are loaded for each client.
    Named(Speakers),
}

/// The highest version of HTTP that a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// HTTP/1.1, or the protocols of a `server` of `stream`.
    Http1,
    /// HTTP/2 too.
    Http2,
    /// HTTP/3, in QUIC.
    Http3,
}

/// The server for each kind of client.
#[derive(Clone)]
struct Speakers {
    http1: Server,
    http2: Server,
    /// `None` without TLS 1.3.
    http3: Option<Server>,
}

impl Speakers {
    fn with(&self, identities: &[KeyPair]) -> Speakers {
        let with = |server: &Server| server.with_identities(identities);
        Speakers { http1: with(&self.http1), http2: with(&self.http2), http3: self.http3.as_ref().map(with) }
    }

    fn one(&self, above: Above) -> Result<Server, (Level, String)> {
        match above {
            Above::Http1 => Ok(self.http1.clone()),
            Above::Http2 => Ok(self.http2.clone()),
            Above::Http3 => {
                let lacks = || (Level::Error, "\"ssl_protocols\" of this server have no TLSv1.3".to_owned());
                self.http3.clone().ok_or_else(lacks)
            }
        }
    }
}

/// The protocols besides HTTP/2 that clients may ask for (nginx: `NGX_HTTP_ALPN_PROTOS`).
const HTTP1: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];
const HTTP2: [&[u8]; 4] = [b"h2", b"http/1.1", b"http/1.0", b"http/0.9"];

/// The permissions and limits of a server's clients over QUIC.
#[derive(Clone, Copy)]
struct OverQuic {
    protocols: &'static [&'static [u8]],
    /// Limits that a client with early data remembers.
    limits: [u32; 3],
}

fn over_quic(scope: &Scope) -> OverQuic {
    let values = scope.settings.http3.clone().values();
    // HTTP/3 stays where it is off: its requests are answered with 421.
    let protocols: &[&[u8]] = match (values.is_hq, values.is_on) {
        (false, _) => &[b"h3"],
        (true, true) => &[b"h3", HQ],
        (true, false) => &[HQ],
    };
    OverQuic { protocols, limits: [values.ids.into(), values.streams_max, values.stream_buffer] }
}

/// The most early data from one client, in bytes: a request and its fields.
const EARLY_BYTES_MAX: u32 = 16 << 10;

impl ServerTls {
    /// The server for a connection, with current certificates; `value` evaluates their names. The error is for the
    /// log, with its level.
    pub fn server(&self, above: Above, value: impl FnMut(&Template) -> String) -> Result<Server, (Level, String)> {
        match &self.certificates {
            Certificates::Fixed(speakers) => speakers.one(above),
            Certificates::Watched(watched) => {
                let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
                let (speakers, watch) = &mut *watched;
                self.look_again(speakers, watch);
                speakers.one(above)
            }
            Certificates::Issued(wanted, current) => {
                let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((version, held)) = wanted.cell.get().and_then(|cell| Some((cell.version(), cell.held()?)))
                else {
                    let why = format!("no certificate of acme issuer \"{}\" yet", wanted.issuer);
                    return Err((Level::Info, why));
                };
                if current.0 != version {
                    *current = (version, current.1.with(std::slice::from_ref(&held.pair)));
                }
                current.1.one(above)
            }
            Certificates::Named(speakers) => {
                let pairs = self.load(value).map_err(|why| (Level::Error, why))?;
                speakers.with(&self.stapled(pairs)).one(above)
            }
        }
    }

    /// The certificates with these names.
    fn load(&self, mut value: impl FnMut(&Template) -> String) -> Result<Vec<KeyPair>, String> {
        let mut pairs = Vec::with_capacity(self.sources.len());
        for (certificate, key) in &self.sources {
            let names = (value(certificate.template()), value(key.template()));
            let names = (names.0.as_str(), names.1.as_str());
            pairs.push(match &self.cache {
                Some(cache) => cache.load(&self.directory, names, &self.passwords)?,
                None => source::load(&self.directory, names, &self.passwords)?,
            });
        }
        Ok(pairs)
    }

    /// Reloads changed certificates; if they cannot be read, nothing changes.
    fn look_again(&self, speakers: &mut Speakers, watch: &mut Watch) {
        let paths = source::paths(&self.directory, &self.sources);
        let Some(changed) = watch.finds_change(&paths) else { return };
        match source::load_all(&self.directory, &self.sources, &self.passwords) {
            Ok(pairs) => {
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known(&self.sources, &pairs);
                *speakers = speakers.with(&self.stapled(pairs));
                watch.settle(changed);
                log::global(Level::Notice, format_args!("weir read the certificate \"{}\" again", self.shown()));
            }
            Err(error) => log::global(Level::Error, format_args!("{error}, weir keeps the previous certificate")),
        }
    }

    /// The certificates of files at this moment; none if their names have variables.
    pub fn known(&self) -> Vec<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn shown(&self) -> &str {
        self.sources.first().map_or("", |(certificate, _)| &certificate.shown)
    }

    fn stapled(&self, pairs: Vec<KeyPair>) -> Vec<KeyPair> {
        stapling::stapled(staple(pairs, self.staple.as_ref()), &self.staplers)
    }
}

fn known(sources: &[(CertificateSource, CertificateSource)], pairs: &[KeyPair]) -> Vec<Known> {
    let facts = |pair: &KeyPair| pair.chain().first().and_then(|leaf| CertificateFacts::read(leaf).ok());
    let all = sources.iter().zip(pairs);
    all.filter_map(|((source, _), pair)| {
        let source = if source.shown.starts_with("data:") { "data:...".to_owned() } else { source.shown.clone() };
        Some(Known { source, facts: facts(pair)? })
    })
    .collect()
}

fn staple(pairs: Vec<KeyPair>, response: Option<&Vec<u8>>) -> Vec<KeyPair> {
    match response {
        Some(response) => pairs.into_iter().map(|pair| pair.with_staple(response.clone())).collect(),
        None => pairs,
    }
}

/// Compiles a server's TLS; other blocks have none.
pub(super) fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if !scope.context.meets(SERVER.or(STREAM_SERVER)) {
        return;
    }
    let quic = match scope.context == STREAM_SERVER {
        true => None,
        false => Some(over_quic(scope)),
    };
    let resolver = match quic {
        None => weir_stream::written(scope).resolver.clone(),
        Some(_) => weir_proxy::written(scope).resolver.clone(),
    };
    // Warnings about certificates that cannot be stapled point at `ssl_stapling`.
    b.stand(scope.place("ssl_stapling", 0));
    let wanted = crate::written(scope).acme.wanted.clone().flatten();
    let assembled = assemble(b, &crate::written(scope).ssl, &resolver, quic, wanted);
    b.stand(scope.at);
    match assembled {
        Ok(tls) => crate::written_mut(scope).ssl.tls = Some(tls.map(Arc::new)),
        Err(refusal) => b.refuse_in(scope, "ssl_certificate", refusal),
    }
}

fn assemble(
    b: &mut Build<'_>,
    settings: &Settings,
    resolver: &resolver::Settings,
    quic: Option<OverQuic>,
    wanted: Option<Arc<WantedCertificate>>,
) -> Result<Option<ServerTls>, Refusal> {
    let mut settings = settings.clone();
    for (number, (name, value)) in settings.commands.clone().unwrap_or_default().iter().enumerate() {
        command::apply(b, &mut settings, name, value).map_err(|refusal| refusal.about("ssl_conf_command", number))?;
    }
    let values = settings.values();
    let Some(last) = values.certificates.last() else { return Ok(None) };
    if values.keys.len() < values.certificates.len() {
        let lone = values.certificates.get(values.keys.len()).unwrap_or(last);
        return Err(Refusal::whole(format!(
            "no \"ssl_certificate_key\" is defined for certificate \"{}\"",
            lone.shown
        ))
        .about("ssl_certificate", values.keys.len())
        .needs("ssl_certificate_key", ""));
    }
    let asks = values.verify != Verify::Off;
    if asks
        && values.verify != Verify::OptionalNoCa
        && values.client_authorities.is_empty()
        && values.authorities.is_empty()
    {
        let what = "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client";
        return Err(Refusal::whole(what).about("ssl_verify_client", 0));
    }
    let sources: Vec<_> = values.certificates.iter().cloned().zip(values.keys.iter().cloned()).collect();
    let is_fixed = sources.iter().all(|(certificate, key)| certificate.fixed().is_some() && key.fixed().is_some());
    let staple_bytes = staple_file(b, &values.staple)?;
    let mut pairs = Vec::new();
    if is_fixed {
        for (number, (certificate, key)) in sources.iter().enumerate() {
            pairs.push(read_pair(b, number, (&certificate.shown, &key.shown), &values.passwords)?);
        }
        pairs = staple(pairs, staple_bytes.as_ref());
    }
    let mut staplers = Vec::new();
    if values.stapling && staple_bytes.is_none() && is_fixed {
        staplers = stapling::staplers(b, &values, &pairs, resolver);
        pairs = stapling::stapled(pairs, &staplers);
    }
    let known = Mutex::new(known(&sources, &pairs));
    let checks = checks(b, &values, resolver).map_err(|refusal| refusal.about("ssl_ocsp", 0))?;
    let (trust, hints) = trust(b, &values)?;
    let wanted = wanted.filter(|_| is_issued(&sources));
    let context = context(&values, &pairs, (&sources, wanted.as_deref()), &hints);
    let speakers = speakers(&values, &pairs, asks.then_some(hints), context, quic)?;
    let directory = b.paths.conf_prefix.clone();
    let certificates = match (is_fixed, values.refresh) {
        (false, _) => match wanted {
            Some(wanted) => Certificates::Issued(wanted, Mutex::new((0, speakers))),
            None => Certificates::Named(speakers),
        },
        (true, None) => Certificates::Fixed(speakers),
        (true, Some(every)) => {
            let watch = Watch::new(every, &source::paths(&directory, &sources));
            Certificates::Watched(Mutex::new((speakers, watch)))
        }
    };
    Ok(Some(ServerTls {
        certificates,
        sources,
        passwords: values.passwords,
        directory,
        staple: staple_bytes,
        staplers,
        cache: values.certificate_cache,
        known,
        trust,
        depth: values.depth,
        checks,
        asks,
        takes_early: values.early_data,
        context,
    }))
}

/// Whether the one certificate of a server is the one that weir gets itself.
fn is_issued(sources: &[(CertificateSource, CertificateSource)]) -> bool {
    let is = |source: &CertificateSource, name: &str| {
        source.shown == format!("${name}") || source.shown == format!("${{{name}}}")
    };
    matches!(sources, [(certificate, key)] if is(certificate, "acme_certificate") && is(key, "acme_certificate_key"))
}

/// The response of `ssl_stapling_file`, if one is named.
fn staple_file(b: &mut Build<'_>, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
    if name.is_empty() {
        return Ok(None);
    }
    let read = certificates::read(b, name).map_err(|(path, error)| {
        Refusal::whole(format!("BIO_new_file(\"{path}\") failed {error}")).about("ssl_stapling_file", 0)
    });
    read.map(|bytes| Some(bytes.to_vec()))
}

fn read_pair(b: &mut Build<'_>, number: usize, names: (&str, &str), passwords: &[Vec<u8>]) -> Result<KeyPair, Refusal> {
    source::load_once(b, names, passwords)
        .map_err(|(half, words)| Refusal::whole(words).about(half.directive(), number))
}

/// The authorities that a server trusts, and those it names to clients.
fn trust(b: &mut Build<'_>, values: &Values) -> Result<(Trust, Vec<Vec<u8>>), Refusal> {
    let of = |directive| move |refusal: Refusal| refusal.about(directive, 0);
    let told = authorities(b, &values.client_authorities).map_err(of("ssl_client_certificate"))?;
    let mut hints: Vec<Vec<u8>> = Vec::new();
    for hint in told.iter().filter_map(|der| subject_der(der)) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    let trusted = authorities(b, &values.authorities).map_err(of("ssl_trusted_certificate"))?;
    let unreadable = |flaw: Flaw| {
        let is_told = values.authorities.is_empty();
        let directive = if is_told { "ssl_client_certificate" } else { "ssl_trusted_certificate" };
        Refusal::whole(format!("weir cannot read a trusted certificate: {flaw}")).weirs_own().about(directive, 0)
    };
    let mut trust = Trust::new(told.into_iter().chain(trusted)).map_err(unreadable)?;
    if !values.revoked.is_empty() {
        let text = certificates::read(b, &values.revoked)
            .map_err(|(path, error)| Refusal::whole(format!("X509_LOOKUP_load_file(\"{path}\") failed {error}")))
            .map_err(of("ssl_crl"))?;
        let bad = |why: &str| {
            let words = format!("X509_LOOKUP_load_file(\"{}\") failed ({why})", values.revoked);
            Refusal::whole(words).about("ssl_crl", 0)
        };
        let lists = revocation_lists(&text).map_err(|why| bad(&why))?;
        if lists.is_empty() {
            return Err(bad("the file contains no revocation list"));
        }
        for list in &lists {
            trust.add_list(list).map_err(|flaw| bad(&format!("weir cannot read a revocation list: {flaw}")))?;
        }
    }
    Ok((trust, hints))
}

/// The checks of the status of clients' certificates; `None` for none.
fn checks(b: &Build<'_>, values: &Values, resolver: &resolver::Settings) -> Result<Option<Checks>, Refusal> {
    if values.checked != Checked::Off && values.verify == Verify::OptionalNoCa {
        return Err(Refusal::whole("\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\""));
    }
    let asked = (values.status_responder.as_str(), values.status_cache.as_ref());
    status::checks(b, values.checked, asked, resolver)
}

pub(super) fn authorities(b: &mut Build<'_>, name: &str) -> Result<Vec<Vec<u8>>, Refusal> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let failed =
        |path: &str, why: &str| Refusal::whole(format!("SSL_CTX_load_verify_locations(\"{path}\") failed {why}"));
    let text = certificates::read(b, name).map_err(|(path, error)| failed(&path, &error))?;
    match certificates(&text) {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(failed(name, "(the file contains no certificate)")),
        Err(why) => Err(failed(name, &format!("({why})"))),
    }
}

/// As nginx's `ngx_ssl_session_id_context`, and besides it the settings that change how clients are verified.
fn context(
    values: &Values,
    pairs: &[KeyPair],
    (sources, wanted): (&[(CertificateSource, CertificateSource)], Option<&WantedCertificate>),
    hints: &[Vec<u8>],
) -> Context {
    let digests: Vec<[u8; 32]> = pairs.iter().map(KeyPair::digest).collect();
    let mut parts: Vec<&[u8]> = digests.iter().map(|digest| &digest[..]).collect();
    if pairs.is_empty() {
        parts.extend(sources.iter().map(|(certificate, _)| certificate.shown.as_bytes()));
    }
    // Servers whose certificates have the same name are different servers if weir gets the certificates itself.
    let own = wanted.map(|wanted| format!("{} {:?}", wanted.issuer, wanted.at)).unwrap_or_default();
    parts.push(own.as_bytes());
    parts.extend(hints.iter().map(Vec::as_slice));
    let asks: &[u8] = if values.verify == Verify::Off { b"" } else { b"asks" };
    parts.extend([
        asks,
        values.client_authorities.as_bytes(),
        values.authorities.as_bytes(),
        values.revoked.as_bytes(),
    ]);
    context_of(parts)
}

fn speakers(
    values: &Values,
    pairs: &[KeyPair],
    asks_for: Option<Vec<Vec<u8>>>,
    context: Context,
    quic: Option<OverQuic>,
) -> Result<Speakers, Refusal> {
    let lifetime_s = values.timeout.as_secs();
    let tickets = match (values.tickets, values.ticket_keys.is_empty()) {
        (false, _) => None,
        (true, true) => Some(sessions::rolling(lifetime_s)),
        (true, false) => TicketKeys::given(&values.ticket_keys, lifetime_s).map(Arc::new),
    };
    let cache = match &values.cache {
        None if values.early_data => Some(sessions::for_early_data()),
        cache => cache.clone(),
    };
    let options = ServerOptions {
        identities: pairs.to_vec(),
        protocols: values.protocols,
        ciphers: (*values.ciphers).clone(),
        prefers_own_order: values.prefers_own_order,
        groups: (*values.groups).clone(),
        alpn: if quic.is_none() { values.alpn.clone() } else { HTTP1.iter().map(|name| name.to_vec()).collect() },
        asks_for,
        tickets,
        cache,
        session_lifetime_s: lifetime_s,
        context,
        early_data_max: if values.early_data { EARLY_BYTES_MAX } else { 0 },
        record_bytes_max: values.record_bytes as usize,
        key_log: values.key_log.clone(),
        compresses: values.compresses,
        ..ServerOptions::default()
    };
    let http1 = Server::new(&options).map_err(|tls::Unusable(why)| {
        Refusal::whole(format!("\"ssl_protocols\" and \"ssl_ciphers\" leave no version and cipher suite ({why})"))
            .about("ssl_protocols", 0)
    })?;
    let Some(quic) = quic else {
        return Ok(Speakers { http2: http1.clone(), http3: None, http1 });
    };
    let limits = quic.limits.map(u32::to_be_bytes);
    let http3 = Server::new(&options.for_quic(quic.protocols, limits.as_flattened())).ok();
    // HTTP/2 streams cannot tell which of them came early, and only `$ssl_early_data` makes early data safe.
    Ok(Speakers { http2: http1.with_alpn(&HTTP2).without_early_data(), http3, http1 })
}

/// The default server of an address that speaks TLS needs a certificate. If that server refuses TLS handshakes, the
/// other servers of the address need one (nginx: `ngx_http_ssl_init`).
pub fn require_certificates(b: &mut Build<'_>, found: &Found<'_>) {
    let lacks = |id| found.root(id).is_some_and(|root| crate::values(root).ssl.certificates.is_empty());
    let rejects = |id| found.root(id).is_some_and(|root| crate::values(root).ssl.rejects);
    let lacks_tls13 = |id| found.root(id).is_some_and(|root| !crate::values(root).ssl.protocols.tls13);
    for listen in found.listens.iter().filter(|listen| listen.ssl || listen.quic) {
        let (default, name) = (listen.hosts.default_server(), if listen.quic { "quic" } else { "ssl" });
        for (id, addresses, _) in found.drafts {
            let Some(draft) = addresses.iter().find(|draft| draft.is_at(listen)) else { continue };
            let counts = *id == default || (lacks(default) && rejects(default));
            if counts && lacks(*id) && !rejects(*id) {
                let what = format!("no \"ssl_certificate\" is defined for the \"listen ... {name}\" directive");
                b.refuse_at("listen", Refusal::whole(what).needs("ssl_certificate", ""), draft.at);
            } else if listen.quic && *id == default && !lacks(default) && lacks_tls13(default) {
                let what = "\"ssl_protocols\" must enable TLSv1.3 for the \"listen ... quic\" directive";
                b.refuse_at("listen", Refusal::whole(what), draft.at);
            }
        }
    }
}

/// The same for the sockets of `stream`.
pub fn require_of_sessions(b: &mut Build<'_>, drafts: &[Drafted]) {
    let mut missing = Vec::new();
    let stream = &weir_stream::declared_so_far(b).server.stream;
    let place = |id: ServerId| stream.server(id).map(|server| &server.place);
    let lacks = |id| place(id).is_some_and(|place| crate::values(place).ssl.certificates.is_empty());
    let rejects = |id| place(id).is_some_and(|place| crate::values(place).ssl.rejects);
    for listen in stream.streams.listens.iter().filter(|listen| listen.ssl) {
        let default = listen.hosts.default_server();
        for (id, addresses, _) in drafts {
            let draft = addresses.iter().find(|draft| draft.address == listen.address);
            let counts = *id == default || (lacks(default) && rejects(default));
            if let Some(draft) = draft.filter(|_| counts && lacks(*id) && !rejects(*id)) {
                missing.push(draft.at);
            }
        }
    }
    for at in missing {
        let what = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
        b.refuse_at("listen", Refusal::whole(what).needs("ssl_certificate", ""), at);
    }
}
