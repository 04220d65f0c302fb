//! The TLS settings of a proxy towards its origins: they follow nginx, while [`ClientOptions`](super::ClientOptions)
//! follow Node.
//!
//! Origins are judged by OpenSSL's rules. Accepted are certificates of version 1, certificates with the host only in
//! the common name, and certificates of an authority that is also a server; webpki refuses to read all of these.

use super::chain::{Purpose, Trust};
use super::ciphers::{Ciphers, Protocols};
use super::client::{Client, provider, system_authorities};
use super::error::Failure;
use super::judge::{Anyone, is_common_name};
use super::keys::KeyPair;
use super::server::KeyLogFile;
use super::sessions::Store;
use super::signature;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, DnsName, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use std::net::IpAddr;
use std::sync::Arc;

/// Authorities that may stand between a trusted one and a server that weir asks itself.
const DEPTH: usize = 10;

/// The TLS options of a proxy towards origins.
#[derive(Debug)]
pub struct OriginOptions {
    /// Versions offered.
    pub protocols: Protocols,
    /// Cipher suites offered, the best first.
    pub ciphers: Ciphers,
    /// The trusted authorities, and how many authorities may stand between them and an origin. `None` accepts any
    /// certificate, as nginx does by default.
    pub trust: Option<(Trust, usize)>,
    /// Sends the server's name in the handshake (SNI, RFC 6066).
    pub sends_name: bool,
    /// Resumes sessions.
    pub resumes: bool,
    /// Protocols offered, the best first (RFC 7301); an empty list offers nothing.
    pub alpn: Vec<Vec<u8>>,
    /// The file for the keys of connections, for tools that decrypt the traffic.
    pub key_log: Option<Arc<KeyLogFile>>,
}

impl Client {
    /// A proxy's client; fails with a sentence if nothing is left to offer.
    pub fn for_origins(options: OriginOptions) -> Result<Client, String> {
        let provider = Arc::new(CryptoProvider { cipher_suites: options.ciphers.all(), ..provider() });
        let algorithms = provider.signature_verification_algorithms;
        let judge: Arc<dyn ServerCertVerifier> = match options.trust {
            None => Arc::new(Anyone(algorithms)),
            Some((trust, depth)) => Arc::new(Trusting { trust, depth, algorithms }),
        };
        let versions = options.protocols.versions();
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
        let builder = builder.map_err(|error| error.to_string())?.dangerous();
        let mut config = builder.with_custom_certificate_verifier(judge).with_no_client_auth();
        config.enable_sni = options.sends_name;
        config.alpn_protocols = options.alpn;
        if let Some(file) = options.key_log {
            config.key_log = file;
        }
        config.resumption = if options.resumes { Resumption::store(Arc::new(Store)) } else { Resumption::disabled() };
        Ok(Client { config: Arc::new(config) })
    }

    /// The client for servers that weir asks itself, for one of these protocols (RFC 7301). Without `trust` it accepts
    /// any certificate. Fails with a sentence if TLS cannot be set up.
    pub fn for_servers(trust: Option<Trust>, protocols: &[&[u8]]) -> Result<Client, String> {
        Client::for_origins(OriginOptions {
            protocols: Protocols::default(),
            ciphers: Ciphers::default(),
            trust: trust.map(|trust| (trust, DEPTH)),
            sends_name: true,
            resumes: false,
            alpn: protocols.iter().map(|protocol| protocol.to_vec()).collect(),
            key_log: None,
        })
    }

    /// The same client with a certificate. It has its own sessions: it never resumes a session that began with
    /// another certificate.
    #[must_use]
    pub fn showing(&self, pair: &KeyPair) -> Client {
        let mut config = ClientConfig::clone(&self.config);
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(pair.certified.clone()));
        Client { config: Arc::new(config) }
    }
}

impl Client {
    /// The same client that offers these protocols (ALPN).
    #[must_use]
    pub fn offering(&self, protocols: Vec<Vec<u8>>) -> Client {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols;
        Client { config: Arc::new(config) }
    }
}

impl Trust {
    /// Trusts the authorities of the machine.
    pub fn of_machine() -> Trust {
        // A certificate that weir cannot read is not used.
        let all = system_authorities().into_iter().filter(|der| Trust::new([der.clone()]).is_ok());
        Trust::new(all).unwrap_or_default()
    }
}

/// Whether a certificate is for a host, by the rules of OpenSSL's `X509_check_host`: by its DNS names, or by its
/// common name if it has no DNS names. An IP address is not a name, and matches no certificate.
pub(super) fn is_for(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let Ok(name) = DnsName::try_from(host) else {
        return false;
    };
    let server = ServerName::DnsName(name);
    let named = ParsedCertificate::try_from(certificate).and_then(|read| verify_server_name(&read, &server));
    named.is_ok() || is_common_name(certificate, &server)
}

/// Whether a certificate is for an address, by its subjectAltName.
pub(super) fn is_for_address(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let server = ServerName::from(address);
    ParsedCertificate::try_from(certificate).and_then(|read| verify_server_name(&read, &server)).is_ok()
}

/// Judges servers by a [`Trust`]; the name is checked after the handshake.
#[derive(Debug)]
struct Trusting {
    trust: Trust,
    depth: usize,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain: Vec<&[u8]> = std::iter::once(leaf).chain(others).map(AsRef::as_ref).collect();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let Err(complaint) = self.trust.judge(&chain, Purpose::Server, self.depth, now) else {
            return Ok(ServerCertVerified::assertion());
        };
        let refused = Failure { distrust: Some(complaint), ..Failure::new("CERT_REJECTED", complaint.text) };
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(refused)))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature::verify_tls12(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature::verify_tls13(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
