//! The TLS settings of a client: trusted authorities, its own certificate, and its offers.

use super::error::Failure;
use super::judge::{Anyone, Judge};
use super::sessions::Store;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::sync::Arc;

/// The TLS options of a client.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Accepts any certificate; Node's `rejectUnauthorized: false`.
    pub accepts_anyone: bool,
    /// PEM texts or DER of the authorities trusted instead of the system's; an empty list trusts the system's.
    pub authorities: Vec<Vec<u8>>,
    /// The client's own certificate, for servers that ask for one.
    pub identity: Option<ClientCertificate>,
    /// Protocols offered, the best first (RFC 7301); an empty list offers nothing.
    pub alpn: Vec<Vec<u8>>,
    /// Sends early data with a session that allows it (RFC 8446 §4.2.10).
    pub early_data: bool,
}

/// A client's certificate.
#[derive(Clone, Default)]
pub struct ClientCertificate {
    /// PEM: the certificate, and the certificates between it and the authority. Or the DER of one certificate.
    pub certificates: Vec<u8>,
    /// PEM or DER: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// Why the options are invalid: a sentence without a capital, to be put behind the option's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// In `authorities`.
    Authorities(String),
    /// In the identity's certificates.
    Certificates(String),
    /// In the identity's key.
    Key(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (OptionError::Authorities(text) | OptionError::Certificates(text) | OptionError::Key(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for OptionError {}

/// A client's configuration, ready for use; clones and threads share it.
#[derive(Clone)]
pub struct Client {
    pub(super) config: Arc<ClientConfig>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tls::Client")
    }
}

impl Client {
    /// Reads the options; reads the system's authorities if none are given (a few milliseconds).
    pub fn new(options: &ClientOptions) -> Result<Client, OptionError> {
        let provider = Arc::new(provider());
        let judge = judge(options, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::ALL_VERSIONS);
        let builder = builder.map_err(|error| OptionError::Authorities(error.to_string()))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(judge);
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = certificates(&identity.certificates).map_err(OptionError::Certificates)?;
                let key = key(&identity.key).map_err(OptionError::Key)?;
                let with = builder.with_client_auth_cert(chain, key);
                with.map_err(|error| OptionError::Key(format!("does not match the certificate: {error}")))?
            }
        };
        config.alpn_protocols = options.alpn.clone();
        config.resumption = Resumption::store(Arc::new(Store));
        config.enable_early_data = options.early_data;
        Ok(Client { config: Arc::new(config) })
    }
}

/// The name to send and check, or an IP address.
pub(super) fn server_name(server: &str) -> Result<ServerName<'static>, Failure> {
    // A trailing dot marks a complete name; certificates never have it.
    let name = ServerName::try_from(server.strip_suffix('.').unwrap_or(server)).map_err(|_| {
        let detail = format!("\"{server}\" is not a host name that a certificate can contain");
        Failure::new("ERR_TLS_INVALID_SERVERNAME", detail)
    })?;
    Ok(name.to_owned())
}

/// The offered groups: X25519 first, without the hybrid with ML-KEM. The hybrid costs each side another 100 µs, and
/// no Node before 24 offers it. So a server does the same work as for Artillery.
pub(super) fn provider() -> CryptoProvider {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519};
    CryptoProvider { kx_groups: vec![X25519, SECP256R1, SECP384R1], ..aws_lc_rs::default_provider() }
}

fn judge(options: &ClientOptions, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, OptionError> {
    let algorithms = provider.signature_verification_algorithms;
    if options.accepts_anyone {
        return Ok(Arc::new(Anyone(algorithms)));
    }
    let mut roots = RootCertStore::empty();
    let mut trusted = Vec::new();
    for given in &options.authorities {
        trusted.extend(certificates(given).map_err(OptionError::Authorities)?);
    }
    if options.authorities.is_empty() {
        // A certificate that cannot be read is not used. Without any authority, every server is refused with a named
        // error.
        roots.add_parsable_certificates(system());
    } else {
        let (good, bad) = roots.add_parsable_certificates(trusted.iter().cloned());
        if good == 0 && bad > 0 {
            return Err(OptionError::Authorities("weir cannot read any of the certificates".to_owned()));
        }
    }
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().ok();
    Ok(Arc::new(Judge { webpki, trusted, algorithms }))
}

/// The authorities in DER that this machine trusts.
pub fn system_authorities() -> Vec<Vec<u8>> {
    system().iter().map(|der| der.to_vec()).collect()
}

/// The system's authorities (`SSL_CERT_FILE` and `SSL_CERT_DIR` change their place), and those of
/// `NODE_EXTRA_CA_CERTS`.
fn system() -> Vec<CertificateDer<'static>> {
    let mut all = rustls_native_certs::load_native_certs().certs;
    let extra = std::env::var_os("NODE_EXTRA_CA_CERTS").and_then(|path| std::fs::read(path).ok());
    all.extend(extra.and_then(|text| certificates(&text).ok()).unwrap_or_default());
    all
}

fn certificates(given: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    if is_der(given) {
        return Ok(vec![CertificateDer::from(given.to_vec())]);
    }
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(given).collect();
    match read {
        Ok(all) if all.is_empty() => {
            Err("contains no certificate; give its text, which begins with -----BEGIN CERTIFICATE-----".to_owned())
        }
        Ok(all) => Ok(all),
        Err(error) => Err(format!("is not PEM: {error}")),
    }
}

fn key(given: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if is_der(given) {
        return PrivateKeyDer::try_from(given.to_vec()).map_err(str::to_owned);
    }
    if contains(given, b"ENCRYPTED") {
        return Err(
            "is encrypted, and weir does not decrypt this key; decrypt it with: openssl pkey -in KEY -out PLAIN"
                .to_owned(),
        );
    }
    PrivateKeyDer::from_pem_slice(given)
        .map_err(|_| "contains no private key; give its text, which begins with -----BEGIN PRIVATE KEY-----".to_owned())
}

/// DER begins with a SEQUENCE, PEM with letters.
fn is_der(given: &[u8]) -> bool {
    matches!(given, [0x30, 0x80..=0x84, ..])
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_be_had() {
        let identity = |certificates: &[u8], key: &[u8]| ClientOptions {
            identity: Some(ClientCertificate { certificates: certificates.to_vec(), key: key.to_vec() }),
            ..ClientOptions::default()
        };
        let authorities = ClientOptions { authorities: vec![b"./ca.pem".to_vec()], ..ClientOptions::default() };
        for (options, wanted) in
            [(authorities, "contains no certificate"), (identity(b"zzz", b""), "contains no certificate")]
        {
            let error = Client::new(&options).expect_err("refused").to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
        assert!(key(b"-----BEGIN ENCRYPTED PRIVATE KEY-----").is_err_and(|error| error.starts_with("is encrypted")));
        assert!(key(b"zzz").is_err_and(|error| error.starts_with("contains no private key")));
    }
}
