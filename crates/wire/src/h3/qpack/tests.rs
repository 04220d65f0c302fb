use super::*;
use crate::known::Known;
use crate::section::{Block, SectionEncoder, integer, text};

const LIMIT: usize = 1 << 16;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn shown(block: &Block) -> String {
    let lines = block.iter().map(|(name, value)| [name, b"=", value].concat());
    String::from_utf8_lossy(&lines.collect::<Vec<_>>().join(&b'\n')).into_owned()
}

/// The fields of a section, or the word "blocked", or the fault's text.
fn section(decoder: &mut QpackDecoder, stream: u64, hex: &str) -> String {
    let mut block = Block::default();
    match decoder.decode(stream, &bytes(hex), LIMIT, &mut block) {
        Ok(QpackRead::Whole) => shown(&block),
        Ok(QpackRead::Blocked(needed)) => format!("blocked until {needed}"),
        Err(fault) => fault.what.to_owned(),
    }
}

fn acks(decoder: &mut QpackDecoder) -> Vec<u8> {
    std::mem::take(decoder.acks())
}

#[test]
fn the_rfcs_example() {
    // RFC 9204 Appendix B, with a table of 220 bytes.
    let mut decoder = QpackDecoder::new(220, 16);
    assert_eq!(section(&mut decoder, 0, "0000 510b 2f69 6e64 6578 2e68 746d 6c"), ":path=/index.html");
    assert_eq!(acks(&mut decoder), []);

    // The insertions arrive after the section that needs them.
    let second = "0381 10 11";
    assert_eq!(section(&mut decoder, 4, second), "blocked until 2");
    assert_eq!(decoder.take_ready(), None);
    let inserts = "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
    assert_eq!(decoder.instructions(&bytes(inserts)), Ok(3));
    assert_eq!((decoder.take_ready(), decoder.take_ready()), (Some(4), None));
    assert_eq!(section(&mut decoder, 4, second), ":authority=www.example.com\n:path=/sample/path");
    // An increment for both insertions, and the section.
    assert_eq!(acks(&mut decoder), [0x02, 0x84]);

    assert_eq!(decoder.instructions(&bytes("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565")), Ok(1));
    assert_eq!(acks(&mut decoder), [0x01]);

    // A duplicate, and a stream that is cancelled.
    assert_eq!(decoder.instructions(&bytes("02")), Ok(1));
    assert_eq!(
        section(&mut decoder, 8, "0500 80 c1 81"),
        ":authority=www.example.com\n:path=/\ncustom-key=custom-value"
    );
    assert_eq!(acks(&mut decoder), [0x01, 0x88]);
    decoder.cancel(8);
    assert_eq!(acks(&mut decoder), [0x48]);

    // The oldest entry, :authority, makes room.
    assert_eq!(decoder.instructions(&bytes("810d 6375 7374 6f6d 2d76 616c 7565 32")), Ok(1));
    assert_eq!(section(&mut decoder, 12, "0600 80"), "custom-key=custom-value2");
    assert_eq!(section(&mut decoder, 12, "0600 84"), "a dynamic index that has no entry");
}

#[test]
fn an_instruction_comes_in_any_pieces() {
    let all = bytes(
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d 4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565 01",
    );
    for size in 1..all.len() {
        let mut decoder = QpackDecoder::new(220, 16);
        let counts = all.chunks(size).map(|piece| decoder.instructions(piece).ok()).collect::<Option<Vec<_>>>();
        assert_eq!(counts.map(|counts| counts.iter().sum()), Some(4), "{size}");
        assert_eq!(
            section(&mut decoder, 0, "0400 80 81 82"),
            ":authority=www.example.com\ncustom-key=custom-value\n:authority=www.example.com"
        );
    }
}

#[test]
fn instructions_that_no_encoder_makes() {
    let rows = [
        ("3fbe01", "a dynamic table larger than SETTINGS allow"),
        // No table was set; an entry of 32 + 1 + 188 bytes in a table of 220.
        ("41 61 00", "an entry larger than the dynamic table"),
        (&format!("3fbd01 41 61 7f3d {}", "61".repeat(188)), "an entry larger than the dynamic table"),
        ("3fbd01 80 00", "an insertion whose name has no entry"),
        ("3fbd01 ff24 00", "an insertion whose name has no entry"),
        ("3fbd01 00", "a duplicate of no entry"),
        ("3fbd01 c0 8100", "a string that is no Huffman code"),
        ("3f ffffffffffffffffff7f", "an integer that is too large"),
        // Never whole, and already larger than any entry.
        (&format!("3fbd01 41 61 7fff7f {}", "61".repeat(1000)), "an entry larger than the dynamic table"),
    ];
    for (hex, what) in rows {
        let fault = QpackDecoder::new(220, 16).instructions(&bytes(hex)).err();
        let found = fault.map(|fault| (fault.stream, fault.code, fault.what));
        assert_eq!(found, Some((None, crate::h3::H3Code::QpackEncoderStream, what)), "{hex}");
    }
    assert_eq!(QpackDecoder::new(0, 0).instructions(&bytes("20")), Ok(1));
    assert!(QpackDecoder::new(0, 0).instructions(&bytes("21")).is_err());
}

#[test]
fn sections_that_no_encoder_makes() {
    let rows = [
        ("", "a Required Insert Count that is none"),
        ("00", "a Base that is none"),
        ("0080", "a Base below 0"),
        ("0e00", "a Required Insert Count that no encoder makes"),
        ("0000 80", "a dynamic index that has no entry"),
        ("0000 10", "a dynamic index that has no entry"),
        ("0000 ff24", "a static index that has no entry"),
        ("0000 5f54 00", "a static index that has no entry"),
        ("0000 ff", "an integer that is cut off or too large"),
        ("0000 50 05 61", "a string that is cut off"),
        ("0000 22 61", "a string that is cut off"),
        ("0000 50 8100", "a string that is no Huffman code"),
        // Two entries are there, but the section says that it needs one.
        ("0200 10", "a dynamic index that has no entry"),
        ("0200 81", "a dynamic index that has no entry"),
    ];
    for (hex, what) in rows {
        let mut decoder = QpackDecoder::new(220, 16);
        assert_eq!(decoder.instructions(&bytes("3fbd01 416100 416200")), Ok(3));
        assert_eq!(section(&mut decoder, 0, hex), what, "{hex}");
    }
}

#[test]
fn more_blocked_streams_than_allowed_are_refused() {
    let mut decoder = QpackDecoder::new(220, 2);
    for stream in [0, 4, 0] {
        assert_eq!(section(&mut decoder, stream, "0200 80"), "blocked until 1");
    }
    decoder.cancel(4);
    assert_eq!(section(&mut decoder, 8, "0200 80"), "blocked until 1");
    assert_eq!(section(&mut decoder, 12, "0200 80"), "more blocked streams than SETTINGS allow");
    // A section that comes again before it was asked for is not blocked either.
    assert_eq!(decoder.instructions(&bytes("3fbd01 416100")), Ok(2));
    assert_eq!(section(&mut decoder, 8, "0200 80"), "a=");
    assert_eq!((decoder.take_ready(), decoder.take_ready()), (Some(0), None));
    // Without a table there is nothing to forget.
    let mut none = QpackDecoder::new(0, 0);
    none.cancel(4);
    assert_eq!(acks(&mut none), []);
    assert_eq!(section(&mut QpackDecoder::new(220, 0), 0, "0200 80"), "more blocked streams than SETTINGS allow");
}

#[test]
fn a_section_beyond_the_limit_is_read_but_not_kept() {
    let (mut decoder, mut block) = (QpackDecoder::new(0, 0), Block::default());
    let read = decoder.decode(0, &bytes("0000 2161 0162 2163 0164 51 022f61 c1"), 3, &mut block);
    assert_eq!((read, shown(&block), block.is_too_large), (Ok(QpackRead::Whole), "a=b".into(), true));
    assert_eq!(block.bytes, b"ab");
}

fn written(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut encoder, mut out) = (QpackEncoder, Vec::new());
    encoder.begin(&mut out);
    encoder.status(status, &mut out);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), Known::of(name.as_bytes()), &mut out);
    }
    out
}

#[test]
fn what_the_static_table_has_is_an_index() {
    assert_eq!(written(200, &[("Content-Type", "text/plain"), ("Vary", "origin")]), bytes("0000 d9 f5 fc"));
    assert_eq!(
        written(599, &[("Date", "x")]),
        bytes("0000 5f09 83 6dff cf 56 0178".replace("83 6dff cf", "03 353939").as_str())
    );
    // A secret has the bit that forbids a table, with and without the name's index.
    assert_eq!(written(200, &[("authorization", "x")]), bytes("0000 d9 7f45 0178"));
    assert_eq!(written(200, &[("proxy-authorization", "x")]).get(3).map(|first| first & 0xf0), Some(0x30));
    for status in 100..600 {
        let mut block = Block::default();
        assert_eq!(QpackDecoder::new(0, 0).decode(0, &written(status, &[]), LIMIT, &mut block), Ok(QpackRead::Whole));
        assert_eq!(shown(&block), format!(":status={status}"));
    }
    let mut out = Vec::new();
    for (name, value) in [(":method", "GET"), (":method", "BREW"), (":path", "/x"), (":protocol", "websocket")] {
        QpackEncoder.pseudo(name, value.as_bytes(), &mut out);
    }
    let mut block = Block::default();
    let whole = [&[0, 0], out.as_slice()].concat();
    assert_eq!(QpackDecoder::new(0, 0).decode(0, &whole, LIMIT, &mut block), Ok(QpackRead::Whole));
    assert_eq!(
        (shown(&block), out.first()),
        (":method=GET\n:method=BREW\n:path=/x\n:protocol=websocket".into(), Some(&0xd1))
    );
}

/// An encoder as simple as the model of a table: entries that never make room, references of every kind.
#[derive(Default)]
struct Model {
    entries: Vec<(String, String)>,
    inserts: Vec<u8>,
}

impl Model {
    /// Appends an entry with this name and value; `form` chooses one of the ways.
    fn insert(&mut self, name: &str, value: &str, form: u8) {
        let same = |entry: &&(String, String)| entry.0 == name;
        let old = self.entries.iter().rev().position(|entry| same(&entry));
        match (form % 3, old) {
            (0, Some(old)) if self.entries[self.entries.len() - 1 - old].1 == value => {
                integer::encode(old as u64, 5, 0, &mut self.inserts);
            }
            (0 | 1, Some(old)) => {
                integer::encode(old as u64, 6, 0x80, &mut self.inserts);
                text::encode(value.as_bytes(), 7, 0, &mut self.inserts);
            }
            _ => {
                text::encode(name.as_bytes(), 5, 0x40, &mut self.inserts);
                text::encode(value.as_bytes(), 7, 0, &mut self.inserts);
            }
        }
        self.entries.push((name.into(), value.into()));
    }

    /// A section with the entries of these numbers, by index or by name, around a base.
    fn section(&self, picks: &[(usize, bool)], base: u64, entries_max: u64, out: &mut Vec<u8>) {
        let required = picks.iter().map(|pick| pick.0 as u64 + 1).max().unwrap_or(0);
        integer::encode(if required == 0 { 0 } else { required % (2 * entries_max) + 1 }, 8, 0, out);
        match base.checked_sub(required) {
            Some(above) => integer::encode(above, 7, 0, out),
            None => integer::encode(required - base - 1, 7, 0x80, out),
        }
        for &(at, is_whole) in picks {
            match (base.checked_sub(at as u64 + 1), is_whole) {
                (Some(below), true) => integer::encode(below, 6, 0x80, out),
                (Some(below), false) => integer::encode(below, 4, 0x40, out),
                (None, true) => integer::encode(at as u64 - base, 4, 0x10, out),
                (None, false) => integer::encode(at as u64 - base, 3, 0, out),
            }
            if !is_whole {
                text::encode(b"other", 7, 0, out);
            }
        }
    }
}

/// With it, a client has to take the answer as malformed.
#[test]
fn whitespace_around_a_value_is_not_written() {
    let section = written(200, &[("x-a", " a b\t"), ("age", " ")]);
    let mut block = Block::default();
    assert_eq!(QpackDecoder::new(0, 0).decode(0, &section, LIMIT, &mut block), Ok(QpackRead::Whole));
    assert_eq!(block.iter().map(|(_, value)| value).collect::<Vec<_>>(), [&b"200"[..], b"a b", b""]);
}

proptest::proptest! {
    #[test]
    fn the_decoder_gives_back_what_was_written(
        fields in proptest::collection::vec(("[a-z-]{1,80}", "[ -~]{0,300}"), 0..10),
    ) {
        let borrowed: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut block = Block::default();
        let read = QpackDecoder::new(0, 0).decode(0, &written(200, &borrowed), LIMIT, &mut block);
        assert_eq!(read, Ok(QpackRead::Whole));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // The whitespace around a value is not written.
        let trimmed: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), value.trim().to_owned())).collect();
        assert_eq!(block.iter().skip(1).map(|(name, value)| (text(name), text(value))).collect::<Vec<_>>(), trimmed);
    }

    #[test]
    fn sections_with_references_are_the_models(
        entries in proptest::collection::vec(("[ab]{1,2}", "[cd]{0,2}", 0u8..3), 1..30),
        picks in proptest::collection::vec((0usize..30, proptest::bool::ANY), 0..10),
        base in 0u64..40,
        arrived in 0usize..400,
    ) {
        let (mut model, mut decoder) = (Model::default(), QpackDecoder::new(4096, 1));
        integer::encode(4096, 5, 0x20, &mut model.inserts);
        for (name, value, form) in &entries {
            model.insert(name, value, *form);
        }
        let picks: Vec<_> = picks.into_iter().filter(|pick| pick.0 < entries.len()).collect();
        let mut section = Vec::new();
        model.section(&picks, base, 4096 / 32, &mut section);
        let (early, late) = model.inserts.split_at(arrived.min(model.inserts.len()));
        assert!(decoder.instructions(early).is_ok());
        let mut block = Block::default();
        let mut read = decoder.decode(0, &section, LIMIT, &mut block);
        assert!(decoder.instructions(late).is_ok());
        if matches!(read, Ok(QpackRead::Blocked(_))) {
            assert_eq!(decoder.take_ready(), Some(0));
            read = decoder.decode(0, &section, LIMIT, &mut block);
        }
        assert_eq!(read, Ok(QpackRead::Whole));
        let expected = picks.iter().map(|&(at, is_whole)| {
            let (name, value) = &model.entries[at];
            format!("{name}={}", if is_whole { value } else { "other" })
        });
        assert_eq!(shown(&block), expected.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn any_bytes_end_well(
        parts in proptest::collection::vec((proptest::bool::ANY, proptest::collection::vec(proptest::num::u8::ANY, 0..60)), 0..20),
    ) {
        let mut decoder = QpackDecoder::new(256, 4);
        let _ = decoder.instructions(&bytes("3fe101"));
        for (is_section, bytes) in parts {
            let mut out = Block::default();
            let ends = if is_section { decoder.decode(0, &bytes, 1000, &mut out).is_err() } else { decoder.instructions(&bytes).is_err() };
            if ends {
                break;
            }
            assert!(out.bytes.len() <= 1000);
        }
    }
}
