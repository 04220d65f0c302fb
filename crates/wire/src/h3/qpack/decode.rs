//! Decodes field sections (RFC 9204 §4.5), and the instructions of the peer's encoder stream.

use crate::h3::{H3Code, H3Fault};
use crate::known::Known;
use crate::section::Block;
use crate::section::integer::{self, NotInteger, QPACK_BITS};
use crate::section::table::TableEntry;
use crate::section::text::{NotText, Text};

use super::fixed;
use super::inserts::Inserts;
use super::prefix::SectionPrefix;

/// What a decoder made of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpackRead {
    /// The fields are in the block.
    Whole,
    /// The section needs this many entries, and fewer have arrived: [`QpackDecoder::take_ready`] will return its stream.
    Blocked(u64),
}

/// The decoder of one connection. It has no memory of its own until the peer sends instructions.
#[derive(Debug)]
pub struct QpackDecoder {
    inserts: Inserts,
    blocked_max: usize,
    /// Streams with a section that waits, and the count that it needs.
    blocked: Vec<(u64, u64)>,
    acks: Vec<u8>,
}

impl QpackDecoder {
    /// A decoder whose table may have this size in bytes, and on which this many streams may wait: the values of our
    /// SETTINGS.
    pub fn new(allowed: usize, blocked_max: usize) -> QpackDecoder {
        let inserts = Inserts::new(allowed);
        QpackDecoder { inserts, blocked_max, blocked: Vec::new(), acks: Vec::new() }
    }

    /// Takes bytes of the peer's encoder stream; returns the number of whole instructions.
    pub fn instructions(&mut self, bytes: &[u8]) -> Result<usize, H3Fault> {
        let wrong = |what| H3Fault::connection(H3Code::QpackEncoderStream, what);
        let before = self.inserts.count();
        let instructions = self.inserts.take(bytes).map_err(wrong)?;
        let inserted = self.inserts.count() - before;
        if inserted > 0 {
            // Insert Count Increment (§4.4.3).
            integer::encode(inserted, 6, 0, &mut self.acks);
        }
        Ok(instructions)
    }

    /// Appends the fields of a section to `out`, without those beyond `limit` bytes. A section that is blocked must come
    /// again when [`QpackDecoder::take_ready`] returns its stream. Then its count is unwrapped anew, to the same value:
    /// the peer may not drop the entries that a section needs (§2.1.1).
    pub fn decode(&mut self, stream: u64, section: &[u8], limit: usize, out: &mut Block) -> Result<QpackRead, H3Fault> {
        let wrong = |what| H3Fault::connection(H3Code::QpackDecompression, what);
        let (count, allowed) = (self.inserts.count(), self.inserts.allowed());
        let (prefix, rest) = SectionPrefix::read(section, count, allowed).map_err(wrong)?;
        if prefix.required > count {
            return self.block(stream, prefix.required).map_err(wrong);
        }
        Lines { inserts: &self.inserts, prefix, limit }.read(rest, out).map_err(wrong)?;
        if prefix.required > 0 {
            // Section Acknowledgment (§4.4.1).
            integer::encode(stream, 7, 0x80, &mut self.acks);
            self.blocked.retain(|&(blocked, _)| blocked != stream);
        }
        Ok(QpackRead::Whole)
    }

    /// A stream whose section is not blocked any more.
    pub fn take_ready(&mut self) -> Option<u64> {
        let count = self.inserts.count();
        let at = self.blocked.iter().position(|&(_, needed)| needed <= count)?;
        Some(self.blocked.swap_remove(at).0)
    }

    /// Whether [`QpackDecoder::take_ready`] has a stream.
    pub fn is_ready(&self) -> bool {
        self.blocked.iter().any(|&(_, needed)| needed <= self.inserts.count())
    }

    /// A stream was reset, or nothing more of it will be read: the peer may forget its references (RFC 9204 §2.2.2.2).
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.retain(|&(blocked, _)| blocked != stream);
        if self.inserts.allowed() > 0 {
            integer::encode(stream, 6, 0x40, &mut self.acks);
        }
    }

    /// The bytes for our decoder stream; the caller takes all of them.
    pub fn acks(&mut self) -> &mut Vec<u8> {
        &mut self.acks
    }

    fn block(&mut self, stream: u64, needed: u64) -> Result<QpackRead, &'static str> {
        self.blocked.retain(|&(blocked, _)| blocked != stream);
        if self.blocked.len() >= self.blocked_max {
            return Err("more blocked streams than SETTINGS allow");
        }
        self.blocked.push((stream, needed));
        Ok(QpackRead::Blocked(needed))
    }
}

/// The field lines of one section.
struct Lines<'t> {
    inserts: &'t Inserts,
    prefix: SectionPrefix,
    limit: usize,
}

impl<'t> Lines<'t> {
    fn read(&self, mut rest: &[u8], out: &mut Block) -> Result<(), &'static str> {
        while let Some(&first) = rest.first() {
            rest = match first {
                // Indexed field line (§4.5.2).
                0x80.. => self.indexed(first & 0x40 != 0, number(rest, 6)?, out)?,
                // Literal with a name's reference (§4.5.4).
                0x40.. => {
                    let (index, rest) = number(rest, 4)?;
                    self.named(self.entry(first & 0x10 != 0, index)?, rest, out)?
                }
                // Literal with a literal name (§4.5.6).
                0x20.. => self.literal(rest, out)?,
                // Indexed, after the base (§4.5.3).
                0x10.. => {
                    let (index, rest) = number(rest, 4)?;
                    self.push(self.after_base(index)?, out);
                    rest
                }
                // Literal with a name's reference, after the base (§4.5.5).
                _ => {
                    let (index, rest) = number(rest, 3)?;
                    self.named(self.after_base(index)?, rest, out)?
                }
            };
        }
        Ok(())
    }

    fn indexed<'b>(
        &self,
        is_static: bool,
        (index, rest): (u64, &'b [u8]),
        out: &mut Block,
    ) -> Result<&'b [u8], &'static str> {
        self.push(self.entry(is_static, index)?, out);
        Ok(rest)
    }

    fn push(&self, entry: TableEntry<'t>, out: &mut Block) {
        out.push(entry.name, entry.value, entry.known, self.limit);
    }

    fn named<'b>(&self, entry: TableEntry<'t>, bytes: &'b [u8], out: &mut Block) -> Result<&'b [u8], &'static str> {
        let (value, rest) = Text::find(bytes, 7).map_err(of_text)?;
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(entry.name);
            let middle = out.len();
            value.write(out)?;
            Ok((middle, entry.known))
        };
        out.push_with(self.limit, write).map_err(of_text)?;
        Ok(rest)
    }

    fn literal<'b>(&self, bytes: &'b [u8], out: &mut Block) -> Result<&'b [u8], &'static str> {
        let (name, rest) = Text::find(bytes, 3).map_err(of_text)?;
        let (value, rest) = Text::find(rest, 7).map_err(of_text)?;
        let write = |out: &mut Vec<u8>| {
            let start = out.len();
            name.write(out)?;
            let middle = out.len();
            let known = out.get(start..).and_then(Known::of);
            value.write(out)?;
            Ok((middle, known))
        };
        out.push_with(self.limit, write).map_err(of_text)?;
        Ok(rest)
    }

    fn entry(&self, is_static: bool, index: u64) -> Result<TableEntry<'t>, &'static str> {
        if is_static {
            return fixed::entry(index).ok_or("a static index that has no entry");
        }
        self.absolute(self.prefix.base.checked_sub(index).and_then(|above| above.checked_sub(1)))
    }

    fn after_base(&self, index: u64) -> Result<TableEntry<'t>, &'static str> {
        self.absolute(self.prefix.base.checked_add(index))
    }

    /// RFC 9204 §2.2.3: an entry at or above the declared count is none, even if it has arrived.
    fn absolute(&self, absolute: Option<u64>) -> Result<TableEntry<'t>, &'static str> {
        let absolute = absolute.filter(|&absolute| absolute < self.prefix.required);
        absolute.and_then(|absolute| self.inserts.entry(absolute)).ok_or("a dynamic index that has no entry")
    }
}

fn number(bytes: &[u8], prefix: u32) -> Result<(u64, &[u8]), &'static str> {
    integer::decode(bytes, prefix, QPACK_BITS).map_err(of_integer)
}

fn of_integer(_: NotInteger) -> &'static str {
    "an integer that is cut off or too large"
}

fn of_text(what: NotText) -> &'static str {
    match what {
        NotText::Length(what) => of_integer(what),
        NotText::Cut => "a string that is cut off",
        NotText::Code => "a string that is no Huffman code",
    }
}
