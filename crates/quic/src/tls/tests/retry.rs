//! Retry packets, and the keys of their tokens.

use super::always;
use super::pair::{Identity, Pair, client, server, serving};
use crate::id::WorkerPlace;
use crate::keys::Keys;
use bytes::BytesMut;
use quinn_proto::{DatagramEvent, Incoming};
use std::sync::Arc;

fn incoming(pair: &mut Pair, datagrams: Vec<BytesMut>) -> Incoming {
    let event = datagrams.into_iter().next().and_then(|datagram| pair.hears(datagram));
    match event {
        Some(DatagramEvent::NewConnection(incoming)) => incoming,
        _ => panic!("no connection"),
    }
}

#[test]
fn a_token_is_valid_after_a_restart_with_the_same_host_key_alone() {
    let own = Identity::of("a.test");
    let config = Arc::new(client(&[&own], None));
    for (host_key, holds) in [([7; 32], true), ([8; 32], false)] {
        let mut pair = Pair::new(always(server(&own.options())));
        pair.connect(&config, "a.test");
        let first = pair.sends();
        let asked = incoming(&mut pair, first);
        assert!(!asked.remote_address_validated() && asked.may_retry());
        pair.retries(asked);
        pair.keys = Keys::of(&host_key).unwrap();
        pair.server = serving(&pair.keys, WorkerPlace { generation: 2, worker: 0, socket: 0 });
        let second = pair.sends();
        let asked = incoming(&mut pair, second);
        assert_eq!(asked.remote_address_validated(), holds);
        pair.accepts(asked);
        pair.pass();
        // Without the token, the server does not know the id that the client chose first (RFC 9000 §7.3).
        assert_eq!(pair.near.as_ref().unwrap().is_connected(), holds);
    }
}
