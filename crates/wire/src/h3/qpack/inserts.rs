//! The dynamic table, and the instructions of the peer's encoder stream that change it (RFC 9204 §4.3).

use crate::known::Known;
use crate::section::ENTRY_OVERHEAD;
use crate::section::integer::{self, NotInteger, QPACK_BITS};
use crate::section::table::{Dynamic, TableEntry};
use crate::section::text::{NotText, Text};

use super::fixed;

/// Bytes of an instruction in addition to its texts, at most: two integers.
const INTEGERS_BYTES_MAX: usize = 32;
/// A byte of a text has at most 30 bits in Huffman's code.
const BYTES_PER_BYTE_MAX: usize = 4;

/// The bytes are no whole instruction.
enum NotWhole {
    /// More bytes are needed.
    Cut,
    Wrong(&'static str),
}

/// See the module.
#[derive(Debug)]
pub struct Inserts {
    table: Dynamic,
    /// The largest table that our SETTINGS allow.
    allowed: usize,
    /// The entries that the table ever had.
    count: u64,
    /// The beginning of an instruction.
    begun: Vec<u8>,
}

impl Inserts {
    /// A table that may have this size in bytes, at most `u32::MAX`; it has none until the peer sets one (§3.2.3).
    pub fn new(allowed: usize) -> Inserts {
        Inserts { table: Dynamic::new(0), allowed, count: 0, begun: Vec::new() }
    }

    /// The largest size of the table in bytes.
    pub fn allowed(&self) -> usize {
        self.allowed
    }

    /// The entries that the table ever had.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The entry of that absolute index (§3.2.4).
    pub fn entry(&self, absolute: u64) -> Option<TableEntry<'_>> {
        self.relative(self.count.checked_sub(1)?.checked_sub(absolute)?)
    }

    /// Takes bytes of the encoder stream; returns the number of whole instructions.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        if self.begun.is_empty() {
            let (done, rest) = self.run(bytes)?;
            self.begun = rest.to_vec();
            return Ok(done);
        }
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        let (done, rest) = self.run(&begun)?;
        // No memory stays while no instruction is begun.
        if !rest.is_empty() {
            let used = begun.len() - rest.len();
            begun.drain(..used);
            self.begun = begun;
        }
        Ok(done)
    }

    /// Runs the whole instructions; returns their number and the rest.
    fn run<'b>(&mut self, mut rest: &'b [u8]) -> Result<(usize, &'b [u8]), &'static str> {
        let mut done = 0;
        while let Some(&first) = rest.first() {
            match self.instruction(first, rest) {
                Ok(after) => rest = after,
                Err(NotWhole::Cut) => break,
                Err(NotWhole::Wrong(what)) => return Err(what),
            }
            done += 1;
        }
        if rest.len() > BYTES_PER_BYTE_MAX * self.allowed + INTEGERS_BYTES_MAX {
            return Err("an entry larger than the dynamic table");
        }
        Ok((done, rest))
    }

    fn instruction<'b>(&mut self, first: u8, bytes: &'b [u8]) -> Result<&'b [u8], NotWhole> {
        match first {
            // Insert with a name's reference (§4.3.2).
            0x80.. => {
                let (index, rest) = integer::decode(bytes, 6, QPACK_BITS)?;
                let (value, rest) = Text::find(rest, 7)?;
                let entry = if first & 0x40 != 0 { fixed::entry(index) } else { self.relative(index) };
                let entry = entry.ok_or(NotWhole::Wrong("an insertion whose name has no entry"))?;
                let (known, mut texts) = (entry.known, entry.name.to_vec());
                let middle = texts.len();
                value.write(&mut texts)?;
                self.insert(&texts, middle, known)?;
                Ok(rest)
            }
            // Insert with a literal name (§4.3.3).
            0x40.. => {
                let (name, rest) = Text::find(bytes, 5)?;
                let (value, rest) = Text::find(rest, 7)?;
                let mut texts = Vec::new();
                name.write(&mut texts)?;
                let (known, middle) = (Known::of(&texts), texts.len());
                value.write(&mut texts)?;
                self.insert(&texts, middle, known)?;
                Ok(rest)
            }
            // Set Dynamic Table Capacity (§4.3.1).
            0x20.. => {
                let (size, rest) = integer::decode(bytes, 5, QPACK_BITS)?;
                let size = usize::try_from(size).ok().filter(|&size| size <= self.allowed);
                self.table.resize(size.ok_or(NotWhole::Wrong("a dynamic table larger than SETTINGS allow"))?);
                Ok(rest)
            }
            // Duplicate (§4.3.4).
            _ => {
                let (index, rest) = integer::decode(bytes, 5, QPACK_BITS)?;
                let entry = self.relative(index).ok_or(NotWhole::Wrong("a duplicate of no entry"))?;
                let (known, middle) = (entry.known, entry.name.len());
                let texts = [entry.name, entry.value].concat();
                self.insert(&texts, middle, known)?;
                Ok(rest)
            }
        }
    }

    /// §3.2.2: an entry must fit; room is made for it.
    fn insert(&mut self, texts: &[u8], middle: usize, known: Option<Known>) -> Result<(), NotWhole> {
        if texts.len() + ENTRY_OVERHEAD > self.table.max() {
            return Err(NotWhole::Wrong("an entry larger than the dynamic table"));
        }
        let (name, value) = texts.split_at(middle);
        self.table.add(name, value, known);
        self.count += 1;
        Ok(())
    }

    /// The entry of that relative index on the encoder stream: 0 is the newest (§3.2.5).
    fn relative(&self, index: u64) -> Option<TableEntry<'_>> {
        self.table.get(usize::try_from(index).ok()?)
    }
}

impl From<NotInteger> for NotWhole {
    fn from(what: NotInteger) -> NotWhole {
        match what {
            NotInteger::Cut => NotWhole::Cut,
            NotInteger::TooLarge => NotWhole::Wrong("an integer that is too large"),
        }
    }
}

impl From<NotText> for NotWhole {
    fn from(what: NotText) -> NotWhole {
        match what {
            NotText::Length(what) => what.into(),
            NotText::Cut => NotWhole::Cut,
            NotText::Code => NotWhole::Wrong("a string that is no Huffman code"),
        }
    }
}
