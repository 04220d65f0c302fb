//! The expressions of `if` and `elif`: a text, `text = text`, `text != text`, `text = /regex/`, `text != /regex/`.

use weir_http::exchange::Exchange;
use weir_http::text::regex::Regex;
use weir_http::text::slots::{Captures, VariableId};

use super::shared::{Handle, TOO_MUCH};
use super::text::{CommandFailed, fail, value};

/// The parts of an expression.
#[derive(Debug, PartialEq, Eq)]
struct Expression<'e> {
    left: Vec<u8>,
    comparison: Option<Comparison<'e>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Comparison<'e> {
    is_negated: bool,
    is_regex: bool,
    right: &'e [u8],
}

/// Whether the expression holds.
pub fn holds(exchange: &mut Exchange<'_>, shared: &Handle, text: &[u8]) -> Result<bool, CommandFailed> {
    let Some(Expression { left, comparison }) = read(text) else {
        let text = String::from_utf8_lossy(text);
        return Err(fail(exchange, format_args!("invalid expression in \"{text}\"")));
    };
    let left = value(exchange, shared, &left)?;
    let Some(Comparison { is_negated, is_regex, right }) = comparison else { return Ok(!left.is_empty()) };
    let right = value(exchange, shared, right)?;
    let is_equal = if is_regex { matches(exchange, shared, &right, &left)? } else { left == right };
    Ok(is_equal != is_negated)
}

/// nginx reads the left side in lower case.
fn read(text: &[u8]) -> Option<Expression<'_>> {
    let is_left = |byte: &u8| byte.is_ascii_alphanumeric() || b"${}_\"'".contains(byte);
    let end = text.iter().position(|byte| !is_left(byte)).unwrap_or(text.len());
    let (left, rest) = text.split_at(end);
    let left = left.to_ascii_lowercase();
    let rest = skip_spaces(rest);
    if rest.is_empty() {
        return Some(Expression { left, comparison: None });
    }
    let (is_negated, rest) = match rest.strip_prefix(b"=") {
        Some(rest) => (false, rest),
        None => (true, rest.strip_prefix(b"!=")?),
    };
    let rest = skip_spaces(rest);
    let (is_regex, right) = match rest {
        [b'/', pattern @ .., b'/'] => (true, pattern),
        [b'/', _, ..] => return None,
        [b'\\', right @ ..] if right.starts_with(b"/") => (false, right),
        right => (false, right),
    };
    Some(Expression { left, comparison: Some(Comparison { is_negated, is_regex, right }) })
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

/// Whether the text matches; then the commands that follow can read the captures.
fn matches(exchange: &mut Exchange<'_>, shared: &Handle, pattern: &[u8], text: &[u8]) -> Result<bool, CommandFailed> {
    let mut names = Vec::new();
    let pattern = String::from_utf8_lossy(pattern);
    // Compiling to machine code would take longer than the one match.
    let regex = Regex::new(&pattern, false, false, |name| {
        names.push(name.to_ascii_lowercase());
        VariableId(names.len() as u32 - 1)
    });
    let regex = match regex {
        Ok(regex) => regex,
        Err(why) => return Err(fail(exchange, format_args!("{why}"))),
    };
    let mut captures = Captures::default();
    match regex.capture(text, &mut captures) {
        Ok(false) => return Ok(false),
        Ok(true) => {}
        Err(why) => return Err(fail(exchange, format_args!("{why}"))),
    }
    let kept = shared.with(|shared| {
        for (group, id) in regex.named() {
            if let Some(name) = names.get(id.0 as usize) {
                shared.set(name.as_bytes(), captures.get(*group).unwrap_or_default())?;
            }
        }
        shared.captures = captures;
        Ok(())
    });
    kept.map(|()| true).map_err(|super::shared::TooMuch| fail(exchange, format_args!("{TOO_MUCH}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_nginx_reads_them() {
        let comparison = |is_negated, is_regex, right: &'static str| {
            Some(Comparison { is_negated, is_regex, right: right.as_bytes() })
        };
        for (text, expected) in [
            ("$Arg_A", Some(("$arg_a", None))),
            ("$a ", Some(("$a", None))),
            ("", Some(("", None))),
            ("$a = b c", Some(("$a", comparison(false, false, "b c")))),
            ("A!=$b", Some(("a", comparison(true, false, "$b")))),
            ("$a = /b+/", Some(("$a", comparison(false, true, "b+")))),
            ("$a != /B/", Some(("$a", comparison(true, true, "B")))),
            ("$a = \\/b", Some(("$a", comparison(false, false, "/b")))),
            ("$a = /", Some(("$a", comparison(false, false, "/")))),
            ("$a = /b", None),
            ("$a < b", None),
            ("$a !b", None),
        ] {
            let expected = expected.map(|(left, comparison)| Expression { left: left.as_bytes().to_vec(), comparison });
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
    }

    mod mutate {
        use super::*;
        /// Each side of an expression is a part of it.
        #[test]
        fn expressions() {
            let words = ["=", "!=", "!", " ", "/", "\\/", "$a", "${b}", "\"", "A", "\0"];
            weir_mutate::mutate(&["$Arg_A = /b+/", "a != \\/b", "$a"], &words, |text| {
                if let Some(Expression { left, comparison }) = read(text) {
                    let right = comparison.map_or(0, |comparison| comparison.right.len());
                    assert!(left.len() + right <= text.len());
                }
            });
        }
    }
}
