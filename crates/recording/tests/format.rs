//! Recordings: each part comes back, and each fault has a name and a place.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod format {
    pub mod any;
}

use proptest::prelude::*;
use weir_recording::frame::{FILE_HEAD_BYTES, FRAME_HEAD_BYTES, STORED_BYTES_MAX, file_head, seal};
use weir_recording::model::{Beginning, RecordedConfiguration, RecordedText, RecordingPart};
use weir_recording::read::{Reader, whole_bytes};
use weir_recording::write::Writer;
use weir_recording::{Fault, FaultKind, is_recording};

use format::any;

fn beginning() -> Beginning {
    Beginning { unix_us: 1, program: "weir/0.1.0".to_owned(), share_ppm: 1_000_000, key_id: 7, has_bodies: false }
}

fn written(beginning: &Beginning, parts: &[RecordingPart]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), beginning).unwrap();
    parts.iter().for_each(|part| writer.put(part).unwrap());
    writer.finish().unwrap()
}

/// The parts before the first fault, and the fault.
fn read(file: &[u8]) -> (Vec<RecordingPart>, Option<Fault>) {
    let reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(fault) => return (Vec::new(), Some(fault)),
    };
    let mut parts = Vec::new();
    for part in reader {
        match part {
            Ok(part) => parts.push(part),
            Err(fault) => return (parts, Some(fault)),
        }
    }
    (parts, None)
}

fn sealed(blocks: &[&[u8]]) -> Vec<u8> {
    let mut file = file_head().to_vec();
    blocks.iter().for_each(|block| file.extend(seal(block).unwrap()));
    file
}

proptest! {
    #[test]
    fn any_parts_come_back(first in any::beginning(), parts in any::parts()) {
        let file = written(&first, &parts);
        prop_assert!(is_recording(&file));
        let mut all = vec![RecordingPart::Beginning(first)];
        all.extend(parts);
        let (found, fault) = read(&file);
        prop_assert_eq!(fault, None);
        prop_assert_eq!(&found, &all);

        // Two files behind each other are one.
        let mut twice = file.clone();
        twice.extend(&file);
        all.extend(found);
        prop_assert_eq!(read(&twice), (all, None));
    }

    #[test]
    fn any_cut_file_gives_whole_parts_and_a_fault(parts in any::parts(), cut in 0.0..1.0) {
        let file = written(&beginning(), &parts);
        let cut = (file.len() as f64 * cut) as usize;
        let (found, fault) = read(&file[..cut]);
        let (whole, _) = read(&file);
        prop_assert_eq!(&found[..], &whole[..found.len()]);
        let kind = fault.map(|fault| fault.kind);
        let expected = match cut {
            ..4 => Some(FaultKind::Foreign),
            // A file without a frame is whole.
            FILE_HEAD_BYTES => None,
            _ => Some(FaultKind::Cut),
        };
        prop_assert_eq!(kind, expected);
    }
}

#[test]
fn blocks_of_a_long_recording_are_frames_of_their_own() {
    let part = |generation: u64| {
        let locations = (0..2_000).map(|number| format!("{generation}.conf:{number} location /{number}")).collect();
        RecordingPart::Configuration(RecordedConfiguration { generation, path: "a".to_owned(), locations })
    };
    let parts: Vec<_> = (0..20).map(part).collect();
    let file = written(&beginning(), &parts);
    let (found, fault) = read(&file);
    assert_eq!((&found[1..], fault), (&parts[..], None));
    // The second half of the file is lost; the parts of the first frames are there.
    let (found, fault) = read(&file[..file.len() / 2]);
    assert!(found.len() > 4 && found.len() < 20, "{}", found.len());
    let fault = fault.unwrap();
    assert_eq!((fault.name(), fault.inside), ("cut", None));
    assert!(fault.at > 0 && fault.at < file.len() as u64 / 2);
    let whole = whole_bytes(&file[..file.len() / 2]).unwrap();
    assert_eq!(whole, fault.at);
    assert_eq!(read(&file[..whole as usize]).1, None, "what is left without the cut frame is a recording");
    // A recorder goes on behind it.
    let mut appended = file[..whole as usize].to_vec();
    appended.extend(written(&beginning(), &parts[..1]));
    assert_eq!(read(&appended).0.len(), found.len() + 2);
}

#[test]
fn a_part_that_is_too_large_is_refused_and_the_next_one_is_not() {
    let mut writer = Writer::new(Vec::new(), &beginning()).unwrap();
    let part = |length: usize| {
        let configuration = RecordedConfiguration { generation: 1, path: "x".repeat(length), locations: Vec::new() };
        RecordingPart::Configuration(configuration)
    };
    assert!(writer.put(&part((1 << 20) + 1)).is_err());
    writer.put(&part(1 << 20)).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).0.len(), 2);
}

#[test]
fn each_fault_has_its_name() {
    let good = written(&beginning(), &[]);
    let changed = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] ^= byte;
        file
    };
    let long = |from: usize| {
        let mut file = good.clone();
        file[from..from + 4].copy_from_slice(&(STORED_BYTES_MAX as u32 * 2 + 1).to_le_bytes());
        file
    };
    let mut bomb = good[..FILE_HEAD_BYTES].to_vec();
    let mut frame = seal(&[0; 100_000]).unwrap();
    frame[4..8].copy_from_slice(&10u32.to_le_bytes());
    let sum = crc32fast::hash(&[&frame[..8], &frame[FRAME_HEAD_BYTES..]].concat());
    frame[8..12].copy_from_slice(&sum.to_le_bytes());
    bomb.extend(frame);
    let many = |count: u8| [&b"\xd9\x01\x00"[..], &[0x80 | count]].concat();
    let block = |items: &[u8]| sealed(&[&[&many(1)[..], items].concat()]);
    let lost = b"\x85\x04\0\0\0\0";
    let cases: &[(&str, Vec<u8>)] = &[
        ("foreign", Vec::new()),
        ("foreign", b"GET / HTTP/1.1".to_vec()),
        ("foreign", b"weir-log\x01\0\0\0".to_vec()),
        ("version", changed(8, 3)),
        ("cut", good[..FILE_HEAD_BYTES + 3].to_vec()),
        ("cut", good[..good.len() - 1].to_vec()),
        ("length", long(FILE_HEAD_BYTES)),
        ("length", long(FILE_HEAD_BYTES + 4)),
        ("checksum", changed(good.len() - 1, 1)),
        ("checksum", changed(FILE_HEAD_BYTES + 8, 1)),
        ("checksum", changed(FILE_HEAD_BYTES + 4, 1)),
        ("unpacking", bomb),
        ("beginning", block(lost)),
        ("form", sealed(&[b""])),
        ("form", sealed(&[b"\x80"])),
        ("form", block(b"")),
        ("form", block(b"\x85\x04\0\0\0\0\0")),
        ("form", block(b"\x85\x07\0\0\0\0")),
        ("form", block(b"\x81\x81\x81\x81\x81\x81\x81\x81")),
        ("form", block(b"\x9f\xff")),
        ("form", block(b"\x84\x01\0\x61\xff\x80")),
        ("form", block(b"\x84\x01\0\x7b\xff\xff\xff\xff\xff\xff\xff\xff\x80")),
        ("reference", block(b"\x84\x01\0\xd8\x19\0\x80")),
    ];
    for (name, file) in cases {
        let (_, fault) = read(file);
        let fault = fault.unwrap_or_else(|| panic!("{name}: no fault in {}", file.escape_ascii()));
        assert_eq!(fault.name(), *name, "{}", file.escape_ascii());
        assert!(weir_words::is_korean(fault.said().ko()) && !fault.to_string().is_empty());
    }
}

#[test]
fn hostile_blocks_need_no_more_memory_than_a_block_may() {
    // A string of a mebibyte, and a list that names it again and again.
    let mut block = b"\xd9\x01\x00\x81\x84\x01\x00\x61x\x9a\xff\xff\xff\xff\x7a\x00\x10\x00\x00".to_vec();
    block.extend(vec![b'x'; 1 << 20]);
    block.extend(b"\xd8\x19\0".repeat(1 << 19));
    let (parts, fault) = read(&sealed(&[&block]));
    assert_eq!((parts.len(), fault.map(|fault| fault.name())), (0, Some("large")));
}

#[test]
fn hidden_places_are_checked() {
    let exchange = |text: &[u8]| {
        let mut block = b"\xd9\x01\x00\x81\x86\x03\0\0\xf4\xf4\x83\0\xf6".to_vec();
        block.extend(text);
        read(&sealed(&[&block])).1.map(|fault| fault.name())
    };
    // Without a fault in the text, the fault is the missing beginning.
    assert_eq!(exchange(b"\x82\x42ab\x82\0\x01"), Some("beginning"));
    assert_eq!(exchange(b"\x82\x42ab\x84\0\x01\x01\x02"), Some("beginning"));
    for wrong in [
        &b"\x82\x42ab\x80"[..],
        b"\x82\x42ab\x81\0",
        b"\x82\x42ab\x82\x01\x01",
        b"\x82\x42ab\x82\0\x03",
        b"\x82\x42ab\x84\x01\x02\0\x01",
        b"\x83\x42ab\x82\0\x01\0",
    ] {
        assert_eq!(exchange(wrong), Some("form"), "{}", wrong.escape_ascii());
    }
    let text = RecordedText { bytes: b"ab".to_vec(), hidden: vec![(0, 1)] };
    assert_ne!(text, RecordedText::plain(*b"ab"));
}
