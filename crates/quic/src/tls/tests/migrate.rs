//! Laws of the address of a client that moves.

use super::*;
use std::net::SocketAddr;

/// A connection that the client uses from its first address.
fn begun() -> Pair {
    let identity = Identity::of("a.test");
    let mut pair = Pair::new(always(server(&identity.options())));
    pair.connect(&Arc::new(client(&[&identity], None)), "a.test");
    pair.pass();
    pair.connected();
    pair
}

/// The client asks something, from the address that it has now; the server's address of it then, and when all is quiet.
fn ask(pair: &mut Pair) -> [SocketAddr; 2] {
    let (near, _) = pair.connected();
    let stream = near.connection.streams().open(Dir::Uni).unwrap();
    near.connection.send_stream(stream).write(b"a request").unwrap();
    let sent = pair.sends();
    pair.receives(sent);
    let address = |pair: &Pair| pair.far.as_ref().unwrap().proved.as_ref().unwrap().get();
    let first = address(pair);
    pair.pass();
    [first, address(pair)]
}

#[test]
fn a_client_that_moves_has_its_new_address_once_it_has_proved_it() {
    let mut pair = begun();
    let home = pair.from;
    assert_eq!(ask(&mut pair), [home, home]);
    let mut before = home;
    for away in ["192.0.2.7:7", "192.0.2.7:8", "[2001:db8::1]:7", "127.0.0.1:1000"] {
        pair.from = away.parse().unwrap();
        pair.homes = vec![pair.from];
        let away = pair.from;
        assert_eq!(ask(&mut pair), [before, away]);
        assert_eq!(ask(&mut pair), [away, away]);
        before = away;
    }
}

#[test]
fn a_client_that_sends_with_a_foreign_address_does_not_get_it() {
    let mut pair = begun();
    let home = pair.from;
    pair.from = "192.0.2.7:7".parse().unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&mut pair), [home, home]);
    }
    // It also sends answers to what came to its own address.
    pair.from = home;
    assert_eq!(ask(&mut pair), [home, home]);
    for from in ["192.0.2.7:7", "127.0.0.1:1000", "192.0.2.8:7"] {
        pair.from = from.parse().unwrap();
        let sent = pair.sends();
        pair.receives(sent);
        assert_eq!(ask(&mut pair), [home, home]);
    }
}
