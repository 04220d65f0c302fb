//! Replaces variables in the parameters of SSI commands, and removes backslashes (`ngx_http_ssi_evaluate_string`).

use weir_http::exchange::Exchange;
use weir_net::log::Level;

use super::shared::Handle;

/// The command failed; the log says why.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandFailed;

/// Logs why a command failed.
pub fn fail(exchange: &mut Exchange<'_>, why: std::fmt::Arguments<'_>) -> CommandFailed {
    exchange.log(Level::Error, why);
    CommandFailed
}

/// Appends the value of a variable, of SSI first; `false` if it is not found. The name is in lower case.
pub fn variable(exchange: &mut Exchange<'_>, shared: &Handle, name: &[u8], out: &mut Vec<u8>) -> bool {
    if shared.with(|shared| shared.read(name, out)) {
        return true;
    }
    std::str::from_utf8(name).is_ok_and(|name| exchange.variable_named(name, out))
}

/// The value of a text with `$name` and `${name}`.
pub fn value(exchange: &mut Exchange<'_>, shared: &Handle, text: &[u8]) -> Result<Vec<u8>, CommandFailed> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(b"$") {
            let (name, after) = match name(after) {
                Ok(found) => found,
                Err(Misspelt::Open(name)) => {
                    let name = String::from_utf8_lossy(name);
                    let why = format_args!("the closing bracket in \"{name}\" variable is missing");
                    return Err(fail(exchange, why));
                }
                Err(Misspelt::Nameless) => {
                    let text = String::from_utf8_lossy(text);
                    return Err(fail(exchange, format_args!("invalid variable name in \"{text}\"")));
                }
            };
            variable(exchange, shared, &name.to_ascii_lowercase(), &mut out);
            rest = after;
        } else {
            rest = plain(rest, &mut out);
        }
    }
    Ok(out)
}

enum Misspelt<'t> {
    Open(&'t [u8]),
    Nameless,
}

/// The name after a `$`, and the text behind it.
fn name(after: &[u8]) -> Result<(&[u8], &[u8]), Misspelt<'_>> {
    let (text, is_braced) = match after.strip_prefix(b"{") {
        Some(text) => (text, true),
        None => (after, false),
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.iter().position(|byte| !is_name(byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    let rest = match rest.strip_prefix(b"}") {
        Some(rest) if is_braced => rest,
        _ if is_braced && !text.is_empty() => return Err(Misspelt::Open(name)),
        _ => rest,
    };
    if name.is_empty() { Err(Misspelt::Nameless) } else { Ok((name, rest)) }
}

/// Appends the text up to the next `$`, without the backslashes that protect `\\`, `'`, `"` and `$`.
fn plain<'t>(text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    let mut is_quoted = false;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'$' if !is_quoted => return text.get(at..).unwrap_or_default(),
            b'\\' if !is_quoted => {
                is_quoted = true;
                continue;
            }
            b'\\' | b'\'' | b'"' | b'$' => {}
            _ if is_quoted => out.push(b'\\'),
            _ => {}
        }
        is_quoted = false;
        out.push(byte);
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_protect_four_bytes() {
        for (text, expected, rest) in [
            (&b"a\\$b\\\\\\\"\\'$c"[..], &b"a$b\\\"'"[..], &b"$c"[..]),
            (b"\\d\\.", b"\\d\\.", b""),
            (b"a\\", b"a", b""),
        ] {
            let mut out = Vec::new();
            assert_eq!((plain(text, &mut out), out.as_slice()), (rest, expected));
        }
    }

    #[test]
    fn names_end_at_a_brace_or_at_the_first_other_byte() {
        for (text, expected) in [
            (&b"a_1-b"[..], Some((&b"a_1"[..], &b"-b"[..]))),
            (b"{a}b", Some((b"a", b"b"))),
            (b"{a", None),
            (b"{a-b}", None),
            (b"{}", None),
            (b"-", None),
            (b"", None),
        ] {
            assert_eq!(name(text).ok(), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    mod mutate {
        use super::*;
        use weir_mutate::mutate;

        /// A text is read up to its end, and its plain parts do not grow.
        #[test]
        fn texts_with_variables() {
            let words = ["$", "${", "}", "\\", "\\$", "a_1", "'", "\"", "\0", "é"];
            mutate(&["a\\$b\\\\c$d_e${f}g", "${a", "\\d\\."], &words, |text| {
                let (mut rest, mut out) = (text, Vec::new());
                loop {
                    let before = rest.len();
                    rest = plain(rest, &mut out);
                    let Some(after) = rest.strip_prefix(b"$") else { break };
                    match name(after) {
                        Ok((name, after)) => {
                            assert!(!name.is_empty() && after.len() < before);
                            rest = after;
                        }
                        Err(_) => break,
                    }
                }
                assert!(out.len() <= text.len());
            });
        }
    }
}
