//! The session alone, with rustls's client.

use super::super::session::TlsSession;
use super::super::waiting::Waiting;
use super::super::{Crypto, Handshake};
use super::pair::{Identity, client, server};
use super::{always, code};
use quinn_proto::crypto::Session;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Version};
use std::sync::Arc;

fn session(own: &Identity) -> (TlsSession, Handshake) {
    let handshake = Handshake::default();
    let chooser = Waiting::keep(Box::new(always(server(&own.options()))));
    let suite = Crypto::new(2).unwrap().suite;
    // max_idle_timeout of one second: some parameter.
    (TlsSession::new(suite, Some(chooser), vec![1, 2, 0x43, 0xe8], handshake.clone(), Arc::default()), handshake)
}

fn hello(own: &Identity) -> ClientConnection {
    let name = ServerName::try_from("a.test").unwrap();
    ClientConnection::new(Arc::new(client(&[own], None)), Version::V1, name, vec![1, 2, 0x43, 0xe8]).unwrap()
}

fn written(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.write_hs(&mut bytes).is_some() {}
    bytes
}

#[test]
fn a_hello_may_come_byte_by_byte_and_nothing_may_come_after_the_handshake() {
    let own = Identity::of("a.test");
    let (mut session, handshake) = session(&own);
    let mut client = hello(&own);
    let mut answer = Vec::new();
    for byte in written(&mut client) {
        assert!(session.write_handshake(&mut answer).is_none() && answer.is_empty());
        assert!(!session.read_handshake(&[byte]).unwrap());
    }
    let mut keys = 0;
    while session.write_handshake(&mut answer).is_some() {
        keys += 1;
        client.read_hs(&std::mem::take(&mut answer)).unwrap();
    }
    assert_eq!(keys, 2);
    assert!(session.is_handshaking() && handshake.take().is_none());
    assert!(session.read_handshake(&written(&mut client)).unwrap());
    assert!(session.write_handshake(&mut answer).is_none());
    assert!(!session.is_handshaking() && handshake.take().unwrap().is_ok());
    assert!(session.next_1rtt_keys().is_some());
    // KeyUpdate (RFC 9001 §6).
    let error = session.read_handshake(&[24, 0, 0, 1, 0]).unwrap_err();
    assert_eq!(u64::from(error.code), code(10));
}

#[test]
fn what_is_no_hello_is_refused_with_its_alert() {
    let own = Identity::of("a.test");
    let key_update = &[24, 0, 0, 1, 0][..];
    for (bytes, alert) in [(key_update, 10), (&[1, 0, 0, 1, 0], 50), (&[1, 0xff, 0xff, 0xff], 50)] {
        let (mut session, handshake) = session(&own);
        let error = session.read_handshake(bytes).unwrap_err();
        assert_eq!(u64::from(error.code), code(alert));
        assert!(session.is_handshaking() && handshake.take().unwrap().is_err());
        assert!(session.write_handshake(&mut Vec::new()).is_none());
        assert!(session.read_handshake(b"\x01").is_err());
    }
}

mod mutate {
    use super::*;

    fn list(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    /// A hello that the session answers, the same each time.
    fn hello() -> Vec<u8> {
        let name = list(&[&[0][..], &list(b"a.test")].concat());
        let share = list(&[&[0, 29][..], &list(&[9; 32])].concat());
        let extensions: [(u8, &[u8]); 7] = [
            (0, &name),
            (10, &[0, 2, 0, 29]),
            (13, &[0, 2, 4, 3]),
            (16, b"\0\x03\x02h3"),
            (43, &[2, 3, 4]),
            (51, &share),
            (57, &[1, 2, 0x43, 0xe8]),
        ];
        let extensions = extensions.iter().flat_map(|(kind, body)| [&[0, *kind][..], &list(body)].concat());
        let extensions = list(&extensions.collect::<Vec<u8>>());
        let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &extensions].concat();
        [&[1, 0][..], &list(&body)].concat()
    }

    /// Whether a whole message is in `bytes`.
    fn has_message(bytes: &[u8]) -> bool {
        matches!(bytes, [_, a, b, c, body @ ..] if body.len() >= u32::from_be_bytes([0, *a, *b, *c]) as usize)
    }

    /// Whatever a client sends in CRYPTO frames, in one piece or two, it gets an answer, an error, or is waited for.
    ///
    /// The pieces make no difference up to the end of the hello. After it, rustls's error depends on the pieces.
    #[test]
    fn first_flights() {
        let own = Identity::of("a.test");
        let (mut answers, _) = session(&own);
        answers.read_handshake(&hello()).unwrap();
        assert!(answers.write_handshake(&mut Vec::new()).is_some());
        weir_mutate::mutate(&[hello()], &[&[1, 0, 0][..], &[0, 43, 0, 3, 2, 3, 4], &[0, 57, 0, 4]], |bytes| {
            let (mut whole, mut split) = (session(&own).0, session(&own).0);
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            let read = whole.read_handshake(bytes);
            let again = split.read_handshake(first).and_then(|_| split.read_handshake(rest));
            if !has_message(first) {
                assert_eq!(read.as_ref().err().map(|error| error.code), again.err().map(|error| error.code));
            }
            let mut answer = Vec::new();
            let keys = whole.write_handshake(&mut answer);
            assert!(whole.is_handshaking() && (read.is_ok() || keys.is_none()) && answer.len() < 64 << 10);
            let _ = whole.transport_parameters();
        });
    }
}
