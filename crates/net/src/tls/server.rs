//! The TLS settings of a server: its certificates, the parameters it accepts, and its requests for client certificates.

use super::ciphers::{Ciphers, Groups, Protocols};
use super::keys::KeyPair;
use super::signature;
use super::tickets::{Context, SessionCache, Stored, TicketKeys, Tickets, context_of};
use super::x509::X509;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoClientAuth, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, CipherSuite, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use std::cell::Cell;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::future::poll_fn;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

/// Lets the TLS library gather its first random bytes, which takes 20 ms of CPU once in a process: the first handshake
/// does it otherwise.
pub fn begin_random() {
    // Without random bytes, a handshake says so.
    let _ = ::aws_lc_rs::rand::fill(&mut [0; 16]);
}

/// The TLS options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Its certificates with their keys; if two have keys of the same kind, the last one counts.
    pub identities: Vec<KeyPair>,
    /// Versions it speaks.
    pub protocols: Protocols,
    /// Cipher suites it accepts.
    pub ciphers: Ciphers,
    /// Its own order of suites has priority over the client's.
    pub prefers_own_order: bool,
    /// Groups it accepts.
    pub groups: Groups,
    /// Protocols above TLS, the best first (RFC 7301); an empty list accepts none.
    pub alpn: Vec<Vec<u8>>,
    /// Asks clients for a certificate, with the subjects (in DER) of the trusted authorities. It accepts every
    /// certificate if the client has its key: the caller judges the chain from
    /// [`Agreement::certificates`](super::Agreement).
    pub asks_for: Option<Vec<Vec<u8>>>,
    /// Tickets that a client of TLS 1.3 gets after its handshake: one for each connection that it may resume at once.
    pub tickets_sent: usize,
    /// The keys that seal tickets; `None` sends no tickets.
    pub tickets: Option<Arc<TicketKeys>>,
    /// The store for sessions.
    pub cache: Option<Arc<SessionCache>>,
    /// How long a kept session is valid; seconds.
    pub session_lifetime_s: u64,
    /// The context that sessions are bound to.
    pub context: Context,
    /// Early data accepted from a client that resumes (RFC 8446 §2.3); bytes, 0 accepts none. With early data,
    /// sessions are kept in the cache and used once, and no tickets are sent.
    pub early_data_max: u32,
    /// The largest record written; bytes.
    pub record_bytes_max: usize,
    /// The file for secrets, for debugging.
    pub key_log: Option<Arc<KeyLogFile>>,
    /// Compresses certificates for clients that offer it (RFC 8879).
    pub compresses: bool,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            identities: Vec::new(),
            protocols: Protocols::default(),
            ciphers: Ciphers::default(),
            prefers_own_order: false,
            groups: Groups::default(),
            alpn: Vec::new(),
            asks_for: None,
            tickets_sent: 2,
            tickets: None,
            cache: None,
            session_lifetime_s: 300,
            context: [0; 32],
            early_data_max: 0,
            record_bytes_max: 16 << 10,
            key_log: None,
            compresses: false,
        }
    }
}

impl ServerOptions {
    /// The same for QUIC: TLS 1.3 alone (RFC 9001 §4.2), and early data that TLS itself does not limit (§4.6.1). A client opens
    /// one connection, so it gets one ticket.
    ///
    /// Sessions are bound to `limits` besides the context: a client that sends early data uses the limits of
    /// streams and data that it learned with its session, so a server with other limits must not accept it (RFC 9000
    /// §7.4.1).
    pub fn for_quic(&self, alpn: &[&[u8]], limits: &[u8]) -> ServerOptions {
        ServerOptions {
            protocols: Protocols { tls12: false, ..self.protocols },
            alpn: alpn.iter().map(|name| name.to_vec()).collect(),
            context: context_of([&self.context[..], b"quic", limits]),
            early_data_max: if self.early_data_max > 0 { u32::MAX } else { 0 },
            tickets_sent: 1,
            ..self.clone()
        }
    }
}

/// A server's configuration, ready for use; clones and threads share it.
#[derive(Clone)]
pub struct Server {
    pub(super) config: Arc<ServerConfig>,
    pub(super) speaks_tls13: bool,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tls::Server")
    }
}

/// Versions and suites do not match: a sentence without a capital.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl Server {
    /// Makes the configuration from the options.
    pub fn new(options: &ServerOptions) -> Result<Server, Unusable> {
        let provider = CryptoProvider {
            cipher_suites: options.ciphers.all(),
            kx_groups: options.groups.kept.clone(),
            ..aws_lc_rs::default_provider()
        };
        let algorithms = provider.signature_verification_algorithms;
        let builder = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&options.protocols.versions())
            .map_err(|error| Unusable(error.to_string()))?;
        let builder = match &options.asks_for {
            None => builder.with_client_cert_verifier(Arc::new(NoClientAuth)),
            Some(subjects) => {
                let hints = subjects.iter().map(|subject| DistinguishedName::from(subject.clone())).collect();
                builder.with_client_cert_verifier(Arc::new(Asker { hints, algorithms }))
            }
        };
        let speaks_tls13 = options.protocols.tls13;
        let resolver = Arc::new(Resolver::new(&options.identities, speaks_tls13));
        let mut config = builder.with_cert_resolver(resolver);
        config.ignore_client_order = options.prefers_own_order;
        config.alpn_protocols = options.alpn.clone();
        // rustls includes a record's head in this size.
        config.max_fragment_size = Some(options.record_bytes_max.clamp(512, 16 << 10) + 5);
        config.session_storage = match &options.cache {
            Some(cache) => Arc::new(Stored {
                cache: cache.clone(),
                context: options.context,
                lifetime_s: options.session_lifetime_s,
            }),
            None => Arc::new(NoServerSessionStorage {}),
        };
        match &options.tickets {
            Some(keys) if options.early_data_max == 0 => {
                config.ticketer = Arc::new(Tickets { keys: keys.clone(), context: options.context });
            }
            _ => {}
        }
        let has_sessions = options.cache.is_some() || options.tickets.is_some();
        config.send_tls13_tickets = if has_sessions { options.tickets_sent } else { 0 };
        if options.early_data_max > 0 {
            config.max_early_data_size = options.early_data_max;
            // A client that sends early data expects its answer early.
            config.send_half_rtt_data = true;
        }
        if let Some(file) = &options.key_log {
            config.key_log = file.clone();
        }
        if !options.compresses {
            config.cert_compressors.clear();
        }
        config.cert_decompressors.clear();
        Ok(Server { config: Arc::new(config), speaks_tls13 })
    }

    /// The same with other protocols above TLS.
    pub fn with_alpn(&self, alpn: &[&[u8]]) -> Server {
        let mut config = (*self.config).clone();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Server { config: Arc::new(config), speaks_tls13: self.speaks_tls13 }
    }

    /// The same without early data.
    pub fn without_early_data(&self) -> Server {
        let mut config = (*self.config).clone();
        config.max_early_data_size = 0;
        config.send_half_rtt_data = false;
        Server { config: Arc::new(config), speaks_tls13: self.speaks_tls13 }
    }

    /// The same with other certificates.
    pub fn with_identities(&self, identities: &[KeyPair]) -> Server {
        let mut config = (*self.config).clone();
        config.cert_resolver = Arc::new(Resolver::new(identities, self.speaks_tls13));
        Server { config: Arc::new(config), speaks_tls13: self.speaks_tls13 }
    }
}

/// Facts about a handshake that rustls does not store, as numbers of RFC 8446 §4.2.3.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noted {
    /// The scheme that the server chose to sign with; `None` if a session was resumed.
    pub signature: Option<u16>,
    /// The scheme that the client signed with.
    pub client_signature: Option<u16>,
}

thread_local! {
    static NOTED: Cell<Noted> = const { Cell::new(Noted { signature: None, client_signature: None }) };
}

/// Runs `work`, and returns the facts noted while it ran and no other task did.
pub(super) async fn noting<T>(work: impl Future<Output = T>) -> (T, Noted) {
    let mut work = pin!(work);
    let mut noted = Noted::default();
    let done = poll_fn(|context| note_into(&mut noted, || work.as_mut().poll(context))).await;
    (done, noted)
}

/// Runs `work`, and adds the facts that it notes.
pub(super) fn note_into<T>(noted: &mut Noted, work: impl FnOnce() -> T) -> T {
    NOTED.set(*noted);
    let done = work();
    *noted = NOTED.get();
    done
}

/// RFC 8446's name of a signature scheme, or its number.
pub fn signature_name(scheme: u16) -> String {
    let name = match scheme {
        0x0401 => "rsa_pkcs1_sha256",
        0x0501 => "rsa_pkcs1_sha384",
        0x0601 => "rsa_pkcs1_sha512",
        0x0403 => "ecdsa_secp256r1_sha256",
        0x0503 => "ecdsa_secp384r1_sha384",
        0x0603 => "ecdsa_secp521r1_sha512",
        0x0804 => "rsa_pss_rsae_sha256",
        0x0805 => "rsa_pss_rsae_sha384",
        0x0806 => "rsa_pss_rsae_sha512",
        0x0807 => "ed25519",
        0x0201 => "rsa_pkcs1_sha1",
        0x0203 => "ecdsa_sha1",
        other => return format!("0x{other:04x}"),
    };
    name.to_owned()
}

/// Chooses a certificate of the server that the client can check.
#[derive(Debug)]
struct Resolver {
    identities: Vec<KeyPair>,
    speaks_tls13: bool,
}

impl Resolver {
    fn new(identities: &[KeyPair], speaks_tls13: bool) -> Resolver {
        let last = |rsa: bool| identities.iter().rev().find(|pair| pair.is_rsa() == rsa);
        // An ECDSA signature takes a tenth of the time; a client that cannot check ECDSA gets RSA.
        let identities = [last(false), last(true)].into_iter().flatten().cloned().collect();
        Resolver { identities, speaks_tls13 }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_tls13 = |suite: &CipherSuite| suite.as_str().is_some_and(|name| name.starts_with("TLS13_"));
        let any_key_goes = self.speaks_tls13 && hello.cipher_suites().iter().any(is_tls13);
        let fits = |pair: &&KeyPair| {
            let key = &pair.certified;
            let scheme = key.key.choose_scheme(hello.signature_schemes()).map(|signer| signer.scheme());
            let goes = any_key_goes || {
                let is_rsa = key.key.algorithm() == rustls::SignatureAlgorithm::RSA;
                let wanted = if is_rsa { "_ECDHE_RSA_" } else { "_ECDHE_ECDSA_" };
                hello.cipher_suites().iter().any(|suite| suite.as_str().is_some_and(|name| name.contains(wanted)))
            };
            if let Some(scheme) = scheme
                && goes
            {
                NOTED.set(Noted { signature: Some(u16::from(scheme)), ..NOTED.get() });
            }
            goes && scheme.is_some()
        };
        // If none fits, rustls chooses the alert itself.
        self.identities.iter().find(fits).or(self.identities.first()).map(KeyPair::shown)
    }
}

/// Asks for a certificate and accepts every one with a valid signature.
#[derive(Debug)]
struct Asker {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Asker {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        X509::read(leaf).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = signature::verify_tls12(message, leaf, signed, &self.algorithms)?;
        note_client(signed.scheme);
        Ok(valid)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = signature::verify_tls13(message, leaf, signed, &self.algorithms)?;
        note_client(signed.scheme);
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn note_client(scheme: SignatureScheme) {
    NOTED.set(Noted { client_signature: Some(u16::from(scheme)), ..NOTED.get() });
}

/// A file of secrets in NSS's format, opened when the first secret is written.
pub struct KeyLogFile {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl KeyLogFile {
    /// Appends secrets to the file of this name.
    pub fn new(path: impl Into<PathBuf>) -> KeyLogFile {
        KeyLogFile { path: path.into(), file: Mutex::new(None) }
    }
}

impl fmt::Debug for KeyLogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyLogFile({})", self.path.display())
    }
}

impl rustls::KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path).ok();
        }
        if let Some(file) = file.as_mut() {
            // If this debugging aid cannot be written, nothing else fails.
            let _ = file.write_all(line.as_bytes());
        }
    }
}
