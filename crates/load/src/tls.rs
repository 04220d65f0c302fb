//! `config.tls` (artillery.md §1.1): the TLS settings of every engine, under got's names and Node's.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use weir_net::tls::{Client, ClientCertificate, ClientOptions, Failure, HandshakeFault, OptionError, Sessions};
use weir_net::{Deadline, Stream, TlsStream, Transport};

use crate::value::{Map, Value};

/// TLS options that a connection may set for itself.
const OWN: [&str; 7] = ["ca", "cert", "key", "pfx", "passphrase", "servername", "rejectUnauthorized"];

/// The protocol that a client offers by ALPN (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// None, which means HTTP/1.1.
    Nothing,
    /// HTTP/2 alone (RFC 9113 §3.2).
    Http2,
    /// HTTP/3 alone (RFC 9114 §3.1).
    Http3,
    /// The same, and early data with a session that allows it.
    Http3Early,
}

impl Offer {
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Offer::Nothing => Vec::new(),
            Offer::Http2 => vec![b"h2".to_vec()],
            Offer::Http3 | Offer::Http3Early => vec![b"h3".to_vec()],
        }
    }
}

/// The TLS settings of a script; prepared when the first connection needs them.
#[derive(Debug, Default)]
pub struct Tls {
    options: ClientOptions,
    /// Sent as SNI and expected in the certificate, instead of the host.
    server_name: Option<Rc<str>>,
    /// The client for each [`Offer`].
    clients: [OnceCell<Client>; 4],
    /// The options as the script wrote them.
    written: Map,
}

impl Tls {
    /// Reads `config.tls`. Options that weir does not support are an error, as a sentence for the user.
    pub fn new(map: &Map) -> Result<Rc<Tls>, String> {
        for (name, instead) in [
            ("pfx", "weir does not read PKCS #12 bundles; write `cert` and `key`"),
            ("passphrase", "weir does not read encrypted keys; export the key without a passphrase"),
        ] {
            if map.get(name).is_some_and(Value::is_truthy) {
                return Err(format!("config.tls.{name}: {instead}"));
            }
        }
        let authorities = texts(either(map, "ca", "certificateAuthority").1);
        let (certificate, key) = (either(map, "cert", "certificate"), ("key", map.get("key")));
        let identity = match (texts(certificate.1).concat(), texts(key.1).concat()) {
            (certificates, _) if certificates.is_empty() => None,
            (_, key) if key.is_empty() => {
                return Err(format!("config.tls.{}: a certificate needs its `key`", certificate.0));
            }
            (certificates, key) => Some(ClientCertificate { certificates, key }),
        };
        let server_name = map.get("servername").filter(|name| name.is_truthy());
        let tls = Tls {
            options: ClientOptions {
                accepts_anyone: accepts_anyone(map),
                authorities,
                identity,
                ..ClientOptions::default()
            },
            server_name: server_name.map(|name| name.to_text().into()),
            clients: Default::default(),
            written: map.clone(),
        };
        if tls.options.identity.is_some() || !tls.options.authorities.is_empty() {
            // Certificates and keys in the script are checked before the first connection.
            let client = Client::new(&tls.options).map_err(|error| {
                let place = match &error {
                    OptionError::Authorities(_) => either(map, "ca", "certificateAuthority").0,
                    OptionError::Certificates(_) => certificate.0,
                    OptionError::Key(_) => "key",
                };
                format!("config.tls.{place} {error}")
            })?;
            let [nothing, ..] = &tls.clients;
            let _ = nothing.set(client);
        }
        Ok(Rc::new(tls))
    }

    /// The same settings, but any certificate is accepted.
    pub fn accepting_anyone(&self) -> Rc<Tls> {
        let options = ClientOptions { accepts_anyone: true, ..self.options.clone() };
        let (server_name, written) = (self.server_name.clone(), self.written.clone());
        Rc::new(Tls { options, server_name, clients: Default::default(), written })
    }

    /// The settings for a connection with its own options: as in Node's TLS, those win over `config.tls`.
    pub fn with(self: &Rc<Tls>, options: &Map) -> Result<Rc<Tls>, String> {
        let own = OWN.iter().filter_map(|name| Some((Arc::from(*name), options.get(*name)?.clone())));
        let own: Map = own.collect();
        if own.is_empty() {
            return Ok(self.clone());
        }
        let mut all = self.written.clone();
        // Otherwise the value in `config.tls` under got's name would win.
        for (node, got) in [("ca", "certificateAuthority"), ("cert", "certificate")] {
            if own.contains_key(node) {
                all.shift_remove(got);
            }
        }
        all.extend(own);
        Tls::new(&all)
    }

    /// The client for a protocol.
    pub fn client(&self, offer: Offer) -> Result<&Client, Failure> {
        let [nothing, http2, http3, http3_early] = &self.clients;
        let cell = match offer {
            Offer::Nothing => nothing,
            Offer::Http2 => http2,
            Offer::Http3 => http3,
            Offer::Http3Early => http3_early,
        };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let (alpn, early_data) = (offer.names(), offer == Offer::Http3Early);
        let options = ClientOptions { alpn, early_data, ..self.options.clone() };
        let client = Client::new(&options).map_err(|error| Failure {
            code: "EPROTO",
            detail: error.to_string(),
            fault: HandshakeFault::Other,
            distrust: None,
        })?;
        Ok(cell.get_or_init(|| client))
    }

    /// The name that is sent as SNI, and that the certificate must have, for a host.
    pub fn name<'n>(&'n self, host: &'n str) -> &'n str {
        self.server_name.as_deref().unwrap_or(host)
    }

    /// Does the handshake with `host` over a connected stream.
    pub async fn open(
        &self,
        stream: Stream,
        host: &str,
        offer: Offer,
        sessions: Option<&Sessions>,
        deadline: &Deadline,
    ) -> std::io::Result<Transport> {
        let tls = TlsStream::client(stream, self.client(offer)?, self.name(host), sessions)?;
        tls.handshake(deadline).await?;
        Ok(tls.into())
    }
}

/// True for `rejectUnauthorized: false` exactly. If it is not set, Node's own environment variable decides.
fn accepts_anyone(map: &Map) -> bool {
    match map.get("rejectUnauthorized") {
        Some(value) => *value == Value::Bool(false),
        None => std::env::var_os("NODE_TLS_REJECT_UNAUTHORIZED").is_some_and(|value| value == "0"),
    }
}

/// The member under one of two names, and that name.
fn either<'m>(map: &'m Map, node: &'static str, got: &'static str) -> (&'static str, Option<&'m Value>) {
    match (map.get(node), map.get(got)) {
        (None, Some(value)) => (got, Some(value)),
        (value, _) => (node, value),
    }
}

/// A text, or a list of texts.
fn texts(value: Option<&Value>) -> Vec<Vec<u8>> {
    let text = |value: &Value| format!("{}\n", value.to_text()).into_bytes();
    match value {
        Some(Value::List(list)) => list.iter().filter(|value| value.is_truthy()).map(text).collect(),
        Some(value) if value.is_truthy() => vec![text(value)],
        _ => Vec::new(),
    }
}

/// True if an error of this name says that the target's certificate was not accepted.
pub fn is_about_certificate(name: &str) -> bool {
    let names = [
        "DEPTH_ZERO_SELF_SIGNED_CERT",
        "SELF_SIGNED_CERT_IN_CHAIN",
        "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
        "CERT_HAS_EXPIRED",
        "CERT_NOT_YET_VALID",
        "ERR_TLS_CERT_ALTNAME_INVALID",
    ];
    names.contains(&name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_refused_is_refused_by_name() {
        for (json, wanted) in [
            (r#"{"pfx": "x"}"#, "config.tls.pfx: "),
            (r#"{"passphrase": "x"}"#, "config.tls.passphrase: "),
            (r#"{"cert": "x"}"#, "config.tls.cert: a certificate needs its `key`"),
            (r#"{"certificate": "x"}"#, "config.tls.certificate: a certificate needs its `key`"),
            (r#"{"certificate": "x", "key": "y"}"#, "config.tls.certificate contains no certificate"),
            (r#"{"ca": ["./ca.pem"]}"#, "config.tls.ca contains no certificate"),
            (r#"{"certificateAuthority": "ca"}"#, "config.tls.certificateAuthority contains no certificate"),
        ] {
            let error = Tls::new(&map(json)).unwrap_err();
            assert!(error.starts_with(wanted), "{json}: {error}");
        }
    }

    #[test]
    fn only_false_lets_anyone_in() {
        for (json, wanted) in [
            (r#"{"rejectUnauthorized": false}"#, true),
            (r#"{"rejectUnauthorized": true}"#, false),
            (r#"{"rejectUnauthorized": "false"}"#, false),
            (r#"{"rejectUnauthorized": 0}"#, false),
        ] {
            assert_eq!(Tls::new(&map(json)).unwrap().options.accepts_anyone, wanted, "{json}");
        }
    }

    #[test]
    fn a_connections_own_options_count_before_the_configuration() {
        let tls = Tls::new(&map(r#"{"rejectUnauthorized": true, "servername": "a"}"#)).unwrap();
        assert!(Rc::ptr_eq(&tls.with(&map(r#"{"path": "/x"}"#)).unwrap(), &tls));
        let own = tls.with(&map(r#"{"rejectUnauthorized": false}"#)).unwrap();
        assert_eq!((own.options.accepts_anyone, own.server_name.as_deref()), (true, Some("a")));
        let own = tls.with(&map(r#"{"servername": "b"}"#)).unwrap();
        assert_eq!((own.options.accepts_anyone, own.server_name.as_deref()), (false, Some("b")));
        let error = tls.with(&map(r#"{"ca": "none"}"#)).unwrap_err();
        assert!(error.contains("contains no certificate"), "{error}");
    }

    fn map(json: &str) -> Map {
        let Value::Map(map) = crate::value::parse_json(json.as_bytes()).unwrap() else { unreachable!("{json}") };
        (*map).clone()
    }
}
