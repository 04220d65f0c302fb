//! `ssl_*`: TLS to clients, of requests and of sessions.
//!
//! <https://nginx.org/en/docs/http/ngx_http_ssl_module.html>. weir uses rustls (`weir_net::tls`), so TLS 1.0 and 1.1,
//! suites without forward secrecy and renegotiation are not available; weir reports a file that asks for them when it
//! reads the file. This file has the directives; `assemble` builds a server's TLS, `variables` the variables. `secure` starts a connection.

pub mod agree;
pub mod assemble;
mod command;
pub mod flight;
mod responder;
pub mod session;
mod sessions;
pub mod stapling;
pub mod status;
mod variables;

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::family::certificates;
use weir_http::family::certificates::source::{CertificateCache, CertificateSource};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, HTTP, ONE, SERVER, SS, TWO};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::tls::ciphers::{Ciphers, Groups, Nothing, Protocols};
use weir_net::tls::{KeyLogFile, SessionCache};

use self::assemble::ServerTls;
use self::status::Checked;

weir_http::settings! {
    /// `ssl_certificate`: all certificates of a block.
    certificates: Vec<CertificateSource> = Vec::new(),
    /// `ssl_certificate_key`: all keys of a block.
    keys: Vec<CertificateSource> = Vec::new(),
    /// `ssl_password_file`: its lines.
    passwords: Arc<Vec<Vec<u8>>> = Arc::default(),
    /// `ssl_certificate_cache`; `None` for `off`.
    certificate_cache: Option<Arc<CertificateCache>> = None,
    /// `ssl_certificate_refresh`; `None` for `off`.
    refresh: Option<Duration> = None,
    /// `ssl_certificate_compression`.
    compresses: bool = false,
    /// `ssl_protocols`.
    protocols: Protocols = Protocols::default(),
    /// `ssl_ciphers`.
    ciphers: Arc<Ciphers> = Arc::default(),
    /// `ssl_prefer_server_ciphers`.
    prefers_own_order: bool = false,
    /// `ssl_ecdh_curve`.
    groups: Arc<Groups> = Arc::default(),
    /// `ssl_session_cache`; `None` keeps no sessions.
    cache: Option<Arc<SessionCache>> = None,
    /// `ssl_session_timeout`.
    timeout: Duration = Duration::from_secs(300),
    /// `ssl_session_tickets`.
    tickets: bool = true,
    /// `ssl_session_ticket_key`: the contents of the files.
    ticket_keys: Vec<Vec<u8>> = Vec::new(),
    /// `ssl_verify_client`.
    verify: Verify = Verify::Off,
    /// `ssl_verify_depth`.
    depth: usize = 1,
    /// `ssl_client_certificate`: the trusted authorities that weir names to clients; empty for none.
    client_authorities: String = String::new(),
    /// `ssl_trusted_certificate`: further trusted authorities; empty for none.
    authorities: String = String::new(),
    /// `ssl_crl`; empty for none.
    revoked: String = String::new(),
    /// `ssl_stapling_file`; empty for none.
    staple: String = String::new(),
    /// `ssl_stapling`.
    stapling: bool = false,
    /// `ssl_stapling_verify`.
    stapling_verify: bool = false,
    /// `ssl_stapling_responder`; empty for the certificate's own.
    stapling_responder: String = String::new(),
    /// `ssl_ocsp`.
    checked: Checked = Checked::Off,
    /// `ssl_ocsp_responder`; empty for the certificates' own.
    status_responder: String = String::new(),
    /// `ssl_ocsp_cache`; `None` for `off`.
    status_cache: Option<Arc<status::Cache>> = None,
    /// `ssl_reject_handshake`.
    rejects: bool = false,
    /// `ssl_early_data`.
    early_data: bool = false,
    /// `ssl_buffer_size`.
    record_bytes: u64 = 16 << 10,
    /// `ssl_handshake_timeout`, of sessions.
    handshake_timeout: Duration = Duration::from_secs(60),
    /// `ssl_alpn`, of sessions.
    alpn: Vec<Vec<u8>> = Vec::new(),
    /// `ssl_conf_command`, in order.
    commands: Vec<(String, String)> = Vec::new(),
    /// `ssl_key_log`.
    key_log: Option<Arc<KeyLogFile>> = None,
    /// The server's TLS, once its block is read; `None` without certificates.
    tls: Option<Arc<ServerTls>> = None,
}

/// `ssl_verify_client`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// The server asks for no certificate.
    Off,
    /// A certificate is required and must be valid.
    On,
    /// The server asks for a certificate; if the client sends one, it must be valid.
    Optional,
    /// The server asks for a certificate; its issuer may be unknown.
    OptionalNoCa,
}

/// The declarations for all of `http`.
#[derive(Default)]
pub struct Declared {
    /// Sizes of session caches by name.
    caches: std::collections::HashMap<String, u64>,
    /// Certificates whose OCSP status weir fetches.
    pub staplers: Vec<Arc<stapling::Stapler>>,
    /// Caches of OCSP answers, each once.
    status_caches: Vec<Arc<status::Cache>>,
}

/// `http`, `stream` and their servers.
const HS: Contexts = HTTP.or(SERVER).or(SS);
/// `http` alone.
const OF_REQUESTS: Contexts = HTTP.or(SERVER);

/// The family.
#[rustfmt::skip]
pub static FAMILY: Family = Family::new("ssl", &[
    Directive::new("ssl_certificate", HS, ONE,
        "A PEM file of certificates, the server's own first. The name may contain variables; data: introduces the PEM \
         text itself.",
        |b, s| certificate(b, s, |settings| &mut settings.certificates)).many(),
    Directive::new("ssl_certificate_key", HS, ONE,
        "The key file of the ssl_certificate at the same position. The name may contain variables; data: introduces \
         the PEM text itself.",
        |b, s| certificate(b, s, |settings| &mut settings.keys)).many(),
    Directive::new("ssl_password_file", HS, ONE, "A file with passwords for encrypted keys, one per line; weir tries each in turn.", passwords),
    Directive::new("ssl_certificate_cache", HS, Arity::Between(1, 3),
        "Caches certificates whose file names contain variables: max=N [inactive=TIME] [valid=TIME], or \
         off.", certificate_cache).default("off"),
    Directive::new("ssl_certificate_refresh", HS, ONE,
        "weir's own: reads changed certificates and keys again without a reload. The value is the shortest time \
         between two checks of the files, or off.",
        |b, s| { crate::settings(b).ssl.refresh = Some(refresh(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_certificate_compression", HS, Arity::Flag, "Compresses certificates for clients that offer it (RFC 8879).",
        |b, s| { crate::settings(b).ssl.compresses = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_protocols", HS, Arity::AtLeast(1), "The TLS versions: TLSv1.2, TLSv1.3; weir leaves older ones out with a warning.",
        protocols).many().default("TLSv1.2 TLSv1.3"),
    Directive::new("ssl_ciphers", HS, ONE, "The cipher suites for TLS 1.2, as an OpenSSL list; weir has no suites without forward secrecy.",
        |b, s| { let kept = ciphers(b, s.text(0))?; crate::settings(b).ssl.ciphers = Some(Arc::new(kept)); Ok(()) }).default("HIGH:!aNULL:!MD5"),
    Directive::new("ssl_prefer_server_ciphers", HS, Arity::Flag, "Prefers the server's order of cipher suites to the client's.",
        |b, s| { crate::settings(b).ssl.prefers_own_order = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_ecdh_curve", HS, ONE, "The groups for key exchange, the preferred first; auto is X25519MLKEM768:X25519:prime256v1:secp384r1.",
        |b, s| { let kept = groups(b, s.text(0))?; crate::settings(b).ssl.groups = Some(Arc::new(kept)); Ok(()) }).default("auto"),
    Directive::idle("ssl_dhparam", HS, ONE, "", "weir exchanges keys only over elliptic curves and ML-KEM", dhparam),
    Directive::new("ssl_session_cache", HS, Arity::Between(1, 2),
        "Keeps sessions in memory, shared by all workers and kept across a reload: shared:NAME:SIZE, \
         builtin[:SESSIONS], none or off.",
        sessions::cache).many().default("none"),
    Directive::new("ssl_session_timeout", HS, ONE, "How long a client may resume a session.",
        |b, s| { crate::settings(b).ssl.timeout = Some(value::seconds(s)?); Ok(()) }).default("5m"),
    Directive::new("ssl_session_tickets", HS, Arity::Flag, "Gives clients encrypted tickets with which they can resume sessions.",
        |b, s| { crate::settings(b).ssl.tickets = Some(value::flag(s)?); Ok(()) }).default("on"),
    Directive::new("ssl_session_ticket_key", HS, ONE,
        "A file of 48 or 80 random bytes, the key for tickets. weir encrypts with the first file and decrypts with \
         all. Without a file, weir changes its keys itself.",
        sessions::ticket_key).many(),
    Directive::new("ssl_verify_client", HS, ONE, "Asks clients for a certificate: on, optional, optional_no_ca or off.", verify_client).default("off"),
    Directive::new("ssl_verify_depth", HS, ONE, "The largest number of certificates between the client's and the authority's.",
        |b, s| { crate::settings(b).ssl.depth = Some(value::at_most(s, 100)? as usize); Ok(()) }).default("1"),
    Directive::new("ssl_client_certificate", HS, ONE, "A file of trusted authorities; weir sends their names to clients.",
        |b, s| { crate::settings(b).ssl.client_authorities = Some(s.text(0).to_owned()); Ok(()) }),
    Directive::new("ssl_trusted_certificate", HS, ONE, "A file of trusted authorities; weir does not send their names to clients.",
        |b, s| { crate::settings(b).ssl.authorities = Some(s.text(0).to_owned()); Ok(()) }),
    Directive::new("ssl_crl", HS, ONE, "A file of revocation lists, one for each authority of a chain.",
        |b, s| { crate::settings(b).ssl.revoked = Some(s.text(0).to_owned()); Ok(()) }),
    Directive::new("ssl_stapling_file", HS, ONE, "A DER file with the OCSP response that weir sends with the certificate.",
        |b, s| { crate::settings(b).ssl.staple = Some(s.text(0).to_owned()); Ok(()) }),
    Directive::new("ssl_stapling", HS, Arity::Flag, "Fetches OCSP responses for certificates and sends them in handshakes.",
        |b, s| { crate::settings(b).ssl.stapling = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_stapling_verify", HS, Arity::Flag, "Accepts only OCSP responses whose signer a trusted issuer has authorised.",
        |b, s| { crate::settings(b).ssl.stapling_verify = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_stapling_responder", HS, ONE, "The http:// URL of the responder, instead of the URL in the certificate.",
        |b, s| { crate::settings(b).ssl.stapling_responder = Some(s.text(0).to_owned()); Ok(()) }),
    Directive::new("ssl_ocsp", HS, ONE, "Asks OCSP responders about clients' certificates: on for the whole chain, leaf for the client's own certificate, off.",
        |b, s| {
            let checked = value::choice(s, &[("off", Checked::Off), ("on", Checked::Chain), ("leaf", Checked::Leaf)])?;
            crate::settings(b).ssl.checked = Some(checked);
            Ok(())
        }).default("off"),
    Directive::new("ssl_ocsp_responder", HS, ONE, "The http:// URL of the responder, instead of the URL in clients' certificates.",
        |b, s| { crate::settings(b).ssl.status_responder = Some(s.text(0).to_owned()); Ok(()) }),
    Directive::new("ssl_ocsp_cache", HS, ONE, "Caches the responders' answers for all workers, across a reload: shared:NAME:SIZE or off.",
        status::cache).default("off"),
    Directive::new("ssl_reject_handshake", HS, Arity::Flag, "Refuses every TLS handshake for this server.",
        |b, s| { crate::settings(b).ssl.rejects = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_early_data", OF_REQUESTS, Arity::Flag,
        "Accepts early data (0-RTT) from clients that resume a session. weir then keeps sessions in its cache, and a \
         client can resume each session only once.",
        |b, s| { crate::settings(b).ssl.early_data = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::new("ssl_buffer_size", OF_REQUESTS, ONE, "The largest TLS record that weir sends.",
        |b, s| { crate::settings(b).ssl.record_bytes = Some(value::size(s)?); Ok(()) }).default("16k"),
    Directive::new("ssl_handshake_timeout", SS, ONE, "How long a client may take for the TLS handshake of a session.",
        |b, s| { crate::settings(b).ssl.handshake_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
    Directive::new("ssl_alpn", SS, Arity::AtLeast(1), "The protocols that a session may agree on (ALPN), the preferred first.", alpn),
    Directive::new("ssl_conf_command", HS, TWO,
        "OpenSSL's command: Options (ServerPreference, SessionTicket), Ciphersuites, CipherString, Groups, MinProtocol, MaxProtocol, Protocol, Certificate, PrivateKey.",
        command::read).many(),
    Directive::new("ssl_key_log", HS, ONE, "A file to which weir writes the secrets of connections, for debugging only.", key_log),
])
.watch(stapling::watch)
.variables(variables::ALL)
.adopt(|new, old| {
    let (new, old) = (&crate::declared(new).ssl, &crate::declared(old).ssl);
    stapling::adopt(&new.staplers, &old.staplers);
    status::adopt(&new.status_caches, &old.status_caches);
    Ok(())
})
.finish(assemble::finish)
.check(assemble::require_certificates);

/// nginx: a list in a block replaces the list of the block around it.
fn certificate(
    b: &mut Build<'_>,
    statement: &Statement,
    list: fn(&mut Settings) -> &mut Option<Vec<CertificateSource>>,
) -> Result<(), Refusal> {
    let source = CertificateSource::read(b, statement.text(0))?;
    list(&mut crate::settings(b).ssl).get_or_insert_default().push(source);
    Ok(())
}

fn alpn(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut names = Vec::with_capacity(statement.args.len());
    for word in &statement.args {
        if word.text.is_empty() || word.text.len() > 255 {
            return Err(Refusal::whole("protocol too long"));
        }
        names.push(word.bytes().to_vec());
    }
    crate::settings(b).ssl.alpn = Some(names);
    Ok(())
}

fn passwords(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    crate::settings(b).ssl.passwords = Some(certificates::passwords(b, statement)?);
    Ok(())
}

fn refresh(statement: &Statement) -> Result<Option<Duration>, Refusal> {
    match statement.text(0) {
        "off" => Ok(None),
        text => value::long_time_of(text).map(Some).ok_or_else(|| Refusal::directive("invalid value")),
    }
}

fn certificate_cache(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    crate::settings(b).ssl.certificate_cache = Some(certificates::source::cache(statement)?);
    Ok(())
}

fn protocols(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    for word in &statement.args {
        if Protocols::of_words([word.text.as_str()]).is_none() {
            return Err(Refusal::whole(format!("invalid value \"{}\"", word.text)));
        }
    }
    let words = statement.args.iter().map(|word| word.text.as_str());
    let Some(chosen) = Protocols::of_words(words) else { return Err(Refusal::directive("invalid value")) };
    if chosen.kept.is_empty() {
        let left = chosen.left_out.join(" ");
        return Err(Refusal::whole(format!(
            "\"ssl_protocols\" names only versions that weir does not support: {left}"
        ))
        .weirs_own()
        .todo("write TLSv1.2 TLSv1.3: every browser since 2013 supports one of them"));
    }
    if !chosen.left_out.is_empty() {
        let left = chosen.left_out.join(" ");
        b.warn(
            format!("weir does not support \"{left}\" in \"ssl_protocols\", ignored"),
            Some("remove the version: RFC 8996 forbids it, and no browser offers it".to_owned()),
        );
    }
    // nginx: repeated in one block, the lists add up.
    let protocols = crate::settings(b).ssl.protocols.get_or_insert(chosen.kept);
    *protocols = protocols.with(chosen.kept);
    Ok(())
}

/// `ssl_dhparam`: has no effect, but a file that is missing or has no parameters is a mistake, as for nginx.
fn dhparam(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0);
    let text = certificates::read(b, name)
        .map_err(|(path, error)| Refusal::whole(format!("BIO_new_file(\"{path}\") failed ({error})")))?;
    if memchr::memmem::find(&text, b"DH PARAMETERS-----").is_none() {
        let path = certificates::full_name(b, name);
        return Err(Refusal::whole(format!("PEM_read_bio_DHparams(\"{path}\") failed (no DH PARAMETERS)"))
            .todo("remove the line: weir needs no parameters"));
    }
    Ok(())
}

/// The suites of an OpenSSL list; warns of suites that weir does not have.
fn ciphers(b: &mut Build<'_>, text: &str) -> Result<Ciphers, Refusal> {
    match Ciphers::of_list(text) {
        Ok(chosen) => {
            if !chosen.left_out.is_empty() {
                let left = chosen.left_out.join(":");
                b.warn(
                    format!("weir ignores ciphers that it does not support: {left}"),
                    Some("you may keep the line; clients since 2014 support one of the other ciphers".to_owned()),
                );
            }
            Ok(chosen.kept)
        }
        Err(Nothing { left_out }) if left_out.is_empty() => {
            Err(Refusal::whole(format!("SSL_CTX_set_cipher_list(\"{text}\") failed (no cipher match)")))
        }
        Err(Nothing { left_out }) => Err(Refusal::whole(format!(
            "SSL_CTX_set_cipher_list(\"{text}\") failed (weir does not support: {})",
            left_out.join(":")
        ))
        .weirs_own()
        .todo("write ECDHE+AESGCM:ECDHE+CHACHA20: suites with forward secrecy and authenticated encryption")),
    }
}

fn groups(b: &mut Build<'_>, text: &str) -> Result<Groups, Refusal> {
    let refused = || {
        Refusal::whole(format!("SSL_CTX_set1_curves_list(\"{text}\") failed"))
            .weirs_own()
            .todo("write X25519:prime256v1:secp384r1, or auto")
    };
    match Groups::of_list(text) {
        Ok(chosen) => {
            if !chosen.left_out.is_empty() {
                let left = chosen.left_out.join(":");
                b.warn(format!("weir ignores curves that it does not support: {left}"), None);
            }
            Ok(chosen.kept)
        }
        // The strongest curve that weir has, for a server that allows only a stronger one.
        Err(_) if text.eq_ignore_ascii_case("secp521r1") || text.eq_ignore_ascii_case("P-521") => {
            b.warn(format!("weir does not support the curve {text}: it uses secp384r1"), None);
            Groups::of_list("secp384r1").map(|chosen| chosen.kept).map_err(|_| refused())
        }
        Err(_) => Err(refused()),
    }
}

fn verify_client(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let words = [
        ("off", Verify::Off),
        ("on", Verify::On),
        ("optional", Verify::Optional),
        ("optional_no_ca", Verify::OptionalNoCa),
    ];
    crate::settings(b).ssl.verify = Some(value::choice(statement, &words)?);
    Ok(())
}

fn key_log(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let path = b.path(statement.text(0));
    b.reach.write_file(&path);
    b.warn("anyone who can read the file of \"ssl_key_log\" can decrypt all connections", None);
    crate::settings(b).ssl.key_log = Some(Some(Arc::new(KeyLogFile::new(path))));
    Ok(())
}
