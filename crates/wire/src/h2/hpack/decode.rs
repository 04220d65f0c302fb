//! Decodes blocks to fields.

use crate::known::Known;
use crate::section::Block;
use crate::section::integer::{self, HPACK_BITS};
use crate::section::table::{Dynamic, TableEntry};
use crate::section::text::{NotText, Text};

use super::table::{self, TABLE_BYTES_DEFAULT};

/// A block that no encoder makes: the connection cannot continue, because the tables of both sides may differ (RFC
/// 9113 §4.3, `COMPRESSION_ERROR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenBlock {
    /// An integer is cut off or too large.
    Integer,
    /// A string is cut off, or is not a Huffman code.
    String,
    /// Neither table has an entry of that index.
    Index,
    /// A table update is larger than SETTINGS allow, is not at the start of a block, or occurs more often than needed.
    Resize,
    /// SETTINGS made the table smaller, but the block does not have the matching update.
    NotResized,
}

/// One direction's decoder.
#[derive(Debug)]
pub struct HpackDecoder {
    table: Dynamic,
    /// The largest table that our SETTINGS allow.
    allowed: usize,
    /// The size that the peer must confirm first.
    owed: Option<usize>,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Size updates at the beginning of one block, at most: the smallest size since the last block, and the last size
/// (RFC 7541 §4.2).
const RESIZES_MAX: usize = 2;

impl Default for HpackDecoder {
    fn default() -> HpackDecoder {
        HpackDecoder::new(TABLE_BYTES_DEFAULT)
    }
}

/// Whether a literal goes into the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    Indexed,
    NotIndexed,
}

impl HpackDecoder {
    /// A decoder whose table may have this size in bytes, at most `u32::MAX`.
    pub fn new(allowed: usize) -> HpackDecoder {
        let table = Dynamic::new(allowed);
        HpackDecoder { table, allowed, owed: None, name: Vec::new(), value: Vec::new() }
    }

    /// The peer has acknowledged SETTINGS with another table size.
    pub fn allow(&mut self, allowed: usize) {
        if allowed < self.table.max() {
            self.owed = Some(allowed);
        }
        self.allowed = allowed;
    }

    /// Appends a whole block's fields to `out`, without those beyond `limit` bytes. It still reads them, because
    /// later blocks depend on them.
    pub fn decode(&mut self, block: &[u8], limit: usize, out: &mut Block) -> Result<(), BrokenBlock> {
        let mut rest = self.resizes(block)?;
        while let Some(&first) = rest.first() {
            rest = match first {
                0x80.. => self.indexed(rest, limit, out)?,
                0x40.. => self.literal(rest, 6, Literal::Indexed, limit, out)?,
                0x20.. => return Err(BrokenBlock::Resize),
                _ => self.literal(rest, 4, Literal::NotIndexed, limit, out)?,
            };
        }
        Ok(())
    }

    fn resizes<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], BrokenBlock> {
        let mut rest = block;
        for _ in 0..=RESIZES_MAX {
            match rest.first() {
                Some(0x20..0x40) => {}
                _ => return if self.owed.is_some() { Err(BrokenBlock::NotResized) } else { Ok(rest) },
            }
            let (size, after) = number(rest, 5)?;
            if size > self.allowed {
                return Err(BrokenBlock::Resize);
            }
            self.owed = self.owed.filter(|&owed| size > owed);
            self.table.resize(size);
            rest = after;
        }
        Err(BrokenBlock::Resize)
    }

    fn indexed<'b>(&self, bytes: &'b [u8], limit: usize, out: &mut Block) -> Result<&'b [u8], BrokenBlock> {
        let (index, rest) = number(bytes, 7)?;
        let entry = entry(&self.table, index)?;
        out.push(entry.name, entry.value, entry.known, limit);
        Ok(rest)
    }

    fn literal<'b>(
        &mut self,
        bytes: &'b [u8],
        prefix: u32,
        literal: Literal,
        limit: usize,
        out: &mut Block,
    ) -> Result<&'b [u8], BrokenBlock> {
        let (index, mut rest) = number(bytes, prefix)?;
        self.name.clear();
        self.value.clear();
        let known = if index == 0 {
            rest = string(rest, &mut self.name)?;
            Known::of(&self.name)
        } else {
            let entry = entry(&self.table, index)?;
            self.name.extend_from_slice(entry.name);
            entry.known
        };
        rest = string(rest, &mut self.value)?;
        out.push(&self.name, &self.value, known, limit);
        if literal == Literal::Indexed {
            self.table.add(&self.name, &self.value, known);
        }
        Ok(rest)
    }
}

fn entry(table: &Dynamic, index: usize) -> Result<TableEntry<'_>, BrokenBlock> {
    match index.checked_sub(table::STATIC.len() + 1) {
        Some(dynamic) => table.get(dynamic),
        None => table::static_entry(index),
    }
    .ok_or(BrokenBlock::Index)
}

fn number(bytes: &[u8], prefix: u32) -> Result<(usize, &[u8]), BrokenBlock> {
    let (value, rest) = integer::decode(bytes, prefix, HPACK_BITS).map_err(|_| BrokenBlock::Integer)?;
    Ok((usize::try_from(value).unwrap_or(usize::MAX), rest))
}

/// Appends a string to `out`; returns the bytes after it.
fn string<'b>(bytes: &'b [u8], out: &mut Vec<u8>) -> Result<&'b [u8], BrokenBlock> {
    let broken = |what| if matches!(what, NotText::Length(_)) { BrokenBlock::Integer } else { BrokenBlock::String };
    let (text, rest) = Text::find(bytes, 7).map_err(broken)?;
    text.write(out).map_err(broken)?;
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 65536;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    fn shown(block: &Block) -> String {
        let lines = block.iter().map(|(name, value)| [name, b": ", value].concat());
        String::from_utf8_lossy(&lines.collect::<Vec<_>>().join(&b'\n')).into_owned()
    }

    fn decode(decoder: &mut HpackDecoder, hex: &str) -> Result<String, BrokenBlock> {
        let mut block = Block::default();
        decoder.decode(&bytes(hex), LIMIT, &mut block)?;
        Ok(shown(&block))
    }

    #[test]
    fn three_requests_of_the_rfc_with_huffman() {
        // RFC 7541 C.4.
        let mut decoder = HpackDecoder::default();
        let rows = [
            (
                "828684418cf1e3c2e5f23a6ba0ab90f4ff",
                ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
            ),
            (
                "828684be5886a8eb10649cbf",
                ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
            ),
            (
                "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
                ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
            ),
        ];
        for (hex, expected) in rows {
            assert_eq!(decode(&mut decoder, hex).as_deref(), Ok(expected));
        }
        assert_eq!(decoder.table.len(), 3);
    }

    #[test]
    fn responses_of_the_rfc_evict() {
        // RFC 7541 C.5, a table of 256 bytes.
        let mut decoder = HpackDecoder::new(256);
        let first = "4803333032580770726976617465611d4d6f6e2c203231204f63742032303133\
                     2032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d";
        let second = "4803333037c1c0bf";
        assert!(
            decode(&mut decoder, first).is_ok_and(|text| text.starts_with(":status: 302\ncache-control: private\n"))
        );
        assert!(
            decode(&mut decoder, second).is_ok_and(|text| text.starts_with(":status: 307\ncache-control: private\n"))
        );
        assert_eq!(decoder.table.find(b":status", b"302"), Some((0, false)));
    }

    #[test]
    fn what_is_broken_says_how() {
        let rows = [
            ("80", BrokenBlock::Index),
            ("be", BrokenBlock::Index),
            ("ff", BrokenBlock::Integer),
            ("40", BrokenBlock::Integer),
            ("400361", BrokenBlock::String),
            ("00816003616263", BrokenBlock::String),
            // A table larger than allowed; a resize after a field; three resizes.
            ("3fe23f", BrokenBlock::Resize),
            ("8220", BrokenBlock::Resize),
            ("202020", BrokenBlock::Resize),
        ];
        for (hex, expected) in rows {
            assert_eq!(decode(&mut HpackDecoder::default(), hex), Err(expected), "{hex}");
        }
    }

    #[test]
    fn a_smaller_table_must_be_taken_note_of() {
        let mut decoder = HpackDecoder::default();
        decoder.allow(0);
        assert_eq!(decode(&mut decoder, "82"), Err(BrokenBlock::NotResized));
        assert_eq!(decode(&mut decoder, "2082").as_deref(), Ok(":method: GET"));
        decoder.allow(4096);
        assert_eq!(decode(&mut decoder, "3fe11f82").as_deref(), Ok(":method: GET"));
    }

    #[test]
    fn a_section_beyond_the_limit_is_read_but_not_kept() {
        let mut decoder = HpackDecoder::default();
        let mut block = Block::default();
        let read = decoder.decode(&bytes("400161 0162 400163 0164"), 3, &mut block);
        assert_eq!((read, shown(&block), block.is_too_large), (Ok(()), "a: b".into(), true));
        assert_eq!(decode(&mut decoder, "be").as_deref(), Ok("c: d"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_well(blocks in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..60), 0..20)) {
            let mut decoder = HpackDecoder::default();
            for block in blocks {
                let mut out = Block::default();
                if decoder.decode(&block, 1000, &mut out).is_err() {
                    break;
                }
                assert!(out.bytes.len() <= 1000);
            }
        }
    }
}
