//! The answers of a server that has TXT records alone (RFC 1035 §3.3.14): for challenges that an authority looks up.
//!
//! The questions are untrusted. An answer has the question's own bytes and at most [`TEXTS_MAX`] texts, so it is not much
//! longer than the question, and a name that is not served is refused.

use super::{CLASS_IN, HEADER_BYTES, Name, OPCODE, RESPONSE, Reader};

/// Texts of one answer, at most.
pub const TEXTS_MAX: usize = 8;

/// Bytes of one text, at most: one string.
pub const TEXT_BYTES_MAX: usize = 255;

const TYPE_TXT: u16 = 16;
const TYPE_ANY: u16 = 255;

/// The answer comes from the server of the name.
const AUTHORITATIVE: u16 = 0x0400;
/// "Recursion desired" is repeated in an answer.
const REPEATED: u16 = 0x0100;

const FORMAT_ERROR: u16 = 1;
const NAME_ERROR: u16 = 3;
const NOT_IMPLEMENTED: u16 = 4;
const REFUSED: u16 = 5;

/// The records that a server has for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Another server's name.
    Foreign,
    /// The name is served here, and there is no such name.
    Absent,
    /// These texts.
    Texts(Vec<String>),
}

/// The answer to a datagram; `None` for one that is no question, which gets none.
pub fn answer(bytes: &[u8], ttl_s: u32, find: impl FnOnce(&Name) -> Served) -> Option<Vec<u8>> {
    let mut reader = Reader { bytes, at: 0 };
    let (id, flags, questions) = (reader.word()?, reader.word()?, reader.word()?);
    reader.take(HEADER_BYTES - 6)?;
    if flags & RESPONSE != 0 {
        return None;
    }
    let repeated = flags & (OPCODE | REPEATED);
    let bare = |code: u16| Some(head(id, RESPONSE | repeated | code, 0, 0));
    if flags & OPCODE != 0 {
        return bare(NOT_IMPLEMENTED);
    }
    let Some((name, kind, class)) = (if questions == 1 { reader.question() } else { None }) else {
        return bare(FORMAT_ERROR);
    };
    let question = bytes.get(HEADER_BYTES..reader.at)?;
    let (code, texts) = match find(&name) {
        _ if class != CLASS_IN => (REFUSED, Vec::new()),
        Served::Foreign => (REFUSED, Vec::new()),
        Served::Absent => (NAME_ERROR, Vec::new()),
        Served::Texts(texts) if kind == TYPE_TXT || kind == TYPE_ANY => (0, texts),
        Served::Texts(_) => (0, Vec::new()),
    };
    let is_own = if code == REFUSED { 0 } else { AUTHORITATIVE };
    let texts: Vec<&String> = texts.iter().filter(|text| text.len() <= TEXT_BYTES_MAX).take(TEXTS_MAX).collect();
    let mut out = head(id, RESPONSE | is_own | repeated | code, 1, texts.len() as u16);
    out.extend_from_slice(question);
    for text in texts {
        // A pointer to the name in the question.
        for word in [0xc000 | HEADER_BYTES as u16, TYPE_TXT, CLASS_IN] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&ttl_s.to_be_bytes());
        out.extend_from_slice(&(text.len() as u16 + 1).to_be_bytes());
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    }
    Some(out)
}

fn head(id: u16, flags: u16, questions: u16, answers: u16) -> Vec<u8> {
    [id, flags, questions, answers, 0, 0].iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn question(name: &[u8], kind: u16, class: u16) -> Vec<u8> {
        let mut bytes = head(7, REPEATED, 1, 0);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&[kind.to_be_bytes(), class.to_be_bytes()].concat());
        bytes
    }

    const NAME: &[u8] = b"\x0f_Acme-challenge\x01a\x04test\x00";

    fn asked(kind: u16, class: u16, served: Served) -> (u16, u16, Vec<u8>) {
        let answer = answer(&question(NAME, kind, class), 5, |name| {
            assert_eq!(name.to_string(), "_acme-challenge.a.test");
            served
        })
        .unwrap();
        let word = |at: usize| u16::from_be_bytes([answer[at], answer[at + 1]]);
        assert_eq!((word(0), word(4)), (7, 1));
        // The question comes back as it was written.
        assert_eq!(&answer[12..12 + NAME.len()], NAME);
        (word(2) & 0xf, word(6), answer[12 + NAME.len() + 4..].to_vec())
    }

    #[test]
    fn texts_and_their_absence() {
        let texts = || Served::Texts(vec!["abc".to_owned(), "d".to_owned(), "x".repeat(256)]);
        let (code, count, records) = asked(TYPE_TXT, CLASS_IN, texts());
        assert_eq!((code, count), (0, 2));
        assert_eq!(records, b"\xc0\x0c\0\x10\0\x01\0\0\0\x05\0\x04\x03abc\xc0\x0c\0\x10\0\x01\0\0\0\x05\0\x02\x01d");
        assert_eq!(asked(1, CLASS_IN, texts()), (0, 0, Vec::new()));
        assert_eq!(asked(TYPE_TXT, 3, texts()), (REFUSED, 0, Vec::new()));
        assert_eq!(asked(TYPE_TXT, CLASS_IN, Served::Absent), (NAME_ERROR, 0, Vec::new()));
        assert_eq!(asked(TYPE_TXT, CLASS_IN, Served::Foreign), (REFUSED, 0, Vec::new()));
    }

    #[test]
    fn what_is_no_question() {
        let find = |_: &Name| Served::Absent;
        assert_eq!(answer(b"", 0, find), None);
        assert_eq!(answer(&head(1, RESPONSE, 1, 0), 0, find), None);
        let code = |bytes: &[u8]| answer(bytes, 0, find).map(|answer| answer[3] & 0xf);
        assert_eq!(code(&head(1, 0x2800, 1, 0)), Some(4));
        assert_eq!(code(&head(1, 0, 2, 0)), Some(1));
        assert_eq!(code(&head(1, 0, 1, 0)), Some(1));
    }

    proptest! {
        #[test]
        fn an_answer_is_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..80), whole in any::<bool>()) {
            let asked = if whole { [&head(1, 0, 1, 0)[..], &bytes].concat() } else { bytes };
            let texts = || Served::Texts(vec!["x".repeat(255); 20]);
            if let Some(answer) = answer(&asked, 1, |_| texts()) {
                prop_assert!(answer.len() <= asked.len().max(HEADER_BYTES) + TEXTS_MAX * (12 + 256));
            }
        }
    }
}
