//! Changes of a zone (RFC 2136), signed with a shared key (TSIG, RFC 8945): for the TXT records of challenges.

use super::{CLASS_IN, Code, HEADER_BYTES, Name, OPCODE, RESPONSE, Reader};

const UPDATE: u16 = 0x2800;
const TYPE_SOA: u16 = 6;
const TYPE_TXT: u16 = 16;
const TYPE_TSIG: u16 = 250;
const CLASS_NONE: u16 = 254;
const CLASS_ANY: u16 = 255;

/// How far the clocks may be apart; seconds.
const FUDGE_S: u16 = 300;

/// A change of one TXT record.
#[derive(Clone, Copy, Debug)]
pub struct Change<'c> {
    /// The zone.
    pub zone: &'c Name,
    /// The name of the record.
    pub name: &'c Name,
    /// Its text; at most 255 bytes.
    pub text: &'c str,
    /// The time to live of a record that is added; `None` removes the record.
    pub ttl_s: Option<u32>,
}

/// A shared key.
pub struct TsigKey<'k> {
    /// Its name.
    pub name: &'k Name,
    /// The name of its algorithm, such as `hmac-sha256`.
    pub algorithm: &'k Name,
    /// Signs bytes.
    pub sign: &'k dyn Fn(&[u8]) -> Vec<u8>,
}

/// The message, ready to be sent in a datagram. `now_s` is the time in seconds since 1970.
pub fn message(id: u16, change: Change<'_>, key: Option<&TsigKey<'_>>, now_s: u64) -> Vec<u8> {
    let words =
        |out: &mut Vec<u8>, words: &[u16]| words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    let mut out = Vec::new();
    words(&mut out, &[id, UPDATE, 1, 0, 1, 0]);
    out.extend_from_slice(change.zone.wire());
    words(&mut out, &[TYPE_SOA, CLASS_IN]);
    out.extend_from_slice(change.name.wire());
    words(&mut out, &[TYPE_TXT, if change.ttl_s.is_some() { CLASS_IN } else { CLASS_NONE }]);
    out.extend_from_slice(&change.ttl_s.unwrap_or(0).to_be_bytes());
    let text = change.text.as_bytes();
    let text = text.get(..text.len().min(255)).unwrap_or_default();
    words(&mut out, &[text.len() as u16 + 1]);
    out.push(text.len() as u8);
    out.extend_from_slice(text);
    if let Some(key) = key {
        sign(&mut out, id, key, now_s);
    }
    out
}

/// Appends the signature, and counts it in the header.
fn sign(out: &mut Vec<u8>, id: u16, key: &TsigKey<'_>, now_s: u64) {
    let time = now_s.to_be_bytes();
    let time = time.get(2..).unwrap_or_default();
    // RFC 8945 §4.3.3: the message, then the variables.
    let mut signed = out.clone();
    signed.extend_from_slice(key.name.wire());
    signed.extend_from_slice(&CLASS_ANY.to_be_bytes());
    signed.extend_from_slice(&0u32.to_be_bytes());
    signed.extend_from_slice(key.algorithm.wire());
    signed.extend_from_slice(time);
    signed.extend_from_slice(&FUDGE_S.to_be_bytes());
    // No error, and no other data.
    signed.extend_from_slice(&[0; 4]);
    let signature = (key.sign)(&signed);

    let mut data = key.algorithm.wire().to_vec();
    data.extend_from_slice(time);
    data.extend_from_slice(&FUDGE_S.to_be_bytes());
    data.extend_from_slice(&(signature.len() as u16).to_be_bytes());
    data.extend_from_slice(&signature);
    data.extend_from_slice(&id.to_be_bytes());
    data.extend_from_slice(&[0; 4]);

    out.extend_from_slice(key.name.wire());
    out.extend_from_slice(&[TYPE_TSIG.to_be_bytes(), CLASS_ANY.to_be_bytes()].concat());
    out.extend_from_slice(&0u32.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(&data);
    if let Some(count) = out.get_mut(HEADER_BYTES - 1) {
        *count = 1;
    }
}

/// The server's verdict, if the bytes are the response to the message of this number.
pub fn verdict(bytes: &[u8], id: u16) -> Option<Code> {
    let mut reader = Reader { bytes, at: 0 };
    let (number, flags) = (reader.word()?, reader.word()?);
    (number == id && flags & RESPONSE != 0 && flags & OPCODE == UPDATE).then_some(Code((flags & 0xf) as u8))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_change_is_written_as_rfc_2136_says() {
        let (zone, name) = (Name::of_text("a.test").unwrap(), Name::of_text("_x.a.test").unwrap());
        let change = Change { zone: &zone, name: &name, text: "ab", ttl_s: Some(60) };
        let added = message(7, change, None, 0);
        let expected = b"\0\x07\x28\0\0\x01\0\0\0\x01\0\0\x01a\x04test\0\0\x06\0\x01\x02_x\x01a\x04test\0\0\x10\0\x01\0\0\0\x3c\0\x03\x02ab";
        assert_eq!(added, expected);
        let removed = message(7, Change { ttl_s: None, ..change }, None, 0);
        assert!(removed.ends_with(b"\0\x10\0\xfe\0\0\0\0\0\x03\x02ab"));
    }

    #[test]
    fn the_signature_covers_the_message_and_is_counted() {
        let (zone, name) = (Name::of_text("a.test").unwrap(), Name::of_text("_x.a.test").unwrap());
        let (key_name, algorithm) = (Name::of_text("k").unwrap(), Name::of_text("hmac-sha256").unwrap());
        let change = Change { zone: &zone, name: &name, text: "ab", ttl_s: Some(60) };
        let plain = message(7, change, None, 0);
        let sign = |bytes: &[u8]| {
            assert!(bytes.starts_with(&plain));
            assert_eq!(&bytes[plain.len()..], b"\x01k\0\0\xff\0\0\0\0\x0bhmac-sha256\0\0\0\0\0\0\x2a\x01\x2c\0\0\0\0");
            vec![0xaa; 32]
        };
        let signed = message(7, change, Some(&TsigKey { name: &key_name, algorithm: &algorithm, sign: &sign }), 42);
        assert_eq!(signed[11], 1);
        assert!(signed.ends_with(&[&[0xaa; 32][..], b"\0\x07\0\0\0\0"].concat()));
    }

    #[test]
    fn only_the_response_to_this_message_counts() {
        assert_eq!(verdict(b"\0\x07\xa8\0", 7), Some(Code(0)));
        assert_eq!(verdict(b"\0\x07\xa8\x05", 7), Some(Code(5)));
        for other in [&b"\0\x08\xa8\0"[..], b"\0\x07\x28\0", b"\0\x07\x80\0", b"\0\x07", b""] {
            assert_eq!(verdict(other, 7), None);
        }
    }
}
