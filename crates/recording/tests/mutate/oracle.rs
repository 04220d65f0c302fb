//! The rules of the targets of this crate.

use weir_recording::block::PART_BYTES_MAX;
use weir_recording::frame::{file_head, seal};
use weir_recording::model::{RecordedText, RecordingPart};
use weir_recording::read::{Reader, whole_bytes};
use weir_recording::write::Writer;
use weir_recording::{Secrets, check, to_json};

/// Most bytes of a block's parts for each byte of the file: an empty part is a few bytes.
const PARTS_MAX: usize = 5_000_000;

/// The parts of a file come back when they are written again; the parts before a fault are the same in each reading.
pub fn file(input: &[u8]) {
    let parts = match Reader::new(input) {
        Ok(reader) => reader,
        Err(fault) => {
            assert!(fault.at <= input.len() as u64 && !fault.to_string().is_empty());
            return;
        }
    };
    let mut whole = Vec::new();
    for part in parts {
        match part {
            Ok(part) => whole.push(part),
            Err(fault) => assert!(fault.at <= input.len() as u64 && !fault.said().ko().is_empty()),
        }
        assert!(whole.len() <= PARTS_MAX);
    }
    if let Ok(bytes) = whole_bytes(input) {
        assert!(bytes <= input.len() as u64);
    }
    let report = Reader::new(input).map(check);
    assert!(report.is_ok_and(|report| report.parts == whole.len() as u64));
    let Some(RecordingPart::Beginning(beginning)) = whole.first() else { return assert!(whole.is_empty()) };
    let mut writer = Writer::new(Vec::new(), beginning).unwrap();
    for part in &whole[1..] {
        // A part that is made of references may be larger than this writer writes.
        if writer.put(part).is_err() {
            assert!(to_json(part).to_string().len() > PART_BYTES_MAX / 2);
            return;
        }
    }
    let again: Vec<_> = Reader::new(&writer.finish().unwrap()[..]).unwrap().map(Result::unwrap).collect();
    assert_eq!(again.len(), whole.len());
    for (again, part) in again.iter().zip(&whole) {
        assert_eq!(lower(to_json(again)), lower(to_json(part)));
    }
}

/// A writer makes the names of fields small.
fn lower(part: serde_json::Value) -> String {
    part.to_string().to_ascii_lowercase()
}

/// The block of a file, with right lengths and checksum.
pub fn block(input: &[u8]) {
    let mut bytes = file_head().to_vec();
    bytes.extend(seal(input).unwrap());
    file(&bytes);
}

/// A replaced text has its length and its other bytes, and is always the same.
pub fn text(input: &[u8]) {
    let secrets = Secrets::new([5; 16]);
    let mut texts = vec![secrets.target(input)];
    texts.extend(
        ["cookie", "set-cookie", "authorization", "forwarded", "x-forwarded-for", "referer", "x-api-key", "x"]
            .map(|name| secrets.field(name.as_bytes(), input)),
    );
    let types =
        ["", "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=XX", "text/html"];
    texts.extend(types.map(|content_type| secrets.body(content_type.as_bytes(), input)));
    for text in &texts {
        replaced(text, input);
    }
    assert_eq!(texts[0], secrets.target(input));
}

fn replaced(text: &RecordedText, input: &[u8]) {
    assert_eq!(text.bytes.len(), input.len());
    let mut last = 0;
    for (begin, end) in text.hidden.iter().map(|(begin, end)| (*begin as usize, *end as usize)) {
        // Ranges that touch are one.
        assert!(begin < end && end <= input.len() && (begin > last || begin == 0));
        assert_eq!(text.bytes[last..begin], input[last..begin]);
        last = end;
    }
    assert_eq!(text.bytes[last..], input[last..]);
    assert!(str::from_utf8(input).is_err() || str::from_utf8(&text.bytes).is_ok(), "a text stays a text");
}
