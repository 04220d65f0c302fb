//! Laws of TLS in QUIC, with quinn-proto's own client.

mod early;
mod migrate;
mod pair;
mod retry;
mod session;

use crate::id::{WorkerPlace, destination};
use pair::{Identity, Pair, client, server};
use quinn_proto::{ConnectionError, DatagramEvent, Dir, Event, TransportErrorCode};
use rustls::pki_types::CertificateDer;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::tls::ciphers::{Groups, Protocols};
use weir_net::tls::{Alert, ClientHello, Server, ServerOptions};

/// The code of an alert (RFC 9001 §4.8).
fn code(alert: u8) -> u64 {
    0x100 + u64::from(alert)
}

/// The certificate that the client got.
fn shown(pair: &Pair) -> CertificateDer<'static> {
    let identity = pair.near.as_ref().unwrap().connection.crypto_session().peer_identity().unwrap();
    identity.downcast::<Vec<CertificateDer<'static>>>().unwrap()[0].clone()
}

fn always(server: Server) -> impl Fn(&ClientHello) -> Result<Server, Alert> {
    move |_| Ok(server.clone())
}

#[test]
fn each_name_gets_its_certificate_and_an_unknown_name_an_alert() {
    let (first, second) = (Identity::of("a.test"), Identity::of("b.test"));
    let config = Arc::new(client(&[&first, &second], None));
    let servers = [server(&first.options()), server(&second.options())];
    let mut pair = Pair::new(move |hello| match hello.server_name.as_deref() {
        Some("a.test") => Ok(servers[0].clone()),
        Some("b.test") => Ok(servers[1].clone()),
        _ => Err(Alert::UnrecognizedName),
    });
    for (host, identity) in [("a.test", &first), ("b.test", &second)] {
        pair.connect(&config, host);
        pair.pass();
        pair.connected();
        assert_eq!(shown(&pair), identity.der);
    }
    pair.connect(&config, "c.test");
    pair.pass();
    assert_eq!(pair.near.as_ref().unwrap().close_code(), Some(code(112)));
    assert!(
        matches!(&pair.refused, Some(ConnectionError::TransportError(error)) if u64::from(error.code) == code(112))
    );
    assert!(pair.handshake.unwrap().take().is_none());
}

#[test]
fn the_agreement_has_the_facts_of_the_handshake() {
    let (own, customer) = (Identity::of("a.test"), Identity::of("customer"));
    let options = ServerOptions { asks_for: Some(Vec::new()), ..own.options() };
    let mut pair = Pair::new(always(server(&options)));
    pair.connect(&Arc::new(client(&[&own], Some(&customer))), "a.test");
    pair.pass();
    let (_, far) = pair.connected();
    assert_eq!(far.events.iter().filter(|event| matches!(event, Event::HandshakeDataReady)).count(), 1);
    let agreement = pair.handshake.as_ref().unwrap().take().unwrap().unwrap();
    assert_eq!((agreement.version, &agreement.alpn[..], agreement.is_resumed), ("TLSv1.3", &b"h3"[..], false));
    assert!(matches!(agreement.cipher, 0x1301..=0x1303) && agreement.group != 0);
    assert_eq!(agreement.certificates, [Box::from(customer.der.as_ref())]);
    assert_eq!((agreement.noted.signature, agreement.noted.client_signature), (Some(0x0403), Some(0x0403)));
    assert!(pair.handshake.unwrap().take().is_none());
}

#[test]
fn a_client_without_a_common_protocol_version_or_name_learns_why() {
    let own = Identity::of("a.test");
    let tls12 = ServerOptions { protocols: Protocols { tls12: true, tls13: false }, ..own.options() };
    let tcp = ServerOptions { early_data_max: 16 << 10, ..own.options() };
    let mut speaks_other = client(&[&own], None);
    speaks_other.alpn_protocols = vec![b"h2".to_vec()];
    let speaks_h3 = client(&[&own], None);
    assert!(Server::new(&tls12.for_quic(&[b"h3"], b"")).is_err());
    let cases = [
        (server(&own.options()), speaks_other, 120),
        (Server::new(&tls12).unwrap(), speaks_h3.clone(), 70),
        (Server::new(&tcp).unwrap(), speaks_h3, 80),
    ];
    for (server, config, alert) in cases {
        let mut pair = Pair::new(always(server));
        pair.connect(&Arc::new(config), "a.test");
        pair.pass();
        assert_eq!(pair.near.as_ref().unwrap().close_code(), Some(code(alert)));
        let failure = pair.handshake.unwrap().take().map(|result| result.unwrap_err());
        assert_eq!(failure.is_some(), alert == 120);
        assert!(failure.is_none_or(|failure| failure.detail.contains("known protocol")));
    }
}

/// A client whose hello needs two packets.
fn wordy(own: &Identity) -> Arc<rustls::ClientConfig> {
    let mut config = client(&[own], None);
    let others = (0..16).map(|number| vec![b'a' + number; 120]);
    config.alpn_protocols = others.chain([b"h3".to_vec()]).collect();
    Arc::new(config)
}

#[test]
fn a_hello_in_two_packets_is_read_whole_before_the_choice() {
    let own = Identity::of("a.test");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (heard, speaks) = (seen.clone(), server(&own.options()));
    let mut pair = Pair::new(move |hello| {
        heard.borrow_mut().push(hello.clone());
        Ok(speaks.clone())
    });
    pair.connect(&wordy(&own), "a.test");
    let first = pair.sends();
    assert_eq!(first.len(), 2);
    for (number, datagram) in first.into_iter().enumerate() {
        pair.receives(vec![datagram]);
        assert_eq!(seen.borrow().len(), number);
    }
    pair.pass();
    pair.connected();
    assert_eq!((seen.borrow().len(), seen.borrow()[0].alpn.len()), (1, 17));
}

#[test]
fn a_refusal_after_two_packets_reaches_the_client() {
    let own = Identity::of("a.test");
    let mut pair = Pair::new(|_| Err(Alert::UnrecognizedName));
    pair.connect(&wordy(&own), "a.test");
    pair.pass();
    assert!(pair.refused.is_none() && pair.far.is_some());
    assert_eq!(pair.near.as_ref().unwrap().close_code(), Some(code(112)));
}

#[test]
fn a_client_with_another_group_is_asked_again() {
    let own = Identity::of("a.test");
    let groups = Groups::of_list("secp384r1").unwrap().kept;
    let mut pair = Pair::new(always(server(&ServerOptions { groups, ..own.options() })));
    pair.connect(&Arc::new(client(&[&own], None)), "a.test");
    pair.pass();
    pair.connected();
    assert_eq!(pair.handshake.unwrap().take().unwrap().unwrap().group, 24);
}

#[test]
fn after_the_handshake_keys_change_without_rustls() {
    let own = Identity::of("a.test");
    let mut pair = Pair::new(always(server(&own.options())));
    pair.connect(&Arc::new(client(&[&own], None)), "a.test");
    pair.pass();
    let (_, far) = pair.connected();
    // The client's parameters were rustls's.
    assert!(far.connection.crypto_session().transport_parameters().unwrap().is_none());
    for round in 0..3u8 {
        let (near, far) = pair.connected();
        if round == 1 {
            far.connection.force_key_update()
        } else {
            near.connection.force_key_update()
        }
        // Each side must see the other's new keys before the next update (RFC 9001 §6.1).
        far.connection.ping();
        let id = near.connection.streams().open(Dir::Uni).unwrap();
        near.connection.send_stream(id).write(&[round; 100]).unwrap();
        near.connection.send_stream(id).finish().unwrap();
        pair.pass();
        let (_, far) = pair.connected();
        assert_eq!(far.connection.streams().accept(Dir::Uni), Some(id));
        assert_eq!(early::read(&mut far.connection, id), [round; 100]);
    }
}

#[test]
fn parameters_reach_the_client_and_ids_name_the_place() {
    let own = Identity::of("a.test");
    let mut pair = Pair::new(always(server(&own.options())));
    pair.connect(&Arc::new(client(&[&own], None)), "a.test");
    let first = pair.sends();
    assert!(first.iter().all(|datagram| pair.keys.id.open(destination(datagram).unwrap()).is_none()));
    pair.receives(first);
    pair.pass();
    let (near, _) = pair.connected();
    let parameters = near.connection.crypto_session().transport_parameters().unwrap().unwrap();
    assert!(format!("{parameters:?}").contains("active_connection_id_limit: 3"), "{parameters:?}");
    near.connection.ping();
    let sent = pair.sends();
    let place = WorkerPlace { generation: 1, worker: 2, socket: 0 };
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|datagram| pair.keys.id.open(destination(datagram).unwrap()) == Some(place)));
}

#[test]
fn an_endpoint_without_a_choice_refuses() {
    let own = Identity::of("a.test");
    let mut pair = Pair::new(always(server(&own.options())));
    pair.connect(&Arc::new(client(&[&own], None)), "a.test");
    let datagram = pair.sends().remove(0);
    let Some(DatagramEvent::NewConnection(incoming)) = pair.hears(datagram) else { panic!() };
    let accepted = pair.server.accept(incoming, pair.now, &mut Vec::new(), None);
    let Err(refused) = accepted else { panic!() };
    assert!(matches!(refused.cause, ConnectionError::TransportError(error)
        if error.code == TransportErrorCode::crypto(Alert::InternalError as u8)));
}
