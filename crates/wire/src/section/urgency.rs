//! The priority that a client gives a request (RFC 9218).

use super::block::Block;

/// The name of the field.
const FIELD: &[u8] = b"priority";
/// The least urgent value (RFC 9218 §4.1).
const URGENCY_MAX: u8 = 7;

/// The value of a Priority field, or of a PRIORITY_UPDATE frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Urgency {
    /// 0 to 7; 0 is the most urgent.
    pub level: u8,
    /// The client can use a part of the answer, so answers of one level may share the connection (RFC 9218 §4.2).
    pub is_incremental: bool,
}

impl Default for Urgency {
    fn default() -> Urgency {
        Urgency { level: 3, is_incremental: false }
    }
}

impl Urgency {
    /// Reads a value; one that is no dictionary counts as empty (RFC 8941 §4.2), and so do unknown members and values out
    /// of range (RFC 9218 §4).
    pub fn read(value: &[u8]) -> Urgency {
        let mut urgency = Urgency::default();
        match urgency.take(value) {
            Some(()) => urgency,
            None => Urgency::default(),
        }
    }

    /// The priority in the fields of a request; `None` if it has none.
    pub fn of(block: &Block) -> Option<Urgency> {
        let mut values = block.iter().filter(|(name, _)| *name == FIELD).map(|(_, value)| value);
        let first = values.next()?;
        Some(match values.next() {
            None => Urgency::read(first),
            // The lines of one field are one list.
            Some(second) => {
                let mut joined = [first, b",", second].concat();
                values.for_each(|value| joined.extend([b",", value].concat()));
                Urgency::read(&joined)
            }
        })
    }

    /// Takes the members of a dictionary; `None` if it is none.
    fn take(&mut self, value: &[u8]) -> Option<()> {
        let mut rest = value.trim_ascii();
        while !rest.is_empty() {
            let (key, after) = key(rest)?;
            let (item, after) = match after.strip_prefix(b"=") {
                Some(after) => item_or_list(after)?,
                None => (Item::True, after),
            };
            match (key, item) {
                (b"u", Item::Integer(level @ 0..=URGENCY_MAX)) => self.level = level,
                (b"i", Item::True | Item::False) => self.is_incremental = item == Item::True,
                _ => {}
            }
            rest = parameters(after)?.trim_ascii_start();
            if let Some(after) = rest.strip_prefix(b",") {
                rest = after.trim_ascii_start();
                // A comma at the end is an error.
                rest.first()?;
            } else if !rest.is_empty() {
                return None;
            }
        }
        Some(())
    }
}

/// A value of a member, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    True,
    False,
    Integer(u8),
    Other,
}

fn key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.first().filter(|first| first.is_ascii_lowercase() || **first == b'*')?;
    let is_key =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.' | b'*');
    Some(bytes.split_at(bytes.iter().position(|byte| !is_key(byte)).unwrap_or(bytes.len())))
}

fn item_or_list(bytes: &[u8]) -> Option<(Item, &[u8])> {
    let Some(mut rest) = bytes.strip_prefix(b"(") else { return item(bytes) };
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b")") {
            return Some((Item::Other, after));
        }
        rest = parameters(item(rest)?.1)?;
        rest.first().filter(|next| matches!(next, b' ' | b')'))?;
    }
}

/// A bare item (RFC 8941 §3.3).
fn item(bytes: &[u8]) -> Option<(Item, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        b'?' => match rest.split_first()? {
            (b'1', rest) => Some((Item::True, rest)),
            (b'0', rest) => Some((Item::False, rest)),
            _ => None,
        },
        b'0'..=b'9' | b'-' => {
            let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
            let length = 1 + rest.iter().position(|byte| !is_digit(byte)).unwrap_or(rest.len());
            let (text, rest) = bytes.split_at(length);
            let [.., last] = text else { return None };
            let is_number = last.is_ascii_digit() && text.len() <= 17;
            let small = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            is_number.then_some((small.map_or(Item::Other, Item::Integer), rest))
        }
        b'"' => {
            let mut is_escaped = false;
            let end = rest.iter().position(|&byte| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends
            })?;
            Some((Item::Other, rest.get(end + 1..)?))
        }
        b':' => {
            let end = rest.iter().position(|&byte| byte == b':')?;
            Some((Item::Other, rest.get(end + 1..)?))
        }
        b'a'..=b'z' | b'A'..=b'Z' | b'*' => {
            let is_end =
                |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b',' | b';' | b')' | b'(' | b'"' | b'=');
            Some((Item::Other, rest.get(rest.iter().position(is_end).unwrap_or(rest.len())..)?))
        }
        _ => None,
    }
}

fn parameters(mut rest: &[u8]) -> Option<&[u8]> {
    while let Some(after) = rest.strip_prefix(b";") {
        let (_, after) = key(after.trim_ascii_start())?;
        rest = match after.strip_prefix(b"=") {
            Some(after) => item(after)?.1,
            None => after,
        };
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_read_and_anything_else_is_empty() {
        let rows = [
            ("", 3, false),
            ("u=5", 5, false),
            ("i", 3, true),
            ("u=0, i", 0, true),
            ("u=7,i=?1;x=\"a,\\\"b\";y", 7, true),
            ("i=?0 , u=1;a", 1, false),
            ("u=1, u=2, i, i=?0", 2, false),
            ("a=(1 b \"c\");d, u=4, e=:YQ==:, f=1.5, g=t/x", 4, false),
            // Out of range, or of another type.
            ("u=8", 3, false),
            ("u=-1, i=1", 3, false),
            ("u=x, i=yes", 3, false),
            // No dictionaries.
            ("u=1,", 3, false),
            ("u=1 i", 3, false),
            ("u=, i", 3, false),
            ("u=1, I", 3, false),
            ("u=1, x=\"", 3, false),
            ("u=1, x=(1", 3, false),
            ("u=1, x=?2", 3, false),
            ("u=1, x=1.", 3, false),
        ];
        for (value, level, is_incremental) in rows {
            assert_eq!(Urgency::read(value.as_bytes()), Urgency { level, is_incremental }, "{value}");
        }
    }

    #[test]
    fn the_lines_of_the_field_are_one_list() {
        let mut block = Block::default();
        block.push(b":path", b"/", None, 1000);
        assert_eq!(Urgency::of(&block), None);
        block.push(b"priority", b"u=1", None, 1000);
        block.push(b"priority", b"i", None, 1000);
        assert_eq!(Urgency::of(&block), Some(Urgency { level: 1, is_incremental: true }));
    }
}
