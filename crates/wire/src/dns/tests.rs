#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Name {
    Name::of_text(text).unwrap()
}

/// An answer with these records, each already in its form on the wire.
fn answer(flags: u16, question: &Name, kind: Kind, records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = query(7, question, kind);
    out[2..4].copy_from_slice(&flags.to_be_bytes());
    out[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
    out.extend(records.concat());
    out
}

fn record(owner: &Name, kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = owner.wire().to_vec();
    out.extend(kind.to_be_bytes());
    out.extend(CLASS_IN.to_be_bytes());
    out.extend(ttl.to_be_bytes());
    out.extend((data.len() as u16).to_be_bytes());
    out.extend(data);
    out
}

fn reply(bytes: &[u8], question: &Name, kind: Kind) -> Reply {
    match read(bytes, 7, question, kind) {
        Message::Reply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_read_and_shown() {
    assert_eq!(name("WWW.Example.com.").to_string(), "www.example.com");
    assert_eq!(name("a.b").wire(), b"\x01a\x01b\0");
    let long = "a".repeat(64);
    for bad in ["", ".", "a..b", ".a", long.as_str()] {
        assert_eq!(Name::of_text(bad), Err(BadName), "{bad}");
    }
    let longest = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(63)].join(".");
    assert_eq!(name(&longest).wire().len(), NAME_BYTES_MAX);
    assert_eq!(Name::of_text(&format!("{longest}.e")), Err(BadName));
}

#[test]
fn a_pointer_may_not_go_round() {
    assert_eq!(Name::read(&[0xc0, 0], 0), None);
    assert_eq!(Name::read(&[1, b'a', 0xc0, 0], 0), None);
    assert_eq!(Name::read(&[0x40, 0], 0), None);
    let (read, after) = Name::read(b"\x01a\0\x01b\xc0\0", 3).unwrap();
    assert_eq!((read.to_string().as_str(), after), ("b.a", 7));
}

#[test]
fn addresses_of_the_asked_name_are_taken() {
    let (asked, other) = (name("a.example"), name("b.example"));
    let bytes = answer(
        0x8180,
        &asked,
        Kind::A,
        &[
            record(&asked, TYPE_A, 60, &[127, 0, 0, 1]),
            record(&other, TYPE_A, 1, &[6, 6, 6, 6]),
            record(&asked, 16, 1, b"text"),
            record(&asked, TYPE_A, 30, &[127, 0, 0, 2]),
            record(&asked, TYPE_AAAA, 1, &[0; 16]),
        ],
    );
    let reply = reply(&bytes, &asked, Kind::A);
    assert_eq!(reply.addresses, ["127.0.0.1".parse::<IpAddr>().unwrap(), "127.0.0.2".parse().unwrap()]);
    assert_eq!((reply.ttl_s, reply.alias), (30, None));
}

#[test]
fn aliases_are_followed_within_the_answer_and_named_where_it_ends() {
    let (asked, middle, end) = (name("a.example"), name("m.example"), name("e.example"));
    let aliases = [record(&asked, TYPE_CNAME, 9, middle.wire()), record(&middle, TYPE_CNAME, 5, end.wire())];
    let open = reply(&answer(0x8180, &asked, Kind::A, &aliases), &asked, Kind::A);
    assert_eq!((open.alias, open.ttl_s), (Some(end.clone()), 5));
    let [first, second] = aliases;
    let whole = answer(0x8180, &asked, Kind::A, &[first, second, record(&end, TYPE_A, 60, &[10, 0, 0, 1])]);
    let whole = reply(&whole, &asked, Kind::A);
    assert_eq!((whole.alias, whole.ttl_s, whole.addresses.len()), (None, 5, 1));
    let round = [record(&asked, TYPE_CNAME, 9, middle.wire()), record(&middle, TYPE_CNAME, 5, asked.wire())];
    assert!(reply(&answer(0x8180, &asked, Kind::A, &round), &asked, Kind::A).addresses.is_empty());
}

#[test]
fn a_service_has_its_four_parts() {
    let asked = name("_http._tcp.example");
    let mut data = vec![0, 1, 0, 5, 0x1f, 0x90];
    data.extend(name("host.example").wire());
    let bytes = answer(0x8180, &asked, Kind::Srv, &[record(&asked, TYPE_SRV, 3, &data)]);
    let service = Service { priority: 1, weight: 5, port: 8080, target: name("host.example") };
    assert_eq!(reply(&bytes, &asked, Kind::Srv).services, [service]);
}

#[test]
fn only_the_answer_to_this_question_counts() {
    let asked = name("a.example");
    let good = answer(0x8180, &asked, Kind::A, &[]);
    assert!(matches!(read(&good, 7, &asked, Kind::A), Message::Reply(_)));
    assert_eq!(read(&good, 8, &asked, Kind::A), Message::Foreign);
    assert_eq!(read(&good, 7, &asked, Kind::Aaaa), Message::Foreign);
    assert_eq!(read(&good, 7, &name("b.example"), Kind::A), Message::Foreign);
    assert_eq!(read(&query(7, &asked, Kind::A), 7, &asked, Kind::A), Message::Foreign);
    assert_eq!(read(&good[..11], 7, &asked, Kind::A), Message::Foreign);
    assert_eq!(read(&answer(0x8380, &asked, Kind::A, &[]), 7, &asked, Kind::A), Message::Truncated);
}

#[test]
fn codes_are_told_and_records_checked() {
    let asked = name("a.example");
    let gone = answer(0x8183, &asked, Kind::A, &[]);
    assert_eq!(reply(&gone, &asked, Kind::A).code.words(), "Host not found");
    let short = record(&asked, TYPE_A, 60, &[]);
    assert_eq!(read(&answer(0x8180, &asked, Kind::A, &[short]), 7, &asked, Kind::A), Message::Malformed);
    let beyond = record(&asked, TYPE_A, 60, &[1, 2, 3, 4])[..15].to_vec();
    assert_eq!(read(&answer(0x8180, &asked, Kind::A, &[beyond]), 7, &asked, Kind::A), Message::Malformed);
    let mute = [0, 7, 0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(reply(&mute, &asked, Kind::A).code, Code::FORMAT_ERROR);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let asked = name("a.example");
        let _ = read(&bytes, 7, &asked, Kind::A);
        let mut framed = answer(0x8180, &asked, Kind::Srv, &[]);
        framed[6..8].copy_from_slice(&[0xff, 0xff]);
        framed.extend(&bytes);
        let _ = read(&framed, 7, &asked, Kind::Srv);
    }
}
