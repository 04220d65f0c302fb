//! The names of character sets, and the tables between them (`charset_map`).

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;

use super::recode::{Char, Pages, Recoding, Wide, decode};

/// All names and tables of a file.
#[derive(Default)]
pub struct Declared {
    /// As first written.
    names: Vec<String>,
    maps: Vec<Map>,
}

/// A table in both directions.
struct Map {
    first: usize,
    second: usize,
    forth: Recoding,
    back: Recoding,
}

impl Declared {
    /// Whether the file names any character set.
    pub fn has_any(&self) -> bool {
        !self.names.is_empty()
    }

    /// The number of a name, which is new or known.
    pub fn number(&mut self, name: &str) -> usize {
        self.find(name.as_bytes()).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// The number of a known name.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The name with a number.
    pub fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }

    /// How to convert from one to the other.
    pub fn recoding(&self, source: usize, target: usize) -> Option<Recoding> {
        self.maps.iter().find_map(|map| match (map.first, map.second) {
            pair if pair == (source, target) => Some(map.forth.clone()),
            pair if pair == (target, source) => Some(map.back.clone()),
            _ => None,
        })
    }
}

const UTF8: &str = "utf-8";

/// Reads a `charset_map` block.
pub fn block(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (one, two) = (statement.text(0), statement.text(1));
    let declared = &mut crate::declaring(b).charset;
    let (first, second) = (declared.number(one), declared.number(two));
    if first == second {
        return Err(Refusal::whole(format!("\"charset_map\" between the same charsets \"{one}\" and \"{two}\"")));
    }
    if one.eq_ignore_ascii_case(UTF8) {
        return Err(Refusal::whole("\"charset_map\" with \"utf-8\" charset should be given in the second column"));
    }
    if declared.recoding(first, second).is_some() {
        return Err(Refusal::whole(format!("duplicate \"charset_map\" between \"{one}\" and \"{two}\"")));
    }
    let mut table = if two.eq_ignore_ascii_case(UTF8) { Table::utf8() } else { Table::single() };
    for line in statement.children() {
        b.stand(line.at);
        if let Err(refusal) = table.line(line) {
            b.refuse_at("charset_map", refusal, line.at);
        }
    }
    b.stand(statement.at);
    let (forth, back) = table.done();
    crate::declaring(b).charset.maps.push(Map { first, second, forth, back });
    Ok(())
}

/// A table while it is read.
enum Table {
    Single { forth: Box<[u8; 256]>, back: Box<[u8; 256]> },
    Utf8 { forth: Box<[Wide; 256]>, back: Pages },
}

impl Table {
    /// Between two sets of single bytes: ASCII stays, other bytes become `?`.
    fn single() -> Table {
        let table = std::array::from_fn(|byte| if byte < 0x80 { byte as u8 } else { b'?' });
        Table::Single { forth: Box::new(table), back: Box::new(table) }
    }

    fn utf8() -> Table {
        let forth = std::array::from_fn(|byte| Wide::new(&[if byte < 0x80 { byte as u8 } else { b'?' }]));
        Table::Utf8 { forth: Box::new(forth), back: Pages::default() }
    }

    fn line(&mut self, line: &Statement) -> Result<(), Refusal> {
        let [word] = line.args.as_slice() else { return Err(Refusal::whole("invalid parameters number")) };
        let invalid = |text: &str| Refusal::whole(format!("invalid value \"{text}\""));
        let source = hex(&line.name.text).ok_or_else(|| invalid(&line.name.text))?;
        let bad = || invalid(&word.text);
        match self {
            Table::Single { forth, back } => {
                let target = hex(&word.text).ok_or_else(bad)?;
                forth[usize::from(source)] = target;
                back[usize::from(target)] = source;
            }
            Table::Utf8 { forth, back } => {
                let bytes = hex_bytes(&word.text).ok_or_else(bad)?;
                let Char::Is(code, _) = decode(&bytes) else { return Err(bad()) };
                let code = u16::try_from(code).map_err(|_| bad())?;
                forth[usize::from(source)] = Wide::new(&bytes);
                back.set(code, source);
            }
        }
        Ok(())
    }

    fn done(self) -> (Recoding, Recoding) {
        match self {
            Table::Single { forth, back } => (Recoding::Bytes(Arc::from(forth)), Recoding::Bytes(Arc::from(back))),
            Table::Utf8 { forth, back } => (Recoding::ToUtf8(Arc::from(forth)), Recoding::FromUtf8(Arc::new(back))),
        }
    }
}

/// A byte in hexadecimal digits, with any number of zeros before it.
fn hex(text: &str) -> Option<u8> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let digits = text.trim_start_matches('0');
    if digits.is_empty() { Some(0) } else { u8::from_str_radix(digits, 16).ok() }
}

/// The most bytes of a character in a table.
const WIDE_MAX: usize = 3;

/// One to three bytes, two digits each.
fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| if pair.len() == 2 { hex(std::str::from_utf8(pair).ok()?) } else { None }).collect();
    bytes.filter(|bytes| (1..=WIDE_MAX).contains(&bytes.len()))
}
