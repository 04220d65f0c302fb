//! Sessions that a client resumes, and early data.

use super::always;
use super::pair::{Identity, Pair, client, server, serving};
use crate::id::WorkerPlace;
use quinn_proto::{Connection, Dir, StreamId};
use std::sync::Arc;
use weir_net::tls::{ServerOptions, SessionCache, TicketKeys};

/// The bytes of a stream that have arrived.
pub fn read(connection: &mut Connection, id: StreamId) -> Vec<u8> {
    let mut stream = connection.recv_stream(id);
    let mut chunks = stream.read(true).unwrap();
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes.extend_from_slice(&chunk.bytes);
    }
    let _ = chunks.finalize();
    bytes
}

#[test]
fn a_ticket_resumes_a_session_with_its_certificate_and_without_early_data() {
    let (own, customer) = (Identity::of("a.test"), Identity::of("customer"));
    let tickets = Some(Arc::new(TicketKeys::rolling(300)));
    let options = ServerOptions { tickets, asks_for: Some(Vec::new()), ..own.options() };
    let mut config = client(&[&own], Some(&customer));
    config.enable_early_data = true;
    let config = Arc::new(config);
    let mut pair = Pair::new(always(server(&options)));
    for resumes in [false, true] {
        pair.connect(&config, "a.test");
        assert!(!pair.near.as_ref().unwrap().connection.has_0rtt());
        pair.pass();
        pair.connected();
        let agreement = pair.handshake.take().unwrap().take().unwrap().unwrap();
        assert_eq!(agreement.is_resumed, resumes);
        assert_eq!(agreement.noted.signature.is_none(), resumes);
        assert_eq!(agreement.certificates, [Box::from(customer.der.as_ref())]);
    }
}

/// Options that accept early data, with a cache for all workers.
fn early(own: &Identity) -> ServerOptions {
    let cache = Some(Arc::new(SessionCache::new(1 << 20)));
    ServerOptions { early_data_max: 16 << 10, cache, ..own.options() }
}

/// A pair that has made a first connection, so that the next one may send early data.
fn acquainted(options: &ServerOptions, own: &Identity) -> (Pair, Arc<rustls::ClientConfig>) {
    let mut config = client(&[own], None);
    config.enable_early_data = true;
    let config = Arc::new(config);
    let mut pair = Pair::new(always(server(options)));
    pair.connect(&config, "a.test");
    pair.pass();
    pair.connected();
    (pair, config)
}

/// Begins a connection with early data on a stream.
fn hurry(pair: &mut Pair, config: &Arc<rustls::ClientConfig>) -> StreamId {
    pair.connect(config, "a.test");
    let near = &mut pair.near.as_mut().unwrap().connection;
    assert!(near.has_0rtt());
    let id = near.streams().open(Dir::Uni).unwrap();
    near.send_stream(id).write(b"early").unwrap();
    id
}

#[test]
fn early_data_is_accepted_once_for_a_session() {
    let own = Identity::of("a.test");
    let (mut pair, config) = acquainted(&early(&own), &own);
    let id = hurry(&mut pair, &config);
    let flight = pair.sends();
    pair.receives(flight.clone());
    let far = &mut pair.far.as_mut().unwrap().connection;
    assert!(far.has_0rtt() && far.is_handshaking());
    assert_eq!(far.streams().accept(Dir::Uni), Some(id));
    assert_eq!(read(far, id), b"early");
    let agreement = pair.handshake.as_ref().unwrap().take().unwrap().unwrap();
    assert!(agreement.is_resumed && agreement.alpn == b"h3" && agreement.group != 0);
    pair.pass();
    let (near, _) = pair.connected();
    assert!(near.connection.accepted_0rtt());
    // An attacker sends the same datagrams to another worker.
    pair.server = serving(&pair.keys, WorkerPlace { generation: 1, worker: 3, socket: 0 });
    (pair.far, pair.handshake) = (None, None);
    pair.receives(flight);
    let far = &mut pair.far.as_mut().unwrap().connection;
    assert!(!far.has_0rtt() && far.streams().accept(Dir::Uni).is_none());
    assert!(pair.handshake.unwrap().take().is_none());
}

#[test]
fn a_server_with_other_limits_refuses_early_data_and_serves_all_the_same() {
    let own = Identity::of("a.test");
    let options = early(&own);
    let (mut pair, config) = acquainted(&options, &own);
    let other = weir_net::tls::Server::new(&options.for_quic(&[b"h3"], b"other limits")).unwrap();
    pair.choice = std::rc::Rc::new(always(other));
    let id = hurry(&mut pair, &config);
    pair.pass();
    let (near, far) = pair.connected();
    assert!(!near.connection.accepted_0rtt() && !far.connection.has_0rtt());
    assert_eq!(far.connection.streams().accept(Dir::Uni), None);
    // The client opens its streams again.
    assert!(near.connection.send_stream(id).write(b"late").is_err());
    assert_eq!(near.connection.streams().open(Dir::Uni), Some(id));
}
