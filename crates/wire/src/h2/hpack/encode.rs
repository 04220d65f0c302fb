//! Encodes fields to blocks.

use crate::known::Known;
use crate::section::table::Dynamic;
use crate::section::{SectionEncoder, integer, is_secret, text};

use super::table::{self, TABLE_BYTES_DEFAULT};

/// One direction's encoder.
///
/// Fields that are likely to occur again go into the table. Fields that differ from message to message do not.
/// Secrets do not either: another user of the connection must not be able to guess them (RFC 7541 §7.1).
#[derive(Debug)]
pub struct Encoder {
    table: Dynamic,
    /// Size updates that the peer has not received: the smallest size since the last block, and the last size.
    resized: Option<(usize, usize)>,
    lower: Vec<u8>,
}

/// Whether a field goes into the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Indexed,
    Once,
    Secret,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder { table: Dynamic::new(TABLE_BYTES_DEFAULT), resized: None, lower: Vec::new() }
    }
}

impl Encoder {
    /// The peer's SETTINGS allow a table of this many bytes; weir uses at most [`TABLE_BYTES_DEFAULT`].
    pub fn allow(&mut self, allowed: usize) {
        let size = allowed.min(TABLE_BYTES_DEFAULT);
        if size == self.table.max() && self.resized.is_none() {
            return;
        }
        self.table.resize(size);
        let smallest = self.resized.map_or(size, |(smallest, _)| smallest.min(size));
        self.resized = Some((smallest, size));
    }

    /// Begins a block; call it once for each block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some((smallest, last)) = self.resized.take() {
            if smallest < last {
                integer::encode(smallest as u64, 5, 0x20, out);
            }
            integer::encode(last as u64, 5, 0x20, out);
        }
    }

    fn write(&mut self, name: &[u8], value: &[u8], named: Option<usize>, form: Form, out: &mut Vec<u8>) {
        let found = match form {
            Form::Indexed => self.table.find(name, value),
            Form::Once | Form::Secret => None,
        };
        let dynamic = |index: usize| index + table::STATIC.len() + 1;
        if let Some((index, true)) = found {
            return integer::encode(dynamic(index) as u64, 7, 0x80, out);
        }
        let index = named.or(found.map(|(index, _)| dynamic(index))).unwrap_or(0);
        match form {
            Form::Indexed => integer::encode(index as u64, 6, 0x40, out),
            Form::Once => integer::encode(index as u64, 4, 0, out),
            Form::Secret => integer::encode(index as u64, 4, 0x10, out),
        }
        if index == 0 {
            text::encode(name, 7, 0, out);
        }
        text::encode(value, 7, 0, out);
        if form == Form::Indexed {
            self.table.add(name, value, Known::of(name));
        }
    }
}

impl SectionEncoder for Encoder {
    fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let of_its_own = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => 0,
        };
        if of_its_own > 0 {
            return integer::encode(of_its_own, 7, 0x80, out);
        }
        let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        self.write(b":status", &digits, Some(8), Form::Indexed, out);
    }

    fn pseudo(&mut self, name: &str, value: &[u8], out: &mut Vec<u8>) {
        let same = |entry: &&(&str, &str)| entry.0 == name && entry.1.as_bytes() == value;
        if let Some(at) = table::STATIC.iter().position(|entry| same(&entry)) {
            return integer::encode(at as u64 + 1, 7, 0x80, out);
        }
        let named = table::STATIC.iter().position(|entry| entry.0 == name).map(|at| at + 1);
        let form = if name == ":path" { Form::Once } else { Form::Indexed };
        self.write(name.as_bytes(), value, named, form, out);
    }

    fn field(&mut self, name: &[u8], value: &[u8], known: Option<Known>, out: &mut Vec<u8>) {
        let mut lower = std::mem::take(&mut self.lower);
        lower.clear();
        lower.extend(name.iter().map(u8::to_ascii_lowercase));
        let named = known.and_then(table::static_name);
        let value = value.trim_ascii();
        self.write(&lower, value, named, form(known, value), out);
        self.lower = lower;
    }
}

/// Longer values are unlikely to occur again, and would push out values that are likely to.
const INDEXED_VALUE_MAX: usize = 256;

fn form(known: Option<Known>, value: &[u8]) -> Form {
    match known {
        _ if is_secret(known, value) => Form::Secret,
        // Set-Cookie is not kept in the table either. It does not use the "never indexed" form, because some clients,
        // including nginx's test suite, cannot read it.
        Some(Known::SetCookie) => Form::Once,
        Some(
            Known::Age
            | Known::ContentLength
            | Known::ContentRange
            | Known::Date
            | Known::Etag
            | Known::Expires
            | Known::IfModifiedSince
            | Known::IfNoneMatch
            | Known::LastModified
            | Known::Location
            | Known::Range
            | Known::XRequestId,
        ) => Form::Once,
        _ if value.len() > INDEXED_VALUE_MAX => Form::Once,
        _ => Form::Indexed,
    }
}

#[cfg(test)]
mod tests {
    use super::super::HpackDecoder;
    use super::*;
    use crate::section::Block;

    fn written(encoder: &mut Encoder, status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        encoder.status(status, &mut out);
        for (name, value) in fields {
            encoder.field(name.as_bytes(), value.as_bytes(), Known::of(name.as_bytes()), &mut out);
        }
        out
    }

    fn read(decoder: &mut HpackDecoder, block: &[u8]) -> Vec<(String, String)> {
        let mut out = Block::default();
        assert_eq!(decoder.decode(block, 1 << 20, &mut out), Ok(()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        out.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn what_comes_again_is_a_byte() {
        let (mut encoder, mut decoder) = (Encoder::default(), HpackDecoder::default());
        let fields =
            [("Server", "weir"), ("Content-Type", "text/html"), ("X-Own", "a"), ("Set-Cookie", "s=1"), ("Date", "now")];
        let first = written(&mut encoder, 503, &fields);
        let second = written(&mut encoder, 503, &fields);
        let mut expected = vec![(":status".into(), "503".into())];
        expected.extend(fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_string())));
        assert_eq!(read(&mut decoder, &first), expected);
        assert_eq!(read(&mut decoder, &second), expected);
        // Four fields of one byte each; for the two fields that are not kept, the index of the name, the length and
        // the value.
        assert_eq!(second.len(), 4 + (2 + 1 + 2) + (2 + 1 + 3));
    }

    #[test]
    fn secrets_are_never_indexed() {
        let block = written(&mut Encoder::default(), 200, &[("authorization", "Basic x")]);
        assert_eq!(block.get(..3), Some(&[0x88, 0x1f, 23 - 15][..]));
    }

    /// With it, a client has to take the answer as malformed.
    #[test]
    fn whitespace_around_a_value_is_not_written() {
        let block = written(&mut Encoder::default(), 200, &[("x-a", " a b\t"), ("x-b", " ")]);
        let fields = read(&mut HpackDecoder::default(), &block);
        assert_eq!(fields[1..], [("x-a".to_owned(), "a b".to_owned()), ("x-b".to_owned(), String::new())]);
    }

    #[test]
    fn a_changed_table_is_announced() {
        let (mut encoder, mut decoder) = (Encoder::default(), HpackDecoder::default());
        read(&mut decoder, &written(&mut encoder, 200, &[("x", "1")]));
        encoder.allow(0);
        encoder.allow(4096);
        let block = written(&mut encoder, 200, &[("x", "1")]);
        assert_eq!(block.get(..4), Some(&[0x20, 0x3f, 0xe1, 0x1f][..]));
        assert_eq!(read(&mut decoder, &block).len(), 2);
        encoder.allow(1 << 30);
        assert_eq!(written(&mut encoder, 200, &[]), [0x88]);
    }

    proptest::proptest! {
        #[test]
        fn the_decoder_gives_back_what_was_written(
            messages in proptest::collection::vec(proptest::collection::vec(("[a-z-]{1,20}", "[ -~]{0,300}"), 0..10), 1..10),
        ) {
            let (mut encoder, mut decoder) = (Encoder::default(), HpackDecoder::default());
            for fields in messages {
                let borrowed: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let block = written(&mut encoder, 200, &borrowed);
                // The whitespace around a value is not written.
                let trimmed = borrowed.iter().map(|(name, value)| (name.to_string(), value.trim().to_owned()));
                assert_eq!(read(&mut decoder, &block).split_off(1), trimmed.collect::<Vec<_>>());
            }
        }
    }
}
