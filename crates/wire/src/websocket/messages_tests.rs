use proptest::prelude::*;

use super::super::{close_payload, push_frame, push_masked_frame};
use super::*;

/// Events as text, so that they can be kept and compared.
fn read(input: &[u8], step: usize, from: FrameSender, max: usize) -> (Vec<String>, Option<Violation>) {
    let mut messages = Messages::new(from, true, max);
    let mut seen = Vec::new();
    for piece in input.chunks(step.max(1)) {
        let mut at = 0;
        loop {
            let before = at;
            match messages.next(&piece[at..], &mut at) {
                Ok(WebSocketEvent::NeedMore) => break,
                Ok(event) => seen.push(format!("{event:?}")),
                Err(violation) => return (seen, Some(violation)),
            }
            assert!(at > before, "an event uses input");
        }
        assert_eq!(at, piece.len(), "input is used up before more is asked for");
    }
    (seen, None)
}

fn check(input: &[u8], expect: &[WebSocketEvent<'_>], violation: Option<Violation>) {
    let expect: Vec<String> = expect.iter().map(|event| format!("{event:?}")).collect();
    for step in [1, 2, 3, 7, input.len()] {
        assert_eq!(read(input, step, FrameSender::Server, 1 << 20), (expect.clone(), violation), "in steps of {step}");
    }
}

fn text(payload: &str) -> WebSocketEvent<'_> {
    WebSocketEvent::Message { is_text: true, is_compressed: false, payload: payload.as_bytes() }
}

#[test]
fn messages_whole_and_in_pieces_with_control_frames_between() {
    check(b"\x81\x05Hello", &[text("Hello")], None);
    check(b"\x81\x00\x81\x00", &[text(""), text("")], None);
    check(b"\x01\x03Hel\x89\x02hi\x80\x02lo", &[WebSocketEvent::Ping(b"hi"), text("Hello")], None);
    check(
        b"\x01\x00\x00\x01a\x8a\x00\x80\x00\x88\x00",
        &[WebSocketEvent::Pong(b""), text("a"), WebSocketEvent::Close(None)],
        None,
    );
    // A character cut by the end of a frame.
    check(b"\x01\x01\xc3\x80\x01\xbc", &[text("ü")], None);
    let packed = WebSocketEvent::Message { is_text: true, is_compressed: true, payload: b"\xff" };
    check(b"\xc1\x01\xff", &[packed], None);
}

#[test]
fn closes() {
    let mut frame = Vec::new();
    push_frame(&mut frame, Opcode::Close, false, &close_payload(4001, "as asked"));
    check(&frame, &[WebSocketEvent::Close(Some((4001, "as asked")))], None);
    for (payload, violation) in [
        (&b"\x03"[..], Violation::ShortClose),
        (b"\x03\xec", Violation::CloseCode),
        (b"\x03\xed", Violation::CloseCode),
        (b"\x03\xe7", Violation::CloseCode),
        (b"\x13\x88", Violation::CloseCode),
        (b"\x03\xe8\xff", Violation::NotUtf8),
    ] {
        let mut frame = Vec::new();
        push_frame(&mut frame, Opcode::Close, false, payload);
        check(&frame, &[], Some(violation));
    }
    check(b"\x88\x00\x81\x00", &[WebSocketEvent::Close(None)], Some(Violation::AfterClose));
}

#[test]
fn what_breaks_the_order_of_frames() {
    check(b"\x80\x00", &[], Some(Violation::NothingToContinue));
    check(b"\x01\x00\x81\x00", &[], Some(Violation::MessageInMessage));
    check(b"\x81\x01\xff", &[], Some(Violation::NotUtf8));
}

#[test]
fn a_message_has_a_bound_whatever_its_pieces() {
    let (seen, violation) = read(b"\x82\x04abcd\x02\x04abcd\x80\x01e", 3, FrameSender::Server, 4);
    assert_eq!((seen.len(), violation), (1, Some(Violation::MessageTooLarge)));
    // Refused because of its head, before any of its payload is kept.
    let (_, violation) = read(b"\x82\x7f\x00\x00\x7f\xff\xff\xff\xff\xff", 100, FrameSender::Server, 1 << 30);
    assert_eq!(violation, Some(Violation::MessageTooLarge));
}

#[test]
fn between_messages_nothing_is_held() {
    let mut messages = Messages::new(FrameSender::Server, false, 1 << 20);
    let mut used = 0;
    assert_eq!(messages.next(b"\x82\x02a", &mut used), Ok(WebSocketEvent::NeedMore));
    assert!(matches!(messages.next(b"b", &mut used), Ok(WebSocketEvent::Message { payload: b"ab", .. })));
    assert_eq!(messages.next(b"", &mut used), Ok(WebSocketEvent::NeedMore));
    assert_eq!((messages.message_bytes.capacity(), messages.control_bytes.capacity()), (0, 0));
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_mean_the_same(bytes: Vec<u8>, payload: Vec<u8>, step in 1usize..20) {
        let mut input = Vec::new();
        push_masked_frame(&mut input, Opcode::Binary, false, [9, 8, 7, 6], &payload);
        input.extend_from_slice(&bytes);
        for from in [FrameSender::Server, FrameSender::Client] {
            assert_eq!(read(&input, step, from, 200), read(&input, input.len(), from, 200));
        }
    }

    #[test]
    fn what_is_sent_arrives(parts in proptest::collection::vec(any::<Vec<u8>>(), 0..6), step in 1usize..40, mask: [u8; 4]) {
        let mut input = Vec::new();
        let mut expect = Vec::new();
        for part in &parts {
            push_masked_frame(&mut input, Opcode::Binary, false, mask, part);
            expect.push(format!("{:?}", WebSocketEvent::Message { is_text: false, is_compressed: false, payload: part }));
        }
        assert_eq!(read(&input, step, FrameSender::Client, 1 << 20), (expect, None));
    }
}
