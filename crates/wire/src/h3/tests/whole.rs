//! Laws of the connection as a whole.

use super::*;

#[test]
fn streams_of_the_connection_come_once_and_never_end() {
    let mut server = connection(Role::Server);
    let rows: [(u64, &[u8], H3Code); 4] = [
        (14, &[0], H3Code::StreamCreation),
        (14, &[1], H3Code::StreamCreation),
        (DECODER, &[3, 0x84], H3Code::QpackDecoderStream),
        (ENCODER, &[2, 0x3f, 0xe2, 0x1f], H3Code::QpackEncoderStream),
    ];
    for (id, bytes, expected) in rows {
        assert_eq!(news(&mut server, id, bytes).err().as_ref().map(code), Some((None, expected)), "{bytes:x?}");
    }
    for id in [CONTROL, ENCODER, DECODER] {
        assert_eq!(server.uni(id, &[], true).err().as_ref().map(code), Some((None, H3Code::ClosedCriticalStream)));
        assert_eq!(server.uni_reset(id).err().as_ref().map(code), Some((None, H3Code::ClosedCriticalStream)));
    }
    // Others may: without a type, and with an unknown one.
    assert_eq!(server.uni(18, &[0x40], true), Ok((1, None)));
    assert_eq!(server.uni(22, &[0x40], false), Ok((1, None)));
    assert_eq!(server.uni(22, &[0x21, 1, 2, 3], true), Ok((4, Some(H3News::Unwanted))));
    assert_eq!(server.uni_reset(22), Ok(()));
    // One that has ended needs no room any more.
    assert!((0..100).all(|id| server.uni(30 + 4 * id, &[], true) == Ok((0, None))));
    let fault = news(&mut connection(Role::Client), 7, &[1, 0]).err();
    assert_eq!(fault.as_ref().map(code), Some((None, H3Code::Id)));
    let fault = (0..100).map(|id| server.uni(26 + 4 * id, &[], false)).find_map(Result::err);
    assert_eq!(fault.as_ref().map(code), Some((None, H3Code::ExcessiveLoad)));
}

#[test]
fn frames_of_the_control_stream() {
    let server: [(Vec<u8>, H3Code); 16] = [
        (made(4, &[]), H3Code::FrameUnexpected),
        (made(0, b"x"), H3Code::FrameUnexpected),
        (get(&[]), H3Code::FrameUnexpected),
        (made(5, &[0]), H3Code::FrameUnexpected),
        (made(2, &[0]), H3Code::FrameUnexpected),
        (made(7, &[]), H3Code::Frame),
        (made(7, &[0, 0]), H3Code::Frame),
        (made(7, &[0; 9]), H3Code::Frame),
        (made(3, &[0]), H3Code::Id),
        ([made(7, &[4]), made(7, &[8])].concat(), H3Code::Id),
        ([made(0xd, &[4]), made(0xd, &[3])].concat(), H3Code::Id),
        (made(0xf0700, &[1]), H3Code::Id),
        (made(0xf0701, &[0]), H3Code::Id),
        (made(0xf0700, &[]), H3Code::Frame),
        (made(0xf0700, &[0; 300]), H3Code::ExcessiveLoad),
        ([made(0xd, &[4]), made(0xd, &[4]), made(GREASE, &[0; 5000]), vec![4]].concat(), H3Code::FrameUnexpected),
    ];
    for (bytes, expected) in server {
        let bytes = [&bytes[..], &[0]].concat();
        let fault = news(&mut connection(Role::Server), CONTROL, &bytes).err();
        assert_eq!(fault.as_ref().map(code), Some((None, expected)), "{bytes:x?}");
    }
    for bytes in [made(0xd, &[4]), made(0xf0700, &[0])] {
        let fault = news(&mut connection(Role::Client), CONTROL, &bytes).err();
        assert_eq!(fault.as_ref().map(code), Some((None, H3Code::FrameUnexpected)), "{bytes:x?}");
    }
    let fault = news(&mut connection(Role::Client), CONTROL, &made(7, &[6])).err();
    assert_eq!(fault.as_ref().map(code), Some((None, H3Code::Id)));
    for first in [made(7, &[0]), made(GREASE, &[])] {
        let mut server = H3Connection::new(Role::Server, H3Limits::default());
        let fault = news(&mut server, CONTROL, &[&[0], first.as_slice()].concat()).err();
        assert_eq!(fault.as_ref().map(code), Some((None, H3Code::MissingSettings)));
    }
}

#[test]
fn the_control_stream_comes_in_any_pieces() {
    let bytes = [made(0xd, &[0x40, 5]), made(GREASE, b"abc"), made(7, &[0x40, 8]), made(7, &[4])].concat();
    for size in 1..bytes.len() {
        let mut server = connection(Role::Server);
        let found: Result<Vec<_>, _> = bytes.chunks(size).map(|piece| news(&mut server, CONTROL, piece)).collect();
        assert_eq!(found.map(|found| found.concat()), Ok(vec![H3News::GoAway(8), H3News::GoAway(4)]), "{size}");
    }
}

#[test]
fn a_server_ends_in_two_steps() {
    let mut server = connection(Role::Server);
    assert!(RequestStream::begin(&mut server, 0).is_ok());
    server.announce_end();
    assert!(!server.is_going());
    assert_eq!(std::mem::take(server.output(OurStream::Control)), made(7, &number((1 << 62) - 4)));
    assert!(RequestStream::begin(&mut server, 8).is_ok());
    server.goaway();
    server.goaway();
    let last = std::mem::take(server.output(OurStream::Control));
    assert_eq!((server.is_going(), last.clone()), (true, made(7, &[12])));
    let fault = RequestStream::begin(&mut server, 12).err();
    assert_eq!(fault.as_ref().map(code), Some((Some(12), H3Code::RequestRejected)));
    // A stream below the number may still arrive.
    assert!(RequestStream::begin(&mut server, 4).is_ok());

    let mut client = connection(Role::Client);
    let fault = RequestStream::begin(&mut client, 1).err();
    assert_eq!(fault.as_ref().map(code), Some((None, H3Code::StreamCreation)));
    assert_eq!(news(&mut client, CONTROL, &last), Ok(vec![H3News::GoAway(12)]));
    client.goaway();
    assert_eq!((client.peer_goaway(), std::mem::take(client.output(OurStream::Control))), (Some(12), made(7, &[0])));
}

#[test]
fn a_priority_may_come_before_its_request() {
    let mut server = connection(Role::Server);
    let update = |id, value: &str| made(0xf0700, &[&number(id), value.as_bytes()].concat());
    let early = [update(4, "u=1"), update(0, "u=0"), update(4, "u=2")].concat();
    assert_eq!(news(&mut server, CONTROL, &early), Ok(vec![]));
    let mut stream = RequestStream::begin(&mut server, 4).unwrap();
    assert!(events(&mut server, &mut stream, &get(&[("priority", "u=7")]), true).is_ok());
    assert_eq!(stream.urgency(), Urgency { level: 2, is_incremental: false });
    let late = H3News::Priority(4, Urgency { level: 6, is_incremental: true });
    assert_eq!(news(&mut server, CONTROL, &update(4, "u=6,i")), Ok(vec![late]));
    // Of too many, the oldest are forgotten.
    let many: Vec<u8> = (2..20).flat_map(|request| update(4 * request, "u=0")).collect();
    assert_eq!(news(&mut server, CONTROL, &many), Ok(vec![]));
    for (id, level) in [(8, 3), (12, 3), (16, 0), (76, 0)] {
        let stream = RequestStream::begin(&mut server, id).unwrap();
        assert_eq!(stream.urgency().level, level, "{id}");
    }
}

#[test]
fn a_peer_that_does_no_useful_work_is_left() {
    let excess = Some((None, H3Code::ExcessiveLoad));
    let mut server = connection(Role::Server);
    let fault = news(&mut server, CONTROL, &made(GREASE, &[]).repeat(2000)).err();
    assert_eq!(fault.as_ref().map(code), excess);
    let mut server = connection(Role::Server);
    assert_eq!(news(&mut server, ENCODER, &[2, 0x3f, 0xe1, 0x1f, 0x41, b'a', 0]), Ok(vec![]));
    let fault = news(&mut server, ENCODER, &[0; 5000]).err();
    assert_eq!(fault.as_ref().map(code), excess);
    let mut server = connection(Role::Server);
    let mut stream = RequestStream::begin(&mut server, 0).unwrap();
    let fault = events(&mut server, &mut stream, &[get(&[]), made(0, &[]).repeat(2000)].concat(), false).err();
    assert_eq!(fault.as_ref().map(code), excess);
    let mut server = connection(Role::Server);
    let fault = (0..2000).find_map(|request| {
        let mut stream = RequestStream::begin(&mut server, 4 * request).ok()?;
        events(&mut server, &mut stream, &get(&[]), false).err().or_else(|| server.reset_came(4 * request).err())
    });
    assert_eq!(fault.as_ref().map(code), excess);
    let mut server = connection(Role::Server);
    let broken = [get(&[("content-length", "1")]), made(0, b"ab")].concat();
    let fault = (0..500).find_map(|request| {
        let mut stream = RequestStream::begin(&mut server, 4 * request).ok()?;
        events(&mut server, &mut stream, &broken, false).err()
    });
    assert_eq!(fault.as_ref().map(code), excess);
    // A peer may go on that sends requests and bodies in small pieces, and one whose requests are answered.
    let mut server = connection(Role::Server);
    for request in 0..2000 {
        let mut stream = RequestStream::begin(&mut server, 4 * request).unwrap();
        assert!(events(&mut server, &mut stream, &get(&[]), true).is_ok());
    }
    let mut server = connection(Role::Server);
    let mut stream = RequestStream::begin(&mut server, 0).unwrap();
    let bytes = [get(&[]), made(0, b"x").repeat(2000)].concat();
    assert!(events(&mut server, &mut stream, &bytes, true).is_ok());
    let mut server = connection(Role::Server);
    for request in 0..5000 {
        let mut stream = RequestStream::begin(&mut server, 4 * request).unwrap();
        let bytes = [made(GREASE, &[]), get(&[]), made(0, b"x"), made(GREASE, &[])].concat();
        assert!(events(&mut server, &mut stream, &bytes, true).is_ok());
        server.answered();
    }
}
