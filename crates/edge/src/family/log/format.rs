//! A compiled log format, and the three ways of escaping values in it.

use std::io::Write;

use weir_http::text::refusal::Refusal;
use weir_http::text::slots::VariableId;
use weir_http::text::template::{Mentions, Reads};

/// How values are escaped; `escape=` of `log_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `"`, `\` and bytes outside 32..=126 as `\xXX`; `-` for a variable that is not found.
    Default,
    /// As in a JSON string.
    Json,
    /// Unchanged.
    None,
}

/// A compiled `log_format`.
#[derive(Debug)]
pub struct Format {
    parts: Vec<Part>,
    escape: Escape,
}

#[derive(Debug, PartialEq)]
enum Part {
    Literal(Box<[u8]>),
    Variable(VariableId),
}

impl Format {
    /// Compiles the words of a `log_format`; together they are one text.
    pub fn compile(words: &[&str], escape: Escape, names: &mut dyn Mentions) -> Result<Format, Refusal> {
        let mut parts = Vec::new();
        for word in words {
            let mut rest = *word;
            while !rest.is_empty() {
                let literal = rest.find('$').unwrap_or(rest.len());
                let (text, after) = rest.split_at(literal);
                if !text.is_empty() {
                    parts.push(Part::Literal(text.as_bytes().into()));
                }
                rest = after;
                if let Some(after) = rest.strip_prefix('$') {
                    let (name, after) = name(after).map_err(|what| match what {
                        Unnamed::Invalid => Refusal::whole(format!("invalid parameter \"{rest}\"")),
                        Unnamed::Open(name) => {
                            Refusal::whole(format!("the closing bracket in \"{name}\" variable is missing"))
                        }
                    })?;
                    parts.push(Part::Variable(names.read(name)));
                    rest = after;
                }
            }
        }
        Ok(Format { parts, escape })
    }

    /// Appends the line, without its end.
    pub fn write(&self, reader: &mut impl Reads, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Variable(id) => {
                    let start = out.len();
                    let found = reader.variable(*id, out);
                    self.harmless(found, start, out);
                }
            }
        }
    }

    /// Escapes the value that a variable appended from `start` on.
    fn harmless(&self, found: bool, start: usize, out: &mut Vec<u8>) {
        match self.escape {
            Escape::Default if !found => out.push(b'-'),
            Escape::Default => escape_from(out, start, needs_hex, |byte, out| {
                const HEX: [u8; 16] = *b"0123456789ABCDEF";
                let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 0xf)]);
            }),
            Escape::Json => escape_from(out, start, needs_json, json),
            Escape::None => {}
        }
    }
}

enum Unnamed<'t> {
    Invalid,
    Open(&'t str),
}

/// The name after a `$`, and the rest of the text.
fn name(text: &str) -> Result<(&str, &str), Unnamed<'_>> {
    let is_braced = text.starts_with('{');
    let text = text.strip_prefix('{').unwrap_or(text);
    let end = text.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(text.len());
    let (name, mut after) = text.split_at(end);
    if is_braced {
        after = after.strip_prefix('}').ok_or(if text.is_empty() { Unnamed::Invalid } else { Unnamed::Open(name) })?;
    }
    if name.is_empty() { Err(Unnamed::Invalid) } else { Ok((name, after)) }
}

fn needs_hex(byte: u8) -> bool {
    !(b' '..0x7f).contains(&byte) || byte == b'"' || byte == b'\\'
}

fn needs_json(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn json(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        other => {
            let _ = write!(out, "\\u{other:04X}");
        }
    }
}

/// Rewrites the end of `out`; rarely needed, because most values have nothing to escape.
fn escape_from(out: &mut Vec<u8>, start: usize, needs: fn(u8) -> bool, write: impl Fn(u8, &mut Vec<u8>)) {
    let Some(clean) = out.get(start..).and_then(|value| value.iter().position(|byte| needs(*byte))) else {
        return;
    };
    let tail = out.split_off(start + clean);
    for byte in tail {
        if needs(byte) {
            write(byte, out);
        } else {
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn escaped(escape: Escape, found: bool, value: &[u8]) -> String {
        let mut out = b"a ".to_vec();
        out.extend_from_slice(value);
        Format { parts: Vec::new(), escape }.harmless(found, 2, &mut out);
        String::from_utf8_lossy(out.get(2..).unwrap()).into_owned()
    }

    #[test]
    fn values_are_escaped_as_in_nginx() {
        for (escape, value, text) in [
            (Escape::Default, &b"plain ~"[..], "plain ~"),
            (Escape::Default, b"\"\\\n\x7f\x80\xff", "\\x22\\x5C\\x0A\\x7F\\x80\\xFF"),
            (Escape::Json, b"\"\\\n\r\t\x08\x0c\x01\x1f\x7f", "\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001F\x7f"),
            (Escape::None, b"\"\n", "\"\n"),
            (Escape::Default, b"", ""),
        ] {
            assert_eq!(escaped(escape, true, value), text, "{value:?}");
        }
    }

    #[test]
    fn what_is_not_found_is_a_dash_unless_escaped_otherwise() {
        assert_eq!(escaped(Escape::Default, false, b""), "-");
        assert_eq!(escaped(Escape::Json, false, b""), "");
        assert_eq!(escaped(Escape::None, false, b""), "");
    }

    #[test]
    fn formats_are_compiled_over_words() {
        let mut names: weir_http::text::template::Names<weir_http::exchange::Get> = Default::default();
        let format = Format::compile(&["a $uri", "${status}b$"], Escape::Default, &mut names);
        assert_eq!(format.err().map(|refusal| refusal.what).as_deref(), Some("invalid parameter \"$\""));
        let format = Format::compile(&["a $uri", "${status}b"], Escape::Default, &mut names).unwrap();
        let (uri, status) = (names.intern("uri"), names.intern("status"));
        let literal = |text: &[u8]| Part::Literal(text.into());
        assert_eq!(format.parts, [literal(b"a "), Part::Variable(uri), Part::Variable(status), literal(b"b")]);
        let format = Format::compile(&["${uri"], Escape::Default, &mut names);
        assert_eq!(
            format.err().map(|refusal| refusal.what).as_deref(),
            Some("the closing bracket in \"uri\" variable is missing")
        );
    }
}
