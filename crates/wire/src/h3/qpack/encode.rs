//! Encodes fields to sections.

use crate::known::Known;
use crate::section::{SectionEncoder, integer, is_secret, text};

use super::fixed;

/// Names up to this length are changed to lower case without an allocation.
const SHORT_NAME: usize = 64;

/// The encoder: static table and literals, as nginx's. It has no state.
///
/// It has no dynamic table, for three reasons. Each connection would need memory for the table and for the references that
/// the peer has not acknowledged. A section that refers to an insertion has to wait if the packet of that insertion is
/// lost (RFC 9204 §2.1.2). And another user of the connection could guess values that are in the table (§7.1). RFC 9204
/// leaves the choice to the encoder, and an encoder without a table needs no encoder stream (§4.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct QpackEncoder;

impl QpackEncoder {
    /// Begins a section; call it once for each section. Required Insert Count and Base are 0 (§4.5.1).
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
    }
}

impl SectionEncoder for QpackEncoder {
    fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let index = match status {
            100 => 63,
            103 => 24,
            200 => 25,
            204 => 64,
            206 => 65,
            302 => 66,
            304 => 26,
            400 => 67,
            403 => 68,
            404 => 27,
            421 => 69,
            425 => 70,
            500 => 71,
            503 => 28,
            _ => {
                let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
                return named(24, &digits, false, out);
            }
        };
        indexed(index, out);
    }

    fn pseudo(&mut self, name: &str, value: &[u8], out: &mut Vec<u8>) {
        let range = fixed::of_name(name);
        match fixed::of_value(range.clone(), value) {
            Some(index) => indexed(index, out),
            None if range.is_empty() => literal(name.as_bytes(), value, false, out),
            None => named(range.start, value, false, out),
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8], known: Option<Known>, out: &mut Vec<u8>) {
        let value = value.trim_ascii();
        let range = known.map_or(0..0, fixed::of_known);
        let is_secret = is_secret(known, value);
        match fixed::of_value(range.clone(), value) {
            Some(index) => indexed(index, out),
            None if !range.is_empty() => named(range.start, value, is_secret, out),
            None => {
                let mut short = [0; SHORT_NAME];
                match short.get_mut(..name.len()) {
                    Some(lower) => {
                        lower.copy_from_slice(name);
                        lower.make_ascii_lowercase();
                        literal(lower, value, is_secret, out);
                    }
                    None => literal(&name.to_ascii_lowercase(), value, is_secret, out),
                }
            }
        }
    }
}

/// An entry of the static table (§4.5.2).
fn indexed(index: usize, out: &mut Vec<u8>) {
    integer::encode(index as u64, 6, 0xc0, out);
}

/// A literal with the name of an entry of the static table (§4.5.4). The value of a secret is in no table of later hops.
fn named(index: usize, value: &[u8], is_secret: bool, out: &mut Vec<u8>) {
    integer::encode(index as u64, 4, if is_secret { 0x70 } else { 0x50 }, out);
    text::encode(value, 7, 0, out);
}

/// A literal with a literal name (§4.5.6).
fn literal(name: &[u8], value: &[u8], is_secret: bool, out: &mut Vec<u8>) {
    text::encode(name, 3, if is_secret { 0x30 } else { 0x20 }, out);
    text::encode(value, 7, 0, out);
}
