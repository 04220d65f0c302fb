//! The server's answer to a client that breaks the rules of records: the alert that RFC 8446 names, and then the end.
//!
//! The client is rustls with an encrypter that spoils one record: real keys, real handshakes, one wrong record.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tls/authority.rs"]
#[allow(dead_code)]
mod authority;
mod common;

use authority::Authority;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundOpaqueMessage, OutboundPlainMessage,
    PrefixedPayload, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, DigitallySignedStruct,
    Error, SignatureScheme, SupportedCipherSuite, Tls13CipherSuite,
};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use weir_net::tls::{Beginning, KeyPair, Server, ServerOptions};
use weir_net::{Deadline, TlsStream, worker};

/// A change to one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoil {
    /// The record gets this type and this content.
    Becomes(u8, &'static [u8]),
    /// The record is sent unencrypted.
    InPlainText,
}

thread_local! {
    /// For the next record of application data.
    static DATA: Cell<Option<Spoil>> = const { Cell::new(None) };
    /// For the Finished.
    static FINISHED: Cell<Option<Spoil>> = const { Cell::new(None) };
}

struct Spoiling(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for Spoiling {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Spoiler(self.0.encrypter(key, iv)))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(&self, key: AeadKey, iv: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

struct Spoiler(Box<dyn MessageEncrypter>);

impl MessageEncrypter for Spoiler {
    fn encrypt(&mut self, record: OutboundPlainMessage<'_>, seq: u64) -> Result<OutboundOpaqueMessage, Error> {
        let spoil = match record.typ {
            ContentType::Handshake => FINISHED.take(),
            ContentType::ApplicationData => DATA.take(),
            _ => None,
        };
        match spoil {
            None => self.0.encrypt(record, seq),
            Some(Spoil::Becomes(typ, content)) => {
                let payload = OutboundChunks::Single(content);
                let (typ, version) = (ContentType::from(typ), record.version);
                self.0.encrypt(OutboundPlainMessage { typ, version, payload }, seq)
            }
            Some(Spoil::InPlainText) => {
                let mut payload = PrefixedPayload::with_capacity(record.payload.len());
                payload.extend_from_chunks(&record.payload);
                let (typ, version) = (record.typ, record.version);
                // The key counts records and must see each of them.
                self.0.encrypt(record, seq)?;
                Ok(OutboundOpaqueMessage::new(typ, version, payload))
            }
        }
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.0.encrypted_payload_len(payload_len)
    }
}

/// Accepts any certificate: the server's identity does not matter here.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

fn spoiling() -> ClientConnection {
    // rustls wants it for ever.
    static SPOILED: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
        let Some(SupportedCipherSuite::Tls13(suite)) =
            aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|suite| matches!(suite, SupportedCipherSuite::Tls13(_)))
        else {
            panic!("no suite of TLS 1.3");
        };
        Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: suite.common.suite,
                hash_provider: suite.common.hash_provider,
                confidentiality_limit: suite.common.confidentiality_limit,
            },
            hkdf_provider: suite.hkdf_provider,
            aead_alg: Box::leak(Box::new(Spoiling(suite.aead_alg))),
            quic: None,
        }
    });
    let suites = vec![SupportedCipherSuite::Tls13(&SPOILED)];
    let provider = CryptoProvider { cipher_suites: suites, ..aws_lc_rs::default_provider() };
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
}

/// Serves one client: shakes hands, reads to the end, and sends the alert if TLS failed.
async fn serve(stream: weir_net::Stream, server: &Server) {
    let deadline = Deadline::new();
    deadline.set(Duration::from_secs(20));
    let tls = TlsStream::accepted(stream);
    let Ok(Beginning::Tls(_)) = tls.hear(&[], &deadline).await else { return };
    tls.begin(server).unwrap();
    let mut read = Vec::new();
    if tls.handshake(&deadline).await.is_ok() {
        while tls.readable(&deadline).await.is_ok() {
            match tls.try_read_vec(&mut read, 4096) {
                Ok(0) => break,
                Ok(_) => read.clear(),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
    }
    tls.say_why(&deadline).await;
}

/// Runs `act` as the client of a server; returns its result.
fn with_server<T: Send + 'static>(act: impl FnOnce(TcpStream) -> T + Send + 'static) -> T {
    let made = Authority::new();
    let pair = KeyPair::read(&made.read("good.pem"), &made.read("leaf.key"), &[]).unwrap();
    let server = Server::new(&ServerOptions { identities: vec![pair], ..ServerOptions::default() }).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    worker::block_on(async move {
        let (stream, client) = common::pair().await;
        let thread = std::thread::Builder::new().spawn(move || send.send(act(client)).unwrap()).unwrap();
        serve(stream, &server).await;
        drop(thread);
    })
    .unwrap();
    receive.recv().unwrap()
}

/// The alert that the client receives, after a handshake with a spoiled Finished, or after spoiled data.
fn hears(finished: Option<Spoil>, data: &[Option<Spoil>]) -> AlertDescription {
    let data = data.to_vec();
    with_server(move |mut socket| {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        FINISHED.set(finished);
        let mut session = spoiling();
        while session.is_handshaking() {
            if let Err(error) = session.complete_io(&mut socket) {
                return alert_of(&error);
            }
        }
        for spoil in data {
            DATA.set(spoil);
            session.writer().write_all(b"data").unwrap();
        }
        // Bytes that the server does not read: a close with RST would destroy the alert.
        session.writer().write_all(&[0; 40_000]).unwrap();
        while session.wants_write() {
            let _ = session.write_tls(&mut socket).unwrap();
        }
        loop {
            assert_ne!(session.read_tls(&mut socket).expect("no RST"), 0, "the end before an alert");
            if let Err(Error::AlertReceived(alert)) = session.process_new_packets() {
                return alert;
            }
        }
    })
}

fn alert_of(error: &std::io::Error) -> AlertDescription {
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(Error::AlertReceived(alert)) => *alert,
        _ => panic!("no alert: {error}"),
    }
}

#[test]
fn records_that_may_not_stand_there_get_their_alert() {
    use AlertDescription::{DecodeError, UnexpectedMessage};
    for (what, finished, data, wanted) in [
        ("no content type, after", None, &[Some(Spoil::Becomes(0, b""))][..], UnexpectedMessage),
        ("no content type, within", Some(Spoil::Becomes(0, b"")), &[], UnexpectedMessage),
        ("only padding", None, &[Some(Spoil::Becomes(0, &[0; 60]))], UnexpectedMessage),
        ("an empty alert", None, &[Some(Spoil::Becomes(21, b""))], UnexpectedMessage),
        ("an unknown type", None, &[Some(Spoil::Becomes(99, b"x"))], UnexpectedMessage),
        ("an empty handshake record", None, &[Some(Spoil::Becomes(22, b""))], UnexpectedMessage),
        ("data within a message", None, &[Some(Spoil::Becomes(22, &[24, 0])), None], UnexpectedMessage),
        ("a Finished in plain text", Some(Spoil::InPlainText), &[], UnexpectedMessage),
        ("data in plain text", None, &[Some(Spoil::InPlainText)], AlertDescription::BadRecordMac),
        ("a short Finished", Some(Spoil::Becomes(22, &[20, 0, 0, 1, 7])), &[], DecodeError),
    ] {
        assert_eq!(hears(finished, data), wanted, "{what}");
    }
}

#[test]
fn before_there_are_keys_alerts_are_plain() {
    // The beginning of a ClientHello of 256 bytes, then a record of application data.
    let mut within = vec![22, 3, 1, 0, 10, 1, 0, 1, 0, 3, 3, 7, 7, 7, 7];
    within.extend([23, 3, 3, 0, 1, 0]);
    within.extend([22, 3, 1, 0, 250]);
    within.extend([7; 250]);
    for (what, bytes) in [
        ("data within a message", within),
        ("another message than a ClientHello", vec![22, 3, 1, 0, 8, 4, 0, 0, 4, 7, 7, 7, 7]),
    ] {
        let heard = with_server(move |mut socket| {
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            socket.write_all(&bytes).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let mut heard = Vec::new();
            socket.read_to_end(&mut heard).unwrap();
            heard
        });
        assert_eq!(heard, [21, 3, 3, 0, 2, 2, 10], "{what}");
    }
}
